"""`trueup retry`: gives parked records another life."""

from __future__ import annotations

from typing import Annotated

import typer

from trueup.cli.commands._project import Client, Json, SomePairs, chosen, key_of, opened
from trueup.errors import ConfigError

Keys = Annotated[list[str] | None, typer.Argument(metavar="[KEY]...", help="Keys of records; by default all parked.")]


def retry(context: typer.Context, pair: SomePairs, keys: Keys = None, client: Client = None, json: Json = False) -> int:
    """Give parked records another life: they are read again, and the next run or worker does them."""
    from trueup.cli.terminal import counted, print_json, say  # noqa: PLC0415

    with opened(context) as project:
        pairs = chosen(project, [pair], client)
        if keys and len(pairs) > 1:
            raise ConfigError("a key is one of a pair.", hint=f"Name one pair, such as {pairs[0].name}.")
        count = sum(bound.retry([key_of(key, bound) for key in keys] if keys else None) for bound in pairs)
        name = pairs[0].name if len(pairs) == 1 else f"'{pair}'"
    if json:
        print_json({"pair": name.strip("'"), "retried": count})
    elif count:
        say(f"{counted(count, 'record')} will be tried again: trueup run {name}")
    else:
        say(f"no parked records of {name}" if not keys else f"none of these records of {name} is parked")
    return 0
