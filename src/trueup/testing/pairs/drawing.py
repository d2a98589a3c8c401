"""Pairs of tables drawn from a seed: mostly alike, with every kind of difference that comparisons have missed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from zoneinfo import ZoneInfo

from trueup.testing.pairs.engines import types_of
from trueup.testing.pairs.engines.engine import Row
from trueup.testing.pairs.types import Type, wall
from trueup.testing.pairs.values import FAMILIES, drawn, mistake, near

Constraint = str
# Engines that say canonical texts in SQL; the records of any other side are hashed here.
CANONICAL: Final = ("duckdb", "mariadb", "postgresql")
# Engines whose keys can be whole numbers that are told apart by ranges.
RANGED: Final = (*CANONICAL, "parquet", "sqlite")
NAMES: Final = (
    "a", "b", "id", "ID", "Name", "select", "order", "group", "null", "key", "Größe", "größe ß", "日本語", "x y", "a.b",
    'say "hi"', "it's", "`tick`", "100%", "%s", "%(a)s", ":id", "$1", "?", "semi;colon", "back\\slash", "tab\there",
    "new\nline", "k0", "f0", "h", "n", "o", "v", "i", "left", "right", "chunk", "rk0",
    "h0", "_", "-", "--", "/* x */", "(", "1", "e\u0301",
    "{name}", "[x]", "l" * 63, "L" * 64, "ä" * 31, "z" * 200, "a" * 62 + "b", " x", "rowid", "ctid", "sum(x)", "😀",
)  # fmt: skip
KEY_FAMILIES: Final = (
    *("integer",) * 8, *("text",) * 4, "uuid", "uuid", "decimal", "decimal", "date", "time", "timestamp", "instant",
    "bytes", "bytes", "boolean", "enum", "float", "float32", "interval",
)  # fmt: skip
_SURELY_WHOLE: Final = (
    "smallint", "integer", "bigint", "mediumint", "int", "INTEGER", "BIGINT", "int32", "int64"
)  # fmt: skip


@dataclass(frozen=True)
class Column:
    """A column of both tables. names, types: of the left and of the right one."""

    family: str
    names: tuple[str, str]
    types: tuple[Type, Type]


@dataclass(frozen=True)
class Pair:
    """Two tables, and how they are to be compared. It can be drawn again from seed and number.

    columns: the first `keys` of them are the key. rows: of both tables, canonical texts by column. constraints:
    `primary`, `unique`, `index` or nothing, over each key. zones: of each table's wall-clock times. narrow: whether
    the comparison gets bounds so small that a few rows fill many ranges, chunks and pages. lone: name of a column that
    only this table has. declared: whether all kinds are declared to the comparison, and not only those
    that have to be. strict: whether MariaDB's zero dates are what they are, and not null. alike: whether equal
    values are spelled alike.
    """

    seed: int
    number: int
    engines: tuple[str, str]
    strategy: str | None
    columns: tuple[Column, ...]
    keys: int
    rows: tuple[tuple[Row, ...], tuple[Row, ...]]
    constraints: tuple[Constraint, Constraint] = ("", "")
    zones: tuple[str | None, str | None] = (None, None)
    narrow: bool = False
    lone: tuple[str | None, str | None] = (None, None)
    declared: bool = False
    strict: bool = True
    alike: bool = False


def draw(seed: int, number: int, engines: tuple[str, str], strategy: str | None) -> Pair:
    """The pair of this number: the same whenever it is drawn."""
    return _Drawing(random.Random(f"{seed}:{number}"), seed, number, engines, strategy).pair()


def hashes(engines: tuple[str, str]) -> bool:
    """Whether records on these engines can be compared by hashes."""
    return engines == ("sqlite", "sqlite") or any(each in CANONICAL for each in engines)


def fits_name(engine: str, name: str) -> bool:
    """Whether a column of the engine can be called so."""
    match engine:
        case "postgresql":
            return len(name.encode()) <= 63 and name != "ctid"
        case "mariadb":
            return len(name) <= 64 and not name.endswith(" ") and all("\x1f" < each <= "\uffff" for each in name)
        case "csv":
            # A single column with a separator in its name is taken for a wrong separator.
            return not any(mark in name for mark in ",;|\t")
        case _:
            return True


# Types of Parquet that DuckDB does not read as Arrow does.
_UNMATCHED: Final = ("uint64", "decimal256(60, 20)", "time64[us]", "time64[ns]", "time32[s]", "duration[us]",
                     "list of int64", "list of string")  # fmt: skip


class _Drawing:
    def __init__(
        self, chance: random.Random, seed: int, number: int, engines: tuple[str, str], strategy: str | None
    ) -> None:
        self._chance, self._seed, self._number = chance, seed, number
        self._engines, self._strategy = engines, strategy
        self._hashing = hashes(engines) and strategy != "rows" and self._often(0.9)
        # One of the two engines says canonical texts; or both hash in their own way, which needs equal types.
        able = [at for at, engine in enumerate(engines) if engine in CANONICAL]
        self._canonical = chance.choice(able) if able else None
        self._matched = engines == ("parquet", "parquet") and strategy == "match" and self._often(0.9)
        self._same = engines[0] == engines[1] and (self._hashing or self._matched) and self._often(0.9)
        self._large = self._often(0.02)
        zones = (None, None) if self._often(0.9 if self._matched else 0.7) else self._zones()
        self._zones_drawn = zones
        self._mistakes = self._often(0.2)
        self._taken: tuple[set[str], set[str]] = (set(), set())
        ranged = all(each in RANGED for each in engines)
        self._whole = ranged and (
            strategy in ("segments", "sketch")
            or (strategy == "gate" and self._often(0.8))
            or (strategy in ("keyhash", None) and self._often(0.5))
        )
        self._unique = self._hashing and (self._whole or strategy == "gate" or self._often(0.3))

    def pair(self) -> Pair:
        """Columns first, then rows of the left table, then what is changed in the right one."""
        chance = self._chance
        keys = 1 if self._hashing and self._whole else chance.choice((1, 1, 1, 2, 2, 3))
        key = [self._column(is_key=True) for _ in range(keys)]
        fields = [self._column() for _ in range(chance.randrange(4) if self._large else chance.randrange(8))]
        constraints = ("primary", "primary") if self._unique else (self._constraint(), self._constraint())
        columns = (*key, *fields)
        left, right = _Rows(chance, columns, keys, constraints, large=self._large, mistakes=self._mistakes).drawn(
            agreeing=self._often(0.8 if self._strategy == "gate" else 0.15)
        )
        lone = (self._lone(0), self._lone(1)) if self._often(0.1) else (None, None)
        narrow = not self._large and self._often(0.8)
        return Pair(
            self._seed, self._number, self._engines, self._strategy, columns, keys, (tuple(left), tuple(right)),
            constraints, self._zones_drawn, narrow, lone, declared=self._often(0.3), strict=self._often(0.7),
            alike=self._often(0.8 if self._strategy == "gate" else 0.4),
        )  # fmt: skip

    def _often(self, share: float) -> bool:
        return self._chance.random() < share

    def _zones(self) -> tuple[str | None, str | None]:
        names = (None, "UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata")
        able = [engine != "memory" for engine in self._engines]
        one = self._chance.choice(names)
        two = one if self._hashing or self._matched else self._chance.choice(names)
        return (one if able[0] else None, two if able[1] else None)

    def _constraint(self) -> Constraint:
        return self._chance.choice(("", "", "primary", "unique", "index"))

    def _column(self, *, is_key: bool = False) -> Column:
        while True:
            family = self._family(is_key)
            types = self._types(family, is_key)
            if types is not None and any(all(each.fits(text) for each in types) for text in self._some(family)):
                return Column(family, self._names(), types)

    def _some(self, family: str) -> list[str]:
        return [drawn(family, self._chance) for _ in range(12)]

    def _family(self, is_key: bool) -> str:
        if not is_key:
            return self._chance.choice(FAMILIES)
        if self._hashing and self._whole:
            return "integer"
        if self._hashing and self._engines == ("sqlite", "sqlite"):
            return self._chance.choice(("integer", "text"))
        return self._chance.choice(KEY_FAMILIES)

    def _types(self, family: str, is_key: bool) -> tuple[Type, Type] | None:
        offered = [self._offered(side, family, is_key) for side in (0, 1)]
        if not all(offered):
            return None
        left = self._chance.choice(offered[0])
        if self._same and self._often(0.97):
            return left, left
        return left, self._chance.choice(offered[1])

    def _offered(self, side: int, family: str, is_key: bool) -> list[Type]:
        engine, zone = self._engines[side], self._zones_drawn[side]
        found = list(types_of(engine, family))
        if zone is not None:
            clocks = [each for each in types_of(engine, "timestamp") if each.wall]
            found = {"timestamp": [], "instant": [*found, *(wall(each, ZoneInfo(zone)) for each in clocks)]}.get(
                family, found
            )
        if is_key:
            found = [each for each in found if each.indexed]
            if self._hashing and self._whole:
                # SQLite's only where they are the numbers of the rows.
                whole = ("INTEGER",) if engine == "sqlite" else _SURELY_WHOLE
                found = [each for each in found if each.declared in whole]
        if self._matched:
            found = [each for each in found if not (each.told or each.mistakes or each.declared in _UNMATCHED)]
            found = [] if family == "enum" or (is_key and family in ("float", "float32")) else found
        if self._hashing and not self._same and self._canonical == side:
            found = [each for each in found if each.hashed]
        return found

    def _names(self) -> tuple[str, str]:
        names = self._chance.sample(NAMES, len(NAMES))
        left = next(name for name in names if self._free(0, name))
        if self._free(1, left) and self._often(0.8):
            right = left
        else:
            right = next(name for name in names if self._free(1, name))
        self._take(0, left)
        self._take(1, right)
        return left, right

    def _lone(self, side: int) -> str | None:
        names = self._chance.sample(NAMES, len(NAMES))
        name = next(name for name in names if self._free(0, name) and self._free(1, name))
        self._take(0, name)
        self._take(1, name)
        return name if self._often(0.6) else None

    def _free(self, side: int, name: str) -> bool:
        taken = self._taken[side]
        return fits_name(self._engines[side], name) and name not in taken and name.casefold() not in taken

    def _take(self, side: int, name: str) -> None:
        # Most engines hold names for one that differ in case only.
        self._taken[side].add(name if self._engines[side] in ("postgresql", "memory") else name.casefold())


class _Rows:
    """Draws the rows of both tables."""

    def __init__(
        self,
        chance: random.Random,
        columns: Sequence[Column],
        keys: int,
        constraints: tuple[Constraint, Constraint],
        *,
        large: bool,
        mistakes: bool,
    ) -> None:
        self._chance, self._columns, self._keys = chance, columns, keys
        self._constraints, self._mistakes = constraints, mistakes
        self._count = chance.randrange(1000, 4000) if large else chance.choice((0, 1, 2, *[chance.randrange(62)] * 9))
        self._repeats = [not constraint.startswith(("primary", "unique")) for constraint in constraints]
        self._nulls = [each != "primary" for each in constraints]
        self._palettes = [self._palette(column, at < keys) for at, column in enumerate(columns)]

    def drawn(self, *, agreeing: bool) -> tuple[list[Row], list[Row]]:
        """Both tables' rows, in any order."""
        every = self._distinct(self._count + self._chance.randrange(5))
        left, more = every[: self._count], every[self._count :]
        right = list(left)
        if not agreeing:
            share = self._chance.choice((0.02, 0.1, 0.3, 1.0))
            right = [self._changed(row) if self._chance.random() < share else row for row in right]
            self._swap(right)
            right = right[self._chance.randrange(3) :] + [self._fitting(row) for row in more]
            if self._chance.random() < 0.3:
                # Rows that lost their keys to each other, or to a key nearby.
                right = self._moved(right)
        if all(self._repeats) and self._chance.random() < 0.6:
            self._repeat(left, 0)
            if agreeing:
                right = list(left)
            else:
                self._repeat(right, 1)
        self._chance.shuffle(right)
        return left, right

    def _palette(self, column: Column, is_key: bool) -> list[str | None]:
        """Values that both tables can hold."""
        wanted = 2 * self._count + 4 if is_key else self._chance.choice((3, 12, 40))
        found: list[str | None] = []
        dense = column.family == "integer" and is_key and self._chance.random() < 0.8
        if dense:
            start = self._chance.choice((0, 1, -5, 100))
            step = self._chance.choice((1, 1, 1, 3, 1000))
            found = [str(start + step * at) for at in range(wanted)]
        for _ in range(4 * wanted if not dense or self._chance.random() < 0.2 else 0):
            text = drawn(column.family, self._chance)
            if self._mistakes and column.family not in ("text", "enum") and self._chance.random() < 0.1:
                text = mistake(column.family, self._chance)
            found.append(text)
            if len(found) > wanted:
                break
        longest = 60 if is_key else 1 << 20
        found = [text for text in found if len(text or "") <= longest and self._fits(column, text, 0)]
        found = [text for text in found if self._fits(column, text, 1)]
        if not found or (self._nullable(is_key) and self._chance.random() < 0.6):
            found += [None] * (1 + len(found) // self._chance.choice((1, 5, 20)))
        return found

    def _nullable(self, is_key: bool) -> bool:
        return not is_key or all(self._nulls)

    def _fits(self, column: Column, text: str | None, side: int) -> bool:
        return text is None or column.types[side].fits(text)

    def _distinct(self, count: int) -> list[Row]:
        """Rows of which no two share a key."""
        found: dict[Row, Row] = {}
        for _ in range(2 * count):
            row = tuple(self._chance.choice(palette) for palette in self._palettes)
            key = row[: self._keys]
            if None in key and not all(self._nulls):
                continue
            found.setdefault(key, row)
            if len(found) == count:
                break
        return list(found.values())

    def _changed(self, row: Row) -> Row:
        """With one or two fields that the right table holds otherwise."""
        values = list(row)
        fields = range(self._keys, len(row))
        for at in self._chance.sample(fields, min(len(fields), self._chance.choice((1, 1, 2)))):
            values[at] = self._moved_value(values[at], at)
        return tuple(values)

    def _moved_value(self, text: str | None, at: int) -> str | None:
        column = self._columns[at]
        for _ in range(5):
            other = near(text, column.family, self._chance)
            if self._fits(column, other, 1) and (other is None or len(other) < 8000):
                return other
        return self._chance.choice(self._palettes[at])

    def _fitting(self, row: Row) -> Row:
        return row

    def _swap(self, rows: list[Row]) -> None:
        """Two rows exchange a value: sums that are linear in the values do not see it."""
        if len(rows) > 1 and len(self._columns) > self._keys and self._chance.random() < 0.5:
            at = self._chance.randrange(self._keys, len(self._columns))
            one, two = self._chance.sample(range(len(rows)), 2)
            a, b = list(rows[one]), list(rows[two])
            a[at], b[at] = b[at], a[at]
            rows[one], rows[two] = tuple(a), tuple(b)

    def _moved(self, rows: list[Row]) -> list[Row]:
        """A few rows get a key nearby that no other has."""
        known = {row[: self._keys] for row in rows}
        answer = []
        for row in rows:
            if self._chance.random() < 0.1:
                at = self._chance.randrange(self._keys)
                text = self._moved_value(row[at], at)
                other = (*row[:at], text, *row[at + 1 :])
                key = other[: self._keys]
                unfit = (None in key and not self._nulls[1]) or key in known or len(text or "") > 60
                if not unfit:
                    known.discard(row[: self._keys])
                    known.add(key)
                    row = other  # noqa: PLW2901
            answer.append(row)
        return answer

    def _repeat(self, rows: list[Row], side: int) -> None:
        """Some keys once more, or twice, with the same values or with others."""
        if rows:
            for _ in range(self._chance.randrange(4)):
                row = self._chance.choice(rows)
                if self._chance.random() < 0.5:
                    fields = tuple(self._chance.choice(palette) for palette in self._palettes[self._keys :])
                    row = (*row[: self._keys], *fields)
                rows.append(row)
