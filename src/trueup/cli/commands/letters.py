"""`trueup letters`: what webhooks brought and nobody could make sense of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from trueup.cli.commands._project import Json, opened
from trueup.cli.help import Commands
from trueup.errors import ConfigError

if TYPE_CHECKING:
    from trueup.model.letter import DeadLetter
    from trueup.project import Project

Number = Annotated[int, typer.Argument(metavar="NUMBER", help="The letter's number, as the list shows it.")]
Numbers = Annotated[list[int] | None, typer.Argument(metavar="[NUMBER]...", help="Numbers, as the list shows them.")]
All = Annotated[bool, typer.Option("--all", help="Every letter, or every one of --source.")]
Of = Annotated[str | None, typer.Option("--source", metavar="NAME", help="Only letters of this source.")]
Body = Annotated[bool, typer.Option("--body", help="Show the body too, with all the values that it holds.")]
Limit = Annotated[int, typer.Option("--limit", "-n", metavar="N", min=0, help="Letters to list; 0 for all.")]
LISTED: Final = 20
EVERY: Final = 1 << 31

letters = Commands(
    help="List, show, read again or drop what webhooks brought and nobody could make sense of.\n\n"
    "Without a command it lists. The exit code is 1 where letters are kept, 2 in trouble."
)


@letters.callback(invoke_without_command=True)
def choose(context: typer.Context) -> int | None:
    """Lists where no command is named."""
    return show_all(context) if context.invoked_subcommand is None else None


@letters.command("list")
def show_all(context: typer.Context, source: Of = None, limit: Limit = LISTED, json: Json = False) -> int:
    """List letters, the newest first, and why each was refused.

    The exit code is 0 where none is kept, 1 where some are.
    """
    from trueup.cli import letters_text  # noqa: PLC0415
    from trueup.cli.terminal import print_json  # noqa: PLC0415

    with opened(context) as project:
        found = project.archive.letters(source, limit or EVERY)
        kept = project.archive.count_letters(source)
        if json:
            shown = [letters_text.letter_json(each, _signed_in(project, each)) for each in found]
            print_json({"kept": kept, "letters": shown})
        else:
            letters_text.show_letters(found, kept)
    return 1 if kept else 0


@letters.command("show")
def show(context: typer.Context, number: Number, body: Body = False, json: Json = False) -> int:
    """Show one letter: why it was refused, its headers without secrets, and the shape of its body.

    Values of the body are shown only with --body.
    """
    from trueup.cli import letters_text  # noqa: PLC0415
    from trueup.cli.terminal import print_json  # noqa: PLC0415

    with opened(context) as project:
        [letter] = _chosen(project, [number], None, everything=False)
        hidden = _signed_in(project, letter)
    if json:
        print_json(letters_text.letter_json(letter, hidden, body=body))
    else:
        letters_text.show_letter(letter, hidden, body=body)
    return 0


@letters.command("replay")
def read_again(
    context: typer.Context, numbers: Numbers = None, everything: All = False, source: Of = None, json: Json = False
) -> int:
    """Read letters again by the mapping as it is now, offer what they ask for, and drop those that went through.

    The oldest goes first. A letter that is refused again stays, with the new reason. The exit code is 0 where all
    went through, 1 where some stay.
    """
    from trueup.cli import letters_text  # noqa: PLC0415
    from trueup.cli.terminal import print_json  # noqa: PLC0415
    from trueup.deliveries import replay  # noqa: PLC0415

    with opened(context) as project:
        found = [replay(project, each) for each in _chosen(project, numbers, source, everything=everything)]
    if json:
        print_json({"letters": [letters_text.replayed_json(each) for each in found]})
    else:
        letters_text.show_replayed(found)
    return 1 if any(each.kept is not None for each in found) else 0


@letters.command("drop")
def drop(
    context: typer.Context, numbers: Numbers = None, everything: All = False, source: Of = None, json: Json = False
) -> int:
    """Forget letters. What they were about is found by the next run, if it is still so."""
    from trueup.cli.terminal import counted, print_json, say  # noqa: PLC0415

    with opened(context) as project:
        chosen = _chosen(project, numbers, source, everything=everything)
        dropped = project.archive.drop_letters([each.number for each in chosen])
    if json:
        print_json({"dropped": dropped})
    else:
        say(f"{counted(dropped, 'letter')} dropped")
    return 0


def _chosen(
    project: Project, numbers: Sequence[int] | None, source: str | None, *, everything: bool
) -> list[DeadLetter]:
    """The letters that were named, oldest first; ConfigError where one is not kept, before anything is done."""
    archive = project.archive
    if everything == bool(numbers) or (source is not None and not everything):
        raise ConfigError("name letters by number, or say --all.", hint="Their numbers: trueup letters list")
    if everything:
        return archive.letters(source, EVERY)[::-1]
    found = {number: archive.letter(number) for number in sorted(set(numbers or ()))}
    if lacking := [number for number, letter in found.items() if letter is None]:
        raise ConfigError(f"there is no letter {lacking[0]}.", hint="Their numbers: trueup letters list")
    return [letter for letter in found.values() if letter is not None]


def _signed_in(project: Project, letter: DeadLetter) -> list[str]:
    """The header that holds the signature, by which a copy of the request could be sent."""
    source = project.sources.get(letter.source)
    return [] if source is None else [source.signature_header]
