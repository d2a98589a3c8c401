"""What a side that applies changes must do beside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import pytest

from trueup.model.kinds import INTEGER, TEXT, Kind, kind_named
from trueup.model.record import Found
from trueup.ports import Side, WritableSide, Write, Written
from trueup.testing.sides.asking import (
    EDGES,
    KEYS,
    Make,
    asked,
    flat,
    key_of,
    projection_of,
    row,
    scanned,
    values_of,
)
from trueup.testing.sides.reading import SideContract


class WritableSideContract(SideContract):
    """What a side that applies changes must do beside."""

    COLUMNS: ClassVar[Mapping[str, Kind]] = {"id": INTEGER, "name": TEXT, "kept": TEXT}

    @pytest.fixture
    def shelf(self, make: Make) -> Shelf:
        """Records 1 and 2, with a column that the projection does not know."""
        rows = [row("1", name="a", kept="one"), row("2", name="b", kept="two")]
        return Shelf(make(dict(self.COLUMNS), ["id"], None, rows))

    def test_put_where_absent(self, shelf: Shelf) -> None:
        written = shelf.put("3", "c", expect="")
        assert written.landed
        assert written.replica == shelf.read("3")
        assert shelf.names() == {"1": "a", "2": "b", "3": "c"}

    def test_put_where_absent_is_refused_where_present(self, shelf: Shelf) -> None:
        written = shelf.put("1", "x", expect="")
        assert (written.landed, written.replica) == (False, shelf.read("1"))
        assert shelf.names() == {"1": "a", "2": "b"}

    def test_put_with_the_token_it_read(self, shelf: Shelf) -> None:
        written = shelf.put("1", "x", expect=shelf.token("1"))
        assert written.landed
        assert written.replica == shelf.read("1")
        assert shelf.names() == {"1": "x", "2": "b"}

    def test_put_with_a_passed_token_is_refused(self, shelf: Shelf) -> None:
        token = shelf.token("1")
        shelf.put("1", "newer", expect=token)
        written = shelf.put("1", "late", expect=token)
        assert (written.landed, written.replica) == (False, shelf.read("1"))
        assert shelf.names() == {"1": "newer", "2": "b"}

    def test_put_with_a_token_is_refused_where_absent(self, shelf: Shelf) -> None:
        written = shelf.put("9", "x", expect=shelf.token("1"))
        assert (written.landed, written.replica) == (False, None)
        assert shelf.names() == {"1": "a", "2": "b"}

    def test_put_without_precondition(self, shelf: Shelf) -> None:
        assert shelf.put("1", "x", expect=None).landed
        assert shelf.put("3", "c", expect=None).landed
        assert shelf.names() == {"1": "x", "2": "b", "3": "c"}

    def test_put_leaves_other_columns_alone(self, shelf: Shelf) -> None:
        shelf.put("1", "x", expect=shelf.token("1"))
        whole = projection_of(shelf.side, ["id"], ["name", "kept"])
        assert shelf.side.read(whole, [key_of("1")])[key_of("1")].values == {"id": "1", "name": "x", "kept": "one"}

    def test_put_of_some_fields_leaves_the_others(self, shelf: Shelf) -> None:
        whole = projection_of(shelf.side, ["id"], ["name", "kept"])
        token = shelf.side.read(whole, [key_of("1")])[key_of("1")].token
        (written,) = shelf.side.apply(whole, [Write(key_of("1"), {"kept": "new"}, token)])
        assert written.landed
        assert written.replica is not None
        assert written.replica.values == {"id": "1", "name": "a", "kept": "new"}

    def test_put_of_null(self, shelf: Shelf) -> None:
        written = shelf.put("1", None, expect=shelf.token("1"))
        assert written.landed
        assert shelf.names() == {"1": None, "2": "b"}
        assert shelf.put("1", "", expect=shelf.token("1")).landed
        assert shelf.names() == {"1": "", "2": "b"}

    def test_put_of_what_is_there_lands(self, shelf: Shelf) -> None:
        for _ in range(2):
            written = shelf.put("1", "a", expect=shelf.token("1"))
            assert (written.landed, written.replica) == (True, shelf.read("1"))

    def test_delete_with_the_token_it_read(self, shelf: Shelf) -> None:
        written = shelf.delete("1", expect=shelf.token("1"))
        assert (written.landed, written.replica) == (True, None)
        assert shelf.names() == {"2": "b"}

    def test_delete_with_a_passed_token_is_refused(self, shelf: Shelf) -> None:
        token = shelf.token("1")
        shelf.put("1", "newer", expect=token)
        written = shelf.delete("1", expect=token)
        assert (written.landed, written.replica) == (False, shelf.read("1"))
        assert shelf.names() == {"1": "newer", "2": "b"}

    def test_delete_where_absent(self, shelf: Shelf) -> None:
        assert shelf.delete("9", expect="").landed
        assert shelf.delete("9", expect=None).landed
        assert not shelf.delete("9", expect=shelf.token("1")).landed
        assert not shelf.delete("1", expect="").landed
        assert shelf.names() == {"1": "a", "2": "b"}

    def test_delete_without_precondition(self, shelf: Shelf) -> None:
        assert shelf.delete("1", expect=None).landed
        assert shelf.names() == {"2": "b"}

    def test_a_refused_write_does_not_keep_others_from_landing(self, shelf: Shelf) -> None:
        one, two = shelf.token("1"), shelf.token("2")
        writes = [
            Write(key_of("1"), {"name": "x"}, two), Write(key_of("2"), {"name": "y"}, two),
            Write(key_of("3"), {"name": "z"}, ""), Write(key_of("1"), None, ""), Write(key_of("1"), {"name": "w"}, one),
        ]  # fmt: skip
        written = shelf.side.apply(shelf.projection, writes)
        assert [(each.key, each.landed) for each in written] == [
            (key_of("1"), False), (key_of("2"), True), (key_of("3"), True), (key_of("1"), False), (key_of("1"), True),
        ]  # fmt: skip
        assert shelf.names() == {"1": "w", "2": "y", "3": "z"}

    def test_writes_of_one_key_apply_in_order(self, shelf: Shelf) -> None:
        writes = [Write(key_of("3"), {"name": name}, None) for name in ("x", "y")]
        writes += [Write(key_of("2"), None, None), Write(key_of("2"), {"name": "back"}, "")]
        assert [each.landed for each in shelf.side.apply(shelf.projection, writes)] == [True] * 4
        assert shelf.names() == {"1": "a", "2": "back", "3": "y"}

    def test_apply_of_nothing(self, shelf: Shelf) -> None:
        assert shelf.side.apply(shelf.projection, []) == []

    def test_apply_in_bulk(self, shelf: Shelf) -> None:
        writes = [Write(key_of(str(number)), {"name": f"n{number}"}, "") for number in range(10, 1_510)]
        written = shelf.side.apply(shelf.projection, writes)
        assert [each.key for each in written] == [write.key for write in writes]
        assert all(each.landed and each.replica is not None for each in written)
        assert len(shelf.names()) == 1_502

    @pytest.mark.parametrize(("kind", "text"), flat(EDGES))
    def test_put_reads_back_the_canonical_text(self, make: Make, kind: str, text: str) -> None:
        columns = {"id": INTEGER, "value": kind_named(kind)}
        side = _writable(make(columns, ["id"], None, []))
        projection = projection_of(side, ["id"], ["value"], kinds=asked(side, columns))
        (written,) = side.apply(projection, [Write(key_of("1"), {"value": text}, "")])
        assert written.replica is not None
        assert written.replica.values["value"] == text
        assert values_of(scanned(side, projection)) == {"1": text}

    @pytest.mark.parametrize("kind", KEYS)
    def test_put_by_keys_of_kind(self, make: Make, kind: str) -> None:
        columns = {"code": kind_named(kind), "name": TEXT}
        side = _writable(make(columns, ["code"], None, []))
        projection = projection_of(side, ["code"], ["name"], kinds=asked(side, columns))
        keys = [key_of(text) for text in KEYS[kind]]
        side.apply(projection, [Write(key, {"name": "old"}, "") for key in keys])
        written = side.apply(projection, [Write(key, {"name": f"n{at}"}, None) for at, key in enumerate(keys)])
        assert all(each.landed for each in written)
        found = side.read(projection, keys)
        assert [found[key].values["name"] for key in keys] == [f"n{at}" for at in range(len(keys))]
        assert all(each.landed for each in side.apply(projection, [Write(key, None, None) for key in keys]))
        assert scanned(side, projection) == []

    def test_put_by_compositekey_of(self, make: Make) -> None:
        columns = {"name": TEXT, "no": INTEGER, "region": TEXT}
        side = _writable(make(columns, ["region", "no"], None, [{"region": "eu", "no": "1", "name": "a"}]))
        projection = projection_of(side, ["region", "no"], ["name"])
        writes = [Write(key_of("eu", "1"), {"name": "x"}, None), Write(key_of("us", "1"), {"name": "y"}, "")]
        assert [each.landed for each in side.apply(projection, writes)] == [True, True]
        assert {(row["region"], row["no"]): row["name"] for row in scanned(side, projection)} == {
            ("eu", "1"): "x", ("us", "1"): "y",
        }  # fmt: skip

    def test_put_against_the_version(self, make: Make) -> None:
        rows = [row("1", at="5", name="a"), row("2", at="6", name="b")]
        side = _writable(make({"id": INTEGER, "at": INTEGER, "name": TEXT}, ["id"], "at", rows))
        projection = projection_of(side, ["id"], ["name"], version="at")
        tokens = {key: each.token for key, each in side.read(projection, [key_of("1"), key_of("2")]).items()}
        passed = Write(key_of("1"), {"name": "x", "at": "7"}, tokens[key_of("2")])
        right = Write(key_of("1"), {"name": "y", "at": "7"}, tokens[key_of("1")])
        late = Write(key_of("1"), {"name": "z", "at": "8"}, tokens[key_of("1")])
        written = side.apply(projection, [passed, right, late])
        assert [each.landed for each in written] == [False, True, False]
        assert side.read(projection, [key_of("1")])[key_of("1")].values["name"] == "y"


class Shelf:
    """A writable side with a projection over `name`."""

    def __init__(self, side: Side) -> None:
        self.side = _writable(side)
        self.projection = projection_of(side, ["id"], ["name"])

    def put(self, key: str, name: str | None, *, expect: str | None) -> Written:
        """One put."""
        return self._one(Write(key_of(key), {"name": name}, expect))

    def delete(self, key: str, *, expect: str | None) -> Written:
        """One delete."""
        return self._one(Write(key_of(key), None, expect))

    def read(self, key: str) -> Found | None:
        """One record."""
        return self.side.read(self.projection, [key_of(key)]).get(key_of(key))

    def token(self, key: str) -> str:
        """The token of a record that is there."""
        found = self.read(key)
        assert found is not None
        return found.token

    def names(self) -> dict[str, str | None]:
        """Names by key, by a scan."""
        return {row["id"]: row["name"] for row in scanned(self.side, self.projection)}

    def _one(self, write: Write) -> Written:
        (written,) = self.side.apply(self.projection, [write])
        return written


def _writable(side: Side) -> WritableSide:
    assert isinstance(side, WritableSide)
    return side
