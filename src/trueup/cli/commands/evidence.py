"""`trueup evidence`: the account of every run and decision, whether it was altered, and what an auditor reads."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from trueup.cli.commands._project import Client, Json, Pairs, chosen, opened
from trueup.cli.help import Commands
from trueup.errors import ConfigError

if TYPE_CHECKING:
    from trueup.bound import BoundPair
    from trueup.model.evidence import Head
    from trueup.ports import Side
    from trueup.project import Project

Number = Annotated[int, typer.Argument(metavar="NUMBER", help="The entry's number, as the list shows it.")]
Limit = Annotated[int, typer.Option("--limit", "-n", metavar="N", min=0, help="Entries to list; 0 for all.")]
Anchors = Annotated[
    list[Path] | None,
    typer.Option("--anchors", metavar="FILE", help="Anchors that were kept elsewhere; may be given several times."),
]
From = Annotated[
    Path | None, typer.Option("--from", metavar="FILE", help="Verify this export instead of the state store.")
]
To = Annotated[Path | None, typer.Option("--to", metavar="FILE", help="Write there; by default to standard output.")]
Since = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="Only what was put on record since then: 2026-11-01.")
]
Until = Annotated[
    str | None,
    typer.Option("--until", metavar="TIME", help="Only what was put on record until then, that day included."),
]
LISTED: Final = 20
DAY_US: Final = 86_400_000_000


class Format(enum.StrEnum):
    """What `export` writes."""

    JSONL = "jsonl"
    HTML = "html"


evidence = Commands(
    help="List, show, verify, export and anchor the account of every run and decision; perform one again.\n\n"
    "Without a command it lists. The exit code is 1 where something was altered or can't be proven, 2 in trouble."
)


@evidence.callback(invoke_without_command=True)
def choose(context: typer.Context) -> int | None:
    """Lists where no command is named."""
    return show_all(context) if context.invoked_subcommand is None else None


@evidence.command("list")
def show_all(
    context: typer.Context, pairs: Pairs = None, client: Client = None, limit: Limit = LISTED, json: Json = False
) -> int:
    """List entries, the newest first: each run and each decision, in a line."""
    from trueup.cli import evidence_text  # noqa: PLC0415
    from trueup.cli.terminal import print_json  # noqa: PLC0415

    with opened(context) as project:
        names = None if not pairs and client is None else [each.name for each in chosen(project, pairs, client)]
        found = project.archive.entries(names, limit=limit or None, newest=True)
        head = project.archive.head()
    if json:
        print_json({"head": evidence_text.head_json(head), "entries": [evidence_text.as_json(each) for each in found]})
    else:
        evidence_text.show_entries(found, head)
    return 0


@evidence.command("show")
def show(context: typer.Context, number: Number, json: Json = False) -> int:
    """Show one entry, with all that it holds."""
    from trueup.cli import evidence_text  # noqa: PLC0415
    from trueup.cli.terminal import print_json  # noqa: PLC0415

    with opened(context) as project:
        entry = project.archive.entry(number)
    if entry is None:
        raise ConfigError(f"there is no entry {number}.", hint="Their numbers: trueup evidence list")
    if json:
        print_json(evidence_text.as_json(entry))
    else:
        evidence_text.show_entry(entry)
    return 0


@evidence.command("verify")
def verify(context: typer.Context, anchors: Anchors = None, source: From = None, json: Json = False) -> int:
    """Say whether any entry was altered, removed, moved or slipped in, and whether every run has one.

    Only anchors that were kept elsewhere show that not all of it was written anew; declared places that can be read
    are asked for theirs. The exit code is 0 where nothing is wrong, 1 where something is, 2 where such a place could
    not be read.
    """
    from trueup.cli import evidence_text  # noqa: PLC0415
    from trueup.cli.terminal import print_json  # noqa: PLC0415
    from trueup.engine.account import Proof, prove  # noqa: PLC0415
    from trueup.model import evidence as rules  # noqa: PLC0415

    heads = _anchors(anchors or ())
    if source is None:
        with opened(context) as project:
            proof = prove(project.archive, heads, project.anchoring().kept())
    else:
        lines = enumerate(_text(source).splitlines(), 1)
        entries = [rules.entry_in(line, f"{source}, line {at}") for at, line in lines if line.strip()]
        proof = Proof(rules.verify(entries, anchors=heads))
    if json:
        print_json(evidence_text.proof_json(proof))
    else:
        evidence_text.show_proof(proof)
    if not proof.holds:
        return 1
    return 2 if any(each.error is not None for each in proof.places) else 0


@evidence.command("export")
def export(
    context: typer.Context,
    pairs: Pairs = None,
    client: Client = None,
    form: Annotated[Format, typer.Option("--format", help="The chain as JSON lines, or a page to read.")] = (
        Format.JSONL
    ),
    to: To = None,
    since: Since = None,
    until: Until = None,
    anchors: Anchors = None,
) -> int:
    """Write the whole chain as JSON lines, or a page that an auditor reads and prints, of some pairs or a time.

    The page says what was compared, when, by which rules, what differed, what was done and by whom, what is open, and
    whether anything was altered since.
    """
    from trueup.cli.terminal import say  # noqa: PLC0415

    if form is Format.JSONL and (pairs or client or since or until):
        raise ConfigError("the chain can only be exported as a whole.", hint="Choose with --format html.")
    with opened(context) as project:
        text = _chain(project) if form is Format.JSONL else _page(project, pairs, client, (since, until), anchors)
    if to is None:
        say(text.rstrip("\n"))
    else:
        to.write_text(text, encoding="utf-8")
        say(f"written: {to}")
    return 0


@evidence.command("anchor")
def anchor(context: typer.Context, to: To = None, json: Json = False) -> int:
    """Write the head of the chain as a line to keep elsewhere: whoever alters an entry up to it can be found out.

    Without --to the declared places are given it; without any it is printed. A file is only ever added to. The exit
    code is 1, and nothing is written, where the chain does not fit the anchors that are there already; 2 where a place
    does not take it.
    """
    from trueup.cli import evidence_text  # noqa: PLC0415
    from trueup.cli.terminal import print_json, say  # noqa: PLC0415
    from trueup.engine.account import prove  # noqa: PLC0415
    from trueup.integrations.anchors import AnchorFile, line_of  # noqa: PLC0415

    with opened(context) as project:
        anchoring, now_us = project.anchoring(), project.ledger.now_us()
        proof = prove(project.archive, _anchors([to]) if to is not None and to.exists() else (), anchoring.kept())
        head = proof.chain.head
        if not proof.chain.intact:
            evidence_text.show_proof(proof)
            return 1
        names = list(project.anchors) if to is None else []
        if names:
            anchoring.send()
        elif to is not None:
            AnchorFile(to).give(head, now_us)
        found = list(project.archive.places.known(names).values())
    if json:
        print_json(evidence_text.given_json(found, head))
    elif names:
        evidence_text.show_given(found, head)
    else:
        say(line_of(head, now_us) if to is None else f"{to}: entry {head.number} is anchored")
    return 2 if any(each.head != head for each in found) else 0


@evidence.command("replay")
def replay(
    context: typer.Context,
    run: Annotated[int, typer.Argument(metavar="RUN", help="The run's number.")],
    authority: Annotated[
        Path | None, typer.Option("--authority", metavar="FILE", help="A kept copy of the authority's file.")
    ] = None,
    replica: Annotated[
        Path | None, typer.Option("--replica", metavar="FILE", help="A kept copy of the replica's file.")
    ] = None,
    json: Json = False,
) -> int:
    """Perform the comparison of a run again from kept files, and say what could not be performed.

    Nothing is written. The exit code is 0 where it shows the same as then, 1 where it does not or could not be
    performed.
    """
    from trueup.cli import evidence_text  # noqa: PLC0415
    from trueup.cli.terminal import print_json  # noqa: PLC0415
    from trueup.engine.hidden import key_of  # noqa: PLC0415
    from trueup.engine.replay import replay as perform  # noqa: PLC0415
    from trueup.model.evidence import RUN  # noqa: PLC0415

    with opened(context) as project:
        entry = project.archive.fact(RUN, str(run))
        if entry is None:
            raise ConfigError(f"there is no evidence of run {run}.", hint="What there is: trueup evidence list")
        pair = project.find(entry.fact.pair)
        found = perform(
            pair.records, entry, authority=_copy(pair, "authority", authority), replica=_copy(pair, "replica", replica),
            memory_mb=project.memory_mb, key=key_of(entry.fact.read(), project.archive),
        )  # fmt: skip
    if json:
        print_json(evidence_text.replay_json(found))
    else:
        evidence_text.show_replay(found)
    return 0 if found.proven else 1


def _chain(project: Project) -> str:
    from trueup.engine.account import all_entries  # noqa: PLC0415
    from trueup.model.evidence import entry_line  # noqa: PLC0415

    return "".join(f"{entry_line(entry)}\n" for entry in all_entries(project.archive))


def _page(
    project: Project,
    names: list[str] | None,
    client: str | None,
    times: tuple[str | None, str | None],
    anchors: list[Path] | None,
) -> str:
    from trueup.cli.evidence_page import Period, page_of  # noqa: PLC0415
    from trueup.engine.account import prove  # noqa: PLC0415

    since_us, until_us = _moment_us(times[0], "--since"), _moment_us(times[1], "--until")
    proof = prove(project.archive, _anchors(anchors or ()), project.anchoring().kept())
    wanted = None if not names and client is None else [each.name for each in chosen(project, names, client)]
    return page_of(project.archive, wanted, proof, Period(since_us, until_us, project.ledger.now_us()))


def _moment_us(text: str | None, option: str) -> int | None:
    """A date is the beginning of that day for --since, and its end for --until."""
    from trueup.model.moment import moment_us  # noqa: PLC0415

    if text is None:
        return None
    from_its_beginning = option == "--since" and len(text) <= len("2026-11-01")
    return moment_us(text, option) - (DAY_US if from_its_beginning else 0)


def _anchors(paths: Sequence[Path]) -> list[Head]:
    from trueup.model.evidence import anchors_in  # noqa: PLC0415

    return [head for path in paths for head in anchors_in(_text(path).splitlines(), str(path))]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} can't be read: {type(error).__name__}.", hint="Name a file of text.") from None


def _copy(pair: BoundPair, role: str, path: Path | None) -> Side | None:
    """The declared side, read from another file."""
    if path is None:
        return None
    side = getattr(pair.pair, role)
    if not hasattr(side, "elsewhere"):
        raise ConfigError(f"the {role} of {pair.name} is no file.", hint=f"Leave out --{role}.")
    copied: Side = side.elsewhere(path)
    return copied
