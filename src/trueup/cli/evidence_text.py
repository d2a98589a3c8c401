"""Evidence for people at a terminal and as JSON: entries, whether they hold, and comparisons performed again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trueup.cli.terminal import clock, counted, cut, number, paint, say, value, width
from trueup.model.moment import moment_text

if TYPE_CHECKING:
    from trueup.engine.account import Proof
    from trueup.engine.replay import Replay
    from trueup.model.anchor import Anchored
    from trueup.model.evidence import Entry, Head

DIGEST_SHOWN = 16


def show_entries(entries: Sequence[Entry], head: Head) -> None:
    """A line for each entry, and the next command."""
    if not entries:
        say("no evidence yet: every run and every decision leaves an entry")
        return
    digits, pairs = len(str(entries[0].number)), max(len(each.fact.pair) for each in entries)
    for each in entries:
        line = f"{each.number:>{digits}}  {clock(each.at_us)}  {each.fact.pair:<{pairs}}  {said(each)}"
        say(cut(line, width()))
    left = head.number - len(entries)
    if left > 0:
        say(paint(f"{counted(head.number, 'entry', 'entries')} in all", "dim"))
    say(f"next: trueup evidence show {entries[0].number}, or trueup evidence verify")


def said(entry: Entry) -> str:
    """An entry in one line."""
    if not entry.holds:
        return paint("not as it was written", "red")
    body = entry.fact.read()
    if entry.fact.kind == "run":
        return f"run {body['run']}: {said_of_run(body)}"
    if entry.fact.kind == "jobs":
        ends = ", ".join(f"{number(count)} {ended}" for ended, count in sorted(body["ended"].items()))
        return f"repairs of run {body['run']}: {ends}"
    if entry.fact.kind == "cut":
        return f"entries up to {body['last']} were cut, of {clock(body['from_us'])} to {clock(body['to_us'])}"
    of = value(",".join(str(part) for part in body["key"])) if body["fields"] else body["drift"]
    return f"case {body['case']} ({of}): {body['choice']} by {body['person']}, {body['ended']}: {body['reason']}"


def said_of_run(body: dict[str, Any]) -> str:
    """What a run did, in a line."""
    counts = body["counts"]
    parts = [body["what"], body["ended"] if body["error"] is None else f"{body['ended']}: {body['error']}"]
    if "left" in counts or "right" in counts:
        parts.append(f"{number(counts.get('left', 0))} ↔ {number(counts.get('right', 0))}")
    if drifts := (body.get("plan") or {}).get("records"):
        parts.append(counted(drifts, "drift"))
    parts += [f"{number(counts[name])} {name}" for name in ("repair", "review", "held") if counts.get(name)]
    return ", ".join(parts)


def show_entry(entry: Entry) -> None:
    """One entry: its place in the chain, and its body."""
    import json  # noqa: PLC0415

    fact = entry.fact
    say(f"entry {entry.number}, {clock(entry.at_us)}, pair {fact.pair}: {said(entry)}")
    say(f"behind  {entry.previous}")
    say(f"digest  {entry.digest}")
    say(json.dumps(fact.read(), indent=2, sort_keys=True) if entry.holds else value(fact.body))


def show_proof(proof: Proof) -> None:
    """What is wrong, or how far it is proven that nothing is."""
    chain = proof.chain
    for finding in chain.findings:
        say(f"{paint('wrong', 'red')}    {finding.said} ({finding.wrong})")
    for kind, pair, about in proof.unrecorded:
        say(f"{paint('missing', 'red')}  {kind} {about} of {pair} ended without an entry")
    if chain.intact:
        plans = f", {counted(proof.plans, 'plan')} as they were put on record" if proof.plans else ""
        say(f"{paint('intact', 'green')}   {counted(chain.entries, 'entry', 'entries')}, each behind the other{plans}")
    for each in proof.places:
        if each.error is not None:
            say(f"{paint('could not', 'yellow')}  {each.place}: {each.error}")
    say(assurance(proof))
    if not proof.holds:
        say("next: compare with a backup of the state store, and find out who could write to it")


def assurance(proof: Proof) -> str:
    """How far an anchor vouches, and what was cut, in a few sentences."""
    chain = proof.chain
    if not chain.entries:
        return "There is no entry yet."
    gone = ""
    if chain.cut is not None:
        cut = chain.cut
        gone = (
            f" Entries 1 to {cut.last.number}, of {_day(cut.from_us)} to {_day(cut.to_us)}, were cut {_day(cut.at_us)} "
            f"by the declared retention; entry {cut.number} stands for them."
        )
    if chain.anchored:
        behind = chain.head.number - chain.anchored
        rest = f" The {counted(behind, 'entry', 'entries')} behind it stand for themselves." if behind else ""
        return f"Up to entry {chain.anchored} it is the chain that was anchored.{rest}{gone}"
    return (
        "No anchor was given: whoever can write the whole store could have written the whole chain anew, and this "
        f"would not show. Keep anchors elsewhere: trueup evidence anchor --to FILE{'.' if gone else ''}{gone}"
    )


def _day(us: int) -> str:
    return moment_text(us).partition(" ")[0]


def show_given(found: Sequence[Anchored], head: Head) -> None:
    """Which anchor each place has by now."""
    for each in found:
        if each.head == head:
            say(f"{each.name}: entry {head.number} is anchored")
        elif each.error:
            say(f"{paint('waits', 'yellow')}  {each.name}: {each.error}")
        else:
            say(f"{paint('waits', 'yellow')}  {each.name}: another process is at it")


def show_replay(found: Replay) -> None:
    """What came of performing a comparison again."""
    for each in found.obstacles:
        say(f"{paint('could not', 'yellow')}  {each}")
    for each in found.notes:
        say(f"{paint('note', 'yellow')}       {each}")
    for seen in found.seen:
        mark = paint("same", "green") if seen.same else paint("other", "red")
        shown = f"{_short(seen.now)}" if seen.same else f"then {_short(seen.then)}, now {_short(seen.now)}"
        say(cut(f"{mark}  {seen.what}: {shown}", width() + 9))
    word = "shows the same" if found.proven else "shows something else" if found.seen else "could not be performed"
    say(f"run {found.run}: its comparison {word}" + (" again" if found.proven else ""))


def _short(shown: Any) -> str:
    if isinstance(shown, dict) and "sum" in shown:
        return f"{shown['records']:,} records, {shown['sum'][:DIGEST_SHOWN]}…"
    if isinstance(shown, list):
        return (
            "; ".join(f"{each['amount']} {each.get('authority')} ↔ {each.get('replica')}" for each in shown) or "none"
        )
    return f"{shown:,}" if isinstance(shown, int) else str(shown)


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────────


def as_json(entry: Entry) -> dict[str, Any]:
    """An entry with its body as JSON. The digest is over the body's text: see `trueup evidence export`."""
    fact = entry.fact
    return {
        "number": entry.number, "kind": fact.kind, "pair": fact.pair, "about": fact.about, "at_us": entry.at_us,
        "body": fact.read() if entry.holds else fact.body, "previous": entry.previous, "digest": entry.digest,
        "holds": entry.holds,
    }  # fmt: skip


def head_json(head: Head) -> dict[str, Any]:
    """A head as JSON."""
    return {"number": head.number, "digest": head.digest}


def proof_json(proof: Proof) -> dict[str, Any]:
    """Whether evidence holds, as JSON."""
    chain = proof.chain
    return {
        "holds": proof.holds, "entries": chain.entries, "head": head_json(chain.head), "anchored": chain.anchored,
        "findings": [{"entry": each.number, "wrong": each.wrong, "said": each.said} for each in chain.findings],
        "unrecorded": [{"kind": kind, "pair": pair, "about": about} for kind, pair, about in proof.unrecorded],
        "plans": proof.plans, "cut": 0 if chain.cut is None else chain.cut.last.number,
        "places": [{"place": each.place, "anchors": len(each.heads), "error": each.error} for each in proof.places],
        "assurance": assurance(proof),
    }  # fmt: skip


def given_json(found: Sequence[Anchored], head: Head) -> dict[str, Any]:
    """The head, and which anchor each place has by now, as JSON."""
    places = [{"place": each.name, **head_json(each.head), "error": each.error or None} for each in found]
    return head_json(head) | ({"places": places} if places else {})


def replay_json(found: Replay) -> dict[str, Any]:
    """A comparison performed again, as JSON."""
    return {
        "run": found.run, "proven": found.proven, "obstacles": found.obstacles, "notes": found.notes,
        "seen": [{"what": each.what, "then": each.then, "now": each.now, "same": each.same} for each in found.seen],
    }  # fmt: skip
