"""Locations: one line of text that says where records are, such as `postgresql://…#orders` or `s*.parquet`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final

from trueup.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from trueup.ports import Side
    from trueup.sides.lake import Delta, Iceberg

SCHEMES: Final = ("postgresql", "postgres", "mysql", "mariadb", "sqlite", "duckdb")
FORMATS: Final[Mapping[str, str]] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
ENGINES: Final = ("spark",)
PACKED: Final = (".gz", ".zst", ".zstd", ".zip")
DATABASE_FILES: Final[Mapping[str, str]] = {
    ".db": "sqlite",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".duckdb": "duckdb",
    ".ddb": "duckdb",
}
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9.-]*)(\+[A-Za-z0-9_]+)?://")
_PASSWORD: Final = re.compile(r"(?<=://)([^/@]*?):(.*)@(?=[^@]*$)", re.DOTALL)
_FILE_URL: Final = re.compile(r"((?:sqlite|duckdb)(?:\+\w+)?:///)(?!/|:memory:|$)(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TableLocation:
    """A table or view of a database; `table` is None where the location does not name one."""

    url: str
    table: str | None

    @property
    def label(self) -> str:
        """The location without its password."""
        shown = hide_password(self.url)
        return shown if self.table is None else f"{shown}#{self.table}"


@dataclass(frozen=True, slots=True)
class FileLocation:
    """A file, or a pattern that names several; format: `csv`, `jsonl` or `parquet`."""

    path: str
    format: str

    @property
    def label(self) -> str:
        """The path as it was given."""
        return self.path


@dataclass(frozen=True, slots=True)
class LakeLocation:
    """A table of a lake. path: of a Delta table, else the catalog of the Iceberg table `table`."""

    path: str
    table: str | None

    @property
    def label(self) -> str:
        """The location as it was given."""
        return f"delta:{self.path}" if self.table is None else f"iceberg:{self.path}#{self.table}"


Location = TableLocation | FileLocation | LakeLocation


def parse_location(text: str, *, format: str | None = None) -> Location:  # noqa: A002
    """What `text` names; ConfigError where it is no URL of a database, table of a lake or file of a known format.

    format: of a file, where its suffix does not say it.
    """
    lake, _, rest = text.partition(":")
    if lake in ("delta", "iceberg"):
        return _lake_location(lake, rest)
    if found := _SCHEME.match(text):
        if found[1].lower() not in SCHEMES:
            raise ConfigError(
                f"{hide_password(text)}: there is no system {found[1]}://.",
                hint=did_you_mean(found[1], [f"{scheme}://" for scheme in SCHEMES], "Systems"),
            )
        return _table_location(text)
    path, mark, table = text.partition("#")
    if scheme := DATABASE_FILES.get(PurePath(path).suffix.lower()):
        return _table_location(f"{scheme}:///{path}{mark}{table}")
    if format is None and mark and _format_of(text) is None:
        raise ConfigError(f"{text}: a table is named, but {path} is no database.", hint=_KNOWN)
    chosen = format or _format_of(text)
    if chosen is None:
        raise ConfigError(f"{text}: its suffix does not say what it holds.", hint=_KNOWN)
    return FileLocation(text, chosen)


_KNOWN: Final = (
    f"Files end in {', '.join(FORMATS)} packed or not ({', '.join(PACKED)}), or name their --format; "
    "tables are written like orders.db#orders, postgresql://user@host/shop#orders or delta:path."
)


def _lake_location(lake: str, rest: str) -> LakeLocation:
    path, mark, table = rest.partition("#")
    if not path or (lake == "iceberg") != bool(table) or (lake == "delta" and mark):
        raise ConfigError(
            f"{lake}:{rest} names no table of a lake.",
            hint="Write delta:path/of/the/table, or iceberg:catalog.db#namespace.table.",
        )
    return LakeLocation(path, table or None)


def _table_location(text: str) -> TableLocation:
    url, _, table = text.partition("#")
    if "#" in table:
        raise ConfigError(
            f"{hide_password(url)}: there is more than one # in this location.",
            hint="One # stands before the table; within a user name or password write it as %23.",
        )
    return TableLocation(url, table or None)


def _format_of(path: str) -> str | None:
    suffixes = [suffix.lower() for suffix in PurePath(path).suffixes]
    while suffixes and suffixes[-1] in PACKED:
        suffixes.pop()
    return FORMATS.get(suffixes[-1]) if suffixes else None


def hide_password(url: str) -> str:
    """`url` with `***` in the place of its password."""
    head, query, options = _PASSWORD.sub(r"\1:***@", url).partition("?")
    return head + query + re.sub(r"(?i)(password|passwd|pwd|secret|token|key)=[^&#]*", r"\1=***", options)


def password_of(url: str) -> str | None:
    """The password as it is written in `url`."""
    found = _PASSWORD.search(url)
    return found[2] or None if found else None


def absolute_url(url: str, folder: Path) -> str:
    """`url` with the relative path of a database file made to start at `folder`; any other URL as it is."""
    found = _FILE_URL.match(url)
    return f"{found[1]}{folder.absolute() / found[2]}" if found else url


def open_side(
    location: str,
    *,
    key: Sequence[str] = (),
    version: str | None = None,
    where: str | None = None,
    zone: str | None = None,
    kinds: Mapping[str, str] | None = None,
    limits: Mapping[str, float] | None = None,
    **file_options: Any,
) -> Side:
    """The side that `location` names; nothing is read from it yet, except the tables where none is named.

    kinds: kinds of columns by name. limits: connections, timeout_s, throttle, for tables.
    file_options: format, encoding, delimiter, quote, decimal, thousands, null.
    Raises ConfigError for what is no location or does not fit it.
    """
    given = {name: value for name, value in file_options.items() if value is not None}
    found = parse_location(location, format=given.get("format"))
    if isinstance(found, FileLocation):
        given["format"] = found.format
        return open_file(found.path, key=key, version=version, where=where, zone=zone, columns=kinds, **given)
    if given:
        raise ConfigError(f"{found.label}: {next(iter(given))} is an option of files.", hint="Leave it out for tables.")
    if isinstance(found, LakeLocation):
        return open_lake(found, key=key, version=version, where=where, zone=zone)
    if found.table is None:
        raise _no_table(found)
    asked: dict[str, Any] = dict(limits or {})
    return open_table(found.url, found.table, key=key, version=version, where=where, zone=zone, columns=kinds, **asked)


def open_on(
    engine: str,
    location: str,
    *,
    key: Sequence[str] = (),
    where: str | None = None,
    format: str | None = None,  # noqa: A002
) -> Side:
    """What `location` names, read by an engine that can match two tables itself; ConfigError where it can't."""
    if engine not in ENGINES:
        raise ConfigError(f"there is no engine {engine}.", hint=f"Engines: {', '.join(ENGINES)}.")
    found = parse_location(location, format=format)
    from trueup.sides.spark import Spark  # noqa: PLC0415  loads Arrow

    if isinstance(found, LakeLocation):
        return Spark(open_lake(found), key=key, where=where)
    if isinstance(found, FileLocation) and found.format == "parquet":
        return Spark(found.path, key=key, where=where)
    raise ConfigError(
        f"{found.label}: Spark reads Parquet files, Delta and Iceberg tables.", hint="Leave out --on spark."
    )


def open_lake(location: LakeLocation, **options: Any) -> Delta | Iceberg:
    """A table of a lake as a side; options as those of `trueup.Delta`, None where not declared."""
    from trueup.sides.lake import Delta, Iceberg  # noqa: PLC0415  loads Arrow

    if location.table is None:
        return Delta(location.path, **_declared(options))
    return Iceberg(location.path, location.table, **_declared(options))


def open_table(url: str, table: str, **options: Any) -> Side:
    """A table of a database as a side; options as those of `trueup.Sql`, None where not declared."""
    from trueup.sides.sql import Sql  # noqa: PLC0415  loads SQLAlchemy

    return Sql(url, table=table, **_declared(options))


def open_file(path: str, **options: Any) -> Side:
    """A file, or several, as a side; options as those of `trueup.File`, None where not declared."""
    from trueup.sides.files import File  # noqa: PLC0415  loads Arrow

    return File(path, **_declared(options))


def _declared(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _no_table(location: TableLocation) -> ConfigError:
    from trueup.sides.sql import Sql  # noqa: PLC0415  loads SQLAlchemy

    with closing(Sql(location.url, table="")) as database:
        names = database.table_names()
    shown = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
    hint = f"Add one of them after a #: {shown}." if names else "There are no tables in it."
    return ConfigError(f"{location.label}: the location names no table.", hint=hint)
