"""Tables of a lake as sides: Delta and Iceberg, read by their Python libraries."""

from trueup.sides.lake.side import Delta, Iceberg

__all__ = ["Delta", "Iceberg"]
