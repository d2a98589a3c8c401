"""Tables of a lake by location, and what is said where the libraries that read them are not installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from trueup.errors import ConfigError
from trueup.locations import LakeLocation, open_on, open_side, parse_location


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ("delta:warehouse/orders", LakeLocation("warehouse/orders", None)),
        ("delta:s3://lake/orders", LakeLocation("s3://lake/orders", None)),
        ("iceberg:catalog.db#shop.orders", LakeLocation("catalog.db", "shop.orders")),
        ("iceberg:production#shop.orders", LakeLocation("production", "shop.orders")),
    ],
)
def test_a_location_in_a_lake(text: str, location: LakeLocation) -> None:
    assert parse_location(text) == location
    assert location.label == text


@pytest.mark.parametrize("text", ["delta:", "delta:orders#x", "iceberg:", "iceberg:catalog.db", "iceberg:#a.b"])
def test_a_location_that_names_no_table_of_a_lake(text: str) -> None:
    with pytest.raises(ConfigError, match="names no table of a lake") as failure:
        parse_location(text)
    assert "delta:path/of/the/table" in str(failure.value)


@pytest.mark.parametrize(
    ("location", "missing", "message"),
    [
        ("delta:orders", "deltalake", "deltalake is not installed"),
        ("iceberg:catalog.db#shop.orders", "pyiceberg.catalog", "pyiceberg is not installed"),
    ],
)
def test_a_library_that_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, location: str, missing: str, message: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ConfigError, match=message) as failure:
        open_side(location).describe()
    assert "pip install 'trueup[lake]'" in str(failure.value)


def test_spark_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(ConfigError, match="PySpark is not installed") as failure:
        open_on("spark", str(tmp_path / "orders.parquet")).describe()
    assert "Java 17" in str(failure.value)


def test_an_engine_that_is_not_known() -> None:
    with pytest.raises(ConfigError, match="no engine flink"):
        open_on("flink", "orders.parquet")
