"""The command itself: help, errors, interruption, and that the reference is true."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import typer.main

from trueup.cli import main as cli
from trueup.cli.main import main
from trueup.config import FieldOptions, FileOptions, PairOptions, ProjectConfig, TableOptions, UrlOptions, load

ROOT = Path(__file__).parents[2]
TRUEUP = [sys.executable, "-c", "from trueup.cli.main import main; main()"]


def test_help_shows_the_daily_commands_first(capsys):
    """Given --help, I expect the commands of every day first, the others under More."""
    assert main(["--help"], standalone=False) == 0

    daily, more = capsys.readouterr().out.split("\nMore:\n")
    assert all(name in daily for name in ("diff", "init", "adopt", "run", "status", "explain"))
    assert all(name in more for name in ("retry", "doctor", "demo"))


def test_help_without_arguments(capsys):
    """Given nothing, I expect the help."""
    assert main([], standalone=False) == 0
    assert "Usage" in capsys.readouterr().out


def test_version(capsys):
    """Given --version, I expect the version."""
    assert main(["--version"], standalone=False) == 0
    assert re.fullmatch(r"trueup \d+\.\d+\.\d+\n", capsys.readouterr().out)


def test_help_loads_nothing_heavy():
    """Given --help, I expect none of the libraries that cost a second to load."""
    code = (
        "import sys; from trueup.cli.main import main; main(['--help'], standalone=False);"
        "print([name for name in ('pyarrow', 'duckdb', 'sqlalchemy', 'pydantic', 'structlog') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] == "[]"


def test_unknown_commands_are_named(capsys):
    """Given a command that does not exist, I expect it named, the help to ask for, and exit code 2."""
    assert main(["dif"], standalone=False) == 2
    assert capsys.readouterr().err.startswith("error: No such command 'dif'")


def test_a_bug_is_one_line_without_values(capsys, monkeypatch):
    """Given an unexpected exception, I expect one line with its type but no values; the traceback on demand."""

    def broken(*arguments: Any, **options: Any) -> None:
        raise RuntimeError("secret value")

    monkeypatch.setattr(cli, "app", broken)
    monkeypatch.delenv("TRUEUP_TRACEBACK", raising=False)
    assert main(["status"], standalone=False) == 2
    err = capsys.readouterr().err
    assert "this is a bug in trueup: RuntimeError" in err
    assert "secret value" not in err
    assert "Traceback" not in err

    monkeypatch.setenv("TRUEUP_TRACEBACK", "1")
    assert main(["status"], standalone=False) == 2
    assert "Traceback" in capsys.readouterr().err


def _reading(spill: Path) -> bool:
    """Whether records were already kept there: the comparison is under way, not merely about to begin."""
    with contextlib.suppress(FileNotFoundError):
        return any(path.is_file() and path.stat().st_size > 2**20 for path in spill.rglob("*"))
    return False


def test_interruption_is_clean(tmp_path):
    """Given Ctrl-C in the middle of a comparison, I expect exit code 130, one line, and no files left."""
    rows = "".join(f"{number},{number % 7}\n" for number in range(2_000_000))
    (tmp_path / "a.csv").write_text("id,x\n" + rows, "utf-8")
    spill = tmp_path / "spill"
    spill.mkdir()
    process = subprocess.Popen(
        [*TRUEUP, "diff", "a.csv", "a.csv", "--key", "id"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(spill)},
        # A shell that runs the tests in the background has them ignore Ctrl-C, and so would the program.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  it only sets a handler
    )  # fmt: skip
    deadline = time.monotonic() + 30
    while not _reading(spill) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)

    assert process.returncode == 130
    assert (out, err) == ("", "error: interrupted.\n")
    assert list(spill.iterdir()) == []


def test_a_reader_that_goes_away_is_no_error(tmp_path):
    """Given `| head`, I expect no complaint."""
    (tmp_path / "a.csv").write_text("id,x\n" + "".join(f"{number},a\n" for number in range(50_000)), "utf-8")
    (tmp_path / "b.csv").write_text("id,x\n", "utf-8")
    command = " ".join(f"'{part}'" for part in [*TRUEUP, "diff", "a.csv", "b.csv", "--key", "id", "--limit", "0"])
    found = subprocess.run(
        ["sh", "-c", f"{command} | head -2"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert len(found.stdout.splitlines()) == 2
    assert found.stderr == ""


def test_the_reference_is_current():
    """Given the program as it is, I expect docs/reference to say the same."""
    found = subprocess.run(
        [sys.executable, "scripts/reference", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr


def parameters() -> list[Any]:
    group: Any = typer.main.get_command(cli.app)
    found = [pytest.param("trueup", each, id=f"trueup {each.name}") for each in group.params]
    commands = dict(group.commands)
    for name, command in group.commands.items():
        commands |= {f"{name} {inner}": each for inner, each in getattr(command, "commands", {}).items()}
    for name, command in commands.items():
        found += [pytest.param(name, each, id=f"{name} {each.name}") for each in command.params]
    return found


@pytest.mark.parametrize(("command", "parameter"), parameters())
def test_every_option_is_documented(command, parameter):
    """Given a command and an option, I expect a sentence in the help and the option in the reference."""
    title = "trueup" if command == "trueup" else f"trueup {command}"
    page = (ROOT / "docs" / "reference" / "cli.md").read_text("utf-8")
    section = page.split(f"\n## {title}\n")[1].split("\n## ")[0]
    names = parameter.opts if parameter.param_type_name == "option" else [parameter.metavar]

    assert (parameter.help or "").strip().endswith((".", "…", "'."))
    assert all(name in section for name in names)


@pytest.mark.parametrize("model", [ProjectConfig, PairOptions, TableOptions, FileOptions, FieldOptions, UrlOptions])
def test_every_option_of_the_toml_is_documented(model):
    """Given an option of trueup.toml, I expect a sentence about it, in the reference too."""
    page = (ROOT / "docs" / "reference" / "config.md").read_text("utf-8")

    for name, field in model.model_fields.items():
        assert (field.description or "").endswith(".")
        assert f"| `{name}` | {field.description}" in page


def test_the_toml_of_the_reference_is_valid(tmp_path):
    """Given the example in the reference, I expect it to load."""
    page = (ROOT / "docs" / "reference" / "config.md").read_text("utf-8")
    (tmp_path / "trueup.toml").write_text(page.split("```toml\n")[1].split("```")[0], "utf-8")

    assert list(load(tmp_path / "trueup.toml", {"SHOP_PASSWORD": "x"}).pair) == ["orders"]


def test_diff_loads_no_pandas(tmp_path):
    """Given pandas where Arrow would find it, I expect `trueup diff` to leave it alone: it needs none of it."""
    (tmp_path / "pandas.py").write_text("raise SystemExit('pandas was loaded')", "utf-8")
    (tmp_path / "a.csv").write_text("id,x,at\n1,a,2026-01-01\n2,b,\n", "utf-8")
    (tmp_path / "b.csv").write_text("id,x,at\n1,a,2026-01-01\n2,c,\n", "utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    found = subprocess.run(
        [*TRUEUP, "diff", "a.csv", "b.csv", "--key", "id", "--type", "at=date", "--json"],
        cwd=tmp_path, capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip

    assert (found.returncode, found.stderr) == (1, "")
    assert json.loads(found.stdout)["counts"]["differ"] == 1
