"""What a comparison read, added up while it passes: control totals of amounts, and root digests.

They are kept as counts of its pieces, so that they survive a run that dies and add up over workers.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Literal

from trueup.compare.plan import Plan
from trueup.compare.result import Agreement
from trueup.errors import SchemaError, did_you_mean
from trueup.model.numbers import WIDE, decimal_text
from trueup.model.record import Field, Projection
from trueup.pair import Pair

if TYPE_CHECKING:
    import pyarrow as pa

Role = Literal["authority", "replica"]
ROLES: Final[tuple[Role, Role]] = ("authority", "replica")
# Amounts are added up as whole numbers of this many places; what has more can't be added up here, and is counted.
PLACES: Final = 20
TOTAL: Final = "total"
UNADDED: Final = "unadded"
ROOT_COUNT: Final = "root count"
ROOT_SUM: Final = "root sum"
_HASH_BYTES: Final = 16


class Totals:
    """The control totals of one scan of one side. counts: of the scan that came to its end.

    Records whose state means that the replica must not have them do not count. Raises SchemaError where an amount is
    not compared, or is no decimal.
    """

    def __init__(self, pair: Pair, plan: Plan, role: Role) -> None:
        self._role = role
        self._absent_when = pair.absent_when if role == "authority" else {}
        fields = {each.name: each for each in plan.left.fields}
        self._amounts = [
            (_amount(pair, fields, name), None if currency is None else _compared(pair, fields, currency))
            for name, currency in pair.totals.items()
        ]
        self.counts: dict[str, int] = {}

    def watched(self, batches: Iterator[pa.RecordBatch], asked: Projection) -> Iterator[pa.RecordBatch]:
        """The same batches."""
        return self._adding(batches, asked) if self._amounts else batches

    def _adding(self, batches: Iterator[pa.RecordBatch], asked: Projection) -> Iterator[pa.RecordBatch]:
        sums: Counter[str] = Counter()
        try:
            for batch in batches:
                self._add(batch, asked, sums)
                yield batch
        finally:
            if isinstance(batches, Generator):
                batches.close()
        self.counts = dict(sums)

    def _add(self, batch: pa.RecordBatch, asked: Projection, sums: Counter[str]) -> None:
        columns = {each.name: batch.column(at) for at, each in enumerate(asked.columns)}
        fields = {each.name: each for each in asked.columns}
        columns = _without(columns, fields, self._absent_when)
        for amount, currency in self._amounts:
            names = [amount.name] if currency is None else [amount.name, currency.name]
            for (text, *of), times in _distinct([columns[name] for name in names], [fields[name] for name in names]):
                if text is None:
                    continue
                added = _whole(text)
                name = _name(TOTAL if added is not None else UNADDED, self._role, amount.name, *(of or [None]))
                sums[name] += times if added is None else added * times


class Roots:
    """Count and sum of the hashes of the records of both sides, each over key and digest.

    Of a key that stands several times on a side, one record is added.
    """

    def __init__(self) -> None:
        self._sums = dict.fromkeys(ROLES, 0)
        self._counts = dict.fromkeys(ROLES, 0)

    def add_agreed(self, agreed: Iterable[Agreement]) -> None:
        """Keys on which both sides agree."""
        count = both = 0
        for each in agreed:
            key, left, right = each.key, each.left, each.right
            if right == left:
                both += record_hash(key, left)
                count += 1
            else:
                self.add(key, left, right)
        for role in ROLES:
            self._sums[role] += both
            self._counts[role] += count

    def add(self, key: str, authority: str | None, replica: str | None) -> None:
        """A key with the digests of both sides, None where a side lacks it."""
        if authority is not None:
            value = record_hash(key, authority)
            self._sums["authority"] += value
            self._counts["authority"] += 1
        if replica is not None:
            self._sums["replica"] += value if replica == authority else record_hash(key, replica)
            self._counts["replica"] += 1

    @property
    def counts(self) -> dict[str, int]:
        """As a piece counts them."""
        named = {_name(ROOT_COUNT, role): count for role, count in self._counts.items()}
        return named | {_name(ROOT_SUM, role): total for role, total in self._sums.items()}


def record_hash(key: str, digest: str) -> int:
    """128 bits of SHA-256 over a key text and a digest."""
    return int.from_bytes(hashlib.sha256(f"{digest} {key}".encode("utf-8", "surrogatepass")).digest()[:_HASH_BYTES])


def read_by(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """What several pieces read, added up; without their other counts."""
    sums: Counter[str] = Counter()
    for each in counts:
        sums.update({name: count for name, count in each.items() if name.startswith("[")})
    return dict(sums)


def totals_in(read: Mapping[str, int]) -> list[dict[str, Any]]:
    """The control totals in such counts: amount, currency, and for each side the total as decimal text."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for (what, role, *of), count in _named(read):
        if what in (TOTAL, UNADDED):
            amount, currency = of
            place = found.setdefault((amount, currency or ""), {"amount": amount, "currency": currency})
            name = role if what == TOTAL else f"{role}_unadded"
            place[name] = decimal_text(WIDE.scaleb(Decimal(count), -PLACES)) if what == TOTAL else count
    return [found[place] for place in sorted(found)]


def roots_in(read: Mapping[str, int]) -> dict[str, dict[str, Any]] | None:
    """The root digests in such counts, by side; None where not everything was read."""
    found: dict[str, dict[str, Any]] = {}
    for (what, role, *_), count in _named(read):
        if what in (ROOT_COUNT, ROOT_SUM):
            told = {"records": count} if what == ROOT_COUNT else {"sum": str(count)}
            found[role] = found.get(role, {}) | told
    return found or None


def _name(what: str, role: str, *of: str | None) -> str:
    # Other counts have names without brackets.
    return json.dumps([what, role, *of])


def _named(read: Mapping[str, int]) -> Iterator[tuple[list[Any], int]]:
    for name, count in read.items():
        yield json.loads(name), count


def _without(columns: dict[str, Any], fields: Mapping[str, Field], states: Mapping[str, tuple[str, ...]]) -> Any:
    """The same columns without records in one of these states."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    from trueup.model.columns import text_array  # noqa: PLC0415

    for name, known in states.items():
        if name in columns:
            gone = pc.is_in(text_array(columns[name], fields[name]), value_set=pa.array(known, pa.string()))
            columns = {each: array.filter(pc.invert(gone)) for each, array in columns.items()}
    return columns


def _distinct(columns: list[Any], fields: list[Field]) -> Iterator[tuple[tuple[str | None, ...], int]]:
    """Each combination of canonical texts in these columns, and in how many records it stands."""
    import pyarrow as pa  # noqa: PLC0415

    from trueup.model.columns import text_array  # noqa: PLC0415

    names = [str(at) for at in range(len(columns))]
    grouped = pa.table(columns, names).group_by(names, use_threads=False).aggregate([([], "count_all")])
    texts = [
        text_array(grouped.column(name).combine_chunks(), field).to_pylist()
        for name, field in zip(names, fields, strict=True)
    ]
    yield from zip(zip(*texts, strict=True), grouped.column("count_all").to_pylist(), strict=True)


def _whole(text: str) -> int | None:
    """A canonical amount as a whole number of the smallest places; None where it is no number, or has more of them."""
    whole, _, places = text.partition(".")
    try:
        return None if len(places) > PLACES else int(whole + places.ljust(PLACES, "0"))
    except ValueError:
        return None


def _compared(pair: Pair, fields: Mapping[str, Field], name: str) -> Field:
    if name not in fields:
        raise SchemaError(
            f"pair {pair.name}: totals name {name}, which is not compared.", hint=did_you_mean(name, fields, "Fields")
        )
    return fields[name]


def _amount(pair: Pair, fields: Mapping[str, Field], name: str) -> Field:
    found = _compared(pair, fields, name)
    if found.kind.name not in ("decimal", "integer"):
        raise SchemaError(
            f"pair {pair.name}: totals name {name}, which is {found.kind} and can't be added up exactly.",
            hint=f'Declare its kind at both sides: columns = {{ {name} = "decimal" }}.',
        )
    return found
