"""The steps by which a state store grows, and which programs may use a store that has grown further than they know."""

from __future__ import annotations

from collections.abc import Sequence

from trueup.errors import StateError


class Step:
    """Statements that are run together.

    additive: programs that do not know the step may still use the store. One that is not makes them refuse it.
    """

    def __init__(self, *statements: str, additive: bool = True) -> None:
        self.statements = statements
        self.additive = additive


def needs(number: int, step: Step) -> int:
    """The lowest step that a program must know where this one was done: 0 where any program will do."""
    return 0 if step.additive else number


def check_needs(label: str, needed: int, done: int, known: Sequence[Step]) -> None:
    """Refuses a store which this program must not use. Raises StateError.

    label: the store, for people. needed: the highest that `needs` said of its steps. done: its steps so far.
    """
    if needed > len(known):
        raise StateError(
            f"{label}: the state store was written by a newer trueup "
            f"(step {done}, for programs that know step {needed}; this one knows {len(known)}).",
            hint="Upgrade trueup here too, or name another state store.",
        )
