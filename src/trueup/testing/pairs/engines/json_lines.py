"""JSON Lines: numbers and texts. Half of the kinds have no form of their own in JSON."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any, Final

from trueup.ports import Side
from trueup.sides.files import File
from trueup.testing.pairs.engines.engine import Table
from trueup.testing.pairs.engines.files import Files
from trueup.testing.pairs.types import NOT_TEXT, Type, finite, is_object, written
from trueup.testing.pairs.values import KINDS


def _json_number(text: str, chance: random.Random) -> Any:
    if not finite(text):
        return text
    return Decimal(text)


JSON_LINES: Final = (
    Type("text", "text"),
    Type("text", "enum"),
    Type("boolean", "boolean"),
    Type("number", "integer"),
    Type("number", "decimal", spell=_json_number, told=True),
    Type("number", "float", spell=_json_number, told=True),
    Type("number", "float32", spell=_json_number, told=True),
    Type("object", "json", is_object, told=True),
    Type("array", "array of integer", told=True),
    Type("array", "array of text", told=True),
    *(
        Type("text", each, told=True, spell=written(each))
        for each in NOT_TEXT
        if KINDS[each].name not in ("json", "array")
    ),
)


class JsonLines(Files):
    """Null members are written or left out."""

    def make(self, table: Table, chance: random.Random) -> Side:
        """One object a line, its members in any order."""
        names = [*table.columns, *([] if table.lone is None else [table.lone])]
        lines = []
        for row in table.stored(chance):
            members = [
                f"{json.dumps(name)}: {_dumped(value)}"
                for name, value in zip(table.columns, row, strict=True)
                if value is not None or chance.random() < 0.5
            ]
            lines.append("{" + ", ".join(chance.sample(members, len(members))) + "}\n")
        path = self._path(".jsonl")
        path.write_text("".join(lines), encoding="utf-8")
        kinds = {name: KINDS[table.columns[name].family] if name in table.columns else "text" for name in names}
        return File(path, key=table.key, columns=kinds, zone=table.zone)


def _dumped(value: Any) -> str:
    """JSON with decimals as numbers."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_dumped, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)}: {_dumped(each)}" for name, each in value.items()) + "}"
    return json.dumps(value)
