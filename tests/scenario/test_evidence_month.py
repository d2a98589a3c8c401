"""The auditor's page of the month in `bench/month`, shortened: it answers unaided what an auditor asks."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import trueup
from trueup.model.evidence import RUN

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))

from bench.month.databases import on_sqlite  # noqa: E402
from bench.month.life import Plan  # noqa: E402
from bench.month.play import Month  # noqa: E402

PLAN = Plan(orders=150, days=4, tick_s=3_600.0)
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.xdist_group("the auditor's month")]


class Texts(HTMLParser):
    """The text of a page, with a tab between cells and a line for each row or paragraph."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text = ""
        self.feed(page)

    def handle_endtag(self, tag: str) -> None:
        self.text += "\t" if tag in ("td", "th") else "\n" if tag in ("tr", "p", "h1", "h2", "h3", "li") else ""

    def handle_data(self, data: str) -> None:
        self.text += data


@dataclass
class Played:
    """A month that is over. anchor: the last entry that its auditor noted. items: every difference that stands in an
    entry. waiting: keys of the records of open cases."""

    page: str
    anchor: int
    items: list[dict[str, Any]]
    waiting: list[str]


@pytest.fixture(scope="module")
def month() -> Iterator[Played]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        places = on_sqlite(Path(folder))
        played = Month(PLAN, places, seed=7)
        played.play()
        if kept := os.environ.get("TRUEUP_MONTH_PAGE"):  # to look at it
            Path(kept).write_text(played.page, "utf-8")
        with trueup.Project(places.state) as project:
            items = [
                item
                for entry in project.archive.entries()
                if entry.fact.kind == RUN
                for item in entry.fact.read().get("items", ())
            ]
            waiting = [json.loads(case.key)[0] for case in project.cases() if case.is_record]
        yield Played(played.page, played.anchors[-1].number, items, waiting)
        places.close()


@pytest.fixture(scope="module")
def text(month: Played) -> str:
    return Texts(month.page).text


def box(text: str, begins: str) -> str:
    """What stands between this question and the next heading."""
    return text.partition(begins)[2].partition("Pair orders")[0]


def test_was_anything_altered_since(month: Played, text: str) -> None:
    assert "Nothing was altered or removed, as far as this can be seen." in text
    assert f"Up to entry {month.anchor} it is the chain that was anchored." in text


def test_what_was_compared_and_when(text: str) -> None:
    """Given the pair's schedules, I expect each night's comparison by itself, and the sweeps of each day together."""
    compared = text.partition("What was compared, and when")[2]
    for day in range(16, 20):
        assert f"\t2027-01-{day} 03:00\tcomparison of everything\t" in compared
        assert f"2027-01-{day}\t24 × sweep; 3 × comparison of what changed\t" in compared.replace("23 ×", "24 ×")
    assert "first comparison, a baseline" in compared


def test_by_which_rules(text: str) -> None:
    rules = text.partition("By which rules")[2].partition("What was compared")[0]
    for told in (
        "They were the same for all runs.", "authority)\tshop_orders at ", "replica)\terp_orders at ",
        "a record is known by\tid", "cents (integer)", "quiet for\t2 min", "more than 20 changes",
        "control totals of\tcents", "only hashes\tcustomer", "need\tone person",
        "behind\tthe authority moved and the replica did not: an event was lost\trepaired without asking",
        "edited\tit was edited at the replica\ta person is asked",
    ):  # fmt: skip
        assert told in rules, told
    assert re.search(r"Digest of the rules: [0-9a-f]{64}", rules)


def test_what_differed_and_what_was_done(month: Played, text: str) -> None:
    """Given every difference that a run found, I expect its key on the page, and values of what was written over."""
    found = text.partition("What was compared")[2]
    for told in (
        "The run did this: it asked a person.", "it held a plan for a person (write the authority's version",
        "What came of it: found equal later.", "What came of it: accepted.", "no such record", "cents \t",
    ):  # fmt: skip
        assert told in found, told
    keys = {item["key"][0] for item in month.items}
    missing = [key for key in keys if not re.search(rf"\b{key}\b", found)]
    assert len(keys) > 50
    # Of differences that are alike only so many stand on the page; it says how many do not.
    assert len(missing) <= sum(int(each.replace(",", "")) for each in re.findall(r"… and ([\d,]+) more", found))


def test_who_decided_what_and_why(text: str) -> None:
    decided = text.partition("What people decided")[2]
    assert "\twrite the authority's version\tann\tlooked at it\tdone: offered\t" in decided
    assert "\taccept until 2999-12-31\tann\tlooked at it\tdone: accepted\t" in decided
    assert re.search(
        r"carry out what of the plan is still true\tann\tlooked at it\tdone: \d+ offered, \d+ no ", decided
    )


def test_what_is_still_open(month: Played, text: str) -> None:
    """Given every open question about a record when the month was over, I expect it in the box of what is open."""
    still = box(text, "Is anything still open?")
    assert len(month.waiting) > 2
    for key in month.waiting:
        assert re.search(rf"\b{key}\b", still), key
    assert "waits for a person" in still


def test_no_redacted_value_stands_on_it(month: Played) -> None:
    assert not re.search(r"\bc\d{1,4}\b|by hand|a stranger", month.page)
    assert "redacted" in month.page
