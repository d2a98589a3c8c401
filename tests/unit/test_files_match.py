"""Two Parquet sides matched where they lie: the answer of *rows*, and nothing read but records in doubt."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trueup.sides.files.match as matching
from trueup.compare.analysis import analyse
from trueup.compare.choose import compare
from trueup.compare.plan import plan
from trueup.compare.result import Comparison
from trueup.errors import IncompleteScan, TrueupError
from trueup.model.record import Rule
from trueup.ports import Side
from trueup.sides.files import File

Written = Callable[..., File]
Columns = Mapping[str, Any]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Writes columns to a file of this name; options are those of the side."""

    def write(name: str, data: Columns, **options: Any) -> File:
        pq.write_table(pa.table(dict(data)), tmp_path / f"{name}.parquet", row_group_size=40)
        return File(tmp_path / f"{name}.parquet", **options)

    return write


def numbers(*which: int | None) -> pa.Array[Any]:
    return pa.array(which, pa.int64())


def compared(left: Side, right: Side, key: Sequence[str] = ("id",), **options: Any) -> list[Any]:
    """How it was compared, and the answer, which has to be that of *rows*."""
    answers = []
    for strategy in (None, "rows"):
        planned = plan(left.describe(), right.describe(), key=key, **options)
        with compare(left, right, planned, strategy=strategy) as found:
            answers.append([found.strategy, found.counts, dict(found.differing_fields), list(found.differences())])
    assert answers[0][1:] == answers[1][1:]
    return answers[0]


def test_only_records_in_doubt_are_read(written: Written) -> None:
    ids = numbers(*range(1_000))
    left = written("a", {"id": ids, "n": ids, "text": pa.array([f"t{at}" for at in range(1_000)])})
    right = written("b", {"id": ids[1:], "n": numbers(*range(1, 500), 7, *range(501, 1_000)),
                          "text": pa.array([f"t{at}" for at in range(1, 1_000)])})  # fmt: skip
    planned = plan(left.describe(), right.describe(), key=["id"])
    with compare(left, right, planned) as found:
        assert (found.strategy, found.counts.same) == ("match", 998)
        assert [(each.kind, each.key, each.fields) for each in found.differences()] == [
            ("missing", '["0"]', ()),
            ("differ", '["500"]', ("n",)),
        ]
        assert [each.rows for each in found.read] == [2, 1]
    assert compared(left, right)[0] == "match"


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((1, 1, 2), (1, 2)),
        ((1, 2), (1, 1, 2)),
        ((1, 1, 2), (1, 1, 2)),
        ((1, 1, 3), (2, 2)),
        ((None, 1), (1, None)),
        ((None, None, 1), (1, None, 4)),
        ((), (1,)),
        ((), ()),
    ],
)
def test_keys_that_repeat_or_are_null(written: Written, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    sides = [written(name, {"id": numbers(*ids), "v": numbers(*range(len(ids)))}) for name, ids in
             (("a", left), ("b", right))]  # fmt: skip
    assert compared(*sides)[0] == "match"
    same = [written(name, {"id": numbers(*ids), "v": numbers(*ids)}) for name, ids in (("a", left), ("b", right))]
    assert compared(*same)[0] == "match"


def test_two_key_columns_and_a_null_in_one(written: Written) -> None:
    left = written("a", {"x": numbers(1, 1, None, 2), "y": pa.array(["a", "b", "a", None]), "v": numbers(1, 2, 3, 4)})
    right = written("b", {"x": numbers(1, None, 2), "y": pa.array(["a", "a", None]), "v": numbers(1, 3, 5)})
    found = compared(left, right, ("x", "y"))
    assert (found[0], found[1].missing, found[1].differ) == ("match", 1, 1)


EVERY = {
    "flag": pa.array([True, None, False]),
    "small": pa.array([1, None, -3], pa.int16()),
    "price": pa.array([Decimal("1.50"), None, Decimal("-0.01")], pa.decimal128(38, 2)),
    "share": pa.array([0.1, -0.0, float("nan")]),
    "narrow": pa.array([0.1, -0.0, float("nan")], pa.float32()),
    "text": pa.array(["é", "", None]),
    "large": pa.array(["a", "b", None], pa.large_string()),
    "kind": pa.array(["a", "b", None]).dictionary_encode(),
    "bytes": pa.array([b"\x00", b"", None], pa.large_binary()),
    "fixed": pa.array([b"\x00\x01", b"ab", None], pa.binary(2)),
    "uuid": pa.array([UUID(int=at).bytes for at in range(3)], pa.uuid()),
    "day": pa.array([0, None, -719_162], pa.date32()),
    "at": pa.array([0, None, 1], pa.timestamp("us")),
    "fine": pa.array([1_499, None, 1_500], pa.timestamp("ns")),
    "coarse": pa.array([0, None, 1], pa.timestamp("ms")),
    "instant": pa.array([0, None, 1], pa.timestamp("us", "Asia/Tokyo")),
}


@pytest.mark.parametrize("name", EVERY)
def test_every_type_that_is_matched(written: Written, name: str) -> None:
    column = EVERY[name]
    left = written("a", {"id": numbers(1, 2, 3), name: column})
    others = pa.concat_arrays([column.take(numbers(0, 0, 2)), column[:1]])
    right = written("b", {"id": numbers(1, 2, 3, 4), name: others})
    found = compared(left, right)
    assert (found[0], found[1].same, found[1].differ, found[1].extra) == ("match", 2, 1, 1)


@pytest.mark.parametrize("name", ["flag", "price", "text", "fixed", "uuid", "day", "at", "instant"])
def test_every_type_that_is_matched_by(written: Written, name: str) -> None:
    known = EVERY[name].take(numbers(0, 2)) if name != "text" else EVERY[name][:2]
    left, right = written("a", {"k": known, "v": numbers(1, 2)}), written("b", {"k": known, "v": numbers(1, 3)})
    found = compared(left, right, ("k",))
    assert (found[0], found[1].same, found[1].differ) == ("match", 1, 1)


WIDE = {
    "unsigned": pa.array([2**64 - 1], pa.uint64()), "wider": pa.array([Decimal(10) ** 40], pa.decimal256(50, 2)),
    "clock": pa.array([1], pa.time64("us")), "span": pa.array([1], pa.duration("us")),
    "many": pa.array([[1]], pa.list_(pa.int64())), "half": pa.array([1.5], pa.float16()),
    "document": pa.array(["1"], pa.json_()),
}  # fmt: skip


@pytest.mark.parametrize("name", WIDE)
def test_types_that_duckdb_reads_otherwise_are_read_here(written: Written, name: str) -> None:
    sides = [written(side, {"id": numbers(1), name: WIDE[name]}) for side in "ab"]
    found = compared(*sides)
    assert (found[0], found[1].same) == ("rows", 1)


@pytest.mark.parametrize(
    ("left", "right", "options"),
    [
        ({"id": numbers(1)}, {"id": pa.array(["1"])}, {}),
        ({"id": pa.array([1.0])}, {"id": pa.array([1.0])}, {}),
        ({"id": pa.array([1], pa.timestamp("ns"))}, {"id": pa.array([2], pa.timestamp("ns"))}, {}),
        ({"id": numbers(1), "v": pa.array([1.5])}, {"id": numbers(1), "v": pa.array([1.6])},
            {"rules": {"v": Rule(absolute=Decimal(1))}}),
        ({"id": numbers(1), "v": pa.array(["01"])}, {"id": numbers(1), "v": pa.array(["1.0"])},
            {"kinds": {"v": "decimal"}}),
    ],
    ids=["unlike keys", "floats", "nanoseconds", "tolerance", "texts that mean numbers"],
)  # fmt: skip
def test_what_may_be_equal_in_more_ways_is_read_here(
    written: Written, left: Columns, right: Columns, options: dict[str, Any]
) -> None:
    found = compared(written("a", left), written("b", right), **options)
    assert (found[0], found[1].same) == ("rows", 1)


@pytest.mark.parametrize(
    "options", [{"where": "id > 1"}, {"zone": "Europe/Berlin"}, {"columns": {"id": "integer"}}], ids=str
)
def test_a_side_that_is_more_than_its_files_is_read_here(written: Written, options: dict[str, Any]) -> None:
    data = {"id": numbers(1, 2), "at": pa.array([1, 2], pa.timestamp("us"))}
    if "columns" in options:
        data["id"] = pa.array(["1", "2"])
    assert compared(written("a", data, **options), written("b", data, **options))[0] == "rows"


def test_a_renamed_column_and_names_of_every_kind(written: Written) -> None:
    left = written("it's", {'a"b': numbers(1, 2), "k0": numbers(1, 2), "h": numbers(3, 4)}, rename={'a"b': "id"})
    right = written("b", {"id": numbers(1, 2), "k0": numbers(1, 2), "h": numbers(3, 5)})
    found = compared(left, right)
    assert (found[0], found[2]) == ("match", {"k0": 0, "h": 1})


def test_names_that_differ_in_case_are_told_apart(written: Written, tmp_path: Path) -> None:
    """DuckDB names the second one V_1, and a column of that name something else."""
    left = {"id": numbers(1, 2), "v": numbers(1, 1), "V": numbers(5, 5), "V_1": numbers(7, 8)}
    found = compared(written("a", left), written("b", {**left, "V_1": numbers(7, 9)}), columns=["V_1"])
    assert (found[0], found[1].differ) == ("rows", 1)
    for name in ("p", "q"):
        written(f"{name}-1", {"id": numbers(1), "v": numbers(1), "V": numbers(2)})
    written("p-2", {"id": numbers(2), "V": numbers(2), "v": numbers(1)})
    written("q-2", {"id": numbers(2), "v": numbers(1), "V": numbers(2)})
    sides = [File(str(tmp_path / f"{name}-*.parquet")) for name in ("p", "q")]
    assert compared(*sides, columns=["v"])[1].same == 2


def test_copies_come_in_the_order_of_the_file(written: Written) -> None:
    """So that the first ones, which are shown, are the same by every strategy and in every run."""
    ids = [7 if at % 500 == 3 else at for at in range(20_000)]
    left = written("a", {"id": numbers(*ids), "v": numbers(*(at * 7_919 % 10_007 for at in range(20_000)))})
    right = written("b", {"id": numbers(7, *range(8, 100)), "v": numbers(-1, *range(8, 100))})
    for _ in range(3):
        assert compared(left, right)[0] == "match"


def test_where_much_differs_records_are_read(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    left = written("a", {"id": numbers(1, 2, 3), "v": numbers(1, 2, 3)})
    right = written("b", {"id": numbers(1, 2, 3), "v": numbers(4, 5, 6)})
    assert compared(left, right)[0] == "match"
    monkeypatch.setattr(matching, "_DOUBTS_MAX", 2 / 512)
    assert compared(left, right)[0] == "rows"


def test_ctrl_c_while_duckdb_works(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: matching.FileMatch, types: Sequence[str]) -> None:
        threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
        self._database.execute("CREATE TABLE much AS SELECT range, hash(range) FROM range(200000000)")

    monkeypatch.setattr(matching.FileMatch, "_join", interrupted)
    sides = [written(name, {"id": numbers(1)}) for name in "ab"]
    # Who runs tests in several processes has them ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            compared(*sides)
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_path_that_duckdb_would_take_for_a_pattern(written: Written, tmp_path: Path) -> None:
    written("a1", {"id": numbers(1)})
    sides = [written(name, {"id": numbers(2)}) for name in ("a[1]", "b")]
    assert compared(*sides)[0] == "rows"


def test_many_files_are_one_side(tmp_path: Path, written: Written) -> None:
    for at in range(3):
        written(f"part-{at}", {"id": numbers(at, at + 10), "v": numbers(at, at)})
    whole = written("whole", {"id": numbers(0, 1, 2, 10, 11, 12), "v": numbers(0, 1, 2, 0, 1, 3)})
    found = compared(File(str(tmp_path / "part-*.parquet")), whole)
    assert (found[0], found[1].same, found[1].differ) == ("match", 5, 1)
    # A type that one of the files lacks is not DuckDB's to convert.
    written("part-3", {"id": pa.array([20], pa.int32()), "v": numbers(3)})
    assert compared(File(str(tmp_path / "part-*.parquet")), whole)[0] == "rows"


def test_files_that_change_are_not_believed(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    left, right = (written(name, {"id": numbers(1, 2), "v": numbers(1, at)}) for at, name in enumerate("ab"))
    join = matching.FileMatch._join

    def joined(self: matching.FileMatch, types: Sequence[str]) -> None:
        join(self, types)
        os.utime(right.path, (0, 0))

    monkeypatch.setattr(matching.FileMatch, "_join", joined)
    with pytest.raises(IncompleteScan, match=r"b\.parquet changed"):
        compared(left, right)


def test_damage_is_named_by_who_reads(written: Written) -> None:
    left, right = (written(name, {"id": numbers(*range(500))}) for name in "ab")
    data = bytearray(Path(right.path).read_bytes())
    data[4:200] = bytes(196)
    Path(right.path).write_bytes(data)
    with pytest.raises(TrueupError, match=r"b\.parquet is damaged"):
        compared(left, right)


def test_files_and_spills_are_removed(written: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    left, right = (written(name, {"id": numbers(1, 2), "v": numbers(1, at)}) for at, name in enumerate("ab"))
    assert compared(left, right)[0] == "match"
    assert list(folder.iterdir()) == []


def test_states_that_mean_absence_are_judged_here(written: Written) -> None:
    left = written("a", {"id": numbers(1, 2), "state": pa.array(["gone", "on"])})
    right = written("b", {"id": numbers(1, 2), "state": pa.array(["gone", "on"])})
    found = compared(left, right, absent_when={"state": ["gone"]})
    assert (found[0], found[1].same, found[1].differ) == ("rows", 1, 1)


def test_a_strategy_that_is_asked_for(written: Written, tmp_path: Path) -> None:
    left, right = (written(name, {"id": numbers(1, 2)}) for name in "ab")
    (tmp_path / "c.csv").write_text("id\n1\n2\n")
    csv = File(tmp_path / "c.csv")
    planned = plan(left.describe(), right.describe(), key=["id"])
    assert _strategy(compare(left, right, planned, strategy="match")) == "match"
    assert _strategy(compare(left, right, planned, strategy="rows")) == "rows"
    texts = plan(left.describe(), csv.describe(), key=["id"])
    assert _strategy(compare(left, csv, texts, strategy="match")) == "rows"


def _strategy(found: Comparison) -> str:
    with found:
        return found.strategy


def test_what_differs_is_told_beside_a_sample_of_all(written: Written) -> None:
    rows = 5_000
    currency = ["JPY" if at % 50 == 0 else "EUR" for at in range(rows)]
    left = written("a", {"id": numbers(*range(rows)), "currency": pa.array(currency), "n": numbers(*range(rows))})
    shifted = [at + (each == "JPY") for at, each in enumerate(currency)]
    right = written("b", {"id": numbers(*range(rows)), "currency": pa.array(currency), "n": numbers(*shifted)})
    planned = plan(left.describe(), right.describe(), key=["id"])
    told = []
    for strategy in (None, "rows"):
        with compare(left, right, planned, strategy=strategy) as found:
            told.append(analyse(found, planned, (left.describe(), right.describe()), left))
    for each in told:
        shares = [(one.values, one.count, round(one.share_all or 0, 2)) for one in each.patterns]
        assert shares == [(("JPY",), 100, 0.02)]


def test_a_sample_is_of_all_parts_of_a_row_group(tmp_path: Path) -> None:
    rows = 200_000
    currency = pa.array(["EUR"] * (rows // 2) + ["JPY"] * (rows // 2))
    pq.write_table(pa.table({"id": numbers(*range(rows)), "currency": currency}), tmp_path / "a.parquet")
    side = File(tmp_path / "a.parquet")
    projection = plan(side.describe(), side.describe(), key=["id"]).left
    found = pa.Table.from_batches(side.sample(projection, 5_000))
    assert 4_500 < found.num_rows < 5_500
    assert 0.45 < sum(each == "JPY" for each in found.column(1).to_pylist()) / found.num_rows < 0.55
