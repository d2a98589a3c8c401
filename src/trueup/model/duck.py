"""What DuckDB's hash is given for a value; every part that lets DuckDB hash asks here.

DuckDB hashes text in blocks of eight bytes, and two changes at the ends of two blocks often cancel out. So text is
hashed twice, the second time shifted by half a block: what cancels out in one does not in the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

# They meet as BIGINT.
INTEGERS: Final = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")


def hashable(column: str, type_: str) -> str:
    """Arguments of `hash` for a column (SQL) of a DuckDB type."""
    match type_:
        case "VARCHAR":
            return f"{column}, '~~~~' || {column}"
        case "BLOB":
            return f"{column}, '~~~~'::BLOB || {column}"
        case _:
            return f"CAST({column} AS BIGINT)" if type_ in INTEGERS else column


def hash_of(columns: Sequence[tuple[str, str]]) -> str:
    """The 64-bit hash of a record by its columns, each with its DuckDB type; there may be none."""
    return f"hash({', '.join(['0', *(hashable(*each) for each in columns)])})"
