"""Pages that list something list all of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import get_args, get_type_hints

import typer.main

from trueup import errors
from trueup.cli.main import app
from trueup.model.change import Outcome
from trueup.model.drift import DEFAULT_VERDICTS, REPAIRABLE, Drift, Verdict
from trueup.model.row import Finish

ROOT = Path(__file__).parents[2]


def _page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def _spans(text: str) -> set[str]:
    return set(re.findall(r"`([^`\n]+)`", text))


# Guarantees


def _tests() -> set[str]:
    sources = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "src/trueup/testing").rglob("*.py")]
    return {name for path in sources for name in re.findall(r"def (test_\w+)", path.read_text(encoding="utf-8"))}


def test_every_guarantee_names_tests_that_exist() -> None:
    rows = [line for line in _page("concepts/guarantees.md").splitlines() if line.startswith("| ")]
    promises = [row for row in rows if not re.match(r"\| (promise|the replica|the accident|what is lost) \|", row)]
    assert len(promises) > 20
    assert [row for row in promises if "`test_" not in row] == []
    named = {name for name in _spans(_page("concepts/guarantees.md")) if name.startswith("test_")}
    assert named - _tests() == set()


def test_readme_promises_in_the_words_of_the_ledger_page() -> None:
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## What is promised\n")[2]
    said = re.findall(r"^- ((?:always|replica)\b.*?);$", section, re.MULTILINE | re.DOTALL)
    ledger = " ".join(_page("concepts/ledger.md").split())
    assert len(said) == 3
    assert [each for each in said if " ".join(each.split()) not in ledger] == []


# Who moved


def test_the_table_of_who_moved_has_every_drift_with_its_verdict() -> None:
    table = re.findall(r"^\|(?:[^|]*\|){3} `(\w+)`[^|]*\| (\w+) \|$", _page("concepts/who-moved.md"), re.MULTILINE)
    assert {Drift(drift): Verdict(verdict) for drift, verdict in table} == DEFAULT_VERDICTS
    never = re.findall(r"- ([^\n]*) are never repaired by a rule", _page("concepts/who-moved.md"))
    assert {Drift(name) for name in _spans(never[0])} == set(Drift) - REPAIRABLE


# Counts


def _count_names() -> Iterator[str]:
    """Names that the engine uses as `counts[…]`; an f-string gives each value that it can take."""
    values = {"outcome": list(Outcome), "phase": ["unsynced", "changed"], "result": _results()}
    for path in (ROOT / "src/trueup/engine").glob("*.py"):
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Subscript) and ast.unparse(node.value).split(".")[-1] == "counts":
                yield from _possible(node.slice, values)
            elif isinstance(node, ast.DictComp) and "jobs_" in ast.unparse(node.key):
                yield from _possible(node.key, values)


def _results() -> list[str]:
    return list(get_args(get_type_hints(Finish)["result"]))


def _possible(node: ast.expr, values: dict[str, list[str]]) -> Iterator[str]:
    if isinstance(node, ast.Constant):
        yield str(node.value)
    elif isinstance(node, ast.JoinedStr):
        parts = [
            [str(each.value)] if isinstance(each, ast.Constant) else _values(ast.unparse(each), values)
            for each in node.values
        ]
        yield from ("".join(each) for each in product(*parts))


def _values(expression: str, values: dict[str, list[str]]) -> list[str]:
    if "drift" in expression:
        return list(Drift)
    return next(list(each) for name, each in values.items() if name in expression)


def test_every_count_of_a_run_is_documented() -> None:
    documented: set[str] = set()
    for name in _spans(_page("reference/counts.md")):
        documented |= {name.replace("<outcome>", each) for each in Outcome}
        documented |= {name.replace("<drift>", each) for each in Drift}
    used = set(_count_names())
    assert {"wanted", "changed_stale", "drift_behind", "jobs_done", "cases"} <= used
    assert used - documented == set()
    assert {f"jobs_{each}" for each in _results()} <= documented
    assert set(Verdict) | {"missing", "extra", "differ", "duplicate", "left", "right", "same"} <= documented


# Errors and exit codes


def _tree(kind: type) -> set[str]:
    return {kind.__name__}.union(*(_tree(each) for each in kind.__subclasses__() if each.__module__ == kind.__module__))


def test_every_error_is_documented_with_a_hint() -> None:
    page = _page("reference/errors.md")
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| ([^|]+) \|$", page, re.MULTILINE))
    assert set(rows) == _tree(errors.TrueupError)
    assert all(hint.endswith((".", "?")) for hint in rows.values())
    drawn = set(re.findall(r"\b[A-Z]\w+", page.partition("```text\n")[2].partition("```")[0]))
    assert drawn == set(rows)


def test_every_command_has_its_exit_codes() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    rows = re.findall(r"^\| `(\w+)` \|", _page("reference/exit-codes.md"), re.MULTILINE)
    assert sorted(rows) == sorted(commands)
