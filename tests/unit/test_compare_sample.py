"""What a few ranges of keys tell about segments that are wider than they are."""

from __future__ import annotations

import random

import pytest

from trueup.compare.sampled import Sample

ROWS, RANGES, WIDTH, SEGMENT = 100_000, 24, 512, 4_096


def looked_at(changed: set[int]) -> Sample:
    """Given the records that are changed on one side, what ranges spread over all records show."""
    step = ROWS // RANGES
    found = [sum(at in changed for at in range(first, first + WIDTH)) for first in range(0, RANGES * step, step)]
    differ = sum(count > 0 for count in found)
    return Sample(RANGES, differ, 2 * RANGES * WIDTH, 2 * differ * WIDTH, 2 * sum(found))


def true_share(changed: set[int]) -> float:
    """Of all segments, the share that holds a changed record."""
    segments = -(-ROWS // SEGMENT)
    return len({at // SEGMENT for at in changed}) / segments


def drawn(chance: random.Random, runs: int, length: int) -> set[int]:
    starts = (chance.randrange(ROWS) for _ in range(runs))
    return {at for start in starts for at in range(start, min(start + length, ROWS))}


@pytest.mark.parametrize(
    ("runs", "length"), [(3, 1), (10, 1), (30, 1), (100, 1), (10, 20), (30, 20), (10, 200), (1, 10_000)]
)
def test_the_share_of_segments_is_about_right(runs: int, length: int) -> None:
    """Given single records, short runs or one block that differ, I expect the mean of many samples near the truth."""
    chance = random.Random(runs * length)
    tables = [drawn(chance, runs, length) for _ in range(60)]
    told = sum(looked_at(changed).segments(SEGMENT) for changed in tables) / len(tables)
    truth = sum(map(true_share, tables)) / len(tables)
    assert told == pytest.approx(truth, abs=0.12)


def test_a_hundred_scattered_differences_lie_in_almost_every_segment() -> None:
    """Given a quarter of the ranges with a record or two, I expect it to be told that nearly all segments differ."""
    assert Sample(24, 7, 24_000, 7_000, 11).segments(SEGMENT) > 0.85


def test_ranges_that_differ_throughout_are_a_block() -> None:
    """Given as many ranges that miss all their records, I expect no more segments than ranges to differ."""
    assert Sample(24, 7, 17_000, 3_500, 3_500).segments(SEGMENT) == 7 / 24


@pytest.mark.parametrize("sample", [Sample(24, 0, 24_000, 0, 0), Sample(0, 0, 0, 0, 0)])
def test_nothing_found_is_nothing_expected(sample: Sample) -> None:
    assert sample.segments(SEGMENT) == 0


def test_ranges_too_full_to_be_looked_into_count_as_they_are() -> None:
    assert Sample(24, 24, 0, 0, 0).segments(SEGMENT) == 1


@pytest.mark.parametrize(("records", "full", "expected"), [
    (24_576, 0, 10_000), (12_288, 0, 10_000), (246, 0, 201), (0, 0, 0), (246, 1, 10_000),
])  # fmt: skip
def test_a_condition_that_lets_few_pass_leaves_fewer_records(records: int, full: int, expected: int) -> None:
    """Of 10,000 records and 24 ranges that would hold 512 on each side; twice what the sample lets expect."""
    assert Sample(24, full, records, 0, 0, full).fewer(10_000) == expected
