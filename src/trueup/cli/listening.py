"""Answering HTTP as one part of a process that does other things beside."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from trueup.errors import ConfigError

if TYPE_CHECKING:
    import uvicorn
    from starlette.applications import Starlette

STARTED_POLL_S: Final = 0.05
ALIVE_POLL_S: Final = 1.0


def listening(
    make: Callable[[], Starlette], host: str, port: int, tell: Callable[[str], None], *, without: str
) -> Callable[[threading.Event], None]:
    """What answers until it is told to stop.

    make: the application; called at once, so that what it lacks is said before anything begins. tell: is told the
    address, once it answers. without: how to do without it. Raises ConfigError where a package is missing; the answer
    does where it can't listen there.
    """
    try:
        import uvicorn  # noqa: PLC0415  an extra

        config = uvicorn.Config(make(), host=host, port=port, log_level="warning")
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{error.name} is not installed.", hint=f"Install it: pip install 'trueup[web]'. Or {without}"
        ) from None
    server = uvicorn.Server(config)

    def listen(stop: threading.Event) -> None:
        thread = threading.Thread(target=server.run, name="trueup-web")
        thread.start()
        try:
            _wait_until_started(server, thread, host, port)
            tell(f"http://{host}:{_port(server, port)}")
            while not stop.wait(ALIVE_POLL_S) and thread.is_alive():
                pass
        finally:
            server.should_exit = True
            thread.join()

    return listen


def _wait_until_started(server: uvicorn.Server, thread: threading.Thread, host: str, port: int) -> None:
    while not server.started:
        thread.join(STARTED_POLL_S)
        if not thread.is_alive():
            raise ConfigError(f"can't listen on {host}:{port}.", hint="Choose another --port, or another --host.")


def _port(server: uvicorn.Server, asked: int) -> int:
    sockets = [socket for each in server.servers for socket in each.sockets]
    return int(sockets[0].getsockname()[1]) if sockets else asked
