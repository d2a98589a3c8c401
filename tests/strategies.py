"""Values that systems and programs may hand to trueup, for property tests."""

from __future__ import annotations

import datetime as dt
import decimal
import json
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

from trueup.model import kinds as k
from trueup.model.kinds import Kind

FLOAT32 = Kind("float", bits=32)
SCALARS = (
    k.BOOLEAN, k.INTEGER, k.DECIMAL, Kind("decimal", scale=2, precision=10), k.FLOAT, FLOAT32, k.TEXT, k.ENUM,
    k.BYTES, k.UUID, k.DATE, k.TIME, k.TIMESTAMP, k.INSTANT, k.INTERVAL, k.JSON,
)  # fmt: skip
BERLIN = ZoneInfo("Europe/Berlin")

any_kind = st.recursive(st.sampled_from(SCALARS), lambda item: item.map(lambda kind: Kind("array", item=kind)))
any_zone = st.sampled_from([None, BERLIN, ZoneInfo("America/New_York")])

# Text that looks like a value, and text that once broke somebody's parser.
_shapes = st.one_of(
    st.from_regex(r"[+-]?[0-9]{1,8}([.,:eE-][0-9]{1,8}){0,6}( BC|Z|[+-][0-9]{2}(:[0-9]{2})?)?", fullmatch=True),
    st.from_regex(r"-?P(-?[0-9]{1,4}[YMWD]){0,4}(T(-?[0-9]{1,4}[HMS]){0,3})?", fullmatch=True),
)
_hostile = st.sampled_from(
    [
        "", " ", "!", "!!", "~", "-0", "-0.00", "+", ".", "1e400", "1e999999", "1e99999999999999999999", "9" * 5000,
        "nan", "NaN", "-nan", "sNaN", "inf", "Infinity", "-infinity", "1_000", "٣", "0x", "\\x", "0xzz", "a b",
        "0000-00-00", "2023-07-00 08:15:00", "2023-02-29", "24:00:00", "24:00:01", "23:59:60", "-838:59:59", "25:00",
        "10000-01-01", "+12345-01-01", "-0001-12-31", "0001-01-01 BC", "0000-01-01 BC", "9999-12-31 24:00:00",
        "0001-01-01T00:00:00+14:00", "05:10+00:00:30", "P", "PT", "-P", "P1YT", "{", "[", "[" * 20_000, "[NaN]",
        '{"a":1,"a":2}', '"\\ud800"', "\ud800", "[1e400]", '["!"]',
    ]
)  # fmt: skip
any_text = st.one_of(st.text(), _shapes, _hostile)

_python_scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.decimals(), any_text, st.binary(), st.uuids(),
    st.dates(), st.times(), st.times(timezones=st.just(dt.UTC)), st.datetimes(), st.timedeltas(),
    st.datetimes(timezones=st.timezones()), st.complex_numbers(), st.builds(object), st.builds(bytearray, st.binary()),
    st.builds(lambda: 10**5000), st.builds(lambda: decimal.Decimal("1e999999")),
    st.builds(lambda: decimal.Decimal("sNaN")),
    st.builds(lambda: dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=14)))),
)  # fmt: skip
_names = st.one_of(st.text(), st.integers(), st.booleans(), st.none())
any_value = st.recursive(
    _python_scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.sets(st.integers(), max_size=3),
        st.dictionaries(_names, inner, max_size=4),
    ),
    max_leaves=6,
)

json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(), inner, max_size=4)),
    max_leaves=8,
)


def _values_of(kind: Kind) -> st.SearchStrategy[Any]:
    """Values that fit a kind, as drivers or as files give them."""
    match kind.name:
        case "boolean":
            return st.sampled_from([True, False, 0, 1, "t", "FALSE", 1.0])
        case "integer":
            return st.one_of(st.integers(), st.integers().map(str), st.booleans(), st.integers(-99, 99).map(float))
        case "decimal":
            return st.one_of(
                st.decimals(allow_nan=False), st.decimals(allow_nan=False).map(str), st.floats(), st.integers()
            )
        case "float":
            return st.one_of(st.floats(), st.floats().map(repr), st.integers(-(10**20), 10**20))
        case "text" | "enum":
            return st.text()
        case "bytes":
            return st.one_of(st.binary(), st.binary().map(bytes.hex))
        case "uuid":
            return st.one_of(st.uuids(), st.uuids().map(str))
        case "date":
            return st.one_of(st.dates(), st.dates().map(str))
        case "time":
            return st.one_of(st.times(), st.times(timezones=st.just(dt.UTC)), st.timedeltas())
        case "timestamp":
            return st.datetimes(timezones=st.timezones()) if kind.aware else st.one_of(st.datetimes(), st.dates())
        case "interval":
            return st.one_of(st.timedeltas(), st.integers(-999, 999).map(lambda months: f"P{months}MT5.25S"))
        case "json":
            return st.one_of(json_values, json_values.map(json.dumps))
        case _:
            item = _values_of(kind.item or k.TEXT)
            return st.lists(st.one_of(st.none(), item), max_size=4)


# A kind with a value that fits it.
fitting = any_kind.flatmap(lambda kind: st.tuples(st.just(kind), _values_of(kind)))
