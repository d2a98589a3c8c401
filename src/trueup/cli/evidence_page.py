"""The page that an auditor reads: what was compared, when, by which rules, what differed, what was done, what is open.

It needs no program to be read and nothing from elsewhere, and it prints.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trueup.cli.evidence_text import assurance
from trueup.cli.html import STYLE, Html, Part, document, joined, table, tag
from trueup.engine.asking import CAUSES
from trueup.engine.evidence import program_version
from trueup.model.drift import Drift

if TYPE_CHECKING:
    from trueup.engine.account import Account, Outcome, Proof, RunAccount
    from trueup.model.evidence import Entry

# Rows of one table; the rest is in the JSON lines.
ROWS_MAX: Final = 1_000
# What is more is no duration, but a time.
_TIMES_FROM_US: Final = 10 * 365 * 86_400_000_000
_ENDINGS: Final = {
    "agreed": "agreed later", "accepted": "accepted", "decided": "decided", "again": "found again",
    "repaired": "repair given", "open": "open", "dropped": "not wanted", "overtaken": "left to a later run",
}  # fmt: skip


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


def page(accounts: Sequence[Account], proof: Proof, period: Period) -> str:
    """The whole page. Times are UTC."""
    title = "Account of reconciliation"
    span = f"{_time(period.since_us) or 'the beginning'} to {_time(period.until_us) or 'now'}"
    return document(
        title,
        STYLE,
        tag("h1", title),
        tag("p", f"{', '.join(each.pair for each in accounts) or 'no pair'}. On record from {span}.", class_="quiet"),
        tag("p", f"Written {_time(period.at_us)} by trueup {program_version()}. All times are UTC.", class_="quiet"),
        _was_it_altered(proof),
        _open(accounts),
        *(_pair(account, period) for account in accounts),
        _how_to_check(proof),
    )


# ── the two answers that come first ──────────────────────────────────────────────────────────────────


def _was_it_altered(proof: Proof) -> Html:
    chain = proof.chain
    if proof.holds:
        verdict = tag("p", tag("span", "Nothing was altered or removed, as far as this can be seen.", class_="good"))
    else:
        verdict = tag("p", tag("span", "The record is not as it was written.", class_="bad"))
    wrong = [tag("li", each.said) for each in chain.findings]
    wrong += [tag("li", f"{kind} {about} of {pair} has no entry") for kind, pair, about in proof.unrecorded]
    return tag(
        "div",
        tag("strong", "Was anything altered since?"),
        verdict,
        tag("ul", *wrong) if wrong else None,
        tag("p", f"{chain.entries:,} entries were checked, the last is number {chain.head.number}. {assurance(proof)}"),
        class_="box" if proof.holds else "box bad",
    )


def _open(accounts: Sequence[Account]) -> Html:
    rows: list[list[Part]] = [
        [account.pair, _key(item["key"]), _drift(item["drift"]), f"run {run.body['run']}", outcome.said]
        for account in accounts
        for run, item, outcome in account.open
    ]
    if not rows:
        return tag("div", tag("strong", "Is anything still open? "), "Nothing is, by what is on record.", class_="box")
    return tag(
        "div",
        tag("strong", f"Still open, by what is on record: {len(rows):,}"),
        table(["pair", "record", "what differs", "found by", "what is known"], rows),
        class_="box bad",
    )


# ── a pair ───────────────────────────────────────────────────────────────────────────────────────────


def _pair(account: Account, period: Period) -> Html:
    runs = [run for run in account.runs if period.holds(run.entry)]
    decisions = [(entry, body) for entry, body in account.decisions if period.holds(entry)]
    return joined(
        tag("h2", f"Pair {account.pair}"),
        _rules(runs),
        tag("h3", "What was compared, and when"),
        _runs(runs) if runs else tag("p", "No run ended in this period."),
        *(_details(run) for run in runs if run.items or run.body.get("totals")),
        tag("h3", "What people decided"),
        _decisions(decisions) if decisions else tag("p", "No decision was made in this period."),
    )


def _runs(runs: Sequence[RunAccount]) -> Html:
    rows: list[list[Part]] = []
    for run in runs:
        body, counts = run.body, run.body["counts"]
        windows = [str(name) for name, _, _ in (body.get("scope") or {}).get("windows") or ()]
        scope = f"windows {windows[0]} to {windows[-1]}" if windows else ""
        ended = body["ended"] if body["error"] is None else f"{body['ended']}: {body['error']}"
        rows.append(
            [
                str(body["run"]), _time(run.entry.at_us), f"{body['what']} {scope}".strip(), _time(body["cutoff_us"]),
                counts.get("left", 0), counts.get("right", 0), counts.get("same", 0),
                (body.get("plan") or {}).get("records", 0), ended,
            ]
        )  # fmt: skip
    heads = ["run", "on record", "what", "judged up to", "authority", "replica", "agree", "differ", "ended"]
    return table(heads, rows, numbers={0, 4, 5, 6, 7})


def _details(run: RunAccount) -> Html:
    body = run.body
    return joined(
        tag("h3", f"Run {body['run']}, {_time(run.entry.at_us)}"),
        _inputs(body.get("inputs") or {}),
        _totals(body.get("totals") or []),
        _items(run) if run.items else tag("p", "No record differed."),
    )


def _inputs(inputs: dict[str, Any]) -> Html | None:
    rows: list[list[Part]] = []
    for role, found in sorted(inputs.items()):
        for each in found.get("files", ()):
            content = joined("SHA-256 ", tag("code", each["sha256"]))
            rows.append([role, f"{each['name']}, {each['bytes']:,} bytes, of {_time(each['changed_us'])}", content])
        if "clock_us" in found or "snapshot" in found:
            said = f"snapshot {found['snapshot']}; not kept" if "snapshot" in found else "not kept"
            rows.append([role, f"read at {_time(found.get('clock_us'))} by its own clock", said])
    return table(["side", "what was read", ""], rows) if rows else None


def _totals(totals: Sequence[dict[str, Any]]) -> Html | None:
    rows: list[list[Part]] = []
    for each in totals:
        sides = [each.get("authority", "0"), each.get("replica", "0")]
        left_out = [f"{each[name]:,} not added" for name in ("authority_unadded", "replica_unadded") if name in each]
        word = tag("span", "equal", class_="good") if sides[0] == sides[1] else tag("span", "differ", class_="bad")
        rows.append([f"{each['amount']} {each['currency'] or ''}", *sides, joined(word, " ", ", ".join(left_out))])
    return table(["control total", "authority", "replica", ""], rows, numbers={1, 2}) if rows else None


def _items(run: RunAccount) -> Html:
    rows: list[list[Part]] = []
    for item, outcome in run.items[:ROWS_MAX]:
        lists = [
            tag("ul", *(tag("li", f"{name}: ", _value(sides[at])) for name, sides in item["fields"].items()))
            if item[f"{role}_has"]
            else "no such record"
            for at, role in enumerate(("authority", "replica"))
        ]
        rows.append([_key(item["key"]), _drift(item["drift"]), *lists, _done(item), _outcome(outcome)])
    left_out = len(run.items) - len(rows) + run.body.get("items_left_out", 0)
    heads = ["record", "what differs", "authority", "replica, as it was before", "what the run did", "what came of it"]
    return joined(
        table(heads, rows),
        tag("p", f"… and {left_out:,} more, in the plan and in the JSON lines.", class_="quiet") if left_out else None,
    )


def _done(item: dict[str, Any]) -> str:
    what = "remove it at the replica" if item["removes"] else "write the authority's version to the replica"
    return {
        "planned": "nothing: it only reported", "held": f"held: {what}", "offered": f"repair: {what}",
        "asked": "asked a person", "accepted": "nothing: accepted", "overtaken": "nothing: it had moved",
        "dropped": f"not wanted: {what}",
    }[item["state"]]  # fmt: skip


def _outcome(outcome: Outcome) -> Html:
    style = "bad" if outcome.ended == "open" else "good" if outcome.ended in ("agreed", "decided", "accepted") else None
    where = f" (entry {outcome.entry})" if outcome.entry else ""
    return joined(tag("span", _ENDINGS[outcome.ended], class_=style), f": {outcome.said}{where}")


def _decisions(decisions: Sequence[tuple[Entry, dict[str, Any]]]) -> Html:
    rows: list[list[Part]] = []
    for entry, body in decisions:
        proposed = "".join(f", proposed by {each['person']}" for each in body["proposed"])
        until = f" until {_time(body['until_us'] - 1)}" if body["until_us"] else ""
        of = _key(body["key"]) if body["authority_has"] or body["replica_has"] else "the pair"
        came = f"{body['ended']}: {body['note']}" if body["note"] else body["ended"]
        rows.append(
            [
                str(entry.number), _time(entry.at_us), str(body["case"]), of, _drift(body["drift"]),
                f"{body['choice']}{until}", f"{body['person']}{proposed}", body["reason"], came,
            ]
        )  # fmt: skip
    heads = ["entry", "on record", "case", "record", "what differed", "decision", "by", "reason", "what came of it"]
    return table(heads, rows, numbers={0, 2})


# ── rules ────────────────────────────────────────────────────────────────────────────────────────────


def _rules(runs: Sequence[RunAccount]) -> Html | None:
    """The rules of the last run, and since which run they are so; others before are told by their digests."""
    known = [run for run in runs if run.body.get("rules")]
    if not known:
        return None
    rules, program = known[-1].body["rules"], known[-1].body["program"]
    declared = rules["declared"]
    rows: list[list[Part]] = [
        [name.removesuffix("_us"), _declared(each, name)] for name, each in _told(rules, declared)
    ]
    changes = []
    for before, run in zip([None, *known], known, strict=False):
        if before is not None and before.body["rules"]["digest"] != run.body["rules"]["digest"]:
            changes.append(f"run {run.body['run']} was the first by other rules than run {before.body['run']}")
    return joined(
        tag("h3", "By which rules"),
        tag("p", f"Rules of run {known[-1].body['run']}, by {program['name']} {program['version']}. Digest ",
            tag("code", rules["digest"])),
        tag("p", "The rules changed in this period: " + "; ".join(changes) + ".", class_="bad") if changes else None,
        table(["rule", "declared"], rows),
    )  # fmt: skip


def _told(rules: dict[str, Any], declared: dict[str, Any]) -> list[tuple[str, Any]]:
    """Rules in the words of a reader, and whatever else was declared."""
    compared = "; ".join(
        f"{name} ({kind})" + "".join(f", {rule} {value}" for rule, value in more.items())
        for name, kind, more in rules["compared"]
    )
    told = [
        ("the side that is right (authority)", declared["authority"]),
        ("the other side (replica)", declared["replica"]),
        ("records are the same where equal", declared["key"]),
        ("fields compared", compared),
        ("what is done, by what is found", declared["verdicts"]),
    ]
    passed = {"name", "authority", "replica", "key", "fields", "verdicts", "on_drift"}
    rest = [(name, each) for name, each in declared.items() if name not in passed and each not in (None, [], {}, False)]
    return told + rest


def _declared(value: Any, name: str = "") -> str:
    match value:
        case dict():
            told = {each: _declared(of, each) for each, of in value.items() if of not in (None, [], "")}
            return "; ".join(f"{each.removesuffix('_us')}: {text}" for each, text in told.items())
        case int() if name.endswith("_us") and not isinstance(value, bool):
            return _time(value) if value > _TIMES_FROM_US else f"{value / 1e6:,g} s"
        case list():
            return ", ".join(_declared(each) for each in value)
    return "none" if value is None else str(value)


def _how_to_check(proof: Proof) -> Html:
    head = proof.chain.head
    return joined(
        tag("h2", "How to check this page"),
        tag("p", "Every run and every decision left one entry. Each entry carries the SHA-256 of the entry before it, "
            "so that whoever alters one must alter all that follow. Who can write the whole store can do that; only a "
            "copy of an entry's digest that was kept elsewhere, an anchor, shows it."),
        tag("p", f"This page was written from {proof.chain.entries:,} entries. The digest of entry {head.number} is ",
            tag("code", head.digest), "."),
        tag("ul",
            tag("li", tag("code", "trueup evidence verify --anchors FILE"), " checks the chain in the store."),
            tag("li", tag("code", "trueup evidence export"), " writes it as JSON lines, which need no program of ours "
                "to be checked."),
            tag("li", tag("code", "trueup evidence replay RUN"), " performs a comparison again from kept files.")),
        tag("p", "A value that is redacted is told by a hash. Of a key that differs, the replica's values are those "
            "before a repair.", class_="quiet"),
    )  # fmt: skip


# ── pieces ───────────────────────────────────────────────────────────────────────────────────────────


def _key(parts: Sequence[Any]) -> Html:
    return joined(*(part for at, each in enumerate(parts) for part in ([", "] if at else []) + [_value(each)]))


def _value(shown: Any) -> Part:
    match shown:
        case None:
            return tag("span", "null", class_="quiet")
        case {"redacted": hash_}:
            return joined(tag("span", "redacted ", class_="quiet"), tag("code", hash_))
        case {"long": hash_, "characters": many}:
            return joined(tag("span", f"{many:,} characters, hash ", class_="quiet"), tag("code", hash_))
        case "":
            return tag("span", "empty", class_="quiet")
    return str(shown)


def _drift(name: str) -> str:
    cause = CAUSES.get(Drift(name)) if name in set(Drift) else None
    return f"{name}: {cause}" if cause else name


def _time(us: int | None) -> str:
    return "" if us is None else f"{dt.datetime.fromtimestamp(us // 1_000_000, dt.UTC):%Y-%m-%d %H:%M:%S}"
