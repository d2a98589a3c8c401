"""Parquet files of two sides matched by DuckDB where they lie, by one join of key and hash.

Only records in doubt are read once more. What DuckDB does not prove equal is no difference yet: the caller judges it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Final

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from trueup.errors import BadInput, IncompleteScan, TrueupError
from trueup.model.duck import INTEGERS, hash_of
from trueup.model.record import Projection
from trueup.sides.files.chunk import CHUNK_ROWS, Chunk, numbered
from trueup.sides.files.opening import check_unchanged, state_of
from trueup.sides.files.parquet import ArrowValues, Parquet, kind_of_type

# DuckDB wants about this much for each of its threads.
_THREAD_MB: Final = 128
# Types that are hashed as they are: equal values have equal canonical texts.
_PLAIN: Final = (
    "BOOLEAN", "FLOAT", "DOUBLE", "DATE", "TIMESTAMP", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE", "VARCHAR", "BLOB",
    "UUID",
)  # fmt: skip
# Unequal values of these may have equal canonical texts, so that they can't be matched by.
_NO_KEY: Final = ("FLOAT", "DOUBLE", "TIMESTAMP_NS")
# Tells a right record's hash from a left one's, so that two equal records of one side are no pair.
_SALT: Final = 0x9E3779B97F4A7C15


@dataclass(frozen=True, slots=True)
class Half:
    """One of the two sides. names: what the files call a column, by the side's name for it.

    deliver: a chunk of its records as its scan delivers them.
    """

    label: str
    form: Parquet
    names: Mapping[str, str]
    asked: Projection
    deliver: Callable[[Chunk, Projection], pa.RecordBatch]

    def column(self, name: str) -> str:
        """A column by the side's name for it, in SQL."""
        return 's."' + self.names[name].replace('"', '""') + '"'

    @property
    def table(self) -> str:
        """The files as `s`, in SQL."""
        paths = ", ".join("'" + str(path).replace("'", "''") + "'" for path in self.form.files)
        return f"read_parquet([{paths}], hive_partitioning = false) AS s"


def match(left: Half, right: Half, memory_mb: int) -> FileMatch | None:
    """The two sides matched; None where DuckDB does not read each value exactly as it is read here."""
    halves = (left, right)
    if any(set("*?[") & set(str(path)) for half in halves for path in half.form.files):
        return None
    with ExitStack() as held:
        found = FileMatch(halves, memory_mb)
        held.callback(found.close)
        # Where DuckDB fails, whoever reads the files says what is wrong with them.
        with suppress(duckdb.Error):
            if found.begin():
                held.pop_all()
                return found
    return None


class FileMatch:
    """left, right: records of each side. same: keys that have one record on each side, with equal hashes.

    Table `odd`: k0… of every other key, l and r, its records on each side.
    """

    left: int
    right: int
    same: int

    def __init__(self, halves: tuple[Half, Half], memory_mb: int) -> None:
        self._halves = halves
        self._label = " and ".join(half.label for half in halves)
        self._states = {path: state_of(path) for half in halves for path in half.form.files}
        self._keys: tuple[list[str], list[str]] = [], []
        self._cursors: list[duckdb.DuckDBPyConnection] = []
        self._stopped = False
        self._held = ExitStack()
        spill = self._held.enter_context(tempfile.TemporaryDirectory(prefix="trueup-", ignore_cleanup_errors=True))
        self._database = duckdb.connect(
            config={
                "memory_limit": f"{memory_mb}MB",
                "threads": max(1, min(os.cpu_count() or 1, memory_mb // _THREAD_MB)),
                "temp_directory": spill,
                "preserve_insertion_order": False,
                "autoinstall_known_extensions": False,
                # A name that is no table must not find a variable of this program.
                "python_enable_replacements": False,
            }
        )
        self._held.callback(self._database.close)

    def begin(self) -> bool:
        """Joins; False where DuckDB reads something otherwise, or not at all."""
        types = self._types()
        if types is None:
            return False
        keys = len(self._halves[0].asked.key)
        for half, found in zip(self._halves, self._keys, strict=True):
            found += [
                f"CAST({half.column(field.source)} AS {type_})"
                for field, type_ in zip(half.asked.key, types[:keys], strict=True)
            ]
        self._join(types[keys:])
        self._check()
        return True

    def left_records(self) -> Iterator[pa.RecordBatch]:
        """Every left record whose key is not surely the same, as scans deliver them."""
        return self._records(0, self.left - self.same)

    def right_records(self) -> Iterator[pa.RecordBatch]:
        """The same of the right side."""
        return self._records(1, self.right - self.same)

    def stop(self) -> None:
        """Ends what DuckDB is doing. May be called by another thread."""
        self._stopped = True
        for cursor in self._cursors:
            with suppress(duckdb.ConnectionException):  # it is at its end
                cursor.interrupt()

    def close(self) -> None:
        """Closes DuckDB and removes what it spilled."""
        self._held.close()

    def _types(self) -> list[str] | None:
        """What each pair of columns, key first, is read as; None where one can't be."""
        one, two = (_described(self._database, half) for half in self._halves)
        left, right = (half.asked for half in self._halves)
        types: list[str] = []
        for a, b in zip((*left.key, *left.fields), (*right.key, *right.fields), strict=True):
            type_ = _common(one[a.source], two[b.source]) if a.source in one and b.source in two else ""
            if not type_ or not a.rule.exact or (len(types) < len(left.key) and type_ in _NO_KEY):
                return None
            types.append(type_)
        return types if all(field.source in one for field in left.columns) else None

    def _join(self, types: Sequence[str]) -> None:
        self.left, self.right = (self._numbers(f"SELECT count(*) FROM {half.table}")[0] for half in self._halves)
        one, two = (self._hashed(at, types) for at in (0, 1))
        keys = [f"k{place}" for place in range(len(self._keys[0]))]
        hidden = ", ".join(f"CASE WHEN NOT sure THEN coalesce(a.{key}, b.{key}) END AS {key}" for key in keys)
        alike = " AND ".join(f"a.{key} = b.{key}" for key in keys)
        self._database.execute(
            f"""CREATE TABLE told AS SELECT sure, {", ".join(keys)}, count(l)::BIGINT AS l, count(r)::BIGINT AS r FROM (
                  SELECT coalesce(a.h = b.h, false) AS sure, {hidden}, a.h AS l, b.h AS r
                  FROM ({one}) AS a FULL JOIN ({two}) AS b ON {alike}) GROUP BY sure, {", ".join(keys)}"""
        )
        if self._numbers("SELECT sum(l), sum(r) FROM told") == (self.left, self.right):
            self._database.execute(f"CREATE TABLE odd AS SELECT {', '.join(keys)}, l, r FROM told WHERE NOT sure")
        else:
            # A record has met two others: a key is there twice.
            self._group(keys, one, two)
        self.same = self.left - self._numbers("SELECT sum(l) FROM odd")[0]

    def _group(self, keys: Sequence[str], one: str, two: str) -> None:
        listed = ", ".join(keys)
        self._database.execute(
            f"""CREATE TABLE odd AS
                SELECT {listed}, count_if(of_left)::BIGINT AS l, count_if(NOT of_left)::BIGINT AS r FROM (
                  SELECT {listed}, h, true AS of_left FROM ({one})
                  UNION ALL SELECT {listed}, xor(h, {_SALT}::UBIGINT), false FROM ({two})
                ) GROUP BY {listed} HAVING NOT (count(*) = 2 AND bit_xor(h) = {_SALT})"""
        )

    def _numbers(self, sql: str) -> tuple[int, ...]:
        row = self._database.execute(sql).fetchone() or ()
        return tuple(int(each or 0) for each in row)

    def _hashed(self, at: int, types: Sequence[str]) -> str:
        half = self._halves[at]
        keys = [f"{key} AS k{place}" for place, key in enumerate(self._keys[at])]
        fields = [half.column(field.source) for field in half.asked.fields]
        return f"SELECT {', '.join(keys)}, {hash_of(list(zip(fields, types, strict=True)))} AS h FROM {half.table}"

    def _records(self, at: int, expected: int) -> Iterator[pa.RecordBatch]:
        half, found = self._halves[at], 0
        sources = list(dict.fromkeys(field.source for field in half.asked.columns))
        columns = ", ".join(f"{half.column(source)} AS c{place}" for place, source in enumerate(sources))
        same = " AND ".join(f"{key} IS NOT DISTINCT FROM odd.k{place}" for place, key in enumerate(self._keys[at]))
        if expected:
            for batch in self._batches(f"SELECT {columns} FROM {half.table} SEMI JOIN odd ON {same}"):
                values = {name: ArrowValues(each, None) for name, each in zip(sources, batch.columns, strict=True)}
                chunk = Chunk(half.form, half.form.files[0], numbered(found, batch.num_rows), values)
                found += batch.num_rows
                yield half.deliver(chunk, half.asked)
        self._check()
        if found != expected:
            raise IncompleteScan(f"{half.label} changed while it was read.", hint="Read it again when it is complete.")

    def _batches(self, sql: str) -> Iterator[pa.RecordBatch]:
        """One cursor for each reader: both sides are read at once."""
        with self._database.cursor() as cursor, _trouble(self._label):
            self._cursors.append(cursor)
            if self._stopped:
                return
            yield from cursor.sql(sql).to_arrow_reader(CHUNK_ROWS)

    def _check(self) -> None:
        for path, state in self._states.items():
            check_unchanged(path, state)


def _described(database: duckdb.DuckDBPyConnection, half: Half) -> dict[str, str]:
    """DuckDB's type of each column that it reads exactly as it is read here, by the side's name.

    Without those that are asked for as another kind than they have: texts that mean numbers are equal in more ways.
    """
    schemas = [pq.read_schema(path) for path in half.form.files]
    reader = database.sql(f"SELECT * FROM {half.table}")
    # Names that differ in case only are changed by DuckDB.
    told = dict(zip(reader.columns, map(str, reader.types), strict=True))
    read = database.sql(f"SELECT * FROM {half.table} LIMIT 0").to_arrow_table().schema
    otherwise = {
        field.source
        for field in half.asked.columns
        if field.kind != kind_of_type(schemas[0].field(half.names[field.source]).type)
    }
    return {
        name: told[own]
        for name, own in half.names.items()
        if own in told and name not in otherwise
        and all(_alike(schema.field(own).type, read.field(own).type) for schema in schemas)
    }  # fmt: skip


def _alike(here: pa.DataType, there: pa.DataType) -> bool:
    """Whether what is read as one Arrow type here and as another by DuckDB has the same values in both."""
    types = pa.types
    if types.is_dictionary(here):
        return _alike(here.value_type, there)
    if types.is_timestamp(here) and types.is_timestamp(there):
        return (here.tz is None) == (there.tz is None) and (
            here.unit == there.unit or (here.unit in ("s", "ms") and there.unit == "us")
        )
    if types.is_large_string(here) or isinstance(here, pa.UuidType):
        return types.is_string(there)
    if types.is_large_binary(here) or types.is_fixed_size_binary(here):
        return types.is_binary(there)
    return here == there


def _common(a: str, b: str) -> str:
    """The DuckDB type that values of two types are hashed and matched as; "" where there is none."""
    if a in INTEGERS and b in INTEGERS:
        return "BIGINT"
    return a if a == b and (a in _PLAIN or a.startswith("DECIMAL(")) else ""


@contextmanager
def _trouble(label: str) -> Iterator[None]:
    """Errors of DuckDB in our words, never its text, which may hold values."""
    try:
        yield
    except (duckdb.OutOfMemoryException, duckdb.IOException) as failure:
        raise TrueupError(
            f"matching {label} ran out of memory or of room for its files.",
            hint="Give it more memory, or set TMPDIR to a directory with more room.",
        ) from failure
    except duckdb.Error as failure:
        raise BadInput(
            f"{label}: records can't be read.", hint="Compare with --strategy rows, which says which."
        ) from failure
