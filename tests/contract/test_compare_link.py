"""What a comparison costs on a link: its round trips, and how fast the link is."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
import sqlalchemy as sa

from sql_tables import Tables
from trueup.compare.plan import plan
from trueup.sides.sql import Sql

# The slow link of the benchmarks.
sys.path.append(str(Path(__file__).parents[2]))
from bench.compare.link import Link, linked


@pytest.fixture(params=["postgresql", "mariadb"])
def tables(request: pytest.FixtureRequest) -> Tables:
    made: Tables = request.getfixturevalue("on_postgres" if request.param == "postgresql" else "on_mariadb")
    return made


def test_the_pace_of_a_link_is_measured(tables: Tables) -> None:
    """Given a link of 8 Mbit/s and 20 ms, I expect about a megabyte a second, whatever its delay."""
    name = tables.table("id bigint PRIMARY KEY, v char(1)")
    tables.execute(f"INSERT INTO {tables.quoted(name)} VALUES (1, 'x')")
    near = sa.make_url(tables.url)
    port = near.port or 3306
    with linked(Link(8, 20), [port]) as between:
        far = near.set(port=between.ports[port]).render_as_string(hide_password=False)
        side = Sql(far, table=name, key="id")
        described = side.describe()
        asked = plan(described, described, key=("id",)).left
        with closing(side), closing(side.snapshot(asked)) as snapshot:
            pace = snapshot.pace()
    assert pace is not None
    assert 0.3e6 < pace < 1.2e6


@pytest.mark.postgres
def test_records_of_many_small_batches_are_asked_for_at_once(on_postgres: Tables) -> None:
    """Given keys in many batches, I expect one statement for all of them: each would wait for the one before."""
    name = on_postgres.table("id bigint PRIMARY KEY, v char(1)")
    on_postgres.execute(f"INSERT INTO {on_postgres.quoted(name)} SELECT n, 'x' FROM generate_series(1, 100) AS n")
    side = on_postgres.side(name)
    described = side.describe()
    with closing(side), closing(side.snapshot(plan(described, described, key=("id",)).left)) as snapshot:
        keys = pa.table({"k0": pa.chunked_array([[n] for n in range(1, 51)], pa.int64())})
        batches = list(snapshot.records(keys))
    assert [batch.num_rows for batch in batches] == [50]
