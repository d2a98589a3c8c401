"""Budgets as work meets them: what waits, who goes first, and what status says of it."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from api import Api, serving
from school import School, person
from trueup import Http
from trueup.cli.main import main
from trueup.model.budget import DAY_US, System
from trueup.model.change import Origin
from trueup.testing.clock import START_US

HOUR_US = 3_600_000_000


@pytest.fixture
def api() -> Iterator[Api]:
    rows = [{name: value for name, value in person(at).items() if name not in ("v", "fee")} for at in range(1, 41)]
    with serving(Api(rows=rows)) as api:
        yield api


@pytest.fixture
def school_of(api: Api) -> Iterator[Callable[..., School]]:
    """A school whose platform is an API with a budget; adopted, and what is counted is counted from here."""
    with contextlib.ExitStack() as stack:

        def school_of(**system: Any) -> School:
            school = limited(api, system)
            stack.callback(school.project.close)
            return school

        yield school_of


def limited(api: Api, system: dict[str, Any]) -> School:
    school = School([person(at) for at in range(1, 41)])
    platform = Http(f"{api.url}/items", key="id", columns={"id": "integer", "name": "text", "status": "text"})
    school.pair = school.project.pair(
        "api", authority=school.authority, replica=platform, settle=0, fields=["name", "status"],
        system=school.project.system("courses", **system),
    )  # fmt: skip
    school.pair.adopt()
    school.clock.advance(3 * HOUR_US / 1e6)
    api.calls.clear()
    return school


def change(school: School, *idents: int, origin: Origin) -> None:
    rows = [person(ident, name="changed", v=100) for ident in idents]
    for row in rows:
        school.authority.put(row)
    school.ledger.offer([school.pair.records.change_of(row, deleted=False, origin=origin) for row in rows])


def changed(api: Api) -> set[int]:
    return {row["id"] for row in api.rows if row["name"] == "changed"}


def test_work_without_budget_waits_and_events_go_on(api: Api, school_of: Callable[..., School]) -> None:
    school = school_of(limit="40/hour", reserve=0.5)
    worker = school.project.worker(["api"])
    change(school, *range(1, 21), origin=Origin.SWEEP)
    worker.once(school.project.chance())
    assert 17 <= len(api.calls) <= 20
    assert len(changed(api)) == 6
    change(school, 40, origin=Origin.EVENT)
    worker.once(school.project.chance())
    assert 40 in changed(api)
    health = school.project.budgets.health("courses")
    assert (health.paused(school.clock.now_us()), health.probes) == (False, 0)
    rows = school.ledger.rows("api", [f'["{ident}"]' for ident in range(1, 21)]).values()
    assert all(row.tries == 0 for row in rows)
    for _ in range(4):
        school.clock.advance(1_850)
        worker.drain(1_000_000)
    assert changed(api) == {*range(1, 21), 40}
    assert len(api.calls) <= 21 * 3


def test_what_the_budget_has_no_room_for_stays_where_it_is(api: Api, school_of: Callable[..., School]) -> None:
    """Given far more repairs than the budget takes, I expect none to be taken up and put back, again and again."""
    school = school_of(limit="40/minute", reserve=0.5)
    change(school, *range(1, 41), origin=Origin.COMPARE)
    worker, chance = school.project.worker(["api"]), school.project.chance()
    for _ in range(30):
        worker.once(chance)
        school.clock.advance(0.1)
    told = [each for ident in range(1, 41) for each in school.ledger.history("api", f'["{ident}"]')]
    assert 4 < len(changed(api)) < 10
    assert sum(what == "claimed" for _, what, _ in told) <= len(changed(api)) + 1


def test_a_quota_that_is_used_up_parks_nothing_and_ends_with_the_day(
    api: Api, school_of: Callable[..., School]
) -> None:
    school = school_of(quota="30/day", reserve=0)
    change(school, *range(1, 21), origin=Origin.SWEEP)
    worker, days = school.project.worker(["api"]), []
    for _ in range(4):
        before = len(api.calls)
        assert not worker.drain(1_000_000)["parked"]
        days.append(len(api.calls) - before)
        school.clock.advance(DAY_US / 1e6)
    assert max(days) <= 30
    assert sum(days) == 60
    assert changed(api) == set(range(1, 21))
    assert school.pair.status().counts["pending"] == 0


def test_status_says_what_is_spent_and_how_long_the_rest_takes(school_of: Callable[..., School]) -> None:
    school = school_of(limit="40/hour", reserve=0.5, quota="1000/day", quota_reset="00:00 UTC")
    change(school, *range(1, 21), origin=Origin.SWEEP)
    [system, authority] = school.pair.status().systems
    assert (system.system, authority.system) == ("courses", "api:authority")
    # Twenty records of three calls each, twenty calls an hour.
    assert (system.pace, round((system.lasts_us or 0) / HOUR_US)) == ("20/hour", 2)
    school.project.worker(["api"]).once(school.project.chance())
    [hour, day] = school.pair.status().systems[0].spending
    assert (hour.limit, hour.spent, hour.by_rest, hour.most_of_rest, hour.resets_us) == ("40/hour", 18, 18, 20, None)
    assert day.limit == "1000/day from 00:00 UTC"
    assert day.resets_us == (START_US // DAY_US + 1) * DAY_US


def test_a_system_that_is_never_called_has_nothing_to_say() -> None:
    school = School().adopted()
    assert all(not each.spending and not each.paused and each.lasts_us is None for each in school.pair.status().systems)


TOML = """\
[system.erp]
limit = ["60/minute", "20000/day"]
quota = "10000/day"
quota_reset = "08:00 Europe/Berlin"
cost = { write = 2 }
cost_header = "X-Cost"
remaining_header = "X-RateLimit-Remaining"
reset_header = "X-RateLimit-Reset"
pause_max = "2h"

[pair.orders]
authority = { url = "sqlite:///shop.db", table = "orders", key = "id" }
replica = { url = "sqlite:///erp.db", table = "orders", key = "id" }
system = "erp"
settle = 0
"""


@pytest.fixture
def shop(capsys: Any, tmp_path: Path, monkeypatch: Any) -> Any:
    """Runs the command line in a folder with an adopted pair of 1,000 orders, of which 40 change at the shop."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRUEUP_PROJECT", raising=False)
    Path("trueup.toml").write_text(TOML, "utf-8")
    for name in ("shop.db", "erp.db"):
        with closing(sqlite3.connect(name)) as db:
            db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT)")
            db.executemany("INSERT INTO orders VALUES (?, 'open')", [(number,) for number in range(1, 1001)])
            db.commit()

    def run(*arguments: str) -> tuple[int, str]:
        code = main(list(arguments), standalone=False)
        return code, capsys.readouterr().out

    run("adopt", "orders")
    with closing(sqlite3.connect("shop.db")) as db:
        db.execute("UPDATE orders SET status = 'paid' WHERE id <= 40")
        db.commit()
    run("run", "orders", "--enqueue")
    return run


def test_the_forecast_on_the_command_line(shop: Any) -> None:
    _, out = shop("status")
    assert "erp: 40 records in about 2 min at 36/minute" in out
    [pair] = json.loads(shop("status", "--json")[1])["pairs"]
    [erp, _] = pair["systems"]
    assert (erp["system"], erp["paused"], erp["pace"]) == ("erp", False, "36/minute")
    assert 1.5 * 60e6 < erp["lasts_us"] < 3 * 60e6
    assert [each["limit"] for each in erp["spending"]] == [
        "60/minute", "20000/day", "10000/day from 08:00 Europe/Berlin",
    ]  # fmt: skip


@pytest.mark.parametrize(("what", "ends"), [("erp", "trueup resume erp"), ("--all", "trueup resume --all")])
def test_a_pause_says_until_when_by_whom_why_and_what_ends_it(shop: Any, what: str, ends: str) -> None:
    shop("pause", what, "--reason", "maintenance until 6")
    _, out = shop("status")
    assert "erp: paused until a person ends it, by " in out
    assert ": maintenance until 6" in out
    assert f"→ {ends}" in out
    [pair] = json.loads(shop("status", "--json")[1])["pairs"]
    erp = pair["systems"][0]
    assert (erp["paused"], erp["reason"], erp["next_command"]) == (True, "maintenance until 6", ends)
    assert "@" in erp["paused_by"]
    shop(*ends.removeprefix("trueup ").split())
    assert "paused" not in shop("status")[1]


def test_every_option_of_a_system_in_toml_is_the_one_of_python(shop: Any) -> None:
    from trueup.loading import load

    project = load("trueup.toml")
    options: dict[str, Any] = {
        "limit": ["60/minute", "20000/day"], "quota": "10000/day", "quota_reset": "08:00 Europe/Berlin",
        "cost": {"write": 2}, "cost_header": "X-Cost", "remaining_header": "X-RateLimit-Remaining",
        "reset_header": "X-RateLimit-Reset", "pause_max": "2h",
    }  # fmt: skip
    assert project.pairs["orders"].pair.system == project.system("erp", **options)
    assert isinstance(project.pairs["orders"].pair.system, System)


@pytest.mark.parametrize(("line", "message"), [
    ('quota = "5/hour"', "is not a quota of a day"),
    ("reserve = 1.0", "reserve"),
    ('cost = { lists = 2 }', "cost"),
    ('reset_header = "X"\nlimit = "1/second"', "reset_header says nothing alone"),
])  # fmt: skip
def test_a_wrong_option_in_toml_names_its_file(tmp_path: Path, monkeypatch: Any, line: str, message: str) -> None:
    from trueup.config import load
    from trueup.errors import ConfigError

    monkeypatch.chdir(tmp_path)
    pair = TOML[TOML.index("[pair") :]
    Path("trueup.toml").write_text(f"[system.erp]\n{line}\n\n{pair}", "utf-8")
    with pytest.raises(ConfigError, match=message) as caught:
        load("trueup.toml")
    assert "trueup.toml" in str(caught.value)
