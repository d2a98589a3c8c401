"""What an analysis says: values only, the same for the terminal, JSON and the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SideName = Literal["left", "right"]
# What fewer records show is chance.
LEAST = 3


@dataclass(frozen=True, slots=True)
class SchemaDifference:
    """Something that the two schemas do not share.

    column, right_column: names; None where that side has no such column. what: `only_left`, `only_right`, `type`,
    `width` (of text), `scale` (of decimals), `nullability` or `collation`. left, right: what each side says.
    """

    column: str | None
    right_column: str | None
    what: str
    left: str
    right: str


@dataclass(frozen=True, slots=True)
class Example:
    """A pair of values. key: key text of the first record that has it, None where a key column is redacted.

    count: examined records with this pair.
    """

    key: str | None
    left: str | None
    right: str | None
    count: int


@dataclass(frozen=True, slots=True)
class Delta:
    """Right minus left, over `count` examined records: texts of decimals; of times, in seconds.

    mean and median have at most 12 significant digits; the others are exact.
    """

    count: int
    least: str
    most: str
    mean: str
    median: str
    total: str
    seconds: bool = False


@dataclass(frozen=True, slots=True)
class LikelyCause:
    """What probably made records differ.

    name: one of the table of causes. side: where it happened, None where that can't be told. said: for people.
    count: examined records that fit, of `of` that were examined. advice: an option that judges them equal, or "".
    """

    name: str
    side: SideName | None
    said: str
    count: int
    of: int
    advice: str = ""


@dataclass(frozen=True, slots=True)
class ColumnAnalysis:
    """One column that differs.

    count: exact, of `of` keys that both sides have. examined: how many of them were looked at. alone: examined
    records in which nothing else differs. examples: the most frequent pairs; none where the column is redacted.
    """

    column: str
    kind: str
    count: int
    of: int
    examined: int
    alone: int
    redacted: bool = False
    examples: tuple[Example, ...] = ()
    delta: Delta | None = None
    causes: tuple[LikelyCause, ...] = ()

    @property
    def share(self) -> float:
        """Of the keys that both sides have."""
        return self.count / self.of if self.of else 0.0


@dataclass(frozen=True, slots=True)
class Pattern:
    """Where differences lie: nearly all of them here, and few of the other records.

    about: a kind of difference, or the name of a column that differs. kind: `value` (of the column), `range` (of
    keys), `block` (of keys, without a gap), `time` or `time_of_day` (UTC). values: one or a few of them; of
    anything else the first and the last. count, of: examined records. share_all: of all records of the left side
    that lie there too, as sampled; None where that is not known. cause: only records that this cause fits.
    """

    about: str
    kind: Literal["value", "range", "block", "time", "time_of_day"]
    column: str
    values: tuple[str | None, ...]
    count: int
    of: int
    share_all: float | None = None
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class Bin:
    """Of a distribution: the first and last value, or the value and itself.

    count: examined differences. share_all: of all records of the left side, as sampled; None where not known.
    """

    first: str | None
    last: str | None
    count: int
    share_all: float | None


@dataclass(frozen=True, slots=True)
class Distribution:
    """How the examined differences of every kind spread over a column.

    kind: `value` (one bin each, the most frequent first), or bins of equal width, in order, of a `range` of keys or
    of `time`. of: examined differences that have a value.
    """

    column: str
    kind: Literal["value", "range", "time"]
    of: int
    bins: tuple[Bin, ...]


@dataclass(frozen=True, slots=True)
class Analysis:
    """What differs, and probably why.

    examined: differing keys whose values were looked at, of `of`; fewer than that is an evenly spread sample.
    compared_with: records of the left side that shares were taken of; None where they could not be had cheaply.
    columns: the most frequent first. causes: of whole records. patterns: the most telling first.
    """

    schema: tuple[SchemaDifference, ...] = ()
    examined: int = 0
    of: int = 0
    compared_with: int | None = None
    columns: tuple[ColumnAnalysis, ...] = ()
    causes: tuple[LikelyCause, ...] = ()
    patterns: tuple[Pattern, ...] = ()
    distributions: tuple[Distribution, ...] = ()

    @property
    def sampled(self) -> bool:
        """Whether some differences were not looked at."""
        return self.examined < self.of
