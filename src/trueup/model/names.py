"""Names of pairs: `orders`, or `orders@acme` where a definition is instantiated for one client."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final

from trueup.errors import ConfigError, did_you_mean

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


def hint_for(name: str, known: Iterable[str]) -> str:
    """What to write in place of a name that is none of these."""
    names = list(known)
    if clients := [each for each in names if definition_of(each) == name]:
        return f"It stands for each client: write {clients[0]}, or '{name}@*' for all {len(clients):,}."
    return did_you_mean(name, names, "Pairs")


def matching(pattern: str, names: Iterable[str]) -> list[str]:
    """The names that a name or pattern selects, in the order of `names`."""
    if not is_pattern(pattern):
        return [name for name in names if name == pattern]
    return [name for name in names if fnmatchcase(name, pattern)]


def summed(names: Iterable[str]) -> list[str]:
    """The names, where those of several clients are one: `orders@* (1,000)`."""
    counts = Counter(name if client_of(name) is None else of_client(definition_of(name), "*") for name in names)
    return [name if "*" not in name else f"{name} ({count:,})" for name, count in counts.items()]


def selected(names: Collection[str], patterns: Sequence[str] = (), client: str | None = None) -> list[str]:
    """The names of pairs that names or patterns select, each once; all of them where there are no patterns.

    client: only those of this client, whose name a pattern may then leave out. ConfigError where something selects
    nothing.
    """
    own = [name for name in names if client is None or client_of(name) == client]
    if client is not None and not own:
        known = {each: None for name in names if (each := client_of(name)) is not None}
        raise ConfigError(f"there is no pair of client {client}.", hint=did_you_mean(client, known, "Clients"))
    found: dict[str, None] = {}
    for pattern in patterns or ("*",):
        chosen = matching(pattern if client is None or "@" in pattern else f"{pattern}@*", own)
        if patterns and not chosen:
            said = f"{pattern} of client {client}" if client else pattern
            raise ConfigError(f"there is no pair {said}.", hint=hint_for(pattern, own))
        found |= dict.fromkeys(chosen)
    return list(found)
