"""One pair of tables: made, compared by trueup, and what it says held against the right answer."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final
from unittest.mock import patch

from trueup.compare import hashed, keyhash, rows, sampled, segments, stage, suspects, workspace
from trueup.compare.choose import compare
from trueup.compare.plan import Plan, plan
from trueup.compare.result import Comparison, Difference, Values
from trueup.errors import SchemaError
from trueup.model.digest import digest_of
from trueup.model.kinds import Column as Described
from trueup.model.kinds import common_kind
from trueup.ports import Description, Side
from trueup.sides.sql.dialects import sqlite
from trueup.sides.sql.hashing import mysql
from trueup.testing.pairs.drawing import Column, Pair
from trueup.testing.pairs.engines.engine import Engine, Row, Table
from trueup.testing.pairs.oracle import Answer, Told, answer
from trueup.testing.pairs.spelled import is_mistake
from trueup.testing.pairs.values import KINDS

# Bounds of the comparison, so small that a few rows fill many ranges, chunks and pages.
_NARROW: Final[tuple[tuple[Any, str, int], ...]] = (
    (keyhash, "ROWS_WANTED", 4), (keyhash, "ROWS_MAX", 6), (segments, "_ROWS_WANTED", 2), (hashed, "_SMALL_ROWS", 0),
    (sampled, "_RANGE_ROWS", 2), (hashed, "_SKETCH_RECORDS", 200), (stage, "CHUNK_ROWS", 16), (rows, "BATCH_ROWS", 16),
    (workspace, "BATCH_ROWS", 24),
    (suspects, "_KEYS_AT_ONCE", 16), (mysql, "_PAGE_ROWS", 5),
    (sqlite, "_FETCHED_ROWS", 3), (sqlite, "_BATCH_ROWS", 9),
)  # fmt: skip


@dataclass(frozen=True)
class Trial:
    """How a comparison went. wrong: what it said wrongly, or nothing. strategy: which one answered."""

    wrong: str
    strategy: str = ""


def tried(pair: Pair, engines: Mapping[str, Engine]) -> Trial:
    """Makes both tables, compares them, and drops them. What is raised on the way is wrong too."""
    try:
        return _tried(pair, engines)
    except Exception as failure:
        return Trial(f"{type(failure).__name__}: {failure}")


def _tried(pair: Pair, engines: Mapping[str, Engine]) -> Trial:
    chance = random.Random(f"{pair.seed}:{pair.number}:spellings")
    with ExitStack() as stack:
        sides = []
        for at, name in enumerate(pair.engines):
            stack.callback(engines[name].clear)
            sides.append(engines[name].make(_table(pair, at), chance))
            stack.callback(sides[-1].close)
        planned = _planned(pair, sides)
        if pair.narrow:
            stack.enter_context(_narrowed())
        found = stack.enter_context(compare(sides[0], sides[1], planned, strategy=pair.strategy))
        return Trial(_wrong(pair, planned, found), found.strategy)


def _table(pair: Pair, side: int) -> Table:
    columns = {each.names[side]: each.types[side] for each in pair.columns}
    return Table(
        columns, tuple(columns)[: pair.keys], pair.rows[side], pair.constraints[side], pair.zones[side],
        pair.lone[side], pair.strict, pair.alike,
    )  # fmt: skip


@contextmanager
def _narrowed() -> Iterator[None]:
    with ExitStack() as stack:
        for module, name, bound in _NARROW:
            stack.enter_context(patch.object(module, name, bound))
        yield


def _planned(pair: Pair, sides: Sequence[Side]) -> Plan:
    left, right = (side.describe() for side in sides)
    kinds = {each.names[0]: each.family for each in pair.columns if _must_be_declared(each, left, right, pair.declared)}
    return plan(
        left, right, key=[each.names[0] for each in pair.columns[: pair.keys]],
        key_right=[each.names[1] for each in pair.columns[: pair.keys]],
        rename={each.names[0]: each.names[1] for each in pair.columns[pair.keys :] if each.names[0] != each.names[1]},
        kinds=kinds,
    )  # fmt: skip


def _must_be_declared(column: Column, left: Description, right: Description, asked: bool) -> bool:
    a, b = left.column(column.names[0]), right.column(column.names[1])
    assert isinstance(a, Described)
    assert isinstance(b, Described)
    wanted = KINDS[column.family]
    try:
        kind, _ = common_kind(a, b)
    except SchemaError:
        return True
    textual = {kind.name, wanted.name} <= {"text", "enum"}
    same = textual or (kind.name, kind.aware, kind.bits, kind.item) == (
        wanted.name, wanted.aware, wanted.bits, wanted.item,
    )  # fmt: skip
    return asked or not same


# What is said, and what should be.


def _seen(pair: Pair, side: int) -> list[Row]:
    """The rows as the side should say them."""
    if pair.strict or pair.engines[side] != "mariadb":
        return list(pair.rows[side])
    zeros = [at for at, each in enumerate(pair.columns) if each.types[side].zero_dates]
    answer = []
    for row in pair.rows[side]:
        values = list(row)
        for at in zeros:
            text = values[at]
            if text is not None and is_mistake(text, pair.columns[at].family):
                values[at] = None
        answer.append(tuple(values))
    return answer


def _wrong(pair: Pair, planned: Plan, found: Comparison) -> str:
    right = answer(_seen(pair, 0), _seen(pair, 1), pair.keys)
    problems = [*_counts(pair, found, right), *_differences(pair, found, right), *_notes(pair, found)]
    if found.strategy == "rows":
        problems += _agreements(pair, planned, found, right)
    return "; ".join(problems[:4])


def _counts(pair: Pair, found: Comparison, right: Answer) -> Iterator[str]:
    for name, count in right.counts.items():
        if getattr(found.counts, name) != count:
            yield f"{name} is {getattr(found.counts, name)}, not {count}"
    fields = {pair.columns[at].names[0]: count for at, count in right.fields.items()}
    said = {name: count for name, count in found.differing_fields.items() if count}
    if said != fields:
        yield f"fields differ {said}, not {fields}"


def _differences(pair: Pair, found: Comparison, right: Answer) -> Iterator[str]:
    said = list(found.differences())
    if len({each.key for each in said}) != len(said):
        yield "a key is told twice"
    for each in said:
        told = right.told.get(each.key)
        if told is None:
            yield f"{each.key} is {each.kind}, but agrees"
        elif problem := _unlike(pair, each, told):
            yield f"{each.key} {problem}"
    missed = right.told.keys() - {each.key for each in said}
    yield from (f"{key} is not told, but {right.told[key].kind}" for key in sorted(missed))


def _unlike(pair: Pair, said: Difference, told: Told) -> str:
    if said.kind != told.kind:
        return f"is {said.kind}, not {told.kind}"
    if (said.left_copies, said.right_copies) != (told.left_copies, told.right_copies):
        return f"has {said.left_copies} and {said.right_copies} copies, not {told.left_copies} and {told.right_copies}"
    if said.kind == "differ" and set(said.fields) != {pair.columns[at].names[0] for at in told.fields}:
        return f"differs in {said.fields}"
    one = _only(said.left), _only(said.right)
    values = (said.left_only, said.right_only) if said.kind == "duplicate" else one
    for shown, rows_ in zip(values, (told.left, told.right), strict=True):
        if Counter(_row(pair, each) for each in shown) != Counter(rows_):
            return f"shows {[_row(pair, each) for each in shown]}, not {list(rows_)}"
    return ""


def _only(values: Values | None) -> tuple[Values, ...]:
    return () if values is None else (values,)


def _row(pair: Pair, values: Values) -> Row:
    return tuple(values[each.names[0]] for each in pair.columns)


def _agreements(pair: Pair, planned: Plan, found: Comparison, right: Answer) -> Iterator[str]:
    names = [each.names[0] for each in pair.columns]
    places = [names.index(field.name) for field in planned.left.fields]
    digests = {key: digest_of(row[at] for at in places) for key, row in right.agreeing.items()}
    said = {each.key: (each.left, each.right) for batch in found.agreements() for each in batch}
    if said != {key: (digest, digest) for key, digest in digests.items()}:
        odd = next(key for key in {**said, **digests} if said.get(key) != (digests.get(key), digests.get(key)))
        yield f"agreements are told wrongly, such as {odd}"


def _notes(pair: Pair, found: Comparison) -> Iterator[str]:
    lone = tuple(() if each is None else (each,) for each in pair.lone)
    if (found.notes.only_left, found.notes.only_right) != lone:
        yield f"lone columns are {found.notes.only_left} and {found.notes.only_right}, not {lone}"
