"""Evidence: appended once, in order, whoever is faster, together with what it is about."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trueup.model import anchor as rules
from trueup.model.anchor import Anchored
from trueup.model.case import Case
from trueup.model.decision import Choice, Decision, DecisionState
from trueup.model.evidence import CUT, DECISION, RUN, Fact, Head, cut_in, verify
from trueup.model.handover import claim, failed
from trueup.model.run import Run
from trueup.ports import Archive
from trueup.testing.clock import ManualClock
from trueup.testing.ledgers.races import WORKERS, together

LEASE_US = 60_000_000
BODY = '{"note":"Zo\\u00eb \\u0000"}'


def fact(about: str, pair: str = "orders", body: str = BODY) -> Fact:
    """A fact about a run."""
    return Fact(RUN, pair, about, body)


def taken_by(archive: Archive, owner: str, seen: Anchored | None = None) -> Anchored | None:
    """The place `vault` as this one claims it, who saw it like this; by default as it is."""
    seen = seen or archive.places.known(["vault"])["vault"]
    return archive.places.claim(seen, lambda stored, at_us: claim(stored, owner, at_us, LEASE_US))


class EvidenceContract:
    """What becomes of evidence. A subclass brings `archive` and its `clock`."""

    def test_facts_become_a_chain(self, archive: Archive, clock: ManualClock) -> None:
        assert (archive.head(), archive.entries()) == (Head(), [])
        first = archive.put_on_record(fact("1"))
        assert (first.number, first.fact, first.at_us, first.previous) == (1, fact("1"), clock.now_us(), Head().digest)
        clock.advance(5)
        second = archive.put_on_record(fact("2", "refunds"))
        assert (second.number, second.previous, second.at_us) == (2, first.digest, clock.now_us())
        assert archive.head() == second.head
        assert archive.entries() == [first, second]
        assert verify(archive.entries(), archive.head()).intact

    def test_a_fact_is_put_on_record_once(self, archive: Archive) -> None:
        first = archive.put_on_record(fact("1"))
        assert archive.put_on_record(fact("1", body="{}")) == first
        other = archive.put_on_record(replace(fact("1"), kind=DECISION))
        assert archive.entries() == [first, other]

    def test_entries_are_found(self, archive: Archive) -> None:
        entries = [archive.put_on_record(fact(str(at), "orders" if at % 2 else "refunds")) for at in range(1, 8)]
        assert archive.entries(after=2, limit=3) == entries[2:5]
        assert archive.entries(["refunds"]) == entries[1::2]
        assert archive.entries(["orders"], newest=True, limit=2) == [entries[6], entries[4]]
        assert archive.entries([]) == archive.entries(["none"]) == archive.entries(after=7) == []
        assert (archive.entry(3), archive.entry(8), archive.entry(0)) == (entries[2], None, None)
        assert (archive.fact(RUN, "3"), archive.fact(DECISION, "3")) == (entries[2], None)

    def test_who_appends_waits_for_who_appends(self, archive: Archive) -> None:
        """Given eight that append at the same time, I expect one chain without a gap or a fork."""
        together(WORKERS, lambda worker: [archive.put_on_record(fact(f"{worker} {at}")) for at in range(10)])
        entries = archive.entries()
        assert [each.number for each in entries] == list(range(1, WORKERS * 10 + 1))
        assert len({each.fact.about for each in entries}) == len(entries)
        assert verify(entries, archive.head()).findings == []

    def test_the_same_fact_from_many_is_one_entry(self, archive: Archive) -> None:
        together(WORKERS, lambda worker: archive.put_on_record(fact("7")))
        assert len(archive.entries()) == 1

    def _begun(self, archive: Archive, run: Run) -> Run:
        begun = archive.begin_run(run, "a", LEASE_US)
        assert begun is not None
        return begun

    def test_a_run_is_put_on_record_as_it_closes(self, archive: Archive, clock: ManualClock) -> None:
        """Given a run whose slot was lost, I expect no entry; of the one that holds it, one, however often told."""
        late = self._begun(archive, Run("orders", "run", clock.now_us()))
        clock.advance(LEASE_US / 1e6)
        run = replace(self._begun(archive, Run("orders", "run", clock.now_us())), ended="done", ended_us=5)
        about = str(run.number)
        assert not archive.close_run(replace(late, ended="done", ended_us=4), {}, fact(about, body="{}"))
        assert (archive.entries(), archive.unrecorded()) == ([], [])
        assert archive.close_run(run, {"orders": 7}, fact(about))
        assert archive.close_run(run, {"orders": 7}, fact(about))
        assert [each.fact for each in archive.entries()] == [fact(about)]
        assert archive.unrecorded() == []

    def test_a_run_that_closes_without_an_entry_is_missed(self, archive: Archive) -> None:
        run = self._begun(archive, Run("orders", "run", 1))
        assert archive.unrecorded() == []
        archive.close_run(replace(run, ended="done", ended_us=5))
        assert archive.unrecorded() == [(RUN, "orders", str(run.number))]

    def test_a_run_that_died_is_put_on_record_by_the_next(self, archive: Archive, clock: ManualClock) -> None:
        dead = self._begun(archive, Run("orders", "run", 1))
        archive.save_run(replace(dead, counts={"left": 4}, done=("stuck",)))
        clock.advance(LEASE_US / 1e6)
        self._begun(archive, Run("orders", "compare", 2))
        (entry,) = archive.entries()
        body = entry.fact.read()
        assert (entry.fact.pair, entry.fact.about) == ("orders", str(dead.number))
        assert (body["ended"], body["error"], body["counts"]) == ("failed", "its process ended", {"left": 4})
        assert archive.unrecorded() == []

    @pytest.mark.parametrize("recorded", [True, False])
    def test_a_decision_is_put_on_record_as_it_concludes(self, archive: Archive, recorded: bool) -> None:
        archive.open_cases([Case("orders", '["1"]', "edited", 1, authority_digest="a", replica_digest="b")])
        (case,) = archive.cases()
        asked = Decision(case.number, Choice.IGNORE_ONCE, "ann", "seen", case.shown, id="ab12")
        acting = archive.decide(asked, two_person=False, lease_us=LEASE_US)
        assert archive.unrecorded() == []
        decided = Fact(DECISION, "orders", "ab12", BODY)
        for _ in range(2):
            assert archive.conclude(acting, DecisionState.DONE, "", "seen", decided if recorded else None)
        assert [each.fact for each in archive.entries()] == ([decided] if recorded else [])
        assert archive.unrecorded() == ([] if recorded else [(DECISION, "orders", "ab12")])

    # ── what is cut ──────────────────────────────────────────────────────────────────────────────────

    def test_what_is_cut_is_gone_and_one_entry_stands_for_it(self, archive: Archive, clock: ManualClock) -> None:
        entries = []
        for at in range(1, 6):
            clock.advance(10)
            entries.append(archive.put_on_record(fact(str(at))))
        assert archive.cut_evidence(entries[0].at_us) is None
        standing = archive.cut_evidence(entries[3].at_us)
        assert standing is not None
        cut = cut_in(standing)
        assert cut is not None
        assert (standing.number, standing.fact.kind, cut.last, dict(cut.kinds)) == (6, CUT, entries[2].head, {RUN: 3})
        assert (cut.from_us, cut.to_us) == (entries[0].at_us, entries[2].at_us)
        assert archive.entries() == [*entries[3:], standing]
        assert (archive.entry(3), archive.entry(4), archive.fact(RUN, "3")) == (None, entries[3], None)
        assert archive.entries(after=2, limit=1) == archive.entries(after=3, limit=1) == entries[3:4]
        assert archive.cut_evidence(entries[3].at_us) is None
        found = verify(archive.entries(), archive.head(), [each.head for each in entries])
        assert (found.findings, found.cut, found.anchored) == ([], cut, 5)

    def test_an_entry_that_stands_for_others_is_cut_in_its_turn(self, archive: Archive, clock: ManualClock) -> None:
        for at in range(1, 4):
            archive.put_on_record(fact(str(at)))
        clock.advance(10)
        archive.cut_evidence(clock.now_us())
        clock.advance(10)
        standing = archive.cut_evidence(clock.now_us())
        assert archive.entries() == [standing]
        assert standing is not None
        cut = cut_in(standing)
        assert cut is not None
        assert (cut.last.number, dict(cut.kinds)) == (4, {RUN: 3, CUT: 1})
        entry = archive.put_on_record(fact("9"))
        assert verify(archive.entries(), archive.head()).findings == []
        assert (entry.number, entry.previous) == (6, standing.digest)

    def test_runs_whose_entries_were_cut_are_not_missed(self, archive: Archive, clock: ManualClock) -> None:
        for recorded in (True, True, False):
            run = replace(self._begun(archive, Run("orders", "run", 1)), ended="done", ended_us=5)
            archive.close_run(run, {}, fact(str(run.number)) if recorded else None)
            clock.advance(10)
        assert [each[2] for each in archive.unrecorded()] == [str(run.number)]
        archive.cut_evidence(clock.now_us())
        assert [each[2] for each in archive.unrecorded()] == [str(run.number)]

    # ── anchors ──────────────────────────────────────────────────────────────────────────────────────

    def test_a_place_is_claimed_once_and_keeps_what_it_was_given(self, archive: Archive, clock: ManualClock) -> None:
        head = archive.put_on_record(fact("1")).head
        seen = archive.places.known(["vault", "desk"])["vault"]
        assert (seen.head, rules.due(seen, head, clock.now_us())) == (Head(), True)
        claimed = taken_by(archive, "a", seen)
        assert claimed is not None
        assert taken_by(archive, "b", seen) is None
        assert taken_by(archive, "b") is None
        ended = rules.arrived(claimed, head, clock.now_us())
        assert archive.places.end(ended)
        assert archive.places.end(ended)
        assert archive.places.known(["vault"]) == {"vault": ended}
        assert not rules.due(ended, head, clock.now_us())

    def test_whoever_stood_still_with_a_place_is_replaced(self, archive: Archive, clock: ManualClock) -> None:
        head = archive.put_on_record(fact("1")).head
        late = taken_by(archive, "a")
        clock.advance(LEASE_US / 1e6)
        taken = taken_by(archive, "b")
        assert late is not None
        assert taken is not None
        assert not archive.places.end(rules.arrived(late, head, clock.now_us()))
        refused = failed(taken, "no answer", clock.now_us(), 1.0)
        assert archive.places.end(refused)
        known = archive.places.known(["vault"])["vault"]
        assert (known.tries, known.failed, known.head) == (1, 1, Head())
        assert not rules.due(known, head, clock.now_us())
        clock.advance(10)
        assert rules.due(known, head, clock.now_us())

    def test_of_many_that_claim_a_place_one_has_it(self, archive: Archive) -> None:
        seen, taken = archive.places.known(["vault"])["vault"], []
        together(WORKERS, lambda worker: taken.append(taken_by(archive, str(worker), seen)))
        assert sum(each is not None for each in taken) == 1

    def test_the_key_of_hashes_is_made_once(self, archive: Archive) -> None:
        """Given many that ask for it first, I expect all to have the same."""
        found: list[str] = []
        together(WORKERS, lambda worker: found.append(archive.redaction_key()))
        assert len(set(found)) == 1
        assert len(bytes.fromhex(found[0])) == 32
