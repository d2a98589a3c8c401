"""A route that is declared, not programmed: JMESPath (https://jmespath.org/specification.html) from body to columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from trueup.errors import ConfigError, EventRefused
from trueup.model.event import Event
from trueup.model.names import CLIENT, of_client

_PATH = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*\Z", re.ASCII)
_LACKING: Final = object()


@dataclass(frozen=True)
class Mapped:
    """How the records of one pair stand in a body.

    values: an expression by column. each: an expression that lists the records, where a body holds several; the
    other expressions then start at one of them. when, deleted_when: whether it is about this pair, or a delete.
    client: an expression that names the client; the pair is then that of the client, such as `orders@acme`.
    headers: header values that must be equal, by name. ConfigError where an expression can't be read.
    """

    pair: str
    values: Mapping[str, str]
    each: str | None = None
    when: str | None = None
    deleted_when: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    client: str | None = None

    def __post_init__(self) -> None:
        if not self.values:
            raise ConfigError(f"events of {self.pair}: no column is mapped.", hint="Map at least the key.")
        _ = self._found

    @cached_property
    def _found(self) -> Mapping[str, Callable[[Any], Any]]:
        asked = {f"values.{name}": text for name, text in self.values.items()}
        asked |= {
            name: text
            for name in ("each", "when", "deleted_when", "client")
            if (text := getattr(self, name)) is not None
        }
        return {name: _expression(text, f"events of {self.pair}, {name}") for name, text in asked.items()}

    def events(self, body: Any, headers: Mapping[str, str]) -> Iterator[Event]:
        """The events that the body holds for this pair."""
        if any(headers.get(name.lower()) != value for name, value in self.headers.items()):
            return
        found = self._found
        records = found["each"](body) if "each" in found else [body]
        if not isinstance(records, list):
            raise EventRefused(
                f"events of {self.pair}: each = {self.each!r} finds no list.", status=422, authentic=True,
                hint="Narrow headers or when, or mend each.",
            )  # fmt: skip
        for record in records:
            if "when" in found and not _true(found["when"](record)):
                continue
            deleted = "deleted_when" in found and _true(found["deleted_when"](record))
            values = {name: found[f"values.{name}"](record) for name in self.values}
            pair = self.pair if "client" not in found else of_client(self.pair, self._client(found["client"](record)))
            yield Event(pair, {name: value for name, value in values.items() if value is not _LACKING}, deleted)

    def _client(self, name: Any) -> str:
        if isinstance(name, str | int) and not isinstance(name, bool) and CLIENT.fullmatch(str(name)):
            return str(name)
        raise EventRefused(
            f"events of {self.pair}: client = {self.client!r} finds no name of a client.", status=422, authentic=True,
            hint="Mend client, or narrow headers or when.",
        )  # fmt: skip


def mapped(mappings: Sequence[Mapped]) -> Callable[[Any, Mapping[str, str]], list[Event]]:
    """A route by mappings; every one that fits contributes."""

    def route(body: Any, headers: Mapping[str, str]) -> list[Event]:
        return [event for each in mappings for event in each.events(body, headers)]

    return route


def _expression(text: str, what: str) -> Callable[[Any], Any]:
    """The function that an expression is; it answers `_LACKING` where the body says nothing."""
    if _PATH.match(text):
        return lambda body: _walk(body, text.split("."))
    import jmespath  # noqa: PLC0415  loaded where a mapping needs it

    try:
        compiled = jmespath.compile(text)
    except jmespath.exceptions.JMESPathError:
        raise ConfigError(f"{what}: {text!r} is no JMESPath.", hint="See https://jmespath.org.") from None

    def search(body: Any) -> Any:
        # JMESPath has one null for what is null and for what is not there; only the careful reading is safe.
        value = compiled.search(body)
        return _LACKING if value is None else value

    return search


def _walk(body: Any, names: Sequence[str]) -> Any:
    for name in names:
        if not isinstance(body, dict) or name not in body:
            return _LACKING
        body = body[name]
    return body


def _true(value: Any) -> bool:
    """JMESPath's own notion of truth: 0 is true, what is empty is not."""
    return value is not _LACKING and value is not None and value is not False and value not in ("", [], {})
