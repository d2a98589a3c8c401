"""What a side must do that can be asked for an interval of time."""

from __future__ import annotations

import pytest

from trueup.errors import SchemaError
from trueup.model.digest_columns import hash_sum
from trueup.model.kinds import DATE, DECIMAL, INSTANT, INTEGER, TEXT, TIMESTAMP, Kind, kind_named
from trueup.model.times import parse_us
from trueup.model.window import Span, Windows
from trueup.ports import Scope, WindowedSide
from trueup.testing.sides.asking import Contract, Make, projection_of, row, scanned

BERLIN, MEXICO = "Europe/Berlin", "America/Mexico_City"
# Around both changes of Berlin's clocks in 2026, a microsecond to each side of its midnights.
INSTANTS = (
    "2026-03-27T23:00:00Z", "2026-03-28T22:59:59.999999Z", "2026-03-28T23:00:00Z", "2026-03-29T00:59:59Z",
    "2026-03-29T01:00:00Z", "2026-03-29T21:59:59.999999Z", "2026-03-29T22:00:00Z", "2026-10-24T21:59:59Z",
    "2026-10-24T22:00:00Z", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T22:59:59.999999Z",
    "2026-10-25T23:00:00Z",
)  # fmt: skip


class WindowedSideContract(Contract):
    """Windows hold what lies in them, and every record that has a time lies in exactly one."""

    def test_an_interval_holds_its_beginning_and_not_its_end(self, make: Make) -> None:
        side = self._windowed(make, INSTANT, INSTANTS)
        for low, high in zip(INSTANTS, INSTANTS[3:], strict=False):
            expected = [str(at) for at, text in enumerate(INSTANTS) if _us(low) <= _us(text) < _us(high)]
            assert self._found(side, Span("at", _us(low), _us(high), "UTC")) == expected, (low, high)

    def test_an_interval_may_be_open_at_either_end(self, make: Make) -> None:
        side = self._windowed(make, INSTANT, INSTANTS)
        middle = _us(INSTANTS[5])
        assert self._found(side, Span("at", None, middle, "UTC")) == ["0", "1", "2", "3", "4"]
        assert self._found(side, Span("at", middle, None, "UTC")) == [str(at) for at in range(5, len(INSTANTS))]

    @pytest.mark.parametrize("unit", ["h", "d", "w", "mo"])
    def test_every_record_lies_in_exactly_one_window(self, make: Make, unit: str) -> None:
        side = self._windowed(make, INSTANT, INSTANTS)
        windows = Windows("at", "at", BERLIN, unit=unit)
        held = {window: self._found(side, windows.span(window.from_us, window.to_us))
                for window in (windows.at(_us(text)) for text in INSTANTS)}  # fmt: skip
        assert sorted(key for keys in held.values() for key in keys) == sorted(map(str, range(len(INSTANTS))))
        for at, text in enumerate(INSTANTS):
            assert str(at) in held[windows.at(_us(text))]

    def test_dates_are_days_of_the_zone_and_not_of_UTC(self, make: Make) -> None:
        side = self._windowed(make, DATE, ("2026-08-31", "2026-09-01", "2026-09-30", "2026-10-01"))
        windows = Windows("at", "at", MEXICO, unit="mo")
        august, september = windows.at(_us("2026-08-15T12:00:00Z")), windows.at(_us("2026-09-15T12:00:00Z"))
        assert self._found(side, windows.span(august.from_us, august.to_us)) == ["0"]
        assert self._found(side, windows.span(september.from_us, september.to_us)) == ["1", "2"]

    def test_wall_clocks_without_a_zone_are_those_of_the_window(self, make: Make) -> None:
        texts = ("2026-10-24T23:59:59", "2026-10-25T00:00:00", "2026-10-25T02:30:00", "2026-10-26T00:00:00")
        side = self._windowed(make, TIMESTAMP, texts)
        windows = Windows("at", "at", BERLIN)
        day = windows.at(_us("2026-10-25T12:00:00Z"))
        assert self._found(side, windows.span(day.from_us, day.to_us)) == ["1", "2"]

    def test_a_record_without_a_time_lies_in_no_interval(self, make: Make) -> None:
        side = self._windowed(make, INSTANT, (INSTANTS[0], None))
        assert self._found(side, Span("at", None, _us("2099-01-01T00:00:00Z"), "UTC")) == ["0"]
        assert self._found(side, Span("at", _us("1999-01-01T00:00:00Z"), None, "UTC")) == ["0"]

    def test_a_column_that_is_no_time_is_refused(self, make: Make) -> None:
        side = self._windowed(make, INSTANT, INSTANTS)
        assert side.window_kind("at").name == "timestamp"
        with pytest.raises(SchemaError, match="id"):
            side.window_kind("id")
        with pytest.raises(SchemaError, match="bought_at"):
            side.window_kind("bought_at")

    def test_a_sum_taken_in_place_is_the_sum_of_what_is_read(self, make: Make) -> None:
        rows = [row(str(at), at=text, name=f"ü{at}" if at % 3 else None, amount=f"{at}.5")
                for at, text in enumerate(INSTANTS)]  # fmt: skip
        columns = {"id": INTEGER, "at": INSTANT, "name": TEXT, "amount": kind_named("decimal")}
        side = make(columns, ["id"], None, rows)
        assert isinstance(side, WindowedSide)
        projection = projection_of(side, ["id"], ["name", "amount"], kinds={"amount": DECIMAL})
        for low, high in ((INSTANTS[2], INSTANTS[7]), (INSTANTS[0], "2027-01-01T00:00:00Z"), (INSTANTS[1],) * 2):
            span = Span("at", _us(low), _us(high), BERLIN)
            read = hash_sum(side.scan(projection, Scope(window=span)), projection)
            assert read.count == len(self._found(side, span))
            assert side.window_sum(projection, span) in (None, read)

    def _windowed(self, make: Make, kind: Kind, texts: tuple[str | None, ...]) -> WindowedSide:
        side = make({"id": INTEGER, "at": kind}, ["id"], None, [row(str(n), at=text) for n, text in enumerate(texts)])
        assert isinstance(side, WindowedSide)
        return side

    @staticmethod
    def _found(side: WindowedSide, span: Span) -> list[str]:
        rows = scanned(side, projection_of(side, ["id"], []), Scope(window=span))
        return sorted((each["id"] for each in rows), key=int)


def _us(text: str) -> int:
    return parse_us(text, aware=True, zone=None)
