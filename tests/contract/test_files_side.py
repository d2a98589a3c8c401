"""CSV, JSON Lines and Parquet files keep the contract of sides."""

from __future__ import annotations

import gzip
import itertools
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trueup.model.natural import natural
from trueup.sides.files import File
from trueup.testing.sides import SideContract, WindowedSideContract


class TestCsv(SideContract, WindowedSideContract):
    @pytest.fixture
    def make(self, tmp_path):
        numbers = itertools.count()

        def make(columns, key, version=None, rows=()):
            path = tmp_path / f"records{next(numbers)}.csv"
            lines = [list(columns), *([row.get(name) for name in columns] for row in rows)]
            path.write_text("".join(",".join(map(_csv, line)) + "\n" for line in lines), "utf-8", newline="")
            declared = {name: kind for name, kind in columns.items() if kind.name != "text"}
            return File(path, key=key, version=version, columns=declared)

        return make


class TestUndeclaredCsv(SideContract):
    """The same, gzipped, semicolons, and no kind declared but what the column is asked for."""

    @pytest.fixture
    def make(self, tmp_path):
        numbers = itertools.count()

        def make(columns, key, version=None, rows=()):
            path = tmp_path / f"records{next(numbers)}.csv.gz"
            lines = [list(columns), *([row.get(name) for name in columns] for row in rows)]
            text = "".join(";".join(map(_csv, line)) + "\r\n" for line in lines)
            path.write_bytes(gzip.compress(text.encode("utf-16")))
            return File(path, key=key, version=version, delimiter=";", encoding="utf-16")

        return make


def _csv(text):
    return "" if text is None else '"' + text.replace('"', '""') + '"'


class TestJsonLines(SideContract, WindowedSideContract):
    @pytest.fixture
    def make(self, tmp_path):
        numbers = itertools.count()

        def make(columns, key, version=None, rows=()):
            path = tmp_path / f"records{next(numbers)}.jsonl"
            path.write_text("".join(_json_line(row, columns) + "\n" for row in rows), "utf-8")
            return File(path, key=key, version=version, columns=columns)

        return make


def _json_line(row, columns):
    return "{" + ",".join(f"{json.dumps(name)}:{_json(text, columns[name])}" for name, text in row.items()) + "}"


def _json(text, kind):
    if text is None:
        return "null"
    bare = kind.name in ("integer", "decimal", "boolean", "array")
    # A JSON column's document is a string or the thing itself; a string document can only be quoted twice.
    bare = bare or (kind.name == "json" and not text.startswith('"'))
    return text if bare and text != "null" else json.dumps(text, ensure_ascii=False)


class TestParquet(SideContract, WindowedSideContract):
    gaps = {  # noqa: RUF012
        "test_scan_gives_the_canonical_text[interval-'P14M']": "Parquet durations have no months",
    }

    @pytest.fixture
    def make(self, tmp_path):
        numbers = itertools.count()

        def make(columns, key, version=None, rows=()):
            path = tmp_path / f"records{next(numbers)}.parquet"
            arrays = [
                pa.array([_natural(row.get(name), kind) for row in rows], _TYPES.get(str(kind)) or kind.arrow())
                for name, kind in columns.items()
            ]
            pq.write_table(pa.table(arrays, names=list(columns)), path, row_group_size=1_000)
            declared = {name: "json" for name, kind in columns.items() if kind.name == "json"}
            return File(path, key=key, version=version, columns=declared)

        return make


def _natural(text, kind):
    return text if kind.name == "json" else natural(text, kind)


_TYPES = {
    "decimal": pa.decimal256(60, 20),
    "uuid": pa.uuid(),
    "time": pa.time64("us"),
    "interval": pa.duration("us"),
    "json": pa.string(),
    "array of integer": pa.list_(pa.int64()),
    "array of text": pa.list_(pa.string()),
}
