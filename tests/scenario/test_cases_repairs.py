"""Cases of repairs: empty sources, mass deletes, rows that others own, stale copies, writes that change nothing."""

from __future__ import annotations

import sqlite3
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from api import Api, Call, Reply, serving
from school import School, person
from sql_tables import Tables, projection, rows
from trueup.bound import BoundPair
from trueup.errors import DecisionRefused
from trueup.model.case import HELD
from trueup.model.record import Projection, key_parts
from trueup.ports import Write, Written
from trueup.project import Project
from trueup.sides.http import Http
from trueup.sides.memory import Memory
from trueup.sides.sql import Sql
from trueup.testing.clock import ManualClock

REMOVES = {"orphaned": "repair"}


class Replica(Memory):
    """Remembers the writes that landed, in order: what was done to which key."""

    def __init__(self, rows: Sequence[dict[str, Any]] = (), **options: Any) -> None:
        super().__init__(rows, key="id", **({"columns": {"id": "text", "name": "text"}} | options))
        self.landed: list[tuple[str, str | None]] = []

    def apply(self, projection: Projection, writes: Sequence[Write]) -> list[Written]:
        answers = super().apply(projection, writes)
        done = zip(writes, answers, strict=True)
        self.landed += [
            ("delete" if each.values is None else "put", key_parts(each.key)[0])
            for each, answer in done
            if answer.landed
        ]
        return answers


@contextmanager
def paired(authority: Any, replica: Any, state: str = "memory:", **options: Any) -> Iterator[tuple[Project, BoundPair]]:
    """A project with the pair `people`, which waits for nothing."""
    with Project(state, clock=ManualClock(), seed=1, threads=1) as project:
        declared = {"fields": ["name"], "settle": 0} | options
        yield project, project.pair("people", authority=authority, replica=replica, **declared)


def people(*idents: int, name: str = "n") -> list[dict[str, Any]]:
    return [{"id": str(ident), "name": f"{name}{ident}"} for ident in idents]


def held(project: Project) -> list[Any]:
    return [case for case in project.cases("people") if case.key == HELD]


# Sources that are empty, or have lost a part.


def test_C123_an_empty_answer_deletes_nothing_and_is_one_question() -> None:
    """Given a list of 23 that comes back empty, I expect no delete in either mode, and one case about all of it."""
    contacts = people(*range(23))
    with serving(Api(rows=list(contacts))) as api:
        authority = Http(f"{api.url}/items", key="id", columns={"id": "text", "name": "text"})
        replica = Replica(contacts)
        with paired(authority, replica, on_drift=REMOVES) as (project, pair):
            pair.adopt()
            api.rows = []
            dry = pair.run(dry_run=True)
            assert (dry.exit_code, dry.counts["drift_orphaned"], project.cases("people")) == (1, 23, [])
            report = pair.run()
            assert (report.exit_code, report.counts["offered"], replica.landed) == (1, 0, [])
            [case] = project.cases("people")
            assert case.key == HELD
            assert case.cause.startswith("the authority shows no records at all, and 23 of the replica's")

            api.rows = list(contacts)
            report = pair.run()
            assert (report.exit_code, report.counts["same"], report.plan) == (0, 23, [])
            assert project.cases("people") == []
            assert replica.landed == []
        authority.close()


class Registry:
    """200 people at both sides, and a rule that removes what the authority deleted."""

    def __init__(self) -> None:
        self.authority, self.replica = Memory(people(*range(200)), key="id"), Replica(people(*range(200)))

    @contextmanager
    def opened(self) -> Iterator[tuple[Project, BoundPair]]:
        """The pair, adopted."""
        with paired(self.authority, self.replica, on_drift=REMOVES) as (project, pair):
            pair.adopt()
            yield project, pair

    def lose(self, count: int) -> None:
        for ident in range(count):
            self.authority.remove(str(ident))


def test_C127_a_true_mass_delete_passes_once_it_is_approved() -> None:
    """Given 80 of 200 gone in three sweeps, I expect one question all along; once approved, these 80 are gone."""
    registry = Registry()
    with registry.opened() as (project, pair):
        registry.lose(80)
        for _ in range(3):
            assert pair.run().counts["held"] == 80
            assert (len(project.cases("people")), registry.replica.landed) == (1, [])
        [case] = held(project)
        assert "delete 80 of 200 records (40%)" in case.cause
        pair.decide(case.number, "approve-plan", person="ann", reason="they left")
        assert sorted(registry.replica.landed) == sorted(("delete", str(ident)) for ident in range(80))
        report = pair.run()
        assert (report.exit_code, report.counts["same"], len(registry.replica.landed)) == (0, 120, 80)


def test_C127_a_false_mass_delete_closes_itself_when_the_keys_return() -> None:
    """Given 80 of 200 gone in one sweep and back in the next, I expect no delete, and the question withdrawn."""
    registry = Registry()
    with registry.opened() as (project, pair):
        registry.lose(80)
        pair.run()
        [case] = held(project)
        for row in people(*range(80)):
            registry.authority.put(row)
        assert pair.run().exit_code == 0
        assert (project.cases("people"), registry.replica.landed) == ([], [])
        with pytest.raises(DecisionRefused, match="is closed"):
            pair.decide(case.number, "approve-plan", person="ann", reason="too late")
        assert registry.replica.landed == []


def test_C127_an_approval_spares_what_has_returned_and_covers_nothing_new() -> None:
    """Given a plan of 80 of which 10 are back and beside which 10 more are gone, I expect 70 deletes."""
    registry = Registry()
    with registry.opened() as (project, pair):
        registry.lose(80)
        pair.run()
        for row in people(*range(10)):
            registry.authority.put(row)
        for ident in range(90, 100):
            registry.authority.remove(str(ident))
        [case] = held(project)
        pair.decide(case.number, "approve-plan", person="ann", reason="they left")
        assert sorted(registry.replica.landed) == sorted(("delete", str(ident)) for ident in range(10, 80))


@pytest.mark.parametrize("full", ["authority", "replica"])
def test_C133_a_side_that_was_never_seen_full_has_deleted_nothing(full: str) -> None:
    """Given 860 records on one side and a new, empty other, I expect creates where that is asked for, or questions."""
    rows_there = people(*range(860))
    authority = Memory(rows_there if full == "authority" else (), key="id", columns={"id": "text", "name": "text"})
    replica = Replica(() if full == "authority" else rows_there)
    with paired(authority, replica, on_drift=REMOVES) as (project, pair):
        report = pair.run()
        assert (report.what, report.exit_code) == ("report", 1)
        assert report.counts["drift_missing" if full == "authority" else "drift_foreign"] == 860
        assert (project.cases("people"), replica.landed) == ([], [])
        pair.adopt(backfill=True)
        pair.run()
        creates = [("put", row["id"]) for row in rows_there] if full == "authority" else []
        assert sorted(replica.landed) == sorted(creates)
        assert len(replica.rows()) == 860
        assert Counter(case.drift for case in project.cases("people")) == (
            {} if full == "authority" else {"foreign": 860}
        )


# What others own.


def test_C138_rows_that_only_the_target_has_are_listed_and_never_lost() -> None:
    """Given a copy over a replica with six records of its own, I expect them listed, counted, and there."""
    authority, replica = Memory(people(*range(1, 101)), key="id"), Replica(people(*range(1, 101), *range(201, 207)))
    own = {str(ident) for ident in range(201, 207)}
    for _ in ("after the outage", "once more, with the memory lost"):
        with paired(authority, replica, on_drift=REMOVES) as (project, pair):
            adopted = pair.adopt(backfill=True, trust_authority=True)
            assert (adopted.counts["left"], adopted.counts["right"]) == (100, 106)
            pair.run()
            kept = project.archive.runs("people")[0].counts
            assert (kept["left"], kept["right"], kept["drift_foreign"]) == (100, 106, 6)
            cases = project.cases("people")
            assert {key_parts(case.key)[0]: case.drift for case in cases} == dict.fromkeys(own, "foreign")
            assert replica.landed == []
    with paired(authority, replica) as (project, pair):
        pair.adopt()
        for case in project.cases("people"):
            pair.decide(case.number, "take-replica", person="ann", reason="written during the outage")
        assert own <= {row["id"] for row in authority.rows()}
        report = pair.run()
        assert (report.exit_code, report.counts["same"], replica.landed) == (0, 106, [])


@pytest.mark.parametrize("stores", [1, 2])
def test_C129_two_instances_with_one_target_leave_each_other_alone(stores: int) -> None:
    """Given two pairs that fill one table and remove what they lost, I expect that each removes its own alone."""
    zone = Replica()
    authorities = {"dev": Memory(people(1, 2), key="id"), "prod": Memory(people(11, 12), key="id")}
    with ExitStack() as stack:
        projects = [stack.enter_context(Project("memory:", clock=ManualClock(), seed=1, threads=1)) for _ in range(2)]
        pairs = [
            projects[at % stores].pair(name, authority=authority, replica=zone, settle=0, on_drift=REMOVES)
            for at, (name, authority) in enumerate(authorities.items())
        ]
        for pair in pairs:
            pair.adopt(backfill=True)
        for _ in range(10):
            for pair in pairs:
                assert pair.run("compare").counts["offered"] == 0
        assert sorted(zone.landed) == [("put", each) for each in ("1", "11", "12", "2")]
        authorities["dev"].remove("2")
        for pair in pairs:
            pair.run("compare")
        assert zone.landed[4:] == [("delete", "2")]


def test_C129_two_instances_under_one_name_stop_after_three_rounds_and_ask(tmp_path: Path) -> None:
    """Given two authorities that by mistake share pair and store, I expect three rounds of repairs, then questions."""
    zone, state = Replica(), f"sqlite:///{tmp_path}/state.db"
    authorities = Memory(people(1, 2), key="id"), Memory(people(11, 12), key="id")
    landed: list[int] = []
    for at in range(8):
        with paired(authorities[at % 2], zone, state, on_drift=REMOVES) as (project, pair):
            if not at:
                pair.adopt(backfill=True)
            pair.run("compare")
            landed.append(len(zone.landed))
            drifts = [case.drift for case in project.cases("people")]
            assert drifts == (["flapping"] * 4 if at in (4, 6) else [])
    assert landed == [2, 6, 10, 14, 14, 14, 14, 14]


# Writes.


@pytest.mark.parametrize("tables", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres),
                                    pytest.param("mariadb", marks=pytest.mark.mariadb)], indirect=True)  # fmt: skip
def test_C128_a_repair_changes_the_row_and_leaves_its_children(tables: Tables) -> None:
    """Given a renamed parent whose children fall with it, I expect the name changed in the row as it stands."""
    number = {"sqlite": "integer PRIMARY KEY AUTOINCREMENT", "postgr": "bigserial PRIMARY KEY"}.get(
        tables.url[:6], "bigint AUTO_INCREMENT PRIMARY KEY"
    )
    parent, child = (
        tables.table(f"n {number}, code varchar(9) UNIQUE, name varchar(9)"),
        f"child_{uuid.uuid4().hex[:8]}",
    )
    tables.execute(f"INSERT INTO {tables.quoted(parent)} (code, name) VALUES ('x', 'first'), ('p', 'a')")
    tables.execute(
        f"CREATE TABLE {child} (id integer PRIMARY KEY, parent {'integer' if 'sqlite' in tables.url else 'bigint'}, "
        f"FOREIGN KEY (parent) REFERENCES {tables.quoted(parent)} (n) ON DELETE CASCADE)"
    )
    try:
        tables.execute(f"INSERT INTO {child} VALUES (10, 2), (11, 2)")
        authority = Memory([{"code": "x", "name": "first"}, {"code": "p", "name": "a"}], key="code")
        replica, children = tables.side(parent, key="code"), tables.side(child, key="id")
        with paired(authority, replica) as (_, pair):
            pair.adopt()
            authority.put({"code": "p", "name": "b"})
            report = pair.run()
            assert (report.counts["drift_behind"], report.counts["jobs_done"]) == (1, 1)
        asked = projection(replica, "n", "name", key=("code",))
        assert sorted(rows(replica, asked)) == [("p", "2", "b"), ("x", "1", "first")]
        assert sorted(rows(children, projection(children, "parent"))) == [("10", "2"), ("11", "2")]
    finally:
        tables.execute(f"DROP TABLE {child}")


class Logged:
    """A SQLite table with a log of all writes. Each update gives the row a new version, whether it changes or not."""

    def __init__(self, path: Path, rows: Sequence[tuple[str, str]], collation: str = "BINARY") -> None:
        path.touch()
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.executescript(
            f"CREATE TABLE people (id TEXT COLLATE {collation} PRIMARY KEY, name TEXT, at INTEGER DEFAULT 1);"
            "CREATE TABLE log (what TEXT, id TEXT);"
            "CREATE TRIGGER inserted AFTER INSERT ON people BEGIN INSERT INTO log VALUES ('insert', new.id); END;"
            "CREATE TRIGGER deleted AFTER DELETE ON people BEGIN INSERT INTO log VALUES ('delete', old.id); END;"
            "CREATE TRIGGER updated AFTER UPDATE OF id, name ON people BEGIN"
            " INSERT INTO log VALUES ('update', new.id);"
            " UPDATE people SET at = (SELECT max(at) + 1 FROM people) WHERE id = new.id; END;"
        )
        self._db.executemany("INSERT INTO people (id, name) VALUES (?, ?)", rows)
        self.side = Sql(f"sqlite:///{path}", "people", key="id", version="at")
        self.writes()

    def writes(self) -> list[tuple[str, str]]:
        """What was written since this was last asked."""
        found = self._db.execute("SELECT what, id FROM log").fetchall()
        self._db.execute("DELETE FROM log")
        return found

    def rename(self, ident: str, name: str) -> None:
        """What an application does: past the log."""
        self._db.execute("UPDATE people SET name = ? WHERE id = ?", (name, ident))
        self.writes()

    def close(self) -> None:
        self.side.close()
        self._db.close()


@pytest.fixture
def logged(tmp_path: Path) -> Iterator[Any]:
    """Makes logged tables."""
    with ExitStack() as stack:
        yield lambda name, *rows, **how: stack.enter_context(closing(Logged(tmp_path / f"{name}.db", rows, **how)))


def test_C131_what_changes_nothing_is_not_written(logged: Any) -> None:
    """Given two equal sides, a pair each way, and versions that every update moves, I expect one write for one edit."""
    there, here = logged("there", ("1", "x"), ("2", "y")), logged("here", ("1", "x"), ("2", "y"))
    with Project("memory:", clock=ManualClock(), seed=1, threads=1) as project:
        options: dict[str, Any] = {"fields": ["name"], "settle": 0}
        forth = project.pair("forth", authority=there.side, replica=here.side, **options)
        back = project.pair("back", authority=here.side, replica=there.side, **options)
        forth.adopt()
        back.adopt()

        def rounds(count: int) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
            for _ in range(count):
                assert (forth.run().exit_code, back.run().exit_code) == (0, 0)
            return there.writes(), here.writes()

        assert rounds(10) == ([], [])
        there.rename("1", "z")
        assert rounds(2) == ([], [("update", "1")])
        there.rename("2", "y")  # a new version of what it was
        assert rounds(2) == ([], [])
        forth.offer({"id": "2", "name": "y", "at": 99})
        assert rounds(1) == ([], [])


def test_C137_a_plan_holds_each_key_once_whatever_the_order_of_the_sides(logged: Any) -> None:
    """Given keys in binary order on one side and folded order on the other, I expect one update of the one changed."""
    letters = [("a", "1"), ("B", "2"), ("c", "3")]
    left, right = logged("left", *letters), logged("right", *letters, collation="NOCASE")
    with paired(left.side, right.side, on_drift=REMOVES) as (_, pair):
        assert pair.adopt().counts["same"] == 3
        left.rename("B", "changed")
        dry = pair.run("compare", dry_run=True)
        assert [(item.key, item.action, item.removes) for item in dry.plan] == [('["B"]', "upsert", False)]
        assert right.writes() == []
        assert pair.run("compare").counts["offered"] == 1
        assert right.writes() == [("update", "B")]
        assert pair.run("compare").plan == []


# Stale copies.


def test_C134_a_device_that_was_away_receives_what_is_newer() -> None:
    """Given a copy as it was two versions ago, I expect it brought up to date, and the store as it was."""
    school = School([person(1, name="v1", v=1)]).adopted()
    for version in (2, 3):
        school.authority.put({"id": 1, "name": f"v{version}", "v": version})
    report = school.pair.run("compare")
    assert (report.counts["drift_behind"], report.exit_code) == (1, 0)
    assert (school.authority.get(1)["name"], school.replica.get(1)["name"]) == ("v3", "v3")


def test_C134_a_device_that_was_edited_while_it_was_away_is_a_question() -> None:
    """Given an edit on both sides, I expect both kept, and a case that shows both."""
    school = School([person(1, name="v1", v=1)]).adopted()
    school.authority.put({"id": 1, "name": "v3", "v": 3})
    school.replica.put({"id": 1, "name": "v1b"})
    school.pair.run()
    assert (school.authority.get(1)["name"], school.replica.get(1)["name"]) == ("v3", "v1b")
    [case] = school.project.cases("people")
    assert (case.drift, case.fields) == ("conflict", ("name",))
    assert (dict(case.authority or {})["name"], dict(case.replica or {})["name"]) == ("v3", "v1b")


@contextmanager
def store(**declared: Any) -> Iterator[tuple[Api, Http]]:
    """A store with revisions that holds one record, seen as a replica."""
    with serving(Api(rows=[{"id": "1", "name": "v1"}], **declared)) as api:
        side = Http(f"{api.url}/items", key="id", columns={"id": "text", "name": "text"})
        side.describe()
        yield api, side
        side.close()


@pytest.mark.parametrize("name", ["v1", "v1b"])
def test_C134_a_stale_copy_with_a_fresh_time_does_not_go_over_newer_edits(name: str) -> None:
    """Given a store that moved on and a device that offers its old copy as new, I expect the store kept, and a case."""
    device = Memory([{"id": "1", "name": "v1", "at": 1}], key="id", version="at")
    with store() as (api, side), paired(device, side) as (project, pair):
        pair.adopt()
        api.rows[0]["name"] = "v3"
        device.put({"id": "1", "name": name, "at": 50})
        pair.offer({"id": "1", "name": name, "at": 50})
        pair.run()
        assert api.rows == [{"id": "1", "name": "v3"}]
        assert [call.method for call in api.calls if call.method != "GET"] == []
        [case] = project.cases("people")
        assert case.drift == ("edited" if name == "v1" else "conflict")
        assert (dict(case.authority or {})["name"], dict(case.replica or {})["name"]) == (name, "v3")


def test_C134_a_write_names_the_revision_that_was_read_and_is_refused_where_it_is_stale() -> None:
    """Given an edit in the store between our read and our write, I expect the write refused and the edit kept."""
    device = Memory([{"id": "1", "name": "v1", "at": 1}], key="id", version="at")
    with store() as (api, side), paired(device, side) as (project, pair):
        pair.adopt()
        read = api.etag(api.rows[0])

        def edited(call: Call) -> Reply | None:
            if call.method == "PATCH":
                api.rows[0]["name"] = "v2"
            return None

        api.before = edited
        device.put({"id": "1", "name": "v1b", "at": 2})
        pair.offer({"id": "1", "name": "v1b", "at": 2})
        pair.run()
        assert [call.headers["if-match"] for call in api.methods("PATCH")] == [read]
        assert api.rows == [{"id": "1", "name": "v2"}]
        assert [case.drift for case in project.cases("people")] == ["conflict"]
