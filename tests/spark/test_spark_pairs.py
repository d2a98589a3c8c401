"""Generated pairs of tables: Spark gives the answer that strategy rows gives, records of drift included."""

from __future__ import annotations

import datetime as dt
import decimal
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trueup.spark
from trueup.compare.choose import compare
from trueup.compare.plan import plan
from trueup.compare.result import Comparison
from trueup.errors import IncompleteScan, SchemaError
from trueup.model.record import Rule
from trueup.sides.files import File
from trueup.sides.spark import Spark

D = decimal.Decimal
_TEXTS = ("", " a", "A", "é", "e\u0301", "STRASSE", "straße", "1:", "~", "?x", "!x", "7", "\x00", "😀", "'")
_DAY = dt.date(2024, 2, 28)
# Name, Arrow type on the left, on the right, and values that fit both.
_FIELDS: list[tuple[str, pa.DataType, pa.DataType, list[Any]]] = [
    ("whole", pa.int32(), pa.int64(), [0, 1, -1, 2**31 - 1]),
    ("flag", pa.bool_(), pa.bool_(), [True, False]),
    ("a.b", pa.float64(), pa.float64(), [0.0, -0.0, float("nan"), float("inf"), 1.5, 0.1, 1e-9, 1e300]),
    ("single", pa.float32(), pa.float64(), [0.5, 0.25, -1.0, 1e10]),
    ("money", pa.decimal128(10, 2), pa.decimal128(20, 5), [D("0"), D("1.50"), D("-99999999.99")]),
    ("price", pa.decimal128(10, 2), pa.float64(), [D("0"), D("1.10"), D("-7.25"), D("12345678.90")]),
    ("text`x", pa.string(), pa.string(), list(_TEXTS)),
    ("digits", pa.string(), pa.int64(), [0, 7, -12]),
    ("bytes", pa.binary(), pa.binary(), [b"", b"\x00\xff", b"a"]),
    ("day", pa.date32(), pa.date32(), [_DAY, dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    ("wall", pa.timestamp("us"), pa.timestamp("us"), ["2024-03-31T02:30:00", "1969-12-31T23:59:59.999999"]),
    ("at", pa.timestamp("us", "UTC"), pa.timestamp("us", "UTC"), ["2024-10-27T00:30:00.5", "0001-01-01T00:00:00"]),
    ("items", pa.list_(pa.int32()), pa.list_(pa.int32()), [[], [1, None], [None, 1]]),
    ("deep", pa.struct([("p", pa.float64())]), pa.struct([("p", pa.float64())]), [{"p": 1.5}, {"p": None}]),
]
_KEYS: list[list[tuple[str, pa.DataType, pa.DataType, list[Any]]]] = [
    [("id", pa.int32(), pa.int64(), list(range(40)))],
    [("id", pa.string(), pa.string(), [*_TEXTS, *(f"k{i}" for i in range(25))])],
    [("order by", pa.int64(), pa.int64(), list(range(8))), ("no.", pa.string(), pa.string(), list(_TEXTS[:6]))],
    [("id", pa.decimal128(5, 1), pa.decimal128(8, 3), [D(i) / 2 for i in range(30)])],
    [("id", pa.decimal128(9, 0), pa.int32(), [D(i) for i in range(30)])],
    [("d", pa.date32(), pa.date32(), [_DAY + dt.timedelta(i) for i in range(30)])],
    [("t", pa.timestamp("us", "UTC"), pa.timestamp("us", "UTC"), [f"2024-01-{i + 1:02}T00:00:00" for i in range(28)])],
    [("f", pa.float64(), pa.float64(), [float(i) / 3 for i in range(30)])],
    [("b", pa.binary(), pa.binary(), [bytes([i]) for i in range(30)]), ("x", pa.bool_(), pa.bool_(), [True, False])],
]


def _array(values: list[Any], type_: pa.DataType) -> pa.Array[Any]:
    if pa.types.is_timestamp(type_):
        return pa.array(values, pa.string()).cast(pa.timestamp("us")).cast(type_)
    if pa.types.is_string(type_) or pa.types.is_float64(type_) or pa.types.is_integer(type_):
        plain = str if pa.types.is_string(type_) else float if pa.types.is_float64(type_) else int
        return pa.array([None if each is None else plain(each) for each in values], type_)
    return pa.array(values, type_)


def _pair(chance: random.Random) -> tuple[pa.Table, pa.Table, list[str]]:
    """Two tables with records in common, changed, missing, extra and repeated, and with null keys."""
    key = chance.choice(_KEYS)
    fields = chance.sample(_FIELDS, chance.randint(0, len(_FIELDS)))
    columns = [*key, *fields]

    def value(choices: list[Any]) -> Any:
        return None if chance.random() < 0.1 else chance.choice(choices)

    left = [[value(choices) for *_, choices in columns] for _ in range(chance.randint(0, 60))]
    right = [list(row) for row in left if chance.random() < 0.9]
    for row in right:
        if fields and chance.random() < 0.2:
            at = chance.randrange(len(key), len(columns))
            row[at] = value(columns[at][3])
    right += [[value(choices) for *_, choices in columns] for _ in range(chance.randint(0, 5))]
    right += chance.sample(right, min(len(right), chance.randint(0, 3)))
    chance.shuffle(right)

    def table(rows: list[list[Any]], side: int) -> pa.Table:
        turned = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in columns]
        arrays = [_array(values, each[side]) for values, each in zip(turned, columns, strict=True)]
        return pa.table(arrays, names=[each[0] for each in columns])

    return table(left, 1), table(right, 2), [each[0] for each in key]


def _told(found: Comparison) -> tuple[Any, ...]:
    with found:
        differences = [
            (each.kind, each.key, each.left, each.right, each.fields, each.left_copies, each.right_copies,
             *(sorted(map(str, only)) for only in (each.left_only, each.right_only)))
            if each.kind != "duplicate"
            # Which copy is shown first depends on the order of reading.
            else (each.kind, each.key, each.left_copies, each.right_copies,
                  *(sorted(map(str, only)) for only in (each.left_only, each.right_only)))
            for each in found.differences()
        ]  # fmt: skip
        return found.counts, dict(found.differing_fields), differences


@pytest.mark.parametrize("seed", range(10))
def test_spark_answers_as_rows_does(spark: Any, tmp_path: Path, seed: int) -> None:
    left, right, key = _pair(random.Random(seed))
    pq.write_table(left, tmp_path / "left.parquet")
    pq.write_table(right, tmp_path / "right.parquet")
    files = [File(tmp_path / name) for name in ("left.parquet", "right.parquet")]
    tables = [Spark(str(tmp_path / name)) for name in ("left.parquet", "right.parquet")]
    kinds = {"price": "decimal"} if "price" in left.column_names else {}
    rules = {}
    if seed % 2:
        candidates = {
            "a.b": Rule(absolute=D("0.5")), "money": Rule(places=0), "price": Rule(relative=D("0.2")),
            "text`x": Rule(trim=True, casefold=True), "wall": Rule(seconds=D(10**12)), "at": Rule(seconds=D("0.5")),
            "digits": Rule(absolute=D(7)), "whole": Rule(fill=True),
        }  # fmt: skip
        rules = {name: rule for name, rule in candidates.items() if name in left.column_names}
    answers = []
    for (a, b), strategy in ((files, "rows"), (tables, None), (tables, "rows")):
        asked = plan(a.describe(), b.describe(), key=key, rules=rules, kinds=kinds)
        found = compare(a, b, asked, strategy=strategy)
        assert found.strategy == (strategy or "match")
        answers.append(_told(found))
    assert answers[1] == answers[0]
    assert answers[2] == answers[0]


def test_only_records_in_doubt_come_here(spark: Any) -> None:
    left = spark.range(5_000).selectExpr("id", "id % 7 AS n", "cast(id / 4 AS double) AS x")
    right = left.where("id != 17").selectExpr("id", "CASE WHEN id = 5 THEN 9 ELSE n END AS n", "x + 1e-9 AS x")
    with trueup.spark.diff(left, right, key="id", rules={"x": Rule(absolute=D("0.001"))}) as found:
        assert (found.counts.left, found.counts.right, found.counts.same) == (5_000, 4_999, 4_998)
        assert [(each.kind, each.key, each.fields) for each in found.differences()] == [
            ("differ", '["5"]', ("n",)),
            ("missing", '["17"]', ()),
        ]
        assert [each.rows for each in found.read] == [2, 1]


def test_more_records_in_doubt_than_are_fetched_at_once(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trueup.sides.spark.collecting._ROWS_AT_ONCE", 100)
    left = spark.range(1_000)
    with trueup.spark.diff(left, left.where("id >= 250"), key="id") as found:
        assert found.counts.missing == 250
        assert [each.key for each in found.differences()] == [f'["{number}"]' for number in range(250)]


def test_types_that_files_can_t_hold(spark: Any) -> None:
    left = spark.sql(
        """SELECT 1 AS id, interval '1-2' year to month AS m, interval '26' hour AS h, time'12:30:00' AS t,
                  map('a', 1, 'b', 2) AS p, null AS v"""
    )
    right = spark.sql(
        """SELECT 1 AS id, interval '15' month AS m, interval '1 02:00:00' day to second AS h, time'12:30:00.5' AS t,
                  map('b', 2, 'a', 1) AS p, 'x' AS v"""
    )
    with trueup.spark.diff(left, right, key="id") as found:
        [difference] = found.differences()
    assert difference.fields == ("m", "t", "v")
    assert difference.left == {
        "id": "1", "m": "P14M", "h": "PT93600S", "t": "12:30:00", "p": '{"a":1,"b":2}', "v": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("left", "right", "names"),
    [
        ("'7' AS id, 1 AS x", "7 AS id, 1 AS x", "id: Spark can't match string with int"),
        ("1 AS id, array(1) AS x", "1 AS id, '[1]' AS x", "x: Spark can't compare array<int> with string"),
        ("1 AS id, parse_json('1') AS x", "1 AS id, parse_json('1') AS x", "x: Spark can't compare variant"),
        ("array(1) AS id", "array(1) AS id", "id: Spark can't match array<int>"),
    ],
)
def test_types_that_spark_can_t_tell_apart_are_named(spark: Any, left: str, right: str, names: str) -> None:
    frames = [spark.sql(f"SELECT {each}") for each in (left, right)]
    with pytest.raises(SchemaError, match="column ") as failure:
        trueup.spark.diff(*frames, key="id")
    assert names in str(failure.value)
    assert failure.value.hint


def test_two_columns_of_one_name(spark: Any) -> None:
    frame = spark.sql("SELECT 1 AS id, 2 AS id")
    with pytest.raises(SchemaError, match="two columns named id"):
        trueup.spark.diff(frame, frame, key="id")


def test_names_that_differ_in_case_only(spark: Any) -> None:
    frame = spark.sql("SELECT 1 AS id, 2 AS x, 3 AS X")
    with trueup.spark.diff(frame, frame, key="id") as found:
        assert found.agree


def test_a_table_that_changes_while_it_is_compared_is_not_believed(spark: Any) -> None:
    unsteady = spark.range(200).where("cast(reflect('java.lang.Math', 'random') AS double) < 0.5")
    with pytest.raises(IncompleteScan, match="changed while"):
        trueup.spark.diff(unsteady, spark.range(0), key="id")


def test_states_that_mean_absence_are_judged_here(spark: Any) -> None:
    side = Spark(spark.range(1).selectExpr("id", "'gone' AS state"))
    asked = plan(side.describe(), side.describe(), key=["id"], absent_when={"state": ["gone"]})
    with compare(side, side, asked) as found:
        assert (found.strategy, found.counts.differ) == ("rows", 1)


def test_a_path_that_leads_nowhere(spark: Any, tmp_path: Path) -> None:
    from trueup.errors import BadInput

    with pytest.raises(BadInput, match=r"gone\.parquet: there is nothing there"):
        Spark(str(tmp_path / "gone.parquet")).describe()
    (tmp_path / "bad.parquet").write_bytes(b"no")
    with pytest.raises(BadInput, match=r"bad\.parquet can't be read as Parquet"):
        Spark(str(tmp_path / "bad.parquet")).describe()


def test_a_condition_and_a_version(spark: Any) -> None:
    from trueup.ports import Scope

    side = Spark(spark.range(9).selectExpr("id", "id * 10 AS at"), key="id", version="at", where="id % 2 = 0")
    asked = plan(side.describe(), side.describe(), key=["id"], version_left="at").left
    rows = [row for batch in side.scan(asked, Scope(since=40)) for row in batch.to_pylist()]
    assert [(row["id"], row["at"]) for row in rows] == [(4, 40), (6, 60), (8, 80)]
    assert side.read(asked, ['["6"]', '["7"]'])['["6"]'].version == 60
