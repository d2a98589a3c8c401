"""The hash of a record's fields tells records apart, in the ways in which records differ in practice."""

from __future__ import annotations

import itertools
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from trueup.compare.stage import hash_sql

LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def distinct(**columns: pa.Array[Any]) -> tuple[int, int]:
    """How many records there are, and how many hashes."""
    chunk = pa.table(columns)
    with duckdb.connect() as database:
        database.register("chunk", chunk)
        row = database.execute(f"SELECT count(*), count(DISTINCT {hash_sql(chunk.schema)}) FROM chunk").fetchone()
    assert row is not None
    return row[0], row[1]


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("length", [9, 12, 16, 23, 24, 40])
def test_two_changed_letters_anywhere_in_a_text_give_another_hash(length: int, binary: bool) -> None:
    """DuckDB's own hash gives 256 hashes for thousands of such texts: a block's last letter hides in the next."""
    some = LETTERS[::5]
    places = list(itertools.combinations(range(length), 2))
    texts = [
        "-" * first + a + "-" * (second - first - 1) + b + "-" * (length - second - 1)
        for first, second in places
        for a, b in itertools.product(some, repeat=2)
    ]
    place = [at for at in range(len(places)) for _ in range(len(some) ** 2)]
    column = pa.array([text.encode() for text in texts]) if binary else pa.array(texts)
    chunk = pa.table({"f0": column})
    with duckdb.connect() as database:
        database.register("chunk", chunk.append_column("place", pa.array(place)))
        collided = database.execute(
            f"SELECT place FROM chunk GROUP BY place HAVING count(*) > count(DISTINCT {hash_sql(chunk.schema)})"
        ).fetchall()
    assert [places[at] for (at,) in collided] == []


def test_values_that_change_places_null_and_nothing_give_other_hashes() -> None:
    texts = [None, "", "a", "b", "ab", "~", "~~~~", "0"]
    pairs = list(itertools.product(texts, repeat=2))
    count, hashes = distinct(f0=pa.array([a for a, _ in pairs]), f1=pa.array([b for _, b in pairs]))
    assert hashes == count
    numbers = list(itertools.product([None, *range(-20, 20)], repeat=2))
    count, hashes = distinct(
        f0=pa.array([a for a, _ in numbers], pa.int64()), f1=pa.array([b for _, b in numbers], pa.int64())
    )
    assert hashes == count


def test_a_wide_decimal_whose_halves_are_alike_is_not_zero() -> None:
    """DuckDB's own hash takes 0 and the number just below for one: their two halves cancel out."""
    wide = [Decimal(number) / 100 for number in (0, -1, 1, -(2**64), 2**64, -(2**64) - 1, 2**65 + 2)]
    assert distinct(f0=pa.array(wide, pa.decimal128(38, 2))) == (7, 7)
    assert distinct(f0=pa.array(wide[:3], pa.decimal128(18, 2))) == (3, 3)


def test_floats_that_are_one_value_have_one_hash() -> None:
    nan = float("nan")
    assert distinct(f0=pa.array([0.0, -0.0]))[1] == 1
    assert distinct(f0=pa.array([nan, -nan]))[1] == 1
    assert distinct(f0=pa.array([0.0, -0.0], pa.float32()))[1] == 1
