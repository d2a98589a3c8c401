"""Plays the month and prints what came of it: `python -m bench.month`."""

from __future__ import annotations

import argparse
import json
import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from _common import load, machine
from _servers import empty_store

from .databases import Places, on_postgres, on_sqlite
from .life import Plan
from .overhead import overhead, said
from .play import Month
from .referee import MUST_BE_NOTHING

CPU: Final = "seconds of processor time of the process that plays; medians of three, taken by turns"
LABEL: Final = "virtual time; real databases as state and as sides"


def main() -> None:
    """Plays, prints a table, and writes the figures where they are asked for."""
    asked = _arguments()
    # Months of trouble pass in minutes; the referee counts what came of it.
    logging.getLogger("trueup").setLevel(logging.ERROR)
    if asked.overhead:
        _overhead(asked)
        return
    found: dict[str, Any] = {
        "what": "the month", "time": LABEL, "machine": machine("sqlalchemy", "psycopg", "duckdb"), "load": [load()],
        "months": [],
    }  # fmt: skip
    for kind in asked.on:
        with places_on(kind) as places:
            month = Month(_plan(asked), places, asked.seed, evidence=not asked.without_evidence)
            figures = month.play()
            if asked.page is not None:
                asked.page.write_text(month.page, encoding="utf-8")
        found["months"].append(figures)
        found["load"][1:] = [load()]
        print("\n".join(table(figures)), flush=True)
        if asked.output is not None:
            asked.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _overhead(asked: argparse.Namespace) -> None:
    """Says what evidence costs, and writes it where figures are asked for."""
    found: dict[str, Any] = {
        "what": "the month with evidence and without", "time": CPU, "machine": machine("sqlalchemy", "psycopg"),
        "load": [load()], "months": [],
    }  # fmt: skip
    for kind in asked.on:
        found["months"].append(overhead(_plan(asked), partial(places_on, kind), asked.seed))
        found["load"][1:] = [load()]
        print("\n".join(said(found["months"][-1])), flush=True)
        if asked.output is not None:
            asked.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _plan(asked: argparse.Namespace) -> Plan:
    return Plan(orders=asked.orders, days=asked.days, tick_s=asked.tick)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.month", description=__doc__)
    parser.add_argument("--orders", type=int, default=2_000, help="new ones a day")
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--tick", type=float, default=1_800.0, help="seconds between two lots of orders")
    parser.add_argument("--on", nargs="+", choices=("sqlite", "postgres"), default=["sqlite", "postgres"])
    parser.add_argument("--seed", type=int, default=20130101)
    parser.add_argument("--without-evidence", action="store_true", help="put nothing on record, to see what it costs")
    parser.add_argument(
        "--overhead", action="store_true", help="say what evidence costs: three months with and without"
    )
    parser.add_argument("--page", type=Path, help="where the auditor's page of the last month goes")
    parser.add_argument("--output", type=Path, help="where figures go, such as results/month.json")
    return parser.parse_args()


@contextmanager
def places_on(kind: str) -> Iterator[Places]:
    """New databases. Files lie in memory where there is such a place: the disk is not what is measured."""
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108
    if kind == "sqlite":
        with tempfile.TemporaryDirectory(prefix="trueup-month-", dir=memory) as folder:
            places = on_sqlite(Path(folder))
            yield places
            places.close()
        return
    with empty_store("postgres") as url:
        places = on_postgres(url)
        yield places
        places.close()


def table(month: dict[str, Any]) -> Iterator[str]:
    """The figures for people."""
    judgement = dict(month["judgement"])
    yield ""
    yield (
        f"{month['databases']}: {month['orders_a_day']:,} orders a day for {month['days']} days, seed {month['seed']}; "
        f"{month['took_s']:,} s, {month['peak_mib']:,} MiB at most"
    )
    for name in ("evidence", "happened", "incidents", "jobs", "counts", "calls", "cases", "cases_open", "decisions"):
        yield f"  {name.replace('_', ' ')}: {_told(month[name])}"
    wrong = {name: judgement.pop(name) for name in MUST_BE_NOTHING}
    yield f"  at the end: {_told(judgement)}"
    yield f"  must be nothing: {_told(wrong)}"


def _told(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_told(each)}" for name, each in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value)


if __name__ == "__main__":
    main()
