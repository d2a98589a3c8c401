"""Where anchors were given, in SQL."""

from __future__ import annotations

from typing import Final

from trueup.model.anchor import Anchored
from trueup.model.evidence import Head
from trueup.ports import Clock
from trueup.stores.sql.handovers import SqlHandovers
from trueup.stores.sql.steps import Step
from trueup.stores.sql.storage import Storage

# The same text for every database: each of them reads these types as its own.
STEP: Final = Step(
    """
    CREATE TABLE trueup_anchored (
        place text PRIMARY KEY,
        number bigint NOT NULL,
        digest text NOT NULL,
        owner text NOT NULL,
        fence bigint NOT NULL,
        ready_us bigint NOT NULL,
        tries bigint NOT NULL,
        failed bigint NOT NULL,
        error text NOT NULL,
        given_us bigint
    )
    """,
    "CREATE TABLE trueup_secret (name text PRIMARY KEY, value text NOT NULL)",
)


def places(storage: Storage, clock: Clock | None) -> SqlHandovers[Anchored]:
    """Places of anchors in a database. clock: by default the storage's."""
    return SqlHandovers(
        storage, clock, "trueup_anchored", ("place", "number", "digest", "given_us"), new=Anchored,
        has=lambda anchored: (anchored.head.number, anchored.head.digest),
        made=lambda shared, number, digest: Anchored(**shared, head=Head(number, digest)),
    )  # fmt: skip
