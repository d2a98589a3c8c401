"""Parquet files of two sides matched by DuckDB where they lie, by one join of key and hash.

Only records in doubt are read once more. What DuckDB does not prove equal is no difference yet: the caller judges it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Final

import duckdb
import pyarrow as pa

from trueup.errors import BadInput, IncompleteScan, TrueupError
from trueup.model.duck import INTEGERS, SALT, hash_of, interruptible, settings
from trueup.model.record import Projection
from trueup.sides.files.chunk import CHUNK_ROWS, Chunk, numbered
from trueup.sides.files.opening import check_unchanged, state_of
from trueup.sides.files.parquet import ArrowValues, Parquet, kind_of_type

# Values of these types that are equal have equal canonical texts …
_PLAIN: Final = (
    "BOOLEAN", "FLOAT", "DOUBLE", "DATE", "TIMESTAMP", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE", "VARCHAR", "BLOB",
    "UUID",
)  # fmt: skip
# … and unequal values of these may have too, so that they are no keys.
_NO_KEY: Final = ("FLOAT", "DOUBLE", "TIMESTAMP_NS")
# Where more keys are in doubt for each MB of memory, whoever reads all records keeps to it better.
_DOUBTS_MAX: Final = 4_000


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
    """The two sides matched; None where DuckDB does not read every value exactly as it is read here, or much differs.

    Where DuckDB fails, too: whoever reads the files says what is wrong with them.
    """
    halves = (left, right)
    if any(set("*?[") & set(str(path)) for half in halves for path in half.form.files):
        return None
    with ExitStack() as held, suppress(duckdb.Error), interruptible():
        spill = held.enter_context(tempfile.TemporaryDirectory(prefix="trueup-", ignore_cleanup_errors=True))
        # A name that is no table must not find a variable of this program.
        config = {**settings(memory_mb, spill), "python_enable_replacements": False}
        database = duckdb.connect(config=config)
        held.callback(database.close)
        types = _types(database, halves)
        if types is not None:
            found = FileMatch(database, halves, types)
            if found.doubts <= _DOUBTS_MAX * memory_mb:
                found.held = held.pop_all()
                return found
    return None


class FileMatch:
    """left, right: records of each side. same: keys that have one record on each side, with equal hashes.

    doubts: other keys. Table `odd`: k0… of these, l and r, their records on each side. held: what is closed with it.
    """

    def __init__(self, database: duckdb.DuckDBPyConnection, halves: tuple[Half, Half], types: Sequence[str]) -> None:
        self._database, self._halves = database, halves
        self._states = {path: state_of(path) for half in halves for path in half.form.files}
        self._cursors: list[duckdb.DuckDBPyConnection] = []
        self._stopped = False
        self._keys = [
            [
                f"CAST({half.column(field.source)} AS {type_})"
                for field, type_ in zip(half.asked.key, types, strict=False)
            ]
            for half in halves
        ]
        self.held = ExitStack()
        self.left, self.right = (self._numbers(f"SELECT count(*) FROM {half.table}")[0] for half in halves)
        self._join(types[len(self._keys[0]) :])
        self._check()
        self.doubts, of_left = self._numbers("SELECT count(*), sum(l) FROM odd")
        self.same = self.left - of_left

    def left_records(self) -> Iterator[pa.RecordBatch]:
        """Every left record whose key is not surely the same, as scans deliver them and in their order."""
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
        """Closes DuckDB and removes what it spilled; safe to call twice."""
        self.held.close()

    def _join(self, types: Sequence[str]) -> None:
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
        self._database.execute("DROP TABLE told")
        # From here on each side is read by one thread, so that records come in the order of the files.
        self._database.execute("SET threads = 1")

    def _group(self, keys: Sequence[str], one: str, two: str) -> None:
        listed = ", ".join(keys)
        self._database.execute(
            f"""CREATE TABLE odd AS
                SELECT {listed}, count_if(of_left)::BIGINT AS l, count_if(NOT of_left)::BIGINT AS r FROM (
                  SELECT {listed}, h, true AS of_left FROM ({one})
                  UNION ALL SELECT {listed}, xor(h, {SALT}::UBIGINT), false FROM ({two})
                ) GROUP BY {listed} HAVING NOT (count(*) = 2 AND bit_xor(h) = {SALT})"""
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
            for batch in self._batches(f"SELECT {columns} FROM {half.table} SEMI JOIN odd ON {same}", half.label):
                values = {name: ArrowValues(each, None) for name, each in zip(sources, batch.columns, strict=True)}
                chunk = Chunk(half.form, half.form.files[0], numbered(found, batch.num_rows), values)
                found += batch.num_rows
                yield half.deliver(chunk, half.asked)
        self._check()
        if found != expected:
            raise IncompleteScan(f"{half.label} changed while it was read.", hint="Read it again when it is complete.")

    def _batches(self, sql: str, label: str) -> Iterator[pa.RecordBatch]:
        """One cursor for each reader: both sides are read at once."""
        with self._database.cursor() as cursor, _trouble(label):
            self._cursors.append(cursor)
            if self._stopped:
                return
            yield from cursor.sql(sql).to_arrow_reader(CHUNK_ROWS)

    def _check(self) -> None:
        for path, state in self._states.items():
            check_unchanged(path, state)


def _types(database: duckdb.DuckDBPyConnection, halves: tuple[Half, Half]) -> list[str] | None:
    """What each pair of columns, key first, is read as; None where one can't be."""
    one, two = (_described(database, half) for half in halves)
    left, right = (half.asked for half in halves)
    types: list[str] = []
    for a, b in zip((*left.key, *left.fields), (*right.key, *right.fields), strict=True):
        type_ = _common(one[a.source], two[b.source]) if a.source in one and b.source in two else ""
        if not type_ or not a.rule.exact or (len(types) < len(left.key) and type_ in _NO_KEY):
            return None
        types.append(type_)
    return types if all(field.source in one for field in left.columns) else None


def _described(database: duckdb.DuckDBPyConnection, half: Half) -> dict[str, str]:
    """DuckDB's type of each column that it reads exactly as it is read here, by the side's name.

    Without those that are asked for as another kind than they have: texts that mean numbers are equal in more ways.
    """
    schemas = half.form.schemas()
    if any(len({name.casefold() for name in schema.names}) < len(schema.names) for schema in schemas):
        return {}  # DuckDB does not tell such names apart
    nothing = database.sql(f"SELECT * FROM {half.table} LIMIT 0")
    told = dict(zip(nothing.columns, map(str, nothing.types), strict=True))
    read = nothing.to_arrow_table().schema
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
            f"reading {label} ran out of memory or of room for its files.",
            hint="Give it more memory, set TMPDIR to a directory with more room, or compare with --strategy rows.",
        ) from failure
    except duckdb.Error:
        raise BadInput(
            f"{label}: records can't be read.", hint="Compare with --strategy rows, which says which."
        ) from None
