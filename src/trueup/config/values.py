"""The kinds of values that stand in trueup.toml, each checked as it is read."""

from __future__ import annotations

from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from trueup.errors import ConfigError
from trueup.model.duration import duration_us
from trueup.model.kinds import kind_named


def _names(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _zone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (KeyError, OSError, ValueError):
        raise ValueError(f"{value!r} is not a time zone; write one such as Europe/Berlin or UTC") from None
    return value


def _duration(value: str | float) -> str | float:
    try:
        duration_us(value)
    except ConfigError as error:
        raise ValueError(error.hint) from None
    return value


def _kind(value: str) -> str:
    try:
        return str(kind_named(value))
    except ConfigError as error:
        raise ValueError(str(error)) from None


Names = Annotated[tuple[str, ...], BeforeValidator(_names)]
Zone = Annotated[str, AfterValidator(_zone)]
Duration = Annotated[str | float, AfterValidator(_duration)]
KindText = Annotated[str, AfterValidator(_kind)]
Function = Annotated[str, Field(pattern=r"^[\w.]+:[\w.]+$")]
DURATION = "Seconds as a number, or a text such as 500ms, 10m, 1h, 2d."


class Options(BaseModel):
    """A table of options; one that is not known is a mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)
