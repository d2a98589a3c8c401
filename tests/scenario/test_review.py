"""Cases decided on the command line: every choice on two SQLite files, from the question to the end."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_cli_run import TOML, execute, trueup  # noqa: F401  a fixture

Trueup = Callable[..., tuple[int, str, str]]
WHY = ("--reason", "as agreed", "--by", "ann")


@pytest.fixture
def shop(trueup: Trueup) -> Trueup:  # noqa: F811
    """An adopted pair of two SQLite files, eight orders each."""
    Path("trueup.toml").write_text(TOML, "utf-8")
    for name in ("shop.db", "erp.db"):
        execute(
            name,
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT, fee NUMERIC, rev INTEGER)",
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 8) "
            "INSERT INTO orders SELECT i, 'open', 1.5, i FROM n",
        )
    assert trueup("adopt", "orders")[0] == 0
    return trueup


def at(name: str, ident: int) -> tuple[Any, ...] | None:
    """Status and fee of an order."""
    found = execute(name, f"SELECT status, fee FROM orders WHERE id = {ident}")
    return found[0] if found else None


def edited(shop: Trueup, *idents: int) -> None:
    """A run that asks about orders that were edited at the replica."""
    execute("erp.db", f"UPDATE orders SET status = 'by hand' WHERE id IN ({', '.join(map(str, idents))})")
    assert shop("run")[0] == 1


def held(shop: Trueup) -> None:
    """A run whose plan would remove more than the pair allows."""
    Path("trueup.toml").write_text(TOML + 'on_drift = { orphaned = "repair" }\nstop_at = { deletes = 1 }\n', "utf-8")
    execute("shop.db", "DELETE FROM orders WHERE id IN (1, 2, 3)")
    assert shop("run")[0] == 1


def cases(shop: Trueup, *more: str) -> list[dict[str, Any]]:
    """The open cases."""
    found: list[dict[str, Any]] = json.loads(shop("review", "list", *more, "--json")[1])["cases"]
    return found


def test_what_waits_is_listed_and_shown_with_the_commands_that_decide_it(shop: Trueup) -> None:
    """Given an edited record, I expect it listed by age, both versions side by side, and exact commands."""
    assert shop("review") == (0, "nothing waits for a person\n", "")
    edited(shop, 3)
    code, out, err = shop("review", "list", "orders")
    assert (code, err) == (1, "")
    assert out.splitlines()[0].split()[:3] == ["1", "orders", "edited"]
    assert "1 case: 1 younger than a day; the oldest" in out
    assert out.splitlines()[-1] == "next: trueup review show 1"
    assert "→ trueup review show 1" in shop("status")[1]

    code, out, err = shop("review", "show", "1")
    assert (code, err) == (0, "")
    assert "it was edited at the replica" in out
    assert "orders (authority) is as it was then" in out
    assert any(line.split() == ["*", "status", "open", "by", "hand"] for line in out.splitlines())
    shown = json.loads(shop("review", "show", "1", "--json")[1])
    assert (shown["run"], shown["fields"], shown["authority_version"]) == (2, ["status"], 3)
    assert [each["choice"] for each in shown["choices"]] == [
        "take-authority", "take-replica", "edit", "accept", "ignore-once",
    ]  # fmt: skip
    assert f"trueup review decide 1 take-authority --shown {shown['shown']} --reason …" in out


def test_take_authority_is_written_through_the_handler(shop: Trueup) -> None:
    edited(shop, 3)
    code, out, err = shop("review", "decide", "1", "take-authority", *WHY)
    assert (code, out, err) == (0, "case 1: take-authority by ann: offered\n", "")
    assert at("erp.db", 3) == at("shop.db", 3) == ("open", 1.5)
    assert shop("run")[0] == 0
    out = shop("review", "show", "1")[1]
    assert "closed" in out
    assert "take-authority by ann, done (offered): as agreed" in out


def test_take_authority_removes_what_the_authority_does_not_have(shop: Trueup) -> None:
    execute("erp.db", "INSERT INTO orders VALUES (99, 'strange', 0, 0)")
    assert shop("run")[0] == 1
    assert "remove it at orders (replica)" in shop("review", "show", "1")[1]
    assert shop("review", "decide", "1", "take-authority", *WHY)[0] == 0
    assert at("erp.db", 99) is None


def test_take_replica_is_written_to_the_authority(shop: Trueup) -> None:
    edited(shop, 3)
    code, out, _ = shop("review", "decide", "1", "take-replica", *WHY)
    assert (code, out) == (0, "case 1: take-replica by ann: written, offered\n")
    assert at("shop.db", 3) == at("erp.db", 3) == ("by hand", 1.5)
    assert "agrees at both sides" in shop("explain", "orders", "3")[1]
    assert shop("run")[0] == 0


@pytest.mark.parametrize(("lost_at", "back"), [("erp.db", "shop.db"), ("shop.db", "erp.db")])
def test_take_replica_brings_and_removes_records_too(shop: Trueup, lost_at: str, back: str) -> None:
    """Given a record that one side lost, I expect the authority to have it exactly if the replica does."""
    Path("trueup.toml").write_text(TOML + 'on_drift = { removed = "review" }\n', "utf-8")
    execute(lost_at, "DELETE FROM orders WHERE id = 5")
    assert shop("run")[0] == 1
    assert shop("review", "decide", "1", "take-replica", *WHY)[0] == 0
    expected = None if lost_at == "erp.db" else ("open", 1.5)
    assert at(lost_at, 5) == at(back, 5) == expected
    assert shop("run")[0] == 0


def test_edit_goes_to_both_sides(shop: Trueup) -> None:
    edited(shop, 3)
    values = ("--set", "status=settled = 5", "--set", "fee=9.75")
    assert shop("review", "decide", "1", "edit", *values, *WHY)[0] == 0
    assert at("shop.db", 3) == at("erp.db", 3) == ("settled = 5", 9.75)
    assert shop("run")[0] == 0


def test_edit_can_make_a_field_null(shop: Trueup) -> None:
    edited(shop, 3)
    assert shop("review", "decide", "1", "edit", "--set-null", "status", *WHY)[0] == 0
    assert at("shop.db", 3) == at("erp.db", 3) == (None, 1.5)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("1", "edit", "--set", "fee=much"), "field fee: the new value is no decimal."),
        (("1", "edit", "--set", "id=9"), "does not compare id."),
        (("1", "edit"), "edit is decided with new values"),
        (("1", "take-authority", "--set", "fee=2"), "edit is decided with new values"),
        (("1", "accept"), "accept is decided until a date"),
        (("1", "accept", "--until", "2020-01-01"), "the date lies in the past"),
        (("1", "accept", "--until", "soon"), "'soon' is no date"),
        (("1", "approve-plan"), "approve-plan does not fit case 1: it is edited."),
        (("1", "take-authorty"), "there is no choice 'take-authorty'."),
        (("1", "take-authority", "--by", " "), "a decision needs a person."),
        (("1", "take-authority", "--reason", " "), "a decision needs a reason."),
        (("1", "take-authority", "--shown", "00000000"), "case 1: it moved on"),
        (("7", "take-authority"), "there is no case 7."),
        (("take-authority",), "name cases by number"),
        (("--all", "take-authority"), "name cases by number"),
        (("--all", "--pair", "orders", "edit"), "edit is decided for one case at a time."),
        (("--all", "--pair", "orders", "take-authority"), "nobody is here to be asked."),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_a_decision_that_lacks_something_is_refused_and_nothing_is_written(
    shop: Trueup, arguments: tuple[str, ...], said: str
) -> None:
    edited(shop, 3)
    code, _, err = shop("review", "decide", "--reason", "why", *arguments)
    assert (code, said in err, "hint: " in err) == (2, True, True)
    assert "much" not in err
    assert (at("shop.db", 3), at("erp.db", 3)) == (("open", 1.5), ("by hand", 1.5))
    assert len(cases(shop)) == 1


def test_an_accepted_difference_is_asked_about_no_more_but_another_one_is(shop: Trueup) -> None:
    """Given an accepted difference, I expect runs in agreement; given one more edit, I expect a question again."""
    edited(shop, 3)
    assert shop("review", "decide", "1", "accept", "--until", "2999-12-31", *WHY)[0] == 0
    code, out, _ = shop("run")
    assert (code, "0 repair, 0 review, 1 accepted" in out) == (0, True)
    assert shop("run", "--dry-run")[0] == 0
    assert shop("status")[0] == 0
    out = shop("review", "list", "--accepted")[1]
    assert "orders  3  until 3000-01-01" in out
    assert "ann: as agreed  status" in out
    assert at("erp.db", 3) == ("by hand", 1.5)

    execute("erp.db", "UPDATE orders SET fee = 7 WHERE id = 3")
    assert shop("run")[0] == 1
    assert [case["fields"] for case in cases(shop)] == [["status", "fee"]]
    execute("erp.db", "UPDATE orders SET fee = 1.5 WHERE id = 3")
    assert shop("run")[0] == 0
    assert cases(shop) == []


def test_an_acceptance_settles_the_job_that_waits_for_it(shop: Trueup) -> None:
    """Given a job that met a hand edit, I expect the acceptance to end it, and the next change to be asked about."""
    execute("erp.db", "UPDATE orders SET status = 'by hand' WHERE id = 3")
    execute("shop.db", "UPDATE orders SET fee = 2.5, rev = 20 WHERE id = 3")
    assert "1 parked" in shop("run")[1]
    assert [(case["drift"], case["run"]) for case in cases(shop)] == [("conflict", 0)]
    assert "found before a write (sweep)" in cases(shop)[0]["cause"]
    assert shop("review", "decide", "1", "accept", "--until", "2999-12-31", *WHY)[0] == 0
    assert shop("run")[0] == 0
    assert (at("shop.db", 3), at("erp.db", 3)) == (("open", 2.5), ("by hand", 1.5))

    execute("shop.db", "UPDATE orders SET fee = 3.5, rev = 21 WHERE id = 3")
    assert shop("run")[0] == 1
    assert len(cases(shop)) == 1
    assert shop("review", "decide", "2", "take-authority", *WHY)[0] == 0
    assert at("erp.db", 3) == ("open", 3.5)
    assert shop("run")[0] == 0


def test_ignore_once_closes_the_case_and_the_next_run_asks_again(shop: Trueup) -> None:
    edited(shop, 3)
    assert shop("review", "decide", "1", "ignore-once", *WHY)[0] == 0
    assert cases(shop) == []
    assert shop("run")[0] == 1
    assert [case["number"] for case in cases(shop)] == [2]


def test_a_record_that_moved_is_shown_again_and_not_written(shop: Trueup) -> None:
    """Given an edit after the case was shown, I expect a refusal that says so, and the case with the new values."""
    edited(shop, 3)
    execute("erp.db", "UPDATE orders SET status = 'and again' WHERE id = 3")
    code, _, err = shop("review", "decide", "1", "take-authority", *WHY)
    assert (code, "moved on" in err, "trueup review show 1" in err) == (2, True, True)
    assert at("erp.db", 3) == ("and again", 1.5)
    [case] = cases(shop)
    assert (case["number"], case["replica"]["status"]) == (1, "and again")
    assert "take-authority by ann, refused" in shop("review", "show", "1")[1]
    assert shop("review", "decide", "1", "take-authority", *WHY)[0] == 0
    assert at("erp.db", 3) == ("open", 1.5)


def test_a_record_that_agrees_by_now_closes_its_case(shop: Trueup) -> None:
    edited(shop, 3)
    execute("erp.db", "UPDATE orders SET status = 'open' WHERE id = 3")
    code, _, err = shop("review", "decide", "1", "take-replica", *WHY)
    assert (code, "the sides agree by now" in err) == (2, True)
    assert cases(shop) == []


def test_two_people_must_agree_where_the_pair_says_so(shop: Trueup) -> None:
    Path("trueup.toml").write_text(TOML + "two_person = true\n", "utf-8")
    edited(shop, 3)
    code, out, _ = shop("review", "decide", "1", "take-authority", *WHY)
    assert (code, "proposed by ann; a second person must agree" in out) == (0, True)
    assert at("erp.db", 3) == ("by hand", 1.5)
    code, _, err = shop("review", "decide", "1", "take-authority", "--reason", "again", "--by", "ANN")
    assert (code, "ann proposed this already" in err) == (2, True)
    assert "a second person must agree with ann" in shop("review", "show", "1")[1]
    assert shop("review", "decide", "1", "take-authority", "--reason", "yes", "--by", "bob")[0] == 0
    assert at("erp.db", 3) == ("open", 1.5)
    assert cases(shop) == []


def test_many_are_decided_at_once_each_guarded(shop: Trueup) -> None:
    """Given five edited records of which one moved, I expect a preview, four decided, and the fifth named."""
    edited(shop, 1, 2, 3, 4, 5)
    execute("shop.db", "DELETE FROM orders WHERE id = 8")
    assert shop("run")[0] == 1
    execute("erp.db", "UPDATE orders SET fee = 7 WHERE id = 2")
    arguments = ("review", "decide", "--pair", "orders", "--drift", "edited", "--all", "take-authority", "--yes")
    code, out, err = shop(*arguments, *WHY)
    assert (code, err) == (1, "")
    lines = out.splitlines()
    assert lines[0] == "take-authority fits 5 cases of orders: 5 edited"
    assert "4 decided, 1 refused" in lines
    assert lines[-1].startswith('  case 2: ["2"] moved on')
    assert [at("erp.db", ident) for ident in range(1, 6)] == [("open", 1.5), ("by hand", 7), *[("open", 1.5)] * 3]
    assert sorted(case["drift"] for case in cases(shop)) == ["edited", "orphaned"]
    code, out, _ = shop(*arguments, *WHY, "--json")
    assert (code, [each["state"] for each in json.loads(out)["answers"]]) == (0, ["done"])


def test_what_a_choice_does_not_fit_stays_and_is_said(shop: Trueup) -> None:
    execute("shop.db", "DELETE FROM orders WHERE id = 8")
    edited(shop, 1)
    code, out, _ = shop(
        "review", "decide", "--pair", "orders", "--all", "accept", "--until", "2999-01-01", "--yes", *WHY
    )
    assert (code, "accept fits 2 cases" in out) == (0, True)
    assert shop("run")[0] == 0


def test_cases_are_assigned_and_talked_about(shop: Trueup) -> None:
    edited(shop, 3, 4)
    assert shop("review", "assign", "1", "Zoë", "--due", "2999-12-31")[0] == 0
    assert shop("review", "comment", "1", "asked the partner", "--by", "ann")[0] == 0
    assert [case["number"] for case in cases(shop, "--assignee", "Zoë")] == [1]
    assert [case["number"] for case in cases(shop, "--assignee", "")] == [2]
    assert [case["number"] for case in cases(shop, "orders", "--key", "4")] == [2]
    assert cases(shop, "--older-than", "1h") == cases(shop, "--field", "fee") == []
    out = shop("review", "show", "1")[1]
    assert "Zoë looks into it until 3000-01-01" in out
    assert "ann: asked the partner" in out
    assert shop("review", "comment", "1", " ")[0] == shop("review", "comment", "9", "x")[0] == 2


def test_parked_jobs_are_listed_too(shop: Trueup) -> None:
    execute("erp.db", "CREATE TRIGGER no BEFORE UPDATE ON orders BEGIN SELECT RAISE(ABORT, 'not today'); END")
    Path("trueup.toml").write_text(TOML + "tries = 1\n", "utf-8")
    execute("shop.db", "UPDATE orders SET status = 'paid', rev = 30 WHERE id = 6")
    assert shop("run")[0] == 1
    code, out, _ = shop("review")
    assert (code, "1 job of orders parked → trueup retry orders" in out) == (1, True)
    assert [each["key"] for each in json.loads(shop("review", "list", "--json")[1])["parked"]] == ['["6"]']


def test_a_held_plan_is_shown_and_approved_as_it_was_shown(shop: Trueup) -> None:
    """Given a plan that a breaker stopped, I expect its items shown, and after approval only those still as shown."""
    held(shop)
    [case] = cases(shop)
    assert case["drift"] == "held"
    out = shop("review", "show", str(case["number"]))[1]
    assert "3 orphaned: removes at the replica" in out
    assert "approve-plan" in out
    execute("erp.db", "UPDATE orders SET status = 'by hand' WHERE id = 2")
    code, out, err = shop("review", "decide", str(case["number"]), "approve-plan", *WHY)
    assert (code, err) == (0, "")
    assert "2 offered, 1 no longer as they were shown" in out
    assert [at("erp.db", ident) is None for ident in (1, 2, 3)] == [True, False, True]


def test_a_held_plan_can_be_dropped(shop: Trueup) -> None:
    held(shop)
    code, out, _ = shop("review", "decide", str(cases(shop)[0]["number"]), "drop-plan", *WHY)
    assert (code, "3 dropped" in out) == (0, True)
    assert cases(shop) == []
    assert execute("erp.db", "SELECT count(*) FROM orders") == [(8,)]


def test_of_two_processes_that_decide_at_once_one_wins(shop: Trueup) -> None:
    """Given many cases and two processes with opposite choices, I expect each case decided once, as it was said."""
    idents = range(1, 9)
    edited(shop, *idents)
    numbers = [str(case["number"]) for case in cases(shop)]
    program = [sys.executable, "-m", "trueup", "review", "decide", *numbers]
    both = [
        subprocess.Popen(
            [*program, choice, "--reason", "race", "--by", choice, "--json"], stdout=subprocess.PIPE, text=True
        )
        for choice in ("take-authority", "take-replica")
    ]
    answers = [json.loads(process.communicate(timeout=120)[0])["answers"] for process in both]
    done = [{each["key"] for each in of_one if each["state"] == "done"} for of_one in answers]
    assert done[0] & done[1] == set()
    shop("run")
    for ident in idents:
        key = f'["{ident}"]'
        if key in done[0] | done[1]:
            expected = "open" if key in done[0] else "by hand"
            assert at("shop.db", ident) == at("erp.db", ident) == (expected, 1.5)
    assert done[0] | done[1]
