"""A world in one thread: the real engine over ports that delay, repeat, fail and stop, with a clock that is virtual.

`simulate(Scene.drawn("opaque", 7))` plays one seed and answers what happened; docs/concepts/simulation.md tells
what is promised and how it is checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trueup.testing.simulation.nature import Nature
from trueup.testing.simulation.scene import KINDS, STEPS, Kind, Scene
from trueup.testing.simulation.world import OpenStore, World

__all__ = ["KINDS", "STEPS", "Kind", "Played", "Scene", "World", "simulate"]


@dataclass(frozen=True, slots=True)
class Played:
    """How a world ended.

    broken: the promise that did not hold, or None. story: all that happened, as text. counts: how often what happened.
    """

    scene: Scene
    broken: str | None
    story: str
    counts: Mapping[str, int]

    @property
    def command(self) -> str:
        """Plays exactly this again."""
        scene = self.scene
        return f"python -m trueup.testing.simulation --class {scene.kind} --seed {scene.seed} --steps {scene.steps}"

    def report(self) -> str:
        """The story of a failure, for people."""
        return f"{self.story}\n\n{self.scene}\nBroken: {self.broken}\nAgain:  {self.command}"


def simulate(scene: Scene, *, told: bool = True, open_store: OpenStore | None = None) -> Played:
    """Plays one scene to its rest. told: the story is put into words even if all went well. open_store: see `World`."""
    world = World(scene, open_store=open_store)
    try:
        world.begin()
        world.calm = False
        nature = Nature(world)
        nature.begin()
        world.go_on(lambda: nature.ended)
        if not world.broken:
            world.rest()
        broken = world.promises.broken
        counts = {**world.promises.counts, "steps": world.scheduler.steps}
        return Played(scene, broken, world.story.text() if told or broken else "", counts)
    finally:
        world.scheduler.close()
