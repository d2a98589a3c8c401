"""Keys that an engine can't hold are not asked for; those that it can hold are found, to the end of each type."""

from __future__ import annotations

import pytest

from sql_tables import Tables, key, projection
from trueup.model.kinds import kind_named
from trueup.model.record import Field, Projection

# Declared type, kind that is asked for, canonical text.
BEYOND = [
    ("time(3)", "time", "-00:00:01"),
    ("time", "time", "838:59:59"),
    ("time", "time", "24:00:00.000001"),
    ("time", "time", "24:00:01"),
    ("time", "time", "99999999999:00:00"),
    ("time", "time", "12:00:00+02:00"),
    ("time(0)", "time", "23:59:59.999999"),
    ("time", "text", "-00:00:01"),
    ("timetz", "time", "-00:00:01+00:00"),
    ("timetz", "time", "12:00:00+16:00"),
    ("timetz", "time", "12:00:00+99:00"),
    ("timetz", "time", "12:00:00"),
    ("timetz", "time", "25:00:00+00:00"),
    ("date", "date", "-4713-11-23"),
    ("date", "date", "-4714-01-01"),
    ("date", "date", "+5874898-01-01"),
    ("date", "date", "+9999999-01-01"),
    ("date", "date", "-999999-01-01"),
    ("date", "timestamp without zone", "+5874898-01-01T00:00:00"),
    ("date", "timestamp without zone", "2026-01-01T00:00:01"),
    ("timestamp", "timestamp without zone", "-4713-11-23T23:59:59.999999"),
    ("timestamp", "timestamp without zone", "+294277-01-01T00:00:00"),
    ("timestamp(0)", "timestamp without zone", "+294276-12-31T23:59:59.999999"),
    ("timestamptz", "timestamp with zone", "-4713-11-23T00:00:00Z"),
    ("timestamptz", "timestamp with zone", "+294277-01-01T00:00:00Z"),
    ("smallint", "integer", "40000"),
    ("bigint", "integer", "9223372036854775808"),
    ("bigint", "decimal", "0.5"),
    ("oid", "integer", "-1"),
    ("oid", "integer", "4294967296"),
    ("real", "float", "1e+300"),
    ("real", "float", "1e-300"),
    ("real", "decimal", "1" + "0" * 300),
    ("real", "decimal", "0." + "0" * 300 + "1"),
    ("double precision", "decimal", "1" + "0" * 400),
    ("double precision", "decimal", "0." + "0" * 400 + "1"),
    ("numeric", "decimal", "1" + "0" * 131_072),
    ("numeric", "decimal", "0." + "0" * 16_383 + "1"),
    ("numeric(5,2)", "decimal", "1" + "0" * 131_072),
    ("money", "decimal", "1" + "0" * 30),
    ("money", "decimal", "nan"),
    ("money", "decimal", "infinity"),
    ("money", "decimal", "0.001"),
    ("interval", "interval", "P99999999999M"),
    ("interval", "interval", "P2147483648M"),
    ("interval", "interval", "PT99999999999999999S"),
    ("uuid", "text", "nothing of that kind"),
    ("text", "text", "a\0b"),
    ("boolean", "integer", "2"),
    ("bytea", "bytes", ""),
    ("jsonb", "json", '"\\u0000"'),
    ("jsonb", "json", '"\\ud800"'),
    ("jsonb", "json", "1" + "0" * 131_072),
    ("smallint[]", "array of integer", '["40000"]'),
    ("smallint[]", "array of integer", '["!x"]'),
    ("smallint[]", "array of decimal", '["0.5"]'),
    ("bigint[]", "array of integer", '["9223372036854775808"]'),
    ("inet[]", "array of text", '["nowhere"]'),
    ("money[]", "array of decimal", '["nan"]'),
    ("text[]", "array of text", '["a\\u0000b"]'),
    ("time[]", "array of time", '["-00:00:01"]'),
    ("date[]", "array of date", '["+5874898-01-01"]'),
    ("smallint[]", "array of integer", '[["1"],["1","2"]]'),
    ("smallint[]", "array of integer", '[["1"],"2"]'),
    ("smallint[]", "array of integer", "[[[[[[[" + '"1"' + "]]]]]]]"),
]  # fmt: skip
# Declared type, value, kind that is asked for, canonical text.
ENDS = [
    ("time", "'24:00:00'", "time", "24:00:00"),
    ("time", "'00:00:00'", "time", "00:00:00"),
    ("timetz", "'12:00:00+02'", "time", "12:00:00+02:00"),
    ("timetz", "'12:00:00-15:59:59'", "time", "12:00:00-15:59:59"),
    ("date", "'4714-11-24 BC'", "date", "-4713-11-24"),
    ("date", "'5874897-12-31'", "date", "+5874897-12-31"),
    ("date", "'infinity'", "date", "infinity"),
    ("date", "'5874897-12-31'", "timestamp without zone", "+5874897-12-31T00:00:00"),
    ("timestamp", "'4714-11-24 BC'", "timestamp without zone", "-4713-11-24T00:00:00"),
    ("timestamp", "'294276-12-31 23:59:59.999999'", "timestamp without zone", "+294276-12-31T23:59:59.999999"),
    ("timestamptz", "'4714-11-24 00:00:00+00 BC'", "timestamp with zone", "-4713-11-24T00:00:00Z"),
    ("oid", "4294967295", "integer", "4294967295"),
    ("real", "'3.4028235e38'", "float", "3.4028235e+38"),
    ("real", "'1e-45'", "float", "1e-45"),
    ("money", "'-92233720368547758.08'", "decimal", "-92233720368547758.08"),
    ("numeric", "'infinity'", "decimal", "infinity"),
    ("interval", "'178000000 years'", "interval", "P2136000000M"),
    ("jsonb", "'{\"a\": 1.50}'", "json", '{"a":1.5}'),
    ("numeric", "1e131071 + 1e-16383", "decimal", "1" + "0" * 131_071 + "." + "0" * 16_382 + "1"),
    ("interval", "'2147483647 days'", "interval", "PT185542587100800S"),
    ("interval", "'-1 month -00:00:00.000001'", "interval", "P-1MT-0.000001S"),
    ("jsonb", "'{\"u\": \"\\\\u0000\"}'", "json", '{"u":"\\\\u0000"}'),
    ("smallint[]", "'{1,NULL}'", "array of integer", '["1",null]'),
    ("smallint[]", "'{{1,2},{3,NULL}}'", "array of integer", '[["1","2"],["3",null]]'),
    ("smallint[]", "'{}'", "array of integer", "[]"),
    ("smallint[]", "'{1}'", "array of decimal", '["1"]'),
    ("inet[]", "'{10.0.0.1}'", "array of text", '["10.0.0.1/32"]'),
    ("text[]", """'{"a,\\"b",""}'""", "array of text", '["a,\\"b",""]'),
]  # fmt: skip


@pytest.mark.postgres
@pytest.mark.parametrize(("declared", "kind", "text"), BEYOND, ids=[f"{a}-{b}-{c[:30]!a}" for a, b, c in BEYOND])
def test_what_postgresql_can_not_hold_is_not_sought(on_postgres: Tables, declared: str, kind: str, text: str) -> None:
    assert not _found(on_postgres, declared, kind, text)


@pytest.mark.parametrize(("declared", "kind", "text"), [
    ("time", "time", "-00:00:01"),
    ("time", "time", "838:59:59"),
    ("time", "time", "24:00:01"),
    ("time", "text", "-00:00:01"),
    ("timetz", "time", "12:00:00+16:00"),
    ("interval", "interval", "P99999999999M"),
    ("interval", "interval", "PT99999999999999999S"),
    ("json", "json", '"\\ud800"'),
    ("time[]", "array of time", '["-00:00:01"]'),
    ("float", "float", "1e+300"),
])  # fmt: skip
def test_what_duckdb_can_not_hold_is_not_sought(on_duckdb: Tables, declared: str, kind: str, text: str) -> None:
    assert not _found(on_duckdb, declared, kind, text)


@pytest.mark.mariadb
def test_what_mariadb_can_not_hold_is_not_sought(on_mariadb: Tables) -> None:
    assert not _found(on_mariadb, "float", "float", "1e+300")


def _found(tables: Tables, declared: str, kind: str, text: str) -> bool:
    """With a row in the table: an engine may not look at a value that it compares with none."""
    name = tables.table(f"id {declared}")
    tables.execute(f"INSERT INTO {tables.quoted(name)} VALUES (NULL)")
    side = tables.side(name, key="id")
    return bool(side.read(Projection((Field("id", "id", kind_named(kind)),), ()), [key(text)]))


@pytest.mark.postgres
@pytest.mark.parametrize(("declared", "value", "kind", "text"), ENDS, ids=[f"{a}-{d[:30]!a}" for a, _, _, d in ENDS])
def test_what_postgresql_holds_is_found(on_postgres: Tables, declared: str, value: str, kind: str, text: str) -> None:
    name = on_postgres.table(f"id {declared}")
    on_postgres.execute(f'INSERT INTO "{name}" VALUES ({value})')
    side = on_postgres.side(name, key="id")
    assert list(side.read(Projection((Field("id", "id", kind_named(kind)),), ()), [key(text)])) == [key(text)]


@pytest.mark.mariadb
@pytest.mark.parametrize("type_", ["date", "datetime", "timestamp NULL"])
def test_what_is_read_as_null_is_found_as_null(on_mariadb: Tables, type_: str) -> None:
    """Given dates that do not exist and are read as null, alone and in a key of two columns, I expect them by null."""
    partly = "2023-00-10" if type_ == "date" else "0000-00-00"
    alone, nulls = (on_mariadb.table(f"d {type_}, n int") for _ in range(2))
    on_mariadb.execute("SET sql_mode = ''")
    on_mariadb.execute(f"INSERT INTO `{alone}` VALUES ('{partly}', 1), ('2023-01-10', 2), ('0000-00-00', 1)")
    on_mariadb.execute(f"INSERT INTO `{nulls}` VALUES ('{partly}', 1), (NULL, 2), ('2023-01-10', 3)")
    day = "2023-01-10" if type_ == "date" else "2023-01-10T00:00:00" + ("Z" if "stamp" in type_ else "")

    single = on_mariadb.side(alone, key="d", zero_date="null")
    asked = projection(single, "n", key=("d",))
    found = single.read(asked, [key(None), key(day)])
    assert {each: (row.values["n"], row.copies) for each, row in found.items()} == {
        key(None): ("1", 2),
        key(day): ("2", 1),
    }
    double = on_mariadb.side(nulls, key=["d", "n"], zero_date="null")
    asked = projection(double, key=("d", "n"))
    wanted = [key(None, "1"), key(None, "2"), key(day, "3")]
    assert sorted(double.read(asked, [*wanted, key(None, "3"), key(day, "1")])) == sorted(wanted)
    strict = on_mariadb.side(nulls, key=["d", "n"], zero_date="strict")
    assert list(strict.read(projection(strict, key=("d", "n")), wanted[:2])) == wanted[1:2]
