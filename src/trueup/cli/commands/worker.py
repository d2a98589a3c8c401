"""`trueup worker`: works what is due until it is told to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Annotated

import typer

from trueup.cli.commands._project import Client, Pairs, chosen, opened

Threads = Annotated[
    int | None,
    typer.Option("--threads", metavar="N", min=1, help="Threads that work side by side; by default the project's."),
]
Grace = Annotated[
    float, typer.Option("--grace", metavar="SECONDS", min=0, help="Time for what has begun, after a stop.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing while working.")]
Every = Annotated[
    float, typer.Option("--every", metavar="SECONDS", min=0.1, help="Time between two lines, where no terminal reads.")
]
JsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object a line, every --every seconds.")]


def worker(
    context: typer.Context,
    pairs: Pairs = None,
    client: Client = None,
    threads: Threads = None,
    grace: Grace = 20.0,
    quiet: Quiet = False,
    every: Every = 10.0,
    json: JsonLines = False,
) -> int:
    """Work what is due, and sleep until something is, until SIGTERM or Ctrl-C.

    A terminal shows what is done and what waits. A stop lets the batches that have begun come to their end; after
    the grace time the process ends anyway and other workers take over when the leases end.
    """
    from trueup.cli.service import Service, display, together  # noqa: PLC0415
    from trueup.cli.watch import Watch  # noqa: PLC0415

    with opened(context) as project:
        names = [pair.name for pair in chosen(project, pairs, client)]
        working = project.worker(names, threads=threads)
        watch = Watch(project, names)
        service = Service(display(watch, quiet=quiet, json=json, every_s=every), grace_s=grace)
        parts: list[Callable[[threading.Event], None]] = [lambda stop: working.serve(stop, watch.ended)]
        if project.alert_plan.targets:
            parts.append(project.alerting().serve)
        return service.run(together(parts))
