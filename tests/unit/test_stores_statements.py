"""What the statements of the ledger on PostgreSQL are made of."""

from __future__ import annotations

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trueup.errors import StateError
from trueup.model.row import ROW_FIELDS
from trueup.stores.sql.postgresql.address import parse
from trueup.stores.sql.postgresql.statements import flags, numbers, texts
from trueup.stores.sql.schema import COLUMNS, TYPES

_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
_BIGINT = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.postgres
def test_arrays_are_read_as_they_were_meant(postgres_url):
    with psycopg.connect(postgres_url) as connection:

        @settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(st.lists(st.none() | _TEXT), st.lists(st.none() | _BIGINT), st.lists(st.booleans()))
        def check(words, counts, marks):
            asked = (texts(words), numbers(counts), flags(marks))
            found = connection.execute("SELECT %s::text[], %s::bigint[], %s::boolean[]", asked).fetchone()
            assert found == (words, counts, marks)

        check()


def test_nul_which_postgresql_can_not_hold_is_replaced():
    assert texts(["a\0b"]) == '{"a\ufffdb"}'
    assert texts(["", "\0", "c"]) == '{"","\ufffd","c"}'
    assert texts(["\0", None]) == '{"\ufffd",NULL}'


def test_every_column_of_a_row_has_its_type():
    types = dict(zip(COLUMNS, TYPES, strict=True))
    assert set(types) == {*ROW_FIELDS, "ready_at"}
    assert {types[name] for name in ("wish_version", "done_at", "fence", "ready_at")} == {"bigint"}
    assert {types[name] for name in ("refetch", "rejected")} == {"boolean"}
    assert {types[name] for name in ("state", "key", "wish_payload", "attempted")} == {"text"}


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_an_address(scheme):
    address = parse(f"{scheme}://me:a%40b%2Fc@db.example:5433/shop?schema=my%20state&sslmode=require")
    assert address.schema == "my state"
    assert address.quoted_schema == '"my state"'
    assert (address.parameters["password"], address.parameters["sslmode"]) == ("a@b/c", "require")
    assert address.label == "PostgreSQL at db.example:5433, database shop"


def test_an_address_has_a_schema_of_its_own_and_gives_up_on_a_silent_server():
    address = parse("postgresql://db.example/shop")
    assert address.schema == "trueup"
    assert int(address.parameters["connect_timeout"]) == 10
    assert int(parse("postgresql://db.example/shop?connect_timeout=3").parameters["connect_timeout"]) == 3


def test_a_bad_address_does_not_show_its_password():
    with pytest.raises(StateError) as caught:
        parse("postgresql://me:geheim@db.example/shop?port=x&host")
    assert "geheim" not in str(caught.value)
    assert caught.value.__cause__ is None
