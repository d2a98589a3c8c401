"""Names of pairs: `orders`, or `orders@acme` where a definition is instantiated for one client."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Final

NAME: Final = re.compile(r"[\w.-]+(?:@[\w.-]+)?")
CLIENT: Final = re.compile(r"[\w.-]+")


def of_client(definition: str, client: str) -> str:
    """The name of what this definition is for one client."""
    return f"{definition}@{client}"


def definition_of(name: str) -> str:
    """The name without its client."""
    return name.partition("@")[0]


def client_of(name: str) -> str | None:
    """The client that a name is of; None for a name without one."""
    return name.partition("@")[2] or None


def is_pattern(text: str) -> bool:
    """Whether a text selects names by `*`, `?` or `[…]`, none of which can stand in a name."""
    return any(each in text for each in "*?[")


def matching(pattern: str, names: Iterable[str]) -> list[str]:
    """The names that a name or pattern selects, in the order of `names`."""
    if not is_pattern(pattern):
        return [name for name in names if name == pattern]
    return [name for name in names if fnmatchcase(name, pattern)]
