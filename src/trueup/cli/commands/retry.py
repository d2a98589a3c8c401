"""`trueup retry`: gives parked records another life."""

from __future__ import annotations

from typing import Annotated

import typer

from trueup.cli.commands._project import Json, Pair, key_of, opened

Keys = Annotated[list[str] | None, typer.Argument(metavar="[KEY]...", help="Keys of records; by default all parked.")]


def retry(context: typer.Context, pair: Pair, keys: Keys = None, json: Json = False) -> int:
    """Give parked records another life: they are read again, and the next run or worker does them."""
    from trueup.cli.terminal import counted, print_json, say  # noqa: PLC0415

    with opened(context) as project:
        bound = project.find(pair)
        count = bound.retry(None if not keys else [key_of(key, bound) for key in keys])
    if json:
        print_json({"pair": pair, "retried": count})
    elif count:
        say(f"{counted(count, 'record')} will be tried again: trueup run {pair}")
    else:
        say(f"no parked records of {pair}" if not keys else f"none of these records of {pair} is parked")
    return 0
