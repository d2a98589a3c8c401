"""`trueup serve`: takes webhooks and works what is due, in one process."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Annotated

import typer

from trueup.cli.commands._project import opened
from trueup.cli.commands.worker import Grace, Quiet, Threads
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
    threads: Threads = 2,
    grace: Grace = 20.0,
    quiet: Quiet = False,
) -> int:
    """Take webhooks at /events/SOURCE and work what is due, until SIGTERM or Ctrl-C.

    A stop refuses new requests, lets what has begun come to its end, and then ends.
    """
    from trueup.cli.service import Service  # noqa: PLC0415
    from trueup.cli.terminal import say  # noqa: PLC0415

    try:
        import uvicorn  # noqa: PLC0415

        from trueup.web.ingest import app  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ConfigError(f"{error.name} is not installed.", hint="Install it: pip install 'trueup[web]'") from None
    with opened(context) as project:
        working = project.worker(threads=threads)
        service = Service(grace_s=grace, quiet=quiet)
        config = uvicorn.Config(app(project, project.sources.values()), host=host, port=port, log_level="warning")
        server = uvicorn.Server(config)

        def work(stop: threading.Event) -> None:
            listening = threading.Thread(target=server.run, name="trueup-web")
            listening.start()
            try:
                _wait_until_started(server, listening, host, port)
                if not quiet:
                    names = ", ".join(project.sources) or "no sources"
                    say(f"listening on http://{host}:{_port(server, port)}/events/… ({names})")
                working.serve(stop, service.ended)
            finally:
                server.should_exit = True
                listening.join()

        return service.run(work)


def _wait_until_started(server: uvicorn.Server, thread: threading.Thread, host: str, port: int) -> None:
    while not server.started:
        thread.join(STARTED_POLL_S)
        if not thread.is_alive():
            raise ConfigError(f"can't listen on {host}:{port}.", hint="Choose another --port, or another --host.")


def _port(server: uvicorn.Server, asked: int) -> int:
    sockets = [socket for each in server.servers for socket in each.sockets]
    return int(sockets[0].getsockname()[1]) if sockets else asked
