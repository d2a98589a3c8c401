"""Tables of Spark as sides: Parquet files that the cluster reads, and any DataFrame."""

from trueup.sides.spark.side import Spark

__all__ = ["Spark"]
