"""All that a trueup.toml and its clients declare, as one tree in which each part knows where it was written."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from trueup.config.clients import PLACEHOLDER, Client, Unfilled, clients_of, filled, merged
from trueup.config.source import Place, Source, has
from trueup.errors import ConfigError, did_you_mean
from trueup.model.names import of_client

FOR_EACH: Final = "for_each"
CLIENTS: Final = "clients"
KINDS: Final = ("system", "pair", "source")
_VARIABLE: Final = re.compile(r"\$\{([^${}]+)\}")
_SHELL_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OFF: Final = (False, "false")
_Tables = dict[str, dict[str, Any]]
# own(kind, name): the name by which a client's part finds another.
_Own = Callable[[str, Any], Any]


class Declared:
    """The tree of a file, in which a definition `for_each = "clients"` stands once for each client.

    `pair.orders` becomes `pair.orders@acme`, and likewise systems and senders of webhooks. What is instantiated for
    a client names its other parts without the client: `system = "erp"` is then `erp@acme`.
    ConfigError where a client, or what it declares otherwise, does not fit.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._made: dict[tuple[str, str], tuple[str, Client]] = {}
        self.tree = {name: value for name, value in source.tree.items() if name != CLIENTS}
        templates: _Tables = {}
        for kind in KINDS:
            if isinstance(known := self.tree.get(kind), dict):
                templates[kind] = {name: each for name, each in known.items() if _is_template(each)}
                self.tree[kind] = {name: each for name, each in known.items() if not _is_template(each)}
        clients = clients_of(source)
        for kind in KINDS:
            for name in templates.get(kind, {}) if not clients else ():
                hint = 'Declare some: [clients.NAME], or clients = "clients/*.toml".'
                raise ConfigError(source.said((kind, name, FOR_EACH), "there are no clients."), hint=hint)
        for client in clients:
            self._add(client, templates)

    # ── places ───────────────────────────────────────────────────────────────────────────────────────

    def has(self, place: Place) -> bool:
        """Whether anything is declared at this place of the tree."""
        return has(self.tree, place)

    def said(self, place: Place, problem: str) -> str:
        """A sentence about an option, with the file and line where it was written, and the client."""
        client, written = self._written(place)
        if client is None or client.has(written):
            return self._source.said(place, problem) if client is None else client.said(written, problem)
        return self._source.said(written, f"for client {client.name}, {problem}")

    def rank(self, place: Place) -> tuple[str, int]:
        """An order of places in which those of one file follow its lines; trueup.toml is the first."""
        client, written = self._written(place)
        if client is not None and client.has(written):
            document = client.document
            path = "" if document is self._source else str(document.path)
            return path, document.line_of((*client.place, *written))
        return "", self._source.line_of(written)

    def _written(self, place: Place) -> tuple[Client | None, Place]:
        """The client that a place of the tree is for, and the place where the definition has it."""
        if len(place) < 2 or (place[0], place[1]) not in self._made:
            return None, place
        definition, client = self._made[str(place[0]), str(place[1])]
        return client, (place[0], definition, *place[2:])

    # ── variables ────────────────────────────────────────────────────────────────────────────────────

    def substituted(self, value: Any, environment: Mapping[str, str], place: Place = ()) -> Any:
        """`value` with every ${NAME} replaced; ConfigError names the line of one that is not set."""
        if isinstance(value, dict):
            return {name: self.substituted(each, environment, (*place, name)) for name, each in value.items()}
        if isinstance(value, list):
            return [self.substituted(each, environment, (*place, at)) for at, each in enumerate(value)]
        if not isinstance(value, str):
            return value
        if found := PLACEHOLDER.search(value):
            problem = f"{found[0]} stands for nothing here."
            hint = f'It needs {FOR_EACH} = "{CLIENTS}" in the table, and can\'t stand in a value of a client.'
            raise ConfigError(self.said(place, problem), hint=hint)
        for name in _VARIABLE.findall(value):
            if name not in environment:
                problem = f"the variable {name} is not set."
                raise ConfigError(self.said(place, problem), hint=_how_to_set(name))
        return _VARIABLE.sub(lambda found: environment[found[1]], value)

    # ── clients ──────────────────────────────────────────────────────────────────────────────────────

    def _add(self, client: Client, templates: _Tables) -> None:
        """Everything of one client goes into the tree."""
        chosen = {kind: self._chosen(kind, client, templates) for kind in KINDS}
        off = {kind: templates.get(kind, {}).keys() - chosen[kind].keys() for kind in KINDS}

        def own(kind: str, name: Any) -> Any:
            if not isinstance(name, str):
                return name
            if name in off[kind]:
                raise _Off(kind, name)
            return of_client(name, client.name) if name in chosen[kind] else name

        for kind in KINDS:
            for name, options in chosen[kind].items():
                made = of_client(name, client.name)
                if made in self.tree.setdefault(kind, {}):
                    problem = f"there are two {kind}s {made}."
                    raise ConfigError(self._source.said((kind, made), problem), hint="Give one another name.")
                self._made[kind, made] = name, client
                whole = self._filled((kind, made), options, client)
                self.tree[kind][made] = {each: self._named((kind, made, each), whole[each], own) for each in whole}

    def _named(self, place: Place, value: Any, own: _Own) -> Any:
        """The value of an option, with the names of other parts as they are for the client."""
        try:
            return _renamed(str(place[0]), str(place[2]), value, own)
        except _Off as off:
            problem = f"{off.kind} {off.name} is switched off."
            raise ConfigError(self.said(place, problem), hint="Override this option for the client as well.") from None

    def _chosen(self, kind: str, client: Client, templates: _Tables) -> dict[str, dict[str, Any]]:
        """What there is of a kind for this client: the definitions, with its own options, but without those it leaves.

        A client may have a system of its own beside those that are defined for each.
        """
        known, own = templates.get(kind, {}), client.options.get(kind, {})
        if not isinstance(own, dict):
            hint = f"Write a table {kind}.NAME, with the options that differ."
            raise ConfigError(client.said((kind,), "this is no table."), hint=hint)
        common = self.tree.get(kind, {}) if kind == "system" else {}
        for name in own:
            if name not in known and kind != "system":
                hint = did_you_mean(name, list(known), f"Those with {FOR_EACH}")
                problem = f'there is no {kind} {name} with {FOR_EACH} = "{CLIENTS}".'
                raise ConfigError(client.said((kind, name), problem), hint=hint)
        found = {}
        for name in dict.fromkeys((*known, *own)):
            options, mine = known.get(name) or common.get(name) or {}, own.get(name, {})
            if isinstance(mine, dict):
                found[name] = {each: value for each, value in merged(options, mine).items() if each != FOR_EACH}
            elif mine not in _OFF or kind == "system":
                hint = f"Write a table of options{'' if kind == 'system' else ', or false to switch it off'}."
                raise ConfigError(client.said((kind, name), "this is no table."), hint=hint)
        return found

    def _filled(self, place: Place, options: Mapping[str, Any], client: Client) -> Any:
        try:
            return filled(options, client)
        except Unfilled as error:
            said = self.said((*place, *error.place), error.problem)
            name = PLACEHOLDER.search(error.problem)
            hint = "Give the client this value" + (f": {name[1]} = …" if name and "." not in name[1] else ".")
            raise ConfigError(said, hint=hint) from None


def _is_template(options: Any) -> bool:
    return isinstance(options, dict) and options.get(FOR_EACH) == CLIENTS


def _how_to_set(name: str) -> str:
    if _SHELL_NAME.fullmatch(name):
        return f"Set it first: export {name}=…"
    return 'A shell can\'t set it. Give the client a value such as token = "${TOKEN_1}", and write {client.token}.'


class _Off(LookupError):
    """Something is named that the client switched off."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(name)
        self.kind, self.name = kind, name


def _renamed(kind: str, option: str, value: Any, own: _Own) -> Any:
    """Names of other parts, where this option holds some, by `own`; what has the wrong shape is left to the model."""
    match kind, option, value:
        case "pair", "system", str():
            return own("system", value)
        case "pair", "authority" | "replica", {"system": system}:
            return {**value, "system": own("system", system)}
        case ("pair", "after", dict()):
            return {own("pair", name): columns for name, columns in value.items()}
        case ("pair", "after", str()) | ("source", "pairs", str()):
            return own("pair", value)
        case ("pair", "after", list()) | ("source", "pairs", list()):
            return [own("pair", name) for name in value]
        case "source", "events", list():
            return [_event(each, own) for each in value]
        case _:
            return value


def _event(event: Any, own: _Own) -> Any:
    """A mapping that finds its client in the body names the definition, not one pair."""
    if not isinstance(event, dict) or "pair" not in event or "client" in event:
        return event
    return {**event, "pair": own("pair", event["pair"])}
