"""A slow link: a proxy on the loopback address that lets bytes through at a rate and after a delay, both ways.

    python -m bench.compare.link MBIT_PER_SECOND ROUND_TRIP_MS PORT …

All connections share the link, as those of one client do that is far from its databases. Each way has the rate; a round
trip takes the delay, half of it each way. Prints `{"ports": {"5432": 40001}}`, and when its input ends the bytes that
went either way.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_HOST: Final = "127.0.0.1"
_CHUNK_BYTES: Final = 16_384
# What may be on its way in one connection, beyond which its sender waits: more than rate times delay.
_CHUNKS_MAX: Final = 64


@dataclass(frozen=True)
class Link:
    """megabits_per_second: each way; None for no limit. round_trip_ms: of an empty link."""

    megabits_per_second: float | None
    round_trip_ms: float

    def __str__(self) -> str:
        return f"{self.megabits_per_second:g} Mbit/s, {self.round_trip_ms:g} ms"

    @classmethod
    def parse(cls, text: str) -> Link:
        """The link that is written MBIT:MS; ValueError where it is none."""
        megabits, _, milliseconds = text.partition(":")
        return cls(float(megabits), float(milliseconds))


@dataclass
class Linked:
    """A link at work. ports: those to use, by the server's. sent, received: bytes, once it has ended."""

    ports: dict[int, int]
    sent: int = 0
    received: int = 0


@contextmanager
def linked(link: Link, ports: Sequence[int]) -> Iterator[Linked]:
    """Runs the proxy, in a process of its own, before these ports."""
    told = [str(link.megabits_per_second or 0), str(link.round_trip_ms), *map(str, dict.fromkeys(ports))]
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.compare.link", *told], text=True, cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        answer = json.loads(process.stdout.readline())
        found = Linked({int(port): int(mine) for port, mine in answer["ports"].items()})
        try:
            yield found
        finally:
            process.stdin.close()
            counted = json.loads(process.stdout.readline() or "{}")
            found.sent, found.received = counted.get("sent", 0), counted.get("received", 0)


@dataclass
class _Way:
    """One direction of the link: when it is free again, and what it has carried."""

    seconds_per_byte: float
    delay_s: float
    free_at: float = 0.0
    carried: int = 0

    def arrival(self, now: float, size: int) -> float:
        """When `size` bytes that are offered now will have arrived."""
        self.free_at = max(now, self.free_at) + size * self.seconds_per_byte
        self.carried += size
        return self.free_at + self.delay_s


@dataclass
class _Proxy:
    there: _Way
    back: _Way
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(self, port: int) -> int:
        """Listens for one server; answers the port to use."""

        async def accept(client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
            server, to_server = await asyncio.open_connection(_HOST, port)
            for source, sink, way in ((client, to_server, self.there), (server, to_client, self.back)):
                task = asyncio.create_task(_carry(source, sink, way))
                self.tasks.add(task)
                task.add_done_callback(self.tasks.discard)

        listening = await asyncio.start_server(accept, _HOST, 0)
        return int(listening.sockets[0].getsockname()[1])


async def _carry(source: asyncio.StreamReader, sink: asyncio.StreamWriter, way: _Way) -> None:
    waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_CHUNKS_MAX)
    delivering = asyncio.create_task(_deliver(waiting, sink))
    with contextlib.suppress(ConnectionError):
        while chunk := await source.read(_CHUNK_BYTES):
            await waiting.put((way.arrival(asyncio.get_running_loop().time(), len(chunk)), chunk))
    await waiting.put((0.0, b""))
    await delivering


async def _deliver(waiting: asyncio.Queue[tuple[float, bytes]], sink: asyncio.StreamWriter) -> None:
    gone = False
    while True:
        at, chunk = await waiting.get()
        if not chunk:
            break
        if gone:
            continue
        if (seconds := at - asyncio.get_running_loop().time()) > 0:
            await asyncio.sleep(seconds)
        try:
            sink.write(chunk)
            await sink.drain()
        except ConnectionError:
            gone = True
    with contextlib.suppress(ConnectionError):
        sink.close()


async def _main(megabits: float, round_trip_ms: float, ports: Sequence[int]) -> None:
    seconds_per_byte = 8e-6 / megabits if megabits else 0.0
    there, back = (_Way(seconds_per_byte, round_trip_ms / 2_000) for _ in range(2))
    proxy = _Proxy(there, back)
    print(json.dumps({"ports": {port: await proxy.serve(port) for port in ports}}), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    print(json.dumps({"sent": there.carried, "received": back.carried}), flush=True)


if __name__ == "__main__":
    asyncio.run(_main(float(sys.argv[1]), float(sys.argv[2]), [int(port) for port in sys.argv[3:]]))
