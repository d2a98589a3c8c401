"""What a side must do whose records can be marked as done."""

from __future__ import annotations

from trueup.model.kinds import BOOLEAN, INTEGER
from trueup.model.record import Projection
from trueup.ports import MarkableSide, Scope, Side
from trueup.testing.sides.asking import (
    Contract,
    Make,
    key_of,
    projection_of,
    row,
    scanned,
)


class MarkableSideContract(Contract):
    """What a side that can mark records as done must do; it knows the condition `not synced`."""

    def test_mark_where_the_version_is_the_one_read(self, make: Make) -> None:
        side, projection = self._made(make)
        assert side.mark(projection, key_of("1"), 5, "synced = true") == (True, 5)
        assert self._synced(side, projection) == {"1": "true", "2": "false"}

    def test_mark_where_the_version_moved(self, make: Make) -> None:
        side, projection = self._made(make)
        landed, _ = side.mark(projection, key_of("1"), 4, "synced = true")
        assert not landed
        assert self._synced(side, projection) == {"1": "false", "2": "false"}

    def test_mark_of_an_absent_record(self, make: Make) -> None:
        side, projection = self._made(make)
        assert side.mark(projection, key_of("9"), 5, "synced = true") == (False, None)

    def test_selects_what_its_condition_selects_now(self, make: Make) -> None:
        side, projection = self._made(make)
        keys = [key_of("1"), key_of("2"), key_of("9")]
        assert side.selects(projection, keys, "not synced") == set(keys[:2])
        side.mark(projection, key_of("1"), 5, "synced = true")
        assert side.selects(projection, keys, "not synced") == {key_of("2")}
        assert side.selects(projection, [], "not synced") == set()

    def test_scan_of_what_a_condition_selects(self, make: Make) -> None:
        side, projection = self._made(make)
        side.mark(projection, key_of("1"), 5, "synced = true")
        assert isinstance(side, Side)
        assert [each["id"] for each in scanned(side, projection, Scope(where="not synced"))] == ["2"]
        assert [each["id"] for each in scanned(side, projection, Scope(since=5, where="not synced"))] == ["2"]

    @staticmethod
    def _made(make: Make) -> tuple[MarkableSide, Projection]:
        rows = [row("1", at="5", synced="false"), row("2", at="5", synced="false")]
        side = make({"id": INTEGER, "at": INTEGER, "synced": BOOLEAN}, ["id"], "at", rows)
        assert isinstance(side, MarkableSide)
        return side, projection_of(side, ["id"], [], version="at", extra=["synced"], kinds={"synced": BOOLEAN})

    @staticmethod
    def _synced(side: MarkableSide, projection: Projection) -> dict[str, str | None]:
        assert isinstance(side, Side)
        return {row["id"]: row["synced"] for row in scanned(side, projection)}
