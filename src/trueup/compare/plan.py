"""What is compared with what: columns matched by name, each pair of columns under one kind and one rule."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from trueup.errors import ConfigError, SchemaError, did_you_mean
from trueup.model.kinds import DECIMAL, Column, Kind, common_kind, kind_named
from trueup.model.record import Field, Projection, Rule
from trueup.pair import FieldSpec
from trueup.ports import Description

_NUMERIC = ("integer", "decimal", "float")
_TEXTUAL = ("text", "enum")


@dataclass(frozen=True, slots=True)
class SchemaNotes:
    """What the two schemas do not share.

    only_left, only_right: columns of one side that nothing on the other answers to.
    case_only: pairs of those whose names differ in case only; they are compared once a mapping says so.
    compared_as: for people, pairs of columns of unlike types and what they are compared as.
    """

    only_left: tuple[str, ...] = ()
    only_right: tuple[str, ...] = ()
    case_only: tuple[tuple[str, str], ...] = ()
    compared_as: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether every column has its counterpart. Two sides with a one-sided column do not agree."""
        return not self.only_left and not self.only_right


@dataclass(frozen=True, slots=True)
class Plan:
    """A comparison as a value: the two projections agree in names, kinds and rules and differ in sources.

    The left projection may also read a version and extra columns; the right one reads neither.
    absent_when: states of left fields that mean *no record on the right*. action_field: the left field
    whose value is the action of a record.
    """

    left: Projection
    right: Projection
    notes: SchemaNotes = SchemaNotes()
    absent_when: Mapping[str, frozenset[str]] | None = None
    action_field: str | None = None

    @property
    def exact(self) -> bool:
        """Whether equality of canonical texts is all that is asked."""
        return not self.absent_when and all(field.rule.exact for field in self.left.fields)


def plan(
    left: Description,
    right: Description,
    *,
    key: Sequence[str],
    version_left: str | None = None,
    fields: Sequence[FieldSpec] | None = None,
    columns: Sequence[str] | None = None,
    ignore: Collection[str] = (),
    rename: Mapping[str, str] | None = None,
    key_right: Sequence[str] | None = None,
    rules: Mapping[str, Rule] | None = None,
    kinds: Mapping[str, str] | None = None,
    absent_when: Mapping[str, Sequence[str]] | None = None,
    action_field: str | None = None,
) -> Plan:
    """Matches the columns of two sides.

    key: left names; the right side's are `key_right` by position, else the same names after `rename`.
    fields, columns: what is compared, by left name; by default every column that both sides have, without
    key and version. ignore: names on either side that are left out. rename: left name to right name.
    rules, kinds: by left name; they win over those of `fields`.

    Raises SchemaError where a column is missing or two can't be compared, ConfigError where a declaration
    contradicts itself.
    """
    match = _Match(left, right, dict(rename or {}), dict(rules or {}), dict(kinds or {}))
    match.check(ignore)
    if not key:
        raise ConfigError("there is no key to match records by.", hint="Name its columns, for example --key id.")
    if key_right and len(key_right) != len(key):
        raise ConfigError(
            f"the keys have {len(key)} and {len(key_right)} columns.", hint="Match key columns one to one, in order."
        )
    names_right = [match.target(name) for name in key] if key_right is None else list(key_right)
    keys = [match.fields(name, other) for name, other in zip(key, names_right, strict=True)]
    specs, explicit = match.chosen(key, names_right, version_left, fields, columns, ignore)
    pairs = [match.fields(spec.name, match.target(spec.name), spec) for spec in specs]
    match.refuse_unused_rules({*key, *(spec.name for spec in specs)})

    read = {*key, *(spec.name for spec in specs)}
    extra = [name for name in (*(absent_when or {}), *([action_field] if action_field else [])) if name not in read]
    extras = tuple(match.lone(name) for name in dict.fromkeys(extra))
    used_left = {*read, *extra, version_left}
    used_right = {*names_right, *(match.target(name) for name in used_left if name is not None)}
    notes = match.notes(used_left, used_right, () if explicit else ignore, explicit=explicit)
    return Plan(
        left=Projection(
            key=tuple(a for a, _ in keys),
            fields=tuple(a for a, _ in pairs),
            version=None if version_left is None else match.lone(version_left),
            extra=extras,
        ),
        right=Projection(key=tuple(b for _, b in keys), fields=tuple(b for _, b in pairs)),
        notes=notes,
        absent_when={name: frozenset(states) for name, states in (absent_when or {}).items()},
        action_field=action_field,
    )


class _Match:
    """The two descriptions and what was declared about them."""

    def __init__(
        self,
        left: Description,
        right: Description,
        rename: dict[str, str],
        rules: dict[str, Rule],
        kinds: dict[str, str],
    ) -> None:
        self._left, self._right = left, right
        self._rename, self._rules, self._kinds = rename, rules, kinds
        self._compared_as: list[str] = []

    def target(self, name: str) -> str:
        """The right side's name of a left column."""
        return self._rename.get(name, name)

    def check(self, ignore: Collection[str]) -> None:
        """A misspelt name in a declaration must not pass as one that has no effect."""
        for name, other in self._rename.items():
            _column(self._left, name)
            _column(self._right, other)
        for name in ignore:
            if self._right.column(name) is None:
                _column(self._left, name)

    def chosen(
        self,
        key: Sequence[str],
        key_right: Sequence[str],
        version: str | None,
        fields: Sequence[FieldSpec] | None,
        columns: Sequence[str] | None,
        ignore: Collection[str],
    ) -> tuple[list[FieldSpec], bool]:
        """The fields that are compared, and whether they were asked for by name."""
        declared = {spec.name: spec for spec in fields or ()}
        if columns is not None:
            names = list(dict.fromkeys(columns))
        elif fields is not None:
            names = list(declared)
        else:
            names = [each.name for each in self._left.columns if self._right.column(self.target(each.name))]
            names = [name for name in names if name != version and self.target(name) not in key_right]
        skipped = {*key, *ignore}
        specs = [declared.get(name, FieldSpec(name)) for name in names if name not in skipped]
        return specs, columns is not None or fields is not None

    def fields(self, name: str, other: str, spec: FieldSpec | None = None) -> tuple[Field, Field]:
        """The two fields of one pair of columns."""
        left, right = _column(self._left, name), _column(self._right, other)
        spec = spec or FieldSpec(name)
        rule = self._rules.get(name, spec.rule)
        kind, native = _judged_kind(left, right, self._kinds.get(name, spec.kind), rule)
        if left.kind != right.kind:
            self._compared_as.append(_compared_as(left, right, kind, rule))
        field = Field(name, left.name, kind, native, rule)
        return field, replace(field, source=right.name)

    def lone(self, name: str) -> Field:
        """A left column that is read but not compared."""
        column = _column(self._left, name)
        native = column.native and column.kind.arrow() is not None
        return Field(name, column.name, column.kind, native)

    def refuse_unused_rules(self, names: Collection[str]) -> None:
        """A rule for a column that is not compared would be a silent no-op."""
        for what, declared in (("rule", self._rules), ("kind", self._kinds)):
            for name in declared:
                if name not in names:
                    hint = did_you_mean(name, names, "Columns compared")
                    raise ConfigError(f"a {what} is declared for {name}, which is not compared.", hint=hint)

    def notes(
        self, used_left: Collection[str | None], used_right: Collection[str], ignore: Collection[str], *, explicit: bool
    ) -> SchemaNotes:
        """What one side has and the other lacks; columns asked for by name leave nothing open."""
        compared_as = tuple(self._compared_as)
        if explicit:
            return SchemaNotes(compared_as=compared_as)
        skipped = {*ignore, *(self.target(name) for name in ignore)}
        only_left = [each.name for each in self._left.columns if each.name not in used_left and each.name not in ignore]
        only_right = [
            each.name for each in self._right.columns if each.name not in used_right and each.name not in skipped
        ]
        case_only = [(a, b) for a in only_left for b in only_right if a.casefold() == b.casefold()]
        return SchemaNotes(tuple(only_left), tuple(only_right), tuple(case_only), compared_as)


def _judged_kind(left: Column, right: Column, declared: str | None, rule: Rule) -> tuple[Kind, bool]:
    """The kind that two columns are compared as under a rule, and whether both deliver it natively."""
    if declared is None:
        kind, native = common_kind(left, right)
    else:
        kind, native = kind_named(declared), False
        if left.kind.name == right.kind.name == kind.name and left.kind.aware == right.kind.aware == kind.aware:
            kind, native = common_kind(left, right)
    numeric = rule.absolute is not None or rule.relative is not None or rule.places is not None
    if numeric and (kind.name in _TEXTUAL or (kind.name == "float" and rule.places is not None)):
        return DECIMAL, False
    if numeric and kind.name not in _NUMERIC:
        raise ConfigError(
            f"column {left.name}: a numeric tolerance can't be used on {kind}.",
            hint=f"Drop it, or declare the column a number: --type {left.name}=decimal.",
        )
    if rule.seconds is not None and kind.name != "timestamp":
        raise ConfigError(
            f"column {left.name}: a tolerance in seconds can't be used on {kind}.",
            hint=f"Drop it, or declare the column a time: --type {left.name}=timestamp (instant, where it has a zone).",
        )
    return kind, native


def _compared_as(left: Column, right: Column, kind: Kind, rule: Rule) -> str:
    places = rule.places if rule.places is not None else kind.scale
    if kind.name == "decimal" and left.kind.name == right.kind.name and places is not None:
        how = f"compared at {places} places"
    else:
        how = f"compared as {kind}"
    return f"{left.name} {left.declared or left.kind} ↔ {right.name} {right.declared or right.kind}: {how}"


def _column(side: Description, name: str) -> Column:
    found = side.column(name)
    if found is None:
        hint = did_you_mean(name, [each.name for each in side.columns], "Columns")
        raise SchemaError(f"{side.label} has no column {name}.", hint=hint)
    return found
