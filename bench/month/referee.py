"""The referee: looks at both databases and at what the ERP noted, and asks whether anything is wrong in silence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final

from trueup.bound import BoundPair
from trueup.model.case import HELD, UNLIKE
from trueup.model.plan import ItemState
from trueup.model.record import key_parts
from trueup.model.row import Row
from trueup.project import Project

from .databases import COLUMNS, ERP, GONE, SHOP, Database, Places
from .life import RANK, Life

# What must be 0, or empty, in a judgement.
MUST_BE_NOTHING: Final = ("silent", "pending", "twice", "again", "back", "deleted")


def judged(pair: BoundPair, project: Project, life: Life, places: Places) -> dict[str, Any]:
    """Counts of what is as it should be and what is not, see `MUST_BE_NOTHING`.

    told: of the differing records, how many by the cause that people can see. silent: those without one.
    """
    causes = _causes(pair, project)
    differing = dict(_differing(places))
    told = Counter(causes[each] for each in differing if each in causes)
    return {
        "records": places.shop.run(f"SELECT count(*) FROM {SHOP}")[0][0],
        "differing": len(differing),
        "told": dict(told),
        "silent": sorted(each for each in differing if each not in causes)[:20],
        "pending": project.ledger.counts(pair.name)["pending"],
        "stuck": causes.get(life.stuck, "nobody knows"),
        **_effects(life, places),
    }


def _causes(pair: BoundPair, project: Project) -> dict[int, str]:
    """Why a record differs, by its number: an open case, a held plan, an accepted difference, a parked job."""
    causes: dict[int, str] = {}
    for key in project.archive.acceptances(pair.name):
        causes[_number(key)] = "accepted"
    for rows in project.ledger.scan(pair.name, "parked"):
        causes |= {_number(row.key): f"parked: {_reason(row)}" for row in rows}
    for case in project.cases(pair.name):
        if case.key == HELD:
            held = project.archive.items(case.run, state=ItemState.HELD)
            causes |= {_number(item.key): "held plan" for item in held}
        elif case.is_record:
            causes[_number(case.key)] = f"case: {case.drift}"
        elif case.key == UNLIKE:
            causes[0] = "case: unlike"
    return causes


def _reason(row: Row) -> str:
    """Why it is parked, without the name of the file that the ERP is in."""
    return (row.park_reason or "").partition(": ")[2].partition(". ")[0]


def _number(key: str) -> int:
    return int(key_parts(key)[0] or 0)


def _differing(places: Places) -> Iterator[tuple[int, str]]:
    """(number, how) of the records that are not the same on both sides."""
    left, right = (_ordered(database, table) for database, table in ((places.shop, SHOP), (places.erp, ERP)))
    mine, theirs = next(left, None), next(right, None)
    while mine or theirs:
        if theirs is None or (mine is not None and mine[0] < theirs[0]):
            assert mine is not None
            yield mine[0], "missing"
            mine = next(left, None)
        elif mine is None or theirs[0] < mine[0]:
            yield theirs[0], "extra"
            theirs = next(right, None)
        else:
            if mine != theirs:
                yield mine[0], "differs"
            mine, theirs = next(left, None), next(right, None)


def _ordered(database: Database, table: str) -> Iterator[tuple[Any, ...]]:
    for row in database.stream(f"SELECT {COLUMNS} FROM {table} ORDER BY id"):
        yield tuple(row)


def _effects(life: Life, places: Places) -> dict[str, int]:
    """What the ERP noted.

    twice: writes of ours that put what was there already. again: states that we wrote once more though nobody had moved
    the record. back: writes of ours that put an earlier state of an order's life over a later one. deleted: deletions
    of ours of orders that the shop neither deleted nor lost.
    """
    account, found = life.account, Counter(twice=0, again=0, back=0, deleted=0, landed=0)
    moved = account.by_hand | account.turned_back
    noted = places.erp.stream("SELECT id, state, person FROM effects ORDER BY id, seq")
    for number, rows in groupby(noted, key=lambda row: row[0]):
        before, ours = "nothing yet", Counter[str]()
        for _, state, person in rows:
            if not person:
                found["landed"] += 1
                found["twice"] += state == before
                ours[state] += 1
                found["back"] += number not in moved and _rank(state) < _rank(before)
                found["deleted"] += state == GONE and number not in (account.deleted | moved)
            before = state
        found["again"] += number not in moved and any(times > 1 for times in ours.values())
    return dict(found)


def _rank(state: str) -> int:
    return len(RANK) if state == GONE else RANK.get(state.rpartition("/")[2], -1)
