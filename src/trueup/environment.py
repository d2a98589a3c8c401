"""What a process finds around it: variables of the environment, and a name of its own."""

from __future__ import annotations

import os
import secrets
import socket

from trueup.errors import ConfigError


def expand(text: str, what: str) -> str:
    """`text` with each ${NAME} replaced from the environment; ConfigError where one is unset."""
    first, *parts = text.split("${")
    expanded = first
    for part in parts:
        name, closed, rest = part.partition("}")
        if not closed:  # what follows may be the rest of a password
            raise ConfigError(f"{what}: a ${{ has no }} behind it.", hint="Write ${NAME}, the name of a variable.")
        if name not in os.environ:
            raise ConfigError(f"{what}: the variable {name} is not set.", hint=f"Set it first: export {name}=…")
        expanded += os.environ[name] + rest
    return expanded


def process_name() -> str:
    """A name for leases that no other process has, nor this one when it is asked again."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}"
