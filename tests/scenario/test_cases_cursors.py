"""Cases of cursors: late commits, pages that move, runs that fail, clocks that differ, records that vanish."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import psycopg
import pyarrow as pa
import pytest

from api import Api, Call, Reply, serving
from school import School, key, person
from sql_tables import Tables
from trueup.bound import BoundPair
from trueup.errors import Unreachable
from trueup.model.record import Projection, key_parts
from trueup.ports import EVERYTHING, Scope, Write, Written
from trueup.project import Project
from trueup.sides.http import Http
from trueup.sides.memory import Memory
from trueup.sides.sql import Sql
from trueup.testing.clock import ManualClock

DATED = {"id": "integer", "name": "text", "at": "instant"}
COPY = {"id": "integer", "name": "text"}


def noon(**later: float) -> datetime:
    return datetime(2026, 3, 1, 12, tzinfo=UTC) + timedelta(**later)


def us(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def order(ident: int, at: datetime | int) -> dict[str, Any]:
    return {"id": ident, "name": f"n{ident}", "at": at}


class Replica(Memory):
    """Remembers the keys of the writes that landed, in order."""

    def __init__(self, rows: Sequence[dict[str, Any]] = ()) -> None:
        super().__init__(rows, key="id", columns=COPY)
        self.landed: list[int] = []

    def apply(self, projection: Projection, writes: Sequence[Write]) -> list[Written]:
        answers = super().apply(projection, writes)
        self.landed += [int(key_parts(each.key)[0] or 0) for each in answers if each.landed]
        return answers


@contextmanager
def paired(
    authority: Any, replica: Any, state: str = "memory:", clock: Any = None, **options: Any
) -> Iterator[tuple[Project, BoundPair]]:
    """A project with the pair `orders`, which waits for nothing and reads nothing twice unless told to."""
    with Project(state, clock=clock or ManualClock(), seed=1, threads=1) as project:
        declared = {"fields": ["name"], "settle": 0, "overlap": 0} | options
        yield project, project.pair("orders", authority=authority, replica=replica, **declared)


# Late commits, in PostgreSQL.


class Orders:
    """A table whose times are those of transactions, with a record of yesterday, and sessions that write to it."""

    def __init__(self, tables: Tables, version: str = "at") -> None:
        definition = "id bigserial PRIMARY KEY, name text, at timestamptz NOT NULL DEFAULT now()"
        name = tables.table(definition)
        self.side: Sql = tables.side(name, key="id", version=version)
        self._url, self._table = tables.url, tables.quoted(name)
        tables.execute(f"INSERT INTO {self._table} (name, at) VALUES ('n1', now() - interval '1 day')")

    @contextmanager
    def session(self) -> Iterator[psycopg.Connection[Any]]:
        """A session whose first statement begins a transaction."""
        with closing(psycopg.connect(self._url)) as connection:
            yield connection

    def insert(self, connection: psycopg.Connection[Any], at: str = "DEFAULT") -> tuple[int, int]:
        """Inserts a record; answers its id, and when the transaction began."""
        sql = f"INSERT INTO {self._table} (at) VALUES ({at}) RETURNING id, (extract(epoch FROM now()) * 1e6)::bigint"
        found = connection.execute(sql).fetchone()
        assert found is not None
        return found

    def commit(self, at: str = "DEFAULT") -> int:
        """Inserts a record and commits; answers its id."""
        with self.session() as connection:
            ident, _ = self.insert(connection, at)
            connection.commit()
        return ident


@pytest.mark.postgres
def test_C054_a_record_committed_late_is_found_behind_the_oldest_transaction(on_postgres: Tables) -> None:
    """Given a commit behind the newest time, and no overlap, I expect both records once: the cursor waited."""
    orders, replica = Orders(on_postgres), Replica([{"id": 1, "name": "n1"}])
    with paired(orders.side, replica) as (project, pair), orders.session() as late:
        pair.adopt()
        first, began_us = orders.insert(late)
        second = orders.commit()
        pair.run("sweep")
        assert replica.landed == [second]
        assert project.archive.cursor("orders") == began_us
        late.commit()
        pair.run("sweep")
        assert sorted(replica.landed) == [first, second]
        assert (project.archive.cursor("orders") or 0) > began_us


@pytest.mark.postgres
def test_C054_a_transaction_that_commits_while_the_sweep_reads_is_not_passed(
    on_postgres: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a commit after the read and before the cursor is set, I expect the next sweep to read it."""
    orders, replica = Orders(on_postgres), Replica([{"id": 1, "name": "n1"}])
    scan = orders.side.scan
    with paired(orders.side, replica) as (_, pair), orders.session() as late:
        pair.adopt()
        first, _ = orders.insert(late)
        second = orders.commit()

        def scanned(projection: Projection, scope: Scope = EVERYTHING) -> Iterator[pa.RecordBatch]:
            yield from scan(projection, scope)
            late.commit()

        monkeypatch.setattr(orders.side, "scan", scanned)
        pair.run("sweep")
        assert replica.landed == [second]
        pair.run("sweep")
        assert sorted(replica.landed) == [first, second]


@pytest.mark.postgres
def test_C054_a_transaction_that_runs_during_adoption_is_not_passed(on_postgres: Tables) -> None:
    """Given a pair adopted while a transaction runs, I expect its record in the first sweep after the commit."""
    orders, replica = Orders(on_postgres), Replica([{"id": 1, "name": "n1"}])
    with paired(orders.side, replica) as (_, pair), orders.session() as late:
        first, _ = orders.insert(late)
        replica.put({"id": orders.commit(), "name": None})
        assert pair.adopt().counts["same"] == 2
        late.commit()
        pair.run("sweep")
        assert replica.landed == [first]


@pytest.mark.postgres
def test_C054_what_is_older_than_the_overlap_is_found_by_the_comparison(on_postgres: Tables) -> None:
    """Given a record whose time is two hours old when it is committed, and an overlap of one, I expect it compared."""
    orders, replica = Orders(on_postgres), Replica([{"id": 1, "name": "n1"}])
    with paired(orders.side, replica, overlap="1h") as (_, pair):
        pair.adopt()
        second = orders.commit()
        pair.run("sweep")
        third = orders.commit("now() - interval '2 hours'")
        pair.run("sweep")
        assert replica.landed == [second]
        report = pair.run()
        assert (report.counts["drift_missing"], report.exit_code) == (1, 0)
        assert replica.landed == [second, third]


@pytest.mark.postgres
@pytest.mark.parametrize("how", ["sweep", "changed"])
def test_C066_a_serial_number_that_shows_late_is_read(on_postgres: Tables, how: Literal["sweep", "changed"]) -> None:
    """Given number 2 committed after number 3 was read, I expect the cursor to wait for it, without an overlap."""
    orders, replica = Orders(on_postgres, version="id"), Replica([{"id": 1, "name": "n1"}])
    with paired(orders.side, replica) as (project, pair), orders.session() as late:
        pair.adopt()
        second, _ = orders.insert(late)
        third = orders.commit()
        assert second < third
        pair.run(how)
        assert replica.landed == [third]
        late.commit()
        pair.run(how)
        assert replica.landed == [third, second]
        assert project.archive.cursor("orders" if how == "sweep" else "orders (compared)") == third


@pytest.mark.postgres
def test_a_cursor_of_numbers_moves_though_something_always_runs(on_postgres: Tables) -> None:
    """Given transactions that overlap, so that one always runs, I expect the cursor to follow one look behind."""
    orders, replica = Orders(on_postgres, version="id"), Replica([{"id": 1, "name": "n1"}])
    with paired(orders.side, replica) as (project, pair), orders.session() as one, orders.session() as other:
        pair.adopt()
        orders.insert(one)
        third = orders.commit()
        pair.run("sweep")
        assert project.archive.cursor("orders") == 1
        fourth, _ = orders.insert(other)
        one.commit()
        fifth = orders.commit()
        pair.run("sweep")
        assert project.archive.cursor("orders") == third
        pair.run("sweep")
        assert project.archive.cursor("orders") == third
        other.commit()
        pair.run("sweep")
        assert project.archive.cursor("orders") == fifth
        assert sorted(replica.landed) == [2, third, fourth, fifth]


@pytest.mark.postgres
def test_an_adoption_beside_an_open_transaction_of_numbers_passes_nothing(on_postgres: Tables) -> None:
    """Given a number drawn before an adoption and committed after it, I expect the next sweep to read it."""
    orders, replica = Orders(on_postgres, version="id"), Replica([{"id": 1, "name": "n1"}])
    with paired(orders.side, replica) as (_, pair), orders.session() as late:
        second, _ = orders.insert(late)
        third = orders.commit()
        replica.put({"id": third, "name": None})
        pair.adopt()
        late.commit()
        pair.run("sweep")
        assert replica.landed == [second]


# How a cursor is kept, and by whose clock.


class Clockless(Memory):
    """A system that does not say what time it is."""

    def now_us(self) -> None:  # type: ignore[override]
        return None


@pytest.mark.parametrize("side", [Memory, Clockless])
def test_C057_a_stored_cursor_is_exact_to_the_microsecond(tmp_path: Path, side: type[Memory]) -> None:
    """Given a record committed in the second in which the sweep ended, I expect it, and the cursor as it was set."""
    began = datetime(2026, 3, 1, 7, 12, 8, 730_001, tzinfo=UTC)
    clock = ManualClock(us(began))
    authority = side([order(0, began - timedelta(days=1))], key="id", version="at", columns=DATED, clock=clock)
    replica, state = Replica([{"id": 0, "name": "n0"}]), f"sqlite:///{tmp_path}/state.db"
    with paired(authority, replica, state, clock) as (_, pair):
        pair.adopt()
        authority.put(order(1, began))
        pair.run("sweep")
    with paired(authority, replica, state, clock) as (project, pair):
        assert project.archive.cursor("orders") == us(began)
        authority.put(order(2, began + timedelta(milliseconds=180)))
        authority.put(order(3, datetime(2026, 3, 1, 7, 12, 9, tzinfo=UTC)))
        clock.advance(60)
        pair.run("sweep")
    assert replica.landed == [1, 2, 3]


@pytest.mark.parametrize("ahead_s", [600, -600])
@pytest.mark.parametrize("side", [Memory, Clockless])
def test_C061_the_cursor_is_in_the_time_of_the_authority(side: type[Memory], ahead_s: int) -> None:
    """Given a clock here that is ten minutes off, I expect every record in the first sweep after its commit."""
    there, here = ManualClock(us(noon(minutes=-10))), ManualClock(us(noon(minutes=-10)))
    here.advance(ahead_s)
    authority = side([order(0, noon(hours=-1))], key="id", version="at", columns=DATED, clock=there)
    replica = Replica([{"id": 0, "name": "n0"}])
    with paired(authority, replica, clock=here) as (project, pair):
        pair.adopt()
        at = -10
        for minute, ident, sync in ((0, 1, 1), (3, 2, 5), (8, 3, 12)):
            authority.put(order(ident, noon(minutes=minute)))
            for clock in (there, here):
                clock.advance((sync - at) * 60)
            at = sync
            pair.run("sweep")
            assert replica.landed == list(range(1, ident + 1))
            seen = noon(minutes=minute if side is Clockless else sync)
            assert project.archive.cursor("orders") == us(seen)


def test_C061_a_sweep_that_reads_nothing_leaves_the_cursor_where_it_was() -> None:
    """Given a system without clock that shows no record, I expect the cursor unchanged, and not none."""
    authority = Clockless([order(0, noon())], key="id", version="at", columns=DATED)
    with paired(authority, Replica([{"id": 0, "name": "n0"}])) as (project, pair):
        pair.adopt()
        pair.run("sweep")
        assert project.archive.cursor("orders") == us(noon())
        authority.remove(0)
        pair.run("sweep")
        assert project.archive.cursor("orders") == us(noon())


def test_a_pair_that_was_adopted_empty_is_not_told_that_its_newest_record_is_gone() -> None:
    authority = Memory([], key="id", version="at", columns=DATED, clock=ManualClock(us(noon())))
    replica = Replica()
    with paired(authority, replica) as (_, pair):
        pair.adopt()
        assert pair.run("sweep").notes == []
        authority.put(order(1, noon()))
        assert pair.run("sweep").notes == []
        assert replica.landed == [1]


class Failing(Memory):
    """Its scan breaks off after so many pages of one record; None for never."""

    pages: int | None = None

    def scan(self, projection: Projection, scope: Scope = EVERYTHING) -> Iterator[pa.RecordBatch]:
        records = (batch.slice(at, 1) for batch in super().scan(projection, scope) for at in range(batch.num_rows))
        for number, each in enumerate(records):
            if number == self.pages:
                raise Unreachable("orders can't be reached.", hint="Try again.")
            yield each


def test_C059_a_failed_run_leaves_the_cursor_where_it_was(tmp_path: Path) -> None:
    """Given a sweep that fails before its first page, and after it, I expect the old cursor and then all records."""
    clock = ManualClock(us(noon()))
    authority = Failing([order(0, noon(days=-9))], key="id", version="at", columns=DATED, clock=clock)
    replica, state = Replica([{"id": 0, "name": "n0"}]), f"sqlite:///{tmp_path}/state.db"
    with paired(authority, replica, state, clock) as (_, pair):
        pair.adopt()
    for ident in (1, 2, 3):
        authority.put(order(ident, noon(days=ident)))
    clock.advance(5 * 86_400)
    for pages in (0, 2):
        authority.pages = pages
        with paired(authority, replica, state, clock) as (project, pair):
            with pytest.raises(Unreachable):
                pair.run("sweep")
            assert project.archive.cursor("orders") == us(noon())
            assert project.archive.runs("orders")[0].ended == "failed"
    authority.pages = None
    with paired(authority, replica, state, clock) as (project, pair):
        pair.run("sweep")
        assert project.archive.cursor("orders") == us(noon(days=5))
    assert sorted(replica.landed) == [1, 2, 3]


# Lists that move while their pages are read.


@contextmanager
def listed(rows: list[dict[str, Any]], paging: Any, page_size: int) -> Iterator[tuple[Api, Http]]:
    """An API that lists these records, and a side that has had its first look at them."""
    with serving(Api(rows=rows, paging=paging)) as api:
        side = Http(f"{api.url}/items", key="id", version="at", columns=COPY | {"at": "integer"},
                    paging=paging, page_size=page_size)  # fmt: skip
        side.describe()
        yield api, side
        side.close()


def moving(api: Api, move: Any) -> None:
    """Calls `move` right before the second page is answered, once."""
    pages: list[Call] = []

    def before(call: Call) -> Reply | None:
        if call.path == "/items":
            pages.append(call)
            if len(pages) == 2:
                move()
        return None

    api.before = before


@pytest.mark.parametrize("paging", ["page", "offset"])
def test_C058_a_record_that_moves_between_pages_hides_no_neighbour(paging: str) -> None:
    """Given a list ordered by change and a record that is changed between two pages, I expect all four, once."""
    with listed([order(0, 0)], paging, 2) as (api, side):
        replica = Replica([{"id": 0, "name": "n0"}])
        with paired(side, replica) as (project, pair):
            pair.adopt()
            api.rows += [order(ident, ident) for ident in (1, 2, 3, 4)]

            def changed() -> None:
                api.rows = [row for row in api.rows if row["id"] != 1] + [{"id": 1, "name": "changed", "at": 5}]

            moving(api, changed)
            pair.run("sweep")
            pair.run("sweep")
            assert {row["id"]: row["name"] for row in replica.rows()} == {
                0: "n0", 1: "changed", 2: "n2", 3: "n3", 4: "n4",
            }  # fmt: skip
            assert sorted(replica.landed) == [1, 2, 3, 4]
            assert project.archive.cursor("orders") == 5


@pytest.mark.parametrize("paging", ["page", "offset"])
def test_C067_a_record_that_a_moving_list_skipped_is_read_by_key_before_it_counts_as_gone(paging: str) -> None:
    """Given a delete between two pages that hides a neighbour, I expect only the deleted record to be removed."""
    rows = [order(ident, ident) for ident in range(1, 11)]
    with listed(rows, paging, 4) as (api, side):
        replica = Replica([{"id": row["id"], "name": row["name"]} for row in rows])
        with paired(side, replica, on_drift={"orphaned": "repair"}) as (_, pair):
            pair.adopt()

            def deleted() -> None:
                api.rows = [row for row in api.rows if row["id"] != 2]

            moving(api, deleted)
            api.calls.clear()
            first = pair.run("compare")
            assert set(replica.landed) <= {2}
            if paging == "page":  # nothing in its pages shows that it moved
                assert [call.path for call in api.calls if call.path != "/items"] == ["/items/5"]
                assert first.counts["converged"] == 1
            pair.run("compare")
            assert replica.landed == [2]
            assert {row["id"] for row in replica.rows()} == {1, 3, 4, 5, 6, 7, 8, 9, 10}


@pytest.mark.parametrize("paging", ["page", "offset"])
def test_C067_a_record_that_a_moving_list_shows_twice_is_one_record(paging: str) -> None:
    """Given an insert between two pages that shows a record again, I expect no duplicate, and the new record."""
    rows = [order(ident, ident) for ident in range(1, 11)]
    with listed(rows, paging, 4) as (api, side):
        replica = Replica([{"id": row["id"], "name": row["name"]} for row in rows])
        with paired(side, replica) as (project, pair):
            pair.adopt()
            moving(api, lambda: api.rows.insert(0, order(0, 0)))
            assert pair.run("compare").counts["drift_duplicate"] == 0
            # A list read by offset shows what was put before the page that is read only to the next one.
            assert pair.run("compare").counts["left"] == 11
            assert replica.landed == [0]
            assert project.cases("orders") == []


# Records that vanish.


@pytest.mark.parametrize("policy", ["review", "repair"])
def test_C064_a_deleted_record_is_found_by_the_comparison_alone(policy: str) -> None:
    """Given a delete at the authority, I expect nothing from sweeps, and one extra key under the pair's policy."""
    school = School([person(1), person(2), person(3)], on_drift={"orphaned": policy}).adopted()
    school.authority.remove(2)
    assert school.pair.run("sweep").counts["offered"] == 0
    assert school.pair.run("changed").counts["differ"] == 0
    assert (len(school.replica.rows()), school.cases) == (3, {})
    report = school.pair.run("compare")
    assert (report.counts["extra"], report.counts["drift_orphaned"]) == (1, 1)
    assert [item.key for item in report.plan] == [key(2)]
    assert school.cases == ({} if policy == "repair" else {key(2): "orphaned"})
    assert {row["id"] for row in school.replica.rows()} == ({1, 3} if policy == "repair" else {1, 2, 3})
