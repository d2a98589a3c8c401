"""What stands in the place of a value that must not be shown."""

from __future__ import annotations

from typing import Final

REDACTED: Final = "(redacted)"
