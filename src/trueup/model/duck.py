"""DuckDB, as every part that works with it wants it: its settings, its hash of a record, its word for Ctrl-C."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

# They meet as BIGINT.
INTEGERS: Final = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
# Decimals of so many digits are one whole number of 64 bits.
DECIMAL_DIGITS_MAX: Final = 18
# Tells a right record's hash from a left one's, so that two equal records of one side are no pair.
SALT: Final = 0x9E3779B97F4A7C15
# It wants about this much for each of its threads.
_THREAD_MB: Final = 128


def settings(memory_mb: int, spill: str) -> dict[str, Any]:
    """For `duckdb.connect`. memory_mb: what it may take; the rest goes to files in the folder `spill`."""
    return {
        "memory_limit": f"{memory_mb}MB",
        "threads": max(1, min(os.cpu_count() or 1, memory_mb // _THREAD_MB)),
        "temp_directory": spill,
        "preserve_insertion_order": False,
        "autoinstall_known_extensions": False,
    }


def hashable(column: str, type_: str) -> str:
    """Arguments of `hash` for a column (SQL) of a DuckDB type.

    DuckDB hashes text in blocks of eight bytes, and two changes at the ends of two blocks often cancel out. So text
    is hashed twice, the second time shifted by half a block: what cancels out in one does not in the other. Text of a
    column with a collation is hashed past it. Of a wide decimal the two halves cancel out where they are alike, as in
    0 and in the number just below; so its text is hashed.
    """
    if type_ == "VARCHAR":
        return f"encode({column}), '~~~~'::BLOB || encode({column})"
    if type_ == "BLOB":
        return f"{column}, '~~~~'::BLOB || {column}"
    if type_.startswith("DECIMAL(") and int(type_[8:].partition(",")[0]) > DECIMAL_DIGITS_MAX:
        return hashable(f"CAST({column} AS VARCHAR)", "VARCHAR")
    return f"CAST({column} AS BIGINT)" if type_ in INTEGERS else column


def hash_of(columns: Sequence[tuple[str, str]]) -> str:
    """The 64-bit hash of a record by its columns, each with its DuckDB type; there may be none."""
    return f"hash({', '.join(['0', *(hashable(*each) for each in columns)])})"


@contextmanager
def interruptible() -> Iterator[None]:
    """DuckDB ends what it does at Ctrl-C, but raises an error of no kind of its own."""
    try:
        yield
    except RuntimeError as failure:
        if str(failure) == "Query interrupted":
            raise KeyboardInterrupt from failure
        raise
