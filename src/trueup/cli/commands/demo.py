"""`trueup demo`: two real systems that disagree are compared, explained, repaired and proven equal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trueup.errors import ConfigError

Folder = Annotated[
    Path | None, typer.Option("--folder", metavar="PATH", help="Keep the databases here, in a new or empty folder.")
]


def demo(folder: Folder = None) -> int:
    """Watch trueup at work on 336,776 real flights; nothing of yours is touched.

    The exit code is 0 where every promise was kept.
    """
    from trueup.demo.play import play  # noqa: PLC0415  loads the engine

    if folder is not None and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} is not an empty folder.", hint="Name a new one: the demo writes its own files.")
    return play(folder)
