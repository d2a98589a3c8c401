"""What a side must do that can be read a range of keys at a time."""

from __future__ import annotations

import pytest

from trueup.model.kinds import TEXT, Kind
from trueup.model.record import Projection
from trueup.ports import DivisibleSide, Scope
from trueup.testing.sides.asking import Contract, Make, projection_of, row, scanned

INTEGER = Kind("integer", bits=64)
FEW, MANY = [-(2**62), -3, 0, 1, 2, 2**62], range(-500, 2_500, 3)


class DivisibleSideContract(Contract):
    """Pieces hold every record exactly once, and each costs what it holds."""

    @pytest.mark.parametrize("pieces", [2, 3, 7, 400])
    @pytest.mark.parametrize("ids", [FEW, MANY], ids=["few", "many"])
    def test_every_record_is_in_exactly_one_piece(self, make: Make, ids: list[int], pieces: int) -> None:
        side, projection = self._divisible(make, ids)
        bounds = side.cut(projection, pieces)
        assert [int(low) for low in bounds] == sorted({int(low) for low in bounds})
        assert 1 <= len(bounds) < pieces
        found = [self._piece(side, projection, low, high) for low, high in self._ranges(bounds)]
        assert sorted(number for piece in found for number in piece) == list(ids)

    def test_pieces_are_about_equal_however_the_numbers_lie(self, make: Make) -> None:
        ids = [*range(1_000), *range(10**12, 10**12 + 1_000)]
        side, projection = self._divisible(make, ids)
        sizes = [len(self._piece(side, projection, *each)) for each in self._ranges(side.cut(projection, 4))]
        assert len(sizes) == 4
        assert max(sizes) <= 2 * min(sizes)

    def test_an_empty_side_is_not_cut(self, make: Make) -> None:
        side, projection = self._divisible(make, [])
        assert side.cut(projection, 5) == []

    def test_a_key_that_is_no_number_is_not_cut(self, make: Make) -> None:
        side = make({"id": TEXT, "name": TEXT}, ["id"], None, [row(f"k{at}", name="n") for at in range(100)])
        assert isinstance(side, DivisibleSide)
        assert side.cut(projection_of(side, ["id"], ["name"]), 4) == []

    def test_the_first_column_of_a_key_need_not_be_unique(self, make: Make) -> None:
        rows = [{"shop": str(at // 60), "id": str(at), "name": "n"} for at in range(300)]
        side = make({"shop": INTEGER, "id": INTEGER, "name": TEXT}, ["shop", "id"], None, rows)
        assert isinstance(side, DivisibleSide)
        projection = projection_of(side, ["shop", "id"], ["name"])
        bounds = side.cut(projection, 10)
        assert 1 <= len(bounds) <= 5
        found = [
            each["id"] for low, high in self._ranges(bounds)
            for each in scanned(side, projection, Scope(low=low, high=high))
        ]  # fmt: skip
        assert sorted(map(int, found)) == list(range(300))

    def _divisible(self, make: Make, ids: list[int]) -> tuple[DivisibleSide, Projection]:
        side = make({"id": INTEGER, "name": TEXT}, ["id"], None, [row(str(at), name="n") for at in ids])
        assert isinstance(side, DivisibleSide)
        return side, projection_of(side, ["id"], ["name"])

    @staticmethod
    def _ranges(bounds: list[str]) -> list[tuple[str | None, str | None]]:
        return list(zip([None, *bounds], [*bounds, None], strict=True))

    @staticmethod
    def _piece(side: DivisibleSide, projection: Projection, low: str | None, high: str | None) -> list[int]:
        return [int(each["id"] or 0) for each in scanned(side, projection, Scope(low=low, high=high))]
