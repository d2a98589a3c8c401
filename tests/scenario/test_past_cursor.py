"""The cheap comparison reads only what was touched, and the full one proves it right."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import trueup
from trueup.errors import ConfigError, SchemaError
from trueup.model.digest import digest_of
from trueup.model.record import key_text
from trueup.model.row import Baseline
from trueup.sides.memory import Memory
from trueup.testing.clock import START_US, ManualClock

COLUMNS = {"id": "integer", "name": "text", "at": "instant"}


def at(clock):
    return datetime.fromtimestamp(clock.now_us() / 1e6, UTC)


class Counting(Memory):
    """Counts what is read of it."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.scanned = self.read_keys = 0

    def scan(self, projection, *scope):
        for batch in super().scan(projection, *scope):
            self.scanned += batch.num_rows
            yield batch

    def read(self, projection, keys):
        self.read_keys += len(keys)
        return super().read(projection, keys)


class World:
    def __init__(self, tmp_path, *, replica_versioned=True, rows=500):
        self.clock = ManualClock()
        old = datetime.fromtimestamp(START_US / 1e6, UTC) - timedelta(days=30)
        values = [{"id": number, "name": f"n{number}", "at": old} for number in range(rows)]
        self.authority = Counting(values, key="id", version="at", columns=COLUMNS, clock=self.clock)
        version = {"version": "at", "stamp": True} if replica_versioned else {}
        self.replica = Counting(values, key="id", columns=COLUMNS, clock=self.clock, **version)
        self.project = trueup.Project(f"sqlite:///{tmp_path}/state.db", clock=self.clock, seed=1, threads=1)
        self.pair = self.project.pair(
            "people", authority=self.authority, replica=self.replica, fields=["name"], settle="1m", overlap="10m"
        )

    def forget(self):
        for side in (self.authority, self.replica):
            side.scanned = side.read_keys = 0

    def write(self, side, number, name):
        side.put({"id": number, "name": name, "at": at(self.clock)})


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    with world.project:
        world.pair.adopt()
        world.clock.advance(7_200)
        world.forget()
        yield world


def test_nothing_was_touched_and_hardly_anything_is_read(world):
    report = world.pair.run("changed")
    assert (report.counts["left"], report.counts["right"], report.counts["differ"]) == (0, 0, 0)
    assert world.authority.scanned == world.replica.scanned == 0
    assert report.exit_code == 0


def test_what_each_side_touched_is_found_and_the_rest_is_not_read(world):
    world.write(world.authority, 3, "new")
    world.write(world.replica, 5, "by hand")
    world.clock.advance(300)
    report = world.pair.run("changed")
    assert (report.counts["drift_behind"], report.counts["drift_edited"]) == (1, 1)
    assert (report.counts["left"], report.counts["right"]) == (1, 1)
    assert world.authority.read_keys + world.replica.read_keys < 20
    assert [case.key for case in world.project.archive.cases("people")] == [key_text(["5"])]
    full = world.pair.run("compare")
    assert (full.counts["drift_behind"], full.counts["drift_edited"]) == (0, 1)


@pytest.mark.parametrize("dry_run", [True, False])
def test_what_both_sides_changed_alike_is_not_read_again(world, dry_run):
    """Given a hand that made one change on both sides, I expect an agreement that only a real run remembers."""
    for side in (world.authority, world.replica):
        world.write(side, 3, "alike")
    world.write(world.replica, 5, "by hand")
    world.clock.advance(300)
    before = world.project.ledger.rows("people", [key_text(["3"])])[key_text(["3"])]

    report = world.pair.run("changed", dry_run=dry_run)

    assert (report.counts["left"], report.counts["right"], report.counts["differ"]) == (1, 2, 1)
    assert report.counts["baseline"] == (0 if dry_run else 1)
    assert world.authority.read_keys <= 3  # of record 5, and of its case
    row = world.project.ledger.rows("people", [key_text(["3"])])[key_text(["3"])]
    assert (row == before) == dry_run
    if not dry_run:
        assert row.done_digest == row.done_replica != before.done_digest
        assert row.done_version is not None
        assert before.done_version is not None
        assert row.done_version > before.done_version
        # It is known from now on: a hand that puts the old value back is drift.
        world.write(world.replica, 3, "n3")
        world.clock.advance(300)
        assert world.pair.run("changed").counts["drift_edited"] == 2


def test_an_event_that_comes_meanwhile_is_not_forgotten(world, monkeypatch):
    """Given a change that is offered while both sides are being read, I expect no agreement to be stored over it."""
    for side in (world.authority, world.replica):
        world.write(side, 3, "alike")
    world.clock.advance(300)
    unlike = world.project.ledger.unlike

    def offered_meanwhile(pair, seen):
        answer = unlike(pair, seen)
        world.clock.advance(1)
        world.write(world.authority, 3, "newer")
        world.pair.offer([{"id": 3, "name": "newer", "at": at(world.clock)}])
        return answer

    monkeypatch.setattr(world.project.ledger, "unlike", offered_meanwhile)
    assert world.pair.run("changed").counts["baseline"] == 0
    # So the replica's state is one that nobody knows, and a person is asked.
    assert [case.key for case in world.project.archive.cases("people")] == [key_text(["3"])]


def test_our_own_writes_are_not_looked_at_again(world):
    world.write(world.authority, 3, "new")
    world.clock.advance(300)
    assert world.pair.run("changed").counts["differ"] == 1
    world.clock.advance(120)
    again = world.pair.run("changed")
    assert (again.counts["left"], again.counts["right"], again.counts["differ"]) == (1, 1, 0)


def test_the_cursor_moves_and_what_lies_behind_it_is_not_read_again(world):
    world.write(world.authority, 3, "new")
    world.clock.advance(300)
    world.pair.run("changed")
    world.clock.advance(7_200)
    world.pair.run("changed")
    world.forget()
    assert world.pair.run("changed").counts["left"] == 0


def test_a_replica_that_can_not_tell_is_read_by_key(tmp_path):
    world = World(tmp_path, replica_versioned=False)
    with world.project:
        world.pair.adopt()
        world.clock.advance(7_200)
        world.write(world.authority, 3, "new")
        world.write(world.replica, 5, "by hand")
        world.clock.advance(300)
        world.forget()
        report = world.pair.run("changed")
        assert report.counts["drift_behind"] == 1
        assert world.replica.scanned == 0
        # Only the full comparison shows what a replica without version changed.
        assert report.counts["drift_edited"] == 0
        assert world.pair.run("compare").counts["drift_edited"] == 1


def test_a_record_that_vanished_is_for_the_full_comparison(world):
    assert world.authority.remove(7)
    world.clock.advance(300)
    assert world.pair.run("changed").counts["differ"] == 0
    assert world.pair.run("compare").counts["drift_orphaned"] == 1


def test_a_pair_that_was_never_compared_says_so(tmp_path):
    world = World(tmp_path)
    with world.project:
        world.project.ledger.settle("people")
        with pytest.raises(ConfigError, match="never compared"):
            world.pair.run("changed")


# ── in the databases ─────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def tables(on_postgres, tmp_path):
    """Two tables of 400 orders that agree, adopted; and the means to change them."""
    made = [on_postgres.table("id bigint, state text, ratio float8, note text, at timestamptz") for _ in range(2)]
    for table in made:
        on_postgres.execute(
            f"INSERT INTO {on_postgres.quoted(table)} SELECT i, "
            "CASE WHEN i % 5 = 0 THEN 'dropped' ELSE 'enrolled' END, i / 8.0, CASE WHEN i % 3 > 0 THEN 'ä' || i END, "
            "now() - interval '30 days' FROM generate_series(1, 400) i"
        )
    sides = [on_postgres.side(table, key="id", version="at") for table in made]
    with trueup.Project(f"sqlite:///{tmp_path}/state.db", seed=1, threads=1) as project:
        pair = project.pair(
            "orders", authority=sides[0], replica=sides[1], fields=["state", "ratio", "note"], action_field="state",
            settle=0,
        )  # fmt: skip
        pair.adopt()

        def execute(side, sql):
            on_postgres.execute(sql.format(on_postgres.quoted(made[side])))

        def change(side, assignments, where):
            execute(side, f"UPDATE {{}} SET at = now(), {assignments} WHERE {where}")

        yield pair, sides, change, execute


def found(report):
    return sorted(item.key for item in report.plan)


def test_databases_tell_digests_and_only_what_differs_is_read(tables, monkeypatch):
    pair, sides, change, _ = tables
    change(0, "note = note", "id <= 200")
    change(1, "note = note", "id BETWEEN 101 AND 300")
    change(0, "note = 'new'", "id = 7")
    change(0, "state = 'enrolled'", "id = 10")
    change(1, "ratio = 7.5", "id IN (150, 290)")
    for side in sides:
        monkeypatch.setattr(side, "scan", lambda *_: pytest.fail("records were brought here"))
    report = pair.run("changed", dry_run=True)
    assert (report.counts["left"], report.counts["right"]) == (200, 200)
    assert found(report) == [key_text([number]) for number in ("10", "150", "290", "7")]


def test_what_a_database_can_not_digest_is_read_and_judged(tables):
    pair, _, change, _ = tables
    for side in (0, 1):
        change(side, "ratio = 1e300", "id IN (3, 4)")
    change(1, "ratio = 2e300", "id = 4")
    report = pair.run("changed", dry_run=True)
    assert report.counts["differ"] == 2
    assert found(report) == [key_text(["4"])]


def test_a_key_that_is_there_twice_at_either_side_is_looked_at(tables):
    pair, _, change, execute = tables
    change(0, "note = note", "id = 3")
    execute(0, "INSERT INTO {} SELECT id, 'enrolled', 0, 'twin', now() FROM generate_series(3, 3) id")
    execute(1, "INSERT INTO {} SELECT id, 'enrolled', 0, 'twin', now() FROM generate_series(6, 6) id")
    change(1, "note = note", "id = 6 AND note IS NULL")
    report = pair.run("changed", dry_run=True)
    assert (report.counts["left"], report.counts["right"]) == (2, 2)
    assert found(report) == [key_text(["3"]), key_text(["6"])]


def test_a_side_that_fails_is_told_and_leaves_no_statement_behind(tables):
    pair, sides, change, execute = tables
    change(0, "note = note", "id <= 200")
    execute(1, "ALTER TABLE {} DROP COLUMN note")
    with pytest.raises(SchemaError, match="note"):
        pair.run("changed", dry_run=True)
    assert sides[0].now_us() > 0


def test_a_dry_run_takes_no_digests_and_shows_what_the_run_will_do(tables, tmp_path, monkeypatch):
    """Given touched records, some of them stored in another way as everybody knows, I expect one plan either way."""
    _, sides, change, _ = tables
    with trueup.Project(f"sqlite:///{tmp_path}/plain.db", seed=1, threads=1) as project:
        pair = project.pair("plain", authority=sides[0], replica=sides[1], fields=["state", "ratio", "note"], settle=0)
        pair.adopt()
        for side in (0, 1):
            change(side, "note = 'alike'", "id <= 200")
        change(1, "note = 'ALIKE'", "id = 5")
        digests = [digest_of(["dropped", "0.625", note]) for note in ("alike", "ALIKE")]
        known = Baseline(key_text(["5"]), None, *digests, since_us=project.ledger.now_us())
        assert project.ledger.baseline("plain", [known]) == 1
        change(0, "note = 'new'", "id IN (7, 300)")
        change(1, "note = 'by hand'", "id = 8")
        with monkeypatch.context() as patch:
            for way in ("scan", "digests"):
                patch.setattr(type(sides[0]), way, lambda *_: pytest.fail("hashes should have told"))
            dry = pair.run("changed", dry_run=True)
        report = pair.run("changed")
    assert found(dry) == found(report) == [key_text([number]) for number in ("300", "7", "8")]
    for name in ("left", "right", "differ", "converged"):
        assert dry.counts[name] == report.counts[name]
