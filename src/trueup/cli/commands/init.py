"""`trueup init`: looks at two sides and writes a trueup.toml that works."""

from __future__ import annotations

from typing import Annotated

import typer

Name = Annotated[str | None, typer.Option("--name", metavar="NAME", help="Name of the pair; the table's by default.")]
Authority = Annotated[
    str | None, typer.Option("--authority", metavar="LOCATION", help="The side that is right: a table or a file.")
]
Replica = Annotated[str | None, typer.Option("--replica", metavar="LOCATION", help="The other side.")]
Key = Annotated[
    list[str] | None,
    typer.Option("--key", "-k", metavar="NAME", help="Key column of the authority. By default its primary key."),
]
Map = Annotated[
    list[str] | None,
    typer.Option("--map", metavar="AUTHORITY=REPLICA", help="A column that has another name at the replica."),
]
Version = Annotated[
    str | None,
    typer.Option("--version", metavar="NAME", help="Column that grows whenever a record changes; none for no such."),
]
Zone = Annotated[
    list[str] | None,
    typer.Option("--zone", metavar="[SIDE=]ZONE", help="Time zone of wall-clock times: left=UTC is the authority's."),
]
Handler = Annotated[
    str | None, typer.Option("--handler", metavar="MODULE:FUNCTION", help="What is called for every change.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing: take what was found.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def init(
    context: typer.Context,
    name: Name = None,
    authority: Authority = None,
    replica: Replica = None,
    key: Key = None,
    map: Map = None,  # noqa: A002  the option's name
    version: Version = None,
    zone: Zone = None,
    handler: Handler = None,
    force: Force = False,
    yes: Yes = False,
    json: Json = False,
) -> int:
    """Look at two sides and write a trueup.toml for them.

    Asks for what it can't find out, unless --yes. Passwords are not written: each becomes a ${VARIABLE}.
    """
    from trueup.cli import options  # noqa: PLC0415
    from trueup.cli.draft import Draft  # noqa: PLC0415
    from trueup.cli.terminal import print_json  # noqa: PLC0415

    draft = Draft(
        path=context.obj or "trueup.toml",
        name=name,
        authority=authority,
        replica=replica,
        key=options.names(key or ()),
        rename=options.assignments(map or (), "--map", "total=amount"),
        version=version,
        zone=options.one_by_side(zone or (), "--zone"),
        handler=handler,
        asks=not yes and not json,
    )
    written = draft.write(force=force)
    if json:
        print_json(written)
    else:
        draft.tell(written)
    return 0
