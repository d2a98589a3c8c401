"""The code of README and docs does what the pages say."""

from __future__ import annotations

from pathlib import Path

import pytest

from pages import Reader, agrees, blocks

ROOT = Path(__file__).parents[2]
RUN = ("python", "console", "sql")
PAGES = [
    page
    for page in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
    if any(block.language in RUN for block in blocks(page))
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_reader_who_types_the_page_sees_what_it_says(page: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("TRUEUP_PROJECT", "COLUMNS", "DATABASE_URL", "ERP_FILE"):
        monkeypatch.delenv(name, raising=False)
    Reader(tmp_path, {}).read(page)


def test_the_pages_for_newcomers_are_run() -> None:
    names = {page.name for page in PAGES}
    assert {"README.md", "tutorial.md"} <= names
    assert {page.name for page in (ROOT / "docs/how-to").glob("*.md")} <= names


@pytest.mark.parametrize(
    ("expected", "printed", "answer"),
    [
        ("same 2", "same 2\n", True),
        ("same 2", "same 3\n", False),
        ("same …  missing 1", "same 3   missing 1\n", True),
        ("a\n…\nd", "a\nb\nc\nd\n", True),
        ("a\n…\nd", "a\nb\nc\n", False),
        ("run 1, cutoff 10:00:00", "run 1, cutoff 17:03:59\n", True),
        ("run 1, cutoff 10:00:00", "run 2, cutoff 17:03:59\n", False),
        ("", "error: no\n", False),
    ],
)
def test_expected_output_is_compared(expected: str, printed: str, answer: bool) -> None:
    assert agrees(expected, printed) is answer
