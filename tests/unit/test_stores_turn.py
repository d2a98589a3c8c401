"""A program that writes now and then is not kept out by one that writes all the time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from trueup.stores.sql.sqlite import SqliteFile
from trueup.stores.sql.turn import PATIENCE_S, Turn

BUSY = """
import sys, time
from pathlib import Path
from trueup.stores.sql.sqlite import SqliteFile
file = SqliteFile(Path(sys.argv[1]))
print("ready", flush=True)
while True:
    with file.writing() as connection:
        connection.execute("INSERT INTO trueup_cursor VALUES (random() || '', 1)")
        time.sleep(0.02)
"""

WAITING = """
import sys, time
from pathlib import Path
from trueup.stores.sql.turn import Turn
with Turn(Path(sys.argv[1])).waited():
    print("ready", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def busy(tmp_path):
    """A program that holds the file nearly all the time."""
    path = tmp_path / "state.db"
    SqliteFile(path).close()
    program = subprocess.Popen([sys.executable, "-c", BUSY, str(path)], stdout=subprocess.PIPE, text=True)
    assert program.stdout.readline() == "ready\n"
    yield path, program
    program.kill()
    program.wait()
    program.stdout.close()


def times_of_writes(path, count):
    file = SqliteFile(path)
    taken = []
    for number in range(count):
        began = time.monotonic()
        with file.writing() as connection:
            connection.execute("INSERT INTO trueup_cursor VALUES (?, 1)", (f"mine {number}",))
        taken.append(time.monotonic() - began)
        time.sleep(0.005)
    file.close()
    return sorted(taken)


def test_who_waits_is_next(busy):
    taken = times_of_writes(busy[0], 30)
    # A transaction of the other takes 20 ms; to lose against it again and again took seconds.
    assert taken[len(taken) // 2] < 0.1
    assert taken[-1] < 1.0


def test_a_program_that_stands_still_while_it_waits_stops_nobody(tmp_path):
    path = tmp_path / "state.db"
    SqliteFile(path).close()
    program = subprocess.Popen([sys.executable, "-c", WAITING, str(path)], stdout=subprocess.PIPE, text=True)
    try:
        assert program.stdout.readline() == "ready\n"
        os.kill(program.pid, signal.SIGSTOP)
        [taken] = times_of_writes(path, 1)
        assert PATIENCE_S <= taken < PATIENCE_S + 2
    finally:
        program.kill()
        program.wait()
        program.stdout.close()


def test_a_place_without_the_right_to_write_there_is_no_reason_to_fail(tmp_path):
    turn = Turn(tmp_path / "missing" / "state.db")
    with turn.waited():
        pass
    turn.close()
