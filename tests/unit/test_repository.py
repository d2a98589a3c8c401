"""The repository keeps its own promises: sizes, pages, cases, dependencies and public names."""

from __future__ import annotations

import ast
import itertools
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
CASES = 83


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


# Code


@pytest.mark.parametrize("path", SOURCES, ids=_name)
def test_no_file_is_longer_than_400_lines_and_no_function_than_80(path: Path) -> None:
    source = _text(path)
    assert len(source.splitlines()) <= 400
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    assert [each.name for each in functions if (each.end_lineno or 0) - each.lineno >= 80] == []


def test_there_is_one_colour_of_functions() -> None:
    # An ASGI server calls the web face, so there it can't be otherwise.
    below = [path for path in SOURCES if path.parent.name != "web"]
    colours = [_name(path) for path in below if re.search(r"^\s*async def ", _text(path), re.MULTILINE)]
    assert colours == []


def test_every_public_name_exists() -> None:
    trueup = import_module("trueup")
    assert sorted(trueup.__all__) == list(trueup.__all__)
    missing = [name for name in trueup.__all__ if not hasattr(trueup, name)]
    assert missing == []


@pytest.mark.parametrize("statement", ["import trueup", "import trueup.cli.main"])
def test_start_loads_no_heavy_library(statement: str) -> None:
    heavy = "pyarrow", "duckdb", "sqlalchemy", "pydantic", "psycopg", "pymysql", "numpy", "pandas"
    program = f"import sys; {statement}; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# Cases


def _case_rows() -> dict[str, str]:
    """Status by case id, from docs/cases.md."""
    rows = re.findall(r"^\| (C\d{3}) \|.* \| ([^|]+) \|$", _text(ROOT / "docs/cases.md"), re.MULTILINE)
    assert len(dict(rows)) == len(rows)
    return dict(rows)


def _case_tests() -> dict[str, set[str]]:
    tests: dict[str, set[str]] = {}
    for path in [*(ROOT / "tests").rglob("*.py"), *(ROOT / "src/trueup/testing").rglob("*.py")]:
        for name, case in re.findall(r"^\s*def (test_(C\d{3})_\w+)", _text(path), re.MULTILINE):
            tests.setdefault(case, set()).add(name)
    return tests


def test_every_case_is_listed_with_its_tests_or_with_what_it_waits_for() -> None:
    rows = _case_rows()
    assert len(rows) == CASES
    unclear = [case for case, status in rows.items() if not re.match(r"tested: `|waits for: \w", status)]
    assert unclear == []


def test_a_case_is_listed_as_tested_exactly_if_tests_carry_its_id() -> None:
    # scripts/cases writes this column.
    listed = {
        case: set(re.findall(r"`(test_\w+)`", status))
        for case, status in _case_rows().items()
        if status.startswith("tested")
    }
    assert listed == _case_tests()


# Pages


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)[^)]*\)", _text(page))
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_every_page_can_be_reached_from_the_index() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "docs/index.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", _text(page)):
            found = (page.parent / target).resolve()
            waiting += sorted(found.glob("*.md")) if found.is_dir() else [found] if found.suffix == ".md" else []
    assert sorted(_name(page) for page in set(PAGES) - reached) == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs/adr").glob("*.md")), ids=_name)
def test_a_decision_has_its_number_four_parts_and_one_screen(page: Path) -> None:
    text = _text(page)
    assert text.startswith(f"# {int(page.name[:4])}. ")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences"]
    assert re.search(r"^Status: (accepted|superseded by \d{4})$", text, re.MULTILINE)
    assert len(text.splitlines()) <= 50


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = [int(page.name[:4]) for page in sorted((ROOT / "docs/adr").glob("*.md"))]
    assert numbers == list(range(1, len(numbers) + 1))


# Dependencies


def _declared() -> Iterator[str]:
    project = tomllib.loads(_text(ROOT / "pyproject.toml"))
    groups = [project["build-system"]["requires"], project["project"]["dependencies"]]
    for requirement in itertools.chain(*groups, *project["project"]["optional-dependencies"].values()):
        name = re.match(r"[\w.-]+", requirement)
        assert name is not None
        if name[0] != "trueup":
            yield name[0]


def test_every_dependency_has_its_reason_and_licence() -> None:
    explained = re.findall(r"^\| `([\w.-]+)` \|(?: .+ \|){2,3}$", _text(ROOT / "docs/dependencies.md"), re.MULTILINE)
    assert sorted(explained) == sorted(set(_declared()))


# CI


def test_make_and_ci_run_the_same_checks() -> None:
    ci = _text(ROOT / ".ci/run")
    assert re.search(r"make .* test lint types imports$", ci, re.MULTILINE)
    assert re.search(r"^check:\n\t@\.ci/run$", _text(ROOT / "Makefile"), re.MULTILINE)


@pytest.mark.parametrize("path", [ROOT / ".ci/run", *sorted((ROOT / "scripts").iterdir())], ids=_name)
def test_scripts_can_be_run(path: Path) -> None:
    if path.is_file():
        assert path.stat().st_mode & 0o111
        assert _text(path).startswith("#!/usr/bin/env ")
