"""Which records must be done before which: `after=["users"]`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trueup.engine.records import Records, State
from trueup.errors import ConfigError, did_you_mean
from trueup.model.record import key_text
from trueup.model.row import Row
from trueup.model.row import State as RowState
from trueup.pair import Pair
from trueup.ports import Ledger


@dataclass(frozen=True, slots=True)
class Predecessor:
    """A pair whose record must be done first. columns: columns of the later record that hold its key, in order."""

    pair: str
    columns: tuple[str, ...]

    def key(self, state: State) -> str | None:
        """Key text of the record that this one waits for; None where it has none."""
        texts = [(state.values or {}).get(name) for name in self.columns]
        return None if None in texts else key_text(texts)


def check_order(pairs: Mapping[str, Pair]) -> None:
    """ConfigError for a predecessor that there is not, or pairs that wait for each other in a circle."""
    for pair in pairs.values():
        for name in pair.after:
            if name not in pairs:
                raise ConfigError(
                    f"pair {pair.name} comes after {name}, which there is not.", hint=did_you_mean(name, pairs, "Pairs")
                )
    for name in pairs:
        _walk(name, pairs, ())


def _walk(name: str, pairs: Mapping[str, Pair], path: tuple[str, ...]) -> None:
    if name in path:
        circle = " → ".join((*path[path.index(name) :], name))
        raise ConfigError(f"pairs wait for each other: {circle}.", hint="Take one of them out of after=.")
    for before in pairs[name].after:
        _walk(before, pairs, (*path, name))


def predecessors(records: Records, pairs: Mapping[str, Pair]) -> list[Predecessor]:
    """The predecessors of a pair; ConfigError where the columns that hold a key can't be told by name."""
    found = []
    known = {field.name for field in records.authority.columns}
    for name, declared in records.pair.after.items():
        key = pairs[name].key
        columns = declared or key
        if len(columns) != len(key) or not set(columns) <= known:
            raise ConfigError(
                f"pair {records.pair.name} comes after {name}; its columns do not hold that key ({', '.join(key)}).",
                hint=f'Name them: after={{"{name}": ["…"]}}.',
            )
        found.append(Predecessor(name, tuple(columns)))
    return found


def awaited(found: Sequence[Predecessor], ledger: Ledger, states: Sequence[State]) -> dict[str, str]:
    """By key text of the later record, the "pair key" of a record that is not done yet.

    What must be absent waits for nobody, and a record that the ledger has never seen is not waited for.
    """
    waits: dict[str, str] = {}
    for before in found:
        keys = {state.key: key for state in states if not state.absent and (key := before.key(state)) is not None}
        rows = ledger.rows(before.pair, list(dict.fromkeys(keys.values())))
        waits |= {own: f"{before.pair} {key}" for own, key in keys.items() if _undone(rows.get(key))}
    return waits


def _undone(row: Row | None) -> bool:
    return row is not None and row.state is not RowState.IDLE
