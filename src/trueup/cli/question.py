"""What `trueup diff` is asked, and the answer as values."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from trueup.cli.options import BySide
from trueup.cli.terminal import progress
from trueup.errors import ConfigError
from trueup.locations import FileLocation, TableLocation, open_on, open_side, parse_location
from trueup.model.record import Rule

if TYPE_CHECKING:
    from trueup.compare.analysis.result import Analysis
    from trueup.compare.plan import Plan
    from trueup.compare.result import Comparison
    from trueup.ports import Description, Side

MANY: Final = frozenset(("null",))


@dataclass(frozen=True, slots=True)
class Answer:
    """Two sides as compared, and as they may be shown.

    seconds: from opening them to the last row. left_side, right_side: may be asked for more. redact: columns whose
    values are in neither plan nor comparison. found: plan and comparison with these values, for what tells none.
    """

    left: Description
    right: Description
    plan: Plan
    comparison: Comparison
    seconds: float
    left_side: Side | None = None
    right_side: Side | None = None
    redact: frozenset[str] = frozenset()
    found: tuple[Comparison, Plan] | None = None

    @property
    def agree(self) -> bool:
        """Whether nothing differs: no record, and no column that only one side has."""
        return self.comparison.agree

    def analysis(self) -> Analysis:
        """What differs, and probably why."""
        from trueup.compare.analysis import analyse  # noqa: PLC0415  only where it is wanted

        comparison, plan = self.found or (self.comparison, self.plan)
        return analyse(comparison, plan, (self.left, self.right), self.left_side, self.redact)


@dataclass(frozen=True, slots=True)
class Question:
    """How two locations are to be compared.

    Names are those of the left side; rename: the right side's names. where, zone, limits: left's and right's.
    files: options of files by name. on: the engine that reads and matches both sides. redact: columns of either side
    whose values must not be shown.
    """

    key: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    rules: Mapping[str, Rule] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    where: tuple[str | None, ...] = (None, None)
    zone: tuple[str | None, ...] = (None, None)
    limits: tuple[Mapping[str, float], ...] = ({}, {})
    files: Mapping[str, BySide] = field(default_factory=dict)
    strategy: str | None = None
    memory_mb: int = 512
    on: str | None = None
    redact: tuple[str, ...] = ()

    @contextmanager
    def answer(self, left: str, right: str, *, follow: bool = True) -> Iterator[Answer]:
        """Compares; the answer's differences may be read until the context ends. follow: show progress."""
        from trueup.compare.choose import compare  # noqa: PLC0415  loads DuckDB
        from trueup.compare.plan import plan  # noqa: PLC0415

        started = time.monotonic()
        self._check_files(left, right)
        with ExitStack() as stack:
            (a, described_a), (b, described_b) = self._opened(stack, left, right)
            key = self.key or self._primary_key(described_a, described_b)
            planned = plan(
                described_a,
                described_b,
                key=key,
                key_right=[self.rename.get(name, name) for name in key],
                columns=self.columns,
                ignore=self.ignore,
                rename=self.rename,
                rules=self.rules,
                kinds=self.kinds,
            )
            hidden = self._hidden(planned, described_a, described_b)
            with progress(shown=follow) as follower:
                comparison = compare(
                    a,
                    b,
                    planned,
                    strategy=self.strategy,
                    memory_mb=self.memory_mb,
                    progress=lambda done, total: follower("compare", done, total),
                )
            stack.enter_context(comparison)
            answer = Answer(described_a, described_b, planned, comparison, time.monotonic() - started, a, b)
            yield _redacted(answer, hidden) if hidden else answer

    def _hidden(self, planned: Plan, left: Description, right: Description) -> frozenset[str]:
        if not self.redact:
            return frozenset()
        from trueup.compare.redacted import redactions  # noqa: PLC0415  only where it is wanted

        return redactions(self.redact, planned, (left, right))

    def _check_files(self, left: str, right: str) -> None:
        """An option for files, said for both sides, is an error where neither is a file; so is one for databases."""
        formats = self.files.get("format", BySide())
        parsed = [parse_location(text, format=_one(formats[at])) for at, text in enumerate((left, right))]
        if not any(isinstance(each, TableLocation) for each in parsed) and any(self.limits):
            hint = "Leave out --connections, --timeout and --throttle: both sides are files."
            raise ConfigError("what may be asked of a database is said, but there is none.", hint=hint)
        if any(isinstance(each, FileLocation) for each in parsed):
            return
        for name, given in self.files.items():
            if given.left or given.right:
                raise ConfigError(f"--{name} is an option of files.", hint="Leave it out: both sides are tables.")

    def _opened(self, stack: ExitStack, left: str, right: str) -> list[tuple[Side, Description]]:
        """Both at once: each waits for its own system."""
        with ThreadPoolExecutor(2, thread_name_prefix="trueup-open") as pool:
            opening = [pool.submit(self._open, stack, each, at) for at, each in enumerate((left, right))]
            return [each.result() for each in opening]

    def _open(self, stack: ExitStack, location: str, at: int) -> tuple[Side, Description]:
        if self.on is not None:
            return self._open_on(self.on, location, at)
        given = {name: each for name, each in self.files.items() if each[at]}
        parsed = parse_location(location, format=_one(self.files.get("format", BySide())[at]))
        if not isinstance(parsed, FileLocation):
            # What was said for both sides is meant for the one that is a file.
            given = {name: each for name, each in given.items() if not each.common}
        options: dict[str, Any] = {name: each[at] if name in MANY else _one(each[at]) for name, each in given.items()}
        key = [name if at == 0 else self.rename.get(name, name) for name in self.key]
        limits = self.limits[at]
        side = open_side(location, key=key, where=self.where[at], zone=self.zone[at], limits=limits, **options)
        stack.callback(side.close)
        described = side.describe()
        kinds = self._kinds(described, at)
        if kinds and isinstance(parsed, FileLocation):
            # A declared column of a file is checked: a value that is none of its kind is named by line.
            side = open_side(location, key=key, where=self.where[at], zone=self.zone[at], kinds=kinds, **options)
            stack.callback(side.close)
            described = side.describe()
        return side, described

    def _open_on(self, engine: str, location: str, at: int) -> tuple[Side, Description]:
        unused = [f"--{name}" for name, each in self.files.items() if each[at] and name != "format"]
        unused += ["--zone"] if self.zone[at] is not None else []
        if unused:
            hint = f"Leave it out, or leave out --on {engine}."
            raise ConfigError(f"{unused[0]} has no meaning on {engine}.", hint=hint)
        key = [name if at == 0 else self.rename.get(name, name) for name in self.key]
        given = _one(self.files.get("format", BySide())[at])
        side = open_on(engine, location, key=key, where=self.where[at], format=given)
        return side, side.describe()

    def _kinds(self, described: Description, at: int) -> dict[str, str]:
        named = {name if at == 0 else self.rename.get(name, name): kind for name, kind in self.kinds.items()}
        return {name: kind for name, kind in named.items() if described.column(name) is not None}

    def _primary_key(self, left: Description, right: Description) -> tuple[str, ...]:
        mapped = tuple(self.rename.get(name, name) for name in left.key)
        if left.key and mapped == tuple(right.key):
            return tuple(left.key)
        common = [column.name for column in left.columns if right.column(self.rename.get(column.name, column.name))]
        shown = ", ".join(common[:12]) + (", …" if len(common) > 12 else "")
        why = "the primary keys differ" if left.key and right.key else "no primary key is known for both sides"
        hint = (
            f"Say which column identifies a record, such as --key {common[0]}. Both have: {shown}."
            if common
            else (
                f"No column has the same name on both sides: give --key and --map. Left has: "
                f"{', '.join(column.name for column in left.columns[:12])}."
            )
        )
        raise ConfigError(f"which records belong together? {why[:1].upper()}{why[1:]}.", hint=hint)


def _one(values: tuple[str, ...]) -> str | None:
    return values[0] if values else None


def _redacted(answer: Answer, names: frozenset[str]) -> Answer:
    from trueup.compare.redacted import redacted  # noqa: PLC0415  only where it is wanted

    comparison, plan = redacted(answer.comparison, answer.plan, names)
    return replace(answer, comparison=comparison, plan=plan, redact=names, found=(answer.comparison, answer.plan))
