"""`trueup serve`: takes webhooks and works what is due, in one process."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Annotated

import typer

from trueup.cli.commands._project import opened
from trueup.cli.commands.worker import Every, Grace, JsonLines, Quiet, Threads
from trueup.errors import ConfigError

if TYPE_CHECKING:
    import uvicorn

Host = Annotated[str, typer.Option("--host", metavar="ADDRESS", help="The address to listen on.")]
Port = Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="The port to listen on; 0 for any.")]
STARTED_POLL_S = 0.05


def serve(
    context: typer.Context,
    host: Host = "127.0.0.1",
    port: Port = 8484,
    threads: Threads = None,
    grace: Grace = 20.0,
    quiet: Quiet = False,
    every: Every = 10.0,
    json: JsonLines = False,
) -> int:
    """Take webhooks at /events/SOURCE and work what is due, until SIGTERM or Ctrl-C.

    A stop refuses new requests, lets what has begun come to its end, and then ends.
    """
    from trueup.cli.service import Service, display  # noqa: PLC0415
    from trueup.cli.watch import Watch  # noqa: PLC0415

    try:
        import uvicorn  # noqa: PLC0415

        from trueup.web.ingest import app  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ConfigError(f"{error.name} is not installed.", hint="Install it: pip install 'trueup[web]'") from None
    with opened(context) as project:
        working = project.worker(threads=threads)
        watch = Watch(project, list(project.pairs))
        shown = display(watch, quiet=quiet, json=json, every_s=every)
        config = uvicorn.Config(app(project, project.sources.values()), host=host, port=port, log_level="warning")
        server = uvicorn.Server(config)

        def work(stop: threading.Event) -> None:
            listening = threading.Thread(target=server.run, name="trueup-web")
            listening.start()
            try:
                _wait_until_started(server, listening, host, port)
                url = f"http://{host}:{_port(server, port)}/events/"
                names = ", ".join(project.sources) or "no sources"
                shown.tell(f"listening on {url}… ({names})", listening=url, sources=list(project.sources))
                working.serve(stop, watch.ended)
            finally:
                server.should_exit = True
                listening.join()

        return Service(shown, grace_s=grace).run(work)


def _wait_until_started(server: uvicorn.Server, thread: threading.Thread, host: str, port: int) -> None:
    while not server.started:
        thread.join(STARTED_POLL_S)
        if not thread.is_alive():
            raise ConfigError(f"can't listen on {host}:{port}.", hint="Choose another --port, or another --host.")


def _port(server: uvicorn.Server, asked: int) -> int:
    sockets = [socket for each in server.servers for socket in each.sockets]
    return int(sockets[0].getsockname()[1]) if sockets else asked
