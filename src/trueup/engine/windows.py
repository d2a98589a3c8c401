"""Closed windows: which of them a run compares, seals over those that are final, and what changed under a seal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from trueup.engine import journal
from trueup.engine.confirm import confirm
from trueup.engine.records import Records
from trueup.engine.report import WindowStatus
from trueup.errors import ConfigError
from trueup.model.case import REOPENED, Case
from trueup.model.digest import HashSum, digest_of
from trueup.model.digest_columns import hash_sum
from trueup.model.record import Projection
from trueup.model.run import DONE, Piece
from trueup.model.window import Seal, Window, Windows
from trueup.ports import Archive, Cases, Ledger, Runs, Scope, Side, WindowedSide

KEYS_SHOWN: Final = 20
# More differences than a person decides about: such a window is not final.
DECIDED_MAX: Final = 1_000
# What a piece counts that is a window, beside the comparison.
FINAL: Final = "final"
SUMS: Final = ("authority_count", "authority_sum", "replica_count", "replica_sum")


@dataclass(slots=True)
class Chosen:
    """What a run does about windows; a run that is taken over goes on with the same.

    windows: (from, to, name) of those it compares. changed: (from, to, what was seen) of those that were sealed and are
    not as they were. unchanged: (from, to) of those that were read again and are. first_us: no window begins before.
    """

    windows: list[tuple[int, int, str]] = field(default_factory=list)
    changed: list[tuple[int, int, str]] = field(default_factory=list)
    unchanged: list[tuple[int, int]] = field(default_factory=list)
    first_us: int | None = None

    def memo(self, pair: str) -> dict[str, Any]:
        """As the memo of a run keeps it, with the cursors that move when the run is complete."""
        reached = {} if self.first_us is None else {first_cursor(pair): self.first_us}
        kept = {"compare": self.windows, "changed": self.changed, "unchanged": self.unchanged}
        return {"windows": kept, "reached": reached}

    @classmethod
    def of(cls, memo: Mapping[str, Any]) -> Chosen:
        """As the memo of a run kept it."""
        kept = memo["windows"]
        windows, changed = ([(a, b, text) for a, b, text in kept[name]] for name in ("compare", "changed"))
        return cls(windows, changed, [(a, b) for a, b in kept["unchanged"]])


def first_cursor(pair: str) -> str:
    """The name of the cursor that says where the first window of a pair begins that declares no `since`."""
    return f"{pair} (windows)"


class Windowing:
    """The windows of one pair, as one run sees them."""

    def __init__(self, records: Records, ledger: Ledger, archive: Archive) -> None:
        pair = records.pair
        if pair.windows is None:
            raise ConfigError(
                f"pair {pair.name} has no windows.", hint='Declare them: window = {column = "paid_at", zone = "UTC"}.'
            )
        self.records, self.pair, self.windows = records, pair, pair.windows
        self._ledger, self._archive = ledger, archive
        sides = [(pair.authority, records.authority, False), (pair.replica, records.replica, True)]
        self._sides = [(side, asked, replica) for side, asked, replica in sides if isinstance(side, WindowedSide)]

    # ── before the comparison ────────────────────────────────────────────────────────────────────────

    def choose(self, named: str | None) -> Chosen:
        """What this run compares: windows that are named, else all that are closed and not sealed.

        Sealed ones are looked at first; those that changed are compared again. Raises SchemaError where the column is
        no date or time at a side.
        """
        for side, _, replica in self._sides:
            side.window_kind(self.windows.replica_column if replica else self.windows.column)
        cutoff_us, seals = self._cutoff_us(), self._seals()
        if named is not None:
            windows = self.windows.named(named, cutoff_us, self.pair.name)
            seals = [seal for seal in seals if any(_holds(window, seal) for window in windows)]
            chosen = Chosen([(each.from_us, each.to_us, each.name) for each in windows])
        else:
            first = self._first(cutoff_us)
            sealed = {(seal.from_us, seal.to_us) for seal in seals}
            windows = list(self.windows.between(first.from_us, cutoff_us))
            left = [each for each in windows if (each.from_us, each.to_us) not in sealed]
            chosen = Chosen([(each.from_us, each.to_us, each.name) for each in left], first_us=first.from_us)
        changed = self._changed(seals, chosen, everything=named is not None)
        for seal, seen in changed.items():
            chosen.changed.append((seal.from_us, seal.to_us, self._said(seal, seen)))
            place = (seal.from_us, seal.to_us, self.windows.at(seal.from_us).name)
            chosen.windows += [] if place in chosen.windows else [place]
        chosen.windows.sort()
        return chosen

    def _cutoff_us(self) -> int:
        """Windows that end by now are closed; a side without a clock goes by the store's."""
        clocks = [side.now_us() for side, _, _ in self._sides]
        authority_us, replica_us = (self._ledger.now_us() if now_us is None else now_us for now_us in clocks)
        return self.windows.cutoff_us(authority_us, replica_us)

    def _first(self, cutoff_us: int) -> Window:
        since_us = self.windows.since_us
        if since_us is None:
            since_us = self._archive.cursor(first_cursor(self.pair.name))
        return self.windows.newest_closed(cutoff_us) if since_us is None else self.windows.at(since_us)

    def _seals(self) -> list[Seal]:
        """Those that say something about what is compared now."""
        asked = form(self.records)
        return [seal for seal in self._archive.seals(self.pair.name) if seal.asked == asked]

    def _changed(self, seals: list[Seal], chosen: Chosen, *, everything: bool) -> dict[Seal, list[str]]:
        """What is not as it was sealed, with what was seen of it at each side."""
        now_us = self._ledger.now_us()
        due = [seal for seal in seals if everything or seal.checked_us + self.windows.recheck_us <= now_us]
        changed: dict[Seal, list[str]] = {}
        read = False
        for side, asked, replica in self._sides:
            in_place = bool(seals) and self._summed(side, asked, seals[:1], replica) is not None
            read = read or not in_place
            for stretch in _stretches(seals if in_place else due):
                for seal, found in self._search(side, asked, stretch, replica):
                    changed.setdefault(seal, []).append(self._seen(seal, found, replica=replica))
        if read:
            chosen.unchanged = [(seal.from_us, seal.to_us) for seal in due if seal not in changed]
        return changed

    def _search(
        self, side: WindowedSide, asked: Projection, seals: Sequence[Seal], replica: bool
    ) -> Iterator[tuple[Seal, HashSum]]:
        """Seals of windows that follow each other, and are not as they were: sums add up, so most are seen at once."""
        found = self._summed(side, asked, seals, replica) or self._read(side, asked, seals, replica)
        if found == _total(seals, replica=replica):
            return
        if len(seals) == 1:
            yield seals[0], found
            return
        middle = len(seals) // 2
        yield from self._search(side, asked, seals[:middle], replica)
        yield from self._search(side, asked, seals[middle:], replica)

    def _summed(self, side: WindowedSide, asked: Projection, seals: Sequence[Seal], replica: bool) -> HashSum | None:
        return side.window_sum(asked, self.windows.span(seals[0].from_us, seals[-1].to_us, replica=replica))

    def _read(self, side: Side, asked: Projection, seals: Sequence[Seal], replica: bool) -> HashSum:
        span = self.windows.span(seals[0].from_us, seals[-1].to_us, replica=replica)
        return hash_sum(side.scan(asked, Scope(window=span)), asked)

    # ── what is said of a window that changed ────────────────────────────────────────────────────────

    def _said(self, seal: Seal, seen: list[str]) -> str:
        name = self.windows.at(seal.from_us).name
        return f"the window {name} changed after run {seal.run} had sealed it: {'; '.join(seen)}"

    def _seen(self, seal: Seal, found: HashSum, *, replica: bool) -> str:
        """What one side says now, and which of its records are not as they were when the sides last agreed."""
        was, who = (seal.right, "the replica") if replica else (seal.left, "the authority")
        same = was.count == found.count
        counts = (
            f"the same number of records ({was.count:,})" if same else f"{found.count:,} records, not {was.count:,}"
        )
        scope = Scope(window=self.windows.span(seal.from_us, seal.to_us, replica=replica))
        keys = list(self._moved_replica(scope) if replica else self._moved_authority(scope))
        if not keys:
            return f"{who} has {counts}"
        more = f" and {len(keys) - KEYS_SHOWN:,} more" if len(keys) > KEYS_SHOWN else ""
        return f"{who} has {counts}, changed or new are {', '.join(keys[:KEYS_SHOWN])}{more}"

    def _moved_authority(self, scope: Scope) -> Iterator[str]:
        for states in self.records.scan_authority(scope):
            rows = self._ledger.rows(self.pair.name, [state.key for state in states])
            for state in states:
                row = rows.get(state.key)
                if row is None or row.done_digest != state.digest:
                    yield state.key

    def _moved_replica(self, scope: Scope) -> Iterator[str]:
        for found in self.records.scan_replica(scope):
            rows = self._ledger.rows(self.pair.name, list(found))
            for key, digest in found.items():
                row = rows.get(key)
                if row is None or row.done_replica != digest:
                    yield key

    # ── after it ─────────────────────────────────────────────────────────────────────────────────────

    def conclude(self, chosen: Chosen, runs: Runs, run: int, counts: Counter[str], now_us: int) -> None:
        """Asks a person about what changed under a seal, seals what is final, and breaks the seal of what is not."""
        names = {(from_us, to_us): name for from_us, to_us, name in chosen.windows}
        changed = {(from_us, to_us): said for from_us, to_us, said in chosen.changed}
        journal.open_cases(
            self.pair,
            self._archive,
            [
                Case(self.pair.name, f"{REOPENED}{names[place]}", "reopened", now_us, run=run, cause=said)
                for place, said in changed.items()
            ],
        )
        final = {(piece.from_us, piece.to_us): piece for piece in runs.pieces(run) if piece.counts.get(FINAL)}
        known = {(seal.from_us, seal.to_us): seal for seal in self._archive.seals(self.pair.name)}
        self._archive.break_seals([seal for place, seal in known.items() if place in changed and place not in final])
        self._archive.seal([_sealed(piece, self.pair.name, form(self.records), now_us) for piece in final.values()])
        checked = [known[place] for place in chosen.unchanged if place in known and place not in final]
        self._archive.seal([replace(seal, checked_us=now_us) for seal in checked])
        counts["sealed"], counts["reopened"] = len(final), len(changed)


def windows_of(records: Records, archive: Archive, now_us: int) -> WindowStatus | None:
    """How the windows of a pair are, from the state store alone; None where it declares none."""
    pair, windows = records.pair, records.pair.windows
    if windows is None:
        return None
    cutoff_us, sealed = windows.cutoff_us(now_us, now_us), archive.seals(pair.name)
    places = {(seal.from_us, seal.to_us) for seal in sealed}
    first_us = archive.cursor(first_cursor(pair.name)) if windows.since_us is None else windows.since_us
    closed = [] if first_us is None else windows.between(windows.at(first_us).from_us, cutoff_us)
    waiting = [each.name for each in closed if (each.from_us, each.to_us) not in places]
    current = windows.at(cutoff_us)
    return WindowStatus(len(sealed), waiting, current.name, now_us + current.to_us - cutoff_us)


def is_final(
    records: Records, ledger: Ledger, cases: Cases, piece: Piece, held: tuple[HashSum, HashSum], suspects: Sequence[str]
) -> bool:
    """Whether a window that was just compared may be sealed: it agrees, or a person accepted every difference.

    held: what was read at each side. A record that lies in it on one side only agrees all the same, if neither side of
    the window changed until it was found so.
    """
    pair = records.pair
    if not suspects:
        return True
    if len(suspects) > DECIDED_MAX:
        return False
    result = confirm(records, ledger, suspects, None)
    known = cases.acceptances(pair.name, [drift.key for drift in result.drifts]) if result.drifts else {}
    if result.deferred or not all(drift.accepted(known.get(drift.key)) for drift in result.drifts):
        return False
    return not result.converged or held == _held_now(records, piece)


def _held_now(records: Records, piece: Piece) -> tuple[HashSum, ...]:
    pair = records.pair
    assert pair.windows is not None
    assert pair.replica is not None
    assert piece.from_us is not None
    assert piece.to_us is not None
    found = []
    for side, asked, replica in ((pair.authority, records.authority, False), (pair.replica, records.replica, True)):
        span = pair.windows.span(piece.from_us, piece.to_us, replica=replica)
        found.append(hash_sum(side.scan(asked, Scope(window=span)), asked))
    return tuple(found)


def counted(held: tuple[HashSum, HashSum]) -> dict[str, int]:
    """What each side held, as a piece counts it."""
    left, right = held
    return dict(zip(SUMS, (left.count, left.total, right.count, right.total), strict=True))


def form(records: Records) -> str:
    """A short text that is another one as soon as other fields are asked for, or in another form."""
    asked = records.plan.left
    return digest_of(f"{each.name} {each.kind} {each.rule}" for each in (*asked.key, *asked.fields))[:16]


def windows_known(windows: Windows | None, piece: Piece) -> tuple[Any, Any]:
    """The interval of a piece as each side is asked for it; None for pieces that are none."""
    if windows is None or piece.from_us is None or piece.to_us is None:
        return None, None
    return windows.span(piece.from_us, piece.to_us), windows.span(piece.from_us, piece.to_us, replica=True)


def _sealed(piece: Piece, pair: str, asked: str, now_us: int) -> Seal:
    assert piece.state == DONE
    assert piece.from_us is not None
    assert piece.to_us is not None
    sums = [piece.counts[name] for name in SUMS]
    left, right = HashSum(*sums[:2]), HashSum(*sums[2:])
    return Seal(pair, piece.from_us, piece.to_us, left, right, asked, piece.run, now_us, now_us)


def _stretches(seals: Sequence[Seal]) -> Iterator[list[Seal]]:
    """Seals in groups of windows that follow each other."""
    group: list[Seal] = []
    for seal in seals:
        if group and group[-1].to_us != seal.from_us:
            yield group
            group = []
        group.append(seal)
    if group:
        yield group


def _total(seals: Sequence[Seal], *, replica: bool) -> HashSum:
    sums = [seal.right if replica else seal.left for seal in seals]
    return HashSum(sum(each.count for each in sums), sum(each.total for each in sums))


def _holds(window: Window, seal: Seal) -> bool:
    return (window.from_us, window.to_us) == (seal.from_us, seal.to_us)
