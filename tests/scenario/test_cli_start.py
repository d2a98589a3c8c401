"""What a command loads before it answers: a time would differ by machine, the modules that cost it do not."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Final

import pytest

# Why a command that only has to print its help, or to read two small files, is not to wait for it.
HELP_NEEDS_NO: Final = {
    "duckdb": "joins records",
    "numpy": "comes with Arrow",
    "pyarrow": "reads records",
    "rich": "draws what `trueup worker` and `trueup demo` show; help is plain",
    "sqlalchemy": "speaks to databases",
    "structlog": "logs, where logs are wanted",
    "trueup.bound": "makes pairs work",
    "trueup.config": "reads trueup.toml",
    "trueup.engine": "runs pairs",
    "trueup.model.canonical": "reads values",
    "trueup.ports": "is what the engine asks of the world",
    "typer.rich_utils": "draws boxes around help",
}
FILES_NEED_NO: Final = {
    "apprise": "tells people about pairs",
    "httpx2": "calls APIs",
    "pandas": "comes with Arrow where it is installed; nothing of a comparison needs it",
    "psycopg": "speaks to PostgreSQL",
    "pymysql": "speaks to MariaDB",
    "rich": "draws what `trueup worker` and `trueup demo` show",
    "sqlalchemy": "speaks to databases",
    "starlette": "takes webhooks",
    "structlog": "logs, where logs are wanted",
    "trueup.bound": "makes pairs work",
    "trueup.config": "reads trueup.toml",
    "trueup.engine": "runs pairs",
    "trueup.project": "holds pairs",
    "trueup.sides.http": "calls APIs",
    "trueup.sides.sql": "speaks to databases",
    "trueup.stores": "keeps the state of pairs",
}
PROGRAM: Final = """
import json, sys
from trueup.cli.main import main
try:
    main(sys.argv[1:])
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def loaded(*arguments: str, code: int) -> set[str]:
    """The modules in a fresh process after this command."""
    found = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=False)
    assert found.returncode == code, found.stderr
    return set(json.loads(found.stderr.splitlines()[-1]))


@pytest.mark.parametrize("command", [("--help",), ("diff", "--help"), ("review", "show", "--help")], ids=" ".join)
def test_help_loads_nothing_that_it_does_not_need(command):
    """Given --help, I expect none of the modules that only work needs."""
    modules = loaded(*command, code=0)
    assert "typer" in modules
    assert {name: why for name, why in HELP_NEEDS_NO.items() if name in modules} == {}


def test_a_diff_of_two_files_loads_nothing_that_it_does_not_need(tmp_path):
    """Given two small CSV files that differ, I expect none of the modules that databases, pairs and servers need."""
    (tmp_path / "a.csv").write_text("id,city\n1,Rome\n2,Oslo\n")
    (tmp_path / "b.csv").write_text("id,city\n1,Rome\n2,Bern\n")
    modules = loaded("diff", str(tmp_path / "a.csv"), str(tmp_path / "b.csv"), "--key", "id", code=1)
    assert "pyarrow" in modules
    assert {name: why for name, why in FILES_NEED_NO.items() if name in modules} == {}


def test_help_stands_in_sections(capsys):
    """Given help of a command with many options, I expect them in sections, those that all commands have last."""
    from trueup.cli.main import main

    assert main(["diff", "--help"], standalone=False) == 0
    lines = capsys.readouterr().out.splitlines()
    sections = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert sections == [
        "Arguments:", "What is compared:", "How values are judged:", "Files:", "Databases:", "Output:", "Options:",
    ]  # fmt: skip
    assert any(line.split()[:3] == ["-k,", "--key", "NAME"] for line in lines)
    assert not any(set(line) & set("│╭╰") for line in lines)
