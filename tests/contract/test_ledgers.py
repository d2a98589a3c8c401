"""Every ledger keeps the contract of ledgers; and what only a file can show."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import pytest
import sqlalchemy

from trueup.errors import StateError
from trueup.model.change import Change, Outcome
from trueup.stores.memory import MemoryLedger
from trueup.stores.sql import SqlStore, ledger
from trueup.stores.sql.postgresql import PostgresqlStore
from trueup.testing.ledgers import LedgerContract


class TestMemory(LedgerContract):
    @pytest.fixture
    def make(self):
        return MemoryLedger


class TestSqlite(LedgerContract):
    @pytest.fixture
    def make(self, tmp_path):
        numbers = count()
        return lambda clock: SqlStore(f"sqlite:///{tmp_path}/state{next(numbers)}.db", clock).ledger


@pytest.mark.postgres
class TestPostgresql(LedgerContract):
    @pytest.fixture
    def make(self, postgres_state):
        return lambda clock: PostgresqlStore(postgres_state(), clock).ledger


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/state.db"


@pytest.fixture
def store(url):
    store = SqlStore(url)
    yield store
    store.close()


def _changes(count_: int, pair: str = "orders") -> list[Change]:
    return [Change(pair, f'["{n}"]', version=1, digest="a", payload='{"a":"1"}') for n in range(count_)]


class TestJoining:
    """Given a caller's own transaction in the database that holds the state, an offer lives and dies with it."""

    @pytest.fixture
    def shop(self, store, tmp_path):
        store.ledger.settle("orders")
        connection = sqlite3.connect(tmp_path / "state.db")
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
        connection.commit()
        yield connection
        connection.close()

    def test_committed_together(self, store, shop):
        shop.execute("INSERT INTO orders VALUES (1)")
        assert store.ledger.offer(_changes(1), connection=shop) == [Outcome.PENDING]
        assert store.ledger.rows("orders", ['["0"]']) == {}
        shop.commit()
        assert store.ledger.rows("orders", ['["0"]'])['["0"]'].wish_version == 1

    def test_rolled_back_together(self, store, shop):
        shop.execute("INSERT INTO orders VALUES (1)")
        store.ledger.offer(_changes(1), connection=shop)
        shop.rollback()
        assert store.ledger.rows("orders", ['["0"]']) == {}
        assert shop.execute("SELECT count(*) FROM orders").fetchone() == (0,)

    def test_the_offer_may_be_the_first_statement(self, store, shop):
        store.ledger.offer(_changes(1), connection=shop)
        shop.rollback()
        store.ledger.offer(_changes(2), connection=shop)
        shop.commit()
        assert store.ledger.counts("orders")["pending"] == 2

    def test_a_caller_with_its_own_row_factory(self, store, shop):
        shop.row_factory = sqlite3.Row
        store.ledger.offer(_changes(1), connection=shop)
        assert store.ledger.offer(_changes(1), connection=shop) == [Outcome.SAME]
        shop.commit()

    def test_a_failed_offer_leaves_the_callers_own_writes(self, store, shop):
        shop.execute("INSERT INTO orders VALUES (1)")
        with pytest.raises(OverflowError):
            store.ledger.offer([*_changes(1), Change("orders", "[]", version=2**70, digest="a")], connection=shop)
        shop.commit()
        assert shop.execute("SELECT count(*) FROM orders").fetchone() == (1,)
        assert store.ledger.counts("orders")["pending"] == 0

    @pytest.mark.parametrize("writes_first", [True, False])
    def test_an_sqlalchemy_connection(self, store, shop, tmp_path, writes_first):
        engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path}/state.db")
        with engine.connect() as connection:
            if writes_first:
                connection.execute(sqlalchemy.text("INSERT INTO orders VALUES (1)"))
            store.ledger.offer(_changes(1), connection=connection)
            connection.rollback()
            assert store.ledger.counts("orders")["pending"] == 0
            if writes_first:
                connection.execute(sqlalchemy.text("INSERT INTO orders VALUES (2)"))
            store.ledger.offer(_changes(2), connection=connection)
            connection.commit()
            assert store.ledger.counts("orders")["pending"] == 2
        engine.dispose()

    @pytest.mark.parametrize("what", ["another file", "in memory", "no connection"])
    def test_another_database_is_an_error(self, store, tmp_path, what):
        with closing(sqlite3.connect(":memory:" if what == "in memory" else tmp_path / "shop.db")) as other:
            other.execute("CREATE TABLE orders (id)")
            with pytest.raises(StateError, match=r"connection= .*Leave out connection="):
                store.ledger.offer(_changes(1), connection="shop.db" if what == "no connection" else other)

    def test_no_open_transaction_is_an_error(self, store, shop, tmp_path):
        with (
            closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as autocommit,
            pytest.raises(StateError, match="no open transaction"),
        ):
            store.ledger.offer(_changes(1), connection=autocommit)

    def test_a_ledger_in_memory_joins_nothing(self, shop):
        with pytest.raises(StateError, match="connection="):
            MemoryLedger().offer(_changes(1), connection=shop)


class TestTrouble:
    """Given a file that is no good, I expect one clear sentence and a hint, and nothing changed."""

    def test_not_a_database(self, url, tmp_path):
        (tmp_path / "state.db").write_text("id,name\n" * 400)
        with pytest.raises(StateError, match="is not an SQLite database") as caught:
            SqlStore(url)
        assert caught.value.hint
        assert (tmp_path / "state.db").read_text() == "id,name\n" * 400

    def test_newer_than_the_program(self, url, store, tmp_path):
        with closing(sqlite3.connect(tmp_path / "state.db")) as connection:
            connection.execute("INSERT INTO trueup_schema VALUES (99, 0, 98)")
            connection.commit()
        with pytest.raises(StateError, match=r"written by a newer trueup \(step 99, .*step 98; .*Upgrade trueup"):
            SqlStore(url)

    def test_locked(self, store, url, tmp_path):
        with closing(sqlite3.connect(tmp_path / "state.db")) as other:
            other.execute("BEGIN IMMEDIATE")
            impatient = SqlStore(url, busy_s=0.05)
            with pytest.raises(StateError, match="locked by another program"):
                impatient.ledger.offer(_changes(1))
            impatient.close()
            other.rollback()
        assert store.ledger.counts("orders")["pending"] == 0

    def test_read_only(self):
        with TemporaryDirectory() as directory:
            file = Path(directory) / "state.db"
            SqlStore(f"sqlite:///{file}").close()
            with without_the_right_to_write(file), pytest.raises(StateError, match="this user the right to write"):
                SqlStore(f"sqlite:///{file}")

    def test_missing_directory(self, tmp_path):
        with pytest.raises(StateError, match="can't be opened"):
            SqlStore(f"sqlite:///{tmp_path}/none/state.db")

    def test_a_store_that_must_exist(self, url, tmp_path):
        with pytest.raises(StateError, match="there is no state store"):
            SqlStore(url, create=False)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("url", ["postgresql://u:secret@h/db", "sqlite://", "sqlite:///:memory:", "state.db"])
    def test_urls_that_name_no_file(self, url):
        with pytest.raises(StateError) as caught:
            SqlStore(url)
        assert "secret" not in str(caught.value)
        assert "sqlite:///" in str(caught.value)

    def test_paths_of_any_name(self, tmp_path):
        odd = tmp_path / "of Zoë & co #1?.db"
        store = SqlStore(f"sqlite:///{quote(str(odd))}")
        store.close()
        assert odd.exists()


class TestFile:
    def test_what_was_offered_survives_the_program(self, url):
        first = SqlStore(url)
        first.ledger.settle("orders")
        first.ledger.offer(_changes(3))
        first.close()
        second = SqlStore(url)
        assert second.ledger.settled("orders")
        assert len(second.ledger.claim(["orders"], 9, "w", 1_000_000, 5)) == 3
        second.close()

    def test_closing_twice_is_safe(self, store):
        store.close()
        store.ledger.close()
        store.archive.close()

    def test_offers_are_durable_before_they_are_acknowledged(self, store):
        with store._file.reading() as connection:
            assert connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)

    @pytest.mark.parametrize("statement", [ledger._WAITING, ledger._LOAD, ledger._NEXT_DUE, ledger._SLEEPERS,
                                           ledger._SCAN, ledger._IDS["pending"], ledger._IDS["parked"]])  # fmt: skip
    def test_no_statement_of_the_hot_path_reads_the_whole_table(self, store, statement):
        parameters = [None] * statement.count("?")
        with store._file.reading() as connection:
            plan = [row[-1] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)]
        assert not [step for step in plan if step.startswith("SCAN trueup_row") and "INDEX" not in step], plan

    def test_the_queue_and_the_key_use_their_whole_index(self, store):
        with store._file.reading() as connection:
            [waiting] = connection.execute(f"EXPLAIN QUERY PLAN {ledger._WAITING}", ("", 0, 0, 1)).fetchall()
            load = connection.execute(f"EXPLAIN QUERY PLAN {ledger._LOAD}", ("[]", "")).fetchall()
        assert "trueup_row_queue (pair=? AND priority=? AND ready_at<?)" in waiting[-1]
        assert "(pair=? AND key=?)" in load[-1][-1]

    def test_a_waiting_worker_is_woken_at_once_by_its_own_process(self, store):
        store.ledger.claim(["orders"], 1, "w", 1_000_000, 5)
        threading.Timer(0.1, store.ledger.offer, [_changes(1)]).start()
        began = time.monotonic()
        store.ledger.wait(30)
        assert time.monotonic() - began < 10
        assert store.ledger.counts("orders")["pending"] == 1

    def test_offers_of_many_threads_share_commits(self, store):
        """Given 16 threads that each offer one change at a time, I expect far fewer commits than offers."""
        store.ledger.settle("orders")

        def offer(thread: int) -> None:
            for change in _changes(800)[thread * 50 : (thread + 1) * 50]:
                assert store.ledger.offer([change]) == [Outcome.PENDING]

        counted = store._file.writing
        begun = []
        store._file.writing = lambda: begun.append(1) or counted()
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(offer, range(16)))
        assert len(begun) < 400
        assert store.ledger.counts("orders")["pending"] == 800

    def test_waiting_takes_no_longer_than_it_may(self, store):
        began = time.monotonic()
        store.ledger.wait(0.1)
        assert 0.09 < time.monotonic() - began < 10


WORK = """
import sys, time
from trueup.model.row import Finish
from trueup.stores.sql import SqlStore
url, owner = sys.argv[1:]
store = SqlStore(url)
print("ready", flush=True)
sys.stdin.readline()
while claims := store.ledger.claim(["orders"], 7, owner, 60_000_000, 5):
    for claim in claims:
        print(claim.change.key, flush=True)
    accepted = store.ledger.finish([Finish(claim, "done", action="upsert", version=1, digest="a") for claim in claims])
    assert all(accepted)
store.close()
"""
HOLD = """
import sys, time
from trueup.stores.sql import SqlStore
store = SqlStore(sys.argv[1])
[claim] = store.ledger.claim(["orders"], 1, "doomed", int(sys.argv[2]), 5)
print(claim.fence, flush=True)
time.sleep(600)
"""
OFFER = """
import sys
from trueup.model.change import Change
from trueup.stores.sql import SqlStore
url, part, parts = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
store = SqlStore(url)
print("ready", flush=True)
sys.stdin.readline()
for version in range(part + 1, 101, parts):
    store.ledger.offer([Change("orders", f'["{n}"]', version=version, digest=str(version)) for n in range(20)])
store.close()
"""


def _program(text: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", text, *map(str, arguments)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def _together(programs: list[subprocess.Popen[str]]) -> list[str]:
    """Starts the work of programs that are ready at the same moment; answers their lines."""
    for program in programs:
        assert program.stdout.readline() == "ready\n"
    for program in programs:
        program.stdin.write("\n")
        program.stdin.flush()
    lines = [line for program in programs for line in program.communicate(timeout=120)[0].split()]
    assert [program.returncode for program in programs] == [0] * len(programs)
    return lines


class TestProcesses:
    """Several programs on one file."""

    def test_C096_programs_claim_each_job_once(self, store, url):
        store.ledger.settle("orders")
        store.ledger.offer(_changes(300))
        lines = _together([_program(WORK, url, f"worker {n}") for n in range(4)])
        assert sorted(lines) == sorted(change.key for change in _changes(300))
        assert store.ledger.counts("orders") == {"idle": 300, "pending": 0, "parked": 0, "leased": 0}

    def test_offers_of_several_programs_leave_the_newest(self, store, url):
        _together([_program(OFFER, url, part, 4) for part in range(4)])
        rows = store.ledger.rows("orders", [f'["{n}"]' for n in range(20)])
        assert [row.high for row in rows.values()] == [100] * 20

    def test_several_programs_create_one_store(self, url):
        _together([_program(WORK, url, f"worker {n}") for n in range(4)])

    def test_C094_a_killed_holder_loses_nothing(self, store, url):
        """Given a holder killed with SIGKILL, its record comes back at the lease's end with a higher fence."""
        store.ledger.settle("orders")
        store.ledger.offer(_changes(1))
        holder = _program(HOLD, url, 1_500_000)
        fence = int(holder.stdout.readline())
        holder.kill()
        holder.communicate()
        row = store.ledger.rows("orders", ['["0"]'])['["0"]']
        assert (row.lease_owner, row.tries, row.attempted) == ("doomed", 1, ((fence, "a"),))
        began = time.monotonic()
        while not (claims := store.ledger.claim(["orders"], 1, "next", 1_000_000, 5)):
            assert time.monotonic() - began < 30
            store.ledger.wait(0.1)
        assert claims[0].fence == fence + 1

    def test_a_waiting_worker_is_woken_by_another_program(self, store, url):
        program = _program(OFFER, url, 99, 100)
        assert program.stdout.readline() == "ready\n"
        assert store.ledger.claim(["orders"], 1, "w", 1_000_000, 5) == []
        program.stdin.write("\n")
        program.stdin.flush()
        began = time.monotonic()
        store.ledger.wait(60)
        assert time.monotonic() - began < 30
        program.communicate(timeout=60)
        assert store.ledger.claim(["orders"], 1, "w", 1_000_000, 5)


@contextmanager
def without_the_right_to_write(file):
    """The file and its directory can be read but not written, whoever runs this: root steps down meanwhile."""
    file.chmod(0o444)
    file.parent.chmod(0o555)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65_534)
    try:
        assert os.access(file, os.R_OK, effective_ids=True)
        assert not os.access(file, os.W_OK, effective_ids=True)
        yield
    finally:
        if root:
            os.seteuid(0)
        file.parent.chmod(0o755)
