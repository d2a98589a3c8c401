"""Files: a folder of them."""

from __future__ import annotations

from pathlib import Path

from trueup.testing.pairs.engines.engine import Engine


class Files(Engine):
    """A file for each table, in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._made = folder, 0

    def clear(self) -> None:
        """Removes the files."""
        for path in self._folder.iterdir():
            path.unlink()

    def _path(self, suffix: str) -> Path:
        self._made += 1
        return self._folder / f"{self._made} %20 é{suffix}"
