"""The memory side keeps the contract of sides, with each way to compare what a write expects."""

from __future__ import annotations

import pytest

from trueup.sides.memory import Memory
from trueup.testing.sides import MarkableSideContract, WritableSideContract


class TestMemory(WritableSideContract, MarkableSideContract):
    @pytest.fixture
    def make(self):
        def make(columns, key, version=None, rows=()):
            unsynced = {"not synced": lambda row: not row["synced"]}
            return Memory(rows, key=key, version=version, columns=columns, conditions=unsynced)

        return make


class TestMemoryWithOpaqueTokens(WritableSideContract):
    @pytest.fixture
    def make(self):
        def make(columns, key, version=None, rows=()):
            return Memory(rows, key=key, version=version, columns=columns, tokens="opaque")

        return make
