"""A comparison as it may be shown where values of some columns must not be: every output reads only this."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Final

from trueup.compare.plan import Plan
from trueup.compare.result import Agreement, Comparison, Difference, Findings, Values
from trueup.errors import ConfigError, did_you_mean
from trueup.model.record import Field, Projection, key_parts, key_text
from trueup.model.redaction import REDACTED
from trueup.ports import Description

# Of a hash that stands for a part of a key: two of a million records seldom share it.
_HEX: Final = 16


def redactions(asked: Collection[str], plan: Plan, described: tuple[Description, Description]) -> frozenset[str]:
    """The names that a plan has for columns that a user named by either side; ConfigError for one that nobody has."""
    known = {column.name: column.name for side in described for column in side.columns}
    for field in (*plan.right.key, *plan.right.fields):
        known[field.source] = field.name
    known |= {field.name: field.name for field in (*plan.left.key, *plan.left.fields, *plan.left.extra)}
    for name in asked:
        if name not in known:
            hint = did_you_mean(name, known, "Columns")
            raise ConfigError(f"--redact {name}: neither side has such a column.", hint=hint)
    return frozenset(known[name] for name in asked)


def redacted(comparison: Comparison, plan: Plan, names: frozenset[str]) -> tuple[Comparison, Plan]:
    """The same comparison and plan, to be shown. names: of the plan, whose values never pass.

    In the place of such a value, null included, stands REDACTED; in that of a part of a key, a hash of it, so that
    records can be told apart. The hash is keyed by a secret that ends with the comparison: values can't be tried out on
    it, and two lists can't be joined by it.
    """
    shown = replace(
        plan,
        left=replace(plan.left, key=_as_text(plan.left.key, names), fields=_as_text(plan.left.fields, names)),
        right=replace(plan.right, key=_as_text(plan.right.key, names), fields=_as_text(plan.right.fields, names)),
    )
    return replace(comparison, findings=_Redacted(comparison.findings, plan.left, names)), shown


def _as_text(fields: tuple[Field, ...], names: frozenset[str]) -> tuple[Field, ...]:
    return tuple(replace(each, native=False) if each.name in names else each for each in fields)


class _Redacted:
    def __init__(self, findings: Findings, asked: Projection, names: frozenset[str]) -> None:
        self._findings, self._names = findings, names
        self._key = [field.name for field in asked.key]
        self._hidden_key = not names.isdisjoint(self._key)
        self._secret = secrets.token_bytes(32)

    def differences(self, limit: int | None = None) -> Iterator[Difference]:
        """In key order."""
        return map(self._difference, self._findings.differences(limit))

    def agreements(self) -> Iterator[list[Agreement]]:
        """In batches; digests over values, on which they could be tried out, are left empty."""
        for batch in self._findings.agreements():
            yield [
                replace(each, key=self._shown_key(each.key), left="", right=None if each.right is None else "")
                for each in batch
            ]

    def close(self) -> None:
        """Removes what was kept."""
        self._findings.close()

    def _difference(self, found: Difference) -> Difference:
        return replace(
            found,
            key=self._shown_key(found.key),
            left=self._values(found.left),
            right=self._values(found.right),
            left_only=tuple(map(self._record, found.left_only)),
            right_only=tuple(map(self._record, found.right_only)),
        )

    def _values(self, record: Values | None) -> Values | None:
        return None if record is None else self._record(record)

    def _record(self, record: Values) -> Values:
        return {name: self._value(name, text) if name in self._names else text for name, text in record.items()}

    def _value(self, name: str, text: str | None) -> str:
        return self._part(name, text) if name in self._key else REDACTED

    def _shown_key(self, key: str) -> str:
        if not self._hidden_key:
            return key
        parts = zip(self._key, key_parts(key), strict=True)
        return key_text(self._part(name, part) if name in self._names else part for name, part in parts)

    def _part(self, name: str, text: str | None) -> str:
        told = b"~" if text is None else b":" + text.encode("utf-8", "surrogatepass")
        hashed = hmac.digest(self._secret, name.encode("utf-8", "surrogatepass") + told, hashlib.sha256).hex()[:_HEX]
        return f"{REDACTED[:-1]} {hashed})"
