"""Every archive keeps the contract of archives."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import replace

import pytest

from trueup.model.run import Piece, Run
from trueup.model.turn import Turn
from trueup.project import open_store
from trueup.stores.memory import MemoryArchive
from trueup.stores.sql import SqlStore
from trueup.stores.sql.archive import SqlArchive
from trueup.stores.sql.postgresql import PostgresqlStore
from trueup.testing.ledgers import ArchiveContract

LEASE_US = 60_000_000


class TestMemory(ArchiveContract):
    @pytest.fixture
    def make(self):
        return MemoryArchive


class TestSqlite(ArchiveContract):
    @pytest.fixture
    def make(self, tmp_path):
        return lambda clock: SqlStore(f"sqlite:///{tmp_path}/state.db", clock).archive


@pytest.mark.postgres
class TestPostgresql(ArchiveContract):
    @pytest.fixture
    def make(self, postgres_state):
        return lambda clock: PostgresqlStore(postgres_state(), clock).archive


class Unlucky:
    """A storage that loses the answer to each commit and then does as `Database` does: it repeats the transaction."""

    def __init__(self, storage):
        self._storage = storage

    def __getattr__(self, name):
        return getattr(self._storage, name)

    def write(self, work, **options):
        self._storage.write(work)
        return self._storage.write(work)


def test_an_answer_that_was_lost_changes_nothing(tmp_path):
    """Given that the server goes away after each commit, I expect every step of a run to succeed, once."""
    store = SqlStore(f"sqlite:///{tmp_path}/state.db")
    archive = SqlArchive(Unlucky(store._file))
    run = archive.begin_run(Run("orders", "run", 1), "a", LEASE_US)
    assert run is not None
    assert (len(archive.runs("orders")), archive.refusals("orders")) == (1, 0)
    archive.cut(run.number, [Piece(0, 1), Piece(0, 2)])
    first = archive.claim_piece(run.number, "a", LEASE_US)
    second = archive.claim_piece(run.number, "a", LEASE_US)
    assert (first.number, second.number) == (1, 2)
    assert archive.claim_piece(run.number, "a", LEASE_US) is None
    assert archive.finish_piece(first, ["[1]"])
    assert archive.save_run(replace(run, done=("compare",)))
    assert archive.close_run(replace(run, ended="done", ended_us=5), {"orders": 7})
    assert (archive.suspects(run.number, 10), archive.cursor("orders")) == (["[1]"], 7)
    store.close()


PROGRAM = """
import sys, time
from dataclasses import replace
from trueup.model.run import Run
from trueup.model.turn import Turn
from trueup.project import open_store
url, owner, lease_us = sys.argv[1], sys.argv[2], int(sys.argv[3])
archive = open_store(url)[1]
for line in sys.stdin:
    if line == "begin\\n":
        run = archive.begin_run(Run("orders", "run", time.time_ns() // 1_000), owner, lease_us)
        print(*("refused",) if run is None else (run.number, run.fence, *run.done), flush=True)
    elif line == "save\\n":
        print(archive.save_run(replace(run, done=(*run.done, owner))), flush=True)
    elif line == "close\\n":
        print(archive.close_run(replace(run, ended="done", ended_us=1), {"orders": run.number}), flush=True)
    elif line == "start\\n":
        [seen] = archive.turns(["orders"])
        turn = archive.claim_turn(seen, owner, lease_us)
        print("nothing" if turn is None else "started", flush=True)
    elif line == "end\\n":
        print(archive.end_turn(replace(turn, due_us=turn.due_us + 1, ready_us=turn.due_us + 1)), flush=True)
    else:
        while piece := archive.claim_piece(int(line), owner, lease_us):
            print(piece.number, flush=True)
            assert archive.finish_piece(piece, [f"[{piece.number}]"])
        print("end", flush=True)
archive.close()
"""


class Program:
    """Another program on the store, that does as it is told."""

    def __init__(self, url, owner, lease_us=LEASE_US):
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, url, owner, str(lease_us)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def tell(self, line):
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def answer(self):
        return self._process.stdout.readline().split()

    def ask(self, line):
        self.tell(line)
        return self.answer()

    def kill(self):
        self._process.kill()
        self._process.communicate()

    def end(self):
        self._process.communicate(timeout=30)
        assert self._process.returncode == 0


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/state.db"
    return request.getfixturevalue("postgres_state")()


class TestProcesses:
    """Several programs on one store."""

    def test_a_slot_is_taken_by_one_program(self, url):
        programs = [Program(url, owner) for owner in ("a", "b")]
        for _ in range(10):
            for program in programs:
                program.tell("begin")
            answers = [program.answer() for program in programs]
            assert sorted(answer == ["refused"] for answer in answers) == [False, True]
            taker = programs[answers[0] == ["refused"]]
            assert taker.ask("close") == ["True"]
        for program in programs:
            program.end()
        archive = open_store(url)[1]
        assert (archive.refusals("orders"), len(archive.runs("orders"))) == (10, 10)
        archive.close()

    def test_a_program_that_was_killed_is_replaced(self, url):
        """Given kill -9 after a checkpoint, I expect another program to go on there once the lease ran out."""
        lease_us = 1_000_000
        killed, other = Program(url, "killed", lease_us), Program(url, "other")
        number, fence = map(int, killed.ask("begin"))
        assert killed.ask("save") == ["True"]
        killed.kill()
        assert other.ask("begin") == ["refused"]
        while (answer := other.ask("begin")) == ["refused"]:
            pass
        assert answer[0::2] == [str(number), "killed"]
        assert int(answer[1]) > fence
        assert other.ask("close") == ["True"]
        other.end()

    def test_a_run_that_is_due_is_started_by_one_program(self, url):
        """Given three programs that look at a due schedule together, twenty times, I expect one start each time."""
        archive = open_store(url)[1]
        archive.declare_turns([Turn("orders", "sweep", "every 10m", 1, 1)])
        programs = [Program(url, owner) for owner in "abc"]
        for _ in range(20):
            for program in programs:
                program.tell("start")
            answers = [program.answer() for program in programs]
            assert sorted(answers) == [["nothing"], ["nothing"], ["started"]]
            assert programs[answers.index(["started"])].ask("end") == ["True"]
        for program in programs:
            program.end()
        assert archive.turns(["orders"])[0].due_us == 21
        archive.close()

    def test_two_programs_share_the_pieces_of_a_run(self, url):
        archive = open_store(url)[1]
        run = archive.begin_run(Run("orders", "run", 1), "a", LEASE_US)
        archive.cut(run.number, [Piece(0, number) for number in range(200)])
        programs = [Program(url, owner) for owner in ("a", "b")]
        for program in programs:
            program.tell(run.number)
        claimed = Counter()
        for program in programs:
            while (answer := program.answer()) not in (["end"], []):
                claimed.update(answer)
            program.end()
        assert claimed == Counter(str(number) for number in range(200))
        assert archive.count_suspects(run.number) == 200
        assert {piece.state for piece in archive.pieces(run.number)} == {"done"}
        archive.close()


def test_an_answer_that_was_lost_starts_no_second_run_of_a_schedule(tmp_path):
    """Given that the server goes away after each commit, I expect a turn to be claimed and ended, once."""
    store = SqlStore(f"sqlite:///{tmp_path}/state.db")
    archive = SqlArchive(Unlucky(store._file))
    archive.declare_turns([Turn("orders", "sweep", "every 10m", 1, 1)])
    [seen] = archive.turns(["orders"])
    turn = archive.claim_turn(seen, "a", LEASE_US)
    assert turn is not None
    assert archive.turns(["orders"]) == [turn]
    assert archive.keep_turn(turn, LEASE_US)
    assert archive.end_turn(replace(turn, due_us=2**60, ready_us=2**60))
    assert archive.turns(["orders"])[0].owner == ""
    store.close()
