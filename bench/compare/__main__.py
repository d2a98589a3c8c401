"""Compares with every contestant and prints a table for each cell: `python -m bench.compare`."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from _common import load
from _servers import services

from . import telling
from .contestants import LIMIT, PAST, STRATEGIES, Cell, Contestant, contestants, versions
from .inputs import KEYS, SCENARIOS, SEED, made
from .judging import judged
from .link import Link
from .measuring import run
from .places import PAIRS, Place, fill, opened, settle, touch
from .small import small

# Above it only what is asked of big tables: PostgreSQL with integer keys, and files.
MATRIX_ROWS_MAX: Final = 1_000_000


def main() -> None:
    """Plays all cells that are asked for, and writes each as it is measured."""
    options = _options()
    with _folder(options.folder) as folder:
        if options.small:
            small(folder)
            return
        chosen = contestants(options.only or (), options.strategies)
        peers, session = versions(chosen), f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        for pair in options.pairs:
            for keys in options.keys:
                for cell in _cells(pair, keys, folder, options):
                    playing = [each for each in chosen if each.plays(pair, cell.made.scenario)]
                    if playing:
                        _play(cell, playing, peers, session, options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--rows", type=int, default=MATRIX_ROWS_MAX, help="records a side")
    parser.add_argument("--pairs", nargs="*", choices=PAIRS, help="where the two sides are")
    parser.add_argument("--keys", nargs="*", choices=list(KEYS))
    parser.add_argument("--scenarios", nargs="*", choices=SCENARIOS, default=SCENARIOS)
    parser.add_argument("--only", nargs="*", metavar="NAME", help="only these contestants")
    parser.add_argument("--strategies", nargs="*", choices=STRATEGIES, default=(), help="force trueup to these as well")
    parser.add_argument("--runs", type=int, default=1, help="of each contestant; medians are reported")
    parser.add_argument("--link", type=Link.parse, metavar="MBIT:MS", help="a link of that rate, and that round trip")
    parser.add_argument("--memory-mb", type=int, default=512, help="for those that can be told (trueup's default)")
    parser.add_argument("--seconds-max", type=float, default=600, help="a contestant is stopped after this long")
    parser.add_argument("--folder", type=Path, help="keep the files here and use them again")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--small", action="store_true", help="only help, and two small files, on the command line")
    found = parser.parse_args()
    big = found.rows > MATRIX_ROWS_MAX
    found.pairs = found.pairs or (["postgres-postgres", "parquet-parquet"] if big else PAIRS)
    found.keys = found.keys or (["integer"] if big else list(KEYS))
    return found


@contextmanager
def _folder(kept: Path | None) -> Iterator[Path]:
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept.absolute()
        return
    # Beside the data of the servers, so that all of them wait for the same disk.
    with tempfile.TemporaryDirectory(prefix="trueup-bench-", dir=services().home().parent) as name:
        yield Path(name)


# Cells.


def _cells(pair: str, keys: str, folder: Path, options: argparse.Namespace) -> Iterator[Cell]:
    """One for each scenario; each is over when the next is asked for."""
    with opened(pair, folder) as places:
        left: Place | None = None
        for scenario in sorted(options.scenarios, key=SCENARIOS.index):
            if scenario == "touched" and (pair != "postgres-postgres" or options.link):
                continue
            files = made(folder, options.rows, keys, scenario, options.seed)
            left = left or _filled(places[0], files.left, keys)
            both = (left, _filled(places[1], files.right, keys))
            cell = Cell(pair, files, both, folder, options.memory_mb)
            yield _touched(cell, options) if scenario == "touched" else cell


def _filled(place: Place, source: Path, keys: str) -> Place:
    print(f"{place.kind}: {source.name} …", file=sys.stderr, flush=True)
    filled = fill(place, source, keys)
    settle(filled)
    return filled


def _touched(cell: Cell, options: argparse.Namespace) -> Cell:
    """Both sides once agreed, and a pair has learned that; then they were touched."""
    if not options.only or PAST in options.only:
        state = cell.folder / "state.db"
        for each in cell.folder.glob("state.db*"):
            each.unlink()
        print("adopting …", file=sys.stderr, flush=True)
        cell = cell.adopt(f"sqlite:///{state}")
    since = touch(cell.places, cell.made)
    for place in cell.places:
        settle(place)
    return replace(cell, since=f"{since:%Y-%m-%d %H:%M:%S.%f}")


def _play(
    cell: Cell, playing: list[Contestant], peers: dict[str, str], session: str, options: argparse.Namespace
) -> None:
    told: dict[str, Any] = {
        "pair": cell.pair, "keys": cell.made.keys, "scenario": cell.made.scenario,
        "link": None if options.link is None else str(options.link),
        "differences": cell.made.differences, "seed": options.seed, "memory_limit_mb": cell.memory_mb, "peers": peers,
    }  # fmt: skip
    # Both sides are read once before, so that nobody is the first to wait for the disk.
    run(cell.command(Contestant(LIMIT, "compare_limit")), cell.places, cell.folder, None, options.seconds_max)
    runs: dict[str, list[dict[str, Any]]] = {each.name: [] for each in playing}
    for at in range(options.runs):
        for each in playing[at % len(playing) :] + playing[: at % len(playing)]:
            print(f"{telling.title(told)}: run {at + 1}, {each.name} …", file=sys.stderr, flush=True)
            runs[each.name].append(_once(each, cell, options))
    found = telling.with_ratios({name: telling.summed(several, session) for name, several in runs.items()})
    telling.show(f"{options.rows:,} records a side: {telling.title(told)}", found)
    path = telling.merged(options.rows, told, found)
    print(f"Written to bench/results/{path.name}.", flush=True)


def _once(each: Contestant, cell: Cell, options: argparse.Namespace) -> dict[str, Any]:
    cell.answer.unlink(missing_ok=True)
    shutil.rmtree(cell.folder / "spill", ignore_errors=True)
    ran = run(cell.command(each), cell.places, cell.folder, options.link, options.seconds_max)
    seconds = ran.told.get("seconds", ran.figures["wall_seconds"])
    return {"seconds": seconds, **ran.figures, "answer": judged(each, cell, ran), "told": ran.told}


if __name__ == "__main__":
    print(f"Load of the machine: {load()}.")
    main()
