"""Cases for people and as JSON. Values of records are shown: a person must see what is decided about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from trueup.cli.terminal import clock, counted, cut, number, paint, print_json, say, value, width
from trueup.cli.trend_text import streak_lines
from trueup.errors import ConfigError
from trueup.model.case import DEFECT, HELD, Case
from trueup.model.decision import Choice, DecisionState
from trueup.model.duration import duration_text
from trueup.model.plan import ItemState
from trueup.model.record import key_parts

if TYPE_CHECKING:
    from trueup.bound import BoundPair
    from trueup.engine.review import Answer, Preview
    from trueup.model.acceptance import Acceptance
    from trueup.model.row import Row
    from trueup.model.trend import Streak
    from trueup.project import Project

DAY_US: Final = 86_400_000_000
BUCKETS: Final = (("younger than a day", DAY_US), ("1 to 7 days", 7 * DAY_US), ("older than 7 days", 2**62))
_KEY_MAX: Final = 28
_PLAN_SHOWN: Final = 20


@dataclass
class Ageing:
    """How many cases are how old. now_us: by the store's clock."""

    now_us: int
    counts: dict[str, int] = field(default_factory=lambda: {name: 0 for name, _ in BUCKETS})
    oldest_us: int | None = None

    @property
    def count(self) -> int:
        """All of them."""
        return sum(self.counts.values())

    def add(self, case: Case) -> None:
        """Counts one more."""
        age_us = self.age_us(case)
        self.counts[next(name for name, below_us in BUCKETS if age_us < below_us)] += 1
        self.oldest_us = age_us if self.oldest_us is None else max(self.oldest_us, age_us)

    def age_us(self, case: Case) -> int:
        """For how long a case has been open."""
        return max(self.now_us - case.opened_us, 0)


def key_shown(key: str) -> str:
    """A key for people; what a case about the pair is about in its place."""
    return ", ".join(value(part) for part in key_parts(key)) if key.startswith("[") else "the pair"


# ── the list ─────────────────────────────────────────────────────────────────────────────────────────


def show_list(cases: Sequence[Case], ageing: Ageing, parked: Mapping[str, Sequence[Row]]) -> None:
    """A line for each case, how old they are, what is parked, and the next command."""
    if not ageing.count and not parked:
        say("nothing waits for a person")
        return
    digits = max((len(str(case.number)) for case in cases), default=0)
    names = max((len(case.pair) for case in cases), default=0)
    for case in cases:
        age = duration_text(ageing.age_us(case))
        about = case.cause if case.key.startswith(DEFECT) else ", ".join(case.fields) or case.cause
        who = f"{case.assignee}: " if case.assignee else ""
        key = cut(key_shown(case.key), _KEY_MAX)
        say(
            cut(
                f"{case.number:>{digits}}  {case.pair:<{names}}  {case.drift:<9} {age:>7}  {key:<12}  {who}{about}",
                width(),
            )
        )
    if ageing.count > len(cases):
        say(paint(f"… {number(ageing.count - len(cases))} more: --limit 0 for all", "dim"))
    if ageing.oldest_us is not None:
        ages = ", ".join(f"{number(count)} {name}" for name, count in ageing.counts.items() if count)
        say(f"{counted(ageing.count, 'case')}: {ages}; the oldest {duration_text(ageing.oldest_us)}")
    for pair, rows in parked.items():
        _show_parked(pair, rows)
    if cases:
        say(f"next: trueup review show {cases[0].number}")


def _show_parked(pair: str, rows: Sequence[Row]) -> None:
    say(f"{counted(len(rows), 'job')} of {pair} parked → trueup retry {pair}")
    for row in rows[:5]:
        say(cut(f"  {key_shown(row.key)}: {row.park_reason or row.last_error or 'out of tries'}", width()))
    if len(rows) > 5:
        say(paint(f"  … {number(len(rows) - 5)} more", "dim"))


def list_json(cases: Sequence[Case], ageing: Ageing, parked: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
    """The list as JSON."""
    return {
        "cases": [case_json(case) for case in cases],
        "count": ageing.count,
        "ageing": ageing.counts,
        "oldest_us": ageing.oldest_us,
        "parked": [
            {"pair": pair, "key": row.key, "reason": row.park_reason or row.last_error}
            for pair, rows in parked.items()
            for row in rows
        ],
    }


def case_json(case: Case) -> dict[str, Any]:
    """A case as JSON."""
    return {**asdict(case), "shown": case.shown}


def show_accepted(project: Project, pairs: Sequence[str], *, json: bool) -> None:
    """Differences that were accepted: by whom, why, until when; the expired ones too."""
    now_us = project.ledger.now_us()
    found = [
        each for pair in pairs for each in (*project.archive.acceptances(pair).values(), *project.archive.expired(pair))
    ]
    if json:
        print_json({"accepted": [{**asdict(each), "expired": each.until_us <= now_us} for each in found]})
        return
    for each in found:
        say(cut(_accepted(each, now_us), width()))
    if not found:
        say("no accepted differences")


def _accepted(each: Acceptance, now_us: int) -> str:
    expired = "expired " if each.until_us <= now_us else "until "
    about = ", ".join(each.fields)
    return f"{each.pair}  {key_shown(each.key)}  {expired}{clock(each.until_us)}  {each.person}: {each.reason}  {about}"


# ── one case ─────────────────────────────────────────────────────────────────────────────────────────


class Document:
    """All that is known of one case."""

    def __init__(self, project: Project, case: Case) -> None:
        self.case, self._archive = case, project.archive
        self.now_us = project.ledger.now_us()
        self.comments, self.decisions = self._archive.comments(case.number), self._archive.decisions(case.number)
        self.pair: BoundPair | None = None
        self.choices: tuple[Choice, ...] = ()
        self.labels = ("authority", "replica")
        try:
            self.pair = project.find(case.pair)
        except ConfigError:  # it was renamed, or taken out
            pass
        else:
            pair = self.pair.pair
            self.labels = (pair.authority.label, "replica" if pair.replica is None else pair.replica.label)
            self.choices = self.pair.review.choices(case)
        if len(set(self.labels)) == 1:
            self.labels = (f"{self.labels[0]} (authority)", f"{self.labels[1]} (replica)")
        self.accepted_before = next((each for each in self._archive.expired(case.pair) if each.key == case.key), None)

    def as_json(self) -> dict[str, Any]:
        """The case as JSON."""
        return {
            **case_json(self.case),
            "comments": [asdict(each) for each in self.comments],
            "decisions": [asdict(each) for each in self.decisions],
            "choices": [{"choice": each, "command": self._command(each)} for each in self.choices],
            "held": self._held() if self.case.key == HELD else None,
            "defect": None if (streak := self._streak()) is None else {**asdict(streak), "share": streak.share},
        }

    def show(self) -> None:
        """The case for people."""
        for line in self._lines():
            say(line)

    def _lines(self) -> Iterator[str]:
        case = self.case
        age = duration_text(max(self.now_us - case.opened_us, 0))
        state = f"open for {age}" if case.closed_us is None else f"closed {clock(case.closed_us)}: {case.closed}"
        yield f"{paint(f'case {case.number}', 'bold')} of {case.pair}: {key_shown(case.key)}   {case.drift}, {state}"
        yield cut(f"  {case.cause}", 10 * width())
        yield from (f"  {each}" for each in self._times())
        yield from self._versions() if case.is_record else self._plan()
        for said in self.comments:
            yield f"{clock(said.at_us)}  {said.person}: {said.text}"
        for made in self.decisions:
            note = f" ({made.note})" if made.note else ""
            yield f"{clock(made.at_us)}  {made.choice} by {made.person}, {made.state}{note}: {made.reason}"
        yield from self._choices()

    def _times(self) -> Iterator[str]:
        case, (authority, _) = self.case, self.labels
        if case.run:
            yield f"found by run {case.run}"
        if case.changed_us is not None:
            yield f"{authority} changed it {clock(case.changed_us)}"
        elif case.authority_version is not None:
            yield f"{authority} has version {case.authority_version}"
        if case.is_record:
            yield self._ancestor()
        if case.assignee:
            yield f"{case.assignee} looks into it" + (f" until {clock(case.due_us)}" if case.due_us else "")
        if (before := self.accepted_before) is not None:
            yield f"accepted before by {before.person} until {clock(before.until_us)}: {before.reason}"

    def _ancestor(self) -> str:
        case, (authority, _) = self.case, self.labels
        if case.ancestor is None or case.agreed_us is None:
            return "the sides were never seen to agree on a record here"
        stands = "is as it was then" if case.ancestor == case.authority_digest else "has moved since"
        return f"the sides agreed {clock(case.agreed_us)}; {authority} {stands}"

    def _versions(self) -> Iterator[str]:
        case, (left, right) = self.case, self.labels
        if case.authority is None or case.replica is None:
            missing, other = (left, right) if case.authority is None else (right, left)
            yield f"{missing} does not have it; {other} has"
        names = list(dict.fromkeys([*case.fields, *(case.authority or {}), *(case.replica or {})]))
        size = min(max(len(name) for name in names), 24) if names else 0
        room = (width() - size - 6) // 2
        yield f"  {'':<{size}}  {paint(cut(f'− {left}', room).ljust(room), 'red')}{paint(f'+ {right}', 'green')}"
        for name in names:
            mark = "*" if name in case.fields else " "
            one, other = (cut(_held(side, name), room - 1) for side in (case.authority, case.replica))
            line = f"{mark} {cut(name, size):<{size}}  {one:<{room}}{other}".rstrip()
            yield paint(line, "yellow") if mark == "*" else line

    def _streak(self) -> Streak | None:
        fields, about = self.case.fields, self.case.key.removeprefix(DEFECT)
        known = self._archive.streaks(self.case.pair) if self.case.key.startswith(DEFECT) else []
        return next((each for each in known if (f"{each.cause} {each.field}", (each.field,)) == (about, fields)), None)

    def _plan(self) -> Iterator[str]:
        if self.case.key.startswith(DEFECT) and self.case.closed_us is None:
            yield from streak_lines(self._streak())
        if self.case.key != HELD:
            return
        for each in self._held():
            what = "removes at the replica" if each["removes"] else "writes to the replica"
            yield f"  {number(each['count'])} {each['drift']}: {what}"
        items = self._archive.items(self.case.run, state=ItemState.HELD, limit=_PLAN_SHOWN)
        for item in items:
            fields = "  ".join(f"{name} − {value(a)} + {value(b)}" for name, (a, b) in item.texts().items())
            yield cut(f"  {item.drift:<9} {key_shown(item.key):<16}  {fields}".rstrip(), width())
        held = sum(each["count"] for each in self._held())
        if held > len(items):
            yield paint(f"  … {number(held - len(items))} more", "dim")

    def _held(self) -> list[dict[str, Any]]:
        return [
            {"drift": drift, "removes": removes, "count": count}
            for (drift, _, removes, state), count in sorted(self._archive.count_items(self.case.run).items())
            if state == ItemState.HELD
        ]

    def _choices(self) -> Iterator[str]:
        if not self.choices:
            return
        waits = next((each for each in self.decisions if each.state is DecisionState.PROPOSED), None)
        two = self.pair is not None and self.pair.pair.two_person
        yield (
            f"a second person must agree with {waits.person}, or decide otherwise:"
            if waits
            else ("choices (a second person must agree):" if two else "choices:")
        )
        size = max(len(each) for each in self.choices)
        for each in self.choices:
            yield f"  {each:<{size}}  {self._meaning(each)}"
            yield paint(f"  {'':<{size}}  {self._command(each)}", "dim")

    def _meaning(self, choice: Choice) -> str:
        left, right = self.labels
        lacks = self.case.authority is None, self.case.replica is None
        state = self.pair is not None and bool(self.pair.pair.absent_when)
        removed = f"write to {left} the state that means that there is none" if state else f"remove it at {left}"
        return {
            Choice.TAKE_AUTHORITY: f"remove it at {right}" if lacks[0] else f"write {left}'s version to {right}",
            Choice.TAKE_REPLICA: removed if lacks[1] else f"write {right}'s version to {left}",
            Choice.EDIT: "write new values to both",
            Choice.ACCEPT: "leave this very difference as it is, until a date",
            Choice.IGNORE_ONCE: "close the case; a later run may ask again",
            Choice.APPROVE_PLAN: "do what is held, as far as it still is as shown",
            Choice.DROP_PLAN: "do nothing of what is held",
        }[choice]

    def _command(self, choice: Choice) -> str:
        more = {Choice.EDIT: " --set FIELD=VALUE", Choice.ACCEPT: " --until DATE"}.get(choice, "")
        return f"trueup review decide {self.case.number} {choice}{more} --shown {self.case.shown} --reason …"


def _held(values: Mapping[str, str | None] | None, name: str) -> str:
    return "" if values is None or name not in values else value(values[name])


# ── decisions ────────────────────────────────────────────────────────────────────────────────────────


def show_preview(preview: Preview, pair: str) -> None:
    """What a decision for many cases would be about."""
    fitting = ", ".join(f"{number(count)} {drift}" for drift, count in preview.fitting.most_common())
    say(f"{preview.choice} fits {counted(len(preview.asked), 'case')} of {pair}" + (f": {fitting}" if fitting else ""))
    for case in preview.examples:
        say(cut(f"  {case.number}  {case.drift:<9} {key_shown(case.key)}  {', '.join(case.fields)}".rstrip(), width()))
    if len(preview.asked) > len(preview.examples):
        say(paint(f"  … {number(len(preview.asked) - len(preview.examples))} more", "dim"))
    if preview.others:
        others = ", ".join(f"{number(count)} {drift}" for drift, count in preview.others.most_common())
        say(f"it does not fit {others}: they stay as they are")


def show_answer(project: Project, answer: Answer) -> None:
    """What became of one decision."""
    asked, decision = answer.asked, answer.decision
    if decision is None:
        say(f"case {asked.number}: {paint('refused', 'yellow')}: {answer.error}")
    elif decision.state is DecisionState.PROPOSED:
        say(f"case {asked.number}: {decision.choice} is proposed by {decision.person}; a second person must agree")
        say(f"next: trueup review show {asked.number}")
    else:
        state = record_state(project, asked.number)
        job = {"idle": "", "pending": "; the job waits for a worker", "parked": "; the job is parked"}.get(state, "")
        say(f"case {asked.number}: {decision.choice} by {decision.person}: {decision.note}{job}")


def record_state(project: Project, case: int) -> str:
    """What the ledger says of the record of a case."""
    found = project.archive.case(case)
    rows = {} if found is None else project.ledger.rows(found.pair, [found.key])
    return next((str(row.state) for row in rows.values()), "idle")


def show_answers(answers: Sequence[Answer], asked: int) -> None:
    """What became of the decisions of many cases: counted, and each refusal named."""
    decided = [each.decision for each in answers if each.decision is not None]
    refused = [each for each in answers if each.error is not None]
    done = sum(each.state is DecisionState.DONE for each in decided)
    parts = [f"{number(done)} decided"] if done or not decided else []
    if len(decided) > done:
        parts.append(f"{number(len(decided) - done)} proposed: a second person must agree")
    parts += [f"{number(len(refused))} refused"] if refused else []
    parts += [f"{number(asked - len(answers))} not tried"] if len(answers) < asked else []
    say(", ".join(parts))
    for each in refused:
        say(cut(f"  {each.error}", 2 * width()))


def answers_json(project: Project, answers: Sequence[Answer], asked: int) -> dict[str, Any]:
    """What became of decisions, as JSON."""
    return {
        "asked": asked,
        "answers": [
            {
                "case": each.asked.number,
                "key": each.asked.key,
                "state": "refused" if each.decision is None else str(each.decision.state),
                "note": str(each.error) if each.decision is None else each.decision.note,
                "record": record_state(project, each.asked.number),
            }
            for each in answers
        ],
    }
