"""A source of webhooks: who may send, how large, and which records a body is about."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

from trueup.environment import expand
from trueup.errors import ConfigError, EventRefused, TrueupError, did_you_mean
from trueup.events.mapping import Mapped, mapped
from trueup.events.signature import STYLES, WINDOW_US, Style, key_of, verify
from trueup.model.canonical import parse_json
from trueup.model.duration import duration_us
from trueup.model.event import Event
from trueup.model.names import definition_of, matching, of_client

__all__ = ["SIZE_MAX", "Delivery", "Event", "Route", "Source"]

SIZE_MAX: Final = 1 << 20
_DELIVERY_CHARACTERS_MAX: Final = 200
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*(?:@[\w.-]+)?\Z", re.ASCII)
_PRINTABLE = re.compile(r"[!-~]+\Z")

# route(event) or route(event, headers), headers by lower-case name. Nothing (None) means: not for us.
Route = Callable[..., Event | Iterable[Event] | None]


@dataclass(frozen=True, slots=True)
class Delivery:
    """What one request asks for. id: unique for the delivery, whatever the attempt; None where it has none."""

    source: str
    id: str | None
    events: tuple[Event, ...]


@dataclass(frozen=True)
class Source:
    """One sender of webhooks, known by its signature.

    style: one of `STYLES` by name, a `Style`, or its members. secrets: texts, or `${VARIABLE}`; several while one
    is being changed.
    route: from a parsed body to events. Numbers in it are exact: int or Decimal. Whatever exception a route
    raises means that it can't make sense of the body; the body is then kept as a dead letter.
    size_max: bytes of a body. window: how old, or how far in the future, a signed time may be.
    pairs: the pairs it may be about, as names or patterns such as `orders@*`; any where empty.
    ConfigError where something does not fit.
    """

    name: str
    style: str | Style | Mapping[str, Any]
    secrets: Sequence[str] = field(repr=False)
    route: Route
    size_max: int = SIZE_MAX
    window: str | float = WINDOW_US / 1_000_000
    pairs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not _NAME.match(self.name):
            raise ConfigError(
                f"source {self.name!r} can't stand in a URL.",
                hint="Use a-z, 0-9, - and _; and one @ before the name of a client.",
            )
        if not self.secrets or isinstance(self.secrets, str):
            raise ConfigError(f"source {self.name} has no list of secrets.", hint='Give secrets=["${VARIABLE}"].')
        if self.size_max <= 0:
            raise ConfigError(f"source {self.name}: size_max is not positive.", hint="Give it in bytes.")
        style = _style(self.name, self.style)
        keys = [key_of(style, expand(each, f"source {self.name}"), f"source {self.name}") for each in self.secrets]
        set_ = object.__setattr__
        set_(self, "_style", style)
        set_(self, "_keys", keys)
        set_(self, "_window_us", duration_us(self.window, f"source {self.name}, window"))
        set_(self, "_with_headers", _takes_headers(self.route))

    _style: Style = field(init=False, repr=False)
    _keys: list[bytes] = field(init=False, repr=False)
    _window_us: int = field(init=False, repr=False)
    _with_headers: bool = field(init=False, repr=False)

    @classmethod
    def from_options(cls, name: str, options: Mapping[str, Any], route: Route | None = None) -> Source:
        """A source as `[source.NAME]` of a trueup.toml tells it: the options of `Source`, and `events`.

        events: tables as `trueup.events.mapping.Mapped` takes them. route: a function in place of `events`.
        """
        chosen = dict(options)
        events = [_mapped(name, at, each) for at, each in enumerate(chosen.pop("events", ()))]
        if (route is None) == (not events):
            raise ConfigError(
                f"source {name} needs either events or a route.",
                hint=f'Write [[source.{name}.events]] with pair and values, or route = "module:function".',
            )
        _known(f"source {name}", chosen, [each.name for each in fields(cls) if each.init and each.name != "name"])
        chosen.setdefault("pairs", [each.pair if each.client is None else of_client(each.pair, "*") for each in events])
        chosen["pairs"] = tuple(dict.fromkeys(chosen["pairs"]))
        if "style" not in chosen or "secrets" not in chosen:
            raise ConfigError(f"source {name} lacks style or secrets.", hint=f"Styles: {', '.join(STYLES)}.")
        return cls(name, route=route or mapped(events), **chosen)

    def read(self, body: bytes, headers: Mapping[str, str], now_us: int) -> Delivery:
        """What an authentic body asks for; EventRefused where it is not authentic or makes no sense.

        headers: by lower-case name. The signature is checked over these very bytes, before anything else.
        """
        verify(self._style, self._keys, body, headers, now_us, self._window_us)
        return self.understood(body, headers)

    def understood(self, body: bytes, headers: Mapping[str, str]) -> Delivery:
        """What a body asks for whose sender is known; EventRefused where it makes no sense."""
        try:
            event = parse_json(body)
        except (ValueError, ArithmeticError, RecursionError):
            raise EventRefused(
                f"source {self.name}: the body is not JSON.", status=400, authentic=True,
                hint="Let the sender use application/json in UTF-8.",
            ) from None  # fmt: skip
        if not isinstance(event, dict | list):
            raise EventRefused(f"source {self.name}: the body is no JSON object.", status=400, authentic=True)
        return Delivery(self.name, self.delivery_id(headers, event), self._events(event, headers))

    def _events(self, event: Any, headers: Mapping[str, str]) -> tuple[Event, ...]:
        try:
            found = self.route(event, headers) if self._with_headers else self.route(event)
            events = () if found is None else (found,) if isinstance(found, Event) else tuple(found)
        except EventRefused:
            raise
        except TrueupError as error:
            raise EventRefused(error.message, status=422, authentic=True, hint=error.hint) from error
        except Exception as error:
            # The message of a foreign error may hold values of the record; its type and place do not.
            raise EventRefused(
                f"source {self.name}: the route failed with {type(error).__name__}{_place(error)}.",
                status=422, authentic=True, hint="Mend the route; the body is kept.",
            ) from error  # fmt: skip
        for each in events:
            if not isinstance(each, Event):
                raise EventRefused(
                    f"source {self.name}: the route gave {type(each).__name__}, not an event.", status=422,
                    authentic=True, hint="Return what pair.event(values) gives.",
                )  # fmt: skip
            if self.pairs and not any(matching(pattern, [each.pair]) for pattern in self.pairs):
                raise EventRefused(
                    f"source {self.name}: it may not be about pair {definition_of(each.pair)}.",
                    status=422, authentic=True,
                )  # fmt: skip
        return events

    @property
    def signature_header(self) -> str:
        """The lower-case name of the header that holds the signature."""
        return self._style.header

    def delivery_id(self, headers: Mapping[str, str], event: Any = None) -> str | None:
        """The delivery's id, from its header or its parsed body; a hash of one that is long or not printable."""
        style = self._style
        stated: object = headers.get(style.delivery) if style.delivery else None
        if style.delivery_field and isinstance(event, dict):
            stated = event.get(style.delivery_field)
        if not isinstance(stated, str | int) or isinstance(stated, bool) or stated == "":
            return None
        text = str(stated)
        if len(text) > _DELIVERY_CHARACTERS_MAX or not _PRINTABLE.match(text):
            return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
        return text


def _style(name: str, style: str | Style | Mapping[str, Any]) -> Style:
    if isinstance(style, Style):
        return style
    if isinstance(style, Mapping):
        _known(f"source {name}, style", style, [each.name for each in fields(Style)])
        if "header" not in style:
            raise ConfigError(f"source {name}, style: it names no header.", hint="Where does the signature stand?")
        return Style(**style)
    if style not in STYLES:
        raise ConfigError(f"source {name}: there is no style {style!r}.", hint=did_you_mean(style, STYLES, "Styles"))
    return STYLES[style]


def _mapped(name: str, at: int, options: Mapping[str, Any]) -> Mapped:
    what = f"source {name}, events[{at}]"
    _known(what, options, [each.name for each in fields(Mapped)])
    if "pair" not in options or "values" not in options:
        raise ConfigError(f"{what} lacks pair or values.", hint='Write pair = "…" and values = { id = "…" }.')
    return Mapped(**options)


def _known(what: str, options: Mapping[str, Any], known: Sequence[str]) -> None:
    for each in options:
        if each not in known:
            raise ConfigError(f"{what} has no option {each}.", hint=did_you_mean(each, known, "Options"))


def _takes_headers(route: Route) -> bool:
    try:
        inspect.signature(route).bind({}, {})
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def _place(error: BaseException) -> str:
    """Where in the route an exception came from: file and line."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f" in {trace.tb_frame.f_code.co_name}, line {trace.tb_lineno}"
