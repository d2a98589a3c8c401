"""Whether a system that answers "there is no such record" shows any record at all.

A login that has lost its rights, or a filter that hides everything, answers success with nothing. Absence is believed
only of a system that shows, at the same time, some record that it is known to have.
"""

from __future__ import annotations

from typing import Final

from trueup.engine.records import Records
from trueup.errors import Unreachable
from trueup.model.change import DELETE
from trueup.model.row import State
from trueup.ports import Ledger

# Spread over the keys: what is deleted by the thousand is often old, and stands together.
WITNESSES: Final = 8
# That one or two others are gone as well says little: small tables are emptied in earnest.
WITNESSES_LEAST: Final = 3


def check_sight(records: Records, ledger: Ledger) -> None:
    """Raises Unreachable where the authority shows none of some records that it is known to have.

    Known is what was last found there, and of which nothing was heard since. Where hardly anything is known, nothing is
    said.
    """
    witnesses = _witnesses(ledger, records.pair.name)
    if len(witnesses) < WITNESSES_LEAST:
        return
    # The first of them nearly always answers, and a call may cost.
    for asked in (witnesses[:1], witnesses[1:]):
        if any(state.values is not None for state in records.read_authority(asked).values()):
            return
    raise Unreachable(
        f"{records.pair.authority_system} shows none of the records that it is known to have "
        f"({len(witnesses)} were asked for).",
        hint="Has its login lost rights? If the records are really gone, compare: "
        f"trueup run {records.pair.name} --only compare",
    )


def _witnesses(ledger: Ledger, pair: str) -> list[str]:
    for batch in ledger.scan(pair):
        known = [
            row.key
            for row in batch
            if row.state is State.IDLE and row.done_at is not None and row.done_action != DELETE
        ]
        if known:
            return known[:: -(-len(known) // WITNESSES)]
    return []
