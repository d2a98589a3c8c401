"""Files that appear whole or not at all: written under another name, and renamed at the end."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from trueup.errors import ConfigError, TrueupError


def check_target(path: str, inputs: Iterable[str] = ()) -> None:
    """Raises ConfigError where no file can be put at this path, or where it is one of the files that are read."""
    target = Path(path)
    if not target.parent.is_dir():
        raise ConfigError(f"{path}: there is no folder {target.parent}.", hint="Make it first, or name another.")
    if target.exists() and not target.is_file():
        raise ConfigError(f"{path} is there already, and is no file.", hint="Name a file.")
    if target.exists() and any(Path(each).exists() and target.samefile(each) for each in inputs):
        raise ConfigError(f"{path} is one of the sides that are compared.", hint="Name another file.")


@contextmanager
def whole_file(path: str) -> Iterator[BinaryIO]:
    """What is written takes the place of the file at the end; where that is not reached, nothing has changed.

    Raises TrueupError where it can't be written.
    """
    # Where a link leads to, not the link, is replaced.
    target = Path(os.path.realpath(path))
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            yield file
        part.replace(target)
    except OSError as failure:
        why = failure.strerror or "output error"
        raise TrueupError(f"{path} can't be written: {why}.", hint="Check its folder and the room there.") from failure
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
