"""The contract of sides, as test suites that ship: run your adapter against them in three lines.

    class TestMine(SideContract):              # or WritableSideContract, which includes it
        @pytest.fixture
        def make(self):
            def make(columns, key, version=None, rows=()): ...   # a side that holds these rows
            return make

`make` is called with columns (name → Kind), key columns, the version column or None, and rows (canonical
texts by column; `trueup.model.natural.natural` gives Python values). It answers a new side each time and
closes what it opened at the fixture's end. Make the key unique, except where the rows that are given repeat
it or hold a null in it.

A system that can't do something declares it: `gaps` maps a test to the reason. A test is named as pytest
names it (`test_scan_gives_the_canonical_text[float-'nan']`), or without its parameters, or with the kind alone
(`test_scan_gives_the_canonical_text[float]`). It must then fail: a gap that closes unnoticed fails the suite.
"""

from __future__ import annotations

import pytest

# So that an assertion of a suite explains itself in an outsider's test run as it does in ours.
_MODULES = ("asking", "dividing", "marking", "reading", "windowed", "writing")
pytest.register_assert_rewrite(*(f"{__name__}.{module}" for module in _MODULES))

from trueup.testing.sides.dividing import DivisibleSideContract  # noqa: E402  after the line above
from trueup.testing.sides.marking import MarkableSideContract  # noqa: E402
from trueup.testing.sides.reading import SideContract  # noqa: E402
from trueup.testing.sides.windowed import WindowedSideContract  # noqa: E402
from trueup.testing.sides.writing import WritableSideContract  # noqa: E402

__all__ = [
    "DivisibleSideContract",
    "MarkableSideContract",
    "SideContract",
    "WindowedSideContract",
    "WritableSideContract",
]
