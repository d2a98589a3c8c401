"""`trueup review`: the questions that wait for a person, and what is decided about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from trueup.cli.commands._project import Client, Json, agreed, chosen, opened
from trueup.cli.help import Commands
from trueup.errors import ConfigError, DecisionRefused, TrueupError

if TYPE_CHECKING:
    from trueup.engine.review import Answer
    from trueup.model.case import Case, CaseFilter
    from trueup.model.decision import Choice
    from trueup.project import Project

Number = Annotated[int, typer.Argument(metavar="NUMBER", help="The case's number, as the list shows it.")]
OfPair = Annotated[str | None, typer.Option("--pair", metavar="NAME", help="Only cases of this pair.")]
OfDrift = Annotated[str | None, typer.Option("--drift", metavar="NAME", help="Only this drift, such as edited.")]
OfAssignee = Annotated[
    str | None, typer.Option("--assignee", metavar="NAME", help="Only cases of this person; '' for those of nobody.")
]
Older = Annotated[str | None, typer.Option("--older-than", metavar="AGE", help="Only cases open for longer: 1h, 7d.")]
OfField = Annotated[str | None, typer.Option("--field", metavar="NAME", help="Only cases where this field differs.")]
OfKey = Annotated[str | None, typer.Option("--key", metavar="KEY", help="Only the record with this key; needs --pair.")]
OfText = Annotated[
    str | None, typer.Option("--text", metavar="TEXT", help="Only cases with this text in key, cause or values.")
]
Limit = Annotated[int, typer.Option("--limit", "-n", metavar="N", min=0, help="Cases to list; 0 for all.")]
By = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who it is; by default the login name.")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why. It is kept with the decision.")]
LISTED: Final = 20

review = Commands(
    help="List, show and decide the questions that wait for a person.\n\n"
    "Without a command it lists. The exit code is 1 where something waits, 2 in trouble."
)


@review.callback(invoke_without_command=True)
def choose(context: typer.Context) -> int | None:
    """Lists where no command is named."""
    return show_all(context) if context.invoked_subcommand is None else None


@review.command("list")
def show_all(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="[PAIR]", help="Only cases of this pair, or of a pattern of names.")
    ] = None,
    drift: OfDrift = None,
    assignee: OfAssignee = None,
    older: Older = None,
    field: OfField = None,
    key: OfKey = None,
    text: OfText = None,
    accepted: Annotated[bool, typer.Option("--accepted", help="List accepted differences instead.")] = False,
    client: Client = None,
    limit: Limit = LISTED,
    json: Json = False,
) -> int:
    """List what waits for a person, the oldest first: cases, and records whose job is parked.

    The exit code is 0 where nothing waits, 1 where something does.
    """
    from trueup.cli import review_text  # noqa: PLC0415
    from trueup.cli.terminal import print_json  # noqa: PLC0415

    with opened(context) as project:
        pairs = chosen(project, None if name is None else [name], client)
        if accepted:
            review_text.show_accepted(project, [each.name for each in pairs], json=json)
            return 0
        one = pairs[0].name if len(pairs) == 1 else None
        where = _where(project, one, drift, assignee, older, field, key, text)
        # Without a selection, cases of pairs that are no longer declared are listed too.
        names = None if name is None and client is None else {each.name for each in pairs}
        ageing = review_text.Ageing(project.ledger.now_us())
        shown: list[Case] = []
        for case in _found(project, one if names else None, where):
            if names is not None and case.pair not in names:
                continue
            ageing.add(case)
            shown += [case] if not limit or len(shown) < limit else []
        # A filter says what cases are about; a parked job has no drift and no assignee.
        filtered = any(each is not None for each in (drift, assignee, older, field, key, text))
        parked = {} if filtered else {each.name: [*each.review.parked()] for each in pairs}
        parked = {pair: rows for pair, rows in parked.items() if rows}
        if json:
            print_json(review_text.list_json(shown, ageing, parked))
        else:
            review_text.show_list(shown, ageing, parked)
    return 1 if ageing.count or parked else 0


@review.command("show")
def show(context: typer.Context, number: Number, json: Json = False) -> int:
    """Show a case: both versions side by side, how it came about, and what may be decided.

    The exit code is 0.
    """
    from trueup.cli import review_text  # noqa: PLC0415
    from trueup.cli.terminal import print_json  # noqa: PLC0415

    with opened(context) as project:
        document = review_text.Document(project, _case(project, number))
        if json:
            print_json(document.as_json())
        else:
            document.show()
    return 0


@review.command("decide")
def decide(
    context: typer.Context,
    words: Annotated[
        list[str], typer.Argument(metavar="[NUMBER]... CHOICE", help="Cases by number, and what is decided.")
    ],
    reason: Reason,
    by: By = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="DATE", help="For accept: the last day, such as 2026-12-31.")
    ] = None,
    assign_values: Annotated[
        list[str] | None, typer.Option("--set", metavar="FIELD=VALUE", help="For edit: a new value.")
    ] = None,
    nulls: Annotated[
        list[str] | None, typer.Option("--set-null", metavar="FIELD", help="For edit: a field that becomes null.")
    ] = None,
    shown: Annotated[
        str | None, typer.Option("--shown", metavar="MARK", help="What `show` printed; refused where it has changed.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All cases of --pair that fit the filter.")] = False,
    pair: OfPair = None,
    drift: OfDrift = None,
    assignee: OfAssignee = None,
    older: Older = None,
    field: OfField = None,
    key: OfKey = None,
    text: OfText = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before deciding --all.")] = False,
    json: Json = False,
) -> int:
    """Decide cases: take-authority, take-replica, edit, accept, ignore-once; approve-plan, drop-plan.

    Both sides are read again first; where one moved since the case was shown, nothing is written. The exit code is 0
    where everything was decided, 1 where some of many were refused, 2 where one was, or in trouble.
    """
    from trueup.model.decision import choice_named  # noqa: PLC0415

    numbers, choice = _numbers(words[:-1]), choice_named(words[-1])
    if everything == bool(numbers) or (everything and pair is None):
        raise ConfigError("name cases by number, or say --pair NAME --all.", hint="Their numbers: trueup review list")
    if len(numbers) != 1 and (shown is not None or assign_values or nulls):
        raise ConfigError("--shown, --set and --set-null are about one case.", hint="Name one case by its number.")
    person = _person(by)
    with opened(context) as project:
        if everything:
            where = _where(project, pair, drift, assignee, older, field, key, text)
            return _decide_all(project, pair or "", choice, where, person, reason, until, yes=yes, json=json)
        values = _values(assign_values or [], nulls or [])
        return _decide_each(project, numbers, choice, person, reason, until, values, shown, json=json)


@review.command("assign")
def assign(
    context: typer.Context,
    number: Number,
    person: Annotated[str, typer.Argument(metavar="NAME", help="Who looks into it; '' for nobody.")],
    due: Annotated[str | None, typer.Option("--due", metavar="DATE", help="Until when.")] = None,
) -> int:
    """Say who looks into a case, and until when."""
    from trueup.cli.terminal import say  # noqa: PLC0415
    from trueup.model.moment import moment_us  # noqa: PLC0415

    due_us = None if due is None else moment_us(due, "--due")
    with opened(context) as project:
        case = _case(project, number)
        if not project.archive.assign_case(number, person.strip() or None, due_us):
            raise DecisionRefused(f"case {number} is closed: {case.closed}.", hint="See: trueup review list")
    say(f"case {number}: {person.strip() or 'nobody'} looks into it")
    return 0


@review.command("comment")
def comment(
    context: typer.Context,
    number: Number,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What is to be said.")],
    by: By = None,
) -> int:
    """Say something about a case; it is kept with it."""
    from trueup.cli.terminal import say  # noqa: PLC0415
    from trueup.model.case import Comment  # noqa: PLC0415

    if not text.strip():
        raise ConfigError("the comment is empty.", hint="Say something.")
    with opened(context) as project:
        _case(project, number)
        project.archive.comment(number, Comment(_person(by), text.strip()))
    say(f"case {number}: noted")
    return 0


# ── what the words mean ──────────────────────────────────────────────────────────────────────────────


def _numbers(words: Sequence[str]) -> list[int]:
    if odd := [word for word in words if not word.isdecimal()]:
        raise ConfigError(f"{odd[0]!r} is no number of a case.", hint="Write: trueup review decide 77 take-authority")
    return [int(word) for word in dict.fromkeys(words)]


def _person(by: str | None) -> str:
    import getpass  # noqa: PLC0415

    try:
        return getpass.getuser() if by is None else by
    except (OSError, KeyError):
        raise ConfigError("this user has no login name.", hint="Say who it is: --by NAME.") from None


def _values(assigned: Sequence[str], nulls: Sequence[str]) -> dict[str, str | None] | None:
    values: dict[str, str | None] = dict.fromkeys(nulls)
    for each in assigned:
        name, found, value = each.partition("=")
        if not found or name in values:
            raise ConfigError(f"--set {name} does not assign one value.", hint="Write --set FIELD=VALUE, once a field.")
        values[name] = value
    return values or None


def _where(
    project: Project,
    pair: str | None,
    drift: str | None,
    assignee: str | None,
    older: str | None,
    field: str | None,
    key: str | None,
    text: str | None,
) -> CaseFilter:
    from trueup.cli.commands._project import key_of  # noqa: PLC0415
    from trueup.model.case import CaseFilter  # noqa: PLC0415
    from trueup.model.duration import duration_us  # noqa: PLC0415

    if key is not None and pair is None:
        raise ConfigError("a key is one of a pair.", hint="Name the pair too.")
    until_us = None if older is None else project.ledger.now_us() - duration_us(older, "--older-than")
    key = None if key is None or pair is None else key_of(key, project.find(pair))
    return CaseFilter(drift, assignee, until_us, field, key, text)


def _case(project: Project, number: int) -> Case:
    from trueup.model.decision import no_case  # noqa: PLC0415

    case = project.archive.case(number)
    if case is None:
        raise no_case(number)
    return case


def _found(project: Project, pair: str | None, where: CaseFilter) -> Iterator[Case]:
    last: Case | None = None
    while page := project.archive.cases(pair, where, after=last, limit=500):
        yield from page
        last = page[-1]


# ── deciding ─────────────────────────────────────────────────────────────────────────────────────────


def _decide_each(
    project: Project,
    numbers: Sequence[int],
    choice: Choice,
    person: str,
    reason: str,
    until: str | None,
    values: dict[str, str | None] | None,
    shown: str | None,
    *,
    json: bool,
) -> int:
    """Decides cases by number; where there is only one, its error is the command's."""
    from trueup.engine.review import Answer, Asked  # noqa: PLC0415

    answers = []
    for case in [_case(project, number) for number in numbers]:
        asked = Asked(case.number, case.key, case.shown)
        try:
            decision = project.find(case.pair).decide(
                case.number, choice, person=person, reason=reason, until=until, values=values, shown=shown
            )
        except TrueupError as error:
            if len(numbers) == 1:
                raise
            answers.append(Answer(asked, error=error))
        else:
            answers.append(Answer(asked, decision))
    return _told(project, answers, len(numbers), json=json, each=True)


def _decide_all(
    project: Project,
    pair: str,
    choice: Choice,
    where: CaseFilter,
    person: str,
    reason: str,
    until: str | None,
    *,
    yes: bool,
    json: bool,
) -> int:
    from trueup.cli import review_text  # noqa: PLC0415
    from trueup.model.moment import moment_us  # noqa: PLC0415

    bound = project.find(pair)
    until_us = None if until is None else moment_us(until, "--until")
    preview = bound.review.preview(choice, where)
    if not json:
        review_text.show_preview(preview, pair)
    if preview.asked and not agreed(f"{preview.choice} for {len(preview.asked):,} cases?", yes=yes):
        return 1
    answers = [*bound.review.decide_all(preview, person=person, reason=reason, until_us=until_us)]
    project.recorded()
    bound.work()
    return _told(project, answers, len(preview.asked), json=json)


def _told(project: Project, answers: Sequence[Answer], asked: int, *, json: bool, each: bool = False) -> int:
    """Says what became of the decisions, none of them hidden; answers the exit code."""
    from trueup.cli import review_text  # noqa: PLC0415
    from trueup.cli.terminal import print_json  # noqa: PLC0415

    refused = [answer for answer in answers if answer.error is not None]
    if json:
        print_json(review_text.answers_json(project, answers, asked))
    elif each:
        for answer in answers:
            review_text.show_answer(project, answer)
    else:
        review_text.show_answers(answers, asked)
    return 1 if refused or len(answers) < asked else 0
