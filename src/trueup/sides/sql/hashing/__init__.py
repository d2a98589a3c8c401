"""Hashing records inside a database: one small file for each engine, which says what it can and what it can't do.

Three kinds of function. The *native* one is what the engine does fastest; it is compared only between two databases
that prove to compute the same. The *canonical* one is the same everywhere: the first digits of `digest_of` over the
canonical texts of key and fields. SQL for it gives the reference's texts byte for byte, or null for a record that
holds a value for which it would not; such a record is read. The *plain* one is between two live databases of
different kinds, and hashes what both of them spell alike at least cost.

Under a native or a plain function, records may only hash alike where their canonical values are equal. So it takes in
values whose equality is canonical equality, or the text that the reader would read; and what bears on how a text is
understood (kinds, zone, zero dates) is part of its name. What is equal but spelled differently merely fails to match,
and is then read.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import sqlalchemy as sa

from trueup.model.digest import CHECK_MODULUS
from trueup.model.record import Field
from trueup.sides.sql.inspect import Known
from trueup.sides.sql.read import Selection
from trueup.sides.sql.spelling import TEXTUAL

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Function:
    """A hash function.

    row: SQL for the hash of a row, a 64-bit integer. unless: a condition under which a row has no hash. summed:
    format of the sum over hashes. xored: of their XOR, which must not be linear in a value. abridged: whether most
    bits may stand for all beside a key; there is no `unless`.
    """

    name: str
    row: str
    unless: str = ""
    summed: str = "sum({})"
    xored: str = "bit_xor({})"
    abridged: bool = False

    @property
    def hash(self) -> str:
        """SQL for the hash, or null."""
        return f"CASE WHEN {self.unless} THEN NULL ELSE {self.row} END" if self.unless else self.row

    @property
    def packed(self) -> Packed:
        """The hash, for `pack`."""
        return Packed(self.hash, "integer", nullable=bool(self.unless))

    @property
    def sums(self) -> str:
        """SQL for n, count of rows; w, of those without a hash; h, hash sum."""
        without = f"count(CASE WHEN {self.unless} THEN 1 END)" if self.unless else "0"
        return f"count(*) AS n, {without} AS w, {self.summed.format(self.hash)} AS h"


@dataclass(frozen=True, slots=True)
class Text:
    """SQL for the canonical text of a column. unless: a condition under which it would be another text."""

    sql: str
    unless: str = ""

    @property
    def certain(self) -> str:
        """SQL for the text, or null where it would be another."""
        return f"CASE WHEN {self.unless} THEN NULL ELSE {self.sql} END" if self.unless else self.sql


@dataclass(frozen=True, slots=True)
class Packed:
    """One column of rows that the server packs: a 64-bit integer, text, or where a row lies."""

    sql: str
    shape: Literal["integer", "text", "place"]
    nullable: bool


# Runs a statement with these values, on whatever connection is free; its first row.
Ask: TypeAlias = Callable[[str, Sequence[Any]], Any]
# A column and how it is asked for.
Covered: TypeAlias = tuple[Field, Known]


class Hasher(ABC):
    """How one engine hashes rows, and hands over many hashes at once."""

    # Whether the engine runs in this process, so that no network is between.
    here: ClassVar[bool] = False
    # Whether hashing a record takes as long as reading it.
    dear: ClassVar[bool] = False
    # Whether it can XOR hashes by groups, and has a statement for cells.
    sketches: bool = False
    # Whether many rows arrive sooner in packs than by a scan.
    packs_many: ClassVar[bool] = False
    # Whether several connections can see one instant.
    shares_instant: ClassVar[bool] = False
    # Format of a whole number in 64 bits, so that differences do not overflow.
    wide: ClassVar[str] = "{}"

    @abstractmethod
    def begin(self, connection: sa.Connection) -> str:
        """Opens a transaction that sees one instant; answers by which name others may see it too, "" for none."""

    def join(self, connection: sa.Connection, instant: str) -> None:
        """Opens a transaction that sees the instant of another."""
        raise NotImplementedError

    @abstractmethod
    def functions(self, connection: sa.Connection, of: Selection) -> list[Function]:
        """The functions that fit this selection, fastest first."""

    @abstractmethod
    def text(self, of: Selection, field: Field, known: Known) -> Text | None:
        """How the canonical text of a column is computed; None where only Python can."""

    def spelled(self, field: Field, known: Known, name: str) -> Text | None:
        """What stands in a plain line for a column that has a canonical text; None for that text itself.

        name: the column, in SQL. The same for equal values in every engine, and never for others.
        """
        return None

    def digest(self, connection: sa.Connection, of: Selection, columns: Sequence[Covered]) -> Text | None:
        """How `digest_of` is computed over the canonical texts of at least one column; None where only Python can."""
        return None

    @abstractmethod
    def pack(
        self, connection: sa.Connection, columns: Sequence[Packed], rest: str, values: Sequence[Any], order: str = ""
    ) -> list[pa.Array[Any]]:
        """All rows of `SELECT columns rest order`, one array for each column; the server packs them into one row."""

    def packs(
        self, connection: sa.Connection, columns: Sequence[Packed], rest: str, values: Sequence[Any]
    ) -> Iterator[list[pa.Array[Any]]]:
        """The same, some ten thousand rows at a time, for an engine that packs many."""
        raise NotImplementedError

    def pages(
        self, connection: sa.Connection, of: Selection, ask: Ask, *, places: bool = False
    ) -> Iterator[tuple[str, list[Any]]] | None:
        """Conditions that part all rows by where they lie, some ten thousand each; None where that can't be said.

        ask: runs a statement between two pages. places: also None where a place may be that of several rows.
        """
        return None

    def place(self) -> Packed:
        """Where a row lies, for an engine that has pages by places."""
        raise NotImplementedError

    def at(self, places: pa.Array[Any]) -> Iterator[tuple[str, list[Any]]]:
        """Conditions that together select the rows in these places."""
        raise NotImplementedError

    def among(self, of: Selection, keys: pa.Table) -> Iterator[tuple[str, list[Any]]] | None:
        """Conditions that together select at least the rows with these keys; None where keys must be looked for."""
        return None

    def seeks(self, of: Selection, keys: int, records: int) -> bool:
        """Whether so many rows are found by key sooner than all are read."""
        return True

    def segments(self, of: Selection, segment: str, function: Function, condition: str = "") -> str:
        """A statement for each segment's number s, rows n, rows without a hash w, and hash sum h."""
        return f"SELECT {segment} AS s, {function.sums} {of.from_where(condition)} GROUP BY 1"

    def cells(self, key: str, function: Function, sizes: Sequence[int], rest: str) -> str | None:
        """A statement for tables of cells, in one scan: table, cell, rows, hashes, XOR of keys, hashes and checks."""
        return None

    @abstractmethod
    def cancel(self, connection: sa.Connection) -> None:
        """Ends, from another thread, what the connection is doing."""


def whole_number_key(of: Selection) -> str | None:
    """The key in SQL, where it is one column of whole numbers without null, and an index leads to it."""
    if len(of.key) != 1:
        return None
    field, known, _ = of.key[0]
    stored = known.stored
    led = of.inspected.table.key[:1] == (stored.name,) or any(
        index.columns[0] == stored.name for index in of.inspected.table.indexes
    )
    whole = stored.kind.name == known.kind.name == field.kind.name == "integer" and field.native and stored.native
    name = of.dialect.quoted(stored.name)
    # Bits and padded numbers are not delivered as they are.
    plain = of.dialect.reading(stored, field.kind).sql == name
    return name if led and whole and plain and not stored.nullable else None


def unique(of: Selection, *, hashed: bool = False) -> bool:
    """Whether no two rows share a key, null keys apart: the database says so, and means by equal what we mean.

    hashed: of rows that have a hash, where those that are spelled in their own way have none.
    """
    plain = all(
        (
            known.kind == known.stored.kind
            and (field.kind.name, field.kind.aware) == (known.kind.name, known.kind.aware)
            and known.stored.base not in of.dialect.zero_dates
        )
        or (hashed and as_written(of, field, known, "") is not None)
        for field, known, _ in of.key
    )
    return plain and ordered(of) is not None


def ordered(of: Selection) -> tuple[str, ...] | None:
    """Columns of an index in which no two rows of different keys are equal, nulls apart; None where there is none."""
    names = {known.stored.name for _, known, _ in of.key}
    indexes = (index.columns for index in of.inspected.table.indexes if index.unique)
    return next((columns for columns in indexes if names.issuperset(columns)), None)


def first_and_last(of: Selection, function: Function, rows: int) -> str | None:
    """FROM the hashes h of the first and the last so many rows in the order of such an index; None for none."""
    index = ordered(of)
    if index is None:
        return None
    some, rest = [], of.from_where()
    for way in ("ASC", "DESC"):
        order = ", ".join(f"{of.dialect.quoted(name)} {way}" for name in index)
        end = f"SELECT {function.hash} AS h {rest} ORDER BY {order} LIMIT {rows}"
        some.append(f"SELECT h FROM ({end}) AS {way.lower()}_end")
    return f"FROM ({' UNION ALL '.join(some)}) AS ends"


def part_keys(of: Selection) -> str:
    """SQL for how many rows have a null in their key."""
    names = [of.dialect.quoted(known.stored.name) for _, known, _ in of.key if known.stored.nullable]
    return f"count(CASE WHEN {' OR '.join(f'{name} IS NULL' for name in names)} THEN 1 END)" if names else "0"


def hashed_columns(of: Selection) -> list[Covered]:
    """Key and fields: what a hash covers."""
    return [(field, of.inspected.column(field.source)) for field in (*of.projection.key, *of.projection.fields)]


def gaps(of: Selection, hasher: Hasher) -> list[str]:
    """Columns that keep the engine from hashing rows canonically, with their types."""
    return [
        f"{field.source} ({known.stored.declared or known.stored.kind})"
        for field, known in hashed_columns(of)
        if hasher.text(of, field, known) is None
    ]


def named(how: str, of: Selection, parts: Sequence[Any]) -> str:
    """The name of a native function."""
    return json.dumps([how, of.zero_null, *parts])


def read_as(field: Field, known: Known) -> list[str]:
    """All that decides which canonical value a raw one becomes."""
    return [known.stored.base, str(known.stored.kind), str(known.kind), str(field.kind), str(known.zone)]


def alike(field: Field, known: Known) -> bool:
    """Whether the column is asked for as what it is."""
    textual = field.kind.name in TEXTUAL and known.kind.name in TEXTUAL
    asked, own = field.kind, known.kind
    return own == known.stored.kind and (textual or (asked.name, asked.aware) == (own.name, own.aware))


def as_written(of: Selection, field: Field, known: Known, text: str) -> Text | None:
    """Texts that are asked for as another kind: whoever wrote a canonical one wrote what we would; others have no hash.

    text: the column's text, in SQL.
    """
    if known.kind not in (known.stored.kind, field.kind):
        return None
    told = of.dialect.canonically(known.stored, field.kind)
    return None if told is None else Text(text, f"NOT ({told})")


def framed(texts: Sequence[Text | None], frame: str) -> tuple[list[str], str] | None:
    """What `digest_of` hashes, column by column, and the condition under which it would be wrong; None for neither.

    frame: format of length, colon and text, null for null.
    """
    found = [text for text in texts if text is not None]
    if len(found) < len(texts):
        return None
    unless = " OR ".join(dict.fromkeys(f"({text.unless})" for text in found if text.unless))
    return [f"COALESCE({frame.format(text.sql)}, '~')" for text in found], unless


def by_grouping_sets(rows: str, sizes: Sequence[int], *, mod: str = "%", fence: str = "") -> str:
    """The sums of every cell of a sketch in one statement. rows: selects key k and hash h.

    mod: how the driver is given a remainder. fence: what keeps the planner from computing a hash more than once.
    """
    # Positive: a remainder has the sign of what is divided.
    lower = f"(h & {2**62 - 1})"
    names = [f"b{at}" for at in range(len(sizes))]
    cells = ", ".join(f"{lower} {mod} {size} AS {name}" for name, size in zip(names, sizes, strict=True))
    which = " ".join(f"WHEN grouping({name}) = 0 THEN {at}" for at, name in enumerate(names))
    sums = "count(*), count(h), bit_xor(k), bit_xor(h), bit_xor(q)"
    placed = f"SELECT k, h, {lower} {mod} {CHECK_MODULUS} AS q, {cells} FROM ({rows}{fence}) AS p{fence}"
    sets = ", ".join(f"({name})" for name in names)
    return (
        f"SELECT CASE {which} END, coalesce({', '.join(names)}), {sums} "
        f"FROM ({placed}) AS q GROUP BY GROUPING SETS ({sets})"
    )


def packed_key(of: Selection, hasher: Hasher) -> list[Packed] | None:
    """The key's columns as they are delivered, for `pack`; None where a column has another form."""
    return packed([(field, known) for field, known, _ in of.key], of, hasher)


def packed_as_read(of: Selection) -> list[Packed] | None:
    """The key's columns as a scan reads them, for `pack`; None where one comes in a shape that is not packed."""
    found: list[Packed] = []
    for _, known, reading in of.key:
        if reading.shape not in ("integer", "text"):
            return None
        found.append(Packed(reading.sql, "integer" if reading.shape == "integer" else "text", known.stored.nullable))
    return found


def packed(columns: Sequence[Covered], of: Selection, hasher: Hasher) -> list[Packed] | None:
    """Columns as they are delivered, for `pack`; None where one has another form."""
    found = []
    for field, known in columns:
        nullable = known.stored.nullable
        if field.native and field.kind.name == "integer" and known.stored.native and alike(field, known):
            found.append(Packed(of.dialect.quoted(known.stored.name), "integer", nullable))
            continue
        text = hasher.text(of, field, known)
        if text is None or text.unless or (field.native and field.kind.name not in TEXTUAL):
            return None
        found.append(Packed(text.sql, "text", nullable))
    return found
