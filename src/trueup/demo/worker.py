"""A worker of the demo as a process of its own, so that it can be killed."""

from __future__ import annotations

import sys
from pathlib import Path

from trueup.demo.play import declare


def main(folder: str) -> None:
    """Works what is due, to the end."""
    with declare(Path(folder)) as project:
        project.worker(threads=1).drain(0)


if __name__ == "__main__":
    main(sys.argv[1])
