"""Numbers as people write them in files: decimal commas and grouping marks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute

from trueup.errors import ConfigError
from trueup.model.columns import delivered
from trueup.model.kinds import TEXT
from trueup.model.record import Field
from trueup.sides.files.chunk import UnfitError, first_true

# The kernels take Python values where their type stubs only know Arrow scalars.
pc: Any = pyarrow.compute
_NUMERIC = ("integer", "decimal", "float")
# What no plain number looks like, yet a number in somebody's country: 12,5 · 1.250,00 · 1,250.00 · 1.234.567
_FOREIGN = r"^\s*[+-]?(?:[\d.]*\d,\d+|\d{1,3}(?:,\d{3})+\.\d*|\d{1,3}(?:\.\d{3}){2,})\s*$"


@dataclass(frozen=True, slots=True)
class Numerals:
    """The declared marks: `decimal` before the fraction, `thousands` between groups of three digits."""

    decimal: str = "."
    thousands: str | None = None

    def __post_init__(self) -> None:
        if len(self.decimal) != 1 or (self.thousands is not None and len(self.thousands) != 1):
            raise ConfigError("decimal and thousands are single characters.", hint='For example decimal=",".')
        if self.decimal == self.thousands:
            raise ConfigError(f"decimal and thousands are both {self.decimal!r}.", hint="They must differ.")

    @property
    def plain(self) -> bool:
        """Whether numbers are written as the canonical rules read them."""
        return self.decimal == "." and self.thousands is None

    def split(self, array: pa.Array[Any]) -> tuple[pa.Array[Any], pa.Array[Any]]:
        """The texts with a plain point and no grouping, and where a text is no number in this writing."""
        point, group = re.escape(self.decimal), re.escape(self.thousands or "")
        whole = rf"\d{{1,3}}(?:{group}\d{{3}})+|\d+" if group else r"\d+"
        trimmed = pc.utf8_trim_whitespace(array)
        number = rf"(?i)^[+-]?(?:(?:{whole})(?:{point}\d*)?(?:e[+-]?\d+)?|inf|infinity|nan)$"
        odd = pc.invert(pc.match_substring_regex(trimmed, number))
        bare = pc.replace_substring(trimmed, self.thousands, "") if self.thousands else trimmed
        return pc.replace_substring(bare, self.decimal, "."), odd


@dataclass(frozen=True, slots=True)
class TextValues:
    """Values of a text file: Arrow strings."""

    array: pa.Array[Any]
    numerals: Numerals
    zone: ZoneInfo | None

    def deliver(self, field: Field) -> pa.Array[Any]:
        """Parsed by the rules of the asked kind; numbers in the declared writing, or none that needs one."""
        if field.kind.name not in _NUMERIC:
            return delivered(self.array, TEXT, field, self.zone)
        if self.numerals.plain:
            row = first_true(pc.match_substring_regex(self.array, _FOREIGN))
            if row is not None:
                hint = 'Declare how its numbers are written, for example decimal="," thousands=".".'
                raise UnfitError(row, f"not a plain number, but asked for as {field.kind}", hint)
            return delivered(self.array, TEXT, field, self.zone)
        texts, odd = self.numerals.split(self.array)
        marked = pc.binary_join_element_wise("!", self.array, "")
        answer: pa.Array[Any] = pc.if_else(odd, marked, delivered(texts, TEXT, field, self.zone))
        return answer

    def filter(self, mask: pa.Array[Any]) -> TextValues:
        """Those where the mask is true."""
        return TextValues(self.array.filter(mask), self.numerals, self.zone)
