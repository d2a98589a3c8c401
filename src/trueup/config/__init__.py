"""trueup.toml as values: one model, checked whole before anything is opened.

    state = "sqlite:///trueup.db"

    [pair.orders]
    authority = { url = "${DATABASE_URL}", table = "orders", key = "id", version = "updated_at" }
    replica = { url = "sqlite:///erp.db", table = "orders", key = "id" }
    fields = ["status", { name = "fee", places = 2, absolute = "0.01" }]

`${NAME}` in any text stands for an environment variable. Relative paths start at the folder of the file. A table with
`for_each = "clients"` stands once for each client, with `{client.NAME}` for its values.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from trueup.config.declared import Declared
from trueup.config.options import (
    FieldOptions,
    FunctionOptions,
    PairOptions,
    ProjectConfig,
    RetentionOptions,
    SourceOptions,
    SystemOptions,
    UrlOptions,
    WindowOptions,
)
from trueup.config.proving import AnchorOptions, EvidenceOptions
from trueup.config.sides import ApiOptions, AuthOptions, FileOptions, TableOptions, Throttling
from trueup.config.source import FILE_NAME, Place, Source
from trueup.config.watching import AlertsOptions, HealthOptions, TargetOptions
from trueup.errors import ConfigError, did_you_mean
from trueup.locations import absolute_url

__all__ = [
    "FILE_NAME",
    "AlertsOptions",
    "AnchorOptions",
    "ApiOptions",
    "AuthOptions",
    "EvidenceOptions",
    "FieldOptions",
    "FileOptions",
    "FunctionOptions",
    "HealthOptions",
    "PairOptions",
    "ProjectConfig",
    "RetentionOptions",
    "SourceOptions",
    "SystemOptions",
    "TableOptions",
    "TargetOptions",
    "Throttling",
    "UrlOptions",
    "WindowOptions",
    "load",
]

RANKED_MAX: Final = 50


def load(path: str | Path, environment: Mapping[str, str] | None = None) -> ProjectConfig:
    """The configuration at `path`; ConfigError names file, line and option."""
    source = Source(Path(path))
    declared = Declared(source)
    options = declared.substituted(declared.tree, os.environ if environment is None else environment)
    try:
        config = ProjectConfig.model_validate(_rooted(options, source.path.parent))
    except ValidationError as error:
        raise _mistake(declared, error) from None
    return config.at(source.path.parent)


def _rooted(options: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The options with relative paths made to start at `folder`; what has the wrong shape is left to the model."""
    rooted = dict(options)
    if isinstance(state := rooted.setdefault("state", "sqlite:///trueup.db"), str):
        rooted["state"] = absolute_url(state, folder)
    if isinstance(pairs := rooted.get("pair"), dict):
        rooted["pair"] = {name: _rooted_pair(pair, folder) for name, pair in pairs.items()}
    return rooted


def _rooted_pair(pair: object, folder: Path) -> object:
    if not isinstance(pair, dict):
        return pair
    rooted = dict(pair)
    for name in ("authority", "replica"):
        if isinstance(side := rooted.get(name), dict):
            side = rooted[name] = dict(side)
            if isinstance(side.get("path"), str):
                side["path"] = str(folder / side["path"])
            if isinstance(side.get("url"), str):
                side["url"] = absolute_url(side["url"], folder)
    return rooted


def _mistake(declared: Declared, error: ValidationError) -> ConfigError:
    """The first mistake in the file as one sentence."""
    placed = [(_place_of(declared, each), each) for each in error.errors()]
    # A misspelt option is also a missing one: the misspelling is what the reader can see. Each line has to be looked
    # for, and one mistake in a definition is made for a thousand clients.
    first_few = sorted(placed[:RANKED_MAX], key=lambda item: (declared.rank(item[0]), item[1]["type"] == "missing"))
    place, first = first_few[0]
    problem, hint = _problem(first, place)
    more = f" ({len(placed) - 1} more after it)" if len(placed) > 1 else ""
    return ConfigError(f"{declared.said(place, problem)}.{more}", hint=hint)


def _place_of(declared: Declared, error: ErrorDetails) -> Place:
    """Where the file is wrong: the model's path without the words that only the model has."""
    place: Place = ()
    for part in error["loc"]:
        if declared.has((*place, part)):
            place = (*place, part)
    return (*place, error["loc"][-1]) if error["type"] == "missing" else place


def _problem(error: ErrorDetails, place: Place) -> tuple[str, str | None]:
    """What is wrong, without any value (it may be secret), and what to do."""
    if error["type"] == "extra_forbidden":
        known = list(_model_at(error["loc"]).model_fields)
        return f"there is no option {place[-1]!r}", did_you_mean(str(place[-1]), known, "Options")
    if error["type"] == "missing":
        return "it is missing", f"Add {place[-1]} = …"
    if error["type"] == "string_pattern_mismatch":
        return "this names no function", "Write module:function, such as shop.erp:push."
    if error["type"] == "side":
        return error[
            "msg"
        ], 'Write { url = "…", table = "…" } for a table, { path = "…" } for a file, { api = "…" } for an API.'
    message = error["msg"].removeprefix("Value error, ").rstrip(".")
    return message[:1].lower() + message[1:], "See docs/reference/config.md for what each option takes."


def _model_at(location: Place) -> type[BaseModel]:
    """The model whose option was not known."""
    if len(location) > 3 and location[2] in ("authority", "replica"):
        models: dict[str, type[BaseModel]] = {"table": TableOptions, "api": ApiOptions}
        return models.get(str(location[3]), FileOptions)
    if location[0] == "health" or (len(location) > 3 and location[2] == "health"):
        return HealthOptions
    if location[0] == "retention" and len(location) > 1:
        return RetentionOptions
    if location[0] == "alerts":
        return TargetOptions if len(location) > 3 else AlertsOptions
    if len(location) > 3 and location[2] == "window":
        return WindowOptions
    if len(location) > 3 and location[2] == "fields":
        return FieldOptions
    if len(location) > 3 and location[2] in ("handler", "handlers"):
        return FunctionOptions if "batch function" in location else UrlOptions
    if len(location) > 2 and location[0] in ("system", "source"):
        return SystemOptions if location[0] == "system" else SourceOptions
    return ProjectConfig if len(location) == 1 else PairOptions
