"""What sides that enumerate in Python share gives what the reference rules give."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueup.model.canonical import canonical_text
from trueup.model.kinds import BOOLEAN, DATE, DECIMAL, FLOAT, INSTANT, INTEGER, TEXT, TIMESTAMP
from trueup.model.record import Field, version_of
from trueup.sides.scanning import column_of, versions_of

_KINDS = [BOOLEAN, INTEGER, DECIMAL, FLOAT, TEXT, DATE, TIMESTAMP, INSTANT]
_VALUES = (
    st.none() | st.booleans() | st.integers() | st.integers(-2, 2) | st.floats() | st.decimals() | st.datetimes()
    | st.dates() | st.uuids() | st.binary() | st.text(st.characters(codec="utf-8"))
    | st.datetimes(timezones=st.just(dt.UTC)).map(dt.datetime.isoformat)
)  # fmt: skip
_OF_ONE_TYPE = st.sampled_from([
    st.booleans(), st.integers(), st.integers(-(2**63), 2**63 - 1), st.floats(), st.decimals(), st.binary(),
    st.text(st.characters(codec="utf-8")), st.integers() | st.decimals(),
]).flatmap(lambda values: st.lists(values | st.none()))  # fmt: skip


@pytest.mark.parametrize("kind", _KINDS, ids=str)
@given(values=st.lists(_VALUES) | _OF_ONE_TYPE)
def test_a_column_of_python_values_holds_their_canonical_texts(kind, values):
    found = column_of(values, Field("v", "v", kind))
    assert found.type == pa.string()
    assert found.to_pylist() == [canonical_text(value, kind) for value in values]


@pytest.mark.parametrize("kind", [INTEGER, INSTANT, TIMESTAMP, TEXT, DATE, DECIMAL], ids=str)
@given(st.lists(_VALUES))
def test_versions_are_those_of_the_reference(kind, values):
    texts = [canonical_text(value, kind) for value in values]
    expected = [version_of(text, kind) for text in texts]
    assert versions_of(pa.array(texts, pa.string()), Field("v", "v", kind)).to_pylist() == expected


@pytest.mark.parametrize(("kind", "texts"), [
    (INTEGER, ["1", "!x", None, "9223372036854775807", "-5"]),
    (INTEGER, ["9223372036854775808", "1"]),
    (INSTANT, ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000001Z", None]),
    (INSTANT, ["infinity", "2026-01-01T00:00:00Z"]),
    (TIMESTAMP, ["+12026-01-01T00:00:00", "0001-01-01T00:00:00", "!no"]),
])  # fmt: skip
def test_versions_at_the_edges(kind, texts):
    found = versions_of(pa.array(texts, pa.string()), Field("v", "v", kind)).to_pylist()
    assert found == [version_of(text, kind) for text in texts]
