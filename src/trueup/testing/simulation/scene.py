"""What is simulated: the class of replica, the writer, the versions, the weather."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from trueup.testing.simulation.weather import Weather

Kind = Literal["opaque", "digest", "none", "unreadable"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
STEPS: Final = 30


@dataclass(frozen=True, slots=True)
class Scene:
    """One world to be.

    kind: class of the replica, by its precondition: an `opaque` token, a `digest`, `none`; or `unreadable`.
    steps: things that happen from outside before all comes to rest. handler: the pair has a handler of its own.
    timestamps: versions are times, else integers. drops: a state of the authority means absence.
    orphans: the pair opts in to delete what the authority deleted. hands: people edit the replica.
    restores, losses: the authority is restored from a backup, the ledger is lost, once.
    """

    kind: Kind = "opaque"
    seed: int = 0
    steps: int = STEPS
    handler: bool = False
    timestamps: bool = False
    drops: bool = False
    orphans: bool = False
    hands: bool = True
    restores: bool = False
    losses: bool = False
    workers: int = 2
    records: int = 2
    settle_s: int = 2
    weather: Weather = field(default_factory=Weather)

    @staticmethod
    def drawn(kind: Kind, seed: int, steps: int = STEPS) -> Scene:
        """The scene of a seed."""
        chance = random.Random(f"{kind} {seed}")
        return Scene(
            kind=kind,
            seed=seed,
            steps=steps,
            handler=kind == "unreadable" or chance.random() < 0.4,
            timestamps=chance.random() < 0.5,
            drops=chance.random() < 0.4,
            orphans=chance.random() < 0.4,
            hands=chance.random() < 0.5,
            restores=chance.random() < 0.12,
            losses=chance.random() < 0.12,
            workers=chance.choice((1, 2, 2, 3)),
            records=chance.choice((1, 2, 3)),
            weather=Weather.drawn(chance),
        )
