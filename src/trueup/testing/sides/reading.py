"""What every side must do."""

from __future__ import annotations

import pyarrow as pa
import pytest

from trueup.errors import SchemaError
from trueup.model.kinds import BOOLEAN, DECIMAL, INSTANT, INTEGER, TEXT, TIMESTAMP, Kind, kind_named
from trueup.model.record import Field, Projection
from trueup.ports import Scope
from trueup.testing.sides.asking import (
    EDGES,
    KEYS,
    Contract,
    Make,
    asked,
    flat,
    key_of,
    projection_of,
    row,
    scanned,
    values_of,
)


class SideContract(Contract):
    """What every side must do. Subclass it and give it a fixture `make`."""

    # Enumeration.

    def test_describe_names_the_columns_in_order(self, make: Make) -> None:
        side = make({"id": INTEGER, "name": TEXT, "paid": BOOLEAN}, ["id"], None, [row("1", name="a", paid="true")])
        description = side.describe()
        assert [column.name for column in description.columns] == ["id", "name", "paid"]
        assert description.label
        assert description.system
        assert (side.label, side.key, side.version) == (description.label, ("id",), None)

    def test_scan_delivers_columns_by_position(self, make: Make) -> None:
        columns = {"note": TEXT, "at": INTEGER, "id": INTEGER, "more": TEXT}
        side = make(columns, ["id"], "at", [{"id": "7", "at": "40", "note": "n", "more": "m"}])
        projection = projection_of(side, ["id"], ["note"], version="at", extra=["more"])
        batches = [batch for batch in side.scan(projection) if batch.num_rows]
        assert [column.to_pylist()[0] for column in batches[0].columns[1:]] == [40, "n", "m"]
        assert batches[0].column(1).type == pa.int64()
        assert batches[0].num_columns == 4

    def test_scan_has_the_declared_arrow_types(self, make: Make) -> None:
        side = make({"id": INTEGER, "name": TEXT, "paid": BOOLEAN}, ["id"], None, [row("1", name="a", paid="true")])
        for native in (True, False):
            projection = projection_of(side, ["id"], ["name", "paid"], native=native)
            for batch in side.scan(projection):
                for field, array in zip(projection.columns, batch.columns, strict=True):
                    assert array.type == (field.kind.arrow() if field.native else pa.string()), field.name

    @pytest.mark.parametrize(("kind", "text"), flat(EDGES))
    def test_scan_gives_the_canonical_text(self, make: Make, kind: str, text: str) -> None:
        columns = {"id": INTEGER, "value": kind_named(kind)}
        side = make(columns, ["id"], None, [row("1", value=text), row("2", value=None)])
        for native in (True, False):
            projection = projection_of(side, ["id"], ["value"], kinds=asked(side, columns), native=native)
            assert values_of(scanned(side, projection)) == {"1": text, "2": None}

    def test_scan_marks_what_does_not_fit_the_asked_kind(self, make: Make) -> None:
        values = {"1": "7", "2": "007", "3": "x", "4": "7.5", "5": "-0", "6": None}
        rows = [row(key, value=text) for key, text in values.items()]
        side = make({"id": INTEGER, "value": TEXT}, ["id"], None, rows)
        projection = projection_of(side, ["id"], ["value"], kinds={"value": INTEGER})
        assert values_of(scanned(side, projection)) == {
            "1": "7", "2": "!007", "3": "!x", "4": "!7.5", "5": "0", "6": None,
        }  # fmt: skip

    def test_scan_shows_every_record_once(self, make: Make) -> None:
        rows = [row(str(number), name=f"n{number}") for number in range(3_000)]
        side = make({"id": INTEGER, "name": TEXT}, ["id"], None, rows)
        projection = projection_of(side, ["id"], ["name"])
        found = scanned(side, projection)
        assert sorted(int(row["id"]) for row in found) == list(range(3_000))
        assert all(row["name"] == f"n{row['id']}" for row in found)

    def test_scan_bounds_its_batches(self, make: Make) -> None:
        rows = [row(str(number), name="x") for number in range(3_000)]
        side = make({"id": INTEGER, "name": TEXT}, ["id"], None, rows)
        assert all(batch.num_rows <= self.batch_rows_max for batch in side.scan(projection_of(side, ["id"], ["name"])))

    def test_scan_can_be_repeated_and_abandoned(self, make: Make) -> None:
        rows = [row(str(number), name="x") for number in range(100)]
        side = make({"id": INTEGER, "name": TEXT}, ["id"], None, rows)
        projection = projection_of(side, ["id"], ["name"])
        next(iter(side.scan(projection)))
        assert len(scanned(side, projection)) == len(scanned(side, projection)) == 100

    def test_scan_of_an_empty_side_is_empty(self, make: Make) -> None:
        side = make({"id": INTEGER, "name": TEXT}, ["id"], None, [])
        projection = projection_of(side, ["id"], ["name"])
        assert scanned(side, projection) == []
        assert side.read(projection, [key_of("1")]) == {}

    def test_scan_of_a_missing_column_names_it(self, make: Make) -> None:
        side = make({"id": INTEGER, "amount": TEXT}, ["id"], None, [row("1", amount="2")])
        projection = Projection((Field("id", "id", INTEGER),), (Field("amount", "amuont", TEXT),))
        with pytest.raises(SchemaError, match="amuont") as caught:
            scanned(side, projection)
        assert "amount" in str(caught.value.hint)

    def test_scan_reads_a_renamed_column(self, make: Make) -> None:
        side = make({"id": INTEGER, "total": TEXT}, ["id"], None, [row("1", total="2")])
        projection = Projection((Field("key", "id", INTEGER),), (Field("amount", "total", TEXT),))
        assert scanned(side, projection) == [{"key": "1", "amount": "2"}]

    # Versions.

    @pytest.mark.parametrize(("kind", "text", "version"), [
        (INTEGER, "9007199254740993", 9007199254740993),
        (INSTANT, "2026-01-02T03:04:05.000006Z", 1767323045000006),
        (TIMESTAMP, "2026-01-02T03:04:05.000006", 1767323045000006),
    ], ids=str)  # fmt: skip
    def test_version_is_int64(self, make: Make, kind: Kind, text: str, version: int) -> None:
        rows = [row("1", at=text, name="a"), row("2", at=None, name="b")]
        side = make({"id": INTEGER, "at": kind, "name": TEXT}, ["id"], "at", rows)
        projection = projection_of(side, ["id"], ["name"], version="at")
        assert {row["id"]: row["at"] for row in scanned(side, projection)} == {"1": version, "2": None}
        found = side.read(projection, [key_of("1"), key_of("2")])
        assert [found[key_of(key)].version for key in ("1", "2")] == [version, None]

    def test_since_is_inclusive_and_ordered_by_version(self, make: Make) -> None:
        versions: list[int | None] = [30, 10, 20, 20, 40, None, 20, 10, 30]
        rows = [row(str(number), at=_text(version), name="x") for number, version in enumerate(versions)]
        side = make({"id": INTEGER, "at": INTEGER, "name": TEXT}, ["id"], "at", rows)
        projection = projection_of(side, ["id"], ["name"], version="at")
        found = [(row["at"], row["id"]) for row in scanned(side, projection, Scope(since=20))]
        assert found == [(20, "2"), (20, "3"), (20, "6"), (30, "0"), (30, "8"), (40, "4")]
        assert scanned(side, projection, Scope(since=41)) == []

    # Reading by key.

    def test_read_answers_only_what_is_there(self, make: Make) -> None:
        side = make({"id": INTEGER, "name": TEXT}, ["id"], None, [row("1", name="a"), row("2", name="b")])
        projection = projection_of(side, ["id"], ["name"])
        found = side.read(projection, [key_of("2"), key_of("9"), key_of("2")])
        assert {key: (each.key, dict(each.values), each.copies) for key, each in found.items()} == {
            key_of("2"): (key_of("2"), {"id": "2", "name": "b"}, 1)
        }
        assert side.read(projection, []) == {}

    def test_read_includes_extra_columns(self, make: Make) -> None:
        side = make({"id": INTEGER, "name": TEXT, "more": TEXT}, ["id"], None, [row("1", name="a", more="m")])
        projection = projection_of(side, ["id"], ["name"], extra=["more"])
        assert side.read(projection, [key_of("1")])[key_of("1")].values["more"] == "m"

    @pytest.mark.parametrize("kind", KEYS)
    def test_read_by_keys_of_kind(self, make: Make, kind: str) -> None:
        columns = {"code": kind_named(kind), "name": TEXT}
        rows = [{"code": text, "name": f"n{number}"} for number, text in enumerate(KEYS[kind])]
        side = make(columns, ["code"], None, rows)
        projection = projection_of(side, ["code"], ["name"], kinds=asked(side, columns))
        found = side.read(projection, [key_of(text) for text in KEYS[kind]])
        assert {key: each.values["name"] for key, each in found.items()} == {
            key_of(text): f"n{number}" for number, text in enumerate(KEYS[kind])
        }

    def test_read_by_compositekey_of(self, make: Make) -> None:
        rows = [{"region": a, "no": b, "name": f"{a}{b}"} for a in ("eu", "us") for b in ("1", "11")]
        side = make({"name": TEXT, "no": INTEGER, "region": TEXT}, ["region", "no"], None, rows)
        projection = projection_of(side, ["region", "no"], ["name"])
        found = side.read(projection, [key_of("eu", "11"), key_of("us", "1"), key_of("e", "u11")])
        assert {key: each.values["name"] for key, each in found.items()} == {
            key_of("eu", "11"): "eu11", key_of("us", "1"): "us1",
        }  # fmt: skip

    def test_read_by_key_with_a_null_part(self, make: Make) -> None:
        rows = [{"region": None, "no": "1", "name": "none"}, {"region": "", "no": "1", "name": "empty"}]
        side = make({"region": TEXT, "no": INTEGER, "name": TEXT}, ["region", "no"], None, rows)
        projection = projection_of(side, ["region", "no"], ["name"])
        found = side.read(projection, [key_of(None, "1"), key_of("", "1")])
        assert {key: each.values["name"] for key, each in found.items()} == {
            key_of(None, "1"): "none", key_of("", "1"): "empty",
        }  # fmt: skip

    def test_read_of_keys_that_can_not_be_there(self, make: Make) -> None:
        side = make({"id": INTEGER, "name": TEXT}, ["id"], None, [row("1", name="a")])
        projection = projection_of(side, ["id"], ["name"])
        odd = [key_of("!x"), key_of("9" * 40), key_of(None), key_of("!1"), key_of("1 ")]
        assert side.read(projection, odd) == {}
        assert list(side.read(projection, [*odd, key_of("1")])) == [key_of("1")]

    def test_read_of_many_keys(self, make: Make) -> None:
        rows = [row(str(number), name=f"n{number}") for number in range(0, 4_000, 2)]
        side = make({"id": INTEGER, "name": TEXT}, ["id"], None, rows)
        projection = projection_of(side, ["id"], ["name"])
        found = side.read(projection, [key_of(str(number)) for number in range(4_000)])
        assert set(found) == {key_of(row["id"]) for row in rows}

    def test_a_key_twice_is_counted(self, make: Make) -> None:
        rows = [row("1", name="a"), row("2", name="b"), row("1", name="a"), row("1", name="c")]
        side = make({"id": INTEGER, "name": TEXT}, ["id"], None, rows)
        projection = projection_of(side, ["id"], ["name"])
        found = side.read(projection, [key_of("1"), key_of("2")])
        assert {key: each.copies for key, each in found.items()} == {key_of("1"): 3, key_of("2"): 1}
        assert sorted(row["id"] for row in scanned(side, projection)) == ["1", "1", "1", "2"]

    def test_read_and_scan_agree(self, make: Make) -> None:
        columns = {"id": INTEGER, "name": TEXT, "fee": DECIMAL, "paid": BOOLEAN}
        rows = [
            {"id": "1", "name": "Zoë", "fee": "12.5", "paid": "true"},
            {"id": "2", "name": None, "fee": None, "paid": None},
        ]
        side = make(columns, ["id"], None, rows)
        projection = projection_of(side, ["id"], ["name", "fee", "paid"], kinds=asked(side, columns))
        found = side.read(projection, [key_of("1"), key_of("2")])
        assert sorted((dict(each.values) for each in found.values()), key=lambda row: str(row["id"])) == rows
        assert sorted(scanned(side, projection), key=lambda row: row["id"]) == rows

    # Tokens.

    def test_token_follows_the_record(self, make: Make) -> None:
        side = make({"id": INTEGER, "name": TEXT}, ["id"], None, [row("1", name="a"), row("2", name="b")])
        projection = projection_of(side, ["id"], ["name"])
        first, again = (side.read(projection, [key_of("1"), key_of("2")]) for _ in range(2))
        assert [each.token for each in first.values()] == [each.token for each in again.values()]
        assert first[key_of("1")].token != first[key_of("2")].token
        assert all(each.token for each in first.values())

    def test_token_follows_the_version(self, make: Make) -> None:
        rows = [row("1", at="5", name="a"), row("2", at="6", name="a"), row("3", at=None, name="a")]
        side = make({"id": INTEGER, "at": INTEGER, "name": TEXT}, ["id"], "at", rows)
        projection = projection_of(side, ["id"], ["name"], version="at")
        found = side.read(projection, [key_of("1"), key_of("2"), key_of("3")])
        assert len({each.token for each in found.values()}) == 3
        assert all(each.token for each in found.values())

    # Ending.

    def test_clock_is_none_or_microseconds(self, make: Make) -> None:
        now = make({"id": INTEGER}, ["id"], None, [row("1")]).now_us()
        assert now is None or 1_600_000_000_000_000 < now < 10_000_000_000_000_000

    def test_close_twice(self, make: Make) -> None:
        side = make({"id": INTEGER}, ["id"], None, [row("1")])
        scanned(side, projection_of(side, ["id"], []))
        side.close()
        side.close()


def _text(version: int | None) -> str | None:
    return None if version is None else str(version)
