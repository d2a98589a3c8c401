"""One pair on the auditor's page: its rules, its comparisons, what differed and what came of it, and decisions."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from trueup.cli.evidence_rules import rules_part
from trueup.cli.html import Html, Part, joined, table, tag
from trueup.engine.asking import CAUSES
from trueup.errors import MovedOn
from trueup.model.drift import Drift

if TYPE_CHECKING:
    from trueup.engine.account import Account, Outcome, RunAccount
    from trueup.model.evidence import Entry

# Of differences that are alike, so many stand with values, and so many more by their keys. All are in the JSON lines.
ROWS_MAX: Final = 20
GROUP_MAX: Final = 100
_ENDINGS: Final = {
    "agreed": "found equal later", "accepted": "accepted", "decided": "decided by a person", "again": "found again",
    "repaired": "repaired", "given": "repair given", "open": "open", "dropped": "not wanted",
    "overtaken": "moved, and left to a later run",
}  # fmt: skip
_WHAT: Final = {
    "adopt": "first comparison, a baseline", "report": "comparison without repairs", "run": "sweep and comparison",
    "compare": "comparison of everything", "changed": "comparison of what changed", "sweep": "sweep",
}  # fmt: skip
_QUESTIONS: Final = {
    "held": "a plan that was too large to be carried out unasked", "regressed": "versions of the authority went back",
}  # fmt: skip
_CHOICES: Final = {
    "take-authority": "write the authority's version", "take-replica": "write the replica's version",
    "approve-plan": "carry out what of the plan is still true", "ignore-once": "leave it this time",
}  # fmt: skip
_SETTLED: Final = ("agreed", "repaired", "decided", "accepted")


@dataclass(frozen=True, slots=True)
class Period:
    """Which entries stand in the page, by when they were put on record; None for no bound. at_us: of the page."""

    since_us: int | None
    until_us: int | None
    at_us: int

    def holds(self, entry: Entry) -> bool:
        """Whether the entry lies in the period."""
        return (self.since_us is None or entry.at_us >= self.since_us) and (
            self.until_us is None or entry.at_us < self.until_us
        )


def pair_part(account: Account, period: Period) -> Html:
    """Everything about one pair."""
    runs = [run for run in account.runs if period.holds(run.entry)]
    decisions = [(entry, body) for entry, body in account.decisions if period.holds(entry)]
    singly = [run for run in runs if _stands_alone(run)]
    return joined(
        tag("h2", f"Pair {account.pair}"),
        rules_part([run.body for run in runs]),
        tag("h3", "What was compared, and when"),
        _comparisons(singly) if singly else tag("p", "No comparison ended in this period."),
        _days([run for run in runs if not _stands_alone(run)]),
        *(_details(run) for run in singly if run.items or run.body.get("totals")),
        tag("h3", "What people decided"),
        _decisions(decisions) if decisions else tag("p", "No decision was made in this period."),
    )


def settled(runs: Sequence[RunAccount]) -> dict[str, int]:
    """How many differences ended how, each counted where it was found last; the most frequent end first."""
    ends = Counter(_ENDINGS[outcome.ended] for run in runs for _, outcome in run.items if outcome.ended != "again")
    left_out = sum(run.body.get("items_left_out", 0) for run in runs)
    return dict(ends.most_common()) | ({"only in plans, too many for the entries": left_out} if left_out else {})


# ── runs ─────────────────────────────────────────────────────────────────────────────────────────────


def _stands_alone(run: RunAccount) -> bool:
    """Whether a run is told by itself: it compared everything, or windows, or found something."""
    return bool(run.body.get("roots") or run.items or (run.body.get("scope") or {}).get("windows"))


def _comparisons(runs: Sequence[RunAccount]) -> Html:
    rows: list[list[Part]] = []
    for run in runs:
        body, counts = run.body, run.body["counts"]
        windows = [str(name) for name, _, _ in (body.get("scope") or {}).get("windows") or ()]
        what = _WHAT.get(body["what"], body["what"])
        what = f"{what}, windows {windows[0]} to {windows[-1]}" if windows else what
        rows.append(
            [
                str(body["run"]), minute_said(body["started_us"]), what, minute_said(body["cutoff_us"]),
                counts.get("left", 0), counts.get("right", 0), counts.get("same", 0),
                (body.get("plan") or {}).get("records", 0), _ended(body),
            ]
        )  # fmt: skip
    heads = ["run", "began", "what", "judged up to", "authority", "replica", "agree", "differ", "ended"]
    return table(heads, rows, numbers={0, 4, 5, 6, 7}, whole={1, 3})


def _days(runs: Sequence[RunAccount]) -> Html | None:
    """Runs that only looked for what changed, and found no difference, a line for each day."""
    rows: list[list[Part]] = []
    for day, several in groupby(runs, key=lambda run: time_said(run.body["started_us"])[:10]):
        bodies = [run.body for run in several]
        what = Counter(_WHAT.get(body["what"], body["what"]) for body in bodies)
        ends = Counter(_ended(body) for body in bodies)
        changed = sum(body["counts"].get("changed", 0) for body in bodies)
        rows.append(
            [
                day, "; ".join(f"{count:,} × {each}" for each, count in what.most_common()), changed,
                "; ".join(f"{count:,} {each}" for each, count in ends.most_common()),
            ]
        )  # fmt: skip
    if not rows:
        return None
    return joined(
        tag("p", "Runs that looked for what changed since the one before, and found no difference:", class_="quiet"),
        table(["day", "runs", "records seen to change", "ended"], rows, {2}, {0}),
    )


def _ended(body: dict[str, Any]) -> str:
    return str(body["ended"] if body["error"] is None else f"{body['ended']}: {body['error']}")


def _details(run: RunAccount) -> Html:
    body = run.body
    what = _WHAT.get(body["what"], body["what"])
    return joined(
        tag("h3", f"Run {body['run']}, {minute_said(body['started_us'])}: {what} (entry {run.entry.number})"),
        _inputs(body.get("inputs") or {}),
        _totals(body.get("totals") or []),
        _differences(run) if run.items else tag("p", "No record differed."),
    )


def _inputs(inputs: dict[str, Any]) -> Html | None:
    rows: list[list[Part]] = []
    for role, found in sorted(inputs.items()):
        for each in found.get("files", ()):
            content = joined("SHA-256 ", tag("code", each["sha256"]))
            rows.append([role, f"{each['name']}, {each['bytes']:,} bytes, of {time_said(each['changed_us'])}", content])
        if "clock_us" in found or "snapshot" in found:
            said = f"no; snapshot {found['snapshot']}" if "snapshot" in found else "no"
            rows.append([role, f"read at {time_said(found.get('clock_us'))} by its own clock", said])
    return table(["side", "what was read", "kept, to compare again"], rows) if rows else None


def _totals(totals: Sequence[dict[str, Any]]) -> Html | None:
    rows: list[list[Part]] = []
    for each in totals:
        sides = [each.get("authority", "0"), each.get("replica", "0")]
        left_out = [f"{each[name]:,} not added" for name in ("authority_unadded", "replica_unadded") if name in each]
        word = tag("span", "equal", class_="good") if sides[0] == sides[1] else tag("span", "differ", class_="bad")
        rows.append([f"{each['amount']} {each['currency'] or ''}", *sides, joined(word, " ", ", ".join(left_out))])
    return table(["control total", "authority", "replica", ""], rows, numbers={1, 2}) if rows else None


# ── differences ──────────────────────────────────────────────────────────────────────────────────────


def _differences(run: RunAccount) -> Html:
    """Those of one cause, treatment and end together; values stand where a difference was found last."""
    groups: dict[tuple[str, str, str], list[tuple[dict[str, Any], Outcome]]] = {}
    for item, outcome in run.items:
        groups.setdefault((item["drift"], _done(item), outcome.ended), []).append((item, outcome))
    parts = [_group(*kind, found) for kind, found in sorted(groups.items(), key=lambda each: each[0][2] == "again")]
    if left_out := run.body.get("items_left_out", 0):
        parts.append(tag("p", f"{left_out:,} more are in the run's plan alone.", class_="quiet"))
    return joined(*parts)


def _group(drift: str, done: str, ended: str, found: Sequence[tuple[dict[str, Any], Outcome]]) -> Html:
    many = "1 record" if len(found) == 1 else f"{len(found):,} records"
    style = "bad" if ended == "open" else "good" if ended in _SETTLED else None
    head = tag(
        "p",
        tag("strong", f"{many}, {drift_said(drift)}. "),
        f"The run did this: {done}. What came of it: ",
        tag("span", _ENDINGS[ended], class_=style),
        ".",
    )
    if ended == "again":
        keys = keys_said([item["key"] for item, _ in found], GROUP_MAX)
        return joined(head, tag("p", "They stand at the run that found them last: ", keys, class_="quiet"))
    rows: list[list[Part]] = [
        [_key(item["key"]), _side(item, 0), _side(item, 1), _outcome(outcome)] for item, outcome in found[:ROWS_MAX]
    ]
    rest = [item["key"] for item, _ in found[ROWS_MAX:]]
    return joined(
        head,
        table(["record", "authority", "replica, as it was before", "what came of it"], rows, whole={0}),
        tag("p", f"And {len(rest):,} more: ", keys_said(rest, GROUP_MAX), class_="quiet") if rest else None,
    )


def _side(item: dict[str, Any], at: int) -> Part:
    if not item["authority_has" if at == 0 else "replica_has"]:
        return "no such record"
    return tag("ul", *(tag("li", f"{name}: ", _value(sides[at])) for name, sides in item["fields"].items()))


def _done(item: dict[str, Any]) -> str:
    what = "remove it at the replica" if item["removes"] else "write the authority's version to the replica"
    return {
        "planned": "nothing, it only reported", "held": f"it held a plan for a person ({what})",
        "offered": f"it ordered a repair ({what})", "asked": "it asked a person",
        "accepted": "nothing, a person had accepted it", "overtaken": "nothing, the record had moved meanwhile",
        "dropped": f"nothing, it was not wanted ({what})",
    }[item["state"]]  # fmt: skip


def _outcome(outcome: Outcome) -> str:
    return outcome.said + (f" (entry {outcome.entry})" if outcome.entry else "")


def _decisions(decisions: Sequence[tuple[Entry, dict[str, Any]]]) -> Html:
    rows: list[list[Part]] = []
    for entry, body in decisions:
        proposed = "".join(f", proposed by {each['person']}" for each in body["proposed"])
        until = f" until {time_said(body['until_us'] - 1)[:10]}" if body["until_us"] else ""
        of = _key(body["key"]) if body["authority_has"] or body["replica_has"] else "the pair"
        note = "a side had moved since it was looked at" if body["note"] == MovedOn.__name__ else body["note"]
        came = f"{body['ended']}: {note}" if note else body["ended"]
        rows.append(
            [
                str(entry.number), minute_said(entry.at_us), str(body["case"]), of, drift_said(body["drift"]),
                f"{_CHOICES.get(body['choice'], body['choice'])}{until}", f"{body['person']}{proposed}",
                body["reason"], came,
            ]
        )  # fmt: skip
    heads = ["entry", "on record", "case", "record", "what differed", "decision", "by", "reason", "what came of it"]
    return table(heads, rows, numbers={0, 2}, whole={1, 3, 6})


# ── pieces ───────────────────────────────────────────────────────────────────────────────────────────


def keys_said(keys: Sequence[Any], most: int) -> Html:
    """Keys one behind the other, the first of them."""
    shown: list[Part] = [_key(key) for key in keys[:most]]
    parts: list[Part] = [part for at, key in enumerate(shown) for part in ([" · ", key] if at else [key])]
    return joined(*parts, f" … and {len(keys) - most:,} more" if len(keys) > most else None)


def drift_said(name: str) -> str:
    """A kind of difference, or of another question, with what it means."""
    cause = CAUSES.get(Drift(name)) if name in set(Drift) else _QUESTIONS.get(name)
    return f"{name}: {cause}" if cause else name


def time_said(us: int | None) -> str:
    """A time to the second; nothing where there is none."""
    return "" if us is None else f"{dt.datetime.fromtimestamp(us // 1_000_000, dt.UTC):%Y-%m-%d %H:%M:%S}"


def minute_said(us: int | None) -> str:
    """A time to the minute."""
    return time_said(us)[:16]


def _key(parts: Sequence[Any]) -> Html:
    return joined(*(part for at, each in enumerate(parts) for part in ([", "] if at else []) + [_value(each)]))


def _value(shown: Any) -> Part:
    match shown:
        case None:
            return tag("span", "null", class_="quiet")
        case {"redacted": hash_}:
            return joined(tag("span", "redacted ", class_="quiet"), tag("code", f"{hash_[:12]}…"))
        case {"long": hash_, "characters": many}:
            return joined(tag("span", f"{many:,} characters, hash ", class_="quiet"), tag("code", hash_))
        case "":
            return tag("span", "empty", class_="quiet")
    return str(shown)
