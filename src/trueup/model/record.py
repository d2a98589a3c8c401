"""Keys, fields and records: what a side is asked for and what it answers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from json.encoder import encode_basestring as _quoted
from typing import Any, Final
from zoneinfo import ZoneInfo

from trueup.errors import SchemaError
from trueup.model.canonical import nfc
from trueup.model.digest import digest_of
from trueup.model.kinds import TEXT, Kind
from trueup.model.natural import natural
from trueup.model.numbers import ODD, WIDE, round_decimal_text
from trueup.model.times import parse_us

_TEXTUAL: Final = ("text", "enum")
# json.loads would look for white space around what we wrote ourselves.
_parsed: Final = json.JSONDecoder().raw_decode


@dataclass(frozen=True, slots=True)
class Rule:
    """How two values of one field are judged equal. The default is: equal canonical texts.

    places: decimals are rounded to this many digits after the point before they are judged.
    absolute, relative: numbers may differ by `absolute`, or by `relative` times the authority's value.
    seconds: timestamps may differ by this many seconds.
    trim, casefold, nfc: text is judged without surrounding white space, without case, in Unicode form C.
    fill: the authority's value counts only where the replica has none.
    """

    places: int | None = None
    absolute: Decimal | None = None
    relative: Decimal | None = None
    seconds: Decimal | None = None
    trim: bool = False
    casefold: bool = False
    nfc: bool = False
    fill: bool = False

    @property
    def tolerant(self) -> bool:
        """Whether unequal texts may still be judged equal."""
        return self.absolute is not None or self.relative is not None or self.seconds is not None

    @property
    def folds(self) -> bool:
        """Whether values are judged and digested as something else than their canonical texts."""
        return self.places is not None or self.trim or self.casefold or self.nfc

    @property
    def exact(self) -> bool:
        """Whether the rule is plain equality of canonical texts."""
        return self == EXACT

    def judged(self, text: str | None, kind: Kind) -> str | None:
        """The text that is compared and digested."""
        if text is None or self is EXACT:
            return text
        if kind.name in _TEXTUAL:
            text = text.strip() if self.trim else text
            text = nfc(text) if self.nfc else text
            text = text.casefold() if self.casefold else text
        if self.places is not None and kind.name in ("decimal", "integer"):
            text = round_decimal_text(text, self.places)
        return text

    def same(self, left: str | None, right: str | None, kind: Kind) -> bool:
        """Whether the two canonical texts count as equal; `left` is the authority's."""
        a, b = self.judged(left, kind), self.judged(right, kind)
        if a == b or (self.fill and b is not None):
            return True
        if a is None or b is None or not self.tolerant:
            return False
        return self._within(a, b, kind)

    def _within(self, a: str, b: str, kind: Kind) -> bool:
        if ODD in (a[:1], b[:1]) or any("infinity" in each or each == "nan" for each in (a, b)):
            return False
        if kind.name in ("decimal", "integer", "float"):
            # In a wide context: Python's default of 28 digits would round the gap.
            gap = WIDE.subtract(Decimal(a), Decimal(b)).copy_abs()
            if self.absolute is not None and gap <= self.absolute:
                return True
            return self.relative is not None and gap <= WIDE.multiply(self.relative, Decimal(a)).copy_abs()
        if self.seconds is not None and kind.name == "timestamp":
            gap_us = abs(parse_us(a, kind.aware, None) - parse_us(b, kind.aware, None))
            return gap_us <= self.seconds * 1_000_000
        return False


EXACT: Final = Rule()


@dataclass(frozen=True, slots=True)
class Field:
    """One field as it is asked of a side: its name in the pair, the side's column, how to read and judge it.

    native: the side delivers `kind.arrow()` in scans; else canonical text.
    """

    name: str
    source: str
    kind: Kind
    native: bool = False
    rule: Rule = EXACT


@dataclass(frozen=True, slots=True)
class Projection:
    """What a side is asked for: key columns, optional version, fields, and columns read only for values.

    Scans deliver record batches whose columns are, by position: key, version (int64; only where declared),
    fields, extra. Equal pairs of projections (authority's and replica's) agree in all but `source`.
    """

    key: tuple[Field, ...]
    fields: tuple[Field, ...]
    version: Field | None = None
    extra: tuple[Field, ...] = ()

    @property
    def columns(self) -> tuple[Field, ...]:
        """All columns in the order in which scans deliver them."""
        version = () if self.version is None else (self.version,)
        return (*self.key, *version, *self.fields, *self.extra)

    def digest(self, values: Mapping[str, str | None]) -> str:
        """The record's digest: 128 bits over the judged canonical texts of `fields`, as 32 hex digits."""
        return digest_of([each.rule.judged(values.get(each.name), each.kind) for each in self.fields])

    def changed_fields(self, left: Mapping[str, str | None], right: Mapping[str, str | None]) -> tuple[str, ...]:
        """Names of the fields that are not judged equal; `left` is the authority's."""
        return tuple(
            each.name
            for each in self.fields
            if not each.rule.same(left.get(each.name), right.get(each.name), each.kind)
        )


@dataclass(frozen=True, slots=True)
class Found:
    """A record as one side answered it.

    key: key text. values: canonical texts by field name (key and extra columns included).
    version: the authority's version, or None. token: what a conditional write must still find (the row
    version where one is declared, else the digest of the fields).
    copies: how many rows carry this key; more than one is a duplicate and `values` are one of them.
    """

    key: str
    values: Mapping[str, str | None]
    version: int | None = None
    token: str = ""
    copies: int = 1


def key_text(parts: Iterable[str | None]) -> str:
    """The key as text: a compact JSON array of canonical texts in declared column order."""
    # As json.dumps writes it, which would build an encoder for every key.
    return f"[{','.join(['null' if part is None else _quoted(part) for part in parts])}]"


def key_parts(key: str) -> tuple[str | None, ...]:
    """The canonical texts of a key text; SchemaError where it is not one."""
    try:
        parts = json.loads(key)
    except ValueError:
        parts = None
    if not isinstance(parts, list) or not all(part is None or isinstance(part, str) for part in parts):
        raise SchemaError(f"{key} is not a key.", hint='Keys are JSON arrays of texts, such as ["42"] or ["eu","7"].')
    return tuple(parts)


def version_of(text: str | None, kind: Kind, zone: ZoneInfo | None = None) -> int | None:
    """A version as int64: an integer, or an instant in UTC microseconds. Anything else is no version.

    text: canonical; a time may be spelled in any way. zone: of wall-clock times among those.
    """
    if text is None or text.startswith(ODD):
        return None
    try:
        version = int(text) if kind.name == "integer" else parse_us(text, kind.aware, zone)
    except ValueError:
        return None
    return version if -(2**63) <= version < 2**63 else None


@dataclass(frozen=True, slots=True)
class Payload:
    """Values of a record with their kinds, as kept in the ledger."""

    values: Mapping[str, str | None]
    kinds: Mapping[str, Kind] = field(default_factory=dict)

    def dumps(self) -> str:
        """Typed canonical JSON: text as a string, any other kind as {"kind": "text"}."""
        told = []
        for name, text in self.values.items():
            before, after = _framed(name, self.kinds.get(name, TEXT))
            told.append(f"{_quoted(name)}:null" if text is None else f"{before}{_quoted(text)}{after}")
        return f"{{{','.join(told)}}}"

    @staticmethod
    def loads(text: str | None) -> Payload:
        """The inverse of `dumps`."""
        values: dict[str, str | None] = {}
        kinds: dict[str, Kind] = {}
        for name, typed in (_parsed(text)[0] if text else {}).items():
            kind, value = next(iter(typed.items())) if isinstance(typed, dict) else ("text", typed)
            values[name], kinds[name] = value, _read_kind(kind)
        return Payload(values, kinds)

    def natural(self) -> dict[str, Any]:
        """Python values by name."""
        return {name: natural(text, self._kind(name)) for name, text in self.values.items()}

    def _kind(self, name: str) -> Kind:
        return self.kinds.get(name, TEXT)


@lru_cache(maxsize=4_096)
def _framed(name: str, kind: Kind) -> tuple[str, str]:
    """What stands before and behind the text of a value."""
    if kind == TEXT:
        return f"{_quoted(name)}:", ""
    return f"{_quoted(name)}:{{{_quoted(_spell(kind))}:", "}"


def _spell(kind: Kind) -> str:
    if kind.name == "timestamp" and kind.aware:
        return "instant"
    return f"array:{_spell(kind.item or TEXT)}" if kind.name == "array" else kind.name


@lru_cache(maxsize=256)
def _read_kind(spelled: str) -> Kind:
    if spelled == "instant":
        return Kind("timestamp", aware=True)
    name, _, item = spelled.partition(":")
    return Kind(name, item=_read_kind(item) if item else None)  # type: ignore[arg-type]
