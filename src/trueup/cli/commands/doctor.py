"""`trueup doctor`: whether everything that runs will need is there, and what to change."""

from __future__ import annotations

import typer

from trueup.cli.commands._project import Client, Json, Pairs, chosen, opened


def doctor(context: typer.Context, pairs: Pairs = None, client: Client = None, json: Json = False) -> int:
    """Check connections, clocks, types, permissions, indexes and the state store; say what to change.

    Changes nothing. The exit code is 0 where all is well, 1 where something should be changed, 2 where a run
    would fail.
    """
    from trueup.cli import checkup  # noqa: PLC0415
    from trueup.cli.terminal import print_json  # noqa: PLC0415

    findings = []
    with opened(context) as project:
        found = checkup.check_state(project.state)
        for pair in chosen(project, pairs, client):
            found += checkup.check_pair(pair)
        for finding in found:
            findings.append(finding)
            if not json:
                checkup.show(finding)
    code = checkup.exit_code(findings)
    if json:
        print_json({"findings": [finding.as_json() for finding in findings], "exit_code": code})
    else:
        checkup.conclude(findings)
    return code
