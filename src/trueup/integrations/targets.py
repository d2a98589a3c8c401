"""Who can be told: a webhook of one's own, or one of the hundred services that Apprise knows."""

from __future__ import annotations

import json
import logging
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from trueup.environment import expand
from trueup.errors import ConfigError, SideError
from trueup.events.signature import STYLES, key_of, sign
from trueup.integrations.posting import host_of, post
from trueup.model.alert_text import Notice
from trueup.model.condition import Severity

STYLE: Final = STYLES["standard"]


@dataclass(frozen=True)
class Webhook:
    """Posts each message as JSON, signed as Standard Webhooks are where there are secrets.

    url, secrets, headers: texts in which `${VARIABLE}` stands for a variable of the environment. secrets: in base64,
    with or without `whsec_`; several while one is being changed. timeout_s: for each wait of a call.
    ConfigError where something does not fit.
    """

    url: str = field(repr=False)
    secrets: Sequence[str] = field(default=(), repr=False)
    timeout_s: float = 10.0
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    # With the variables put in.
    _address: str = field(init=False, repr=False)
    _keys: list[bytes] = field(init=False, repr=False)
    _sent: dict[str, str] = field(init=False, repr=False)
    _host: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "_address", expand(self.url, "the webhook's url"))
        set_(self, "_host", host_of(self._address, "the webhook's url"))
        if isinstance(self.secrets, str):
            raise ConfigError(f"{self.who}: secrets is no list.", hint='Give secrets=["${VARIABLE}"].')
        if self.timeout_s <= 0:
            raise ConfigError(f"{self.who}: timeout_s is not positive.", hint="Give it in seconds.")
        set_(self, "_keys", [key_of(STYLE, expand(each, self.who), self.who) for each in self.secrets])
        sent = {name: expand(value, f"{self.who}, header {name}") for name, value in self.headers.items()}
        set_(self, "_sent", sent)

    @property
    def who(self) -> str:
        """For messages: the host, because the rest of an address may hold a token."""
        return f"the webhook at {self._host}"

    def send(self, notice: Notice) -> None:
        """Posts it. The `webhook-id` is the same for every attempt."""
        self.post(notice.message.ident, notice.document)

    def post(self, ident: str, document: Mapping[str, Any]) -> None:
        """Posts a document. ident: the same for every attempt."""
        posted = json.dumps(document, ensure_ascii=False).encode()
        headers = {"content-type": "application/json", "webhook-id": ident, **self._sent}
        if self._keys:
            now_us = time.time_ns() // 1_000
            headers |= sign(STYLE, self._keys, posted, delivery=ident, now_us=now_us)
        post(self.who, self._address, posted, headers, self.timeout_s)

    def close(self) -> None:
        """Nothing stays open between messages."""


@dataclass(frozen=True)
class Apprise:
    """Hands each message to Apprise (https://github.com/caronc/apprise), which knows mail, chats and pagers.

    urls: one or several addresses as Apprise writes them, such as `mailtos://…`, `slack://…`, `ntfy://…`; texts in
    which `${VARIABLE}` stands for a variable of the environment.
    """

    urls: str | Sequence[str] = field(repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)
    _addresses: list[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        given = [self.urls] if isinstance(self.urls, str) else list(self.urls)
        addresses = [expand(each, "the target's apprise") for each in given]
        if not addresses or not all("://" in each for each in addresses):
            raise ConfigError("an address for Apprise is none.", hint="Write one such as mailtos://user:pass@host.")
        object.__setattr__(self, "_addresses", addresses)

    @property
    def who(self) -> str:
        """For messages: the services, because the rest of an address holds secrets."""
        return " and ".join(sorted({each.partition("://")[0] for each in self._addresses}))

    def send(self, notice: Notice) -> None:
        """Raises SideError where one of the addresses did not take it."""
        with self._lock, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it imports names that Python is about to drop, when it first needs them
            library = _apprise()
            told = library.Apprise()
            for address in self._addresses:
                if not told.add(address):
                    service = address.partition("://")[0]
                    raise SideError(
                        f"Apprise can't use the address for {service}.",
                        hint="See https://github.com/caronc/apprise/wiki for how it is written.",
                    )
            kinds = {Severity.CRITICAL: "failure", Severity.WARNING: "warning", None: "success"}
            kind = "info" if notice.message.test else kinds[notice.message.worst]
            if not told.notify(title=notice.title, body=notice.body, notify_type=kind):
                raise SideError(f"{self.who} did not take the message.", hint="Try it: trueup alerts test")

    def close(self) -> None:
        """Nothing stays open between messages."""


def _apprise() -> Any:
    try:
        import apprise  # noqa: PLC0415  loaded when something is told
    except ModuleNotFoundError as error:
        raise ConfigError(f"{error.name} is not installed.", hint="Install it: pip install 'trueup[alerts]'") from None
    # Its lines may hold whole addresses, and those hold tokens.
    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
    return apprise
