"""A worker process that kills itself at one step of its job. Arguments: folder, step, before|after, tokens."""

from __future__ import annotations

import sys
from pathlib import Path

from trueup.project import Project
from trueup.sides.sql import Sql
from trueup.testing.faults import LEDGER_STEPS, SIDE_STEPS, Fuse

LEASE_S = 0.4


def declare(folder: Path, *, versioned: bool) -> Project:
    project = Project(state=f"sqlite:///{folder}/state.db", seed=3, threads=1)
    source = Sql(f"sqlite:///{folder}/a.db", table="people", key="id", version="v")
    target = Sql(f"sqlite:///{folder}/r.db", table="people", key="id", version="row_version" if versioned else None)
    project.pair("people", authority=source, replica=target, fields=["name"], settle=0, lease=LEASE_S)
    return project


def main() -> None:
    folder, step, when, tokens = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
    project = declare(folder, versioned=tokens == "version")
    pair = project.find("people")
    fuse = Fuse(step, after=when == "after")
    records = pair.records
    assert records.plan
    project._store = (fuse.wrap(project.ledger, LEDGER_STEPS, "ledger"), project.archive, project.budgets)
    object.__setattr__(pair.pair, "authority", fuse.wrap(pair.pair.authority, SIDE_STEPS, "authority"))
    object.__setattr__(pair.pair, "replica", fuse.wrap(pair.pair.replica, SIDE_STEPS, "replica"))
    project.worker(threads=1).once(project.chance())
    print(" ".join(fuse.passed))
    project.close()


if __name__ == "__main__":
    main()
