"""Every type of every SQL engine, with the values at which readers break, against texts written by hand.

Each value is read by a scan (native, canonical) and by key; all must give the same text. Then it is written
back from that text and must read the same.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from sql_tables import Tables
from trueup.model.columns import texts
from trueup.model.kinds import DECIMAL, INSTANT, INTEGER, TEXT, UUID, Kind, common_kind, kind_named
from trueup.model.record import Field, Projection, key_text
from trueup.ports import Write
from trueup.sides.sql import Sql

POSTGRES = [
    # declared type, value in SQL, kind, canonical text
    ("boolean", "true", "boolean", "true"),
    ("boolean", "false", "boolean", "false"),
    ("smallint", "-32768", "integer", "-32768"),
    ("integer", "2147483647", "integer", "2147483647"),
    ("bigint", "9223372036854775807", "integer", "9223372036854775807"),
    ("bigint", "'-9223372036854775808'", "integer", "-9223372036854775808"),
    ("oid", "4294967295", "integer", "4294967295"),
    ("numeric", "1.500", "decimal", "1.5"),
    ("numeric", "'NaN'", "decimal", "nan"),
    ("numeric", "'-Infinity'", "decimal", "-infinity"),
    ("numeric", "1e40 + 0.000000000000000000001", "decimal", f"1{'0' * 40}.000000000000000000001"),
    ("numeric(12,3)", "100", "decimal(12,3)", "100"),
    ("numeric(12,3)", "'NaN'", "decimal(12,3)", "nan"),
    ("numeric(50,20)", "0.00000000000000000001", "decimal(50,20)", "0.00000000000000000001"),
    ("numeric(3,-2)", "12345", "decimal", "12300"),
    ("money", "'12.50'::numeric::money", "decimal", "12.5"),
    ("real", "0.1", "float32", "0.1"),
    ("real", "16777216", "float32", "16777216"),
    ("real", "1e-45", "float32", "1e-45"),
    ("double precision", "0.1::float8 + 0.2::float8", "float", "0.30000000000000004"),
    ("double precision", "'-0'", "float", "0"),
    ("double precision", "41.0 / 256", "float", "0.16015625"),
    ("double precision", "5e-324", "float", "5e-324"),
    ("double precision", "'NaN'", "float", "nan"),
    ("double precision", "'-Infinity'", "float", "-infinity"),
    ("text", "''", "text", ""),
    ("text", r"E'a\tb\n\"c\",\\N'", "text", 'a\tb\n"c",\\N'),
    ("text", "'  x '", "text", "  x "),
    ("text", r"E'\r\n'", "text", "\r\n"),
    ("varchar(20)", "'Zoë 😀'", "text", "Zoë 😀"),
    ("char(5)", "'ab'", "text", "ab"),
    ("char(5)", "' ab'", "text", " ab"),
    ("char(5)", "''", "text", ""),
    ("name", "'pg_class'", "text", "pg_class"),
    ("xml", "'<a/>'", "text", "<a/>"),
    ("inet", "'10.0.0.1'", "text", "10.0.0.1"),
    ("cidr", "'10.0.0.0/8'", "text", "10.0.0.0/8"),
    ("bit(4)", "B'0101'", "text", "0101"),
    ("int4range", "'[1,5)'", "text", "[1,5)"),
    ("bytea", r"'\x00ff5c'", "bytes", "00ff5c"),
    ("bytea", r"'\x'", "bytes", ""),
    ("uuid", "'F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6'", "uuid", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
    ("date", "'2024-02-29'", "date", "2024-02-29"),
    ("date", "'infinity'", "date", "infinity"),
    ("date", "'0044-03-15 BC'", "date", "-0043-03-15"),
    ("date", "'0001-12-31 BC'", "date", "0000-12-31"),
    ("date", "'5874897-12-31'", "date", "+5874897-12-31"),
    ("time", "'24:00'", "time", "24:00:00"),
    ("time(3)", "'12:30:00.1256'", "time", "12:30:00.126"),
    ("timetz", "'12:30:00-05:30'", "time", "12:30:00-05:30"),
    ("timestamp", "'2026-03-29 02:30:00.000001'", "timestamp without zone", "2026-03-29T02:30:00.000001"),
    ("timestamp", "'infinity'", "timestamp without zone", "infinity"),
    ("timestamp", "'0044-03-15 12:00 BC'", "timestamp without zone", "-0043-03-15T12:00:00"),
    ("timestamp", "'294276-12-31 23:59:59.999999'", "timestamp without zone", "+294276-12-31T23:59:59.999999"),
    ("timestamptz", "'2026-01-02 03:04:05+02'", "timestamp with zone", "2026-01-02T01:04:05Z"),
    ("timestamptz", "'-infinity'", "timestamp with zone", "-infinity"),
    ("timestamptz", "'10000-01-01 00:00:00.5+00'", "timestamp with zone", "+10000-01-01T00:00:00.5Z"),
    ("timestamptz", "'1890-01-01 00:00:00 Europe/Paris'", "timestamp with zone", "1889-12-31T23:50:39Z"),
    ("interval", "'0'", "interval", "PT0S"),
    ("interval", "'1 year 2 months 3 days 04:05:06.789'", "interval", "P14MT273906.789S"),
    ("interval", "'-1 month 1 day'", "interval", "P-1MT86400S"),
    ("interval", "'-00:00:00.5'", "interval", "PT-0.5S"),
    ("json", """'{"b": 1.0, "a": [1e2, "\\u00e9"]}'""", "json", '{"a":[100,"é"],"b":1}'),
    ("jsonb", "'null'", "json", "null"),
    ("jsonb", "'12345678901234567890.10'", "json", "12345678901234567890.1"),
    ("integer[]", "'{1,NULL,-3}'", "array of integer", '["1",null,"-3"]'),
    ("integer[]", "'{{1,2},{3,4}}'", "array of integer", '[["1","2"],["3","4"]]'),
    ("text[]", """'{"a,b","q\\"q",NULL,"NULL",""}'""", "array of text", '["a,b","q\\"q",null,"NULL",""]'),
    ("numeric[]", "'{1.50,NaN}'", "array of decimal", '["1.5","nan"]'),
    ("timestamptz[]", "'{2026-01-02 03:04:05+02,infinity}'", "array of timestamp with zone",
     '["2026-01-02T01:04:05Z","infinity"]'),
    ("bytea[]", r"ARRAY['\x00ff'::bytea]", "array of bytes", '["00ff"]'),
    ("jsonb[]", """ARRAY['{"b":1,"a":[]}'::jsonb]""", "array of json", '["{\\"a\\":[],\\"b\\":1}"]'),
    ("mood", "'so so'", "enum", "so so"),
    ("mood[]", "'{\"so so\",NULL}'", "array of enum", '["so so",null]'),
    ("amount", "7", "decimal(9,2)", "7"),
]  # fmt: skip
MARIADB = [
    ("tinyint(1)", "2", "integer", "2"),
    ("boolean", "TRUE", "integer", "1"),
    ("tinyint", "-128", "integer", "-128"),
    ("smallint unsigned", "65535", "integer", "65535"),
    ("mediumint", "-8388608", "integer", "-8388608"),
    ("int(5) zerofill", "42", "integer", "42"),
    ("bigint", "-9223372036854775808", "integer", "-9223372036854775808"),
    ("bigint unsigned", "18446744073709551615", "integer", "18446744073709551615"),
    ("bit(1)", "b'1'", "integer", "1"),
    ("bit(64)", "18446744073709551615", "integer", "18446744073709551615"),
    ("year", "2026", "integer", "2026"),
    ("year", "0", "integer", "0"),
    ("decimal(12,3)", "1.500", "decimal(12,3)", "1.5"),
    ("decimal(38,10)", "-0.0000000001", "decimal(38,10)", "-0.0000000001"),
    ("decimal(65,30)", f"1{'0' * 34}.{'0' * 29}1", "decimal(65,30)", f"1{'0' * 34}.{'0' * 29}1"),
    ("float", "0.1", "float32", "0.1"),
    ("float", "16777217", "float32", "16777216"),
    ("float", "3.4028234e38", "float32", "3.4028235e+38"),
    ("float", "1234567.9", "float32", "1234567.9"),
    ("double", "0.1 + 0.2e0", "float", "0.30000000000000004"),
    ("double", "41.0 / 256", "float", "0.16015625"),
    ("double", "-0e0", "float", "0"),
    ("double", "2.2250738585072014e-308", "float", "2.2250738585072014e-308"),
    ("double", "-1.7976931348623157e308", "float", "-1.7976931348623157e+308"),
    ("varchar(30)", "''", "text", ""),
    ("varchar(30)", "'trailing  '", "text", "trailing  "),
    ("varchar(30)", r"'a\tb\n\"c\",\\N'", "text", 'a\tb\n"c",\\N'),
    ("varchar(30)", r"'nul\0in'", "text", "nul\0in"),
    ("varchar(30) CHARACTER SET utf8mb4", "'Zoë 😀'", "text", "Zoë 😀"),
    ("varchar(30) CHARACTER SET latin1", "'Zoë'", "text", "Zoë"),
    ("char(5)", "'ab  '", "text", "ab"),
    ("char(5)", "''", "text", ""),
    ("tinytext", "'x'", "text", "x"),
    ("longtext", "REPEAT('é\"', 300000)", "text", 'é"' * 300_000),
    ("varbinary(10)", "x'00ff5c'", "bytes", "00ff5c"),
    ("binary(3)", "x'00ff'", "bytes", "00ff00"),
    ("blob", "''", "bytes", ""),
    ("longblob", r"x'5c4e'", "bytes", "5c4e"),
    ("uuid", "'F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6'", "uuid", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
    ("inet6", "'::1'", "text", "::1"),
    ("date", "'2024-02-29'", "date", "2024-02-29"),
    ("date", "'9999-12-31'", "date", "9999-12-31"),
    ("date", "'0000-00-00'", "date", "!0000-00-00"),
    ("date", "'2023-00-10'", "date", "!2023-00-10"),
    ("time", "'838:59:59'", "time", "838:59:59"),
    ("time(6)", "'-838:59:58.500000'", "time", "-838:59:58.5"),
    ("time(2)", "'12:30:00.126'", "time", "12:30:00.12"),
    ("datetime(6)", "'2026-03-29 02:30:00.000001'", "timestamp without zone", "2026-03-29T02:30:00.000001"),
    ("datetime", "'0000-00-00 00:00:00'", "timestamp without zone", "!0000-00-00 00:00:00"),
    ("datetime", "'2023-07-00 08:15:00'", "timestamp without zone", "!2023-07-00 08:15:00"),
    ("timestamp(6) NULL", "'2026-01-02 03:04:05.000006'", "timestamp with zone", "2026-01-02T03:04:05.000006Z"),
    ("timestamp NULL", "'0000-00-00 00:00:00'", "timestamp with zone", "!0000-00-00 00:00:00"),
    ("json", """'{"b": 1.0, "a": [1e2]}'""", "json", '{"a":[100],"b":1}'),
    ("enum('so so','well')", "'so so'", "enum", "so so"),
    ("enum('so so','well')", "0", "enum", ""),
    ("set('a','b','c')", "'a,c'", "text", "a,c"),
    ("point", "ST_GeomFromText('POINT(1 2)')", "text", "POINT(1 2)"),
]  # fmt: skip
SQLITE = [
    ("BOOLEAN", "1", "boolean", "true"),
    ("BOOLEAN", "'F'", "boolean", "false"),
    ("BOOLEAN", "2", "boolean", "!2"),
    ("INTEGER", "9223372036854775807", "integer", "9223372036854775807"),
    ("INTEGER", "'7'", "integer", "7"),
    ("INTEGER", "'x'", "integer", "!x"),
    ("INTEGER", "1.5", "integer", "!1.5"),
    ("BIGINT UNSIGNED", "1", "integer", "1"),
    ("DECIMAL(10,2)", "1.50", "decimal", "1.5"),
    ("DECIMAL(10,2)", "100", "decimal", "100"),
    ("NUMERIC", "'12,5'", "decimal", "!12,5"),
    ("REAL", "0.1 + 0.2", "float", "0.30000000000000004"),
    ("REAL", "9e999", "float", "infinity"),
    ("DOUBLE PRECISION", "-0.0", "float", "0"),
    ("TEXT", "''", "text", ""),
    ("VARCHAR(5)", "'007 '", "text", "007 "),
    ("CHAR(5)", "'ab  '", "text", "ab  "),
    ("TEXT", "CAST(x'61ff62' AS TEXT)", "text", "a\\xffb"),
    ("TEXT", "5", "text", "5"),
    ("", "5", "text", "5"),
    ("", "5.5", "text", "5.5"),
    ("", "x'00ff'", "text", "00ff"),
    ("BLOB", "x'00ff'", "bytes", "00ff"),
    ("BLOB", "x''", "bytes", ""),
    ("UUID", "'F81D4FAE7DEC11D0A76500A0C91E6BF6'", "uuid", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
    ("UUID", "x'F81D4FAE7DEC11D0A76500A0C91E6BF6'", "uuid", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
    ("DATE", "'2024-02-29'", "date", "2024-02-29"),
    ("DATE", "'2024-02-30'", "date", "!2024-02-30"),
    ("TIME", "'12:30'", "time", "12:30:00"),
    ("DATETIME", "'2026-01-02 03:04:05.000600'", "timestamp without zone", "2026-01-02T03:04:05.0006"),
    ("DATETIME", "'2026-01-02'", "timestamp without zone", "2026-01-02T00:00:00"),
    ("TIMESTAMP", "1767323045", "timestamp without zone", "!1767323045"),
    ("TIMESTAMPTZ", "'2026-01-02T03:04:05+02:00'", "timestamp with zone", "2026-01-02T01:04:05Z"),
    ("TIMESTAMPTZ", "'2026-01-02 03:04:05'", "timestamp with zone", "!2026-01-02 03:04:05"),
    ("JSON", """'{"b": 1.0, "a": [1e2]}'""", "json", '{"a":[100],"b":1}'),
    ("INTERVAL", "'P1Y2M'", "interval", "P14M"),
]  # fmt: skip


def _named(cases: list[Any]) -> list[Any]:
    return [
        pytest.param(*case, id=f"{case[0]}-{case[1][:40].encode('ascii', 'backslashreplace').decode()}")
        for case in cases
    ]


def _projection(side: Sql, field: str, *, native: bool, kind: Kind | None = None) -> Projection:
    column = side.describe().column(field)
    assert column is not None
    asked = kind or column.kind
    return Projection(
        (Field("id", "id", INTEGER),),
        (Field(field, field, asked, native=native and column.native and asked == column.kind),),
    )


def _scanned(side: Sql, projection: Projection) -> dict[str, str | None]:
    answer: dict[str, str | None] = {}
    for batch in side.scan(projection):
        columns = [texts(array, field) for array, field in zip(batch.columns, projection.columns, strict=True)]
        answer.update(zip(*columns, strict=True))
    return answer


def _check(tables: Tables, declared: str, value: str, kind: str, text: str) -> None:
    name = tables.table(f"id int, value {declared}")
    tables.execute(f"INSERT INTO {tables.quoted(name)} VALUES (1, {value})")
    tables.execute(f"INSERT INTO {tables.quoted(name)} VALUES (2, NULL)")
    side = tables.side(name, key="id", zero_date="strict")
    column = side.describe().column("value")
    assert column is not None
    assert str(column.kind) == kind
    keys = [key_text([number]) for number in ("1", "2", "3")]
    for native in (True, False):
        projection = _projection(side, "value", native=native)
        assert _scanned(side, projection) == {"1": text, "2": None}
        found = side.read(projection, keys)
        assert {key: each.values["value"] for key, each in found.items()} == {keys[0]: text, keys[1]: None}
    # As text, no engine's own spelling shows.
    assert _scanned(side, _projection(side, "value", native=False, kind=TEXT)) == {"1": text, "2": None}
    if declared in ("point", "enum('so so','well')", "TIMESTAMP", "") and text in ("POINT(1 2)", "", "00ff"):
        return  # what no canonical text can be put back as: geometry, an invalid enum, a type that nobody declared
    written = side.apply(projection, [Write(keys[2], {"value": text}, "")])
    assert written[0].landed
    assert written[0].replica is not None
    assert written[0].replica.values["value"] == text


@pytest.mark.postgres
@pytest.mark.parametrize(("declared", "value", "kind", "text"), _named(POSTGRES))
def test_postgresql(on_postgres: Tables, declared: str, value: str, kind: str, text: str) -> None:
    if declared.startswith("mood"):
        on_postgres.execute("DROP TYPE IF EXISTS mood CASCADE")
        on_postgres.execute("CREATE TYPE mood AS ENUM ('so so', 'well')")
    if declared == "amount":
        on_postgres.execute("DROP DOMAIN IF EXISTS amount CASCADE")
        on_postgres.execute("CREATE DOMAIN amount AS numeric(9,2) CHECK (VALUE > 0)")
    _check(on_postgres, declared, value, kind, text)


@pytest.mark.mariadb
@pytest.mark.parametrize(("declared", "value", "kind", "text"), _named(MARIADB))
def test_mariadb(on_mariadb: Tables, declared: str, value: str, kind: str, text: str) -> None:
    on_mariadb.execute("SET sql_mode = ''")  # a strict server would not let the worst values in
    _check(on_mariadb, declared, value, kind, text)


@pytest.mark.parametrize(("declared", "value", "kind", "text"), _named(SQLITE))
def test_sqlite(on_sqlite: Tables, declared: str, value: str, kind: str, text: str) -> None:
    _check(on_sqlite, declared, value, kind, text)


@pytest.mark.postgres
@pytest.mark.mariadb
def test_a_record_travels_through_all_engines_unchanged(
    on_postgres: Tables, on_mariadb: Tables, on_sqlite: Tables
) -> None:
    """Given a record of every kind in PostgreSQL, copied on from engine to engine, I expect what I began with."""
    kinds = {
        "id": INTEGER, **{name: kind_named(name) for name in ("boolean", "integer", "decimal(30,8)", "float", "text",
        "bytes", "uuid", "date", "time", "timestamp", "instant", "interval", "json", "array of integer")},
    }  # fmt: skip
    rows = [
        {
            "id": "1", "boolean": "true", "integer": "-9223372036854775808", "decimal(30,8)": "1234567890123.00000001",
            "float": "1.7976931348623157e+308", "text": 'a "b"\n\\N ', "bytes": "00ff", "date": "9999-12-31",
            "uuid": "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "time": "23:59:59.999999",
            "timestamp": "1969-12-31T23:59:59.999999", "instant": "2026-10-25T01:30:00Z", "interval": "P14MT1.5S",
            "json": '{"a":[1,2.5]}', "array of integer": '["1",null]',
        },
        {"id": "2", **dict.fromkeys(list(kinds)[1:])},
    ]  # fmt: skip
    first = on_postgres.make(kinds, ["id"], None, rows)
    sides = [first, *(tables.make(kinds, ["id"]) for tables in (on_mariadb, on_sqlite, on_postgres))]
    keys = [key_text([row["id"]]) for row in rows]
    for source, target in pairwise(sides):
        fields = [
            Field(left.name, left.name, common_kind(left, right)[0])
            for left, right in zip(source.describe().columns, target.describe().columns, strict=True)
        ]
        projection = Projection((fields[0],), tuple(fields[1:]))
        found = source.read(projection, keys)
        written = target.apply(projection, [Write(key, found[key].values, "") for key in keys])
        assert [each.replica.values for each in written if each.replica] == [found[key].values for key in keys]
    assert [dict(found[key].values) for key in keys] == rows


@pytest.mark.parametrize(("declared", "spelled", "kind", "text"), [
    ("text", "7.0", DECIMAL, "7"),
    ("text", " 2026-01-02 03:04:05.50+02 ", INSTANT, "2026-01-02T01:04:05.5Z"),
    ("varchar(50)", "{F81D4FAE-7DEC-11d0-a765-00A0C91E6BF6}", UUID, "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
])  # fmt: skip
def test_a_key_is_found_however_it_is_spelled(
    tables: Tables, declared: str, spelled: str, kind: Kind, text: str
) -> None:
    name = tables.table(f"code {declared}, n int")
    tables.execute(f"INSERT INTO {tables.quoted(name)} VALUES ('{spelled}', 1)")
    side = tables.side(name, key="code")
    projection = Projection((Field("code", "code", kind),), (Field("n", "n", INTEGER),))
    assert side.read(projection, [key_text([text])])[key_text([text])].values == {"code": text, "n": "1"}
    assert side.apply(projection, [Write(key_text([text]), {"n": "2"}, None)])[0].landed
    assert side.read(projection, [key_text([text])])[key_text([text])].values == {"code": text, "n": "2"}
