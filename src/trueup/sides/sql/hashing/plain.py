"""The function that engines of different kinds share: SHA-256 of one line of texts, each as its engine has it cheaply.

The canonical hash spends most of its time on framing each text with its length, which is computed for that alone, and
on spelling times and numbers as the digest that is kept for years wants them. Here a text that can't be empty and has
no comma in it ends at a comma, null is empty, and only other texts have their length before them. Times and numbers
are spelled as most engines do by themselves. SHA-256, where processors have instructions for it, is no slower than MD5.

So one line has one reading, and records whose canonical values differ have different lines, whatever the two engines.
A value that is no day, or infinite, may be spelled in one engine as no other does; then the record is read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from trueup.model.digest import PLAIN
from trueup.sides.sql.hashing import hashed_columns

if TYPE_CHECKING:
    from trueup.model.record import Field
    from trueup.sides.sql.hashing import Covered, Hasher
    from trueup.sides.sql.read import Selection

# The last of the first 16 hex digits: 60 bits.
DIGITS: Final = 15
# Texts that are never empty and have no comma.
_UNFRAMED: Final = ("integer", "decimal", "float", "boolean", "uuid", "date", "time", "timestamp")
# SQL for a value, where it may be null: empty then, and never null.
OrEmpty = Callable[["Covered", str], str]


def plain_name(of: Selection) -> str:
    """The function's name. Both sides of a comparison ask for the same kinds."""
    return f"{PLAIN} ({', '.join(_shape(field) for field, _ in hashed_columns(of))})"


def plain_parts(hasher: Hasher, of: Selection, length: str, or_empty: OrEmpty) -> tuple[list[str], str] | None:
    """What is joined by commas and hashed, and the condition under which it would be wrong; None for neither.

    length: format of a text's length in bytes.
    """
    parts: list[str] = []
    unless: list[str] = []
    for column in hashed_columns(of):
        field, known = column
        text = hasher.text(of, field, known)
        if text is None:
            return None
        spelled = hasher.spelled(field, known, of.dialect.quoted(field.source)) or text
        if field.kind.name not in _UNFRAMED:
            parts.append(or_empty(column, length.format(spelled.sql)))
        parts.append(or_empty(column, spelled.sql))
        if spelled.unless:
            unless.append(f"({spelled.unless})")
    return parts, " OR ".join(dict.fromkeys(unless))


def _shape(field: Field) -> str:
    return f"{field.kind.name}{' aware' if field.kind.aware else ''}"
