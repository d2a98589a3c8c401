"""Which answers mean *called too often*, beside 429."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import jmespath.exceptions

from trueup.errors import ConfigError, did_you_mean
from trueup.model.canonical import parse_json
from trueup.sides.http.calls import TOO_MANY
from trueup.sides.http.mapping import compiled

When = str | int | Mapping[str, Any]
_OPTIONS: Final = ("status", "header", "body", "used_up")


@dataclass(frozen=True, slots=True)
class Sign:
    """What an answer has to have, all of it, to mean *too often*.

    status: its status. header, value: a header, with this value where one is given. body: JMESPath that is true of
    the body. used_up: it means that the day's quota is used up.
    """

    status: int | None = None
    header: str | None = None
    value: str | None = None
    body: Any = None
    used_up: bool = False

    @classmethod
    def of(cls, when: When) -> Sign:
        """As declared: a status, a JMESPath into the body, or a table; ConfigError where it is none of them."""
        if isinstance(when, int):
            return cls(status=when)
        if isinstance(when, str):
            return cls(body=compiled(when, "throttled_when"))
        for name in when:
            if name not in _OPTIONS:
                hint = did_you_mean(name, _OPTIONS, "Options")
                raise ConfigError(f"throttled_when has no option {name}.", hint=hint)
        if not {"status", "header", "body"}.intersection(when):
            raise ConfigError("throttled_when says nothing of the answer.", hint="Name a status, a header or a body.")
        header, colon, value = (when.get("header") or "").partition(":")
        body = when.get("body")
        return cls(
            when.get("status"),
            header.strip().lower() or None,
            value.strip() if colon else None,
            None if body is None else compiled(body, "throttled_when"),
            bool(when.get("used_up", False)),
        )

    def seen(self, status: int, headers: Mapping[str, str], body: bytes) -> bool:
        """Whether an answer has it. headers: by any spelling of their names."""
        if self.status is not None and status != self.status:
            return False
        if self.header is not None:
            said = headers.get(self.header)
            if said is None or self.value not in (None, said.strip()):
                return False
        return self.body is None or self._true_of(body)

    def _true_of(self, body: bytes) -> bool:
        try:
            return bool(self.body.search(parse_json(body)))
        except (ValueError, RecursionError, jmespath.exceptions.JMESPathError):
            return False


@dataclass(frozen=True, slots=True)
class Throttled:
    """Every sign of having called too often; 429 is always one."""

    signs: tuple[Sign, ...] = ()

    @classmethod
    def of(cls, when: When | Iterable[When] | None) -> Throttled:
        """As declared: one sign or several."""
        declared = [when] if isinstance(when, str | int | Mapping) else list(when or ())
        return cls(tuple(Sign.of(each) for each in declared))

    def __call__(self, status: int, headers: Mapping[str, str], body: bytes) -> Literal["", "too often", "used up"]:
        """What this answer says of it."""
        seen = [sign for sign in self.signs if sign.seen(status, headers, body)]
        if any(sign.used_up for sign in seen):
            return "used up"
        return "too often" if seen or status == TOO_MANY else ""
