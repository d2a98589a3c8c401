"""How a project is found and built: a module that holds one, or a trueup.toml."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from trueup.errors import ConfigError
from trueup.events.webhook import Source
from trueup.integrations.targets import Apprise, Webhook
from trueup.integrations.url import Url
from trueup.ports import AnchorPlace, Side, Target
from trueup.project import Project

if TYPE_CHECKING:
    from trueup.config import (
        AnchorOptions,
        ApiOptions,
        FileOptions,
        FunctionOptions,
        PairOptions,
        ProjectConfig,
        TableOptions,
        TargetOptions,
        UrlOptions,
    )
    from trueup.model.budget import System


def load(spec: str | None) -> Project:
    """The project that `--project` names: a module that holds one Project, or a trueup.toml."""
    spec = spec or os.environ.get("TRUEUP_PROJECT") or "trueup.toml"
    if spec.endswith(".toml"):
        from trueup.config import load as load_config  # noqa: PLC0415  the CLI starts without pydantic

        return from_config(load_config(Path(spec)))
    name, _, attribute = spec.partition(":")
    try:
        with _importing(Path.cwd()):
            module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise
        raise ConfigError(f"there is no module {name}.", hint="Name a Python module or a trueup.toml.") from None
    return _project_in(module, name, attribute)


def from_config(config: ProjectConfig) -> Project:
    """The project that a trueup.toml describes."""
    project = Project(
        config.state,
        threads=config.threads,
        runs_at_once=config.runs_at_once,
        memory_mb=config.memory_mb,
        metrics=config.metrics,
        health=None if config.health is None else config.health.model_dump(exclude_none=True),
        retention=None if config.retention is None else config.retention.model_dump(exclude_none=True),
    )
    systems = {name: project.system(name, **options.declaration()) for name, options in config.system.items()}
    for name, options in config.pair.items():
        try:
            _declare(project, name, options, systems, config.folder)
        except ConfigError as error:
            raise _about(name, error) from error
    if config.alerts is not None:
        project.alerts(**config.alerts.declaration())
        for name, target in config.alerts.target.items():
            project.alert(name, _target(target), least=target.least)
    if config.evidence is not None:
        for name, anchor in config.evidence.anchor.items():
            project.anchor(name, _anchor(anchor, config.evidence.name, config.folder), every=anchor.every)
    for name, source in config.source.items():
        route = None if source.route is None else _function(source.route, config.folder)
        project.sources[name] = Source.from_options(name, source.declaration(), route)
    return project


def _declare(project: Project, name: str, options: PairOptions, systems: Mapping[str, System], folder: Path) -> None:
    bound = project.pair(
        name,
        authority=_side(options.authority, systems),
        replica=None if options.replica is None else _side(options.replica, systems),
        system=None if options.system is None else systems[options.system],
        **options.declaration(),
    )
    for action, handler in options.by_action.items():
        bound.on(action, batch=getattr(handler, "batch", None))(_handler(handler, folder))


def _target(options: TargetOptions) -> Target:
    if options.url is None:
        return Apprise(options.apprise)
    return Webhook(options.url, options.secrets, options.timeout_s, options.headers)


def _anchor(options: AnchorOptions, project: str, folder: Path) -> AnchorPlace:
    if options.bucket is not None:
        from trueup.integrations.bucket import AnchorBucket  # noqa: PLC0415  loaded when used

        names = {"bucket", "prefix", "keep", "mode", "endpoint", "region", "key", "secret"}
        return AnchorBucket(**options.model_dump(include=names))
    from trueup.integrations.anchors import AnchorFile, AnchorMail, AnchorWebhook  # noqa: PLC0415

    if options.file is not None:
        return AnchorFile(folder / options.file)
    wait = {} if options.timeout_s is None else {"timeout_s": options.timeout_s}
    if options.url is not None:
        return AnchorWebhook(Webhook(options.url, options.secrets, headers=options.headers, **wait), project)
    return AnchorMail(options.smtp or "", options.mail, options.sender or "", **wait, project=project)


def _about(pair: str, error: ConfigError) -> ConfigError:
    """The error, with the pair: of many sides that are alike, one is wrong."""
    message = error.message if pair in error.message else f"pair {pair}: {error.message}"
    return ConfigError(message, hint=error.hint)


def _side(options: TableOptions | FileOptions | ApiOptions, systems: Mapping[str, System]) -> Side:
    chosen = options.model_dump(exclude_none=True)
    if "api" in chosen:
        return _api(chosen.pop("api"), chosen, systems)
    if "url" in chosen:
        from trueup.sides.sql import Sql  # noqa: PLC0415  adapters load when used

        return Sql(chosen.pop("url"), **chosen)
    from trueup.sides.files import File  # noqa: PLC0415

    return File(chosen.pop("path"), **chosen)


def _api(url: str, options: dict[str, Any], systems: Mapping[str, System]) -> Side:
    from trueup.sides.http import Basic, Bearer, Http, OAuth2ClientCredentials  # noqa: PLC0415

    for absent in ("item_url", "size_param"):
        options[absent] = options[absent] or None
    if "system" in options:
        options["system"] = systems[options["system"]]
    told = options.pop("auth", None) or {}
    more = {name: told.pop(name) for name in ("scope", "in_body") if name in told}
    if "token_url" in told:
        options["auth"] = OAuth2ClientCredentials(**told, **more)
    elif told:
        options["auth"] = Basic(**told) if "user" in told else Bearer(**told)
    return Http(url, **options)


def _handler(options: str | FunctionOptions | UrlOptions, folder: Path) -> Callable[..., Any] | Url:
    if isinstance(options, str):
        return _function(options, folder)
    told = options.model_dump(exclude={"batch"})
    return _function(told["function"], folder) if "function" in told else Url(**told)


def _function(spec: str, folder: Path) -> Callable[..., Any]:
    module, _, attribute = spec.partition(":")
    try:
        with _importing(folder):
            found: Any = importlib.import_module(module)
        for name in attribute.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"handler {spec} can't be loaded: {error}.", hint="Write it as module:function.") from error
    if not callable(found):
        raise ConfigError(f"handler {spec} is not a function.", hint="Write it as module:function.")
    return cast(Callable[..., Any], found)


@contextmanager
def _importing(folder: Path) -> Iterator[None]:
    """Imports look in this folder too, as they do for a script that lies there."""
    sys.path.insert(0, str(folder.resolve()))
    try:
        yield
    finally:
        sys.path.pop(0)


def _project_in(module: Any, name: str, attribute: str) -> Project:
    found = [value for key, value in vars(module).items() if isinstance(value, Project) and attribute in ("", key)]
    distinct = list({id(project): project for project in found}.values())
    if len(distinct) != 1:
        hint = f"Name one: --project {name}:project" if distinct else "Create one: project = trueup.Project()"
        raise ConfigError(f"module {name} holds {len(distinct)} projects.", hint=hint)
    return distinct[0]
