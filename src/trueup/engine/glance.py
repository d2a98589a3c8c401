"""Keys and digests of one side's records: all that a comparison with what the ledger knows has to see."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from trueup.compare.judge import judged
from trueup.model.columns import digests, key_texts, text_array, texts
from trueup.model.record import Field, Projection
from trueup.ports import DigestingSide, Scope, Side

if TYPE_CHECKING:
    import pyarrow as pa

# Where only a read can tell a digest: no record has this one, so that whoever asks for it is told to look.
UNKNOWN: Final = ""
# Keys, digests, and the texts of one more column where that was asked for.
Glances: TypeAlias = Generator[tuple[list[str], list[str], list[str | None]], None, None]


def glanced(side: Side, asked: Projection, since: int, beside: Sequence[Field]) -> Glances:
    """What a side has of these versions, a batch at a time. beside: at most one column of `asked`.

    Taken in the system where it can do that, which then begins at once and may show a few older records; else here,
    from a scan. A digest is UNKNOWN where the system can't tell it.
    """
    told = _as_texts(asked, beside)
    found = side.digests(told, since) if isinstance(side, DigestingSide) else None
    if found is None:
        return _scanned(side.scan(asked, Scope(since=since)), asked, beside)
    return _taken(found, told.key)


def _as_texts(asked: Projection, beside: Sequence[Field]) -> Projection:
    """The same, with canonical texts of what stands beside the digests."""
    key, extra = ([replace(field, native=False) for field in fields] for fields in (asked.key, beside))
    return replace(asked, key=tuple(key), extra=tuple(extra))


def _taken(batches: Iterator[pa.RecordBatch], key: Sequence[Field]) -> Glances:
    try:
        for batch in batches:
            *columns, found = batch.columns
            keys = key_texts(columns[: len(key)], key)
            told = columns[len(key) :]
            yield keys, [each or UNKNOWN for each in found.to_pylist()], told[0].to_pylist() if told else []
    finally:
        if isinstance(batches, Generator):
            batches.close()


def _scanned(batches: Iterator[pa.RecordBatch], asked: Projection, beside: Sequence[Field]) -> Glances:
    at = [asked.columns.index(field) for field in beside]
    for batch in batches:
        told = texts(batch.column(at[0]), beside[0]) if at else []
        yield *keys_and_digests(batch, asked), told


def keys_and_digests(batch: pa.RecordBatch, asked: Projection) -> tuple[list[str], list[str]]:
    """Of a batch of a scan."""
    keys = key_texts(batch.columns[: len(asked.key)], asked.key)
    first = len(asked.columns) - len(asked.extra) - len(asked.fields)
    columns = [text_array(judged(batch.column(first + at), field), field) for at, field in enumerate(asked.fields)]
    return keys, digests(columns, batch.num_rows)
