"""Runs, states and stories for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from trueup.cli import conditions_text, schedules_text, systems_text
from trueup.cli.terminal import END_WORDS, clock, counted, cut, number, paint, say, value, width
from trueup.model.change import Outcome
from trueup.model.drift import Drift
from trueup.model.duration import duration_text
from trueup.model.record import key_parts

if TYPE_CHECKING:
    from trueup.engine.report import Report, Status, Story
    from trueup.pair import Pair

_KEY_MAX: Final = 40
# Of what became of an offer, in the order in which people care.
_OUTCOMES: Final = [outcome for outcome in Outcome if not outcome.accepted]


def show(report: Report, pair: Pair, limit: int | None, reasons: Mapping[str, int] | None = None) -> None:
    """A run: what each phase found and did, what is left, and the next command.

    reasons: why records are parked, and how many for each.
    """
    if pair.replica is None and report.what == "run":
        say(_one_sided(report, pair, reasons or {}))
        return
    say(_title(report, pair))
    for line in _phases(report, pair):
        say(cut(line, width()))
    if report.what in ("dry run", "report", "adopt") and report.plan:
        show_plan(report, limit)
    for reason, count in (reasons or {}).items():
        say(cut(f" parked    {number(count)}: {reason}", width()))
    for note in report.notes:
        say(f" note      {note}")
    say(_conclusion(report))


def show_line(report: Report, pair: Pair, size: int) -> None:
    """A run that needs nobody, in one line. size: the width of names."""
    if pair.replica is None:
        said = _one_sided(report, pair, {}).removeprefix(f"{report.pair}: ")
    else:
        said = ", ".join(["in agreement", *([f"jobs: {ends}"] if (ends := _ends(report.counts)) else [])])
    say(f"{report.pair:<{size}}  {said}")


def _one_sided(report: Report, pair: Pair, reasons: Mapping[str, int]) -> str:
    """A run without replica in one line, as cron mails it."""
    counts = report.counts
    stuck = counts["wanted"] if pair.unsynced is None else counts["unsynced"]
    left = [f"{number(counts['pending'])} pending"] if counts["pending"] else []
    if counts["parked"]:
        why = "; ".join(reasons)
        left.append(f"{number(counts['parked'])} parked" + (f" ({why})" if why else ""))
    done = [f"{number(counts['jobs_done'])} done"]
    if not stuck and not counts["changed"] and not left:
        return f"{report.pair}: nothing to do"
    return f"{report.pair}: {number(stuck)} stuck, {number(counts['changed'])} changed: {', '.join(done + left)}"


def _title(report: Report, pair: Pair) -> str:
    sides = pair.authority.label if pair.replica is None else f"{pair.authority.label} → {pair.replica.label}"
    left = f"{paint(report.pair, 'bold')}   {sides}"
    run = f"run {report.number}" if report.number else report.what
    cutoff = "" if report.cutoff_us is None else f", cutoff {clock(report.cutoff_us)}"
    gap = width() - len(report.pair) - 3 - len(sides) - len(run + cutoff)
    return f"{left}{' ' * max(gap, 2)}{run}{cutoff}"


def _phases(report: Report, pair: Pair) -> Iterator[str]:
    counts, seconds = report.counts, report.seconds
    if counts["wanted"]:
        yield f" stuck     {number(counts['wanted'])} wanted, not done{_revived(counts['revived'])}"
    if pair.unsynced is not None and "stuck" in seconds:
        yield f" unsynced  {number(_seen(counts, 'unsynced'))} selected" + _offers(counts, "unsynced")
    if "changed" in counts or "changed_seen" in counts:
        yield f" changed   {number(_seen(counts, 'changed'))} since the cursor" + _offers(counts, "changed")
    if "windows" in seconds:
        yield f" windows   {number(counts['windows'])} to compare, {number(counts['sealed'])} sealed{_reopened(counts)}"
    if "compare" in seconds:
        found = counts["missing"] + counts["extra"] + counts["differ"] + counts["duplicate"]
        spent = f"{seconds['compare']:.1f} s"
        rows = f"{number(counts['left'])} ↔ {number(counts['right'])}"
        yield f" compare   {rows}   {spent}   {counted(found, 'difference')}"
        if counts["baseline"]:
            yield f" baseline  {number(counts['baseline'])} agreeing records remembered"
        if found:
            yield f" confirm   {number(found)} read again: {_confirmed(counts)}"
    if counts["repair"] or counts["review"] or counts["accept"]:
        accepted = f", {number(counts['accept'])} accepted" if counts["accept"] else ""
        yield f" verdict   {number(counts['repair'])} repair, {number(counts['review'])} review{accepted}"
    if ends := _ends(counts):
        yield f" jobs      {ends}"


def _reopened(counts: Mapping[str, int]) -> str:
    return f", {number(counts['reopened'])} had changed after they were sealed" if counts["reopened"] else ""


def _seen(counts: Mapping[str, int], phase: str) -> int:
    return counts.get(phase, 0) or counts.get(f"{phase}_seen", 0)


def _revived(count: int) -> str:
    return f", {counted(count, 'parked one', 'parked ones')} tried again" if count else ""


def _offers(counts: Mapping[str, int], phase: str) -> str:
    accepted = sum(counts.get(f"{phase}_{outcome}", 0) for outcome in Outcome if outcome.accepted)
    parts = [f"{number(accepted)} offered"] if accepted else []
    parts += [f"{number(counts[f'{phase}_{each}'])} {each}" for each in _OUTCOMES if counts.get(f"{phase}_{each}")]
    return f": {', '.join(parts)}" if parts else ""


def _confirmed(counts: Mapping[str, int]) -> str:
    drifts = {drift: counts.get(f"drift_{drift}", 0) for drift in Drift}
    parts = [f"{number(counts[name])} {name}" for name in ("converged", "deferred") if counts.get(name)]
    parts.append(f"{number(sum(drifts.values()))} drift")
    named = " · ".join(f"{drift} {number(count)}" for drift, count in drifts.items() if count)
    return ", ".join(parts) + (f"   {named}" if named else "")


def _ends(counts: Mapping[str, int]) -> str:
    return ", ".join(
        f"{number(counts[f'jobs_{end}'])} {word}" for end, word in END_WORDS.items() if counts.get(f"jobs_{end}")
    )


def _conclusion(report: Report) -> str:
    counts = report.counts
    if report.what == "dry run":
        return f"nothing was written; {counted(len(report.plan), 'record')} would be dealt with as listed"
    if report.what == "report":
        return f"nothing was written: the pair is not adopted yet. Next: trueup adopt {report.pair}"
    waits = [counted(counts["cases"], "case waits", "cases wait") + " for a person"] if counts["cases"] else []
    waits += [f"{number(counts['parked'])} parked"] if counts["parked"] else []
    waits += [f"{number(counts['pending'])} pending"] if counts["pending"] else []
    if not waits:
        return paint("in agreement", "green")
    look = "review list" if counts["cases"] else "status"
    return paint(f"{', '.join(waits)}: trueup {look} {report.pair}", "yellow")


def show_plan(report: Report, limit: int | None) -> None:
    """Confirmed drifts and what is to be done about each."""
    say()
    for item in report.plan[:limit]:
        key = cut(", ".join(value(part) for part in key_parts(item.key)), _KEY_MAX)
        fields = "  ".join(_change(name, a, b) for name, (a, b) in report.texts(item).items())
        say(cut(f" {item.drift:<9} {item.verdict:<7} {key:<16}  {fields}".rstrip(), width()))
    if limit is not None and len(report.plan) > limit:
        say(paint(f" … {number(len(report.plan) - limit)} more: --limit 0 for all, --json", "dim"))


def _change(name: str, authority: str | None, replica: str | None) -> str:
    return f"{name} − {cut(value(authority), 24)} + {cut(value(replica), 24)}"


def show_status(found: Sequence[Status], size: int) -> None:
    """One line a pair, and the next command under those that need one. size: the width of names."""
    for each in found:
        colour = "green" if each.exit_code == 0 else "yellow"
        word = paint(f"{each.word:<18}", "green" if colour == "green" else "yellow")
        say(f"{each.pair:<{size}}  {word}  {_when(each)}   {number(each.counts.get('pending', 0))} pending"
            f"{_parked(each)}{_oldest(each)}")  # fmt: skip
        for error in [*systems_text.lines(each), *schedules_text.lines(each), *_windows(each), *each.errors]:
            say(cut(f"{' ' * size}  {error}", width()))
        if each.next_command is not None:
            say(f"{' ' * size}  → {each.next_command}")
        for line in conditions_text.lines(each.conditions, each.now_us, each.next_command):
            say(cut(f"{' ' * size}  {line}", width()))


def _windows(each: Status) -> Iterator[str]:
    if (windows := each.windows) is not None:
        waiting = windows.waiting
        more = f" and {number(len(waiting) - 1)} more" if len(waiting) > 1 else ""
        closed = f", {waiting[0]}{more} closed and not sealed" if waiting else ""
        left = duration_text(max(windows.closes_us - each.now_us, 0))
        yield f"windows: {number(windows.sealed)} sealed{closed}; {windows.current} closes in {left}"


def _when(each: Status) -> str:
    if each.last_run is None:
        return "never run"
    ended = each.last_run.ended_us or each.last_run.started_us
    return f"last run {duration_text(max(each.now_us - ended, 0))} ago"


def _parked(each: Status) -> str:
    return f"   {number(each.counts['parked'])} parked" if each.counts.get("parked") else ""


def _oldest(each: Status) -> str:
    if each.oldest_case_us is None:
        return ""
    return f"   oldest case {duration_text(max(each.now_us - each.oldest_case_us, 0))}"


def show_story(story: Story) -> None:
    """What happened to a record, oldest first, and both sides as they are."""
    for at_us, what, detail in story.events:
        say(cut(f"{clock(at_us)}  {what:<9} {detail}", width()))
    if not story.events and not story.cases:
        say(f"nothing is known of {story.key} of {story.pair}: no event, no job, no comparison that differed")
    for case in story.cases:
        closed = "open" if case.closed_us is None else f"closed {clock(case.closed_us)}: {case.closed}"
        look = f" → trueup review show {case.number}" if case.closed_us is None else ""
        say(f"case {case.number}  {case.drift}, opened {clock(case.opened_us)}, {closed}{look}")
    if story.last_error:
        say(f"last error: {story.last_error}")
    for line in _now(story):
        say(cut(line, width()))


def _now(story: Story) -> Iterator[str]:
    until = f", verified until {clock(story.verified_until_us)}" if 0 < story.verified_until_us < 2**62 else ""
    if story.agree is None:
        yield f"now: {story.state}{until}; the authority {_holds(story.authority)}"
    elif story.agree:
        yield f"now: {paint('agrees at both sides', 'green')}{until}"
    else:
        yield f"now: {paint('the sides differ', 'yellow')}; the record is {story.state}"
        if story.authority is None or story.replica is None:
            yield f"     the authority {_holds(story.authority)}, the replica {_holds(story.replica)}"
        for name in story.differing if story.authority and story.replica else ():
            yield "     " + _change(name, (story.authority or {}).get(name), (story.replica or {}).get(name))


def _holds(values: Mapping[str, str | None] | None) -> str:
    return "has it" if values is not None else "does not have it"
