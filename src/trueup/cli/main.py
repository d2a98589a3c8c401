"""The command `trueup`: its commands, and how errors reach people."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, Final, Literal

import typer

from trueup.cli.collector import collect_seldom
from trueup.cli.commands import (
    adopt,
    alerts,
    demo,
    diff,
    doctor,
    evidence,
    explain,
    init,
    letters,
    pause,
    retry,
    review,
    run,
    schedule,
    serve,
    state,
    status,
    worker,
)
from trueup.cli.help import Commands
from trueup.errors import TrueupError
from trueup.model.outcome import HandlerOutcome

TROUBLE: Final = 2
INTERRUPTED: Final = 130
CLOSED_PIPE: Final = 141
_PROJECT = "The project: a trueup.toml, or a module that holds a trueup.Project. By default ./trueup.toml."

app = Commands(
    name="trueup",
    help="Keep two systems in agreement.",
    context_settings={"help_option_names": ["--help", "-h"]},
    pretty_exceptions_enable=False,
)
app.command()(diff.diff)
app.command()(init.init)
app.command()(adopt.adopt)
app.command()(run.run)
app.command()(status.status)
app.add_typer(review.review, name="review")
app.command()(explain.explain)
app.command(rich_help_panel="More")(serve.serve)
app.command(rich_help_panel="More")(worker.worker)
app.add_typer(schedule.schedule, name="schedule", rich_help_panel="More")
app.command(rich_help_panel="More")(retry.retry)
app.add_typer(evidence.evidence, name="evidence", rich_help_panel="More")
app.add_typer(letters.letters, name="letters", rich_help_panel="More")
app.add_typer(alerts.alerts, name="alerts", rich_help_panel="More")
app.command(rich_help_panel="More")(pause.pause)
app.command(rich_help_panel="More")(pause.resume)
app.add_typer(state.state, name="state", rich_help_panel="More")
app.command(rich_help_panel="More")(doctor.doctor)
app.command(rich_help_panel="More")(demo.demo)


def _version(wanted: bool) -> None:
    if wanted:
        from trueup import __version__  # noqa: PLC0415

        typer.echo(f"trueup {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def choose(
    context: typer.Context,
    project: Annotated[
        str | None, typer.Option("--project", "-p", metavar="NAME", envvar="TRUEUP_PROJECT", help=_PROJECT)
    ] = None,
    log_format: Annotated[
        Literal["text", "json"],
        typer.Option("--log-format", envvar="TRUEUP_LOG_FORMAT", help="How what is logged on standard error looks."),
    ] = "text",
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        typer.Option("--log-level", envvar="TRUEUP_LOG_LEVEL", help="What is logged: this, and what is worse."),
    ] = "warning",
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Keep two systems in agreement: compare, explain, repair, and prove it."""
    context.obj = project
    if (log_format, log_level) != ("text", "warning"):
        from trueup.cli.logs import Format, Level, set_up  # noqa: PLC0415  else Python's own way will do

        set_up(Format(log_format), Level(log_level))
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit


def main(arguments: Sequence[str] | None = None, *, standalone: bool = True) -> int:
    """Runs one command and answers its exit code; the process ends with it where `standalone`."""
    if not standalone:
        return _run(arguments)
    _spare_memory(sys.argv[1:] if arguments is None else arguments)
    collect_seldom()
    if not sys.warnoptions:
        # Warnings of libraries are for developers; what a user must know is said by trueup itself.
        warnings.simplefilter("ignore")
    sys.exit(_run(arguments))


def _spare_memory(arguments: Sequence[str]) -> None:
    # Arrow's own allocator keeps what it frees.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    if arguments[:1] == ["diff"]:
        sys.meta_path.insert(0, _WithoutPandas())


class _WithoutPandas:
    """Arrow loads pandas wherever it is installed: half a second and 40 MB that no comparison needs."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Refuses it, as if it were not installed."""
        if name == "pandas":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _run(arguments: Sequence[str] | None) -> int:
    """Every error becomes a line on standard error."""
    try:
        code = app(args=None if arguments is None else list(arguments), standalone_mode=False, prog_name="trueup")
        sys.stdout.flush()
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except typer.TyperException as error:
        _complain(error.format_message(), _usage(error))
        return TROUBLE
    except TrueupError as error:
        _complain(error.message, error.hint)
        return TROUBLE
    except HandlerOutcome as outcome:
        _complain(f"{outcome}.", "Try again later.")
        return TROUBLE
    except BrokenPipeError:
        return _reader_gone()
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):
            return _reader_gone()
        raise
    except Exception as error:  # the last place where one can be caught
        return _bug(error)
    if code == INTERRUPTED:
        _complain("interrupted.")
    return code if isinstance(code, int) else 0


def _reader_gone() -> int:
    """The reader of our output went away, as `| head` does. Python would complain again when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return CLOSED_PIPE


def _complain(message: str, hint: str | None = None) -> None:
    from trueup.cli.terminal import complain  # noqa: PLC0415

    complain(message, hint)


def _usage(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    return f"See: {context.command_path if context else 'trueup'} --help"


def _bug(error: Exception) -> int:
    if os.environ.get("TRUEUP_TRACEBACK") == "1":
        import traceback  # noqa: PLC0415

        traceback.print_exception(error)
    # The message may hold values of records, so only the type is shown.
    hint = "Please report it with what you typed. TRUEUP_TRACEBACK=1 shows where it happened."
    _complain(f"this is a bug in trueup: {type(error).__name__}.", hint)
    return TROUBLE
