"""Runs the code of a documentation page: what a reader would type, in order, in an empty folder.

- ```python: executed; with `>>>` its answers are checked. A first line `# name.py` saves it as that file instead.
- ```toml, ```csv: saved where the first line is a comment that names a file (of a CSV file, without that line).
- ```sql: run in the SQLite database that the first line names (`-- shop.db`). It may stand in an HTML comment.
- ```console: each `$ command` is run, and what it prints is compared with what stands below it.
- ```text and everything else is only read.

In expected output `…` stands for anything on the line, a line of only `…` for any lines. Times of day,
seconds and the width of gaps are not compared.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_BLOCK = re.compile(r"^( *)```(\w+)[^\n]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"(?:#|--|//) (\S+\.\w+)\n")
_SHELL = re.compile(r"[|<>&;$`*]|<<")
_SAVED = ("python", "toml", "csv")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, text, and the line of the page where the text begins."""

    language: str
    text: str
    line: int


@dataclass(frozen=True)
class Typed:
    """A command and what the page says that it prints."""

    command: str
    expected: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page in order."""
    text = page.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        margin = len(found[1])
        body = "".join(line[margin:] for line in found[3].splitlines(keepends=True))
        yield Block(found[2], body, text.count("\n", 0, found.start(3)) + 1)


def commands(block: Block) -> Iterator[Typed]:
    """The commands of a console block; a command goes on after a backslash and inside a here-document."""
    lines = block.text.splitlines()
    at = 0
    while at < len(lines):
        assert lines[at].startswith("$ "), f"line {block.line + at}: a console block begins with a command"
        first, command = at, lines[at][2:]
        until = re.search(r"<<\s*'?(\w+)'?", command)
        at += 1
        while command.endswith("\\") or (until and not command.endswith(f"\n{until[1]}")):
            command += f"\n{lines[at]}"
            at += 1
        begin = at
        while at < len(lines) and not lines[at].startswith("$ "):
            at += 1
        yield Typed(command, "\n".join(lines[begin:at]), block.line + first)


class Reader:
    """Somebody who types a page into an empty folder. `folder` must be the working directory."""

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        self.folder = folder
        self.variables = {**os.environ, **variables, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        self.names: dict[str, Any] = {"__name__": "page"}
        self.code = 0

    def read(self, page: Path) -> None:
        """Does all that the page says; AssertionError names the line where it is not true."""
        modules, environment = set(sys.modules), dict(os.environ)
        sys.path.insert(0, str(self.folder))
        try:
            for block in blocks(page):
                self._block(block, page.name)
        finally:
            sys.path.remove(str(self.folder))
            for name in set(os.environ) - set(environment):
                del os.environ[name]
            for name in set(sys.modules) - modules:
                if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(self.folder)):
                    del sys.modules[name]

    def _block(self, block: Block, page: str) -> None:
        saved = _FILE.match(block.text)
        if block.language in _SAVED and saved:
            path = self.folder / saved[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            text = block.text[saved.end() :] if block.language == "csv" else block.text
            path.write_text(text, encoding="utf-8")
        elif block.language == "sql" and saved:
            with contextlib.closing(sqlite3.connect(self.folder / saved[1])) as db:
                db.executescript(block.text)
        elif block.language == "python":
            self._python(block, page)
        elif block.language == "console":
            for typed in commands(block):
                self._type(typed, page)

    def _python(self, block: Block, page: str) -> None:
        if ">>> " not in block.text:
            exec(compile("\n" * (block.line - 1) + block.text, page, "exec"), self.names)  # noqa: S102
            return
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        test = doctest.DocTestParser().get_doctest(block.text, self.names, page, page, block.line - 1)
        told = io.StringIO()
        runner = doctest.DocTestRunner(optionflags=flags, verbose=False)
        runner.run(test, out=told.write, clear_globs=False)
        self.names.update(test.globs)
        assert runner.failures == 0, f"{page}:\n{told.getvalue()}"

    def _type(self, typed: Typed, page: str) -> None:
        printed = self._run(typed.command)
        assert agrees(typed.expected, printed), (
            f"{page}, line {typed.line}: $ {typed.command}\nthe page says:\n{typed.expected}\nit prints:\n{printed}"
        )

    def _run(self, command: str) -> str:
        if command.startswith("export "):
            name, _, text = command.removeprefix("export ").partition("=")
            os.environ[name] = self.variables[name] = shlex.split(text)[0]
            return ""
        if command.startswith("trueup ") and not _SHELL.search(command):
            return self._trueup(shlex.split(command)[1:])
        script = f"(exit {self.code})\n{command}"
        done = subprocess.run(
            ["bash", "-c", script], check=False, cwd=self.folder, env=self.variables, capture_output=True, text=True
        )
        self.code = done.returncode
        return done.stdout + done.stderr

    def _trueup(self, arguments: list[str]) -> str:
        """The command line in this process, which is much faster than a new one."""
        from trueup.cli.main import main

        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            self.code = main(arguments, standalone=False)
        return out.getvalue() + err.getvalue()


def agrees(expected: str, printed: str) -> bool:
    """Whether the output of a command is what a page says."""
    lines = [re.escape(line).replace("…", ".*") for line in _plain(expected)]
    pattern = "".join(r"(?:.*\n)*" if line == ".*" else f"{line}\n" for line in lines)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in _plain(printed))) is not None


def _plain(text: str) -> list[str]:
    text = re.sub(r"\b\d\d:\d\d:\d\d\b", "HH:MM:SS", text)
    text = re.sub(r"\b\d+\.\d+ s\b", "N s", text)
    return [re.sub(r" {2,}", "  ", line.rstrip()) for line in text.strip("\n").splitlines()]
