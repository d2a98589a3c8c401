"""Both sides of one pair, read as records in the engine's words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from trueup.compare.plan import Plan, plan
from trueup.engine.alike import Asked
from trueup.engine.glance import Glances, glanced, keys_and_digests
from trueup.errors import ConfigError, SchemaError
from trueup.model.canonical import canonical_text
from trueup.model.change import DELETE, Change, Origin
from trueup.model.columns import texts
from trueup.model.kinds import INTEGER, Column, Kind
from trueup.model.record import EXACT, Field, Found, Payload, Projection, key_text, version_of
from trueup.model.times import timestamp_text
from trueup.pair import Pair
from trueup.ports import EVERYTHING, Description, Scope, Side


# Not frozen, though nobody changes it: each job makes one, and a frozen one takes three times as long.
@dataclass(slots=True)
class State:
    """What the authority says of one record, and so what the replica should hold.

    values: canonical texts by field name, None where the authority lacks the record. absent: the replica
    should not hold it (the authority lacks it, or its state means absence). copies: rows with this key.
    """

    key: str
    action: str
    absent: bool
    values: Mapping[str, str | None] | None = None
    version: int | None = None
    digest: str | None = None
    payload: str | None = None
    copies: int = 1


class Records:
    """One pair's records. Columns are inspected once, at the first use."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair

    @cached_property
    def plan(self) -> Plan:
        """How the two sides are compared; SchemaError where they can't be."""
        pair = self.pair
        if pair.replica is None:
            raise ConfigError(f"pair {pair.name} has no replica to compare with.", hint="Declare replica=….")
        declared = {spec.name: spec.rule for spec in pair.fields or ()}
        return plan(
            pair.authority.describe(),
            pair.replica.describe(),
            key=pair.key,
            key_right=pair.replica.key or None,
            version_left=pair.authority.version,
            fields=pair.fields,
            ignore=(*pair.ignore, *pair.replica_owns),
            rules={name: replace(declared.get(name, EXACT), fill=True) for name in pair.fill},
            rename=pair.rename,
            absent_when=pair.absent_when,
            action_field=pair.action_field,
        )

    @cached_property
    def authority(self) -> Projection:
        """What is asked of the authority: key, version, fields, and all its other columns for handlers."""
        described = self.pair.authority.describe()
        base = self._alone(described) if self.pair.replica is None else self.plan.left
        taken = {field.source for field in base.columns}
        extra = [Field(c.name, c.name, c.kind) for c in described.columns if c.name not in taken]
        named = {field.name for field in base.columns}
        return replace(base, extra=tuple(field for field in extra if field.name not in named))

    @cached_property
    def replica(self) -> Projection:
        """What is asked of the replica; its version column, where declared, is the token of writes.

        A column that copies the authority's version is written along, though it is not compared.
        """
        side, asked = self.pair.replica, self.authority.version
        if side is None:
            return self.plan.right
        described = side.describe()
        right = _with_version(self.plan.right, described, side)
        copy = None if asked is None else described.column(self.pair.rename.get(asked.name, asked.name))
        if asked is None or copy is None or copy.name == side.version or copy.name in self.pair.ignore:
            return right
        return replace(right, extra=(Field(asked.name, copy.name, asked.kind),))

    @cached_property
    def kinds(self) -> Mapping[str, Kind]:
        """Kinds by field name, as handlers receive the values."""
        return {field.name: field.kind for field in self.authority.columns}

    @property
    def dated(self) -> bool:
        """Whether the authority's versions are times by its own clock."""
        asked = self.authority.version
        return asked is not None and asked.kind.name == "timestamp"

    @property
    def replica_dated(self) -> bool:
        """Whether the replica can be asked what changed there, by times of its own clock, without reading it all."""
        side = self.pair.replica
        asked = None if side is None else self.replica.version
        return side is not None and asked is not None and asked.kind.name == "timestamp"

    @property
    def readable(self) -> bool:
        """Whether there is a replica that can be read."""
        return self.pair.replica is not None

    def _alone(self, described: Description) -> Projection:
        """A pair without replica digests every column but key, version and what `mark` assigns."""
        pair = self.pair
        passed = {*pair.key, *pair.ignore, pair.authority.version, *_assigned(pair.mark or "")}
        declared = None if pair.fields is None else {spec.name: spec for spec in pair.fields}
        names = [c.name for c in described.columns if c.name not in passed] if declared is None else list(declared)
        fields = []
        for name in names:
            column = _column(described, name)
            rule = declared[name].rule if declared else Field(name, name, column.kind).rule
            fields.append(Field(name, name, column.kind, rule=rule))
        key = tuple(Field(name, name, _column(described, name).kind) for name in pair.key)
        return _with_version(Projection(key, tuple(fields)), described, pair.authority)

    def read_authority(self, keys: Sequence[str]) -> dict[str, State]:
        """What the authority says of these records; absent ones are answered as deletes."""
        found = self.pair.authority.read(self.authority, keys) if keys else {}
        return {key: self.state(key, found.get(key)) for key in keys}

    def read_replica(self, keys: Sequence[str]) -> dict[str, Found]:
        """The replica's records with these keys; absent ones are not in the answer."""
        side = self.pair.replica
        return side.read(self.replica, keys) if side is not None and keys else {}

    def state(self, key: str, found: Found | None) -> State:
        """What one record of the authority asks for."""
        if found is None:
            return State(key, DELETE, absent=True)
        return replace(self._present(key, found.values, found.version), copies=found.copies)

    def wished(self, change: Change) -> State:
        """What a change that carries all fields asks for, without reading the authority."""
        if change.action == DELETE:
            return State(change.key, DELETE, absent=True)
        values = Payload.loads(change.payload).values
        absent = self.pair.means_absent(values)
        return State(change.key, change.action, absent, values, change.version, change.digest, change.payload)

    def _present(self, key: str, values: Mapping[str, str | None], version: int | None) -> State:
        asked = self.authority.version
        if asked is not None and version is not None:
            spelled = str(version) if asked.kind.name == "integer" else timestamp_text(version, asked.kind.aware)
            values = {**values, asked.name: spelled}
        payload = Payload(values, self.kinds).dumps()
        digest = self.authority.digest(values)
        return State(key, self.pair.action(values), self.pair.means_absent(values), values, version, digest, payload)

    def mapped(self, state: State, replica: Found | None) -> dict[str, str | None]:
        """What a put writes: the key, the compared fields, and the copy of the version where there is one.

        replica: as it was read; what it has in a field that is only filled stays as it is.
        """
        asked, values = self.replica, state.values or {}
        written = {field.name: values.get(field.name) for field in (*asked.key, *asked.fields, *asked.extra)}
        held = {} if replica is None else replica.values
        kept = {
            field.name: held[field.name]
            for field in asked.fields
            if field.rule.fill and held.get(field.name) is not None
        }
        return written | kept

    def agree(self, state: State, replica: Found | None) -> bool:
        """Whether the replica holds what the authority asks for."""
        if state.absent or replica is None:
            return state.absent and replica is None
        return state.copies == replica.copies == 1 and not self.differing(state, replica)

    def differing(self, state: State, replica: Found | None) -> tuple[str, ...]:
        """Names of the fields that are not judged equal; none where a side lacks the record."""
        if state.values is None or replica is None:
            return ()
        return self.plan.left.changed_fields(state.values, replica.values)

    def replica_digest(self, found: Found | None) -> str | None:
        """The digest of what the replica holds; None where it lacks the record."""
        return None if found is None else self.replica.digest(found.values)

    def scan_authority(self, scope: Scope = EVERYTHING) -> Iterator[list[State]]:
        """The authority's records in scope as states, a batch at a time."""
        asked = self.authority
        width = len(asked.key)
        for batch in self.pair.authority.scan(asked, scope):
            columns = [
                texts(batch.column(at), field) for at, field in enumerate(asked.columns) if field is not asked.version
            ]
            versions = batch.column(width).to_pylist() if asked.version is not None else [None] * batch.num_rows
            names = [field.name for field in asked.columns if field is not asked.version]
            states = []
            for version, *row in zip(versions, *columns, strict=True):
                states.append(self._present(key_text(row[:width]), dict(zip(names, row, strict=True)), version))
            yield states

    def glance_authority(self, since: int, *, versioned: bool) -> Glances:
        """The authority's records of these versions, as much as most comparisons ask: see `glanced`."""
        return glanced(self.pair.authority, self.plan.left, since, self.pair.action_field, versioned=versioned)

    def glance_replica(self, since: int) -> Glances:
        """The replica's records of these versions, by its own clock; without their actions."""
        assert self.pair.replica is not None
        return glanced(self.pair.replica, self.replica, since)

    def asked(self, since: int, since_replica: int) -> tuple[Asked, Asked]:
        """Both sides, each with the versions from which on it is asked what it has: see `shown`."""
        assert self.pair.replica is not None
        return (
            Asked(self.pair.authority, self.plan.left, since),
            Asked(self.pair.replica, self.replica, since_replica),
        )

    def scan_replica(self, scope: Scope = EVERYTHING) -> Iterator[dict[str, str]]:
        """Digests of the replica's records in scope by key, a batch at a time."""
        side, asked = self.pair.replica, self.replica
        for batch in side.scan(asked, scope) if side is not None else ():
            yield dict(zip(*keys_and_digests(batch, asked), strict=True))

    def change(self, state: State, origin: Origin, **judged: object) -> Change:
        """The wish that this state is, from this origin."""
        return Change(
            self.pair.name,
            state.key,
            state.action,
            state.version,
            state.digest,
            state.payload,
            origin,
            **judged,  # type: ignore[arg-type]
        )

    def change_of(self, values: Mapping[str, object], *, deleted: bool, origin: Origin) -> Change:
        """A change from values as a program holds them.

        Values that lack a field, or that have no version, give a change without version: the worker then
        reads the authority. Names that the authority does not have are refused.
        """
        kinds = self.kinds
        if unknown := values.keys() - kinds.keys():
            raise SchemaError(
                f"pair {self.pair.name}: the authority has no column {min(unknown)}.",
                hint=f"It has: {', '.join(kinds)}.",
            )
        canonical = {name: canonical_text(value, kinds[name]) for name, value in values.items()}
        lacking = [field.name for field in self.authority.key if canonical.get(field.name) is None]
        if lacking:
            raise SchemaError(f"pair {self.pair.name}: the change has no {lacking[0]}.", hint="Give the whole key.")
        key = key_text(canonical[field.name] for field in self.authority.key)
        asked = self.authority.version
        version = None if asked is None else version_of(canonical.get(asked.name), asked.kind)
        if deleted:
            return Change(self.pair.name, key, DELETE, version, origin=origin)
        whole = all(field.name in canonical for field in self.authority.fields)
        payload = Payload(canonical, self.kinds).dumps()
        digest = self.authority.digest(canonical) if whole else None
        action = self.pair.action(canonical)
        return Change(self.pair.name, key, action, version if whole else None, digest, payload, origin)


def _column(described: Description, name: str) -> Column:
    column = described.column(name)
    if column is None:
        raise SchemaError(
            f"{described.label} has no column {name}.",
            hint=f"It has: {', '.join(each.name for each in described.columns)}.",
        )
    return column


def _with_version(asked: Projection, described: Description, side: Side) -> Projection:
    if side.version is None:
        return asked
    column = _column(described, side.version)
    kind = column.kind if column.kind.name in ("integer", "timestamp") else INTEGER
    return replace(asked, version=Field(side.version, side.version, kind))


def _assigned(assignments: str) -> list[str]:
    """The columns on the left of `a = 1, b = now()`."""
    return re.findall(r'(?:^|,)\s*["`]?(\w+)["`]?\s*=', assignments)
