"""What is told and what is not: the rules of alerts, and how a message reads."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from trueup.model.alert import Message, Telling, claim, delivered, news
from trueup.model.alert_text import SHOWN_MAX, body_of, notice_of
from trueup.model.condition import CONDITIONS, Condition, Severity
from trueup.model.handover import BACKOFF_MAX_US, claimable, failed, held

NAMES = sorted(CONDITIONS)
SUBJECTS = ["orders", "refunds", "orders@acme"]
conditions = st.builds(
    Condition,
    name=st.sampled_from(NAMES),
    subject=st.sampled_from(SUBJECTS),
    severity=st.sampled_from(list(Severity)),
    cause=st.just("why"),
    command=st.just("trueup status"),
    since_us=st.none() | st.integers(0, 1000),
)
states = st.lists(conditions, max_size=8, unique_by=lambda each: each.ident)
least = st.sampled_from(list(Severity))


def one(name: str = "overdue", subject: str = "orders", severity: Severity = Severity.CRITICAL) -> Condition:
    return Condition(name, subject, severity, "nobody starts it", "trueup serve", 1_000_000)


def told(telling: Telling, now: list[Condition], at_us: int = 10, quiet: bool = False, **options: Severity) -> Telling:
    """The target after it was told what there was to tell."""
    some = news(telling.known, now, SUBJECTS, quiet=quiet, **options)
    return delivered(claim(telling, some, "me", at_us, 5), at_us) if any(some) else telling


@given(states, least)
def test_what_was_told_is_not_told_again(now: list[Condition], severity: Severity) -> None:
    after = told(Telling("x"), now, least=severity)
    assert news(after.known, now, SUBJECTS, least=severity) == ((), ())


@given(st.lists(states, max_size=6), least)
def test_each_change_is_told_once_and_each_recovery_once(history: list[list[Condition]], severity: Severity) -> None:
    """Given any history, I expect a target to know exactly what is wrong now, and to have heard each end."""
    telling, open_ = Telling("x"), dict[str, Severity]()
    for at, now in enumerate([*history, []], 1):
        began, ended = news(telling.known, now, SUBJECTS, least=severity)
        for each in began:
            assert open_.get(each.ident) is not each.severity
            open_[each.ident] = each.severity
        for each in ended:
            del open_[each.ident]
        telling = told(telling, now, at, least=severity)
        expected = {each.ident for each in now if severity is Severity.WARNING or each.severity is Severity.CRITICAL}
        assert set(open_) == set(telling.known) == expected
    assert open_ == {}


@given(states, states)
def test_in_quiet_hours_only_what_is_critical_goes_through(before: list[Condition], now: list[Condition]) -> None:
    telling = told(Telling("x"), before)
    began, ended = news(telling.known, now, SUBJECTS, quiet=True)
    assert {each.severity for each in (*began, *ended)} <= {Severity.CRITICAL}
    # In the morning nothing is lost: the target knows what is wrong then.
    morning = told(told(telling, now, 20, quiet=True), now, 30)
    assert set(morning.known) == {each.ident for each in now}


def test_a_subject_that_cannot_be_judged_has_not_recovered() -> None:
    """Given a target that knows of a pair of another project on the same store, I expect no word of its recovery."""
    theirs = one(subject="theirs")
    assert news({theirs.ident: theirs}, [], SUBJECTS) == ((), ())


def test_a_message_that_did_not_arrive_is_sent_again_as_it_was() -> None:
    taken = claim(Telling("x"), ((one(),), ()), "a", 1_000, 5)
    kept = failed(taken, "no answer", 1_001, 0.5)
    assert (kept.known, kept.tries, kept.failed) == ({}, 1, 1)
    again = claim(kept, ((one("stuck"),), ()), "b", kept.ready_us, 5)
    assert again.outgoing == taken.outgoing
    assert set(delivered(again, again.ready_us).known) == {"overdue orders"}


@given(st.integers(0, 10_000), st.floats(0, 1))
def test_the_backoff_is_bounded(tries: int, share: float) -> None:
    after = failed(Telling("x", tries=tries), "e", 0, share)
    assert 0 < after.ready_us <= BACKOFF_MAX_US


def test_one_is_at_a_place_and_after_a_failure_a_person_need_not_wait() -> None:
    """Given a place that did not take what it was given, I expect it to be claimed before its time, by one."""
    taken = claim(Telling("x"), ((one(),), ()), "a", 1_000, 5)
    assert not claimable(taken, taken, 1_004)
    assert claimable(taken, taken, 1_005)
    kept = failed(taken, "no answer", 1_001, 0.5)
    assert kept.ready_us > 1_002
    assert claimable(kept, kept, 1_002)
    assert not claimable(claim(kept, ((), ()), "b", 1_002, 5), kept, 1_002)


def test_whoever_was_replaced_changes_nothing() -> None:
    first = claim(Telling("x"), ((one(),), ()), "a", 1_000, 5)
    second = claim(first, ((), ()), "b", 1_005, 5)
    assert claimable(first, first, 1_005)
    assert not held(second, first)
    assert held(second, second)
    assert second.outgoing == first.outgoing


def test_a_message_says_what_why_and_what_to_type() -> None:
    message = Message("m", 61_000_000, (one(),), (one("paused", "erp", Severity.WARNING),))
    notice = notice_of(message, "shop", "https://runbook.example/")
    assert notice.title == "shop: 1 critical, 1 recovered"
    assert notice.body == (
        "CRITICAL overdue: orders\nnobody starts it.\n→ trueup serve\nhttps://runbook.example/overdue.md\n\n"
        "RECOVERED paused: erp after 1 min"
    )
    assert notice.document["data"]["began"][0]["command"] == "trueup serve"


def test_conditions_of_many_clients_are_said_together() -> None:
    many = tuple(one(subject=f"orders@{client}") for client in range(1_000))
    body = body_of(Message("m", 0, many), "r/")
    assert body.startswith("CRITICAL overdue: orders@* (1,000)\norders@0: nobody starts it.\n")


def test_a_message_is_never_long() -> None:
    several = tuple(replace(one(), name=f"n{number}", subject="x") for number in range(100))
    body = body_of(Message("m", 0, several), "r/")
    assert body.count("CRITICAL") == SHOWN_MAX
    assert "80 more: trueup alerts list" in body


def test_a_message_survives_the_store() -> None:
    message = Message("m", 5, (one(),), (one("paused"),))
    assert Message.of_json(message.as_json()) == message
