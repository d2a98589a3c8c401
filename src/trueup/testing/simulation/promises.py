"""What is promised, checked where it can break: at every claim, write, finish and baseline, and at rest.

These checks know the whole truth (docs/concepts/simulation.md lists them in words). They use none of the
ledger's rules: a number for every state of the authority says what is newer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from trueup.model.case import Case
from trueup.model.change import DELETE, Change, Origin, Outcome
from trueup.model.drift import Drift
from trueup.model.row import Baseline, Claim, Finish, Row, State
from trueup.testing.simulation.history import ident_of
from trueup.testing.simulation.scheduler import Actor, Seen

if TYPE_CHECKING:
    from trueup.testing.simulation.world import World

FRESH_US = 1_000_000
BLAME = frozenset({Drift.EDITED, Drift.CONFLICT, Drift.UNKNOWN, Drift.FOREIGN, Drift.UNLIKE})


@dataclass(frozen=True, slots=True)
class Holding:
    """What the replica holds of one record, and by whom: a state of the authority's (its number), or a person's.

    digest: None where the record is absent. at: the step at which it was written.
    """

    ours: bool
    digest: str | None
    number: int = 0
    at: int = 0


@dataclass(slots=True)
class Truth:
    """What the simulation knows of one record beside the two systems.

    accepted: the newest state whose event the ledger accepted. performed: the newest state that an accepted finish
    made done. fence: the highest issued. excused: a lagging reader, a restored authority or a lost ledger touched it.
    unreported: fences that wrote and have not been heard of. stale: fences whose write landed over a newer one.
    """

    holding: Holding
    accepted: int = 0
    performed: int = 0
    fence: int = 0
    excused: bool = False
    by_hand: bool = False
    unreported: set[int] = field(default_factory=set)
    stale: set[int] = field(default_factory=set)


class Promises:
    """Holds every promise against the whole truth. `broken`: the first one that did not hold."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.truth: dict[str, Truth] = {}
        self.broken: str | None = None
        self.counts: Counter[str] = Counter()

    def _fail(self, key: str, promise: str) -> None:
        self._world.story.tell("PROMISE", "broken for {}: {}", ident_of(key), promise)
        self.broken = self.broken or promise

    def never_at_rest(self) -> None:
        """Too many steps passed."""
        names = ", ".join(actor.name for actor in self._world.scheduler.actors)
        self._fail('["0"]', f"the world does not come to rest: {names}")

    @property
    def _actor(self) -> Actor | None:
        return self._world.scheduler.current

    def _tell(self, what: str, *details: object) -> None:
        actor = self._actor
        self._world.story.tell("setup" if actor is None else actor.name, what, *details)

    def begin(self, key: str, digest: str | None) -> None:
        """Both sides agree on this record."""
        number = self._world.history.number(key)
        self.truth[key] = Truth(Holding(ours=True, digest=digest, number=number), number, number)

    def ledger_lost(self) -> None:
        """Who moved is lost, and so is what was accepted and what was done."""
        for truth in self.truth.values():
            truth.accepted = truth.performed = 0
            truth.excused = True

    # ── offers and claims: no stale offer runs ───────────────────────────────────────────────────────

    def offered(self, changes: Sequence[Change], outcomes: Sequence[Outcome]) -> None:
        """Remembers the newest state that the ledger has accepted to work on."""
        for change, outcome in zip(changes, outcomes, strict=True):
            event = None if self._actor is None else self._actor.event
            number = event if event is not None else self._world.history.number_of(change.key, change.digest)
            self._tell("offers {} of {} ({}): {}", self._called(change), ident_of(change.key), change.origin, outcome)
            self.counts[outcome] += 1
            if change.origin in (Origin.EVENT, Origin.SWEEP) and outcome.accepted and number is not None:
                truth = self.truth[change.key]
                truth.accepted = max(truth.accepted, number)

    def _called(self, change: Change) -> str:
        number = self._world.history.number_of(change.key, change.digest)
        version = "unversioned" if change.version is None else f"version {self._world.version_called(change.version)}"
        return f"{change.action if change.digest is None or number is None else f'state n{number}'}, {version}"

    def claimed(self, claims: Iterable[Claim]) -> None:
        """A job that will act on what was offered acts on the newest that was accepted."""
        for claim in claims:
            key, truth = claim.change.key, self.truth[claim.change.key]
            actor = self._actor
            if actor is not None:
                actor.claims[key] = claim
                actor.claimed_at[key] = self._world.scheduler.steps
                actor.answered[key] = (self._world.scheduler.now_us, True)
                for known in (actor.seen, actor.replica_read_at):
                    known.pop(key, None)
            truth.fence = max(truth.fence, claim.fence)
            trusting = not (claim.row.refetch or claim.row.verify) and claim.change.digest is not None
            self._tell(
                "claims {}, fence {}: {}{}", ident_of(key), self._world.fence_called(key, claim.fence),
                self._called(claim.change), "" if trusting else ", to be read again",
            )  # fmt: skip
            number = self._world.history.number_of(key, claim.change.digest)
            if number is None or not trusting or truth.excused or self._restored(key, number):
                continue
            if number < truth.accepted:
                self._fail(key, f"a stale offer runs: n{number}, although n{truth.accepted} was accepted")

    def _restored(self, key: str, number: int) -> bool:
        return number < self._world.history.restored_at.get(key, 0)

    # ── what a job saw before it writes ──────────────────────────────────────────────────────────────

    def saw(self, seen: Mapping[str, Seen]) -> None:
        """One read of the authority."""
        if self._actor is None:
            return
        for key, state in seen.items():
            behind = state.lagging and state.number < self._world.history.number(key)
            self._actor.seen[key] = Seen(state.number, behind)
            if behind:
                self.truth[key].excused = True
            self._tell("reads {} at the authority: n{}{}", ident_of(key), state.number, ", lagging" if behind else "")

    def scanned(self, lagging: bool) -> None:
        """One scan of the authority."""
        if lagging:
            for key, truth in self.truth.items():
                truth.excused |= self._world.history.number(key) > self._world.history.number(key, lagging=True)
        self._tell("scans the authority{}", ", lagging" if lagging else "")

    def looked(self, keys: Sequence[str]) -> None:
        """One read of the replica."""
        if self._actor is not None:
            self._actor.replica_read_at.update(dict.fromkeys(keys, self._world.scheduler.steps))

    def checking(self, claims: Sequence[Claim]) -> None:
        """Before the ledger answers whether these leases hold: the truth."""
        actor = self._actor
        if actor is not None and not actor.name.endswith("~"):
            now_us = self._world.scheduler.now_us
            actor.answered.update({claim.change.key: (now_us, self._held(claim)) for claim in claims})

    def checked(self, claims: Sequence[Claim], held: Sequence[bool]) -> None:
        """What the ledger answered."""
        for claim, holds in zip(claims, held, strict=True):
            if not holds:
                self._tell("has lost its lease on {}", ident_of(claim.change.key))

    def _asked(self, actor: Actor, key: str) -> bool:
        """Whether the job made sure of its lease after its last read: by an answer that was true, and fresh.

        What happened after it looked at its clock it could not know.
        """
        answered_us, held = actor.answered[key]
        step, looked_us = actor.looked
        since = actor.replica_read_at.get(key, actor.claimed_at[key])
        return held and step >= since and looked_us - answered_us <= FRESH_US

    def _held(self, claim: Claim) -> bool:
        row = self._row(claim.change.key)
        now_us = self._world.scheduler.now_us
        return row is not None and row.fence == claim.fence and row.lease_owner is not None and row.lease_until > now_us

    def _row(self, key: str) -> Row | None:
        return self._world.ledger.rows(self._world.pair.name, [key]).get(key)

    def _performing(self, actor: Actor, claim: Claim) -> Seen:
        """The state that this job acts on: what it read, else what was offered."""
        key = claim.change.key
        if key in actor.seen:
            return actor.seen[key]
        return Seen(self._world.history.number_of(key, claim.change.digest) or 0)

    def _known(self, claim: Claim, number: int) -> int:
        """The number of the state that the ledger can know of.

        A delete that brings a version is believed to be the newest; a later one without is not known from it.
        """
        wish, history = claim.change, self._world.history
        dated = wish.action == DELETE and wish.version is not None and not claim.row.unordered
        if dated and wish.version is not None and history.gone(number):
            return history.shown(wish.key, wish.version, number)
        return number

    # ── writes ───────────────────────────────────────────────────────────────────────────────────────

    def wrote(self, key: str, values: Mapping[str, str | None] | None, *, landed: bool) -> None:
        """One write of ours reached the replica."""
        actor = self._actor
        assert actor is not None
        claim, truth = actor.claims[key], self.truth[key]
        state = self._performing(actor, claim)
        fence = self._world.fence_called(key, claim.fence)
        what = "deletes {} at the replica, fence {}" if values is None else "writes n{2} to {0}, fence {1}"
        self._tell(what if landed else "is refused a write of {}, fence {}", ident_of(key), fence, state.number)
        if not landed:
            return
        before = truth.holding
        digest = None if values is None else self._world.digest(values)
        if not before.ours and before.digest is not None and before.digest != digest:
            self._over_a_hand_edit(key, actor, claim, before)
        elif before.ours and before.digest != digest and state.number < before.number:
            self._older_over_newer(key, actor, claim, state, before)
        number = self._known(claim, state.number)
        truth.holding = Holding(ours=True, digest=digest, number=number, at=self._world.scheduler.steps)
        truth.unreported.add(claim.fence)

    def _over_a_hand_edit(self, key: str, actor: Actor, claim: Claim, before: Holding) -> None:
        kind, row = self._world.scene.kind, claim.row
        self.counts["hand edits lost"] += 1
        unseen = before.at > actor.replica_read_at.get(key, 0)
        allowed = (
            kind == "unreadable"
            or row.done_at is None
            or before.digest == claim.change.judged_replica
            or (kind == "none" and unseen)
        )
        if not allowed:
            self._fail(key, "a hand edit is overwritten while its ancestor is known")

    def _older_over_newer(self, key: str, actor: Actor, claim: Claim, state: Seen, before: Holding) -> None:
        truth, kind = self.truth[key], self._world.scene.kind
        forgotten = truth.excused and claim.row.done_at is None
        if state.lagging or forgotten or self._restored(key, state.number):
            self.counts["older over newer, excused"] += 1
            return
        again = claim.fence in truth.stale
        truth.stale.add(claim.fence)
        self.counts["older over newer"] += 1
        overrun = self._asked(actor, key) and not self._held(claim)
        # Neither a digest nor an absence tells that a record went away and came back.
        tells_all = kind == "opaque" and before.digest is not None
        if tells_all or not overrun or (again and before.number != state.number and kind != "digest"):
            self._fail(key, f"n{state.number} lands over n{before.number}, a newer write of ours")

    def edited(self, key: str, digest: str | None) -> None:
        """A person wrote at the replica."""
        truth = self.truth[key]
        known = self._world.history.number_of(key, digest)
        truth.holding = Holding(known is not None, digest, known or 0, self._world.scheduler.steps)
        truth.by_hand = True

    # ── ends ─────────────────────────────────────────────────────────────────────────────────────────

    def finished(self, finishes: Sequence[Finish], accepted: Sequence[bool]) -> None:
        """The ledger takes results only from the newest holder, and never goes back."""
        actor = self._actor
        assert actor is not None
        for ended, taken in zip(finishes, accepted, strict=True):
            claim = ended.claim
            key, truth = claim.change.key, self.truth[claim.change.key]
            truth.unreported.discard(claim.fence)
            fence = self._world.fence_called(key, claim.fence)
            self._tell(
                "finishes {}, fence {}: {}{}{}", ident_of(key), fence, ended.result,
                f" ({ended.reason})" if ended.reason else "", "" if taken else ", refused",
            )  # fmt: skip
            if not taken:
                continue
            if claim.fence < truth.fence:
                self._fail(key, "the ledger took a stale worker's result")
            if ended.result in ("done", "verified"):
                state = self._performing(actor, claim)
                self._done(key, truth, state)
                self._forget(truth, state.number, self._known(claim, state.number))

    def _done(self, key: str, truth: Truth, state: Seen) -> None:
        if state.number < truth.performed and not (state.lagging or truth.excused or self._restored(key, state.number)):
            self._fail(key, f"the ledger went back from n{truth.performed} to n{state.number}")
        truth.performed = state.number

    def _forget(self, truth: Truth, number: int, known: int) -> None:
        if known < number:
            truth.performed, truth.accepted = known, min(truth.accepted, known)
            if truth.holding.ours and truth.holding.digest is None:
                truth.holding = replace(truth.holding, number=min(truth.holding.number, known))

    def agreed(self, items: Sequence[Baseline], before: Mapping[str, Row]) -> None:
        """A compare may renew what is known, never set it back."""
        for item in items:
            row, was, truth = self._row(item.key), before.get(item.key), self.truth[item.key]
            if row is None or (was is not None and was.revision == row.revision) or row.done_digest is None:
                continue
            self._tell("finds {} agreeing", ident_of(item.key))
            number = self._world.history.number_of(item.key, row.done_digest)
            if number is not None:
                self._done(item.key, truth, Seen(number))

    def asked(self, cases: Sequence[Case]) -> None:
        """Cases are opened."""
        for case in cases:
            self._tell("asks a person about {}: {}", case.key or "the pair", case.drift)

    # ── at rest ──────────────────────────────────────────────────────────────────────────────────────

    def at_rest(self) -> None:
        """All faults have stopped and every job has ended; no compare has helped yet."""
        cases = self._cases()
        for key, truth in self.truth.items():
            row = self._row(key)
            if row is None or truth.excused or truth.by_hand or row.state is State.PARKED:
                continue
            if row.state is not State.IDLE:
                self._fail(key, f"its job never ended: {row.last_error}")
            elif truth.performed < truth.accepted:
                self._fail(key, f"n{truth.accepted} was accepted, n{truth.performed} is all that was done")
            elif not truth.unreported and truth.holding.digest != self._world.history.wanted[truth.performed]:
                self._fail(key, f"n{truth.performed} is done, but a late write of n{truth.holding.number} stays")
            if cases.get(key) in BLAME:
                self._fail(key, f"a person is asked about {cases[key]}, but nobody touched it")

    def _cases(self) -> dict[str, str]:
        return {case.key: case.drift for case in self._world.archive.cases(self._world.pair.name)}

    def after_compare(self) -> None:
        """One confirmed compare later: agreement, or an open case; and nobody is blamed who did nothing."""
        cases = self._cases()
        for key, truth in self.truth.items():
            agree = self._world.wanted(key) == truth.holding.digest
            if not agree and key not in cases:
                self._fail(key, "the sides disagree after quiet and a confirmed compare, and no case is open")
            if agree and key in cases:
                self._fail(key, f"the sides agree, and the case {cases[key]} stays open")
            blamed = cases.get(key) in BLAME and not truth.by_hand and not self._world.losses
            if blamed and not self._evicted(key):
                self._fail(key, f"a person is asked about {cases[key]}, but nobody touched it")
        if "" in cases and not self._world.losses:
            self._fail('["0"]', f"the pair has a case {cases['']}: nothing makes the sides unequal")

    def _evicted(self, key: str) -> bool:
        row = self._row(key)
        return row is not None and bool(row.evicted)

    def after_sweep(self) -> None:
        """Without a readable replica: every change that a version shows has been handed over."""
        for key, truth in self.truth.items():
            if truth.by_hand or truth.excused or truth.unreported or key in self._world.unannounced:
                continue
            row = self._row(key)
            if row is None or row.state is State.PARKED or self._world.authority.get(ident_of(key)) is None:
                continue  # no sweep shows a record that is gone
            if self._world.wanted(key) != truth.holding.digest:
                self._fail(key, "a sweep did not bring the authority's newest version to the replica")
