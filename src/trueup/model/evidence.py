"""Evidence: the account of what was read, decided and written, as a chain in which nothing changes unseen.

Each entry carries the digest of the one before it, so that whoever changes one must change all that follow (S. Haber
and W. S. Stornetta, "How to time-stamp a digital document", 1991). Who can write the whole store can write the whole
chain anew: only an anchor, a head of the chain that is kept elsewhere, tells. Every store appends by `append`.

Old entries may be cut off, all up to one of them: an entry of the kind `cut` then stands for them, with the digest of
the last, behind which the first that is left was written.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from trueup.errors import BadInput
from trueup.model.run import Run

RUN: Final = "run"
DECISION: Final = "decision"
# What became of the repairs that a run gave to workers.
JOBS: Final = "jobs"
CUT: Final = "cut"
GENESIS: Final = "0" * 64
# Part of every digest, so that an entry of another form is never taken for one of this.
FORM: Final = "trueup evidence 1"
ANCHOR: Final = "trueup-anchor"
Wrong = Literal["altered", "missing", "unlinked", "disordered", "forked", "rewritten"]


@dataclass(frozen=True, slots=True)
class Fact:
    """What is to be put on record.

    kind: `run`, `decision`, `jobs` or `cut`. about: the run's number, the decision's id, the number of the last entry
    that was cut; a fact is put on record once. body: canonical JSON, see `canonical`.
    """

    kind: str
    pair: str
    about: str
    body: str

    def read(self) -> dict[str, Any]:
        """The body's members."""
        members: dict[str, Any] = json.loads(self.body)
        return members


@dataclass(frozen=True, slots=True)
class Head:
    """How far a chain goes: the number and the digest of its last entry. As an anchor, how far it went once."""

    number: int = 0
    digest: str = GENESIS


@dataclass(frozen=True, slots=True)
class Entry:
    """One link of the chain: a fact, when it was put on record (by the store's clock), and two digests.

    number: from 1, without gaps. previous: the digest of the entry before, `GENESIS` for the first. digest: SHA-256 of
    all the rest, 64 hex digits.
    """

    number: int
    fact: Fact
    at_us: int
    previous: str
    digest: str = ""

    @property
    def head(self) -> Head:
        """The end of a chain whose last entry this is."""
        return Head(self.number, self.digest)

    @property
    def holds(self) -> bool:
        """Whether it is as it was written, as far as it alone can tell."""
        return self.seal() == self.digest

    def seal(self) -> str:
        """What the digest must be: SHA-256 over the parts in order, each as its length in bytes, `:`, the bytes."""
        fact = self.fact
        parts = FORM, str(self.number), fact.kind, fact.pair, fact.about, str(self.at_us), fact.body, self.previous
        encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
        return hashlib.sha256(b"".join(b"%d:%s" % (len(part), part) for part in encoded)).hexdigest()


# json.dumps would make an encoder for each call.
_written: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
_ATOMS: Final = frozenset({str, int, bool, type(None)})


def append(head: Head, fact: Fact, at_us: int) -> Entry:
    """The entry that puts a fact on record behind `head`."""
    entry = Entry(head.number + 1, fact, at_us, head.digest)
    return replace(entry, digest=entry.seal())


def canonical(members: Mapping[str, Any]) -> str:
    """JSON with sorted names and without blanks, in ASCII: equal members give equal texts, on every machine.

    Whole numbers, texts, truth values, nulls, lists and tables only. Raises TypeError for anything else, floats
    included: their texts are not the same everywhere.
    """
    _check(members)
    return _written(members)


def _check(value: Any) -> None:
    if type(value) in _ATOMS:  # most are; a plan has hundreds of thousands
        return
    match value:
        case int() | str():
            return
        case Mapping():
            for name, each in value.items():
                if not isinstance(name, str):
                    raise TypeError(f"a name in evidence is a text, not {type(name).__name__}")
                _check(each)
        case list() | tuple():
            for each in value:
                _check(each)
        case _:
            raise TypeError(f"evidence does not hold a {type(value).__name__}")


def died(run: Run) -> Fact:
    """The fact about a run that another one found dead: nobody is left who knows more than the store."""
    counts = {name: count for name, count in run.counts.items() if count}
    body = {
        "run": run.number, "what": run.what, "started_us": run.started_us, "ended_us": run.ended_us,
        "ended": run.ended, "error": run.error, "cutoff_us": run.cutoff_us, "phases": list(run.done), "counts": counts,
    }  # fmt: skip
    return Fact(RUN, run.pair, str(run.number), canonical(body))


# ── entries that were cut ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Cut:
    """All that is left of the entries up to `last`.

    number: of the entry that stands for them. kinds: how many there were of each kind. from_us, to_us: when the first
    and the last of them were put on record; at_us: when they were cut. before_us: the end of what was to be cut.
    """

    number: int
    last: Head
    kinds: Mapping[str, int]
    from_us: int
    to_us: int
    before_us: int
    at_us: int


def cut_fact(former: Entry | None, cut: Sequence[tuple[str, int]], last: Head, before_us: int) -> Fact:
    """The fact that stands for entries that are cut, and for those before them.

    former: the newest entry that stands for some already. cut: kind and time of each of them, in order, not empty.
    last: the last of them.
    """
    known = None if former is None else cut_in(former)
    kinds = Counter(known.kinds if known else {})
    kinds.update(kind for kind, _ in cut)
    body = {
        "last": last.number, "digest": last.digest, "kinds": dict(kinds), "before_us": before_us,
        "from_us": known.from_us if known else cut[0][1], "to_us": cut[-1][1],
    }  # fmt: skip
    return Fact(CUT, "", str(last.number), canonical(body))


def cut_in(entry: Entry) -> Cut | None:
    """What an entry stands for; None where it is of another kind, or is not as it was written."""
    if entry.fact.kind != CUT or not entry.holds:
        return None
    body = entry.fact.read()
    last = Head(body["last"], body["digest"])
    return Cut(entry.number, last, body["kinds"], body["from_us"], body["to_us"], body["before_us"], entry.at_us)


# ── is it as it was written? ─────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a chain. number: the entry that it is about."""

    number: int
    wrong: Wrong
    said: str


@dataclass(slots=True)
class Verified:
    """What a look at a whole chain showed.

    head: its end. anchored: up to which entry an anchor vouches; 0 where none does, so that a chain that was written
    anew as a whole would not be noticed. cut: what stands for entries that are not there any more.
    """

    head: Head = field(default_factory=Head)
    entries: int = 0
    anchored: int = 0
    cut: Cut | None = None
    findings: list[Finding] = field(default_factory=list)

    @property
    def intact(self) -> bool:
        """Whether nothing was found."""
        return not self.findings


def verify(entries: Iterable[Entry], kept: Head | None = None, anchors: Sequence[Head] = ()) -> Verified:
    """Looks at a whole chain, entry by entry in the order in which they lie.

    kept: what the store itself holds for the end. anchors: heads that were kept elsewhere.
    """
    known: dict[int, set[str]] = {}
    for anchor in anchors:
        known.setdefault(anchor.number, set()).add(anchor.digest)
    found, start = Verified(), Head()
    for entry in entries:
        if not found.entries and entry.number > 1:
            # Whether that is so is seen once the whole chain was: its newest entry of this kind tells.
            found.head = start = Head(entry.number - 1, entry.previous)
            _compare_with_anchor(found, start, known)
        found.entries += 1
        found.cut = cut_in(entry) or found.cut
        found.findings += _link(found.head, entry)
        _compare_with_anchor(found, entry.head, known)
        if entry.number >= found.head.number:
            found.head = entry.head
    found.findings += _begins_as(start, found.cut)
    found.findings += _unseen(start, found.head, known)
    found.findings += [] if kept is None else ends_as(found.head, kept)
    return found


def _compare_with_anchor(found: Verified, head: Head, known: dict[int, set[str]]) -> None:
    vouched = known.pop(head.number, set())
    if vouched - {head.digest}:
        found.findings.append(_not_as_anchored(head.number, vouched))
    elif vouched:
        found.anchored = head.number


def _begins_as(start: Head, cut: Cut | None) -> Iterator[Finding]:
    """What is wrong with the beginning of a chain, of which the entries up to `start` are not there."""
    last = Head() if cut is None else cut.last
    number = start.number + 1
    if start.number > last.number:
        yield Finding(number, "missing", f"{_numbers(last.number + 1, start.number)} missing, and nothing tells why")
    elif start.number < last.number:
        yield Finding(number, "disordered", f"entry {number} is there, and was cut with all up to entry {last.number}")
    elif start != last:
        yield Finding(number, "unlinked", f"entry {number} was not written behind the one that was cut before it")


def ends_as(last: Head, kept: Head) -> list[Finding]:
    """What is wrong with the end of a chain, by what its store holds for the end."""
    if kept.number > last.number:
        return [Finding(kept.number, "missing", f"{_numbers(last.number + 1, kept.number)} missing, at the end")]
    if kept != last:
        said = f"the chain ends with entry {last.number}, and not as the store's own note of the end has it"
        return [Finding(last.number, "altered", said)]
    return []


def _link(last: Head, entry: Entry) -> Iterator[Finding]:
    number = entry.number
    if number == last.number:
        yield Finding(number, "forked", f"there are two entries {number}")
    elif number < last.number:
        yield Finding(number, "disordered", f"entry {number} stands behind entry {last.number}")
    elif number > last.number + 1:
        yield Finding(number, "missing", f"{_numbers(last.number + 1, number - 1)} missing")
    elif entry.previous != last.digest:
        before = f"entry {last.number}" if last.number else "the beginning"
        yield Finding(number, "unlinked", f"entry {number} was not written behind {before} as it is now")
    if not entry.holds:
        yield Finding(number, "altered", f"entry {number} is not as it was written")


def _not_as_anchored(number: int, vouched: set[str]) -> Finding:
    if len(vouched) > 1:
        return Finding(number, "forked", f"anchors hold different entries {number}: the chain went on in two ways")
    return Finding(number, "rewritten", f"entry {number} is not the one that was anchored: it was rewritten, or before")


def _unseen(start: Head, last: Head, anchors: Mapping[int, set[str]]) -> Iterator[Finding]:
    """Anchors of entries that did not come; those that were cut do not count."""
    for number, vouched in sorted(anchors.items()):
        if number < start.number:
            continue
        if len(vouched) > 1:
            yield _not_as_anchored(number, vouched)
        elif number > last.number:
            said = f"{_numbers(last.number + 1, number)} missing: entry {number} was anchored"
            yield Finding(number, "missing", said)
        elif number:
            yield Finding(number, "missing", f"entry {number} was anchored and is missing")


def _numbers(first: int, last: int) -> str:
    return f"entry {first} is" if first == last else f"entries {first} to {last} are"


# ── as text ──────────────────────────────────────────────────────────────────────────────────────────


def anchor_line(head: Head, at: str) -> str:
    """A head as one line of a text file to which lines are only ever added. at: when, for people."""
    return f"{ANCHOR} {head.number} {head.digest} {at}"


def anchors_in(lines: Iterable[str], where: str) -> list[Head]:
    """The anchors of a text; the rest of it, such as a mail's, is passed over. BadInput where there are none."""
    words = [word for line in lines for word in line.split()]  # a mail may have been wrapped
    found = []
    for at, word in enumerate(words):
        number, digest = (*words[at + 1 : at + 3], "", "")[:2]
        if word == ANCHOR and number.isdecimal() and len(digest) == len(GENESIS):
            found.append(Head(int(number), digest.lower()))
    if not found:
        raise BadInput(f"{where} holds no anchor.", hint="Write one: trueup evidence anchor --to FILE")
    return found


def entry_line(entry: Entry) -> str:
    """An entry as one line of JSON; the body stays a text, so that it is kept byte for byte."""
    fact = entry.fact
    return json.dumps(
        {
            "number": entry.number, "kind": fact.kind, "pair": fact.pair, "about": fact.about, "at_us": entry.at_us,
            "body": fact.body, "previous": entry.previous, "digest": entry.digest,
        }
    )  # fmt: skip


def entry_in(line: str, where: str) -> Entry:
    """The inverse of `entry_line`; BadInput names `where`."""
    try:
        told = json.loads(line)
        fact = Fact(*(str(told[name]) for name in ("kind", "pair", "about", "body")))
        return Entry(int(told["number"]), fact, int(told["at_us"]), str(told["previous"]), str(told["digest"]))
    except (ValueError, KeyError, TypeError):
        raise BadInput(f"{where} is no entry of evidence.", hint="Export it anew: trueup evidence export") from None
