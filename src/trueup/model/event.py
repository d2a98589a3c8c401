"""An event: what somebody says of one record, before anything is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Event:
    """Word that the authority changed a record of a pair.

    values: by the authority's column names; the key is enough, then the worker reads the rest. deleted: the
    authority deleted it.
    """

    pair: str
    values: Mapping[str, Any]
    deleted: bool = False
