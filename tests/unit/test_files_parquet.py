"""Parquet: every type is read as the kind that holds it, without loss."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trueup.errors import BadInput, SchemaError
from trueup.model.kinds import INSTANT
from trueup.sides.files import File, parquet
from trueup.testing.sides.asking import key_of, projection_of, scanned

US = 1_000_000


@pytest.fixture
def side_of(tmp_path):
    def write(array, **options):
        path = tmp_path / "records.parquet"
        pq.write_table(pa.table({"id": list(range(len(array))), "v": array}), path)
        return File(path, **{"key": "id", **options})

    return write


def values(side, kinds=None, native=True):
    projection = projection_of(side, ["id"], ["v"], kinds=kinds, native=native)
    return [row["v"] for row in scanned(side, projection)]


@pytest.mark.parametrize(
    ("array", "kind", "native", "texts"),
    [
        (pa.array([2**64 - 1, 1], pa.uint64()), "integer", False, ["18446744073709551615", "1"]),
        (pa.array([-128], pa.int8()), "integer", True, ["-128"]),
        (pa.array([2**32 - 1], pa.uint32()), "integer", True, ["4294967295"]),
        (pa.array([1.5, -0.0], pa.float16()), "float32", True, ["1.5", "0"]),
        (pa.array([0.1], pa.float32()), "float32", True, ["0.1"]),
        (pa.array([Decimal("1.50")], pa.decimal128(5, 2)), "decimal(5,2)", True, ["1.5"]),
        (pa.array([Decimal(10) ** 50], pa.decimal256(60, 2)), "decimal(60,2)", False, ["1" + "0" * 50]),
        (pa.array(["b", "a", None, "b"]).dictionary_encode(), "text", True, ["b", "a", None, "b"]),
        (pa.array(["a"], pa.large_string()), "text", True, ["a"]),
        (pa.array([None, None], pa.null()), "text", True, [None, None]),
        (pa.array([b"\x00\xff"], pa.binary(2)), "bytes", True, ["00ff"]),
        (pa.array([b"\x00"], pa.large_binary()), "bytes", True, ["00"]),
        (pa.array([19_000], pa.date32()), "date", True, ["2022-01-08"]),
        (pa.array([86_400_000], pa.date64()), "date", True, ["1970-01-02"]),
        (pa.array([3_000_000], pa.date32()), "date", True, ["+10183-09-21"]),
        (pa.array([1], pa.time32("ms")), "time", False, ["00:00:00.001"]),
        (pa.array([1_500, 1_499], pa.time64("ns")), "time", False, ["00:00:00.000002", "00:00:00.000001"]),
        (pa.array([1_500, -1_500, -1_501], pa.timestamp("ns")), "timestamp without zone", True, [
            "1970-01-01T00:00:00.000002", "1969-12-31T23:59:59.999999", "1969-12-31T23:59:59.999998"]),
        (pa.array([1_000], pa.timestamp("ms", "Europe/Berlin")), "timestamp with zone", True, ["1970-01-01T00:00:01Z"]),
        (pa.array([300_000_000_000 * US], pa.timestamp("us")), "timestamp without zone", True,
            ["+11476-08-15T05:20:00"]),
        (pa.array([dt.timedelta(days=1)], pa.duration("ms")), "interval", False, ["PT86400S"]),
        (pa.array([[1, None], None], pa.list_(pa.int64())), "array of integer", False, ['["1",null]', None]),
        (pa.array([["a"]], pa.large_list(pa.string())), "array of text", False, ['["a"]']),
        (pa.array([{"b": 1, "a": Decimal("1.50")}]), "json", False, ['{"a":1.5,"b":1}']),
        (pa.array([[{"b": 1}]]), "json", False, ['[{"b":1}]']),
        (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())), "json", False, ['{"k":1}']),
    ],
    ids=lambda each: str(each.type) if isinstance(each, pa.Array) else "",
)  # fmt: skip
def test_every_type_has_its_kind(side_of, array, kind, native, texts):
    side = side_of(array)
    column = side.describe().column("v")
    assert (str(column.kind), column.native and column.kind.arrow() is not None) == (kind, native)
    assert values(side) == texts
    assert values(side, native=False) == texts


def test_wall_clock_times_in_a_zone_are_instants(side_of):
    side = side_of(pa.array([1_782_907_200 * US], pa.timestamp("us")), zone="Europe/Berlin")
    assert side.describe().column("v").kind == INSTANT
    assert values(side) == ["2026-07-01T10:00:00Z"]


def test_half_a_file_is_named(tmp_path):
    path = tmp_path / "records.parquet"
    pq.write_table(pa.table({"id": list(range(1_000))}), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BadInput, match=r"records\.parquet is damaged or ends early"):
        File(path, key="id").describe()
    path.write_bytes(b"id,name\n1,x\n")
    with pytest.raises(BadInput, match="is no Parquet file"):
        File(path, key="id").describe()


def test_a_declared_value_that_does_not_parse_names_its_row(side_of):
    side = side_of(pa.array(["1", "x"]), columns={"v": "integer"})
    with pytest.raises(BadInput, match="row 2, column v: not a value of kind integer"):
        values(side)


def test_two_columns_of_one_name_are_refused(tmp_path):
    path = tmp_path / "records.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"]), path)
    with pytest.raises(BadInput, match="two columns named id"):
        File(path, key="id").describe()


def test_files_of_one_side_agree_in_types(tmp_path):
    pq.write_table(pa.table({"id": [1], "v": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": [2], "v": ["x"]}), tmp_path / "b.parquet")
    with pytest.raises(SchemaError, match=r"b\.parquet and a\.parquet differ in their columns, in v"):
        File(tmp_path / "*.parquet", key="id").describe()


def test_columns_are_renamed_and_names_with_dots_are_names(tmp_path):
    path = tmp_path / "records.parquet"
    pq.write_table(pa.table({"id": [1], "a.b": ["x"], "a": [{"b": "y"}]}), path)
    side = File(path, key="id", rename={"a.b": "flat"})
    found = scanned(side, projection_of(side, ["id"], ["a", "flat"]))
    assert found == [{"id": "1", "a": '{"b":"y"}', "flat": "x"}]


def test_only_row_groups_that_may_hold_a_key_are_read(tmp_path, monkeypatch):
    """Given groups of ten by key, one of them without statistics of its key, I expect a read of two, and true rows."""
    path, read = tmp_path / "records.parquet", []
    with pq.ParquetWriter(path, pa.schema([("id", pa.int32()), ("s.id", pa.int32()), ("v", pa.string())])) as file:
        for start in range(-20, 40, 10):
            ids = [None] * 10 if start == 0 else list(range(start, start + 10))
            file.write_table(
                pa.table({"id": pa.array(ids, pa.int32()), "s.id": pa.array(ids, pa.int32()), "v": map(str, ids)})
            )
    batches = parquet._batches

    def watched(path, file, names, groups):
        for place, batch in batches(path, file, names, groups):
            read.append((place, batch.num_rows))
            yield place, batch

    monkeypatch.setattr(parquet, "_batches", watched)
    for key in ("id", "s.id"):
        side = File(path, key=key)
        found = side.read(projection_of(side, [key], ["v"]), ['["-11"]', '["25"]', '["77"]'])
        assert {each: record.values["v"] for each, record in found.items()} == {'["-11"]': "-11", '["25"]': "25"}
        assert read == [(0, 10), (20, 10), (40, 10)]
        read.clear()
        # What is no number may be anywhere, as far as statistics tell.
        assert side.read(projection_of(side, [key], ["v"]), ['["-11"]', "[null]"])["[null]"].copies == 10
        assert sum(rows for _, rows in read) == 60
        read.clear()


def test_a_condition_and_a_key_find_records_in_large_files(tmp_path):
    path = tmp_path / "records.parquet"
    pq.write_table(pa.table({"id": list(range(200_000)), "v": ["x", "y"] * 100_000}), path, row_group_size=50_000)
    side = File(path, key="id", where="v = 'y' AND id < 100000")
    assert len(values(side)) == 50_000
    projection = projection_of(side, ["id"], ["v"])
    assert set(side.read(projection, [key_of("1"), key_of("2"), key_of("150001")])) == {key_of("1")}
    assert all(batch.num_rows <= 65_536 for batch in File(path, key="id").scan(projection))
