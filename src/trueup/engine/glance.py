"""Keys, actions and digests of one side's records: all that a comparison with what the ledger knows has to see."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from trueup.compare.judge import judged
from trueup.model.change import UPSERT
from trueup.model.columns import key_texts, text_array, texts
from trueup.model.digest_columns import digests
from trueup.model.record import Field, Projection, version_of
from trueup.ports import DigestingSide, Scope, Side

if TYPE_CHECKING:
    import pyarrow as pa

# Where only a read can tell a digest: no record has this one, so that whoever asks for it is told to look.
UNKNOWN: Final = ""


@dataclass(frozen=True, slots=True)
class Glance:
    """Some records, as columns: to make an object of each would take longer than all the rest.

    versions: empty where they were not asked for.
    """

    keys: list[str]
    actions: list[str]
    digests: list[str]
    versions: list[int | None]


Glances: TypeAlias = Generator[Glance, None, None]


def glanced(
    side: Side, asked: Projection, since: int, acting: str | None = None, *, versioned: bool = False
) -> Glances:
    """What a side has of these versions, a batch at a time. acting: the field that tells the action.

    Taken in the system where it can do that, which then begins at once and may show a few older records; else here,
    from a scan. A digest is UNKNOWN where the system can't tell it.
    """
    tells = next((field for field in asked.columns if field.name == acting), None)
    told = _as_texts(asked, [*([tells] if tells else []), *([asked.version] if versioned and asked.version else [])])
    found = side.digests(told, since) if isinstance(side, DigestingSide) else None
    if found is None:
        return _scanned(side.scan(asked, Scope(since=since)), asked, tells, versioned=versioned)
    return _taken(found, told, tells, versioned=versioned)


def _as_texts(asked: Projection, beside: Sequence[Field]) -> Projection:
    """The same, with canonical texts of what stands beside the digests."""
    key, extra = (tuple(replace(field, native=False) for field in fields) for fields in (asked.key, beside))
    return replace(asked, key=key, extra=extra)


def _taken(batches: Iterator[pa.RecordBatch], told: Projection, tells: Field | None, *, versioned: bool) -> Glances:
    parts = len(told.key)
    try:
        for batch in batches:
            keys = key_texts(batch.columns[:parts], told.key)
            actions = _actions([None] * len(keys) if tells is None else batch.column(parts).to_pylist())
            found = [each or UNKNOWN for each in batch.column(-1).to_pylist()]
            versions = []
            if versioned and told.version is not None:
                versions = [version_of(text, told.version.kind) for text in batch.column(-2).to_pylist()]
            yield Glance(keys, actions, found, versions)
    finally:
        if isinstance(batches, Generator):
            batches.close()


def _scanned(batches: Iterator[pa.RecordBatch], asked: Projection, tells: Field | None, *, versioned: bool) -> Glances:
    for batch in batches:
        keys, found = keys_and_digests(batch, asked)
        at = None if tells is None else asked.columns.index(tells)
        told = [None] * len(keys) if at is None else texts(batch.column(at), asked.columns[at])
        versions = batch.column(len(asked.key)).to_pylist() if versioned and asked.version is not None else []
        yield Glance(keys, _actions(told), found, versions)


def _actions(told: Sequence[str | None]) -> list[str]:
    return [each or UPSERT for each in told]


def keys_and_digests(batch: pa.RecordBatch, asked: Projection) -> tuple[list[str], list[str]]:
    """Of a batch of a scan."""
    keys = key_texts(batch.columns[: len(asked.key)], asked.key)
    first = len(asked.columns) - len(asked.extra) - len(asked.fields)
    columns = [text_array(judged(batch.column(first + at), field), field) for at, field in enumerate(asked.fields)]
    return keys, digests(columns, batch.num_rows)
