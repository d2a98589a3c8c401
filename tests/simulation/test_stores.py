"""The same worlds over real stores: the same seed tells the very same story, whatever keeps the rows."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from services import postgres_database
from trueup.stores.sql import SqlStore
from trueup.stores.sql.postgresql import open_postgresql
from trueup.testing.simulation import KINDS, Scene, simulate


def same_story(scene: Scene, open_store: Any) -> None:
    plain, kept = simulate(scene), simulate(scene, open_store=open_store)
    assert kept.broken is None, kept.report()
    assert kept.story == plain.story


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_sqlite(kind: Any, tmp_path: Any) -> None:
    numbers, stores = count(), []

    def open_store(clock: Any) -> Any:
        store = SqlStore(f"sqlite:///{tmp_path}/{next(numbers)}.db", clock, durable=False)
        stores.append(store)
        return store.ledger, store.archive, store.budgets

    for seed in range(20):
        same_story(Scene.drawn(kind, seed), open_store)
        while stores:
            stores.pop().close()


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("kind", KINDS)
def test_postgresql(kind: Any) -> None:
    with postgres_database() as url:
        for seed in range(4):
            numbers, ledgers = count(), []

            def open_store(clock: Any, seed: int = seed, numbers: Any = numbers, ledgers: Any = ledgers) -> Any:
                store = open_postgresql(f"{url}?schema=seed{seed}_{next(numbers)}", clock)
                ledgers.append(store[0])
                return store

            same_story(Scene.drawn(kind, seed), open_store)
            for ledger in ledgers:
                ledger.close()
