"""Mutations: each removes one rule of the engine, as small as a patch can be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from trueup.engine import confirm, holding
from trueup.engine import job as jobs
from trueup.engine.holding import Holding
from trueup.model import ledger as rules
from trueup.model.row import Claim, Finish, Row

Patch = pytest.MonkeyPatch


def fencing(patch: Patch) -> None:
    """Any result is taken, whoever brings it."""
    finish = rules.finish

    def taken(row: Row | None, ended: Finish, now_us: int) -> tuple[bool, Row]:
        if row is not None:
            ended = replace(ended, claim=replace(ended.claim, fence=row.fence))
            row = row.copy()
            row.lease_owner = row.lease_owner or "anybody"
        return finish(row, ended, now_us)

    patch.setattr(rules, "finish", taken)


def wish_number(patch: Patch) -> None:
    """A finish clears whatever is wished by then."""
    finish = rules.finish

    def clearing(row: Row | None, ended: Finish, now_us: int) -> tuple[bool, Row]:
        if row is not None:
            change = replace(ended.claim.change, wish=row.wish)
            ended = replace(ended, claim=replace(ended.claim, change=change))
        return finish(row, ended, now_us)

    patch.setattr(rules, "finish", clearing)


def sticky_refetch(patch: Patch) -> None:
    """A newer offer forgets that the record was to be read again."""
    newer = rules._newer

    def forgetful(row: Row | None, change: Any, now_us: int) -> Any:
        outcome, after = newer(row, change, now_us)
        after.refetch = change.action == rules.DELETE
        return outcome, after

    patch.setattr(rules, "_newer", forgetful)


def confirmed_rows(patch: Patch) -> None:
    """A confirmed offer is judged like any other."""
    offer = rules.offer

    def plain(row: Row | None, change: Any, now_us: int, *, young: bool) -> Any:
        return offer(row, replace(change, judged_revision=None), now_us, young=young)

    patch.setattr(rules, "offer", plain)


def attempted(patch: Patch) -> None:
    """What a holder is about to write is not remembered."""
    patch.setattr(rules, "_intend", lambda row, digest: None)


def refused_finish(patch: Patch) -> None:
    """A refused finish leaves the row as it is."""

    def ignored(row: Row | None, held: Claim, now_us: int) -> Row:
        return rules.new_row(held.change.pair, held.change.key, now_us) if row is None else row

    patch.setattr(rules, "_refused", ignored)


def lease_check(patch: Patch) -> None:
    """Nobody asks whether the lease still holds before a write."""
    patch.setattr(jobs.JobBatch, "_still_held", lambda self, waiting: list(waiting))
    patch.setattr(Holding, "holds", lambda self, claim: True)


def fresh_answer(patch: Patch) -> None:
    """What the store once said of a lease is believed until the batch ends."""
    patch.setattr(holding, "FRESH_US_MAX", 10**15)
    patch.setattr(Holding, "ask", lambda self: None)


def guard_of_confirm(patch: Patch) -> None:
    """A record that moved while it was confirmed is judged all the same."""
    patch.setattr(confirm, "_stood_still", lambda *_: True)


MUTATIONS: dict[str, Callable[[Patch], None]] = {
    each.__name__: each
    for each in (
        fencing, wish_number, sticky_refetch, confirmed_rows, attempted, refused_finish, lease_check, fresh_answer,
        guard_of_confirm,
    )
}  # fmt: skip


@contextmanager
def without(name: str) -> Iterator[None]:
    """The engine without this rule."""
    with pytest.MonkeyPatch.context() as patch:
        MUTATIONS[name](patch)
        yield
