"""Values that readers get wrong, one list for each type of each engine, with the canonical text each one has.

Written down by hand, so that no reader is its own judge. The texts follow docs/concepts/canonical-values.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from trueup.model import kinds as k
from trueup.model.kinds import Kind

FLOAT32: Final = Kind("float", bits=32)
NINES: Final = "99999999999999999999999999999999999999"


@dataclass(frozen=True)
class Nasty:
    """A type with some of its values. declared: as the engine spells it. values: SQL literal and canonical text."""

    name: str
    declared: str
    kind: Kind
    values: Sequence[tuple[str, str | None]]


def _same(*texts: str) -> list[tuple[str, str | None]]:
    return [(f"'{text}'", text) for text in texts]


_NULL: Final[tuple[str, str | None]] = ("NULL", None)
_TEXTS: Final = [*_same("", "Ann ", " x", "NULL", "ä€😀", "a,b;c", 'say "so"', "12", "0"), ("'it''s'", "it's"), _NULL]

POSTGRES: Final = [
    Nasty("boolean", "boolean", k.BOOLEAN, [*_same("true", "false"), _NULL]),
    Nasty("smallint", "smallint", k.INTEGER, [*_same("-32768", "32767"), _NULL]),
    Nasty("integer", "integer", k.INTEGER, [*_same("-2147483648", "2147483647"), _NULL]),
    Nasty("bigint", "bigint", k.INTEGER, [*_same("-9223372036854775808", "9223372036854775807", "0"), _NULL]),
    Nasty(
        "numeric(12,2)",
        "numeric(12,2)",
        k.DECIMAL,
        [
            ("1.50", "1.5"),
            ("-0.00", "0"),
            ("9999999999.99", "9999999999.99"),
            ("'NaN'", "nan"),
            _NULL,
        ],
    ),
    Nasty(
        "numeric",
        "numeric",
        k.DECIMAL,
        [
            ("1.50", "1.5"),
            ("0.12345678901", "0.12345678901"),
            ("0.00000000000000000001", "0.00000000000000000001"),
            (NINES, NINES),
            (f"{NINES}9.5", f"{NINES}9.5"),
            ("'NaN'", "nan"),
            ("'Infinity'", "infinity"),
            ("'-Infinity'", "-infinity"),
            _NULL,
        ],
    ),
    Nasty(
        "real",
        "real",
        FLOAT32,
        [
            ("'0.1'", "0.1"),
            ("'-0'", "0"),
            ("'16777217'", "16777216"),
            ("'NaN'", "nan"),
            ("'Infinity'", "infinity"),
            _NULL,
        ],
    ),
    Nasty(
        "double precision",
        "double precision",
        k.FLOAT,
        [
            ("'0.1'", "0.1"),
            ("'0.30000000000000004'", "0.30000000000000004"),
            ("'5e-324'", "5e-324"),
            ("'1.7976931348623157e308'", "1.7976931348623157e+308"),
            ("'NaN'", "nan"),
            ("'-Infinity'", "-infinity"),
            _NULL,
        ],
    ),
    Nasty("text", "text", k.TEXT, [*_TEXTS, (r"E'a\tb\nc\r\\N'", "a\tb\nc\r\\N"), (r"'\N'", "\\N")]),
    Nasty(
        "bytea",
        "bytea",
        k.BYTES,
        [
            (r"'\x'", ""),
            (r"'\x00'", "00"),
            (r"'\x00ff0a0d5c2c22'", "00ff0a0d5c2c22"),
            _NULL,
        ],
    ),
    Nasty("uuid", "uuid", k.UUID, [*_same("5f1d9e3a-0c4b-4e6f-8a7b-2c3d4e5f6071"), _NULL]),
    Nasty(
        "date",
        "date",
        k.DATE,
        [
            *_same("2024-02-29", "0001-01-01", "9999-12-31", "infinity", "-infinity"),
            ("'10000-01-01'", "+10000-01-01"),
            ("'0044-03-15 BC'", "-0043-03-15"),
            ("'5874897-12-31'", "+5874897-12-31"),
            _NULL,
        ],
    ),
    Nasty("time", "time", k.TIME, [*_same("00:00:00", "23:59:59.999999", "24:00:00"), _NULL]),
    Nasty(
        "timetz",
        "timetz",
        k.TIME,
        [("'08:15:00.5+02'", "08:15:00.5+02:00"), ("'08:15-11:30'", "08:15:00-11:30"), _NULL],
    ),
    Nasty(
        "timestamp",
        "timestamp",
        k.TIMESTAMP,
        [
            ("'2024-02-29 12:00:00.000001'", "2024-02-29T12:00:00.000001"),
            ("'1969-12-31 23:59:59.999999'", "1969-12-31T23:59:59.999999"),
            ("'1600-01-01 00:00'", "1600-01-01T00:00:00"),
            ("'9999-12-31 23:59:59.999999'", "9999-12-31T23:59:59.999999"),
            *_same("infinity", "-infinity"),
            ("'0044-03-15 12:00 BC'", "-0043-03-15T12:00:00"),
            ("'294276-12-31 23:59:59.999999'", "+294276-12-31T23:59:59.999999"),
            _NULL,
        ],
    ),
    Nasty(
        "timestamptz",
        "timestamptz",
        k.INSTANT,
        [
            ("'2024-05-01 12:00:00+02'", "2024-05-01T10:00:00Z"),
            ("'1600-01-01 00:00Z'", "1600-01-01T00:00:00Z"),
            *_same("infinity", "-infinity"),
            ("'0044-03-15 12:00Z BC'", "-0043-03-15T12:00:00Z"),
            ("'10000-01-01 00:00Z'", "+10000-01-01T00:00:00Z"),
            _NULL,
        ],
    ),
    Nasty(
        "interval",
        "interval",
        k.INTERVAL,
        [
            ("'1 year 1 day 0.5 s'", "P12MT86400.5S"),
            ("'-1 month 1 day'", "P-1MT86400S"),
            ("'0'", "PT0S"),
            ("'178000000 years'", "P2136000000M"),
            _NULL,
        ],
    ),
    Nasty(
        "json",
        "json",
        k.JSON,
        [
            ("""'{"b": 2, "a": 1.0}'""", '{"a":1,"b":2}'),
            ("'null'", "null"),
            ("'1e400'", "1" + 400 * "0"),
            ("'0.12345678901234567890123'", "0.12345678901234567890123"),
            (r"""'"\u00e4"'""", '"ä"'),
            ("""'{"a":1,"a":2}'""", '!{"a":1,"a":2}'),
            _NULL,
        ],
    ),
    Nasty(
        "jsonb",
        "jsonb",
        k.JSON,
        [
            ("""'{"b": [], "a": null}'""", '{"a":null,"b":[]}'),
            ("'12345678901234567890.5'", "12345678901234567890.5"),
            _NULL,
        ],
    ),
    Nasty(
        "integer[]",
        "integer[]",
        Kind("array", item=k.INTEGER),
        [("'{1,NULL,3}'", '["1",null,"3"]'), ("'{}'", "[]"), _NULL],
    ),
    Nasty(
        "text[]",
        "text[]",
        Kind("array", item=k.TEXT),
        [
            ("""ARRAY['a,b', '"q"', NULL, '', 'NULL']""", '["a,b","\\"q\\"",null,"","NULL"]'),
            _NULL,
        ],
    ),
    Nasty("inet", "inet", k.TEXT, [*_same("192.168.0.1/24", "10.0.0.1", "::1"), _NULL]),
]

MARIADB: Final = [
    Nasty("tinyint(1)", "tinyint(1)", k.INTEGER, [*_same("0", "1", "2", "-1"), _NULL]),
    Nasty("bigint", "bigint", k.INTEGER, [*_same("-9223372036854775808", "9223372036854775807"), _NULL]),
    Nasty("bigint unsigned", "bigint unsigned", k.INTEGER, [*_same("0", "18446744073709551615"), _NULL]),
    Nasty(
        "decimal(12,2)",
        "decimal(12,2)",
        k.DECIMAL,
        [("1.50", "1.5"), ("-0.00", "0"), ("9999999999.99", "9999999999.99"), _NULL],
    ),
    Nasty(
        "decimal(65,30)",
        "decimal(65,30)",
        k.DECIMAL,
        [
            ("0.12345678901", "0.12345678901"),
            ("0.000000000000000000000000000001", "0.000000000000000000000000000001"),
            (f"{NINES[:35]}.5", f"{NINES[:35]}.5"),
            _NULL,
        ],
    ),
    Nasty("float", "float", FLOAT32, [("0.1", "0.1"), ("1234567.9", "1234567.9"), ("16777217", "16777216"), _NULL]),
    Nasty(
        "double",
        "double",
        k.FLOAT,
        [
            ("0.1e0", "0.1"),
            ("0.30000000000000004e0", "0.30000000000000004"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            _NULL,
        ],
    ),
    Nasty(
        "varchar",
        "varchar(50) CHARACTER SET utf8mb4",
        k.TEXT,
        [*_TEXTS, ("'a\\tb\\nc\\\\N'", "a\tb\nc\\N"), ("'a\\0b'", "a\0b")],
    ),
    Nasty("text latin1", "text CHARACTER SET latin1", k.TEXT, [*_same("äß"), _NULL]),
    Nasty("varbinary", "varbinary(20)", k.BYTES, [("''", ""), ("x'00ff0a5c'", "00ff0a5c"), _NULL]),
    Nasty(
        "date",
        "date",
        k.DATE,
        [
            *_same("2024-02-29", "1000-01-01", "9999-12-31"),
            ("'0000-00-00'", "!0000-00-00"),
            ("'2023-00-10'", "!2023-00-10"),
            _NULL,
        ],
    ),
    Nasty(
        "datetime(6)",
        "datetime(6)",
        k.TIMESTAMP,
        [
            ("'2024-02-29 12:00:00.000001'", "2024-02-29T12:00:00.000001"),
            ("'1000-01-01'", "1000-01-01T00:00:00"),
            ("'9999-12-31 23:59:59.999999'", "9999-12-31T23:59:59.999999"),
            ("'0000-00-00'", "!0000-00-00 00:00:00.000000"),
            _NULL,
        ],
    ),
    Nasty(
        "timestamp(6)",
        "timestamp(6) NULL",
        k.INSTANT,
        [
            ("'1970-01-02 00:00:00'", "1970-01-02T00:00:00Z"),
            ("'2038-01-19 03:14:07.999999'", "2038-01-19T03:14:07.999999Z"),
            _NULL,
        ],
    ),
    Nasty(
        "time(6)",
        "time(6)",
        k.TIME,
        [
            ("'23:59:59.999999'", "23:59:59.999999"),
            ("'-838:59:59'", "-838:59:59"),
            ("'838:59:59.5'", "838:59:59.5"),
            ("'-00:00:01'", "-00:00:01"),
            _NULL,
        ],
    ),
    Nasty("year", "year", k.INTEGER, [("2024", "2024"), ("0", "0"), _NULL]),
    Nasty("bit(8)", "bit(8)", k.INTEGER, [("b'00000001'", "1"), ("b'11111111'", "255"), _NULL]),
    Nasty("json", "json", k.JSON, [("""'{"b": 2, "a": 1.0}'""", '{"a":1,"b":2}'), ("'null'", "null"), _NULL]),
    Nasty("uuid", "uuid", k.UUID, [*_same("5f1d9e3a-0c4b-4e6f-8a7b-2c3d4e5f6071"), _NULL]),
    Nasty("enum", "enum('a','b','')", k.ENUM, [*_same("a", "b", ""), _NULL]),
]

# A column of SQLite holds what it was given, whatever its declared type; the last ones are of several types.
SQLITE: Final = [
    Nasty(
        "integer",
        "INTEGER",
        k.INTEGER,
        [("-9223372036854775808", "-9223372036854775808"), ("9223372036854775807", "9223372036854775807"), _NULL],
    ),
    Nasty(
        "real",
        "REAL",
        k.FLOAT,
        [
            ("0.1", "0.1"),
            ("0.30000000000000004", "0.30000000000000004"),
            ("9e999", "infinity"),
            ("5e-324", "5e-324"),
            _NULL,
        ],
    ),
    Nasty(
        "text", "TEXT", k.TEXT, [*_TEXTS, ("'a' || char(0) || 'b'", "a\0b"), ("'a' || char(10, 9) || 'b'", "a\n\tb")]
    ),
    Nasty("blob", "BLOB", k.BYTES, [("x''", ""), ("x'00ff0a5c'", "00ff0a5c"), _NULL]),
    Nasty("date as text", "DATE", k.DATE, [*_same("2024-02-29", "0001-01-01"), _NULL]),
    Nasty("nulls, then text", "TEXT", k.TEXT, [*[_NULL] * 2000, ("'late'", "late")]),
    Nasty(
        "numbers as text",
        "DECIMAL",
        k.DECIMAL,
        [("1", "1"), ("1.5", "1.5"), ("'many'", "!many"), _NULL],
    ),
    Nasty("integers and text", "INTEGER", k.INTEGER, [("1", "1"), ("'many'", "!many"), ("'007a'", "!007a"), _NULL]),
]

ENGINES: Final[Mapping[str, Sequence[Nasty]]] = {"postgres": POSTGRES, "mariadb": MARIADB, "sqlite": SQLITE}
