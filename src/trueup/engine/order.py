"""Which records must be done before which: `after=["users"]`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import overload

from trueup.engine.records import Records, State
from trueup.errors import ConfigError, SideError, did_you_mean
from trueup.model.names import definition_of
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


class Predecessors(Sequence[Predecessor]):
    """The predecessors of a pair, told by its columns at the first use: until then no side is asked.

    ConfigError where the columns that hold a key can't be told by name.
    """

    def __init__(self, records: Records, pairs: Mapping[str, Pair]) -> None:
        self._records, self._pairs = records, pairs

    @cached_property
    def _found(self) -> list[Predecessor]:
        pair = self._records.pair
        known = {field.name for field in self._records.authority.columns}
        found = []
        for name, declared in pair.after.items():
            key = self._pairs[name].key
            columns = declared or key
            if len(columns) != len(key) or not set(columns) <= known:
                raise ConfigError(
                    f"pair {pair.name} comes after {name}; its columns do not hold that key ({', '.join(key)}).",
                    hint=f'Name them: after={{"{name}": ["…"]}}.',
                )
            found.append(Predecessor(name, tuple(columns)))
        return found

    def __len__(self) -> int:
        return len(self._records.pair.after)

    @overload
    def __getitem__(self, at: int) -> Predecessor: ...
    @overload
    def __getitem__(self, at: slice) -> list[Predecessor]: ...
    def __getitem__(self, at: int | slice) -> Predecessor | list[Predecessor]:
        return self._found[at]


def order_of(chosen: Sequence[Records], pairs: Mapping[str, Pair]) -> dict[str, Predecessors]:
    """The predecessors by pair. ConfigError for a predecessor that there is not, or pairs that wait in a circle.

    Columns are looked at now for the first pair of each definition: what is wrong there is wrong for every client, and
    a thousand clients are not to be asked at the start. A side that does not answer is asked again when there is work.
    """
    for pair in pairs.values():
        for name in pair.after:
            if name not in pairs:
                raise ConfigError(
                    f"pair {pair.name} comes after {name}, which there is not.", hint=did_you_mean(name, pairs, "Pairs")
                )
    for name in pairs:
        _walk(name, pairs, ())
    order = {records.pair.name: Predecessors(records, pairs) for records in chosen if records.pair.after}
    for found in {definition_of(name): found for name, found in reversed(order.items())}.values():
        with suppress(SideError):
            _ = found[0]
    return order


def _walk(name: str, pairs: Mapping[str, Pair], path: tuple[str, ...]) -> None:
    if name in path:
        circle = " → ".join((*path[path.index(name) :], name))
        raise ConfigError(f"pairs wait for each other: {circle}.", hint="Take one of them out of after=.")
    for before in pairs[name].after:
        _walk(before, pairs, (*path, name))


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
