"""What a handler may say, and what becomes of the record."""

from __future__ import annotations

import asyncio
import threading

import pytest

from school import School, key, person
from trueup import RateLimited, Reject, Retry, context
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


def test_an_async_handler_runs_on_the_background_loop() -> None:
    school = School().adopted()
    threads = []

    @school.pair.on_change
    async def act(change, replica):  # type: ignore[no-untyped-def]
        await asyncio.sleep(0)
        threads.append(threading.current_thread().name)
        replica.put(change)

    offer(school)
    assert school.drain() == {"done": 1}
    assert threads == ["trueup-handlers"]
    assert school.replica.get(1)["name"] == "changed"


def test_an_async_handler_that_lost_its_lease_is_cancelled() -> None:
    school = School(lease=0.03).adopted()
    seen = []

    @school.pair.on_change
    async def slow(change, replica):  # type: ignore[no-untyped-def]
        if seen:
            return replica.put(change)
        school.clock.advance(60)
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    offer(school)
    school.drain()
    assert seen == ["cancelled"]
    assert school.replica.get(1)["name"] == "changed"


def test_a_batch_handler_takes_many_and_answers_for_each() -> None:
    school = School().adopted()
    sizes = []

    @school.pair.on("upsert", batch=3)
    def act(changes):  # type: ignore[no-untyped-def]
        sizes.append(len(changes))
        for change in changes:
            school.replica.put({name: change.values[name] for name in ("id", "name")})
        return {key(2): Reject("not this one")}

    for ident in (1, 2, 3, 4):
        school.authority.put(person(ident, name="changed", v=100 + ident))
    school.pair.run()
    assert sorted(sizes) in ([1, 3], [3])
    assert school.row(2).park_reason == "rejected: not this one"
    assert school.row(1).state == "idle"


def test_trouble_pauses_the_system_and_one_job_probes_it() -> None:
    school = School(tries=2).adopted()
    calls = []
    broken = [True]

    @school.pair.on_change
    def act(change, replica):  # type: ignore[no-untyped-def]
        calls.append(school.clock.now_us())
        if broken[0]:
            raise ConnectionError("refused")
        replica.put(change)

    for ident in (1, 2, 3):
        offer(school, ident)
    worker, chance = school.project.worker(), school.project.chance()
    worker.once(chance)
    assert len(calls) == 1, "the first trouble ends the batch"
    worker.once(chance)
    assert len(calls) == 1, "a paused system is not called"
    for _ in range(4):
        school.clock.advance(400)
        worker.once(chance)
        worker.once(chance)
    assert len(calls) == 5, "one job probes after each pause"
    assert max(school.row(ident).tries for ident in (1, 2, 3)) == 0, "no try was charged"
    broken[0] = False
    school.drain()
    assert [school.replica.get(ident)["name"] for ident in (1, 2, 3)] == ["changed"] * 3


def test_a_person_pauses_and_resumes_a_system() -> None:
    school = School().adopted()
    school.project.budgets.pause("*", "maintenance")
    offer(school)
    assert school.drain() == {}
    school.project.budgets.resume("*")
    assert school.drain() == {"done": 1}


def test_rate_limited_pauses_for_as_long_as_the_system_asks() -> None:
    school = School().adopted()
    times = []

    @school.pair.on_change
    def act(change, replica):  # type: ignore[no-untyped-def]
        times.append(school.clock.now_us())
        if len(times) == 1:
            raise RateLimited(120)
        replica.put(change)

    offer(school)
    school.drain()
    assert times[1] - times[0] >= 120_000_000
    assert school.row(1).done_version == 100
