"""datacompy on Polars, in an environment of its own; databases are read whole by connectorx, both at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import polars as pl  # type: ignore[import-not-found, unused-ignore]
from _job import Job
from datacompy import PolarsCompare  # type: ignore[import-not-found, unused-ignore]

# What every side is brought to, since databases name their types in their own ways.
TYPES: Any = {
    "customer": pl.Int32, "status": pl.String, "amount": pl.Decimal(12, 2), "quantity": pl.Int32,
    "reference": pl.String, "updated_at": pl.Datetime("us"),
}  # fmt: skip


def main() -> None:
    """Writes key and kind."""
    job = Job()
    with ThreadPoolExecutor(2) as both:
        left, right = both.map(lambda side: _read(job, side), job.sides)
    compared = PolarsCompare(left, right, join_columns=job.key)
    del left, right
    kinds = {"missing": compared.df1_unq_rows, "extra": compared.df2_unq_rows, "differ": compared.all_mismatch()}
    found = [
        frame.select(pl.concat_str([_text(frame, name) for name in job.key], separator="|").alias("key"),
                     pl.lit(kind).alias("kind"))
        for kind, frame in kinds.items()
    ]  # fmt: skip
    pl.concat(found).write_csv(job.answer)
    job.done()


def _text(frame: Any, name: str) -> Any:
    if frame.schema[name] != pl.Binary:
        return pl.col(name).cast(pl.String)
    return pl.col(name).bin.encode("hex").str.replace(r"^(.{8})(.{4})(.{4})(.{4})", "$1-$2-$3-$4-")


def _read(job: Job, side: dict[str, str]) -> Any:
    if side["kind"] == "parquet":
        # A UUID is sixteen bytes there, by which it is joined as well.
        return pl.read_parquet(side["url"])
    url = side["url"].replace("mariadb://", "mysql://").replace("sqlite:///", "sqlite://")
    where = "" if job.since is None else f" WHERE updated_at >= '{job.since}'"
    # SQLite keeps decimals as floats and times as texts.
    spelled = {"amount": "CAST(amount AS TEXT) AS amount", "updated_at": "CAST(updated_at AS TEXT) AS updated_at"}
    names = [spelled.get(name, name) if side["kind"] == "sqlite" else name for name in (*job.key, *job.fields)]
    frame = pl.read_database_uri(f"SELECT {', '.join(names)} FROM {job.table}{where}", url, engine="connectorx")
    if side["kind"] == "sqlite":
        frame = frame.with_columns(pl.col("updated_at").str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="us"))
    return frame.with_columns(*(pl.col(name).cast(kind) for name, kind in TYPES.items()))


main()
