"""Metrics as they are declared, added up, merged and written down."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from trueup.engine.measure import DEFINITIONS, Values, measured, naming_of
from trueup.engine.report import Status
from trueup.engine.tally import FLUSH_S, Tally
from trueup.errors import ConfigError, StateError
from trueup.model import metric as m
from trueup.model.change import Change, Origin, Outcome
from trueup.model.condition import Condition, Severity
from trueup.model.metric import Count, Kind
from trueup.model.row import Claim, Finish, Row
from trueup.project import Project
from trueup.stores.memory_tallies import MemoryTallies
from trueup.testing.clock import ManualClock
from trueup.web.metrics import text_of

NAMES = st.sampled_from(["orders@a", "orders@b", "people@a", "people"])
# Of each kind one: added up, the oldest, the most.
SOME = [(m.CASES, ()), (m.OLDEST_CASE, ()), (m.SIDE_CLOCK, ("replica",))]


def status(pair: str, **more: object) -> Status:
    """A pair of which little is known."""
    known: dict[str, object] = {
        "adopted": True, "counts": {}, "cases": 0, "oldest_case_us": None, "oldest_due_us": None, "last_run": None,
        "last_success_us": None, "now_us": 0, "word": "", "next_command": None,
    }  # fmt: skip
    return Status(pair, **{**known, **more})  # type: ignore[arg-type]


def values_of(statuses: list[Status], tallies: Mapping[Count, float] | None = None, way: str = "pairs") -> Values:
    return measured(statuses, [], [], {}, tallies or {}, 0, naming_of(way))


def samples(values: Values) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """As Prometheus reads the text."""
    families = text_string_to_metric_families(text_of(values).decode())
    return {(each.name, frozenset(each.labels.items())): each.value for family in families for each in family.samples}


def ended(result: str, *, origin: Origin = Origin.EVENT, waited_s: float = 0.0) -> tuple[Finish, int]:
    """A job that ended, and when."""
    row = Row("orders", "[1]", wish_origin=int(origin), queued_at=1_000_000)
    claim = Claim(Change("orders", "[1]"), 1, 0, row)
    return Finish(claim, result), 1_000_000 + round(waited_s * 1e6)  # type: ignore[arg-type]


# ── declarations ─────────────────────────────────────────────────────────────────────────────────────


def test_names_and_units_are_by_convention() -> None:
    for each in m.METRICS:
        assert re.fullmatch(r"trueup_[a-z]+(_[a-z]+)*", each.name)
        assert each.name.endswith("_total") == (each.kind is Kind.COUNTER)
        assert not re.search(r"_(us|ms|minutes|hours|kb|mb)(_|$)", each.name), "base units only"
        assert each.help.endswith((".", "1."))
    assert len({each.name for each in m.METRICS}) == len(m.METRICS)


def test_labels_are_declared_names_or_words_of_a_fixed_set() -> None:
    """Given any metric, I expect no label whose values nobody bounded."""
    declared = {"pair", "system", "source", "subject", "limit"}
    for each in m.METRICS:
        words = m.WORDS.get(each.name, {})
        free = set(each.labels) - set(words) - declared
        assert free <= {m.REQUESTS: {"status"}, m.BUILD: {"version", "python"}}.get(each, set())
        assert set(words) <= set(each.labels)


def test_how_many_series_a_pair_has_is_known() -> None:
    assert m.series_max(m.CASES) == 1
    assert m.series_max(m.OFFERS) == len(Outcome)
    assert m.series_max(m.LATENCY) == len(m.BUCKETS) + 3  # +Inf, sum, count
    assert m.series_max(m.PAUSED) is None


# ── adding up ────────────────────────────────────────────────────────────────────────────────────────


def test_offers_and_jobs_are_counted_by_pair_and_outcome() -> None:
    store = MemoryTallies()
    tally = Tally(lambda: store, ManualClock())
    tally.offered([Change("orders", "[1]"), Change("people", "[1]"), Change("orders", "[2]")],
                  [Outcome.PENDING, Outcome.PENDING, Outcome.STALE])  # fmt: skip
    done, now_us = ended("done", waited_s=0.3)
    parked, _ = ended("parked")
    tally.finished([done, parked, done], [True, True, False], now_us)
    tally.flush()
    found = store.tallies()
    assert {key: found[key] for key in found if key.metric in (m.OFFERS.name, m.JOBS.name)} == {
        m.OFFERS.count("orders", "pending"): 1.0,
        m.OFFERS.count("orders", "stale"): 1.0,
        m.OFFERS.count("people", "pending"): 1.0,
        m.JOBS.count("orders", "done"): 1.0,
        m.JOBS.count("orders", "parked"): 1.0,
        m.JOBS.count("orders", "refused"): 1.0,
    }
    assert found[m.LATENCY.count("orders", "0.5")] == 1.0
    assert found[m.LATENCY.count("orders", m.TOTAL)] == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("waited_s", "bucket"), [(0.01, "0.01"), (0.010001, "0.025"), (86_400.0, "86400.0"), (86_401.0, m.BEYOND)]
)
def test_a_latency_is_in_the_first_bucket_that_holds_it(waited_s: float, bucket: str) -> None:
    store = MemoryTallies()
    tally = Tally(lambda: store, ManualClock())
    done, now_us = ended("done", waited_s=waited_s)
    tally.finished([done], [True], now_us)
    tally.flush()
    assert store.tallies()[m.LATENCY.count("orders", bucket)] == 1.0


@pytest.mark.parametrize(("result", "origin"), [("retry", Origin.EVENT), ("done", Origin.SWEEP)])
def test_only_events_that_are_done_have_a_latency(result: str, origin: Origin) -> None:
    store = MemoryTallies()
    tally = Tally(lambda: store, ManualClock())
    finish, now_us = ended(result, origin=origin)
    tally.finished([finish], [True], now_us)
    tally.flush()
    assert {each.metric for each in store.tallies()} == {m.JOBS.name}


def test_a_run_of_windows_is_counted_under_a_bounded_name() -> None:
    store = MemoryTallies()
    tally = Tally(lambda: store, ManualClock())
    tally.ran("orders", "window 2026-11-01..2026-11-08", "done", {"compare": 2.0})
    tally.flush()
    assert store.tallies() == {
        m.RUNS.count("orders", "window", "done"): 1.0,
        m.PHASES.count("orders", "compare", "count"): 1.0,
        m.PHASES.count("orders", "compare", "sum"): 2.0,
    }


def test_what_the_store_did_not_take_is_handed_over_later() -> None:
    """Given a store that is away for a while, I expect every count once it is back, and each once."""
    away = [True]

    class Away(MemoryTallies):
        def tally(self, added: Mapping[Count, float]) -> None:
            if away[0]:
                raise StateError("the state store does not answer.")
            super().tally(added)

    store = Away()
    tally = Tally(lambda: store, ManualClock())
    tally.received("shop", 200)
    with pytest.raises(StateError):
        tally.flush()
    tally.received("shop", 200)
    away[0] = False
    tally.flush()
    tally.flush()
    assert store.tallies() == {m.REQUESTS.count("shop", "200"): 2.0}


def test_counts_are_handed_over_at_a_rhythm_that_ends_when_nothing_happens() -> None:
    class Rhythm(ManualClock):
        calls: list[object] = []  # noqa: RUF012  one clock

        def every(self, seconds, call):  # type: ignore[no-untyped-def]
            assert seconds == FLUSH_S
            self.calls.append(call)
            return lambda: None

    store, clock = MemoryTallies(), Rhythm()
    tally = Tally(lambda: store, clock)
    tally.received("shop", 200)
    tally.received("shop", 200)
    [beat] = clock.calls
    assert beat() is True  # type: ignore[operator]
    assert store.tallies() == {m.REQUESTS.count("shop", "200"): 2.0}
    assert beat() is False  # type: ignore[operator]
    tally.received("shop", 200)
    assert len(clock.calls) == 2


# ── merging ──────────────────────────────────────────────────────────────────────────────────────────


@given(st.dictionaries(NAMES, st.tuples(st.integers(0, 9), st.none() | st.integers(1, 10**15)), min_size=1))
def test_clients_of_a_definition_are_added_up_or_the_worst_of_them_counts(
    pairs: dict[str, tuple[int, int | None]],
) -> None:
    statuses = [status(name, cases=cases, oldest_case_us=oldest) for name, (cases, oldest) in pairs.items()]
    tallies = {m.JOBS.count(name, "done"): float(cases) for name, (cases, _) in pairs.items()}
    found = values_of(statuses, tallies, DEFINITIONS)
    sums: Counter[str] = Counter()
    oldest: dict[str, float] = {}
    for name, (cases, at_us) in pairs.items():
        definition = name.partition("@")[0]
        sums[definition] += cases
        if at_us is not None:
            oldest[definition] = min(oldest.get(definition, 1e18), at_us / 1e6)
    for definition, cases in sums.items():
        assert found[m.CASES.count(definition)] == cases
        assert found[m.JOBS.count(definition, "done")] == cases
        assert found.get(m.OLDEST_CASE.count(definition)) == oldest.get(definition)
    assert not any("@" in label for count in found for label in count.labels)


def test_a_definition_keeps_its_two_systems_apart() -> None:
    naming = naming_of(DEFINITIONS)
    assert naming("orders@acme:authority") == "orders:authority"
    assert naming("orders@acme") == naming("orders") == "orders"
    assert naming("warehouse") == "warehouse"


def test_an_unknown_way_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="definitions"):
        Project("memory:", metrics="definition")


def test_what_is_no_longer_declared_is_not_told() -> None:
    tallies = {m.JOBS.count("gone", "done"): 5.0, Count("trueup_unknown", ("orders",)): 1.0}
    found = values_of([status("orders")], tallies)
    assert not any("gone" in count.labels or count.metric == "trueup_unknown" for count in found)


# ── text ─────────────────────────────────────────────────────────────────────────────────────────────


def test_the_text_is_what_prometheus_reads() -> None:
    tallies = {
        m.JOBS.count("orders", "done"): 3.0,
        m.LATENCY.count("orders", "0.05"): 2.0, m.LATENCY.count("orders", m.BEYOND): 1.0,
        m.LATENCY.count("orders", m.TOTAL): 90_000.5,
        m.PHASES.count("orders", "compare", m.NUMBER): 4.0, m.PHASES.count("orders", "compare", m.TOTAL): 6.5,
    }  # fmt: skip
    found = samples(values_of([status("orders", cases=2)], tallies))
    pair = ("pair", "orders")
    assert found["trueup_jobs_total", frozenset({pair, ("outcome", "done")})] == 3.0
    assert found["trueup_cases_open", frozenset({pair})] == 2.0
    bucket = "trueup_event_latency_seconds_bucket"
    assert found[bucket, frozenset({pair, ("le", "0.025")})] == 0.0
    assert found[bucket, frozenset({pair, ("le", "86400.0")})] == 2.0
    assert found[bucket, frozenset({pair, ("le", "+Inf")})] == 3.0
    assert found["trueup_event_latency_seconds_count", frozenset({pair})] == 3.0
    assert found["trueup_event_latency_seconds_sum", frozenset({pair})] == 90_000.5
    phase = frozenset({pair, ("phase", "compare")})
    assert found["trueup_run_phase_seconds_count", phase] == 4.0
    assert found["trueup_run_phase_seconds_sum", phase] == 6.5


def test_a_condition_is_told_by_name_and_subject_without_its_cause() -> None:
    condition = Condition("failing", "orders", Severity.CRITICAL, "its run fails: canary", "trueup run orders")
    found = measured([status("orders")], [condition], [], {}, {}, 0)
    assert found[m.CONDITION.count("failing", "critical", "orders")] == 1.0
    assert b"canary" not in text_of(found)
