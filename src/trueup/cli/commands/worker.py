"""`trueup worker`: works what is due until it is told to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from trueup.cli.commands._project import Client, Pairs, chosen, opened

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from trueup.cli.service import Display
    from trueup.project import Project

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

Host = Annotated[str, typer.Option("--host", metavar="ADDRESS", help="The address to listen on.")]
MetricsPort = Annotated[
    int | None,
    typer.Option("--metrics-port", metavar="N", min=0, max=65535, help="Answer /metrics and /healthz on this port."),
]


def worker(
    context: typer.Context,
    pairs: Pairs = None,
    client: Client = None,
    threads: Threads = None,
    grace: Grace = 20.0,
    quiet: Quiet = False,
    every: Every = 10.0,
    json: JsonLines = False,
    host: Host = "127.0.0.1",
    metrics_port: MetricsPort = None,
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
        shown = display(watch, quiet=quiet, json=json, every_s=every)
        service = Service(shown, grace_s=grace)
        parts: list[Callable[[threading.Event], None]] = [lambda stop: working.serve(stop, watch.ended)]
        if project.alert_plan.targets:
            parts.append(project.alerting().serve)
        if project.anchors:
            parts.append(project.anchoring().serve)
        if metrics_port is not None:
            parts.append(answering_metrics(project, shown, host, metrics_port))
        return service.run(together(parts))


def answering_metrics(project: Project, shown: Display, host: str, port: int) -> Callable[[threading.Event], None]:
    """What answers /metrics and /healthz, and nothing else."""
    from trueup.cli.listening import listening  # noqa: PLC0415

    def app() -> Starlette:
        from trueup.web.metrics import app  # noqa: PLC0415  an extra

        return app(project)

    def tell(address: str) -> None:
        shown.tell(f"answering {address}/metrics", metrics=f"{address}/metrics")

    return listening(app, host, port, tell, without="leave out --metrics-port")
