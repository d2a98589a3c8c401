"""MariaDB: what it holds, and how its tables are made."""

from __future__ import annotations

import random
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

import sqlalchemy as sa

from trueup.model.numbers import ODD
from trueup.testing.pairs.engines.database import Server
from trueup.testing.pairs.engines.engine import Table
from trueup.testing.pairs.types import (
    Holds,
    Type,
    day,
    finite,
    hours,
    letters,
    narrow,
    numeric,
    octets,
    packed_uuid,
    plain,
    signed,
    told,
    unsigned,
    written,
    years,
)


def _number(text: str, chance: random.Random) -> int:
    return int(text == "true")


def _unhex(text: str, chance: random.Random) -> bytes:
    return bytes.fromhex(text)


def _known_variant(text: str) -> bool:
    """MariaDB refuses UUIDs of high versions and low variants."""
    return text[14] < "8" or text[19] >= "9"


def _basic(text: str) -> bool:
    return len(text) <= 190 and all(letter <= "\uffff" for letter in text)


_ZERO_DATES: Final = ("!0000-00-00", "!2023-00-10", "!0000-00-00 00:00:00", "!2023-07-00 08:15:00")


def _zero_or(inner: Holds) -> Holds:
    return lambda text: text in _ZERO_DATES if text.startswith(ODD) else inner(text)


_DATED: Final = years("0001", "9999-12-32")
_SECONDS: Final = years("0001", "9999-12-32", 0)
_SINCE_1970: Final = ("1970-01-01T00:00:01", "2038-01-19T03:14:07.9Z")
MARIADB: Final = (
    Type("tinyint(1)", "boolean", spell=_number),
    Type("bit(1)", "boolean", spell=_number),
    Type("tinyint", "integer", signed(8)),
    Type("mediumint", "integer", signed(24)),
    Type("int", "integer", signed(32)),
    Type("int(10) unsigned zerofill", "integer", unsigned(32)),
    Type("bigint", "integer", signed(64)),
    Type("bigint unsigned", "integer", unsigned(64)),
    Type("decimal(30,0)", "integer", numeric(30, 0), hashed=False),
    Type("decimal(12,2)", "decimal", numeric(12, 2)),
    Type("decimal(38,10)", "decimal", numeric(38, 10)),
    Type("decimal(65,20)", "decimal", numeric(65, 20)),
    Type("double", "float", finite, hashed=False),
    Type("float", "float32", finite, hashed=False, spell=narrow),
    Type("varchar(190) CHARACTER SET utf8mb4", "text", letters(190)),
    Type("varchar(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin", "text", letters(190)),
    Type("varchar(190) CHARACTER SET latin1", "text", letters(190, encoding="latin-1")),
    Type("varchar(190) CHARACTER SET ucs2", "text", _basic),
    Type("char(40) CHARACTER SET utf8mb4", "text", letters(40, padded=True)),
    Type("longtext CHARACTER SET utf8mb4", "text", letters(6000), indexed=False),
    Type("enum('so so','well','Ä','it''s') CHARACTER SET utf8mb4", "enum", hashed=False),
    Type("varchar(20) CHARACTER SET utf8mb4", "enum"),
    Type("varbinary(60)", "bytes", octets(60), spell=_unhex),
    Type("blob", "bytes", spell=_unhex, indexed=False),
    Type("binary(3)", "bytes", octets(3, 3), spell=_unhex),
    Type("uuid", "uuid", _known_variant, spell=plain("uuid")),
    Type("binary(16)", "uuid", told=True, hashed=False, spell=packed_uuid),
    Type("date", "date", _zero_or(years("0001", "9999-12-31")), mistakes=True, zero_dates=True, spell=day),
    Type("time(6)", "time", hours(6), spell=plain("time")),
    Type("time", "time", hours(0), spell=plain("time")),
    Type("datetime(6)", "timestamp", years("0001", "9999-12-32"), spell=day, wall=True),
    Type("datetime", "timestamp", _SECONDS, mistakes=True, zero_dates=True, spell=day, wall=True),
    Type("timestamp(6) NULL", "instant", years(*_SINCE_1970), spell=day),
    Type("timestamp NULL", "instant", years(*_SINCE_1970, 0), spell=day),
    Type("json", "json", spell=written("json"), hashed=False, indexed=False),
    *told("varchar(190) CHARACTER SET utf8mb4", 120, nul=True),
)


class MariaDB(Server):
    """Filled by INSERT of Python values."""

    quote = "`"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        at = sa.make_url(url)
        self._driver = import_module("pymysql")  # an extra
        self._connection = self._driver.connect(
            host=at.host, port=at.port or 3306, user=at.username, password=at.password or "", database=at.database,
            charset="utf8mb4", autocommit=True,
        )  # fmt: skip
        # Strict, but for zero dates.
        self._execute("SET sql_mode = 'STRICT_ALL_TABLES', time_zone = '+00:00'")

    def close(self) -> None:
        """And the one that fills."""
        super().close()
        self._connection.close()

    def _execute(self, sql: str) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(sql)

    def _fill(self, name: str, table: Table, rows: Sequence[Sequence[Any]]) -> None:
        if rows:
            named = ", ".join(map(self.quoted, table.columns)).replace("%", "%%")
            marks = ", ".join(["%s"] * len(table.columns))
            with self._connection.cursor() as cursor:
                sql = f"INSERT INTO {self.quoted(name).replace('%', '%%')} ({named}) VALUES ({marks})"
                cursor.executemany(sql, rows)

    def _duplicate(self) -> type[Exception]:
        duplicate: type[Exception] = self._driver.err.IntegrityError
        return duplicate
