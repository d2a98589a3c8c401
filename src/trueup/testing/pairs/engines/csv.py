"""CSV: texts. A number in another country's writing is refused where a number is asked for."""

from __future__ import annotations

import random
import re
from typing import Any, Final

from trueup.ports import Side
from trueup.sides.files import File
from trueup.testing.pairs.engines.engine import Table
from trueup.testing.pairs.engines.files import Files
from trueup.testing.pairs.types import NOT_TEXT, Type, letters, written

_FOREIGN: Final = re.compile(r"!\s*[+-]?[\d.,]*\d,\d*\s*\Z|!\d+\.\d+\.\d+\Z")


def _native(text: str) -> bool:
    return not _FOREIGN.match(text)


CSV: Final = (
    Type("text", "text", letters(6000, nul=False)),
    Type("text", "enum"),
    *(Type("text", each, _native, mistakes=True, spell=written(each)) for each in NOT_TEXT),
    *(Type("text", each, told=True, spell=written(each)) for each in NOT_TEXT),
)


class Csv(Files):
    """Quoted where it has to be, and at times where it has not."""

    def make(self, table: Table, chance: random.Random) -> Side:
        """With one of the usual delimiters, line ends and words for null."""
        delimiter, end = chance.choice(",;\t|"), chance.choice(("\n", "\r\n"))
        null = chance.choice(("", "NULL", "\\N"))
        lone = [] if table.lone is None else [None]
        names = [*table.columns, *([] if table.lone is None else [table.lone])]
        # A line with nothing in it is no record.
        null = null or ("NULL" if len(names) == 1 else "")

        def shown(value: Any) -> str:
            if value is None:
                return null
            text = str(value)
            plain = text and text != null and not any(mark in text for mark in f'"\r\n{delimiter}')
            return text if plain and chance.random() < 0.7 else '"' + text.replace('"', '""') + '"'

        lines = [delimiter.join('"' + name.replace('"', '""') + '"' for name in names)]
        lines += [delimiter.join(map(shown, [*row, *lone])) for row in table.stored(chance)]
        path = self._path(".csv")
        path.write_bytes((end.join(lines) + chance.choice(("", end))).encode())
        return File(path, key=table.key, columns=table.told, zone=table.zone, delimiter=delimiter, null=null)
