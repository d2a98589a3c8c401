"""What `trueup doctor` checks, each check a finding with what to do about it. Nothing is changed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from trueup.cli.terminal import counted, paint, say
from trueup.errors import SideError, TrueupError
from trueup.model.duration import duration_text
from trueup.ports import ExaminableSide

if TYPE_CHECKING:
    from trueup.bound import BoundPair
    from trueup.ports import Description, Side

Level = Literal["good", "change", "fails"]
_SKEW_US: Final = 2_000_000
MOUNTS: Final = Path("/proc/mounts")
_NETWORK: Final = frozenset(
    ("nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "lustre", "afs", "fuse.sshfs", "fuse.glusterfs", "glusterfs")
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One check. where: `state`, a pair, or a side of it. fix: what to type or change."""

    where: str
    what: str
    level: Level
    said: str
    fix: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The finding as plain JSON values."""
        return asdict(self)


def exit_code(findings: Sequence[Finding]) -> int:
    """0 all is well, 1 something should be changed, 2 a run would fail."""
    levels = {finding.level for finding in findings}
    return 2 if "fails" in levels else 1 if "change" in levels else 0


def show(finding: Finding) -> None:
    """One finding in a line, with its fix in another."""
    word = {
        "good": paint("ok    ", "green"),
        "change": paint("change", "yellow"),
        "fails": paint("fails ", "red"),
    }[finding.level]
    say(f"{word}  {finding.where:<24}  {finding.what:<12}  {finding.said}")
    if finding.fix is not None:
        say(f"        → {finding.fix}")


def conclude(findings: Sequence[Finding]) -> None:
    """How many findings ask for something."""
    fails = sum(finding.level == "fails" for finding in findings)
    changes = sum(finding.level == "change" for finding in findings)
    if fails or changes:
        say(f"{counted(fails, 'check fails', 'checks fail')}, {counted(changes, 'thing')} to change")
    else:
        say(paint("all is well", "green"))


# ── the state store ──────────────────────────────────────────────────────────────────────────────────


def check_state(url: str) -> list[Finding]:
    """Whether the state store answers, and its file lies where it can be written and locked."""
    from trueup.stores import check_store, name_of  # noqa: PLC0415  loads an adapter

    found = _check_file(url) if url.startswith("sqlite:///") else []
    if any(each.level == "fails" for each in found):
        return found
    try:
        check_store(url)
    except TrueupError as error:
        return [Finding("state", "connection", "fails", error.message, error.hint)]
    return found or [Finding("state", "connection", "good", f"{name_of(url)} takes writes")]


def _check_file(url: str) -> list[Finding]:
    path = Path(url.removeprefix("sqlite:///").partition("?")[0])
    folder = path.absolute().parent
    if not folder.is_dir():
        return [Finding("state", "storage", "fails", f"there is no folder {folder}", f"mkdir -p {folder}")]
    kind = _file_system(folder, MOUNTS)
    if kind in _NETWORK:
        said = f"{path} lies on a network file system ({kind}): its locks and syncs can't be trusted"
        return [Finding("state", "storage", "fails", said, 'Move it to a local disk: state = "sqlite:////var/…"')]
    unwritable = [each for each in (folder, path) if each.exists() and not os.access(each, os.W_OK)]
    if unwritable:
        said = f"{unwritable[0]} can't be written by this user"
        return [Finding("state", "storage", "fails", said, "Give this user the right to write it, or move the state.")]
    return [Finding("state", "storage", "good", f"{path}{'' if path.exists() else ' (created by the first run)'}")]


def _file_system(folder: Path, mounts: Path) -> str | None:
    """The type of the file system that holds `folder`, where the operating system tells."""
    try:
        lines = [line.split() for line in mounts.read_text("utf-8", "replace").splitlines()]
    except OSError:
        return None
    real = folder.resolve()
    holding = [line for line in lines if len(line) > 2 and real.is_relative_to(line[1].replace("\\040", " "))]
    return max(holding, key=lambda line: len(line[1]))[2] if holding else None


# ── pairs ────────────────────────────────────────────────────────────────────────────────────────────


def check_pair(pair: BoundPair) -> Iterator[Finding]:
    """All checks of one pair; a side that does not answer ends its own checks."""
    reached = []
    for role, side in (("authority", pair.pair.authority), ("replica", pair.pair.replica)):
        if side is not None:
            where = f"{pair.name} {role}"
            connection, described = _connection(where, side)
            yield connection
            if described is not None:
                reached.append(side)
                yield from _guarded(where, "clock", lambda side=side, where=where: _clock(where, side))
                yield from _guarded(
                    where, "version", lambda side=side, where=where, d=described: _version(where, side, d)
                )
    if len(reached) == (1 if pair.pair.replica is None else 2):
        if pair.pair.replica is not None:
            yield from _guarded(pair.name, "types", lambda: _types(pair))
        yield from _guarded(pair.name, "read", lambda: _read(pair))
        yield from _guarded(pair.name, "handlers", lambda: _handlers(pair))
    for role, side in (("authority", pair.pair.authority), ("replica", pair.pair.replica)):
        if side in reached and side is not None:
            where = f"{pair.name} {role}"
            yield from _guarded(
                where, "database", lambda side=side, where=where, role=role: _database(pair, where, side, role)
            )


def _guarded(where: str, what: str, check: Any) -> Iterator[Finding]:
    """The findings of a check; what it raises is one of them."""
    try:
        yield from check()
    except TrueupError as error:
        yield Finding(where, what, "fails", error.message, error.hint)


def _connection(where: str, side: Side) -> tuple[Finding, Description | None]:
    started = time.monotonic()
    try:
        described = side.describe()
    except SideError as error:
        return Finding(where, "connection", "fails", error.message, error.hint), None
    spent = f"{(time.monotonic() - started) * 1000:.0f} ms"
    said = f"{side.label}: {described.system}, {counted(len(described.columns), 'column')}, {spent}"
    return Finding(where, "connection", "good", said), described


def _clock(where: str, side: Side) -> Iterator[Finding]:
    """How far the side's clock is from this machine's, the round trip taken off."""
    before_us = time.time_ns() // 1_000
    theirs_us = side.now_us()
    after_us = time.time_ns() // 1_000
    if theirs_us is None:
        return
    skew_us = max(before_us - theirs_us, theirs_us - after_us, 0)
    if skew_us <= _SKEW_US:
        yield Finding(where, "clock", "good", f"within {duration_text(max(skew_us, 100_000))} of this machine's")
    else:
        word = "behind" if theirs_us < before_us else "ahead of"
        said = f"{duration_text(skew_us)} {word} this machine's"
        yield Finding(where, "clock", "change", said, "Synchronise both clocks (NTP); cutoffs use the authority's.")


def _version(where: str, side: Side, described: Description) -> Iterator[Finding]:
    if side.version is None:
        return
    column = described.column(side.version)
    if column is None:
        yield Finding(where, "version", "fails", f"there is no column {side.version}", "Correct `version`.")
    elif column.kind.name not in ("integer", "timestamp"):
        said = f"{side.version} is {column.kind}: only integers and timestamps are versions, so it counts as none"
        yield Finding(where, "version", "change", said, "Name another column, or leave `version` out.")
    else:
        yield Finding(where, "version", "good", f"{side.version}: {column.kind}")


def _types(pair: BoundPair) -> Iterator[Finding]:
    notes = pair.records.plan.notes
    for line in notes.compared_as:
        yield Finding(pair.name, "types", "good", line)
    for role, names in (("authority", notes.only_left), ("replica", notes.only_right)):
        if names:
            yield Finding(pair.name, "types", "good", f"only at the {role}, not compared: {', '.join(names)}")
    for left, right in notes.case_only:
        said = f"{left} and {right} differ in case only and are not compared"
        yield Finding(pair.name, "types", "change", said, f'Compare them: map = {{ {left} = "{right}" }}')


def _read(pair: BoundPair) -> Iterator[Finding]:
    """Reads the first records of each side."""
    sides = [("authority", pair.pair.authority, pair.records.authority)]
    if pair.pair.replica is not None:
        sides.append(("replica", pair.pair.replica, pair.records.replica))
    for role, side, projection in sides:
        first = next(iter(side.scan(projection)), None)
        said = "no records yet" if first is None or not first.num_rows else "records can be read"
        yield Finding(f"{pair.name} {role}", "read", "good", said)


def _handlers(pair: BoundPair) -> Iterator[Finding]:
    pair.handlers.check(pair.pair)
    yield Finding(pair.name, "handlers", "good", "its own" if pair.handlers.declared else "the built-in writer")


def _database(pair: BoundPair, where: str, side: Side, role: str) -> Iterator[Finding]:
    """What only a database can be asked: the right to write, and indexes."""
    if not isinstance(side, ExaminableSide):
        return
    if role == "replica" and not pair.handlers.declared:
        refusal = side.refused_write()
        if refusal is None:
            yield Finding(where, "write", "good", "records can be written (tried without a record, rolled back)")
        else:
            yield Finding(where, "write", "fails", refusal.message, refusal.hint)
    found = side.examine()
    if found.unique_key:
        yield Finding(where, "key", "good", f"{', '.join(side.key)} is unique")
    else:
        said = f"nothing keeps {', '.join(side.key)} unique" + ("" if found.key_index else ", and no index leads to it")
        yield Finding(where, "key", "change", said, found.make_key)
    if found.make_version is None:
        return
    if found.version_index:
        yield Finding(where, "version", "good", f"an index begins with {side.version}")
    elif role == "authority":
        said = f"no index begins with {side.version}: every sweep reads the whole table"
        yield Finding(where, "version", "change", said, found.make_version)
