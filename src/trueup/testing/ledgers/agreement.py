"""A store and the ledger in memory do the same, whatever is asked of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trueup.model.change import DELETE, Change, Origin
from trueup.model.row import Baseline, Claim, Seen
from trueup.ports import Ledger
from trueup.stores.memory import MemoryLedger
from trueup.testing.clock import ManualClock
from trueup.testing.ledgers.driving import Driven, Make, ending

PAIRS = ("orders", "refunds")
KEYS = ('["1"]', '["2"]', '["3"]')
NAMES = [f"{pair} {key}" for pair in PAIRS for key in KEYS]
# As records may be seen: at both sides, at one, at none.
SEEN: list[Seen] = [
    (key, action, digest, replica)
    for key in KEYS
    for action, digest in ((None, None), ("upsert", "a"), ("upsert", "b"), ("dropped", "a"))
    for replica in (None, "a", "b")
]
SECOND_US = 1_000_000
EXAMPLES = 200

# One operation: its name and the random choices it may use.
Operation = tuple[str, dict[str, Any]]

_versions = st.none() | st.integers(1, 4)
_offers = st.fixed_dictionaries({
    "pair": st.sampled_from(PAIRS), "key": st.sampled_from(KEYS), "version": _versions,
    "digest": st.sampled_from("abc"), "action": st.sampled_from(["upsert", "upsert", "dropped", DELETE]),
    "origin": st.sampled_from(Origin), "how": st.sampled_from(["plain", "plain", "plain", "judged", "unsynced"]),
})  # fmt: skip
_finishes = st.fixed_dictionaries({
    "which": st.integers(0, 9), "result": st.sampled_from(["done", "done", "verified", "retry", "parked", "waits"]),
    "version": _versions, "digest": st.sampled_from("abc"), "absent": st.booleans(), "charge": st.booleans(),
    "delay_us": st.integers(0, 5).map(lambda s: s * SECOND_US), "rejected": st.booleans(),
    "repaired": st.booleans(), "waits_for": st.sampled_from(NAMES),
    "verified_for_us": st.sampled_from([0, 9 * SECOND_US]),
})  # fmt: skip
_operations = st.lists(
    st.one_of(
        st.tuples(st.just("offer"), st.fixed_dictionaries({"offers": st.lists(_offers, min_size=1, max_size=4)})),
        st.tuples(st.just("claim"), st.fixed_dictionaries({
            "limit": st.integers(1, 12), "lease_s": st.integers(1, 5), "named": st.booleans()})),
        st.tuples(st.just("finish"), st.fixed_dictionaries({"ends": st.lists(_finishes, min_size=1, max_size=3)})),
        st.tuples(st.just("attempt"), st.fixed_dictionaries({
            "which": st.integers(0, 9), "digest": st.sampled_from("abc")})),
        st.tuples(st.just("renew"), st.fixed_dictionaries({"which": st.integers(0, 9)})),
        st.tuples(st.just("baseline"), st.fixed_dictionaries({
            "pair": st.sampled_from(PAIRS), "key": st.sampled_from(KEYS), "version": _versions,
            "digest": st.none() | st.sampled_from("abc"), "fits": st.booleans()})),
        st.tuples(st.just("revive"), st.fixed_dictionaries({"pair": st.sampled_from(PAIRS)})),
        st.tuples(st.just("settle"), st.fixed_dictionaries({"pair": st.sampled_from(PAIRS)})),
        st.tuples(st.just("advance"), st.fixed_dictionaries({"seconds": st.integers(0, 6)})),
    ),
    max_size=40,
)  # fmt: skip


class AgreementContract(Driven):
    """The store against the reference."""

    def test_any_sequence_of_operations_does_what_the_ledger_in_memory_does(self, make: Make) -> None:
        @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(operations=_operations)
        def agree(operations: list[Operation]) -> None:
            clock = ManualClock()
            driven = [_Driven(make(clock), clock), _Driven(MemoryLedger(clock), clock)]
            try:
                for name, choices in operations:
                    if name == "advance":
                        clock.advance(choices["seconds"])
                        continue
                    answers = [getattr(each, name)(**choices) for each in driven]
                    assert answers[0] == answers[1], name
                    assert driven[0].told() == driven[1].told(), name
            finally:
                driven[0].ledger.close()

        agree()


class _Driven:
    """One of the two ledgers, and the claims that were ever given by it."""

    def __init__(self, ledger: Ledger, clock: ManualClock) -> None:
        self.ledger = ledger
        self.clock = clock
        self.held: list[Claim] = []

    def offer(self, offers: list[dict[str, Any]]) -> object:
        return self.ledger.offer([self._change(**choices) for choices in offers])

    def _change(self, pair: str, key: str, how: str, action: str, digest: str, **more: Any) -> Change:
        row = self.ledger.rows(pair, [key]).get(key)
        judged: dict[str, Any] = {}
        if how == "judged":
            judged = {"judged_revision": row.revision if row else 0, "judged_replica": "r"}
        return Change(pair, key, action, digest=None if action == DELETE else digest, payload='{"a":"1"}',
                      unsynced=how == "unsynced", **judged, **more)  # fmt: skip

    def claim(self, limit: int, lease_s: int, *, named: bool) -> object:
        claims = self.ledger.claim(PAIRS, limit, "worker", lease_s * SECOND_US, 3, KEYS[:2] if named else None)
        self.held += claims
        return claims

    def finish(self, ends: list[dict[str, Any]]) -> object:
        finishes = []
        for choices in ends:
            if self.held:
                how = dict(choices)
                claim = self.held[how.pop("which") % len(self.held)]
                if how["result"] != "waits":
                    how["waits_for"] = None
                if how["absent"]:
                    how |= {"action": DELETE, "digest": None, "version": None}
                finishes.append(ending(claim, **how, reason="why"))
        return self.ledger.finish(finishes)

    def attempt(self, which: int, digest: str) -> object:
        return self._with(which, lambda claim: self.ledger.attempt([(claim, digest)]))

    def renew(self, which: int) -> object:
        return self._with(which, lambda claim: self.ledger.renew([claim], 3 * SECOND_US))

    def _with(self, which: int, do: Callable[[Claim], object]) -> object:
        return do(self.held[which % len(self.held)]) if self.held else None

    def baseline(self, pair: str, key: str, version: int | None, digest: str | None, *, fits: bool) -> object:
        row = self.ledger.rows(pair, [key]).get(key)
        revision = (row.revision if row else 0) if fits else 1
        action = "upsert" if digest else DELETE
        return self.ledger.baseline(pair, [Baseline(key, revision, digest, digest, action, version)])

    def revive(self, pair: str) -> object:
        return self.ledger.revive(pair, 3)

    def settle(self, pair: str) -> object:
        self.ledger.settle(pair)
        return self.ledger.settled(pair)

    def told(self) -> object:
        """Everything that can be asked of a ledger."""
        return [
            (
                self.ledger.rows(pair, KEYS),
                {where: list(self.ledger.scan(pair, where)) for where in ("all", "pending", "parked")},
                self.ledger.counts(pair),
                self.ledger.busy(pair),
                sorted(self.ledger.unlike(pair, SEEN)),
                self.ledger.next_due_us([pair]),
                self.ledger.settled(pair),
                [self.ledger.history(pair, key) for key in KEYS],
            )
            for pair in PAIRS
        ]
