"""By which rules a pair was compared, in the words of a reader."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from trueup.cli.html import Html, Part, joined, table, tag
from trueup.engine.asking import CAUSES
from trueup.model.drift import Drift
from trueup.model.duration import duration_text

# What is more is no duration, but a time.
_TIMES_FROM_US: Final = 10 * 365 * 86_400_000_000
# What is told in words, or stands elsewhere.
_APART: Final = {
    "name", "authority", "replica", "key", "fields", "verdicts", "on_drift", "settle_us", "stop_at", "totals", "redact",
    "two_person", "recheck_us", "jitter", "overlap_us",
}  # fmt: skip


def rules_part(bodies: Sequence[dict[str, Any]]) -> Html | None:
    """The rules of the last run, and at which runs they became others; those are told by their digests."""
    known = [body for body in bodies if body.get("rules")]
    if not known:
        return None
    last = known[-1]
    rules, program = last["rules"], last["program"]
    changes = [
        f"run {body['run']} was the first by other rules than run {before['run']}"
        for before, body in pairwise(known)
        if before["rules"]["digest"] != body["rules"]["digest"]
    ]
    said = "The rules changed in this period: " + "; ".join(changes) if changes else "They were the same for all runs"
    return joined(
        tag("h3", "By which rules"),
        tag("p", f"Rules of run {last['run']}, by {program['name']} {program['version']}. {said}.",
            class_="bad" if changes else None),
        table(["rule", "declared"], _told(rules)),
        _verdicts(rules["declared"]["verdicts"]),
        tag("p", "Digest of the rules: ", tag("code", rules["digest"]), class_="quiet"),
    )  # fmt: skip


def _told(rules: dict[str, Any]) -> list[list[Part]]:
    declared = rules["declared"]
    compared = [
        tag("li", f"{name} ({kind})" + "".join(f", {rule} {value}" for rule, value in more.items()))
        for name, kind, more in rules["compared"]
    ]
    rows: list[list[Part]] = [
        ["the side that is right (authority)", _side(declared["authority"])],
        ["the other side (replica)", _side(declared["replica"])],
        ["a record is known by", _plain(declared["key"])],
        ["fields compared", tag("ul", *compared) if compared else "none yet"],
        ["judged once it is quiet for", duration_text(declared.get("settle_us") or 0)],
        ["waits for a person, if a plan has", _stop(declared.get("stop_at"))],
        ["decisions need", "two persons" if declared.get("two_person") else "one person"],
        ["control totals of", _totals(declared.get("totals"))],
        ["not shown here, only hashes", ", ".join(declared.get("redact") or ()) or "nothing"],
    ]
    rest = [(name, each) for name, each in declared.items() if name not in _APART and each not in (None, [], {}, False)]
    return rows + [[name.removesuffix("_us").replace("_", " "), _plain(each, name)] for name, each in rest]


def _side(side: dict[str, Any] | None) -> Part:
    if side is None:
        return "none"
    known = {name: each for name, each in side.items() if name not in ("kind", "label", "key", "database", "table")}
    place = known.pop("place", None)
    more = [f"{name.replace('_', ' ')}: {_plain(each, name)}" for name, each in known.items() if each not in (None, [])]
    where = f" at {place}" if place and place != side["label"] else ""
    return joined(tag("strong", str(side["label"])), f"{where}; {'; '.join(more)}" if more else where)


def _stop(declared: Any) -> str:
    said = {"changes": "more than {} changes", "deletes": "more than {} removals", "share": "changes of more than {}"}
    found = [said[name].format(_share(name, each)) for name, each in (declared or {}).items() if each is not None]
    return ", or ".join(found) or "changes of more than 30%"


def _share(name: str, value: Any) -> str:
    return f"{float(value):.0%} of all records" if name == "share" else f"{int(value):,}"


def _totals(declared: Any) -> str:
    names = declared.items() if isinstance(declared, dict) else [(each, None) for each in declared or ()]
    return ", ".join(f"{name}, for each {of}" if of else str(name) for name, of in names) or "nothing"


def _verdicts(verdicts: dict[str, str]) -> Html:
    said = {"repair": "repaired without asking", "review": "a person is asked"}
    rows: list[list[Part]] = [
        [name, CAUSES.get(Drift(name), "") if name in set(Drift) else "", said.get(what, what)]
        for name, what in verdicts.items()
    ]
    return table(["what is found", "what it means", "what is done"], rows)


def _plain(value: Any, name: str = "") -> str:
    match value:
        case dict():
            told = {each: _plain(of, each) for each, of in value.items() if of not in (None, [], "")}
            return "; ".join(f"{each.removesuffix('_us')}: {text}" for each, text in told.items())
        case int() if name.endswith("_us") and not isinstance(value, bool):
            return _time(value) if value > _TIMES_FROM_US else duration_text(value)
        case list():
            return ", ".join(_plain(each) for each in value)
    return "none" if value is None else str(value)


def _time(us: int) -> str:
    return f"{dt.datetime.fromtimestamp(us // 1_000_000, dt.UTC):%Y-%m-%d %H:%M:%S}"
