"""What a side was read from, as far as it can be told again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file as it lay there. name: without its folder. sha256: of its bytes as they are on disk, 64 hex digits."""

    name: str
    bytes: int
    sha256: str
    changed_us: int


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a side would read now.

    files: they can be kept, so that they are read again later. clock_us: the system's clock. snapshot: the system's own
    text for what is visible now, where it has one; it says when, but can't be read again.
    """

    files: tuple[InputFile, ...] = ()
    clock_us: int | None = None
    snapshot: str | None = None
