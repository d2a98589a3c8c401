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

SCHEMES: Final = ("postgresql", "postgres", "mysql", "mariadb", "sqlite")
FORMATS: Final[Mapping[str, str]] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
PACKED: Final = (".gz", ".zst", ".zstd", ".zip")
DATABASE_FILES: Final = (".db", ".sqlite", ".sqlite3")
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9.-]*)(\+[A-Za-z0-9_]+)?://")
_PASSWORD: Final = re.compile(r"(?<=://)([^/@]*?):(.*)@(?=[^@]*$)", re.DOTALL)
_SQLITE: Final = re.compile(r"(sqlite(?:\+\w+)?:///)(?!/|:memory:|$)(.*)", re.DOTALL)


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


def parse_location(text: str, *, format: str | None = None) -> TableLocation | FileLocation:  # noqa: A002
    """What `text` names; ConfigError where it is neither the URL of a database nor a file of a known format.

    format: of a file, where its suffix does not say it.
    """
    if found := _SCHEME.match(text):
        if found[1].lower() not in SCHEMES:
            raise ConfigError(
                f"{hide_password(text)}: there is no system {found[1]}://.",
                hint=did_you_mean(found[1], [f"{scheme}://" for scheme in SCHEMES], "Systems"),
            )
        return _table_location(text)
    path, mark, table = text.partition("#")
    if PurePath(path).suffix.lower() in DATABASE_FILES:
        return _table_location(f"sqlite:///{path}{mark}{table}")
    if format is None and mark and _format_of(text) is None:
        raise ConfigError(f"{text}: a table is named, but {path} is no database.", hint=_KNOWN)
    chosen = format or _format_of(text)
    if chosen is None:
        raise ConfigError(f"{text}: its suffix does not say what it holds.", hint=_KNOWN)
    return FileLocation(text, chosen)


_KNOWN: Final = (
    f"Files end in {', '.join(FORMATS)} packed or not ({', '.join(PACKED)}), or name their --format; "
    "tables are written like orders.db#orders or postgresql://user@host/shop#orders."
)


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


def absolute_sqlite(url: str, folder: Path) -> str:
    """`url` with the relative path of an SQLite file made to start at `folder`; any other URL as it is."""
    found = _SQLITE.match(url)
    return f"{found[1]}{folder.absolute() / found[2]}" if found else url


def open_side(
    location: str,
    *,
    key: Sequence[str] = (),
    version: str | None = None,
    where: str | None = None,
    zone: str | None = None,
    kinds: Mapping[str, str] | None = None,
    **file_options: Any,
) -> Side:
    """The side that `location` names; nothing is read from it yet, except the tables where none is named.

    kinds: kinds of columns by name. file_options: format, encoding, delimiter, quote, decimal, thousands, null.
    Raises ConfigError for what is no location or does not fit it.
    """
    given = {name: value for name, value in file_options.items() if value is not None}
    found = parse_location(location, format=given.get("format"))
    if isinstance(found, FileLocation):
        given["format"] = found.format
        return open_file(found.path, key=key, version=version, where=where, zone=zone, columns=kinds, **given)
    if given:
        raise ConfigError(f"{found.label}: {next(iter(given))} is an option of files.", hint="Leave it out for tables.")
    if found.table is None:
        raise _no_table(found)
    return open_table(found.url, found.table, key=key, version=version, where=where, zone=zone, columns=kinds)


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
