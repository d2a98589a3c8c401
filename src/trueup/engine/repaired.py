"""What became of the repairs of a run: put on record once the jobs have ended, by that run or by one of the next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from trueup.engine.evidence import ITEMS_MAX
from trueup.engine.hidden import Hidden, key_name, redaction_key
from trueup.model.evidence import JOBS, Fact, canonical
from trueup.model.plan import ItemState, PlanItem
from trueup.model.row import Row, State
from trueup.model.run import DONE, Run
from trueup.pair import Pair
from trueup.ports import Archive, Ledger

# How many runs back repairs are looked after.
RUNS_MAX: Final = 10
_BATCH: Final = 1_000
PARKED, GONE = "parked", "gone"


def record_repairs(pair: Pair, ledger: Ledger, archive: Archive) -> None:
    """Puts on record how the repairs ended that the newest runs of a pair gave to workers; not while any waits."""
    for run in archive.runs(pair.name, RUNS_MAX):
        if run.ended == DONE and run.counts.get("offered") and archive.fact(JOBS, str(run.number)) is None:
            items = archive.items(run.number, state=ItemState.OFFERED, limit=ITEMS_MAX)
            ends = [*_ends(run, items, ledger)]
            if items and None not in ends:
                key = redaction_key(pair, archive)
                archive.put_on_record(_fact(pair, run, items, [each for each in ends if each is not None], key))


def _ends(run: Run, items: Sequence[PlanItem], ledger: Ledger) -> Iterator[tuple[str, int | None] | None]:
    """How each ended, and when; None for one that has not."""
    for at in range(0, len(items), _BATCH):
        keys = [item.key for item in items[at : at + _BATCH]]
        rows = ledger.rows(run.pair, keys)
        yield from (_end(run, rows.get(key)) for key in keys)


def _end(run: Run, row: Row | None) -> tuple[str, int | None] | None:
    if row is None:
        return GONE, None
    if row.done_at is not None and row.done_at >= run.started_us:
        return DONE, row.done_at
    return None if row.state is State.PENDING else (PARKED if row.state is State.PARKED else GONE, None)


def _fact(pair: Pair, run: Run, items: Sequence[PlanItem], ends: Sequence[tuple[str, int | None]], key: bytes) -> Fact:
    hidden = Hidden(pair, key)
    told: list[dict[str, Any]] = [
        {"key": hidden.key(item.key), "ended": ended, "at_us": at_us}
        for item, (ended, at_us) in zip(items, ends, strict=True)
    ]
    body = {"run": run.number, "ended": dict(Counter(ended for ended, _ in ends)), "items": told}
    return Fact(JOBS, pair.name, str(run.number), canonical(body | {"redaction": key_name(key)}))
