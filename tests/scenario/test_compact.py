"""`trueup state compact`: what nothing depends on is forgotten in time, and nothing else."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import trueup
from trueup.cli.main import main
from trueup.errors import ConfigError, StateError
from trueup.model.letter import DeadLetter
from trueup.testing.clock import ManualClock

DAY_S = 86_400
TABLE = "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, v INTEGER)"


def execute(path: Path, *statements: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as db:
        answer = [db.execute(statement).fetchall() for statement in statements][-1]
        db.commit()
        return answer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("school", "platform"):
        execute(tmp_path / f"{name}.db", TABLE, "INSERT INTO people VALUES (1, 'a', 1), (2, 'b', 1)")
    return tmp_path


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def project(request: pytest.FixtureRequest, folder: Path) -> Iterator[trueup.Project]:
    """A pair that ran when the clock began."""
    urls = {"memory": lambda: "memory:", "sqlite": lambda: f"sqlite:///{folder}/trueup.db",
            "postgres": lambda: f"{request.getfixturevalue('postgres_url')}?schema=compact_{os.getpid()}"}  # fmt: skip
    clock = ManualClock()
    kept = {"history": "30d", "plans": "20d", "letters": "10d"}
    with trueup.Project(urls[request.param](), clock=clock, seed=1, retention=kept) as made:
        people = made.pair(
            "people",
            authority=trueup.Sql(f"sqlite:///{folder}/school.db", table="people", key="id", version="v"),
            replica=trueup.Sql(f"sqlite:///{folder}/platform.db", table="people", key="id"),
            settle=0,
        )
        people.adopt()
        execute(folder / "school.db", "UPDATE people SET name = 'new', v = 2 WHERE id = 1")
        execute(folder / "platform.db", "UPDATE people SET name = 'by hand' WHERE id = 2")
        people.run()
        letter = DeadLetter("school", clock.now_us(), 400, "not JSON", b"{", 1)
        made.archive.keep_letter(letter)
        yield made


def test_each_is_forgotten_at_its_age_and_the_rest_stays(project: trueup.Project) -> None:
    clock: Any = project.clock
    ledger, archive = project.ledger, project.archive
    gone = project.keeping().once()
    assert (gone.history, gone.plans, gone.letters) == (0, 0, 0)
    clock.advance(10 * DAY_S + 60)
    assert project.keeping().once().letters == 1
    assert archive.count_letters() == 0
    clock.advance(10 * DAY_S)
    assert project.keeping().once().plans == 2
    assert ledger.history("people", '["1"]') != []
    clock.advance(10 * DAY_S)
    assert project.keeping().once().history > 0
    assert ledger.history("people", '["1"]') == []
    # The memory that tells who moved, the questions, and what was put on record.
    assert set(ledger.rows("people", ['["1"]', '["2"]'])) == {'["1"]', '["2"]'}
    assert [case.key for case in project.cases("people")] == ['["2"]']
    assert len(archive.runs("people")) == 2
    assert len(archive.entries()) == 2


def test_the_command_says_what_it_forgot_and_gives_space_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    (folder / "trueup.toml").write_text(
        """
[retention]
history = "0s"

[pair.people]
authority = { url = "sqlite:///school.db", table = "people", key = "id", version = "v" }
replica = { url = "sqlite:///platform.db", table = "people", key = "id" }
settle = 0
""",
        "utf-8",
    )
    for command in (("adopt", "people"), ("run", "people")):
        assert main(list(command), standalone=False) == 0
    capsys.readouterr()
    assert main(["state", "compact", "--vacuum", "--json"], standalone=False) == 0
    gone = json.loads(capsys.readouterr().out)
    assert gone["history"] > 0
    assert gone["bytes"] >= 0
    assert main(["state", "backup", "state.backup"], standalone=False) == 0
    assert "trueup state restore state.backup" in capsys.readouterr().out
    for each in folder.glob("trueup.db*"):
        each.unlink()
    assert main(["state", "restore", "state.backup"], standalone=False) == 0
    assert "next: trueup adopt people" in capsys.readouterr().out


def test_what_can_not_be_meant_is_said() -> None:
    with pytest.raises(ConfigError, match="no option histories"):
        trueup.Project("memory:", retention={"histories": "1d"})
    with pytest.raises(ConfigError, match="not a duration"):
        trueup.Project("memory:", retention={"history": "soon"})
    with pytest.raises(StateError, match="SQLite"):
        trueup.Project("memory:").vacuum()
