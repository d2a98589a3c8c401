"""What `trueup diff` writes beside its answer: differences for programs, and statements for a person to read."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from glob import glob
from typing import TYPE_CHECKING, BinaryIO, Final, TypeGuard

from trueup.cli.terminal import counted
from trueup.errors import ConfigError, did_you_mean
from trueup.locations import FileLocation, hide_password, parse_location

if TYPE_CHECKING:
    from trueup.cli.question import Answer
    from trueup.compare.outputs import Format
    from trueup.compare.repairs import Script
    from trueup.ports import ScriptableSide, Side

STDOUT: Final = "-"
_MARK: Final = "output="
_STREAMED: Final = ("jsonl", "csv")
_PATH: Final = re.compile(r"\A\w+:///")


@dataclass(frozen=True, slots=True)
class Written:
    """What is to be written. files: paths and formats. script: where statements go. `-` is standard output."""

    files: tuple[tuple[str, Format], ...] = ()
    script: str | None = None

    @property
    def to_stdout(self) -> bool:
        """Whether standard output belongs to one of them."""
        return STDOUT in (self.script, *(path for path, _ in self.files))


def asked(
    output: Sequence[str],
    script: str | None,
    streamed: str | None,
    sides: Sequence[str],
    *,
    talks: bool,
    page: str | None = None,
    hidden: Sequence[str] = (),
) -> Written:
    """What the options say, checked before anything is read.

    streamed: the format of what goes to standard output. sides: what is compared, none of which may be overwritten.
    talks: standard output is asked for something else as well. page: a file that is written too. hidden: columns whose
    values must not be shown.
    """
    if script is not None and hidden:
        # Statements find and change records by their values.
        hint = "Leave out one of them."
        raise ConfigError(f"--emit-sql would write values of {', '.join(hidden)}, which --redact hides.", hint=hint)
    from trueup.compare.target import check_target  # noqa: PLC0415

    if page is not None:
        check_target(page, [side.partition("#")[0] for side in sides])
    if not output and script is None and streamed is None:
        return Written()
    from trueup.compare.outputs import format_of  # noqa: PLC0415  loads Arrow

    paths = [*output, *([] if script is None else [script])]
    for at, path in enumerate(paths):
        if path in paths[:at]:
            raise ConfigError(f"{path} is named twice as output.", hint="Each output needs a place of its own.")
        if path != STDOUT:
            check_target(path, [each for side in sides for each in _files(side)])
    if STDOUT in paths and talks:
        raise ConfigError("standard output is asked for two things.", hint="Write one of them to a file.")
    if streamed is not None and STDOUT not in output:
        raise ConfigError(f"--format {_MARK}{streamed} needs --output -.", hint="The suffix of a file says its format.")
    if script is not None and isinstance(parse_location(sides[1], format="csv"), FileLocation):
        raise _not_repaired(sides[1], "a file")
    files = [(path, _streamed(streamed) if path == STDOUT else format_of(path)) for path in output]
    return Written(tuple(files), script)


def _files(location: str) -> list[str]:
    """The files that a location means, as far as it means files."""
    path = _PATH.sub("", location.partition("#")[0])
    return [path, *glob(path)]  # noqa: PTH207  takes absolute patterns


def _not_repaired(label: str, what: str) -> ConfigError:
    hint = "The right side must be a table of a database. For a program: --output differences.jsonl."
    return ConfigError(f"--emit-sql: {label} is {what}, and no SQL can repair that.", hint=hint)


def parted(given: Sequence[str]) -> tuple[list[str], str | None]:
    """`--format` of the sides, and that of standard output: `output=csv`."""
    own = [text.removeprefix(_MARK) for text in given if text.startswith(_MARK)]
    if len(own) > 1:
        raise ConfigError(f"--format {_MARK} is given twice.", hint="Keep one of them.")
    return [text for text in given if not text.startswith(_MARK)], own[0] if own else None


def _streamed(name: str | None) -> Format:
    from trueup.compare.outputs import Format  # noqa: PLC0415

    match name:
        case None | "jsonl":
            return Format("jsonl")
        case "csv":
            return Format("csv")
    hint = did_you_mean(name, _STREAMED, "Formats")
    raise ConfigError(f"standard output can't be written as {name}.", hint=hint)


def write(wanted: Written, answer: Answer, sides: Sequence[str]) -> None:
    """Writes all of it. sides: both locations as they were typed."""
    from trueup.compare.outputs import stream_differences  # noqa: PLC0415

    # First, since it may be refused.
    script = None if wanted.script is None else _script(answer, sides)
    for path, chosen in wanted.files:
        with _opened(path) as file:
            stream_differences(answer.comparison, answer.plan, file, chosen)
    if script is None or wanted.script is None:
        return
    with _opened(wanted.script) as file:
        for line in script.lines():
            file.write(line.encode("utf-8", "backslashreplace") + b"\n")
    if script.left_out:
        left_out = counted(script.left_out, "record")
        print(f"The statements leave out {left_out}; comments among them say why.", file=sys.stderr)


def _script(answer: Answer, sides: Sequence[str]) -> Script:
    from trueup import __version__  # noqa: PLC0415
    from trueup.compare.repairs import Script  # noqa: PLC0415
    from trueup.engine.clock import SystemClock  # noqa: PLC0415

    replica = answer.right_side
    if replica is None or not _scriptable(replica):
        raise _not_repaired(answer.right.label, answer.right.system)
    told = [
        f"{hide_password(text)} ({side.system}, {counted(rows, 'row')})"
        for text, side, rows in zip(
            sides,
            (answer.left, answer.right),
            (answer.comparison.counts.left, answer.comparison.counts.right),
            strict=True,
        )
    ]
    return Script(
        answer.comparison, answer.plan, replica, told[0], told[1], f"trueup {__version__}", SystemClock().now_us()
    )


def _scriptable(side: Side) -> TypeGuard[ScriptableSide]:
    from trueup.ports import ScriptableSide, provides  # noqa: PLC0415

    return provides(side, ScriptableSide)


def _opened(path: str) -> AbstractContextManager[BinaryIO]:
    from trueup.compare.target import whole_file  # noqa: PLC0415

    return _stdout() if path == STDOUT else whole_file(path)


@contextmanager
def _stdout() -> Iterator[BinaryIO]:
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()
