"""The two systems as one host reaches them: the authority, or a copy of it that lags, and the replica."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from trueup.errors import Unreachable
from trueup.model.record import Found, Projection
from trueup.ports import EVERYTHING, Capabilities, Description, Scope, Write, Written
from trueup.sides.memory import Memory
from trueup.testing.simulation.ports import Wire
from trueup.testing.simulation.scheduler import Seen

if TYPE_CHECKING:
    import pyarrow as pa


class SidePort:
    """A system as one host reaches it."""

    def __init__(self, wire: Wire, name: str, side: Callable[[], Memory]) -> None:
        self._wire, self._name, self._side = wire, name, side

    @property
    def label(self) -> str:
        """See the port."""
        return self._name

    @property
    def key(self) -> tuple[str, ...]:
        """See the port."""
        return self._side().key

    @property
    def version(self) -> str | None:
        """See the port."""
        return self._side().version

    @property
    def capabilities(self) -> Capabilities:
        """See the port."""
        return self._side().capabilities

    def describe(self) -> Description:
        """See the port."""
        return self._side().describe()

    def now_us(self) -> int:
        """See the port."""
        return self._wire.world.scheduler.now_us

    def close(self) -> None:
        """Nothing to give back."""


class AuthorityPort(SidePort):
    """The authority, or a copy of it that lags."""

    def scan(self, projection: Projection, scope: Scope = EVERYTHING) -> Iterator[pa.RecordBatch]:
        """See the port."""

        def effect() -> list[pa.RecordBatch]:
            reader, lagging = self._reader()
            self._wire.world.promises.scanned(lagging)
            return list(reader.scan(projection, scope))

        return iter(self._wire.call("authority.scan", effect, Unreachable))

    def read(self, projection: Projection, keys: Sequence[str]) -> dict[str, Found]:
        """See the port."""

        def effect() -> dict[str, Found]:
            reader, lagging = self._reader()
            world = self._wire.world
            world.promises.saw({key: Seen(world.history.number(key, lagging=lagging), lagging) for key in keys})
            return reader.read(projection, keys)

        return self._wire.call("authority.read", effect, Unreachable)

    def _reader(self) -> tuple[Memory, bool]:
        world = self._wire.world
        lagging = world.lags()
        return (world.history.standby if lagging else world.authority), lagging


class ReplicaPort(SidePort):
    """The replica; every write that lands is judged by the promises."""

    def scan(self, projection: Projection, scope: Scope = EVERYTHING) -> Iterator[pa.RecordBatch]:
        """See the port."""
        return iter(self._wire.call("replica.scan", lambda: list(self._side().scan(projection, scope)), Unreachable))

    def read(self, projection: Projection, keys: Sequence[str]) -> dict[str, Found]:
        """See the port."""

        def effect() -> dict[str, Found]:
            self._wire.world.promises.looked(keys)
            return self._side().read(projection, keys)

        return self._wire.call("replica.read", effect, Unreachable)

    def apply(self, projection: Projection, writes: Sequence[Write]) -> list[Written]:
        """See the port."""

        def effect() -> list[Written]:
            written = self._side().apply(projection, writes)
            for write, answer in zip(writes, written, strict=True):
                self._wire.world.promises.wrote(write.key, write.values, landed=answer.landed)
            return written

        return self._wire.call("replica.apply", effect, Unreachable)

    def push(self, key: str, values: Mapping[str, str | None] | None) -> None:
        """A write of one's own client: nothing is checked, nothing is answered."""

        def effect() -> None:
            self._wire.world.put_replica(key, values)
            self._wire.world.promises.wrote(key, values, landed=True)

        self._wire.call("replica.push", effect, Unreachable)
