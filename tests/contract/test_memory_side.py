"""The memory side keeps the contract of sides, with each way to compare what a write expects."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest

from trueup.errors import ConfigError, SchemaError
from trueup.ports import Scope, Write
from trueup.sides.memory import Memory
from trueup.testing.sides import (
    DivisibleSideContract,
    MarkableSideContract,
    WindowedSideContract,
    WritableSideContract,
)
from trueup.testing.sides.asking import key_of, projection_of


class TestMemory(WritableSideContract, MarkableSideContract, DivisibleSideContract, WindowedSideContract):
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


def _asked(side, *fields, version=None):
    return projection_of(side, side.key, fields, version=version)


def test_rows_may_be_a_mapping_by_key():
    side = Memory({("eu", 1): {"name": "a"}, ("us", 1): {"name": "b"}}, key=["region", "no"])
    assert side.get("us", 1) == {"region": "us", "no": 1, "name": "b"}


def test_without_preconditions_every_write_lands():
    side = Memory([{"id": 1, "name": "a"}], key="id", tokens="none")
    writes = [Write(key_of("1"), {"name": "x"}, "stale"), Write(key_of("1"), {"name": "y"}, "")]
    assert [each.landed for each in side.apply(_asked(side, "name"), writes)] == [True, True]
    assert side.get(1)["name"] == "y"


def test_an_opaque_token_notices_a_value_that_came_back():
    side = Memory([{"id": 1, "name": "a"}], key="id", tokens="opaque")
    projection = _asked(side, "name")
    token = side.read(projection, [key_of("1")])[key_of("1")].token
    side.put({"id": 1, "name": "b"})
    side.put({"id": 1, "name": "a"})
    assert not side.apply(projection, [Write(key_of("1"), {"name": "x"}, token)])[0].landed


class _Still:
    def now_us(self):
        return 1_000_000

    def elapsed_us(self):
        raise NotImplementedError

    def sleep(self, seconds):
        raise NotImplementedError

    def every(self, seconds, call):
        raise NotImplementedError


def test_stamped_versions_grow_with_every_write():
    columns = {"id": "integer", "at": "instant", "n": "integer"}
    side = Memory(key="id", version="at", columns=columns, clock=_Still(), stamp=True)
    side.put({"id": 1, "n": 1})
    projection = _asked(side, "n", version="at")
    first = side.read(projection, [key_of("1")])[key_of("1")]
    (written,) = side.apply(projection, [Write(key_of("1"), {"n": "2"}, first.token)])
    assert (first.version, written.landed, written.replica.version) == (1_000_000, True, 1_000_001)
    assert side.mark(projection, key_of("1"), 1_000_001, "n = 3") == (True, 1_000_002)


def test_a_mark_understands_literals():
    columns = {"id": "integer", "synced": "boolean", "note": "text", "n": "decimal", "Odd name": "text"}
    side = Memory([{"id": 1}], key="id", columns=columns)
    mark = "synced = TRUE, note = 'it''s', n=-1.5 , \"Odd name\" = null"
    assert side.mark(_asked(side), key_of("1"), None, mark) == (True, None)
    assert side.get(1) == {"id": 1, "synced": True, "note": "it's", "n": Decimal("-1.5"), "Odd name": None}
    for wrong in ("synced", "synced = now()", "note = 'open", "synced == true"):
        with pytest.raises(ConfigError, match="can't carry out the mark"):
            side.mark(_asked(side), key_of("1"), None, wrong)
    with pytest.raises(SchemaError, match="no column syncd"):
        side.mark(_asked(side), key_of("1"), None, "syncd = true")


def test_an_unknown_condition_is_named():
    side = Memory([{"id": 1}], key="id", conditions={"not synced": bool})
    with pytest.raises(ConfigError, match="no condition 'unsynced'"):
        side.scan(_asked(side), Scope(where="unsynced"))


def test_a_scan_sees_one_instant():
    side = Memory([{"id": number, "n": 0} for number in range(40_000)], key="id")
    scan = side.scan(_asked(side, "n", version=None))
    next(scan)
    side.put({"id": 39_999, "n": 1})
    side.remove(39_998)
    rest = [value for batch in scan for value in batch.column(1).to_pylist()]
    assert set(rest) == {"0"}
    assert len(side.rows()) == 39_999


def test_of_many_threads_with_one_token_one_write_lands():
    side = Memory([{"id": 1, "n": 0}], key="id")
    projection = _asked(side, "n")
    for _ in range(20):
        token = side.read(projection, [key_of("1")])[key_of("1")].token
        with ThreadPoolExecutor(8) as pool:
            writes = [Write(key_of("1"), {"n": str(int(side.get(1)["n"]) + 1 + at)}, token) for at in range(8)]
            landed = [each[0].landed for each in pool.map(lambda write: side.apply(projection, [write]), writes)]
        assert sum(landed) == 1
