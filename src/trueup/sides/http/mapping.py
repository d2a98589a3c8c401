"""Records in JSON: where they are in an answer, which value is which column, and the way back."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final

import jmespath
import jmespath.exceptions
import pyarrow as pa

from trueup.errors import BadInput, ConfigError, SideError
from trueup.model import kinds
from trueup.model.canonical import canonical_text, is_odd
from trueup.model.kinds import JSON, TEXT, Column, Kind
from trueup.model.natural import natural
from trueup.model.record import Field, Found, Projection, key_parts, version_of
from trueup.sides import scanning
from trueup.sides.http.calls import Answer
from trueup.sides.inference import inferred

_WRAPPERS: Final = ("data", "items", "results")
# Said of a column that had no value in the first page: its kind is a guess.
UNSEEN: Final = "null"


def compiled(expression: str, what: str) -> Any:
    """A JMESPath; ConfigError where it is none."""
    try:
        return jmespath.compile(expression)
    except jmespath.exceptions.JMESPathError as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"{what}: {expression!r} is no JMESPath: {reason}", hint="See jmespath.org.") from None


@dataclass(frozen=True, slots=True)
class Pick:
    """One value out of an answer: `header:NAME`, or a JMESPath into the body."""

    spelled: str
    expression: Any

    @staticmethod
    def of(spelled: str | None, what: str) -> Pick | None:
        """None where nothing is declared."""
        if spelled is None:
            return None
        return Pick(spelled, None if spelled.startswith("header:") else compiled(spelled, what))

    def __call__(self, answer: Answer, body: Any) -> Any:
        """The value, or None."""
        if self.expression is None:
            return answer.headers.get(self.spelled.removeprefix("header:"))
        return _search(self.expression, body, f"{self.spelled!r} in an answer of {answer.who}")


def _search(expression: Any, value: Any, what: str) -> Any:
    try:
        return expression.search(value)
    except jmespath.exceptions.JMESPathError as error:
        raise BadInput(f"{what} can't be found: {type(error).__name__}.", hint="Correct the JMESPath.") from None


class Wrapping:
    """Where records are in an answer. items, item: JMESPath to the list in a page, to the record in a single answer.

    Undeclared: the body itself, else what it holds under data, items or results.
    """

    def __init__(self, who: str, items: str | None, item: str | None) -> None:
        self.who = who
        self._items = None if items is None else compiled(items, "items")
        self._item = None if item is None else compiled(item, "item")
        # What was guessed, so that it can be said.
        self.guessed = ""

    def items(self, body: Any) -> list[Any]:
        """The records of a page; BadInput where there is no list."""
        if self._items is not None:
            found = _search(self._items, body, "items")
        elif isinstance(body, dict):
            names = [name for name in _WRAPPERS if isinstance(body.get(name), list)]
            if len(names) != 1:
                many = " and ".join(names) if names else "none of data, items, results"
                hint = "Say where the list of records is, for example items='response.rows'."
                raise BadInput(f"{self.who}: which list holds the records? The answer has {many}.", hint=hint)
            self.guessed = names[0]
            found = body[names[0]]
        else:
            found = body
        if not isinstance(found, list):
            hint = "Say where the list of records is, for example items='response.rows'."
            raise BadInput(f"{self.who}: there is no list of records in its answer.", hint=hint)
        return found

    def item(self, body: Any, key: str) -> Any:
        """The record of a single answer. key: a column that tells a record from its wrapping."""
        if self._item is not None:
            return _search(self._item, body, "item")
        if isinstance(body, dict) and key not in body:
            wrapped = [body[name] for name in ("data", "item", "result") if isinstance(body.get(name), dict)]
            return wrapped[0] if len(wrapped) == 1 else body
        return body


class Shape:
    """Which value of a record is which column. fields: JMESPath by column; undeclared: the record's own names."""

    def __init__(
        self, label: str, key: Sequence[str], fields: Mapping[str, str] | None, declared: Mapping[str, Kind]
    ) -> None:
        self.label, self.key = label, tuple(key)
        self._fields = None if fields is None else {name: compiled(each, name) for name, each in fields.items()}
        self._declared = dict(declared)
        self.columns: tuple[Column, ...] = ()
        self._kinds: Mapping[str, Kind] = {}
        if fields is not None and (lost := [name for name in (*key, *declared) if name not in fields]):
            raise ConfigError(f"{label}: fields does not say where {lost[0]} is.", hint=f"Add {{{lost[0]!r}: '…'}}.")

    def learn(self, items: Sequence[Any], version: str | None) -> None:
        """The columns, from what is declared and from the first records."""
        if self._fields is None:
            for item in items:
                self._check(item)
        found = self._fields or {name: None for item in items for name in item}
        if items and (lost := [name for name in self.key if name not in found]):
            raise scanning.missing_column(lost[0], list(found), self.label)
        columns = []
        for name in dict.fromkeys([*self._declared, *found]):
            values = [self.value(item, name) for item in items]
            kind = self._declared.get(name) or inferred(values)
            if name == version and name not in self._declared and kind == TEXT:
                kind = _version_kind([value for value in values if value is not None])
            unseen = name not in self._declared and all(value is None for value in values)
            columns.append(Column(name, kind, native=kind == TEXT, declared=UNSEEN if unseen else str(kind)))
        self.columns = tuple(columns)
        self._kinds = {column.name: column.kind for column in columns if column.declared != UNSEEN}

    def kind(self, field: Field) -> Kind:
        """The API's own kind of a field, for writing; the asked one where none was seen."""
        return self._kinds.get(field.source, field.kind)

    def value(self, item: Any, name: str) -> Any:
        """A raw value of a record."""
        if self._fields is not None:
            expression = self._fields.get(name)
            return None if expression is None else _search(expression, item, f"{self.label}: {name}")
        self._check(item)
        if name in self.key and name not in item:
            raise BadInput(f"a record of {self.label} has no {name}, which is part of the key.", hint="Correct key.")
        return item.get(name)

    def place(self, name: str) -> tuple[str, ...]:
        """Where a written value goes; ConfigError where a column is computed from others."""
        if self._fields is None:
            return (name,)
        place = _plain_place(self._fields[name].parsed) if name in self._fields else ()
        if not place:
            hint = "Only plain paths such as price.amount can be written. Leave the field out, or write it yourself."
            raise ConfigError(f"{self.label}: {name} can't be written, for it is computed.", hint=hint)
        return place

    def _check(self, item: Any) -> None:
        if not isinstance(item, dict):
            raise BadInput(f"a record of {self.label} is no JSON object.", hint="Say where columns are, with fields.")

    # Reading.

    def batch(self, items: Sequence[Any], projection: Projection) -> pa.RecordBatch:
        """Records as a scan delivers them."""
        arrays = []
        for field in projection.columns:
            if field is projection.version:
                texts = self._array(items, replace(field, native=False))
                arrays.append(scanning.versions_of(texts, field))
            else:
                arrays.append(self._array(items, field))
        return pa.RecordBatch.from_arrays(arrays, schema=scanning.schema_of(projection))

    def _array(self, items: Sequence[Any], field: Field) -> pa.Array[Any]:
        values = [self.value(item, field.source) for item in items]
        own = self._own(field)
        if own.name == "json":
            return scanning.column_of([_spelled(value) for value in values], field)
        if own in (TEXT, field.kind):
            return scanning.column_of(values, field)
        return scanning.delivered_texts([self._text(value, own, field) for value in values], field)

    def found(self, item: Any, projection: Projection, token: str = "") -> Found:
        """One record. token: its ETag, if it has one that writes may name."""
        values = {field.name: self.text_of(item, field) for field in projection.columns}
        version = None
        if projection.version is not None:
            version = version_of(values[projection.version.name], projection.version.kind)
        return scanning.found(projection, values, version, token)

    def text_of(self, item: Any, field: Field) -> str | None:
        """One canonical text of a record."""
        return self._text(self.value(item, field.source), self._own(field), field)

    def missing_key(self, projection: Projection, key: str, item: Mapping[str, Any]) -> dict[str, Any]:
        """The key parts, as raw values, that a record which was asked for by key leaves out."""
        if self._fields is not None:
            return {}
        texts = self.keyed(projection, key)
        return {each.source: texts[each.name] for each in projection.key if each.source not in item}

    def _own(self, field: Field) -> Kind:
        """The declared kind, which a value is read under first; of what is merely inferred, only JSON matters."""
        kind = self._kinds.get(field.source, TEXT)
        return kind if field.source in self._declared or kind.name == "json" else TEXT

    @staticmethod
    def _text(value: Any, own: Kind, field: Field) -> str | None:
        if own.name == "json":
            return canonical_text(_spelled(value), field.kind)
        if own in (TEXT, field.kind):
            return canonical_text(value, field.kind)
        return scanning.respelled(canonical_text(value, own), own, field.kind)

    # Writing.

    def written(self, projection: Projection, values: Mapping[str, str | None]) -> dict[tuple[str, ...], Any]:
        """JSON values by place. values: canonical texts by field name."""
        by_name = {field.name: field for field in projection.columns}
        answer = {}
        for name, text in values.items():
            field, own = by_name[name], self.kind(by_name[name])
            answer[self.place(field.source)] = json_value(scanning.respelled(text, field.kind, own), own)
        return answer

    def keyed(self, projection: Projection, key: str) -> dict[str, str | None]:
        """Texts of the key's parts by field name."""
        return {field.name: part for field, part in zip(projection.key, key_parts(key), strict=True)}


def _version_kind(values: Sequence[Any]) -> Kind:
    """What the texts of an undeclared version column are: a version has to be a number or a time."""
    for kind in (kinds.INTEGER, kinds.TIMESTAMP, kinds.INSTANT):
        if values and not any(is_odd(canonical_text(value, kind), kind) for value in values):
            return kind
    return TEXT


def _plain_place(node: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of a JMESPath that is nothing but names and dots; empty for any other."""
    if node["type"] == "field":
        return (node["value"],)
    if node["type"] != "subexpression":
        return ()
    parts = [_plain_place(child) for child in node["children"]]
    return tuple(name for part in parts for name in part) if all(parts) else ()


def _spelled(value: Any) -> str | None:
    """A JSON value as JSON text, so that a string is not taken for text that spells JSON."""
    return None if value is None else canonical_text(value if not isinstance(value, str) else json.dumps(value), JSON)


def json_value(text: str | None, kind: Kind) -> Any:
    """What JSON holds for a canonical text: numbers exactly, what JSON has no type for as text."""
    if text is None or is_odd(text, kind):
        return text if text is None else text[1:]
    match kind.name:
        case "boolean":
            return text == "true"
        case "integer" | "decimal" | "float":
            return text if text in ("nan", "infinity", "-infinity") else Decimal(text)
        case "json":
            return natural(text, kind)
        case "array":
            return _elements(json.loads(text), kind.element)
        case _:
            return text


def _elements(items: Sequence[Any], element: Kind) -> list[Any]:
    return [_elements(each, element) if isinstance(each, list) else json_value(each, element) for each in items]


def overlaid(record: Any, values: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    """A copy of a JSON object with values set at their places."""
    answer: dict[str, Any] = copy.deepcopy(record) if isinstance(record, dict) else {}
    for place, value in values.items():
        inner = answer
        for name in place[:-1]:
            if not isinstance(inner.get(name), dict):
                inner[name] = {}
            inner = inner[name]
        inner[place[-1]] = value
    return answer


def dumped(value: Any) -> str:
    """JSON text with every number as it is."""
    match value:
        case dict():
            return "{" + ",".join(f"{json.dumps(name)}:{dumped(each)}" for name, each in value.items()) + "}"
        case list():
            return "[" + ",".join(map(dumped, value)) + "]"
        case Decimal():
            return str(value)
        case _:
            return json.dumps(value)


# Addresses.

_HOLE: Final = re.compile(r"(?<!\$)\{(\w+)\}")


def check_template(template: str, key: Sequence[str], what: str) -> str:
    """The template; ConfigError where it speaks of what is not known. `${NAME}` is left to the environment."""
    known = ("url", *(("key", *key) if key else ()))
    if unknown := [name for name in _HOLE.findall(template) if name not in known]:
        hint = f"Known are {', '.join(known)}."
        raise ConfigError(f"{what}: {{{unknown[0]}}} is not known.", hint=hint)
    return template


def address(template: str, url: str, key: Mapping[str, str] | None = None) -> str:
    """An address with its holes filled. key: texts by key column, in order; they are URL-encoded here."""
    parts = {name: _encoded(text) for name, text in (key or {}).items()}
    filled = {"url": url, "key": "/".join(parts.values()), **parts}
    return _HOLE.sub(lambda hole: filled[hole[1]], template)


def _encoded(text: str) -> str:
    from urllib.parse import quote  # noqa: PLC0415  httpx2 does not export its own

    # A part of dots would be taken for a way up the path.
    return quote(text, safe="").replace(".", "%2E") if set(text) == {"."} else quote(text, safe="")


def addressed(projection: Projection, key: str) -> dict[str, str] | None:
    """A key's parts as an address can name them, by column; None where it can't: a part is null or empty."""
    answer = {}
    for field, part in zip(projection.key, key_parts(key), strict=True):
        if not part:
            return None
        answer[field.source] = part[1:] if is_odd(part, field.kind) else part
    return answer


def can_be(projection: Projection, key: str) -> bool:
    """Whether any value has this key text: `["!1"]` is no number's."""
    for field, part in zip(projection.key, key_parts(key), strict=True):
        raw = part[1:] if part is not None and is_odd(part, field.kind) else part
        if canonical_text(raw, field.kind) != part:
            return False
    return True


def mismatch(who: str, key: str) -> SideError:
    """The error for an answer about another record."""
    hint = "Does item_url name the record by the whole key?"
    return BadInput(f"{who} answered another record when asked for {key}.", hint=hint)
