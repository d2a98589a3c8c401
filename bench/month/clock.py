"""The school's clock: one thread, greenlets, and a time that moves only when everybody waits."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from school.clock import VirtualTime
else:
    # Under its full name: where tests run, another module is called `school`.
    VirtualTime = importlib.import_module("..school.clock", __package__).VirtualTime

__all__ = ["VirtualTime"]
