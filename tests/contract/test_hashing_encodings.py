"""A PostgreSQL database in another encoding than UTF-8: what it packs arrives as what it holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import chain

import psycopg
import pytest
import sqlalchemy as sa

from contract.test_compare_hashing import asked
from sql_tables import Tables
from trueup.compare.choose import compare
from trueup.compare.plan import plan
from trueup.model.columns import key_texts
from trueup.model.kinds import INTEGER
from trueup.sides.sql import Sql

pytestmark = pytest.mark.postgres
CODES = ["a", "ü", "öö", "z", "é" * 20]
ROWS = "CREATE TABLE codes (code text PRIMARY KEY, v int); INSERT INTO codes VALUES " + ", ".join(
    f"('{code}', {at})" for at, code in enumerate(CODES)
)


@pytest.fixture
def in_latin1(on_postgres: Tables) -> Iterator[Sql]:
    """The codes in a database of its own."""
    url = sa.make_url(on_postgres.url).set(drivername="postgresql")
    name = f"{url.database}_latin1"
    with psycopg.connect(url.render_as_string(hide_password=False), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
        there = url.set(database=name).render_as_string(hide_password=False)
        try:
            with psycopg.connect(there, autocommit=True, client_encoding="utf8") as database:
                database.execute(ROWS)
            with closing(Sql(there, "codes", key="code")) as side:
                yield side
        finally:
            server.execute(f"DROP DATABASE {name}")


def test_keys_of_any_letters_arrive_whole(in_latin1: Sql) -> None:
    projection = asked(in_latin1, ("v", INTEGER), key=["code"])
    with closing(in_latin1.snapshot(projection)) as snapshot:
        for function in snapshot.functions:
            found = [key_texts(batch.columns[:-1], projection.key) for batch in snapshot.hashes(function)]
            assert sorted(chain(*found)) == sorted(f'["{code}"]' for code in CODES)


@pytest.mark.parametrize("strategy", ["gate", "keyhash", "rows"])
def test_it_is_compared_with_a_database_in_utf8(on_postgres: Tables, in_latin1: Sql, strategy: str) -> None:
    """Given a record that differs and one that is missing, I expect these two."""
    table = on_postgres.table("code text PRIMARY KEY, v int")
    values = ", ".join(f"('{code}', {at if at else -1})" for at, code in enumerate(CODES[:4]))
    on_postgres.execute(f"INSERT INTO {on_postgres.quoted(table)} VALUES {values}")
    right = on_postgres.side(table, key="code")
    with compare(in_latin1, right, plan(in_latin1.describe(), right.describe(), key=["code"]), strategy=strategy) as it:
        assert {each.key: each.kind for each in it.differences()} == {'["a"]': "differ", f'["{"é" * 20}"]': "missing"}
