"""Values as they may stand in evidence: those of redacted fields, and long ones, only as hashes.

A hash alone would hide nothing where there are few likely values: whoever reads it tries them all. So it is keyed
(HMAC, RFC 2104) by a secret of the state store, which is in no entry and in no export; and so is every other hash over
records of a pair that redacts anything, on which a value could be tried out as well.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Any, Final

from trueup.model.record import key_parts, key_text
from trueup.model.redaction import REDACTED
from trueup.pair import Pair
from trueup.ports import Archive

# A longer text is told by its hash.
CHARACTERS_MAX: Final = 4_000
_HEX: Final = 32


def redaction_key(pair: Pair, archive: Archive) -> bytes:
    """The key of a pair's hashes; empty where it redacts nothing."""
    return bytes.fromhex(archive.redaction_key()) if pair.redact else b""


def key_name(key: bytes) -> str | None:
    """What an entry says of the key by which its hashes were made: the same for the same key, and nothing else."""
    return hmac.digest(key, b"trueup redaction key", "sha256").hex()[:8] if key else None


def key_of(body: Mapping[str, Any], archive: Archive) -> bytes:
    """The key by which an entry's hashes were made; empty where they have none."""
    return bytes.fromhex(archive.redaction_key()) if body.get("redaction") else b""


def keyed(key: bytes, digest: str) -> str:
    """A digest over values, so that nobody tries values on it; as it is where there is no key."""
    return hmac.digest(key, digest.encode(), "sha256").hex() if key else digest


def hidden_roots(roots: Mapping[str, Mapping[str, Any]] | None, key: bytes) -> dict[str, dict[str, Any]] | None:
    """Root digests: two that are equal stay equal."""
    if roots is None:
        return None
    return {role: {**of, "sum": keyed(key, of["sum"])} if "sum" in of else {**of} for role, of in roots.items()}


def shown_key(pair: Pair, key: str) -> str:
    """A key text without the parts that the pair redacts; as it is where it is no record's (see `Case`)."""
    if not {*pair.redact}.intersection(pair.key) or not key.startswith("["):
        return key
    named = zip(pair.key, key_parts(key), strict=True)
    return key_text(REDACTED if name in pair.redact else part for name, part in named)


class Hidden:
    """The values of one pair."""

    def __init__(self, pair: Pair, key: bytes) -> None:
        self._pair, self._names, self._secret = pair, {*pair.redact}, key
        self._key = [name in self._names for name in pair.key]

    def value(self, key: str, name: str, text: str | None) -> Any:
        """A canonical text; null stays null."""
        if text is None:
            return None
        if name in self._names:
            return {"redacted": self._hash(key, name, text)}
        if len(text) > CHARACTERS_MAX:
            return {"long": self._hash("", "", text), "characters": len(text)}
        return text

    def key(self, key: str) -> list[Any]:
        """The parts of a key text."""
        parts = key_parts(key)
        if not any(self._key):
            return list(parts)
        # Not over the key itself, so that records with an equal part can be found.
        named = zip(self._pair.key, parts, strict=True)
        return [self.value("", name, part) for name, part in named]

    def digest(self, digest: str | None) -> str | None:
        """A digest over a record."""
        return None if digest is None else keyed(self._secret, digest)

    def _hash(self, key: str, name: str, text: str) -> str:
        """Another one for equal values of different records, so that who shares a value does not show."""
        return framed(self._secret, [self._pair.name, key, name, text])[:_HEX]


def framed(key: bytes, texts: Sequence[str]) -> str:
    """64 hex digits over several texts, which can't run into each other."""
    parts = [text.encode("utf-8", "surrogatepass") for text in texts]
    joined = b"".join(b"%d:%s" % (len(part), part) for part in parts)
    return (hmac.digest(key, joined, "sha256") if key else hashlib.sha256(joined).digest()).hex()
