"""What the suites ask of a side, and the values at which systems break."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import pytest

from trueup.model.columns import texts
from trueup.model.kinds import Kind
from trueup.model.record import Field, Projection, key_text
from trueup.ports import EVERYTHING, Scope, Side

Texts = Mapping[str, str | None]
Make = Callable[..., Side]

# Per kind, the values at which systems break. Canonical texts.
EDGES: dict[str, tuple[str, ...]] = {
    "boolean": ("true", "false"),
    "integer": ("0", "-1", "9007199254740993", "9223372036854775807", "-9223372036854775808"),
    "decimal(38,6)": ("0", "0.1", "-0.000001", "12345678901234567890123456789012.123456", "100"),
    "decimal": ("0.1", "-1.5", "12345678901234567890.123456789"),
    "float": ("0", "0.1", "-2.5", "1e+22", "5e-324", "1.7976931348623157e+308", "nan", "infinity", "-infinity"),
    "float32": ("0.1", "16777216", "3.4028235e+38"),
    "text": (
        "", " ", "padded ", "007", "1.50", "null", "NULL", "NA", "!odd", "\\N", "tab\tin", 'a "quoted" word', "it's",
        "a,b;c|d", "line one\nline two", "crlf\r\nin", "%s :name ? {x} --", "Zoë", "e\u0301", "日本語", "😀", "\u200b",
    ),
    "bytes": ("", "00", "00ff80", "5c78"),
    "uuid": ("00000000-0000-0000-0000-000000000000", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
    "date": ("0001-01-01", "1582-10-10", "1969-12-31", "2024-02-29", "9999-12-31"),
    "time": ("00:00:00", "12:30:00.5", "23:59:59.999999"),
    "timestamp": ("0001-01-01T00:00:00", "1969-12-31T23:59:59.999999", "2026-03-29T02:30:00", "9999-12-31T23:59:59"),
    "instant": ("1970-01-02T00:00:00Z", "2026-10-25T01:30:00Z", "2037-12-31T23:59:59.999999Z"),
    "interval": ("PT0S", "PT1.5S", "PT-1S", "PT90000S", "P14M"),
    "json": ("null", "true", "[]", "{}", '{"a":[1,2.5,{"b":null}],"z":"é"}', '"text"', "12345678901234567890"),
    "array of integer": ("[]", '["1","-2",null]'),
    "array of text": ('["a","b,c","\\"q\\"",null,""]',),
}  # fmt: skip
KEYS: dict[str, tuple[str, ...]] = {
    "integer": ("0", "-7", "9007199254740993", "9223372036854775807"),
    "text": ("", "007", "7", "a", "A", " a", "Zoë", "日本語", "a,b", 'q"q', "it's", "line\nbreak", "!odd", "%s"),
    "uuid": ("f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "00000000-0000-0000-0000-000000000000"),
    "date": ("1969-12-31", "2024-02-29"),
    "timestamp": ("1969-12-31T23:59:59.999999", "2026-03-29T02:30:00"),
    "decimal(20,4)": ("0.1", "100", "-2.5"),
    "bytes": ("00", "00ff80"),
    "boolean": ("true", "false"),
}


def projection_of(
    side: Side,
    key: Sequence[str],
    fields: Sequence[str],
    *,
    version: str | None = None,
    extra: Sequence[str] = (),
    kinds: Mapping[str, Kind] | None = None,
    native: bool = True,
) -> Projection:
    """Asks a side for its own columns: native where it says it can, under another kind where one is given."""
    description = side.describe()

    def field(name: str) -> Field:
        column = description.column(name)
        assert column is not None, f"{description.label} does not describe its column {name}"
        kind = (kinds or {}).get(name, column.kind)
        fits = native and kind == column.kind and column.native and kind.arrow() is not None
        return Field(name, name, kind, native=fits)

    return Projection(
        tuple(map(field, key)),
        tuple(map(field, fields)),
        None if version is None else field(version),
        tuple(map(field, extra)),
    )


def scanned(side: Side, projection: Projection, scope: Scope = EVERYTHING) -> list[dict[str, Any]]:
    """Every scanned record: canonical texts by name, the version as an integer."""
    answer: list[dict[str, Any]] = []
    names = [field.name for field in projection.columns]
    for batch in side.scan(projection, scope):
        columns = [
            array.to_pylist() if field is projection.version else texts(array, field)
            for field, array in zip(projection.columns, batch.columns, strict=True)
        ]
        answer += [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    return answer


def flat(cases: Mapping[str, Sequence[str]]) -> list[Any]:
    """One test parameter (kind, text) for each value."""
    return [
        pytest.param(kind, text, id=f"{kind}-{text.encode('ascii', 'backslashreplace').decode()!r}")
        for kind, values in cases.items()
        for text in values
    ]


class Contract:
    """What all suites share: the factory, declared gaps, the largest batch a scan may deliver."""

    gaps: ClassVar[Mapping[str, str]] = {}
    batch_rows_max: ClassVar[int] = 100_000

    @pytest.fixture
    def make(self) -> Make:
        """A factory of sides; each adapter brings its own."""
        raise NotImplementedError("a contract subclass has a fixture `make`")

    @pytest.fixture(autouse=True)
    def _declared_gap(self, request: pytest.FixtureRequest) -> None:
        test = request.node.originalname
        spec = getattr(request.node, "callspec", None)
        kind = "" if spec is None else spec.params.get("kind", "")
        for name in (test, request.node.name, f"{test}[{kind}]"):
            if name in self.gaps:
                request.applymarker(pytest.mark.xfail(reason=self.gaps[name], strict=True))


def row(key: str, **values: str | None) -> dict[str, str | None]:
    """A row whose key column is `id`."""
    return {"id": key, **values}


def key_of(*parts: str | None) -> str:
    """A key text."""
    return key_text(parts)


def values_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, str | None]:
    """`value` by `id`."""
    return {each["id"]: each["value"] for each in rows}


def asked(side: Side, columns: Mapping[str, Kind]) -> dict[str, Kind]:
    """Kinds to ask for: the side's own where it has the kind, else the one that was meant."""
    described = {column.name: column.kind for column in side.describe().columns}
    return {name: described[name] if described[name].name == kind.name else kind for name, kind in columns.items()}
