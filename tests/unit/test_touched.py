"""What was touched, told by hashes or by digests: the same records are suspects, whichever way is taken."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueup.engine import alike
from trueup.engine.glance import keys_and_digests
from trueup.engine.past import Past, touched
from trueup.engine.records import Records
from trueup.model.digest import digest_of
from trueup.model.record import Projection, key_text
from trueup.model.row import Baseline, Seen
from trueup.pair import declare
from trueup.ports import EVERYTHING, Scope
from trueup.sides.memory import Memory
from trueup.stores.memory import MemoryLedger

SINCE = 100
OLD, NEW = "50", "150"
COLUMNS = {"id": "integer", "part": "text", "name": "text", "v": "integer"}


class Hashing(Memory):
    """Hashes what is newer, as databases do. none: names of records that it can't hash. Counts how it is asked."""

    def __init__(
        self,
        rows: list[dict[str, Any]],
        key: tuple[str, ...] = ("id",),
        function: str = "f",
        none: tuple[str, ...] = (),
    ) -> None:
        super().__init__(rows, key=key, version="v", columns=COLUMNS)
        self._function, self._none = function, {digest_of([name]) for name in none}
        self.hashed = self.scanned = 0
        self.read_keys: list[str] = []

    def hashes(
        self, projection: Projection, since: int, rows_max: int
    ) -> Mapping[str, Callable[[], Generator[pa.RecordBatch, None, None]]]:
        def begin() -> Generator[pa.RecordBatch, None, None]:
            self.hashed += 1
            for batch in super(Hashing, self).scan(projection, Scope(since=since)):
                keys, digests = keys_and_digests(batch, projection)
                hashes = [
                    None if digest in self._none else zlib.crc32(f"{key}{digest}".encode())
                    for key, digest in zip(keys, digests, strict=True)
                ]
                columns = [*batch.columns[: len(projection.key)], pa.array(hashes, pa.int64())]
                told = pa.RecordBatch.from_arrays(columns, names=list("abc"[: len(columns)]))
                yield told.slice(0, rows_max)

        return {self._function: begin, "g": begin}

    def scan(self, projection: Projection, scope: Scope = EVERYTHING) -> Iterator[pa.RecordBatch]:
        self.scanned += 1
        return super().scan(projection, scope)

    def read(self, projection: Projection, keys: Any) -> Any:
        self.read_keys += keys
        return super().read(projection, keys)


class Found(NamedTuple):
    left: int
    right: int
    suspects: set[str]


def looked(left: Memory, right: Memory, known: Mapping[str, Baseline] | None = None, **options: Any) -> Found:
    """What a run that remembers nothing finds; known: what the ledger holds."""
    return _looked(left, right, known or {}, remember=False, **options)


def by_digests(left: Memory, right: Memory, known: Mapping[str, Baseline] | None = None, **options: Any) -> Found:
    """What a run finds that remembers, for which it needs digests."""
    return _looked(left, right, known or {}, remember=True, **options)


def _looked(
    left: Memory,
    right: Memory,
    known: Mapping[str, Baseline],
    *,
    remember: bool,
    past: int | None = SINCE,
    **options: Any,
) -> Found:
    declared = declare("people", authority=left, replica=right, fields=["name"], overlap=0, **options)
    ledger = MemoryLedger()
    ledger.baseline("people", list(known.values()))
    found = list(touched(Records(declared), ledger, Past(SINCE, past), remember=remember))
    suspects = {key for each in found for key in each.suspects}
    return Found(sum(each.left for each in found), sum(each.right for each in found), suspects)


def row(number: int, name: str | None, v: str = NEW, part: str | None = "p") -> dict[str, Any]:
    return {"id": str(number), "part": part, "name": name, "v": v}


def agreed(number: int, left: str | None, right: str | None) -> Baseline:
    """What the ledger knows: names at both sides."""
    return Baseline(key_text([str(number)]), 0, digest_of([left]), digest_of([right]))


def sides(left: list[dict[str, Any]], right: list[dict[str, Any]], **options: Any) -> tuple[Hashing, Hashing]:
    return Hashing(left, **options), Hashing(right, **options)


def key(*numbers: int) -> set[str]:
    return {key_text([str(number)]) for number in numbers}


names = st.sampled_from([None, "", "a", "b", "unhashed"])
stood = st.none() | st.tuples(names, st.sampled_from([OLD, NEW]))


@given(st.lists(st.tuples(stood, stood, st.none() | st.tuples(names, names)), max_size=12))
def test_hashes_and_digests_find_the_same_suspects(records: list[tuple[Any, Any, Any]]) -> None:
    """Given any states of records at both sides and in the ledger, I expect what is suspect not to hang on the way."""
    left, right = sides(
        *([row(at, *each[n]) for at, each in enumerate(records) if each[n]] for n in (0, 1)), none=("unhashed",)
    )
    known = {str(at): agreed(at, *each[2]) for at, each in enumerate(records) if each[2]}
    found = looked(left, right, known)
    assert (left.hashed, right.hashed, left.scanned, right.scanned) == (1, 1, 0, 0)
    assert found == by_digests(left, right, known)
    assert (left.hashed, right.hashed, left.scanned, right.scanned) == (1, 1, 1, 1)


def test_what_both_show_alike_is_not_read() -> None:
    left, right = sides([row(1, "a"), row(2, "a"), row(3, None)], [row(1, "a"), row(2, "b"), row(3, None)])
    assert looked(left, right) == (3, 3, key(2))
    assert left.read_keys == right.read_keys == list(key(2))


def test_what_one_side_shows_is_read_there_only() -> None:
    left, right = sides([row(1, "a"), row(2, "a", OLD)], [row(1, "a", OLD), row(2, "a")])
    known = {"1": agreed(1, "a", "a"), "2": agreed(2, "a", "b")}
    assert looked(left, right, known) == (1, 1, key(2))
    assert (left.read_keys, right.read_keys) == (list(key(1)), list(key(2)))


def test_what_is_known_to_be_stored_in_another_way_is_no_suspect() -> None:
    left, right = sides([row(1, "a"), row(2, "c")], [row(1, "A"), row(2, "A")])
    known = {"1": agreed(1, "a", "A"), "2": agreed(2, "a", "A")}
    assert looked(left, right, known) == (2, 2, key(2))


def test_a_record_that_can_not_be_hashed_is_read() -> None:
    left, right = sides([row(1, "x"), row(2, "x")], [row(1, "x"), row(2, "y")], none=("x", "y"))
    assert looked(left, right) == (2, 2, key(2))
    assert set(left.read_keys) == key(1, 2)


@pytest.mark.parametrize("other", [[], [row(1, "b")]], ids=["shown by one", "shown by both"])
def test_a_record_that_vanishes_meanwhile_is_a_suspect(
    other: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    left, right = sides([row(1, "a")], other)
    monkeypatch.setattr(Hashing, "read", lambda *_: {})
    assert looked(left, right, {"1": agreed(1, "a", "a")}) == (1, len(other), key(1))


def test_another_row_with_the_key_of_a_record_that_differs_makes_it_a_suspect() -> None:
    left, right = sides([row(1, "a"), row(1, "b", OLD)], [])
    assert looked(left, right, {"1": agreed(1, "a", "a")}) == (1, 0, key(1))


@pytest.mark.parametrize("twice", [0, 1])
def test_keys_that_are_shown_twice_are_told_by_digests(twice: int) -> None:
    rows = [[row(1, "a"), row(2, "a")] for _ in range(2)]
    rows[twice].append(row(1, "b"))
    left, right = sides(*rows)
    found = looked(left, right)
    assert found.suspects == key(1)
    assert (left.scanned, right.scanned) == (1, 1)
    assert found == by_digests(left, right)


@pytest.mark.parametrize(
    ("function", "options"),
    [
        ("f", {"absent_when": {"name": ["gone"]}}),
        ("f", {"action_field": "name"}),
        ("f", {"past": None}),
        ("other", {}),
    ],
    ids=["a state means absence", "a field acts", "the replica is not asked", "they share a slower one"],
)
def test_where_hashes_would_not_tell_all_they_are_not_asked_for(function: str, options: dict[str, Any]) -> None:
    rows = [row(1, "a"), row(2, "a")]
    left, right = Hashing(rows), Hashing([row(1, "a"), row(2, "b")], function=function)
    known = {"1": agreed(1, "a", "a"), "2": agreed(2, "a", "a")}
    found = looked(left, right, known, **options)
    assert bool(left.hashed) == bool(right.hashed) == (not options)
    assert found == by_digests(left, right, known, **options)


def test_sides_that_share_no_function_are_scanned() -> None:
    left, right = sides([row(1, "a")], [row(1, "b")])
    right.hashes = lambda *_: {"another": pytest.fail}  # type: ignore[method-assign]
    assert looked(left, right) == (1, 1, key(1))
    assert (left.hashed, left.scanned, right.scanned) == (0, 1, 1)
    assert looked(left, Memory([row(1, "b")], key="id", version="v", columns=COLUMNS)) == (1, 1, key(1))


def test_where_many_are_not_alike_they_are_told_by_digests() -> None:
    """Given more records than are soon read, touched at one side, I expect none of them to be read by key."""
    count = alike.READ_MAX + 1
    left, right = sides([row(at, "a") for at in range(count)], [])
    known = {str(at): agreed(at, "a" if at else "b", "a") for at in range(count)}
    assert looked(left, right, known) == (count, 0, key(0))
    assert (left.hashed, left.scanned, left.read_keys) == (1, 1, [])


def test_a_small_share_is_read_however_many_they_are() -> None:
    count = 2 * alike.READ_MAX
    total = int(count / alike.READ_SHARE)
    left, right = sides(*([row(at, name if at < count else "a") for at in range(total)] for name in "ab"))
    assert looked(left, right) == (total, total, key(*range(count)))
    assert (left.scanned, len(left.read_keys)) == (0, count)


def test_more_than_is_matched_here_is_told_by_digests(monkeypatch: pytest.MonkeyPatch) -> None:
    left, right = sides([row(at, "a") for at in range(4)], [row(at, "a") for at in range(3)])
    monkeypatch.setattr(alike, "SHOWN_MAX", 3)
    assert looked(left, right) == (4, 3, key(3))
    assert (left.hashed, left.scanned) == (1, 1)
    monkeypatch.setattr(alike, "SHOWN_MAX", 4)
    assert looked(left, right) == (4, 3, key(3))
    assert (left.hashed, left.scanned) == (2, 1)


def test_what_is_alike_and_what_is_not_is_looked_up_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a batch with agreements and others, known and unknown, I expect one question to the ledger about it."""
    asked: list[int] = []
    unlike = MemoryLedger.unlike

    def counted(ledger: MemoryLedger, pair: str, seen: Sequence[Seen]) -> list[str]:
        asked.append(len(seen))
        return unlike(ledger, pair, seen)

    monkeypatch.setattr(MemoryLedger, "unlike", counted)
    left, right = sides([row(at, "a") for at in range(4)], [row(at, "a" if at < 2 else "b") for at in range(4)])
    known = {"0": agreed(0, "a", "a"), "2": agreed(2, "a", "b")}
    declared = declare("people", authority=left, replica=right, fields=["name"], overlap=0)
    ledger = MemoryLedger()
    ledger.baseline("people", list(known.values()))
    found = list(touched(Records(declared), ledger, Past(SINCE, SINCE), remember=True))
    assert asked == [4]
    assert {each for some in found for each in some.suspects} == key(3)
    assert {each.key for some in found for each in some.agreed} == key(1)


def test_keys_of_several_parts_are_matched_as_a_whole() -> None:
    parts = ['a"b', "", None, "a,b", '","']
    left, right = (
        Hashing([row(at % 2, name, part=part) for at, part in enumerate(parts)], key=("id", "part")) for name in "aa"
    )
    right.put(row(1, "b", part="a,b"))
    assert looked(left, right) == (5, 5, {key_text(["1", "a,b"])})
    assert right.read_keys == [key_text(["1", "a,b"])]
