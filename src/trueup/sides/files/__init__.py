"""Files as sides."""

from __future__ import annotations

from trueup.sides.files.side import File

__all__ = ["File"]
