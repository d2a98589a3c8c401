"""What `bench/compare` rests on: its input is as it says, its judge is strict, its slow link is as slow as it says."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"
sys.path.append(str(BENCH.parent))

from bench.compare.chooser import CHOOSER, beside_the_best  # noqa: E402
from bench.compare.inputs import FIELDS, KEYS, Input, made  # noqa: E402
from bench.compare.judging import against  # noqa: E402
from bench.compare.link import Link, linked  # noqa: E402

ROWS = 2_000


def _answered(program: str, files: Input, folder: Path, **options: object) -> Path:
    answer = folder / "answer.csv"
    left, right = ({"kind": "parquet", "url": str(path)} for path in (files.left, files.right))
    told = {
        "left": left, "right": right, "table": "", "key": KEYS[files.keys].names, "fields": list(FIELDS),
        "since": None, "memory_mb": 256, "answer": str(answer), "options": options,
    }  # fmt: skip
    (folder / "job.json").write_text(json.dumps(told))
    program = str(BENCH / "contestants" / f"{program}.py")
    subprocess.run([sys.executable, program, str(folder / "job.json")], check=True, stdout=subprocess.DEVNULL)
    return answer


@pytest.mark.parametrize("keys", list(KEYS))
@pytest.mark.parametrize("scenario", ["identical", "hundred", "percent", "tenth", "block"])
def test_the_files_differ_as_the_truth_says(keys: str, scenario: str, tmp_path: Path) -> None:
    """Given any kind of key and scenario, I expect a join of all columns to find the injected differences alone."""
    files = made(tmp_path, ROWS, keys, scenario)
    assert against(files.truth, _answered("compare_duckdb", files, tmp_path, columns="all")).startswith("right")


@pytest.mark.parametrize(
    ("scenario", "differences"), [("identical", 0), ("hundred", 100), ("block", ROWS // 10), ("touched", 100)]
)
def test_as_many_differences_are_injected_as_the_scenario_says(scenario: str, differences: int, tmp_path: Path) -> None:
    assert made(tmp_path, ROWS, "integer", scenario).differences == differences


def test_trueup_tells_the_values_of_what_differs_too(tmp_path: Path) -> None:
    files = made(tmp_path, ROWS, "two", "percent")
    told = against(files.truth, _answered("compare_trueup", files, tmp_path, confirm=True))
    assert told == "right: keys, kinds, fields, values"


def test_an_answer_that_lacks_one_or_has_one_too_many_is_wrong(tmp_path: Path) -> None:
    files = made(tmp_path, ROWS, "integer", "hundred")
    answer = _answered("compare_duckdb", files, tmp_path, columns="hash")
    header, first, *rest = answer.read_text().splitlines()
    answer.write_text("\n".join((header, *rest)) + "\n")
    assert against(files.truth, answer) == "wrong: 1 not found, 0 false"
    answer.write_text("\n".join((header, first, first, *rest)) + "\n")
    assert against(files.truth, answer) == "wrong: 0 not found, 1 false"


@pytest.fixture
def server() -> Iterator[int]:
    """The port of a server that answers a byte with a byte, then sends a million and ends."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.sendall(connection.recv(1))
                connection.recv(1)
                connection.sendall(bytes(1_000_000))

        serving = threading.Thread(target=serve)
        serving.start()
        yield int(listening.getsockname()[1])
        serving.join()


def test_a_link_is_slow_by_its_delay_and_its_rate_and_counts_what_it_carries(server: int) -> None:
    """Given 50 Mbit/s and 40 ms, I expect a round trip of 40 ms, and a million bytes to take 160 ms more."""
    with linked(Link(50, 40), [server]) as link, socket.create_connection(("127.0.0.1", link.ports[server])) as client:
        began = time.monotonic()
        client.sendall(b"?")
        assert client.recv(1) == b"?"
        assert time.monotonic() - began >= 0.04
        began = time.monotonic()
        client.sendall(b"!")
        received = 0
        while chunk := client.recv(65_536):
            received += len(chunk)
        assert time.monotonic() - began >= 0.2
        assert received == 1_000_000
    assert (link.sent, link.received) == (2, 1_000_001)


def test_the_choice_stands_beside_the_best_and_a_gate() -> None:
    """Given 1.5 s for a choice, 1 s for the best and 0.4 s for a gate, I expect half more, or a tenth less a gate."""
    told = beside_the_best({CHOOSER: 1.5, "keyhash": 1.0, "rows": 3.0}, 0.4)
    assert (told["best"], told["beside"][CHOOSER]) == ("keyhash", {"over_the_best": 1.5, "less_a_gate": 1.1})
    assert beside_the_best({CHOOSER: 1.5}, None)["best"] is None
