"""datacompy on Polars, in an environment of its own: LEFT RIGHT ANSWER MEMORY_MB (which it can't be told)."""

from __future__ import annotations

import sys

import polars as pl  # type: ignore[import-not-found, unused-ignore]
from datacompy import PolarsCompare  # type: ignore[import-not-found, unused-ignore]


def main(left: str, right: str, answer: str, _memory_mb: str) -> None:
    """Writes id and kind."""
    compared = PolarsCompare(pl.read_parquet(left), pl.read_parquet(right), join_columns="id")
    kinds = {
        "missing": compared.df1_unq_rows,
        "extra": compared.df2_unq_rows,
        "differ": compared.all_mismatch(),
    }
    found = [frame.select("id", pl.lit(kind).alias("kind")) for kind, frame in kinds.items()]
    pl.concat(found).write_csv(answer)


main(*sys.argv[1:])
