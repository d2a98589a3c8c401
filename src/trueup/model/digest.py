"""The digest of a record: 128 bits over length-prefixed, null-tagged canonical texts.

MD5 is chosen because PostgreSQL, MySQL, MariaDB and DuckDB all compute it natively, so a digest can be taken
where the data lives. It guards against accident, not against someone who crafts two rows to collide.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

# Hash functions by name: the first digits of a digest; and what the name of each begins with that unlike databases
# share because both spell values alike.
CANONICAL: Final = "canonical"
PLAIN: Final = "plain"


def of_texts(function: str) -> bool:
    """Whether a hash function, by its name, is of texts that unlike systems share."""
    return function == CANONICAL or function.startswith(PLAIN)


def digest_of(texts: Iterable[str | None]) -> str:
    """32 hex digits over the texts in order: `~` for null, else the length in UTF-8 bytes, `:`, the text.

    The length prefix makes ("ab", "c") and ("a", "bc") differ, and the tag null and the empty text.
    """
    framed = bytearray()
    for text in texts:
        if text is None:
            framed += b"~"
        else:
            encoded = text.encode("utf-8", "surrogatepass")
            framed += b"%d:%s" % (len(encoded), encoded)
    return hashlib.md5(framed, usedforsecurity=False).hexdigest()


@dataclass(frozen=True, slots=True)
class HashSum:
    """Records of a side in two numbers, taken where they are.

    count: records. total: sum of their hashes over key and fields; under one function, records whose canonical
    values differ have different hashes (up to chance).
    """

    count: int
    total: int


# What a cell of a sketch checks a hash by: its remainder, which is not linear in XOR.
CHECK_MODULUS = 1_000_000_007
# The hash of two live sides of unlike systems: so many leading hex digits of `digest_of` key and fields.
CANONICAL_DIGITS = 15
