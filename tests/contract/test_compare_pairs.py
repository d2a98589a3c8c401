"""Generated pairs of tables, on every two engines and by every strategy: not one wrong answer."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from trueup.model.canonical import canonical_text
from trueup.testing.pairs.drawing import Pair
from trueup.testing.pairs.engines import TYPES, opened
from trueup.testing.pairs.engines.engine import Engine
from trueup.testing.pairs.oracle import Told, answer
from trueup.testing.pairs.shrinking import smaller, story
from trueup.testing.pairs.spelled import is_mistake, written
from trueup.testing.pairs.trial import tried
from trueup.testing.pairs.turns import Combination, combinations, pair_of
from trueup.testing.pairs.values import FAMILIES, KINDS, MISTAKES, POOLS, drawn, near

SEED = 20_261_129
SEEN_MIN = 20
ANSWERED_MIN = 5
EXAMPLES = SEEN_MIN * len(combinations())


@pytest.fixture(scope="session")
def engines(
    postgres_url: str, mariadb_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, Engine]]:
    with opened(tmp_path_factory.mktemp("pairs"), postgres_url, mariadb_url) as engines:
        yield engines


@pytest.fixture(autouse=True)
def no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of comparisons, whose files live for a moment each, need not wait for a disk."""
    if Path("/dev/shm").is_dir():  # noqa: S108  where temporary files go
        monkeypatch.setattr(tempfile, "tempdir", "/dev/shm")  # noqa: S108


@pytest.mark.postgres
@pytest.mark.mariadb
@pytest.mark.parametrize("combination", combinations(), ids="-".join)
def test_no_answer_is_wrong(combination: Combination, engines: Mapping[str, Engine]) -> None:
    """Given pairs of tables on two engines, I expect the right answer for each, and each strategy at work."""
    every = combinations()
    answered: Counter[str] = Counter()
    numbers = range(every.index(combination), EXAMPLES, len(every))
    for number in numbers:
        drawn_for, pair = pair_of(SEED, number)
        assert drawn_for == combination
        trial = tried(pair, engines)
        if trial.wrong:
            small = smaller(pair, lambda each: bool(tried(each, engines).wrong))
            pytest.fail(story(small, tried(small, engines).wrong))
        answered[trial.strategy] += 1
    print(f"{' '.join(combination)}: {len(numbers)} examples, answered by {dict(answered)}")
    assert EXAMPLES >= 2_000
    assert len(numbers) >= SEEN_MIN
    # Not every pair of tables can be compared by the strategy that is asked for; many must be.
    assert combination[2] == "auto" or answered[combination[2]] >= ANSWERED_MIN


# The generator itself.


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_drawn_is_canonical_and_every_spelling_of_it_means_it(family: str) -> None:
    chance = random.Random(family)
    texts = [*POOLS[family], *(drawn(family, chance) for _ in range(300))]
    texts += [text for each in texts if (text := near(each, family, chance)) is not None and text[:1] != "!"]
    for text in texts:
        assert canonical_text(text, KINDS[family]) == text
        assert canonical_text(written(text, family, chance), KINDS[family]) == text
    for text in MISTAKES.get(family, ()):
        assert canonical_text(text, KINDS[family]) == f"!{text}"
        assert is_mistake(f"!{text}", family)


@pytest.mark.parametrize("engine", TYPES)
def test_every_engine_holds_every_kind_of_value(engine: str) -> None:
    assert {each.family for each in TYPES[engine]} == set(FAMILIES)
    for each in TYPES[engine]:
        assert any(each.fits(text) for text in [*POOLS[each.family], *_many(each.family)]), each


def _many(family: str) -> list[str]:
    chance = random.Random(7)
    return [drawn(family, chance) for _ in range(500)]


def test_the_right_answer() -> None:
    left = [("1", "a"), ("2", "a"), ("3", None), ("4", "a"), ("4", "b"), (None, "x")]
    right = [("1", "a"), ("2", "b"), ("3", ""), ("4", "b"), ("5", "a"), (None, "x")]

    told = answer(left, right, 1)

    assert told.told == {
        '["2"]': Told("differ", (1,), 1, 1, (("2", "a"),), (("2", "b"),)),
        '["3"]': Told("differ", (1,), 1, 1, (("3", None),), (("3", ""),)),
        '["4"]': Told("duplicate", (), 2, 1, (("4", "a"),), ()),
        '["5"]': Told("extra", (), 0, 1, (), (("5", "a"),)),
    }
    assert told.agreeing == {'["1"]': ("1", "a"), "[null]": (None, "x")}
    assert told.counts == {
        "left": 6, "right": 6, "same": 2, "missing": 0, "extra": 1, "differ": 2, "duplicate": 1
    }  # fmt: skip
    assert told.fields == {1: 2}


def test_a_failure_is_made_small() -> None:
    """Given that pairs fail whose right table has a certain value, I expect a pair of one row and one field."""
    number = next(each for each in range(1000) if len(pair_of(SEED, each)[1].rows[1]) > 20)
    pair = pair_of(SEED, number)[1]
    bad = next(text for row in pair.rows[1] for text in row[pair.keys :] if text is not None)

    def fails(each: Pair) -> bool:
        return any(bad in row[each.keys :] for row in each.rows[1])

    small = smaller(pair, fails)

    assert fails(small)
    assert len(small.rows[0]) == 0
    assert len(small.rows[1]) == 1
    assert len(small.columns) == 2
    assert f"example {number}" in story(small, "it fails")
