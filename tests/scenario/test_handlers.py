"""What a handler may say, and what becomes of the record."""

from __future__ import annotations

import pytest
from school import School, key, person

from trueup import Reject, Retry, context
from trueup.errors import HandlerError, LeaseLost, Unreachable
from trueup.project import Project
from trueup.sides.memory import Memory


def offer(school: School, ident: int = 1) -> None:
    changed = person(ident, name="changed", v=100)
    school.authority.put(changed)
    school.pair.offer(changed)


def test_reject_parks_until_a_newer_change_comes() -> None:
    school = School().adopted()

    @school.pair.on_change
    def refuse(change):  # type: ignore[no-untyped-def]
        raise Reject("unknown SKU")

    offer(school)
    assert school.drain() == {"parked": 1}
    assert school.row(1).park_reason == "rejected: unknown SKU"
    assert school.pair.run().counts["parked"] == 1


def test_an_exception_is_tried_again_and_parked_when_the_tries_are_spent() -> None:
    school = School(tries=3).adopted()
    calls = []

    @school.pair.on_change
    def fail(change):  # type: ignore[no-untyped-def]
        calls.append(change.id)
        raise ValueError("no")

    offer(school)
    assert school.drain() == {"retry": 2, "parked": 1}
    assert len(calls) == 3
    assert len(set(calls)) == 1, "the idempotency key is the same at every attempt"


def test_retry_waits_as_long_as_it_says() -> None:
    school = School().adopted()
    times = []

    @school.pair.on_change
    def later(change, replica):  # type: ignore[no-untyped-def]
        times.append(school.clock.now_us())
        if len(times) == 1:
            raise Retry(after_s=90)
        replica.put(change)

    offer(school)
    school.drain()
    assert times[1] - times[0] >= 90_000_000
    assert school.replica.get(1)["name"] == "changed"


def test_trouble_of_the_system_charges_no_try() -> None:
    school = School(tries=2).adopted()
    calls = []

    @school.pair.on_change
    def unreachable(change, replica):  # type: ignore[no-untyped-def]
        calls.append(1)
        if len(calls) < 6:
            raise Unreachable("the platform does not answer.")
        replica.put(change)

    offer(school)
    school.drain()
    assert len(calls) == 6
    assert school.replica.get(1)["name"] == "changed"


def test_a_replica_that_moves_between_read_and_write_is_not_overwritten() -> None:
    school = School().adopted()

    @school.pair.on_change
    def write(change, replica):  # type: ignore[no-untyped-def]
        school.replica.put({"id": 1, "name": "meanwhile, by hand"})
        replica.put(change)

    offer(school)
    school.drain()
    assert school.replica.get(1)["name"] == "meanwhile, by hand"
    assert school.cases == {key(1): "conflict"}


def test_the_replica_of_a_job_is_bound_to_its_record() -> None:
    school = School(tries=1).adopted()
    seen = []

    @school.pair.on_change
    def wrong(change, replica):  # type: ignore[no-untyped-def]
        from dataclasses import replace

        try:
            replica.put(replace(change, key=key(2)))
        except HandlerError as error:
            seen.append(str(error))
            raise

    offer(school)
    school.drain()
    assert "bound to" in seen[0]
    assert school.replica.get(2)["name"] == "n2"


def test_a_holder_that_lost_its_lease_sees_it_at_check_and_writes_nothing() -> None:
    school = School(lease="10s").adopted()
    lost = []

    @school.pair.on_change
    def slow(change, replica):  # type: ignore[no-untyped-def]
        if not lost:
            school.clock.advance(60)
            try:
                context.check()
            except LeaseLost:
                lost.append(True)
                raise
        replica.put(change)

    offer(school)
    school.drain()
    assert lost == [True]
    assert school.replica.get(1)["name"] == "changed"


def test_an_action_without_a_handler_fails_at_start() -> None:
    school = School(action_field="status", absent_when={"status": ["dropped"]})

    @school.pair.on("registered")
    def enrol(change, replica):  # type: ignore[no-untyped-def]
        replica.put(change)

    with pytest.raises(HandlerError, match="action dropped has no handler"):
        school.pair.run()


def test_a_pair_that_nothing_would_act_for_fails_at_start() -> None:
    with Project(state="memory:") as project:
        pair = project.pair("lonely", authority=Memory([{"id": 1, "v": 1}], key="id", version="v"))
        with pytest.raises(HandlerError, match="nothing would act"):
            pair.run()
