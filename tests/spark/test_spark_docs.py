"""The code of docs/how-to/spark.md does what the page says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pages import blocks

PAGE = Path(__file__).parents[2] / "docs/how-to/spark.md"


def test_the_page_s_code_runs(spark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    programs = [block.text for block in blocks(PAGE) if block.language == "py"]
    assert programs
    for program in programs:
        exec(compile(program, str(PAGE), "exec"), {})  # noqa: S102  the page
    assert capsys.readouterr().out == """differ ["5"] ('total',)\nmissing ["17"] ()\n"""
