"""`trueup retry`: gives parked records another life, all of them, some by key, or those that conditions select."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from trueup.cli.commands._project import Client, Json, SomePairs, agreed, chosen, key_of, opened
from trueup.errors import ConfigError

if TYPE_CHECKING:
    from trueup.bound import BoundPair
    from trueup.model.failing import FailingFilter

Keys = Annotated[list[str] | None, typer.Argument(metavar="[KEY]...", help="Keys of records; by default all parked.")]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="NAME=VALUE",
        help="Only records whose job fails so: status=rejected, out-of-tries or waiting; error=TEXT; older=AGE. May be "
        "repeated: all must fit.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before retrying what --where selects.")]
KINDS_SHOWN: Final = 10


def retry(
    context: typer.Context,
    pair: SomePairs,
    keys: Keys = None,
    where: Where = None,
    client: Client = None,
    yes: Yes = False,
    json: Json = False,
) -> int:
    """Give parked records another life: they are read again, and the next run or worker does them.

    With --where it first shows what it would retry, and asks. The exit code is 1 where the answer is no.
    """
    from trueup.cli.terminal import counted, print_json, say  # noqa: PLC0415

    with opened(context) as project:
        pairs = chosen(project, [pair], client)
        if keys and len(pairs) > 1:
            raise ConfigError("a key is one of a pair.", hint=f"Name one pair, such as {pairs[0].name}.")
        if keys and where:
            raise ConfigError("keys and --where are two ways to say which records.", hint="Leave out one of them.")
        if where:
            count = _retry_where(pairs, _filter(where, project.ledger.now_us()), yes=yes, json=json)
            if count is None:
                return 1
        else:
            count = sum(bound.retry([key_of(key, bound) for key in keys] if keys else None) for bound in pairs)
        name = pairs[0].name if len(pairs) == 1 else f"'{pair}'"
    if json:
        print_json({"pair": name.strip("'"), "retried": count})
    elif count:
        say(f"{counted(count, 'record')} will be tried again: trueup run {name}")
    else:
        say(f"no parked records of {name}" if not (keys or where) else f"none of these records of {name} is parked")
    return 0


def _filter(where: Sequence[str], now_us: int) -> FailingFilter:
    from trueup.cli.options import assignments  # noqa: PLC0415
    from trueup.model.failing import FailingFilter  # noqa: PLC0415

    return FailingFilter.of(assignments(where, "--where", "status=rejected"), now_us)


def _retry_where(pairs: Sequence[BoundPair], where: FailingFilter, *, yes: bool, json: bool) -> int | None:
    """How many are tried again; None where a person said no."""
    from trueup.cli.terminal import counted  # noqa: PLC0415

    selected = _selected(pairs, where, shown=not json)
    total = sum(selected.values())
    if total and not agreed(f"try {counted(total, 'record')} again?", yes=yes):
        return None
    # Only these pairs: others may have begun to fail since, and were not shown.
    return sum(bound.retry_failing(where) for bound in pairs if selected[bound.name])


def _selected(pairs: Sequence[BoundPair], where: FailingFilter, *, shown: bool) -> Counter[str]:
    """How many records of each pair are selected; shown: by way and kind of failure, the most frequent first."""
    from trueup.cli.terminal import cut, number, say, width  # noqa: PLC0415
    from trueup.model.failing import failing, kind_of  # noqa: PLC0415

    by_pair: Counter[str] = Counter()
    by_kind: Counter[tuple[str, str, str]] = Counter()
    for bound in pairs:
        for row in bound.failing(where):
            by_pair[bound.name] += 1
            by_kind[bound.name, str(failing(row)), kind_of(row)] += 1
    if shown:
        for (name, way, kind), count in by_kind.most_common(KINDS_SHOWN):
            say(cut(f"{number(count):>9}  {name}  {way}" + ("" if kind == way else f"  {kind}"), width()))
        if len(by_kind) > KINDS_SHOWN:
            say(f"{'':>9}  and {len(by_kind) - KINDS_SHOWN:,} other kinds")
    return by_pair
