"""Variables of the environment in declarations."""

from __future__ import annotations

import os

from trueup.errors import ConfigError


def expand(text: str, what: str) -> str:
    """`text` with each ${NAME} replaced from the environment; ConfigError where one is unset."""
    first, *parts = text.split("${")
    expanded = first
    for part in parts:
        name, closed, rest = part.partition("}")
        if not closed or name not in os.environ:
            raise ConfigError(f"{what}: the variable {name} is not set.", hint=f"Set it first: export {name}=…")
        expanded += os.environ[name] + rest
    return expanded
