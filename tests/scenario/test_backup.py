"""The drill: back up, go on, lose the store, restore, run. Nothing is wrong silently.

The same on SQLite and on PostgreSQL. The restored store is older than what happened; what is shown here is that it does
not believe itself.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest

import trueup
from trueup.errors import StateError
from trueup.model.drift import Drift
from trueup.model.row import Finish

TABLE = "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, v INTEGER)"


def execute(path: Path, *statements: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as db:
        answer = [db.execute(statement).fetchall() for statement in statements][-1]
        db.commit()
        return answer


@dataclass
class Desk:
    """A pair with a replica, and one whose handler pushes; the state is where `state` says."""

    folder: Path
    state: str
    pushed: list[tuple[str, Any]] = field(default_factory=list)

    def open(self) -> trueup.Project:
        project = trueup.Project(self.state, seed=1)
        people = project.pair(
            "people",
            authority=trueup.Sql(f"sqlite:///{self.folder}/school.db", table="people", key="id", version="v"),
            replica=trueup.Sql(f"sqlite:///{self.folder}/platform.db", table="people", key="id"),
            settle=0,
        )
        assert people.name == "people"
        pushes = project.pair(
            "pushes",
            authority=trueup.Sql(f"sqlite:///{self.folder}/school.db", table="people", key="id", version="v"),
            settle=0,
        )

        @pushes.on_change
        def push(change: Any) -> None:
            self.pushed.append((change.key, (change.values or {}).get("name")))

        return project

    def authority(self, *statements: str) -> None:
        execute(self.folder / "school.db", *statements)

    def platform(self) -> dict[int, str]:
        return dict(execute(self.folder / "platform.db", "SELECT id, name FROM people"))

    def school(self) -> dict[int, str]:
        return dict(execute(self.folder / "school.db", "SELECT id, name FROM people"))

    def lose(self) -> None:
        """The store is gone, as if its disk had died."""
        if self.state.startswith("sqlite"):
            for each in self.folder.glob("trueup.db*"):
                each.unlink()
        else:
            with psycopg.connect(self.state, autocommit=True) as admin:
                admin.execute("DROP SCHEMA trueup CASCADE")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    people = ", ".join(f"({n}, 'n{n}', 1)" for n in range(1, 9))
    for name in ("school", "platform"):
        execute(tmp_path / f"{name}.db", TABLE, f"INSERT INTO people VALUES {people}")
    on_file = request.param == "sqlite"
    state = f"sqlite:///{tmp_path}/trueup.db" if on_file else request.getfixturevalue("postgres_url")
    found = Desk(tmp_path, state)
    with found.open() as project:
        project.find("people").adopt()
        project.find("pushes").run()
    yield found
    if not on_file:
        found.lose()


def test_after_a_restore_everything_is_found_again_and_nothing_is_wrong_silently(desk: Desk) -> None:
    backup = desk.folder / "state.backup"
    with desk.open() as project:
        people = project.find("people")
        desk.authority("UPDATE people SET name = 'waits', v = 2 WHERE id = 1")
        people.offer({"id": 1, "name": "waits", "v": 2})
        project.back_up(backup)
        # Life goes on: what waited is overtaken and done, another is changed, a new one comes.
        desk.authority("UPDATE people SET name = 'newer', v = 3 WHERE id = 1")
        desk.authority("UPDATE people SET name = 'two', v = 2 WHERE id = 2", "INSERT INTO people VALUES (9, 'nine', 2)")
        people.run()
    assert desk.platform() == desk.school()
    desk.lose()
    # Changes whose events are lost with the store, and one that waited in the backup is old by now.
    desk.authority(
        "UPDATE people SET name = 'three', v = 2 WHERE id = 3", "UPDATE people SET name = 'two+', v = 3 WHERE id = 2"
    )
    with desk.open() as project:
        assert project.restore(backup) == 8
    with desk.open() as project:
        people = project.find("people")
        # A late event about a record that the restored store has never seen, older than what is there.
        desk.authority("UPDATE people SET name = 'nine+', v = 3 WHERE id = 9")
        people.offer({"id": 9, "name": "nine", "v": 2})
        people.work()
        platform = desk.platform()
        # Nothing old came back: what waited was read again, and so was the late event.
        assert (platform[1], platform[9]) == ("newer", "nine+")
        assert not people.status().adopted
        people.adopt()
        report = people.run()
        cases = {case.key: case.drift for case in project.cases("people")}
        platform, school = desk.platform(), desk.school()
    # What agrees is left alone; what does not is either repaired or asked about.
    assert platform[3] == "three"
    open_keys = {int(key.strip('["]')) for key in cases}
    assert {each for each in school if platform.get(each) != school[each]} <= open_keys, (report, cases)
    assert cases.get('["2"]', "conflict") == "conflict"


def test_who_moved_is_still_told_for_what_did_not_change_since(desk: Desk) -> None:
    backup = desk.folder / "state.backup"
    with desk.open() as project:
        project.back_up(backup)
    desk.lose()
    execute(desk.folder / "platform.db", "UPDATE people SET name = 'by hand' WHERE id = 4")
    with desk.open() as project:
        project.restore(backup)
    with desk.open() as project:
        people = project.find("people")
        report = people.adopt()
        assert {item.key: item.drift for item in report.plan} == {'["4"]': Drift.EDITED}
        people.run()
    assert desk.platform()[4] == "by hand"


def test_a_worker_that_outlived_the_store_is_refused(desk: Desk) -> None:
    backup = desk.folder / "state.backup"
    with desk.open() as project:
        project.back_up(backup)
        project.find("pushes").offer({"id": 5})
        [zombie] = project.ledger.claim(["pushes"], 1, "zombie", 3_600_000_000, 5)
    desk.lose()
    with desk.open() as project:
        project.restore(backup)
    with desk.open() as project:
        project.find("pushes").offer({"id": 5})
        [claim] = project.ledger.claim(["pushes"], 1, "new", 60_000_000, 5)
        assert claim.fence > zombie.fence
        assert project.ledger.renew([zombie], 60_000_000) == [False]
        assert project.ledger.finish([Finish(zombie, "done", "upsert", 9, "0" * 32, "")]) == [False]


def test_an_old_event_is_not_pushed_over_what_was_pushed_after_the_backup(desk: Desk) -> None:
    backup = desk.folder / "state.backup"
    with desk.open() as project:
        project.back_up(backup)
        desk.authority("UPDATE people SET name = 'new', v = 7 WHERE id = 6")
        project.find("pushes").run()
    assert desk.pushed == [('["6"]', "new")]
    desk.lose()
    with desk.open() as project:
        project.restore(backup)
    with desk.open() as project:
        project.find("pushes").offer({"id": 6, "name": "old", "v": 5})
        project.find("pushes").work()
    assert "old" not in [name for _, name in desk.pushed]


def test_a_store_that_is_there_is_not_written_over(desk: Desk) -> None:
    backup = desk.folder / "state.backup"
    with desk.open() as project:
        project.back_up(backup)
        with pytest.raises(StateError, match="exists"):
            project.back_up(backup)
    with desk.open() as project, pytest.raises(StateError, match=r"exists|has a schema"):
        project.restore(backup)
    assert backup.stat().st_mode & 0o077 == 0, "it holds values: nobody else may read it"


def test_what_is_no_backup_is_refused_and_leaves_nothing(desk: Desk) -> None:
    desk.lose()
    for name, content in (("nonsense", b"nonsense" * 1_000), ("empty", b"")):
        (desk.folder / name).write_bytes(content)
        with desk.open() as project, pytest.raises(StateError, match="no backup"):
            project.restore(desk.folder / name)
    with desk.open() as project, pytest.raises(StateError):
        project.restore(desk.folder / "absent")
    assert not [*desk.folder.glob("*trueup.db*")]
    with desk.open() as project:  # so that there is something to lose
        assert not project.ledger.settled("people")
