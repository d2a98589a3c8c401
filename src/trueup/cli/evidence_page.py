"""The page that an auditor reads: what was compared, when, by which rules, what differed, what was done, what is open.

It needs no program to be read and nothing from elsewhere, and it prints. What each pair did is in
`trueup.cli.evidence_pair`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trueup.cli.evidence_pair import GROUP_MAX, Period, drift_said, keys_said, pair_part, settled, time_said
from trueup.cli.evidence_text import assurance
from trueup.cli.html import STYLE, Html, Part, document, joined, table, tag
from trueup.engine.account import Account, all_entries
from trueup.engine.evidence import program_version

if TYPE_CHECKING:
    from trueup.engine.account import Proof, RunAccount
    from trueup.model.evidence import Entry
    from trueup.ports import Archive

__all__ = ["Period", "page", "page_of"]


def page_of(archive: Archive, pairs: Sequence[str] | None, proof: Proof, period: Period) -> str:
    """The page of what a store has on record of these pairs, or of all."""
    entries: dict[str, list[Entry]] = {}
    for entry in all_entries(archive, pairs):
        if entry.fact.pair:  # what stands for entries that were cut is told by the proof
            entries.setdefault(entry.fact.pair, []).append(entry)
    return page([Account(name, mine) for name, mine in sorted(entries.items())], proof, period)


def page(accounts: Sequence[Account], proof: Proof, period: Period) -> str:
    """The whole page. Times are UTC."""
    title = "Account of reconciliation"
    span = f"{time_said(period.since_us) or 'the beginning'} to {time_said(period.until_us) or 'now'}"
    pairs = ", ".join(each.pair for each in accounts) or "no pair"
    return document(
        title,
        STYLE,
        tag("h1", title),
        tag("p", f"Of {pairs}: what was put on record from {span}.", class_="quiet"),
        tag(
            "p", f"Written {time_said(period.at_us)} by trueup {program_version()}. All times are UTC.", class_="quiet"
        ),
        _was_it_altered(proof),
        _in_short(accounts, period),
        _open(accounts),
        *(pair_part(account, period) for account in accounts),
        _how_to_check(proof),
    )


# ── what comes first ─────────────────────────────────────────────────────────────────────────────────


def _was_it_altered(proof: Proof) -> Html:
    chain = proof.chain
    if proof.holds:
        verdict = tag("p", tag("span", "Nothing was altered or removed, as far as this can be seen.", class_="good"))
    else:
        verdict = tag("p", tag("span", "The record is not as it was written.", class_="bad"))
    wrong = [tag("li", each.said) for each in chain.findings]
    wrong += [tag("li", f"{kind} {about} of {pair} has no entry") for kind, pair, about in proof.unrecorded]
    unread = [tag("li", f"{each.place} could not be asked: {each.error}") for each in proof.places if each.error]
    return tag(
        "div",
        tag("strong", "Was anything altered since?"),
        verdict,
        tag("ul", *wrong, *unread) if wrong or unread else None,
        tag("p", f"{chain.entries:,} entries were checked, the last is number {chain.head.number}. {assurance(proof)}"),
        class_="box" if proof.holds else "box bad",
    )


def _in_short(accounts: Sequence[Account], period: Period) -> Html:
    """A line for each pair: how much was looked at, what came of what differed, and who decided."""
    rows: list[list[Part]] = []
    for account in accounts:
        runs = [run for run in account.runs if period.holds(run.entry)]
        compared = [run for run in runs if run.body.get("roots")]
        last = compared[-1].body["counts"] if compared else {}
        ends = settled(runs)
        decided = [body for entry, body in account.decisions if period.holds(entry)]
        people = Counter(body["person"] for body in decided)
        rows.append(
            [
                account.pair,
                f"{len(runs):,} runs, {len(compared):,} of them compared everything, or whole windows",
                f"{last.get('left', 0):,} ↔ {last.get('right', 0):,}" if compared else "nothing",
                tag("ul", *(tag("li", f"{count:,} {said}") for said, count in ends.items())) if ends else "nothing",
                ", ".join(f"{person} ({count:,})" for person, count in people.most_common()) or "nobody",
            ]
        )
    heads = ["pair", "looked at", "at the last comparison", "differences, and what came of them", "decisions by"]
    return joined(tag("h2", "In short", class_="first"), table(heads, rows) if rows else tag("p", "Nothing."))


def _open(accounts: Sequence[Account]) -> Html:
    groups: dict[tuple[str, str, str], list[tuple[RunAccount, dict[str, Any]]]] = {}
    for account in accounts:
        for run, item, outcome in account.open:
            groups.setdefault((account.pair, str(item["drift"]), outcome.said), []).append((run, item))
        for run, case in account.waiting:
            groups.setdefault((account.pair, str(case["drift"]), "waits for a person"), []).append((run, case))
    if not groups:
        return tag("div", tag("strong", "Is anything still open? "), "Nothing is, by what is on record.", class_="box")
    rows: list[list[Part]] = []
    for (pair, drift, said), found in groups.items():
        runs = sorted({run.body["run"] for run, _ in found})
        first = f"run {runs[0]}" if len(runs) == 1 else f"runs {runs[0]} to {runs[-1]}"
        keys = keys_said([item["key"] or ["the pair"] for _, item in found], GROUP_MAX)
        rows.append([pair, drift_said(drift), len(found), keys, first, said])
    many = sum(len(found) for found in groups.values())
    return tag(
        "div",
        tag("strong", f"Is anything still open? Yes, by what is on record: {many:,}"),
        table(["pair", "what differs", "how many", "records", "seen by", "what is known"], rows, {2}, {0, 4}),
        class_="box bad",
    )


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
        tag("p", "A value that is redacted is told by a hash. Of a record that differs, the replica's values are those "
            "before a repair.", class_="quiet"),
    )  # fmt: skip
