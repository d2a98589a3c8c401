"""Who takes part, where, and by which command."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from _common import environment, releases

from .inputs import FIELDS, KEYS, Input
from .places import PAIRS, TABLE, Place

_PROGRAMS: Final = Path(__file__).parents[1] / "contestants"
_SERVERS: Final = ("postgres-postgres", "postgres-mariadb")
_FILES: Final = ("parquet-parquet",)
TRUEUP: Final = "trueup"
COMMAND_LINE: Final = "trueup diff"
LIMIT: Final = "limit"
PAST: Final = "trueup past the cursor"
STREAMED: Final = "key and hash of all"
STRATEGIES: Final = ("segments", "keyhash", "sketch", "rows")


@cache
def own() -> str:
    """The Python of an environment with trueup as it is here, and what it depends on: no more than users have."""
    return environment("trueup[postgres,mysql]", folder=Path(__file__).parents[2]) or sys.executable


@dataclass(frozen=True)
class Contestant:
    """A program of `contestants/`; the command line of trueup has none. pairs: where it can take part.

    scenarios: all where None. asked: takes part only where it is named, or asked for by an option.
    """

    name: str
    program: str = ""
    python: str = field(default_factory=own)
    pairs: Sequence[str] = PAIRS
    scenarios: Sequence[str] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    asked: bool = False

    def plays(self, pair: str, scenario: str) -> bool:
        """Whether it takes part in this cell."""
        return pair in self.pairs and (scenario != "touched" if self.scenarios is None else scenario in self.scenarios)


@dataclass(frozen=True)
class Cell:
    """One comparison: where, and of what.

    since: in scenario *touched*, when that began. state: the URL of a store that knows what
    both sides agreed on before.
    """

    pair: str
    made: Input
    places: tuple[Place, Place]
    folder: Path
    memory_mb: int
    since: str | None = None
    state: str | None = None

    @property
    def answer(self) -> Path:
        """Where a contestant writes what it found."""
        return self.folder / "answer.csv"

    def command(self, each: Contestant) -> Callable[[Mapping[int, int]], Sequence[str]]:
        """From the ports of a link to what is run."""
        return lambda ports: self._program(each, ports) if each.program else self._command_line(each, ports)

    def _command_line(self, each: Contestant, ports: Mapping[int, int]) -> Sequence[str]:
        names = [side.behind(ports) for side in self.places]
        if self.pair not in _FILES:
            names = [f"{name}#{TABLE}" for name in names]
        since = () if self.since is None else ("--where", f"updated_at >= '{self.since}'")
        key = ",".join(KEYS[self.made.keys].names)
        return (
            str(Path(each.python).with_name("trueup")), "diff", *names, "--key", key, "--limit", "0", "--json",
            "--memory", f"{self.memory_mb}MB", *since,
        )  # fmt: skip

    def _program(self, each: Contestant, ports: Mapping[int, int]) -> Sequence[str]:
        job = self.folder / "job.json"
        left, right = ({"kind": side.kind, "url": side.behind(ports)} for side in self.places)
        told = {
            "left": left, "right": right, "table": TABLE, "key": KEYS[self.made.keys].names, "fields": list(FIELDS),
            "since": self.since, "memory_mb": self.memory_mb, "answer": str(self.answer),
            "options": {**each.options, **({"state": self.state} if each.name == PAST else {})},
        }  # fmt: skip
        job.write_text(json.dumps(told))
        return (each.python, str(_PROGRAMS / f"{each.program}.py"), str(job))

    def adopt(self, state: str) -> Cell:
        """Lets a pair learn what both sides agree on; answers the cell with the store that knows."""
        cell = replace(self, state=state)
        program = cell._program(Contestant(PAST, "compare_past", options={"adopt": True}), {})
        subprocess.run(program, check=True, stdout=subprocess.DEVNULL)
        return cell


def contestants(named: Sequence[str], strategies: Sequence[str]) -> list[Contestant]:
    """Those that can be had here, or of them those that are named. strategies: that trueup is also forced to."""
    windowed = ("identical", "hundred", "percent", "block", "touched")
    found = [
        Contestant(LIMIT, "compare_limit", scenarios=windowed),
        Contestant(TRUEUP, "compare_trueup", scenarios=windowed),
        Contestant(f"{TRUEUP}, confirmed", "compare_trueup", options={"confirm": True}),
        Contestant(COMMAND_LINE, scenarios=windowed),
        Contestant(PAST, "compare_past", pairs=("postgres-postgres",), scenarios=("touched",)),
        Contestant("DuckDB outer join", "compare_duckdb", pairs=_FILES, options={"columns": "all"}),
        Contestant("DuckDB join of key and hash", "compare_duckdb", pairs=_FILES, options={"columns": "hash"}),
    ]
    found += [
        Contestant(f"{TRUEUP}, {name}", "compare_trueup", options={"strategy": name}, asked=name not in strategies)
        for name in STRATEGIES
    ]
    found += _peers(named, windowed)
    unknown = sorted(set(named) - {each.name for each in found})
    if unknown:
        known = ", ".join(each.name for each in found)
        raise SystemExit(f"--only names nobody here: {', '.join(unknown)}. Contestants: {known}")
    return [each for each in found if (each.name in named if named else not each.asked)]


# Name, what its environment is given, what it is asked, and where it takes part.
_PEERS: Final = (
    ("reladiff", ("reladiff", "psycopg2-binary", "mysql-connector-python"), "compare_segmented", _SERVERS),
    (
        "data-diff", ("collate-data-diff", "dbt-core<1.10", "psycopg2-binary", "mysql-connector-python"),
        "compare_segmented", _SERVERS,
    ),
    ("datacompy (Polars)", ("datacompy", "polars", "connectorx", "pyarrow"), "compare_datacompy", PAIRS),
    (STREAMED, ("adbc-driver-postgresql", "duckdb", "pyarrow"), "compare_streamed", ("postgres-postgres",)),
)  # fmt: skip
_OPTIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    # Without this it sorts its answer, and gives up where a null meets a value.
    "reladiff": {"module": "reladiff", "skip_sort_results": True},
    "data-diff": {"module": "data_diff"},
}


def _peers(named: Sequence[str], scenarios: Sequence[str]) -> list[Contestant]:
    found = []
    for name, packages, program, pairs in _PEERS:
        if name not in named if named else name == STREAMED:
            continue
        python = environment(*packages)
        if python is not None:
            found.append(Contestant(name, program, python, pairs, scenarios, _OPTIONS.get(name, {})))
    return found


def versions(found: Sequence[Contestant]) -> dict[str, str]:
    """Releases of the peers."""
    told: dict[str, str] = {}
    for name, packages, _, _ in _PEERS:
        for each in found:
            if each.name == name:
                told |= releases(each.python, *(package.partition("<")[0] for package in packages))
    return told
