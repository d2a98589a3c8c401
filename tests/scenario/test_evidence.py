"""Evidence of a month of payments: what an auditor asks, answered from what every run and decision left behind."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from test_cli_run import execute, trueup  # noqa: F401  a fixture

import trueup as api
from trueup.engine.account import Account, prove
from trueup.errors import SchemaError, TrueupError
from trueup.model.evidence import RUN
from trueup.testing.clock import ManualClock

Trueup = Callable[..., tuple[int, str, str]]
CANARY = "canary<script>"
TOML = """\
[pair.payments]
authority = { path = "ledger.csv", key = "id", columns = { amount = "decimal" } }
replica = { path = "provider.csv", key = "id", columns = { amount = "decimal" } }
settle = 0
handler = "acting:act"
totals = { amount = "currency" }
redact = ["email"]
on_drift = { missing = "review", behind = "review" }
two_person = true
"""


def write(name: str, *rows: tuple[Any, ...]) -> None:
    lines = ["id,amount,currency,email", *(",".join(map(str, row)) for row in rows)]
    Path(name).write_text("\n".join(lines) + "\n", "utf-8")


ROWS = [(at, f"{at}.50", "EUR" if at % 2 else "USD", f"{CANARY}{at}") for at in range(1, 9)]


@pytest.fixture
def books(trueup: Trueup) -> Trueup:  # noqa: F811
    """A ledger and a provider's report: one payment is another, one is lacking, one is strange; one is decided."""
    Path("trueup.toml").write_text(TOML, "utf-8")
    Path("acting.py").write_text("def act(change):\n    pass\n", "utf-8")
    write("ledger.csv", *ROWS)
    changed = (3, "4.00", "EUR", f"{CANARY}other")
    write("provider.csv", *ROWS[:2], changed, *ROWS[3:7], (77, "5.00", "USD", f"{CANARY}77"))
    assert trueup("adopt", "payments")[0] == 1
    case = json.loads(trueup("review", "list", "payments", "--key", "3", "--json")[1])["cases"][0]
    for who in ("ann", "bob"):
        reason = ("--reason", "agreed <b>by</b> phone", "--by", who)
        assert trueup("review", "decide", str(case["number"]), "accept", "--until", "2099-12-31", *reason)[0] == 0
    assert trueup("run", "payments")[0] == 1
    return trueup


def bodies(books: Trueup) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(books("evidence", "list", "--json")[1])["entries"]
    return [each["body"] for each in found[::-1]]


def test_every_run_and_every_decision_leaves_an_entry(books: Trueup) -> None:
    adopted, decided, ran = bodies(books)
    assert (adopted["what"], ran["what"], adopted["ended"]) == ("adopt", "run", "done")
    assert (decided["choice"], decided["person"], decided["ended"]) == ("accept", "bob", "done")
    assert [each["person"] for each in decided["proposed"]] == ["ann"]
    assert {each["drift"]: each["records"] for each in ran["plan"]["by"]} == {"unknown": 1, "missing": 1, "foreign": 1}
    assert ran["totals"] == [
        {"amount": "amount", "currency": "EUR", "authority": "18", "replica": "18.5"},
        {"amount": "amount", "currency": "USD", "authority": "22", "replica": "18.5"},
    ]
    assert {role: each["records"] for role, each in ran["roots"].items()} == {"authority": 8, "replica": 8}
    assert ran["roots"] == adopted["roots"]
    assert ran["rules"]["declared"]["two_person"] is True
    assert ran["inputs"]["replica"]["files"][0]["name"] == "provider.csv"
    item = next(each for each in ran["items"] if each["key"] == ["3"])
    assert item["fields"]["amount"] == ["3.5", "4"]
    assert set(item["fields"]["email"][0]) == {"redacted"}
    assert item["state"] == "accepted"


def test_a_dry_run_leaves_none(books: Trueup) -> None:
    assert books("run", "payments", "--dry-run")[0] == 1
    assert len(bodies(books)) == 3


def test_no_redacted_value_and_no_secret_stands_in_any_of_it(books: Trueup) -> None:
    """Given canaries in a redacted field, I expect none in entries, lines, pages or what is printed of them."""
    books("evidence", "export", "--to", "chain.jsonl")
    books("evidence", "export", "--format", "html", "--to", "page.html")
    printed = "".join(books("evidence", *each)[1] for each in (["list"], ["show", "1"], ["show", "2"], ["verify"]))
    written = "".join(Path(name).read_text("utf-8") for name in ("chain.jsonl", "page.html"))
    assert "canary" not in (printed + written).lower()
    assert "redacted" in written


def test_likely_values_can_not_be_tried_out(books: Trueup, tmp_path: Path) -> None:
    """Given the same two tables in a second store, I expect all hashes over a redacted field to be others there.

    Somebody who reads evidence, and tries all likely values, lacks the key in which both stores differ.
    """
    books("evidence", "export", "--to", "first.jsonl")
    for name in ("trueup.db", "trueup.db-wal", "trueup.db-shm"):
        Path(name).unlink(missing_ok=True)
    books("adopt", "payments")
    case = json.loads(books("review", "list", "payments", "--key", "3", "--json")[1])["cases"][0]
    for who in ("ann", "bob"):
        reason = ("--reason", "agreed <b>by</b> phone", "--by", who)
        books("review", "decide", str(case["number"]), "accept", "--until", "2099-12-31", *reason)
    books("evidence", "export", "--to", "second.jsonl")
    first, second = (
        [json.loads(json.loads(line)["body"]) for line in Path(name).read_text("utf-8").splitlines()]
        for name in ("first.jsonl", "second.jsonl")
    )
    one, other = (dict(hashes(bodies[:2])) for bodies in (first, second))
    assert one.keys() == other.keys()
    assert len(one) > 12
    same = {name for name in one if one[name] == other[name]}
    assert {name for name in same if ".inputs." not in name} == {".0.rules.digest"}
    assert "redaction_key" not in Path("first.jsonl").read_text("utf-8")


def hashes(value: Any, where: str = "") -> Iterator[tuple[str, str]]:
    """Every digest in a body, by its place."""
    match value:
        case dict():
            for name, each in value.items():
                yield from hashes(each, f"{where}.{name}")
        case list():
            for at, each in enumerate(value):
                yield from hashes(each, f"{where}.{at}")
        case str() if re.fullmatch(r"[0-9a-f]{8,}|\d{30,}", value):
            yield where, value


# ── verify, anchor ───────────────────────────────────────────────────────────────────────────────────


def test_evidence_is_verified_against_anchors(books: Trueup) -> None:
    code, out, _ = books("evidence", "verify")
    assert code == 0
    assert "intact" in out
    assert "No anchor was given" in out
    assert books("evidence", "anchor", "--to", "anchors.txt") == (0, "anchors.txt: entry 3 is anchored\n", "")
    assert Path("anchors.txt").read_text("utf-8").split()[:3] == books("evidence", "anchor")[1].split()[:3]
    code, out, _ = books("evidence", "verify", "--anchors", "anchors.txt")
    assert (code, "Up to entry 3 it is the chain that was anchored." in out) == (0, True)
    proof = json.loads(books("evidence", "verify", "--anchors", "anchors.txt", "--json")[1])
    assert (proof["holds"], proof["anchored"], proof["plans"]) == (True, 3, 2)
    assert books("evidence", "export", "--to", "chain.jsonl")[0] == 0
    assert books("evidence", "verify", "--from", "chain.jsonl", "--anchors", "anchors.txt")[0] == 0


def test_what_was_altered_is_named_and_is_not_anchored(books: Trueup) -> None:
    books("evidence", "anchor", "--to", "anchors.txt")
    execute("trueup.db", "UPDATE trueup_evidence SET body = replace(body, 'bob', 'eve') WHERE number = 2")
    code, out, _ = books("evidence", "verify")
    assert code == 1
    assert "entry 2 is not as it was written (altered)" in out
    assert books("evidence", "anchor", "--to", "anchors.txt")[0] == 1
    assert len(Path("anchors.txt").read_text("utf-8").splitlines()) == 1
    for command in (["list"], ["show", "2"], ["export", "--format", "html"]):
        code, out, err = books("evidence", *command)
        assert (code, err) == (0, "")
    assert "The record is not as it was written." in out


def test_an_altered_plan_and_a_missing_entry_show(books: Trueup) -> None:
    execute("trueup.db", "UPDATE trueup_item SET replica = replace(replica, '\"4\"', '\"3.5\"') WHERE run = 2")
    assert "the plan of run 2 is not as entry 3 has it" in books("evidence", "verify")[1]
    run = "INSERT INTO trueup_run (pair, what, started_us, ended, counts) VALUES ('x', 'run', 1, 'done', '{}')"
    execute("trueup.db", run)
    code, out, _ = books("evidence", "verify")
    assert (code, "run 3 of x ended without an entry" in out) == (1, True)


def test_anchors_that_are_none_are_an_error(books: Trueup) -> None:
    code, _, err = books("evidence", "verify", "--anchors", "trueup.toml")
    assert (code, err.splitlines()[0]) == (2, "error: trueup.toml holds no anchor.")
    assert books("evidence", "verify", "--anchors", "nothing.txt")[0] == 2
    assert books("evidence", "verify", "--from", "trueup.toml")[0] == 2
    assert books("evidence", "show", "99")[0] == 2


# ── replay ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_comparison_is_performed_again_from_its_files(books: Trueup) -> None:
    code, out, _ = books("evidence", "replay", "2")
    assert (code, out.splitlines()[-1]) == (0, "run 2: its comparison shows the same again")
    found = json.loads(books("evidence", "replay", "2", "--json")[1])
    assert {each["what"]: each["now"] for each in found["seen"]}["differ"] == 1
    assert len(bodies(books)) == 3


def test_files_that_are_others_by_now_are_replaced_by_kept_copies(books: Trueup) -> None:
    Path("kept.csv").write_bytes(Path("provider.csv").read_bytes())
    write("provider.csv", *ROWS)
    code, out, _ = books("evidence", "replay", "2")
    assert code == 1
    assert "there is no file with the content that provider.csv had then" in out
    assert "could not be performed" in out
    code, out, _ = books("evidence", "replay", "2", "--replica", "kept.csv")
    assert (code, out.splitlines()[-1]) == (0, "run 2: its comparison shows the same again")
    Path("provider.csv").unlink()
    assert books("evidence", "replay", "2")[0] == 1


def test_other_rules_are_said(books: Trueup) -> None:
    """Given a tolerance since, I expect the comparison to show something else, and to say that the rules are others."""
    fields = 'fields = ["currency", "email", { name = "amount", absolute = 1 }]\n'
    Path("trueup.toml").write_text(TOML + fields, "utf-8")
    code, out, _ = books("evidence", "replay", "2")
    assert code == 1
    assert "the rules of today are not those of then" in out
    assert "root digest" in out


def test_what_no_file_holds_can_not_be_performed_again(trueup: Trueup) -> None:  # noqa: F811
    toml = '[pair.orders]\nauthority = { url = "sqlite:///a.db", table = "t", key = "id" }\n'
    Path("trueup.toml").write_text(toml + 'replica = { url = "sqlite:///b.db", table = "t", key = "id" }\nsettle = 0\n')
    for name in ("a.db", "b.db"):
        execute(name, "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)", "INSERT INTO t VALUES (1, 'a')")
    assert trueup("adopt", "orders")[0] == 0
    code, out, _ = trueup("evidence", "replay", "1")
    assert code == 1
    assert "authority (t): only files can be kept" in out


# ── the page ─────────────────────────────────────────────────────────────────────────────────────────


class Tags(HTMLParser):
    """What a page is made of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.attributes += attrs
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_answers_what_an_auditor_asks(books: Trueup) -> None:
    books("evidence", "anchor", "--to", "anchors.txt")
    page = books("evidence", "export", "--format", "html", "--anchors", "anchors.txt")[1]
    tags = Tags(page)
    assert tags.open == []
    text = " ".join(tags.text.split())
    for answer in (
        "Nothing was altered or removed", "Up to entry 3 it is the chain that was anchored",  # was anything altered?
        "Is anything still open? Yes, by what is on record: 2",  # what is open?
        "ledger.csv", "provider.csv", "amount (decimal)", "redact",  # by which rules, what was compared?
        "the sides differ, and were never seen to agree",  # what differed?
        "amount: 3.5", "amount: 4", "amount EUR",
        "accept until 2099-12-31", "bob, proposed by ann", "agreed <b>by</b> phone",  # what was done, by whom, why?
    ):  # fmt: skip
        assert answer in text, answer
    assert re.search(r"SHA-256 [0-9a-f]{64}", text)


def test_the_page_needs_nothing_and_runs_nothing(books: Trueup) -> None:
    tags = Tags(books("evidence", "export", "--format", "html")[1])
    assert set(tags.seen) <= {
        "html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "div", "strong", "span", "ul", "li",
        "table", "thead", "tbody", "tr", "th", "td", "code",
    }  # fmt: skip
    assert {name for name, _ in tags.attributes} <= {"class", "lang", "charset", "name", "content", "http-equiv"}
    assert "url(" not in tags.text
    assert "http" not in tags.text


def test_the_page_is_of_some_pairs_and_of_a_time(books: Trueup) -> None:
    assert (
        "No comparison ended in this period"
        in books("evidence", "export", "--format", "html", "--until", "2020-01-01")[1]
    )
    assert "Run 2," in books("evidence", "export", "payments", "--format", "html", "--since", "2020-01-01")[1]
    assert books("evidence", "export", "payments")[0] == 2
    assert books("evidence", "export", "--format", "html", "--since", "soon")[0] == 2


# ── runs that end otherwise, and what becomes of drifts ──────────────────────────────────────────────


def shop(tmp_path: Path, **declared: Any) -> tuple[Any, Any, Any]:
    clock = ManualClock()
    columns = {"id": "integer", "amount": "decimal", "rev": "integer"}
    rows = [{"id": at, "amount": f"{at}.5", "rev": at} for at in range(1, 5)]
    authority = api.Memory(rows, key="id", version="rev", columns=columns, clock=clock)
    replica = api.Memory([{**row, "rev": None} for row in rows], key="id", columns=columns, clock=clock)
    project = api.Project(f"sqlite:///{tmp_path}/state.db", clock=clock, seed=1, threads=1)
    return project.pair("orders", authority=authority, replica=replica, settle=0, **declared), authority, replica


def account(pair: Any) -> Account:
    archive = pair._project.archive
    assert prove(archive).holds
    return Account("orders", archive.entries())


def test_a_repair_shows_what_it_overwrote_and_that_it_held(tmp_path: Path) -> None:
    pair, _, replica = shop(tmp_path, on_drift={"edited": "repair"})
    pair.adopt()
    replica.put({"id": 3, "amount": "99"})
    pair.run()
    (run,) = [each for each in account(pair).runs if each.items]
    ((item, outcome),) = run.items
    assert (item["drift"], item["state"], item["fields"]) == ("edited", "offered", {"amount": ["3.5", "99"]})
    assert (outcome.ended, outcome.entry, account(pair).open) == ("repaired", 3, [])
    pair.run()
    assert account(pair).runs[1].items[0][1].ended == "agreed"
    assert account(pair).open == []


def test_a_run_that_fails_is_put_on_record_with_its_error(tmp_path: Path, monkeypatch) -> None:
    pair, authority, _ = shop(tmp_path)
    pair.adopt()

    def broken(*args: object) -> Any:
        raise api.TrueupError("the disk of shop is full.")

    monkeypatch.setattr(authority, "scan", broken)
    with pytest.raises(TrueupError):
        pair.run()
    body = account(pair).runs[-1].body
    assert (body["ended"], body["error"], body["roots"]) == ("failed", "TrueupError: the disk of shop is full.", None)


def test_an_error_of_others_is_told_by_its_name_alone(tmp_path: Path, monkeypatch) -> None:
    """Given an error whose text holds a value, I expect evidence without it."""
    pair, authority, _ = shop(tmp_path)
    pair.adopt()

    def broken(*args: object) -> Any:
        raise RuntimeError("ann@example.org")

    monkeypatch.setattr(authority, "scan", broken)
    with pytest.raises(RuntimeError):
        pair.run()
    assert account(pair).runs[-1].body["error"] == "RuntimeError"


def test_a_sweep_and_a_comparison_of_what_changed_claim_no_root(tmp_path: Path) -> None:
    pair, *_ = shop(tmp_path)
    pair.adopt()
    pair.run("sweep")
    pair.run("changed")
    assert [bool(run.body["roots"]) for run in account(pair).runs] == [True, False, False]


@pytest.mark.parametrize("totals", [["price"], {"amount": "price"}])
def test_totals_of_what_is_not_compared_are_an_error(tmp_path: Path, totals: Any) -> None:
    pair, *_ = shop(tmp_path, totals=totals)
    with pytest.raises(SchemaError, match="totals name price, which is not compared"):
        pair.adopt()


def test_totals_need_amounts(tmp_path: Path) -> None:
    clock = ManualClock()
    sides = [api.Memory([{"id": 1, "amount": "x"}], key="id", clock=clock) for _ in range(2)]
    project = api.Project(f"sqlite:///{tmp_path}/state.db", clock=clock)
    pair = project.pair("orders", authority=sides[0], replica=sides[1], settle=0, totals=["amount"])
    with pytest.raises(SchemaError, match="can't be added up exactly"):
        pair.adopt()
    assert project.archive.fact(RUN, "1").fact.read()["error"].startswith("SchemaError: pair orders: totals")


def test_totals_leave_out_what_the_replica_must_not_have(tmp_path: Path) -> None:
    clock = ManualClock()
    columns = {"id": "integer", "amount": "decimal", "state": "text"}
    rows = [{"id": at, "amount": "0.1", "state": "dropped" if at > 8 else "open"} for at in range(1, 11)]
    authority = api.Memory(rows, key="id", columns=columns, clock=clock)
    replica = api.Memory(rows[:8], key="id", columns=columns, clock=clock)
    project = api.Project(f"sqlite:///{tmp_path}/state.db", clock=clock)
    pair = project.pair(
        "orders", authority=authority, replica=replica, settle=0, totals=["amount"], absent_when={"state": ["dropped"]}
    )
    assert pair.adopt().counts["same"] == 10
    body = project.archive.fact(RUN, "1").fact.read()
    assert body["totals"] == [{"amount": "amount", "currency": None, "authority": "0.8", "replica": "0.8"}]
