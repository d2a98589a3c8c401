"""What drifts run after run is named once, with where to look, and the question closes itself when it is over."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from school import School, person
from trueup.cli import trend_text
from trueup.cli.main import main
from trueup.model.case import Case
from trueup.model.trend import RECORD

PEOPLE = [person(at) for at in range(1, 101)]  # twelve of them a day
DAY_S = 86_400


def school(**options: Any) -> School:
    found = School(PEOPLE, **options).adopted()
    found.clock.advance(DAY_S)
    return found


def lose_events(world: School, count: int = 12, *, round_: int) -> None:
    """So many people pay another fee, each day others, and nobody hears of it."""
    for at in range(12 * round_, 12 * round_ + count):
        world.authority.put(person(at, fee=f"{round_}.75", v=1_000 * round_ + at))


def day(world: School, *, round_: int, count: int = 12) -> None:
    lose_events(world, count, round_=round_)
    world.pair.run("compare")
    world.drain()
    world.clock.advance(DAY_S)


def defects(world: School) -> list[Case]:
    return [case for case in world.project.cases("people") if case.drift == "defect"]


def test_a_field_that_drifts_in_three_runs_is_a_defect_upstream() -> None:
    """Given fees that fall behind every day and are repaired every day, I expect one question, after three days."""
    world = school()
    for round_ in (1, 2):
        day(world, round_=round_)
    assert defects(world) == []
    began_us = world.clock.now_us() - 2 * DAY_S * 1_000_000
    day(world, round_=3)
    [case] = defects(world)
    assert (case.key, case.fields, case.is_record) == ("#defect behind fee", ("fee",), False)
    assert case.cause.startswith("fee is behind in 3 runs running, since 20")
    assert ": 12 of 100 records (12.00%) in the last, such as 36; 37; 38; 39; 40. The authority changed" in case.cause
    [streak] = world.pair.trend().streaks
    assert (streak.runs, streak.total, streak.since_us) == (3, 36, began_us)
    [told] = [each for each in world.project.conditions() if each.name == "defect"]
    assert (told.subject, told.command) == ("people", f"trueup review show {case.number}")
    assert f"{told.cause}, such as 36" in case.cause


def test_the_question_is_told_anew_while_it_is_open_and_closes_itself() -> None:
    world = school()
    for round_ in range(1, 5):
        day(world, round_=round_)
    [case] = defects(world)
    assert case.cause.startswith("fee is behind in 4 runs running")
    world.pair.run("compare")
    assert defects(world) == []
    closed = world.project.archive.case(case.number)
    assert closed is not None
    assert closed.closed == f"run {world.project.archive.runs('people')[0].number} found none of it"
    assert "defect" not in [each.name for each in world.project.conditions()]
    assert world.pair.trend().streaks == []


def test_a_question_that_is_ignored_is_put_again_after_three_more_runs() -> None:
    world = school()
    for round_ in range(1, 4):
        day(world, round_=round_)
    [case] = defects(world)
    world.pair.decide(case.number, "ignore-once", person="ann", reason="they know of it")
    for round_ in (4, 5):
        day(world, round_=round_)
        assert defects(world) == []
    day(world, round_=6)
    [again] = defects(world)
    assert again.number != case.number
    assert again.cause.startswith("fee is behind in 6 runs running")


@pytest.mark.parametrize(
    ("options", "count"), [({}, 9), ({"defect_share": 0.2}, 12), ({"defect_after": 0}, 12), ({"defect_after": 5}, 12)]
)
def test_noise_is_no_defect(options: dict[str, Any], count: int) -> None:
    """Given few records, a small share, or a rule that wants more runs, I expect the trend and no question."""
    world = school(**options)
    for round_ in range(1, 5):
        day(world, round_=round_, count=count)
    assert defects(world) == []
    assert sum(each.records for each in world.pair.trend().by_place()["behind", "fee"]) == 4 * count


def test_what_waits_for_a_person_does_not_drift_again() -> None:
    """Given twelve edits at the replica that nobody decides about, I expect them counted once, and no defect."""
    world = school()
    for at in range(1, 13):
        world.replica.put({"id": at, "name": "by hand", "fee": "1.50", "status": "registered"})
    for _ in range(4):
        world.pair.run("compare")
        world.clock.advance(DAY_S)
    assert len(world.cases) == 12
    trend = world.pair.trend()
    assert sum(each.records for each in trend.by_place()["edited", "name"]) == 12
    assert sum(each.runs for each in trend.every) == 4


def test_new_edits_of_one_field_in_three_runs_are_a_defect_though_the_old_ones_wait() -> None:
    world = school()
    for round_ in range(3):
        for at in range(1 + 12 * round_, 13 + 12 * round_):
            world.replica.put({"id": at, "name": "by hand", "fee": "1.50", "status": "registered"})
        world.pair.run("compare")
        world.clock.advance(3_600)
        world.pair.run("compare")  # finds only what waits already
        world.clock.advance(3_600)
    [case] = defects(world)
    assert case.cause.startswith("name is edited in 3 runs running")
    for waiting in world.project.cases("people"):
        if waiting.is_record:
            world.pair.decide(waiting.number, "take-authority", person="ann", reason="a script did it")
    world.drain()
    world.pair.run("compare")
    assert world.cases == {}


def test_lost_records_are_counted_and_name_no_field() -> None:
    world = school()
    for round_ in range(1, 4):
        for at in range(12):
            world.authority.put(person(1_000 * round_ + at))
        world.pair.run("compare")
        world.drain()
        world.clock.advance(DAY_S)
    assert list(world.pair.trend().by_place()) == [("missing", RECORD)]
    assert defects(world) == []


def test_neither_adoption_nor_a_dry_run_tells_of_drift() -> None:
    world = School(PEOPLE)
    lose_events(world, round_=1)
    world.pair.run("compare")  # before it is adopted: only a report
    world.pair.adopt()
    world.pair.run("compare", dry_run=True)
    assert (world.pair.trend().buckets, world.pair.trend().streaks) == ([], [])


def test_the_keys_of_a_pair_that_redacts_them_are_not_named() -> None:
    world = school(redact=["id"])
    for round_ in range(1, 4):
        day(world, round_=round_)
    [case] = defects(world)
    assert "(12.00%) in the last. The authority changed it" in case.cause
    assert world.pair.trend().streaks[0].examples == ('["(redacted)"]',) * 5


def test_a_comparison_of_what_changed_counts_what_it_finds_and_ends_nothing() -> None:
    """Given two days of drift, a look at what was touched that finds none, and a third day, I expect the question."""
    world = school()
    for round_ in (1, 2):
        day(world, round_=round_)
    world.pair.run("changed")
    day(world, round_=3)
    assert len(defects(world)) == 1
    world.pair.run("changed")
    assert len(defects(world)) == 1


# ── for people ───────────────────────────────────────────────────────────────────────────────────────


DRAWN = """\
people   7 runs since 2027-01-01, 42 drifts
                                          2026-12-01 … 2027-09-26  records  at most
 behind     (records)   ▄    │        ▁▃   │             ·   █▇█        42   12.00%
 behind     fee         ▄    │        ▁▃   │             ·   █▇█        42   12.00%
 months from 2026-12-01 │ weeks from 2027-06-07 │ days from 2027-09-06
 · no drift, blank: no run, █ the most on this line
fee is a defect upstream: behind run after run, since 2027-09-23
→ trueup review show 1
"""


def watched(**options: Any) -> School:
    """A pair whose fees fell behind three years ago, somewhat since, and each day of late."""
    world = school(**options)
    day(world, round_=1, count=5)
    for days, round_, count in ((200, 2, 1), (7, 3, 3), (36, 4, 0), (3, 5, 12), (0, 6, 10), (0, 7, 11)):
        world.clock.advance(days * DAY_S)
        day(world, round_=round_, count=count)
    return world


def drawn(world: School, capsys: pytest.CaptureFixture[str]) -> list[str]:
    trend_text.show([world.pair.trend()])
    return capsys.readouterr().out.splitlines()


def test_the_trend_is_drawn(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "90")
    assert drawn(watched(), capsys) == DRAWN.splitlines()


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_the_trend_fits_the_terminal(monkeypatch: pytest.MonkeyPatch, capsys: Any, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = drawn(watched(), capsys)
    assert max(map(len, lines)) <= min(columns, 100)
    table = [line for line in lines if line.endswith(("%", "at most"))]
    assert len({len(line) for line in table}) <= 1


CONFIG = """
[pair.people]
authority = { url = "sqlite:///school.db", table = "people", key = "id", version = "v" }
replica = { url = "sqlite:///platform.db", table = "people", key = "id" }
settle = 0
redact = ["id"]
"""


@pytest.fixture
def trueup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs the command line on a project whose names were behind in three runs; answers exit code and output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("TRUEUP_PROJECT", raising=False)
    Path("trueup.toml").write_text(CONFIG, "utf-8")

    def run(*arguments: str) -> tuple[int, str]:
        code = main(list(arguments), standalone=False)
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    for name in ("school", "platform"):
        with closing(sqlite3.connect(f"{name}.db")) as db:
            db.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, v INTEGER)")
            db.executemany("INSERT INTO people VALUES (?, 'Zoë', ?)", [(at, at) for at in range(100)])
            db.commit()
    assert run("status", "people", "--trend")[1] == "people   no comparison has closed yet\n→ trueup run people\n"
    run("adopt", "people")
    for round_ in range(3):
        with closing(sqlite3.connect("school.db")) as db:
            # Nobody raises the version, so only the comparison sees it.
            db.execute("UPDATE people SET name = 'Zoé' WHERE id / 10 = ?", (round_,))
            db.commit()
        run("run", "people")
    return run


def test_the_command_line_draws_the_trend_and_names_the_defect(trueup: Any) -> None:
    code, shown = trueup("status", "--trend")
    assert code == 1
    assert re.fullmatch(
        r"people   3 runs since (.{10}), 30 drifts\n"
        r" {14}\1  records  at most\n"
        r" behind     \(records\)  █       30   10.00%\n"
        r" behind     name       █       30   10.00%\n"
        r" days from \1\n"
        r" · no drift, blank: no run, █ the most on this line\n"
        r"name is a defect upstream: behind run after run, since \1\n"
        r"→ trueup review show 1\n",
        shown,
    ), shown


def test_the_same_as_numbers(trueup: Any) -> None:
    [found] = json.loads(trueup("status", "people", "--trend", "--json")[1])["pairs"]
    [every] = found["runs"]
    assert (every["length"], every["runs"], every["records"], every["compared"]) == ("day", 3, 30, 300)
    assert [(each["cause"], each["field"], each["records"], each["case"]) for each in found["drift"]] == [
        ("behind", None, 30, None),
        ("behind", "name", 30, 1),
    ]
    [streak] = found["streaks"]
    assert (streak["field"], streak["runs"], streak["share"], streak["case"]) == ("name", 3, 0.1, 1)


def test_review_shows_the_question_without_personal_keys(trueup: Any) -> None:
    listed = trueup("review", "list")[1]
    assert re.match(r"1  people  defect .* the pair      name is behind in 3 runs running, s", listed)
    shown = trueup("review", "show", "1")[1]
    assert "case 1 of people: the pair   defect, open for" in shown
    assert "3 runs running since" in shown
    assert "30 records; in run 4 10 of 100, 10.00%" in shown
    assert "(redacted)" in shown
    assert "trueup review decide 1 ignore-once" in shown
    document = json.loads(trueup("review", "show", "1", "--json")[1])
    assert (document["drift"], document["fields"], document["defect"]["total"]) == ("defect", ["name"], 30)
    assert trueup("run", "people")[0] == 0
    assert trueup("review", "list")[1] == "nothing waits for a person\n"
