"""What a state store on PostgreSQL does beside the contract: joins, several processes, wake-ups, trouble, restarts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
import sqlalchemy
import sqlalchemy.orm

from services import restartable_postgres
from trueup.errors import ConfigError, StateError
from trueup.model.change import Change, Outcome
from trueup.model.row import Finish
from trueup.stores.sql.postgresql import PostgresqlStore, database, migrations
from trueup.stores.sql.postgresql.ledger import _PostgresqlTransaction

pytestmark = pytest.mark.postgres


@pytest.fixture
def url(postgres_state):
    return postgres_state()


@pytest.fixture
def store(url):
    store = PostgresqlStore(url)
    store.ledger.settle("orders")
    yield store
    store.close()


def _changes(count: int, *, version: int = 1, pair: str = "orders", start: int = 0) -> list[Change]:
    return [
        Change(pair, f'["{n}"]', version=version, digest=str(version), payload='{"a":"1"}')
        for n in range(start, start + count)
    ]


def _done(claims):
    return [
        Finish(claim, "done", action="upsert", version=claim.change.version, digest=claim.change.digest,
               replica=claim.change.digest)
        for claim in claims
    ]  # fmt: skip


class TestJoining:
    """Given a caller's own transaction in the database that holds the state, an offer lives and dies with it."""

    @pytest.fixture
    def shop(self, store, postgres_url):
        with psycopg.connect(postgres_url, autocommit=True) as setup:
            setup.execute("CREATE TABLE shop (id bigint PRIMARY KEY)")
            with psycopg.connect(postgres_url) as connection:
                yield connection
            setup.execute("DROP TABLE shop")

    @pytest.mark.parametrize("kept", [True, False])
    def test_together_with_the_callers_own_writes(self, store, shop, kept):
        shop.execute("INSERT INTO shop VALUES (1)")
        assert store.ledger.offer(_changes(3), connection=shop) == [Outcome.PENDING] * 3
        assert store.ledger.counts("orders")["pending"] == 0
        (shop.commit if kept else shop.rollback)()
        assert store.ledger.counts("orders")["pending"] == 3 * kept
        assert shop.execute("SELECT count(*) FROM shop").fetchone() == (int(kept),)

    def test_the_offer_may_be_the_first_statement(self, store, shop):
        store.ledger.offer(_changes(1), connection=shop)
        shop.rollback()
        assert store.ledger.counts("orders")["pending"] == 0
        store.ledger.offer(_changes(2), connection=shop)
        shop.commit()
        assert store.ledger.counts("orders")["pending"] == 2

    def test_inside_a_transaction_of_an_autocommit_connection(self, store, postgres_url):
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            with connection.transaction():
                store.ledger.offer(_changes(1), connection=connection)
            assert store.ledger.counts("orders")["pending"] == 1
            with pytest.raises(StateError, match="no open transaction"):
                store.ledger.offer(_changes(1), connection=connection)

    def test_a_caller_with_its_own_row_factory_and_search_path(self, store, shop):
        shop.row_factory = psycopg.rows.dict_row
        shop.execute("SET search_path TO pg_catalog")
        assert store.ledger.offer(_changes(1), connection=shop) == [Outcome.PENDING]
        assert store.ledger.offer(_changes(1), connection=shop) == [Outcome.SAME]
        shop.commit()

    def test_a_failed_offer_leaves_the_callers_own_writes(self, store, shop):
        shop.execute("INSERT INTO shop VALUES (1)")
        with pytest.raises(StateError, match="NumericValueOutOfRange"):
            store.ledger.offer([*_changes(1), Change("orders", "[]", version=2**70, digest="a")], connection=shop)
        shop.commit()
        assert shop.execute("SELECT count(*) FROM shop").fetchone() == (1,)
        assert store.ledger.counts("orders")["pending"] == 0

    def test_a_key_that_another_transaction_creates_meanwhile_is_judged_again(self, store, shop):
        """Given an offer that waits behind a first offer of the same key, I expect both to count when it commits."""
        store.ledger.offer(_changes(1, version=1), connection=shop)
        with ThreadPoolExecutor(1) as pool:
            second = pool.submit(store.ledger.offer, _changes(1, version=2))
            time.sleep(0.3)
            assert not second.done()
            shop.commit()
            assert second.result(20) == [Outcome.COALESCED]
        assert store.ledger.rows("orders", ['["0"]'])['["0"]'].wish_version == 2

    @pytest.mark.parametrize("writes_first", [True, False])
    def test_an_sqlalchemy_connection(self, store, shop, postgres_url, writes_first):
        engine = sqlalchemy.create_engine(postgres_url.replace("postgresql:", "postgresql+psycopg:"))
        with engine.connect() as connection:
            for number, kept in ((1, False), (2, True)):
                if writes_first:
                    connection.execute(sqlalchemy.text(f"INSERT INTO shop VALUES ({number})"))
                store.ledger.offer(_changes(number), connection=connection)
                (connection.commit if kept else connection.rollback)()
                assert store.ledger.counts("orders")["pending"] == (number if kept else 0)
        engine.dispose()

    def test_an_sqlalchemy_session(self, store, postgres_url):
        engine = sqlalchemy.create_engine(postgres_url.replace("postgresql:", "postgresql+psycopg:"))
        with sqlalchemy.orm.Session(engine) as session:
            store.ledger.offer(_changes(1), connection=session)
            session.commit()
        engine.dispose()
        assert store.ledger.counts("orders")["pending"] == 1

    def test_another_database_or_no_connection_is_an_error(self, store, postgres_url):
        other = urlunsplit(urlsplit(postgres_url)._replace(path="/postgres"))
        with psycopg.connect(other) as connection:
            for wrong in (connection, "shop", None.__class__):
                with pytest.raises(StateError, match=r"connection= .*Leave out connection="):
                    store.ledger.offer(_changes(1), connection=wrong)

    def test_a_failed_transaction_is_said_to_have_failed(self, store, shop):
        with pytest.raises(psycopg.Error):
            shop.execute("SELECT 1 / 0")
        with pytest.raises(StateError, match=r"has failed before.*Roll it back"):
            store.ledger.offer(_changes(1), connection=shop)

    def test_a_worker_of_this_process_is_woken_when_the_caller_commits(self, store, shop):
        assert store.ledger.claim(["orders"], 1, "w", 1_000_000, 5) == []
        store.ledger.offer(_changes(1), connection=shop)
        threading.Timer(0.2, shop.commit).start()
        began = time.monotonic()
        store.ledger.wait(30)
        assert 0.1 < time.monotonic() - began < 10
        assert store.ledger.claim(["orders"], 1, "w", 1_000_000, 5)


class TestTrouble:
    """Given a server that is no good for it, I expect one clear sentence, a hint, and no password."""

    def test_nobody_listens(self):
        with pytest.raises(StateError, match=r"127\.0\.0\.1:1, database shop: .*does not answer") as caught:
            PostgresqlStore("postgresql://trueup:geheim@127.0.0.1:1/shop")
        assert "geheim" not in str(caught.value)
        assert caught.value.hint

    def test_a_refused_login(self, postgres_url):
        split = urlsplit(postgres_url)
        wrong = urlunsplit(split._replace(netloc=f"trueup:geheim@{split.hostname}:{split.port}"))
        with pytest.raises(StateError, match=r"password authentication failed.*Is it running") as caught:
            PostgresqlStore(wrong)
        assert "geheim" not in str(caught.value)

    @pytest.mark.parametrize(
        "url", ["postgresql://u:geheim@h:port/db", "postgresql://u:geheim@h/db?nonsense=1", "oracle://u:geheim@h/db",
                "postgresql://u:geheim@h/db?schema=", "postgresql://u:geheim@h/db?schema"]
    )  # fmt: skip
    def test_urls_that_can_not_be_read(self, url):
        with pytest.raises(StateError) as caught:
            PostgresqlStore(url)
        assert "geheim" not in str(caught.value)
        assert caught.value.hint

    def test_newer_than_the_program(self, url, store, postgres_url):
        schema = store._database.address.quoted_schema
        with psycopg.connect(postgres_url) as connection:
            connection.execute(f"INSERT INTO {schema}.trueup_schema VALUES (99, 0, 98)")
            connection.commit()
            try:
                with pytest.raises(StateError, match=r"written by a newer trueup \(step 99, .*step 98; .*Upgrade"):
                    PostgresqlStore(url)
            finally:
                connection.execute(f"DELETE FROM {schema}.trueup_schema WHERE step = 99")

    def test_a_user_without_rights(self, postgres_url):
        split = urlsplit(postgres_url)
        with psycopg.connect(postgres_url, autocommit=True) as admin:
            admin.execute("CREATE ROLE nobody_at_all LOGIN PASSWORD 'geheim'")
            try:
                poor = urlunsplit(split._replace(netloc=f"nobody_at_all:geheim@{split.hostname}:{split.port}"))
                with pytest.raises(StateError, match=r"refuses this user.*Grant"):
                    PostgresqlStore(f"{poor}?schema=poor")
            finally:
                admin.execute("DROP ROLE nobody_at_all")

    def test_without_the_driver(self):
        program = "import sys; sys.modules['psycopg'] = None; import trueup.stores.sql.postgresql"
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert 'pip install "trueup[postgres]"' in ended.stderr
        assert ConfigError.__name__ in ended.stderr

    def test_closing_twice_is_safe(self, store):
        store.close()
        store.archive.close()
        store.ledger.close()


class TestTables:
    def test_schemas_of_one_database_do_not_mix(self, postgres_url):
        with psycopg.connect(postgres_url, autocommit=True) as admin:
            stores = [PostgresqlStore(f"{postgres_url}?schema={name}") for name in ("one", "two")]
            stores[0].ledger.offer(_changes(2))
            assert [store.ledger.counts("orders")["pending"] for store in stores] == [2, 0]
            for store in stores:
                store.close()
            assert admin.execute("SELECT to_regclass('public.trueup_row')").fetchone() == (None,)
            admin.execute("DROP SCHEMA one CASCADE; DROP SCHEMA two CASCADE")

    def test_programs_that_open_a_new_store_together(self, postgres_url):
        with ThreadPoolExecutor(6) as pool:
            stores = list(pool.map(lambda _: PostgresqlStore(f"{postgres_url}?schema=together"), range(6)))
        assert len({store.archive.count_cases("orders") for store in stores}) == 1
        for store in stores:
            store.close()
        with psycopg.connect(postgres_url, autocommit=True) as admin:
            steps = admin.execute("SELECT step FROM together.trueup_schema ORDER BY step").fetchall()
            admin.execute("DROP SCHEMA together CASCADE")
        assert steps == [(step + 1,) for step in range(len(migrations.STEPS))]

    def test_no_statement_of_the_hot_path_reads_the_whole_table(self, store):
        store.ledger.offer(_changes(3_000))
        statements = store.ledger._statements
        asked = [
            (statements.load, ("orders", '{"[\\"1\\"]"}')),
            (statements.queues, ("{orders}", None, 10)),
            (statements.lock_due, ("{orders}", "{0}", "{10}", None)),
            (statements.sleepers, ('{"orders x"}',)),
            (statements.next_due, ("{orders}",)),
        ]
        for statement, parameters in asked:
            plan = store._database.read(
                lambda session, s=statement, p=parameters: session.send(f"EXPLAIN {s}", p).fetchall()
            )
            lines = "\n".join(line for (line,) in plan)
            assert "Seq Scan on trueup_row" not in lines, lines
            assert "Index" in lines

    def test_a_batch_larger_than_any_buffer_of_a_socket(self, store):
        payload = '{"text":["t","' + "x" * 40_000 + '"]}'
        changes = [Change("orders", f'["{n}"]', version=1, digest="a", payload=payload) for n in range(400)]
        assert set(store.ledger.offer(changes)) == {Outcome.PENDING}
        changes = [Change("orders", f'["{n}"]', version=2, digest="b", payload=payload) for n in range(400)]
        assert set(store.ledger.offer(changes)) == {Outcome.COALESCED}

    def test_texts_that_need_care(self, store):
        keys = ['["a\\"b"]', '["\\\\"]', '["{,}"]', '["NULL"]', '["Zoë 🦉"]', '[""]', "[null]"]
        store.ledger.offer([Change("o'rders", key, version=1, digest="a") for key in keys])
        claims = store.ledger.claim(["o'rders"], 10, "w", 1_000_000, 5)
        assert sorted(claim.change.key for claim in claims) == sorted(keys)
        store.ledger.finish([Finish(claim, "parked", reason='it says "no\\way"\0 {,}') for claim in claims])
        assert {row.park_reason for row in store.ledger.rows("o'rders", keys).values()} == {
            'it says "no\\way"\ufffd {,}'
        }


WORK = """
import sys
from trueup.model.row import Finish
from trueup.project import open_store
url, owner = sys.argv[1:]
ledger, archive, _ = open_store(url)
for line in sys.stdin:
    while claims := ledger.claim(["orders"], 3, owner, 60_000_000, 5):
        print(*(claim.change.key for claim in claims), flush=True)
        assert all(ledger.finish([Finish(claim, "done", action="upsert", version=claim.change.version,
                                         digest=claim.change.digest) for claim in claims]))
    print("end", flush=True)
ledger.close()
"""


class TestProcesses:
    """Several programs on one store, of each kind that is shared."""

    @pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
    def test_C096_eight_programs_claim_each_of_a_hundred_jobs_once_in_twenty_rounds(self, kind, tmp_path, request):
        from trueup.project import open_store

        url = f"sqlite:///{tmp_path}/state.db" if kind == "sqlite" else request.getfixturevalue("url")
        ledger, _, _ = open_store(url)
        ledger.settle("orders")
        programs = [
            subprocess.Popen([sys.executable, "-c", WORK, url, f"worker {n}"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
            for n in range(8)
        ]  # fmt: skip
        try:
            for version in range(1, 21):
                assert set(ledger.offer(_changes(100, version=version))) == {Outcome.PENDING}
                for program in programs:
                    program.stdin.write("go\n")
                    program.stdin.flush()
                claimed = Counter()
                for program in programs:
                    while (line := program.stdout.readline()) not in ("end\n", ""):
                        claimed.update(line.split())
                assert claimed == Counter(change.key for change in _changes(100)), version
                assert ledger.counts("orders") == {"idle": 100, "pending": 0, "parked": 0, "leased": 0}
        finally:
            for program in programs:
                program.communicate(timeout=30)
        assert [program.returncode for program in programs] == [0] * 8
        ledger.close()

    def test_a_waiting_worker_is_woken_by_another_program_without_polling(self, store, url):
        text = (
            "import sys; from trueup.model.change import Change; from trueup.project import open_store;"
            "ledger = open_store(sys.argv[1])[0]; sys.stdin.readline();"
            "ledger.offer([Change('orders', '[1]', version=1, digest='a')]); ledger.close()"
        )
        program = subprocess.Popen([sys.executable, "-c", text, url], stdin=subprocess.PIPE, text=True)
        assert store.ledger.claim(["orders"], 1, "w", 1_000_000, 5) == []
        program.stdin.write("go\n")
        program.stdin.flush()
        began = time.monotonic()
        store.ledger.wait(60)
        assert time.monotonic() - began < 30
        program.communicate(timeout=30)
        assert store.ledger.claim(["orders"], 1, "w", 1_000_000, 5)

    def test_a_forked_child_uses_connections_of_its_own(self, store):
        def backend() -> int:
            return store._database.read(lambda session: session.send("SELECT pg_backend_pid()").fetchone()[0])

        parent = backend()
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            answer = b""
            try:
                assert store.ledger.offer(_changes(1)) == [Outcome.PENDING]
                answer = str(backend()).encode()
            finally:
                os.write(writing, answer)
                os._exit(0)
        os.close(writing)
        os.waitpid(child, 0)
        answer = os.read(reading, 100)
        os.close(reading)
        assert int(answer) != parent
        assert backend() == parent
        assert store.ledger.offer(_changes(2)) == [Outcome.SAME, Outcome.PENDING]


class TestRaces:
    def test_batches_in_any_order_neither_deadlock_nor_lose(self, store, url):
        """Given eight stores that offer the same new keys in different orders, each key ends at the newest."""
        stores = [PostgresqlStore(url) for _ in range(8)]

        def offer(number: int) -> None:
            for version in range(number + 1, 81, 8):
                changes = _changes(60, version=version)
                assert len(stores[number].ledger.offer(changes if number % 2 else changes[::-1])) == 60

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(offer, range(8)))
        for each in stores:
            each.close()
        rows = store.ledger.rows("orders", [change.key for change in _changes(60)])
        assert {(row.wish_version, row.high) for row in rows.values()} == {(80, 80)}

    def test_a_claim_passes_over_what_another_transaction_holds(self, store, postgres_url):
        store.ledger.offer(_changes(10))
        schema = store._database.address.quoted_schema
        with psycopg.connect(postgres_url) as other:
            other.execute(f"SELECT 1 FROM {schema}.trueup_row WHERE key < '[\"5' FOR UPDATE")
            claimed = store.ledger.claim(["orders"], 3, "w", 60_000_000, 5)
            assert [claim.change.key for claim in claimed] == ['["5"]', '["6"]', '["7"]']

    def test_a_program_that_stands_still_in_a_transaction_does_not_hold_up_others_for_ever(
        self, store, url, monkeypatch
    ):
        """Given a program frozen with records locked, I expect other records to be worked, and a clear error for
        these; when it goes on, nothing was lost."""
        store.ledger.offer(_changes(2))
        impatient = database._SETTINGS.replace(f"'{database.PATIENCE_S:.0f}s'", "'300ms'")
        assert impatient != database._SETTINGS
        monkeypatch.setattr(database, "_SETTINGS", impatient)
        frozen, other = PostgresqlStore(url), PostgresqlStore(url)
        thaw, in_hand = threading.Event(), threading.Event()
        load = _PostgresqlTransaction.load

        def stand_still(self, pair, keys):
            rows = load(self, pair, keys)
            in_hand.set()
            thaw.wait(30)
            return rows

        with ThreadPoolExecutor(1) as pool:
            with monkeypatch.context() as patch:
                patch.setattr(_PostgresqlTransaction, "load", stand_still)
                call = pool.submit(frozen.ledger.offer, _changes(1, version=2))
                assert in_hand.wait(20)
            [claim] = other.ledger.claim(["orders"], 2, "w", 60_000_000, 5)
            assert claim.change.key == '["1"]'
            with pytest.raises(StateError, match=r"locked by another program.*pg_stat_activity"):
                other.ledger.offer(_changes(1, version=3))
            thaw.set()
            assert call.result(20) == [Outcome.COALESCED]
        assert other.ledger.offer(_changes(1, version=3)) == [Outcome.COALESCED]
        frozen.close()
        other.close()

    def test_a_claim_finds_less_urgent_work_where_all_that_is_urgent_is_held(self, store, postgres_url):
        from trueup.model.change import Origin

        store.ledger.offer(_changes(1))
        store.ledger.offer([Change("orders", '["low"]', version=1, digest="a", origin=Origin.BACKFILL)])
        schema = store._database.address.quoted_schema
        with psycopg.connect(postgres_url) as other:
            other.execute(f"SELECT 1 FROM {schema}.trueup_row WHERE priority = 0 FOR UPDATE")
            assert [claim.change.key for claim in store.ledger.claim(["orders"], 1, "w", 1_000_000, 5)] == ['["low"]']


@pytest.fixture
def server():
    with restartable_postgres() as server:
        yield server


class TestRestart:
    """A server that goes away and comes back is a pause."""

    # SIGINT is the fast shutdown of an orderly restart, SIGQUIT an immediate one, as after a crash.
    @pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
    def test_under_load_nothing_is_lost(self, server, how):
        """Given offers and workers while the server restarts twice, I expect each acknowledged change to be done."""
        store = PostgresqlStore(server.url)
        store.ledger.settle("orders")
        acknowledged: list[str] = []
        stop = threading.Event()

        def offer(number: int) -> None:
            start = number * 1_000_000
            while not stop.is_set():
                changes = _changes(20, start=start)
                store.ledger.offer(changes)
                acknowledged.extend(change.key for change in changes)
                start += 20

        def work(number: int) -> None:
            while not stop.is_set():
                claims = store.ledger.claim(["orders"], 30, f"worker {number}", 2_000_000, 50)
                if claims:
                    store.ledger.finish(_done(claims))
                else:
                    store.ledger.wait(0.1)

        with ThreadPoolExecutor(4) as pool:
            running = [pool.submit(offer, 0), pool.submit(offer, 1), pool.submit(work, 0), pool.submit(work, 1)]
            for _ in range(2):
                time.sleep(0.7)
                before = len(acknowledged)
                server.end(how)
                server.start()
                deadline = time.monotonic() + 30
                while len(acknowledged) <= before + 40:  # it goes on
                    assert time.monotonic() < deadline
                    time.sleep(0.02)
            stop.set()
            for each in running:
                each.result(30)
        deadline = time.monotonic() + 60
        while store.ledger.counts("orders")["pending"]:
            assert time.monotonic() < deadline
            if claims := store.ledger.claim(["orders"], 500, "last", 2_000_000, 50):
                store.ledger.finish(_done(claims))
            else:
                store.ledger.wait(0.1)
        rows = store.ledger.rows("orders", acknowledged)
        assert len(rows) == len(acknowledged) > 80
        assert {row.done_version for row in rows.values()} == {1}
        assert store.ledger.counts("orders")["parked"] == 0
        store.close()

    def test_a_waiting_worker_hears_again_after_a_restart(self, server):
        store, other = PostgresqlStore(server.url), PostgresqlStore(server.url)
        store.ledger.settle("orders")
        assert store.ledger.claim(["orders"], 1, "w", 1_000_000, 5) == []
        server.end(signal.SIGINT)
        server.start()
        deadline = time.monotonic() + 20
        while True:  # what may have been missed wakes it first
            store.ledger.wait(3)
            assert store.ledger.claim(["orders"], 1, "w", 1_000_000, 5) == []
            began = time.monotonic()
            store.ledger.wait(3)
            if time.monotonic() - began > 2.5:
                break
            assert time.monotonic() < deadline
        assert store.ledger.claim(["orders"], 1, "w", 1_000_000, 5) == []
        threading.Timer(0.2, other.ledger.offer, [_changes(1)]).start()
        began = time.monotonic()
        store.ledger.wait(20)
        assert time.monotonic() - began < 5
        store.close()
        other.close()

    def test_a_server_that_stays_away_is_an_error_in_the_end(self, server):
        store = PostgresqlStore(server.url, patience_s=0.5)
        store.ledger.offer(_changes(1))
        server.end(signal.SIGINT)
        began = time.monotonic()
        with pytest.raises(StateError, match="does not answer"):
            store.ledger.offer(_changes(1))
        assert 0.4 < time.monotonic() - began < 20
        server.start()
        assert store.ledger.offer(_changes(1)) != [Outcome.STALE]
        store.close()
