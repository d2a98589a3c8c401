"""Where a state store on PostgreSQL is: server, database and schema, from one URL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg import conninfo, sql

from trueup.errors import StateError

SCHEMA_DEFAULT: Final = "trueup"
# As libpq spells them; the last is SQLAlchemy's.
_SCHEMES: Final = dict.fromkeys(("postgresql", "postgres", "postgresql+psycopg"), "postgresql")
_SCHEMA_BYTES_MAX: Final = 63
# What a URL may override: give up on a server that does not answer, and notice one that went away.
_DEFAULTS: Final[Mapping[str, Any]] = {
    "application_name": "trueup",
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}


@dataclass(frozen=True, slots=True)
class Address:
    """One schema of one database.

    parameters: for psycopg.connect; may hold a password, so they are never shown. label: for people.
    """

    parameters: Mapping[str, Any]
    schema: str
    label: str

    @property
    def quoted_schema(self) -> str:
        """The schema as it stands in a statement."""
        return sql.Identifier(self.schema).as_string(None)


def parse(url: str) -> Address:
    """The address that `postgresql://user@host:port/database?schema=trueup` names.

    Every other option of the query is libpq's own. Raises StateError, which never shows the URL's password.
    """
    try:
        split = urlsplit(url)
        options = dict(parse_qsl(split.query, keep_blank_values=True, strict_parsing=bool(split.query)))
        schema = options.pop("schema", SCHEMA_DEFAULT)
        plain = urlunsplit(split._replace(scheme=_SCHEMES[split.scheme], query=urlencode(options)))
        parameters: dict[str, Any] = {**_DEFAULTS, **conninfo.conninfo_to_dict(plain)}
    except (ValueError, KeyError, psycopg.Error):
        # The driver's own words would quote the URL, and with it the password.
        raise StateError(
            "The URL of the state store can't be read.",
            hint="Write state as postgresql://user@host:5432/database; within a user name or password write "
            "@ as %40, / as %2F and # as %23.",
        ) from None
    if not schema or len(schema.encode()) > _SCHEMA_BYTES_MAX or "\0" in schema:
        raise StateError("The schema of the state store has no usable name.", hint="Write it as ?schema=trueup.")
    place = f"{parameters.get('host', 'local socket')}:{parameters.get('port', 5432)}"
    return Address(parameters, schema, f"PostgreSQL at {place}, database {parameters.get('dbname', 'by user name')}")
