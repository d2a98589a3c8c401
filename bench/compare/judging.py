"""Whether an answer is right: exactly the differences that were injected, no more and no fewer."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import duckdb

from .contestants import COMMAND_LINE, LIMIT, Cell, Contestant
from .inputs import KEYS
from .measuring import Ran

_TOLD: Final = ("key", "kind", "field", "left_value", "right_value")


def judged(each: Contestant, cell: Cell, ran: Ran) -> str:
    """In words; what is right begins with `right`."""
    if ran.code is None:
        return f"stopped after {ran.figures['wall_seconds']:.0f} s"
    if each.name == LIMIT:
        return _limit(cell, ran)
    if each.name == COMMAND_LINE and ran.code in (0, 1):
        _from_json(cell.folder / "output", cell.answer, cell.made.keys)
    elif ran.code != 0:
        return f"failed: {ran.failure or f'exit code {ran.code}'}"
    if not cell.answer.exists():
        return "failed: no answer"
    return against(cell.made.truth, cell.answer)


def against(truth: Path, answer: Path) -> str:
    """Compares as much as the answer tells."""
    with duckdb.connect() as database:
        with answer.open(newline="") as file:
            header = next(csv.reader(file))
        names = [name for name in _TOLD if name in header]
        texts = "{" + ", ".join(f"'{name}': 'VARCHAR'" for name in header) + "}"
        read = f"read_csv('{answer}', auto_detect = false, header = true, columns = {texts}, quote = '\"')"
        columns = ", ".join(f"coalesce({name}::VARCHAR, '') AS {name}" for name in names)
        database.execute(f"CREATE TABLE told AS SELECT {columns} FROM {read}")
        database.execute(f"CREATE TABLE truth AS SELECT {columns} FROM '{truth}'")
        wrong = [
            database.execute(f"SELECT count(*) FROM (FROM {a} EXCEPT ALL FROM {b})").fetchall()[0][0]
            for a, b in (("truth", "told"), ("told", "truth"))
        ]
    if any(wrong):
        return f"wrong: {wrong[0]:,} not found, {wrong[1]:,} false"
    more = {"field": ", fields", "right_value": ", values"}
    return "right: keys, kinds" + "".join(text for name, text in more.items() if name in names)


def _limit(cell: Cell, ran: Ran) -> str:
    if ran.code != 0:
        return f"failed: {ran.failure}"
    if ran.told["equal"] is None:
        return "right: reads all, compares nothing"
    right = ran.told["equal"] == (cell.made.differences == 0)
    return "right: whether they agree" if right else "wrong: whether they agree"


def _from_json(output: Path, answer: Path, keys: str) -> None:
    with output.open() as file, answer.open("w", newline="") as to:
        writer = csv.writer(to)
        writer.writerow(_TOLD)
        for each in json.load(file)["differences"]:
            fields: Mapping[str, Mapping[str, Any]] = each["fields"] if each["kind"] == "differ" else {}
            values = ["+".join(str(both[side]) for both in fields.values()) for side in ("left", "right")]
            key = "|".join(str(each["key"][name]) for name in KEYS[keys].names)
            writer.writerow((key, each["kind"], "+".join(fields), *values))
