"""A comparison that is on record is performed again, as far as what it read was kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from trueup.compare.choose import MEMORY_MB, compare
from trueup.engine.comparing import COUNTED, differing, ranges
from trueup.engine.evidence import inputs_of_side, rules_of
from trueup.engine.hidden import hidden_roots
from trueup.engine.records import Records
from trueup.engine.totals import ROLES, Roots, read_by, roots_in, totals_in
from trueup.errors import TrueupError
from trueup.model.evidence import Entry
from trueup.model.run import Piece
from trueup.ports import Side

# What a comparison alone counts.
SEEN = tuple(name for name in COUNTED if name != "baseline")


@dataclass(frozen=True, slots=True)
class Seen:
    """One thing that the comparison showed then and shows now."""

    what: str
    then: Any
    now: Any

    @property
    def same(self) -> bool:
        """Whether it is as it was."""
        return bool(self.then == self.now)


@dataclass(slots=True)
class Replay:
    """What came of performing a run's comparison again.

    obstacles: why it could not be performed. notes: what is not as it was, though it could. seen: what was compared.
    """

    run: int
    obstacles: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)

    @property
    def proven(self) -> bool:
        """Whether the comparison could be performed again and shows the same."""
        return bool(self.seen) and all(each.same for each in self.seen)


def replay(
    records: Records,
    entry: Entry,
    *,
    authority: Side | None = None,
    replica: Side | None = None,
    memory_mb: int = MEMORY_MB,
    key: bytes = b"",
) -> Replay:
    """Compares again what the run of this entry compared, and changes nothing.

    authority, replica: sides that are read in place of the declared ones, such as copies of files in an archive. key:
    by which the hashes of the entry were made, see `trueup.engine.hidden.key_of`.
    """
    body = entry.fact.read()
    found = Replay(int(entry.fact.about))
    if not body.get("roots"):
        found.obstacles.append("it did not compare everything that it was asked to look at, or did not end")
        return found
    pair = records.pair
    again = Records(replace(pair, authority=authority or pair.authority, replica=replica or pair.replica))
    found.obstacles += _obstacles(again, body.get("inputs") or {})
    if found.obstacles:
        return found
    if rules_of(records)["digest"] != body["rules"]["digest"]:
        found.notes.append("the rules of today are not those of then: it was compared by those of today")
    counts, read = _compared(again, body, memory_mb)
    then = body["counts"]
    found.seen += [Seen(name, then.get(name, 0), counts[name]) for name in SEEN]
    roots = hidden_roots(roots_in(read), key) or {}
    found.seen += [Seen(f"root digest, {role}", body["roots"].get(role), roots.get(role)) for role in ROLES]
    found.seen.append(Seen("control totals", body["totals"], totals_in(read)))
    return found


def _obstacles(records: Records, then: Mapping[str, Any]) -> Iterator[str]:
    """Why the sides can't be read as they were then."""
    sides = {"authority": records.pair.authority, "replica": records.pair.replica}
    for role, side in sides.items():
        label = "" if side is None else side.label
        if not (files := (then.get(role) or {}).get("files")):
            yield f"{role} ({label}): only files can be kept; what this side held then is not there any more"
            continue
        try:
            now = ({} if side is None else inputs_of_side(side)).get("files") or []
        except TrueupError as error:
            yield f"{role} ({label}): {error.message}"
            continue
        hashes = {each["sha256"] for each in now}
        for each in files:
            if each["sha256"] not in hashes:
                yield f"{role} ({label}): there is no file with the content that {each['name']} had then"
        if len(now) > len(files):
            yield f"{role} ({label}): there are {len(now)} files, then there were {len(files)}"


def _compared(records: Records, body: Mapping[str, Any], memory_mb: int) -> tuple[Counter[str], dict[str, int]]:
    counts: Counter[str] = Counter()
    windows = (body.get("scope") or {}).get("windows") or [(None, None, None)]
    reads = []
    for at, (_, from_us, to_us) in enumerate(windows):
        left, right = ranges(records, Piece(0, at, from_us=from_us, to_us=to_us))
        roots = Roots()
        with compare(left, right, records.plan, strategy="rows", memory_mb=memory_mb) as found:
            counts.update({name: getattr(found.counts, name) for name in SEEN})
            for batch in found.agreements():
                roots.add_agreed(batch)
            differing(found, records, roots)
        reads += [left.totals.counts, right.totals.counts, roots.counts]
    return counts, read_by(reads)
