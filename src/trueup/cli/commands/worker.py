"""`trueup worker`: works what is due until it is told to stop."""

from __future__ import annotations

from typing import Annotated

import typer

from trueup.cli.commands._project import Pairs, opened

Threads = Annotated[int, typer.Option("--threads", metavar="N", min=1, help="Threads that work side by side.")]
Grace = Annotated[
    float, typer.Option("--grace", metavar="SECONDS", min=0, help="Time for what has begun, after a stop.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing while working.")]


def worker(
    context: typer.Context, pairs: Pairs = None, threads: Threads = 2, grace: Grace = 20.0, quiet: Quiet = False
) -> int:
    """Work what is due, and sleep until something is, until SIGTERM or Ctrl-C.

    A stop lets the batches that have begun come to their end; after the grace time the process ends anyway
    and other workers take over when the leases end.
    """
    from trueup.cli.service import Service  # noqa: PLC0415

    with opened(context) as project:
        working = project.worker(pairs or None, threads=threads)
        service = Service(grace_s=grace, quiet=quiet)
        return service.run(lambda stop: working.serve(stop, service.ended))
