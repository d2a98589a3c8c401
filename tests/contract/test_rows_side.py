"""A Python generator keeps the contract of sides."""

from __future__ import annotations

import pytest

from trueup.errors import BadInput, ConfigError, IncompleteScan
from trueup.model.natural import natural
from trueup.ports import Scope
from trueup.sides.callable import Rows
from trueup.testing.sides import SideContract, WindowedSideContract
from trueup.testing.sides.asking import projection_of, scanned


class TestRows(SideContract, WindowedSideContract):
    @pytest.fixture
    def make(self):
        def make(columns, key, version=None, rows=()):
            def factory():
                for row in rows:
                    # A string of JSON is a document to a JSON column, so the text stays text there.
                    yield {
                        name: text if columns[name].name == "json" else natural(text, columns[name])
                        for name, text in row.items()
                    }

            return Rows(factory, key=key, version=version, columns=columns)

        return make


def test_given_a_generator_that_fails_midway_the_scan_is_incomplete():
    def factory():
        yield {"id": 1}
        raise ConnectionResetError("secret value 4711")

    side = Rows(factory, key="id", columns={"id": "integer"})
    with pytest.raises(IncompleteScan, match="ConnectionResetError after 1 rows") as caught:
        scanned(side, projection_of(side, ["id"], []))
    assert isinstance(caught.value.__cause__, ConnectionResetError)
    assert "4711" not in str(caught.value)


def test_given_a_factory_that_fails_at_once_the_scan_is_incomplete():
    def factory():
        raise ValueError("no")

    with pytest.raises(IncompleteScan, match="after 0 rows"):
        Rows(factory, key="id").describe()


def test_kinds_are_inferred_from_the_first_rows_by_python_type():
    rows = [{"id": 1, "fee": 2, "note": None}, {"id": 2, "fee": 2.5, "tags": ["a"]}]
    side = Rows(lambda: rows, key="id")
    kinds = {column.name: str(column.kind) for column in side.describe().columns}
    assert kinds == {"id": "integer", "fee": "decimal", "note": "text", "tags": "array of text"}


def test_a_later_value_of_another_type_is_an_oddity():
    side = Rows(lambda: ({"id": i, "n": i if i < 1_500 else "x"} for i in range(2_000)), key="id")
    found = {row["id"]: row["n"] for row in scanned(side, projection_of(side, ["id"], ["n"]))}
    assert (found["7"], found["1999"]) == ("7", "!x")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"n": 1}, "row 1,002 of rows has no key column id"),
        ({"id": 2, "m": 1}, "row 1,002 of rows has a column m"),
        ([2], "row 1,002 of rows is not a mapping"),
    ],
)
def test_a_row_that_does_not_fit_is_named(row, message):
    side = Rows(lambda: [*[{"id": 1, "n": 1}] * 1_001, row], key="id")
    with pytest.raises(BadInput, match=message):
        scanned(side, _ids())


def _ids():
    side = Rows(lambda: [{"id": 1, "n": 1}], key="id")
    return projection_of(side, ["id"], [])


def test_conditions_are_refused():
    side = Rows(lambda: [{"id": 1}], key="id")
    with pytest.raises(ConfigError, match="takes no condition"):
        side.scan(_ids(), Scope(where="id > 1"))


def test_the_function_is_called_once_for_a_scan():
    calls = []

    def factory():
        calls.append(1)
        return [{"id": 1}]

    side = Rows(factory, key="id", columns={"id": "integer"})
    projection = projection_of(side, ["id"], [])
    calls.clear()
    scanned(side, projection)
    assert len(calls) == 1
