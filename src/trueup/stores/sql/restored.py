"""What a restored store must not believe any more.

A backup is older than what happened. Records were worked since, fences were issued, and leases were given to programs
that may still live. So everything that the store knows only as of then is marked to be read again:

- fences and revisions go on above any that can have been issued, and leases end: who held one is refused;
- what waits is read from the authority before it is done, because something newer may have been done since;
- a change that comes is read again unless it equals what is done, for the same reason; and what is done counts as
  verified no longer;
- the baseline is no longer complete: records that came since have no row. `trueup adopt` completes it.

What the sides last agreed on stays: as of then it is true, and it tells who moved.
"""

from __future__ import annotations

from typing import Final

from trueup.stores.sql.storage import Session, Storage

_ROWS: Final = """
    UPDATE trueup_row SET
        fence = CASE WHEN fence < ? THEN ? ELSE fence END,
        revision = CASE WHEN revision < ? THEN ? ELSE revision END,
        lease_owner = NULL, lease_until = 0, verified_until = 0, unordered = true,
        refetch = CASE WHEN state = 'idle' THEN refetch ELSE true END,
        ready_at = CASE WHEN ready_at IS NULL THEN NULL ELSE due_at END
"""
_LEASES: Final = (
    "UPDATE trueup_slot SET fence = CASE WHEN fence < ? THEN ? ELSE fence END, lease_until = 0",
    "UPDATE trueup_piece SET fence = CASE WHEN fence < ? THEN ? ELSE fence END, lease_until = 0",
    "UPDATE trueup_schedule SET fence = CASE WHEN fence < ? THEN ? ELSE fence END, owner = ''",
)


def distrust(storage: Storage) -> int:
    """Marks it all, in one transaction; answers how many records the store knows."""

    def mark(session: Session) -> int:
        now_us = storage.now_us(session, None)
        records = session.execute(_ROWS, (now_us,) * 4).rowcount
        for statement in _LEASES:
            session.execute(statement, (now_us, now_us))
        session.execute("UPDATE trueup_pair SET settled = false")
        session.execute("DELETE FROM trueup_worker")
        return int(records)

    return storage.write(mark)
