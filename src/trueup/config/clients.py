"""Clients: for whom a definition is instantiated, where each is declared, and how its values are filled in."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from trueup.config.source import Document, Place, Sheet, Source
from trueup.errors import ConfigError
from trueup.model.names import CLIENT

PLACEHOLDER: Final = re.compile(r"\{client\.([\w.-]+)\}")
# A table says by one of these what sort it is; one of another sort takes its place whole.
_SORTS: Final = ("url", "path", "api", "function")


@dataclass(frozen=True, slots=True)
class Client:
    """One client. place: where its table stands in its document.

    options: its values by name; under `pair`, `system` and `source` what it declares otherwise.
    """

    name: str
    document: Document
    place: Place
    options: Mapping[str, Any]

    def has(self, place: Place) -> bool:
        """Whether the client's table says anything at this place within it."""
        return self.document.has((*self.place, *place))

    def said(self, place: Place, problem: str) -> str:
        """A sentence about an option of the client, with file and line."""
        return self.document.said((*self.place, *place), problem)

    def value(self, name: str) -> Any:
        """What `{client.NAME}` stands for; LookupError where the client does not say."""
        if name == "name":
            return self.name
        found: Any = self.options
        for part in name.split("."):
            if not isinstance(found, Mapping) or part not in found:
                raise LookupError(name)
            found = found[part]
        return found


def clients_of(source: Source) -> list[Client]:
    """The clients that a trueup.toml declares: tables `[clients.NAME]`, or patterns of TOML and CSV files."""
    declared = source.tree.get("clients", {})
    patterns = [declared] if isinstance(declared, str) else declared
    found: dict[str, Client] = {}
    if isinstance(patterns, dict):
        listed: Iterator[Client] = _tables(source, ("clients",))
    elif isinstance(patterns, list) and all(isinstance(each, str) for each in patterns):
        listed = (client for each in patterns for path in _paths(source, each) for client in _in_file(path))
    else:
        hint = 'Write tables [clients.NAME], or clients = "clients/*.toml" or "clients.csv".'
        raise ConfigError(source.said(("clients",), "these are no clients."), hint=hint)
    for client in listed:
        if client.name in found:
            raise ConfigError(client.said((), f"there are two clients {client.name}."), hint="Give each its own name.")
        if not CLIENT.fullmatch(client.name):
            problem = f"{client.name!r} is no name for a client."
            raise ConfigError(client.said((), problem), hint="Use letters, digits, dots, dashes and _.")
        found[client.name] = client
    return list(found.values())


def _paths(source: Source, pattern: str) -> list[Path]:
    folder = source.path.parent
    # Path.glob takes no absolute pattern.
    found = sorted(glob.glob(str(folder / pattern), recursive=True))  # noqa: PTH207
    if not found:
        hint = "The pattern starts at the folder of this file."
        raise ConfigError(source.said(("clients",), f"no file is named by {pattern}."), hint=hint)
    return [Path(each) for each in found]


def _in_file(path: Path) -> Iterator[Client]:
    if path.suffix.lower() == ".csv":
        yield from _tables(Sheet(path), ())
    elif path.suffix.lower() == ".toml":
        source = Source(path)
        yield _client(path.stem, source, (), source.tree)
    else:
        raise ConfigError(f"{path} is neither a TOML nor a CSV file.", hint="Clients are declared in one of these.")


def _tables(document: Document, place: Place) -> Iterator[Client]:
    """The clients that are tables at a place of a document."""
    tables = document.tree
    for part in place:
        tables = tables.get(str(part), {})
    for name, options in tables.items():
        if not isinstance(options, dict):
            raise ConfigError(
                document.said((*place, name), "a client is a table of values."),
                hint=f'Write [clients.{name}] and under it values such as url = "…".',
            )
        yield _client(name, document, (*place, name), options)


def _client(name: str, document: Document, place: Place, options: Mapping[str, Any]) -> Client:
    client = Client(name, document, place, options)
    if "name" in options:
        hint = f"Leave it out: {{client.name}} is {name}, by its table or its file."
        raise ConfigError(client.said(("name",), "a client does not say its name itself."), hint=hint)
    return client


class Unfilled(LookupError):
    """A placeholder has no value. place: where it stands, within what was filled."""

    def __init__(self, place: Place, problem: str) -> None:
        super().__init__(problem)
        self.place, self.problem = place, problem


def filled(template: Any, client: Client, place: Place = ()) -> Any:
    """A copy of `template` with each `{client.NAME}` replaced; Unfilled where the client has no such value.

    A text that is nothing but one placeholder becomes the value itself, of whatever sort.
    """
    if isinstance(template, dict):
        return {name: filled(each, client, (*place, name)) for name, each in template.items()}
    if isinstance(template, list):
        return [filled(each, client, (*place, at)) for at, each in enumerate(template)]
    if not isinstance(template, str):
        return template
    if alone := PLACEHOLDER.fullmatch(template):
        return _value(alone[1], client, place)

    def text(found: re.Match[str]) -> str:
        value = _value(found[1], client, place)
        if isinstance(value, dict | list):
            raise Unfilled(place, f"{found[0]} is no single value, and stands within a text.")
        return str(value)

    return PLACEHOLDER.sub(text, template)


def _value(name: str, client: Client, place: Place) -> Any:
    try:
        return client.value(name)
    except LookupError:
        raise Unfilled(place, f"{{client.{name}}} has no value.") from None


def merged(template: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a template, those that are the client's own in their place; tables are merged likewise."""
    result = dict(template)
    for name, value in own.items():
        known = result.get(name)
        if isinstance(known, dict) and isinstance(value, dict) and not _other_sort(known, value):
            value = merged(known, value)  # noqa: PLW2901
        result[name] = value
    return result


def _other_sort(known: Mapping[str, Any], own: Mapping[str, Any]) -> bool:
    return any(sort in own and sort not in known for sort in _SORTS)
