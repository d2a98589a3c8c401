"""The declaration of a handler that is a URL; `trueup.integrations.url_handler` does the work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from trueup.environment import expand
from trueup.errors import ConfigError
from trueup.events.signature import STYLES, key_of

if TYPE_CHECKING:
    from trueup.integrations.url_handler import UrlHandler
    from trueup.pair import Pair
    from trueup.ports import Clock

# When a call starts, what is known of the lease may be a sixth of it old.
LEASE_SHARE: Final = 0.75
STYLE: Final = STYLES["standard"]


@dataclass(frozen=True)
class Url:
    """A handler that is a URL: a program in any language that takes signed changes.

    Given where a function would be: `pair.on_change(Url(…))`, `pair.on("paid", batch=100)(Url(…))`.

    url, secrets, headers: texts in which `${VARIABLE}` stands for a variable of the environment. secrets: in base64,
    with or without `whsec_`; several while one is being changed, and each signs. headers: what a gateway in between
    wants to see. timeout_s: for each wait of a call; it has to fit into the pair's lease.

    ConfigError where something does not fit.
    """

    url: str = field(repr=False)
    secrets: Sequence[str] = field(repr=False)
    timeout_s: float = 10.0
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "address", expand(self.url, "the handler's url"))
        set_(self, "_host", _host(self.address))
        if not self.secrets or isinstance(self.secrets, str):
            raise ConfigError(f"{self.who} has no list of secrets.", hint='Give secrets=["${VARIABLE}"].')
        if self.timeout_s <= 0:
            raise ConfigError(f"{self.who}: timeout_s is not positive.", hint="Give it in seconds.")
        set_(self, "keys", [key_of(STYLE, expand(each, self.who), self.who) for each in self.secrets])
        sent = {name: expand(value, f"{self.who}, header {name}") for name, value in self.headers.items()}
        set_(self, "sent", sent)

    # With the variables put in.
    address: str = field(init=False, repr=False)
    _host: str = field(init=False, repr=False)
    keys: list[bytes] = field(init=False, repr=False)
    sent: dict[str, str] = field(init=False, repr=False)

    @property
    def who(self) -> str:
        """For messages: the host, because the rest of an address may hold a token."""
        return f"the handler at {self._host}"

    def handler(self, pair: Pair, clock: Clock) -> UrlHandler:
        """The handler of this pair; ConfigError where its calls might outlive the right to a record."""
        longest_s = pair.lease_us * LEASE_SHARE / 1e6
        if self.timeout_s > longest_s:
            raise ConfigError(
                f"pair {pair.name}: {self.who} may take {self.timeout_s:g} s, and the lease allows {longest_s:g} s.",
                hint="Lower timeout_s, or raise the pair's lease.",
            )
        try:
            from trueup.integrations.url_handler import UrlHandler  # noqa: PLC0415  loaded where one is used
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"{error.name} is not installed.", hint="Install it: pip install 'trueup[http]'"
            ) from None
        return UrlHandler(pair, self, clock)


def _host(address: str) -> str:
    """Host of an HTTP address; ConfigError where it is none, or holds a password."""
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        parts, host = urlsplit(""), ""
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError("the handler's url is no HTTP address.", hint="For example https://hooks.example/orders.")
    if parts.username is not None or parts.password is not None:
        raise ConfigError(
            f"the handler at {host}: its url holds a user or password.", hint="Give headers={'Authorization': …}."
        )
    return host
