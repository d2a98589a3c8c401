"""SQLite, DuckDB, PostgreSQL, MySQL and MariaDB as sides."""

from trueup.sides.sql.side import Sql

__all__ = ["Sql"]
