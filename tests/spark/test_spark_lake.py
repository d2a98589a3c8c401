"""Delta and Iceberg tables: read here by their own libraries, and by workers of Spark."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from typer.testing import CliRunner

import trueup.spark
from trueup.cli.main import app
from trueup.compare.choose import compare
from trueup.compare.plan import plan
from trueup.errors import BadInput, ConfigError
from trueup.locations import open_on, open_side
from trueup.sides.spark import Spark

MOMENT = dt.datetime(2024, 10, 27, 0, 30, 0, 500_000, tzinfo=dt.UTC)
ORDERS = pa.table(
    {
        "id": list(range(1, 9)),
        "country": ["de", "de", None, "jp", "jp", "jp", "fr", "fr"],
        "total": pa.array([Decimal(n) / 4 for n in range(8)], pa.decimal128(10, 2)),
        "at": pa.array([MOMENT + dt.timedelta(seconds=n) for n in range(8)], pa.timestamp("us", "UTC")),
        "wall": pa.array([MOMENT.replace(tzinfo=None)] * 8, pa.timestamp("us")),
        "note": [f"ä{n}" if n % 2 else None for n in range(8)],
        "blob": [bytes([n]) for n in range(8)],
        "day": [dt.date(2024, 1, n + 1) for n in range(8)],
    }
)


def _delta(folder: Path, table: pa.Table = ORDERS) -> str:
    """In three files of three countries and one of none; record 4 was deleted."""
    write_deltalake(str(folder), table, partition_by=["country"])
    DeltaTable(str(folder)).delete("id = 4")
    return f"delta:{folder}"


def _iceberg(folder: Path, table: pa.Table = ORDERS) -> str:
    """In two files; record 4 was deleted."""
    catalog = SqlCatalog("mine", uri=f"sqlite:///{folder / 'catalog.db'}", warehouse=folder.as_uri())
    catalog.create_namespace("shop")
    orders = catalog.create_table("shop.orders", schema=table.schema)
    orders.append(table.slice(0, 5))
    orders.append(table.slice(5))
    orders.delete("id = 4")
    catalog.close()
    return f"iceberg:{folder / 'catalog.db'}#shop.orders"


def _parquet(folder: Path) -> str:
    """Without record 4; record 6 has another note and record 8 is missing."""
    notes = ORDERS.column("note").to_pylist()
    notes[5] = "ö"
    changed = ORDERS.set_column(5, "note", pa.array(notes)).filter(pa.array([n not in (3, 7) for n in range(8)]))
    pq.write_table(changed, folder / "orders.parquet")
    return str(folder / "orders.parquet")


FOUND = [("differ", '["6"]', ("note",)), ("missing", '["8"]', ())]


@pytest.mark.parametrize("make", [_delta, _iceberg])
def test_a_lake_table_is_an_ordinary_side(tmp_path: Path, make: Any) -> None:
    left, right = open_side(make(tmp_path / "lake" if make is _delta else tmp_path)), open_side(_parquet(tmp_path))
    asked = plan(left.describe(), right.describe(), key=["id"])
    assert asked.notes.clean
    with compare(left, right, asked) as found:
        assert [(each.kind, each.key, each.fields) for each in found.differences()] == FOUND
    assert left.read(asked.left, ['["4"]', '["5"]']).keys() == {'["5"]'}


@pytest.mark.parametrize("make", [_delta, _iceberg])
def test_workers_of_spark_read_a_lake_table(spark: Any, tmp_path: Path, make: Any) -> None:
    location = make(tmp_path / "lake" if make is _delta else tmp_path)
    left, right = open_on("spark", location), open_on("spark", _parquet(tmp_path))
    assert isinstance(left, Spark)
    with trueup.spark.diff(left, right, key="id") as found:
        assert found.strategy == "match"
        assert [(each.kind, each.key, each.fields) for each in found.differences()] == FOUND
        assert [each.rows for each in found.read] == [2, 1]


def test_delta_against_iceberg_agrees(spark: Any, tmp_path: Path) -> None:
    left, right = _delta(tmp_path / "lake"), _iceberg(tmp_path)
    with trueup.spark.diff(open_on("spark", left), open_on("spark", right), key="id") as found:
        assert found.agree
        assert found.counts.same == 7


def test_a_scan_goes_on_with_the_state_that_was_described(tmp_path: Path) -> None:
    side = open_side(_delta(tmp_path / "lake"))
    asked = plan(side.describe(), side.describe(), key=["id"]).left
    DeltaTable(str(tmp_path / "lake")).delete("id < 8")
    assert sum(batch.num_rows for batch in side.scan(asked)) == 7


def test_conditions_zones_and_versions(tmp_path: Path) -> None:
    side = trueup.Delta(str(tmp_path / "lake"), key="id", version="at", where="country = 'jp'", zone="Europe/Berlin")
    _delta(tmp_path / "lake")
    described = side.describe()
    assert described.system == "Delta, version 1"
    asked = plan(described, described, key=["id"], version_left="at").left
    found = side.read(asked, ['["5"]', '["7"]'])
    assert found.keys() == {'["5"]'}
    assert found['["5"]'].version == (int(MOMENT.timestamp()) + 4) * 1_000_000 + 500_000
    assert found['["5"]'].values["wall"] == "2024-10-26T22:30:00.5Z"


def test_a_table_without_records(spark: Any, tmp_path: Path) -> None:
    empty = ORDERS.slice(0, 0)
    left = _delta(tmp_path / "lake", empty)
    catalog = SqlCatalog("mine", uri=f"sqlite:///{tmp_path / 'catalog.db'}", warehouse=tmp_path.as_uri())
    catalog.create_namespace("shop")
    catalog.create_table("shop.orders", schema=empty.schema)
    catalog.close()
    right = f"iceberg:{tmp_path / 'catalog.db'}#shop.orders"
    assert open_side(right).describe().system == "Iceberg, empty"
    for opened in (open_side, lambda location: open_on("spark", location)):
        a, b = opened(left), opened(right)
        with compare(a, b, plan(a.describe(), b.describe(), key=["id"])) as found:
            assert (found.counts.left, found.counts.right) == (0, 0)


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("delta:{}/gone", "gone: there is no such table"),
        ("iceberg:{}/gone.db#a.b", r"gone\.db is no Iceberg catalog"),
        ("iceberg:{}/catalog.db#shop.gone", r"shop\.gone: there is no such table"),
    ],
)
def test_what_is_not_there_is_named(tmp_path: Path, location: str, message: str) -> None:
    _iceberg(tmp_path)
    with pytest.raises(BadInput, match=message):
        open_side(location.format(tmp_path)).describe()


def test_a_catalog_that_nobody_configured() -> None:
    with pytest.raises(ConfigError, match="no Iceberg catalog nowhere"):
        open_side("iceberg:nowhere#a.b").describe()


# The command line


def _run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["diff", *arguments], standalone_mode=False)
    code = done.return_value if isinstance(done.return_value, int) else done.exit_code
    return code, done.output + (str(done.exception) if done.exception else "")


def test_the_command_line_compares_on_spark(spark: Any, tmp_path: Path) -> None:
    left, right = _delta(tmp_path / "lake"), _parquet(tmp_path)
    code, told = _run(left, right, "--on", "spark", "--key", "id", "--explain")
    assert code == 1, told
    assert "strategy match: one engine reads both sides" in told
    assert "missing 1" in told
    assert _run(left, left, "--on", "spark", "--key", "id", "--quiet")[0] == 0
    assert _run(left, right, "--on", "spark", "--key", "id", "--where", "id <> 6 AND id < 8", "--quiet")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.csv", "b.csv", "--on", "spark"], "a.csv: Spark reads Parquet files, Delta and Iceberg tables."),
        (["a.parquet", "b.parquet", "--on", "flink"], "there is no engine flink. Engines: spark."),
        (["a.parquet", "b.parquet", "--on", "spark", "--zone", "UTC"], "--zone has no meaning on spark."),
        (["a.parquet", "b.parquet", "--on", "spark", "--null", "x"], "--null has no meaning on spark."),
        (["delta:", "b.parquet"], "delta: names no table of a lake."),
        (["iceberg:x.db", "b.parquet"], "iceberg:x.db names no table of a lake."),
    ],
)
def test_what_can_t_be_asked_of_spark_is_said(arguments: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as failure:
        CliRunner().invoke(app, ["diff", *arguments, "--key", "id"], standalone_mode=False, catch_exceptions=False)
    assert message in str(failure.value)
