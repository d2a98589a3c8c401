"""How a side says who it is: basic, bearer, OAuth 2 client credentials (RFC 6749, 4.4)."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import httpx2

from trueup.environment import expand
from trueup.errors import Unreachable
from trueup.model.canonical import parse_json


@dataclass(frozen=True, slots=True)
class Basic:
    """User name and password. `${NAME}` is a variable of the environment here and below."""

    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Bearer:
    """A token that does not change."""

    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class OAuth2ClientCredentials:
    """A token that is fetched with a client's id and secret, before the old one runs out and when it is refused.

    in_body: whether the token service wants id and secret in the body; else they go into a basic header.
    """

    token_url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str = ""
    in_body: bool = False


Auth = Basic | Bearer | OAuth2ClientCredentials


class Credentials(Protocol):
    """What calls ask of a declaration above."""

    @property
    def advice(self) -> str:
        """What a person does where the system refuses the caller."""

    def headers(self, client: httpx2.Client) -> Mapping[str, str]:
        """The headers that say who calls; may fetch a token."""

    def refused(self, headers: Mapping[str, str]) -> bool:
        """Told that a call with these headers was refused; answers whether new ones may help."""


def credentials_of(auth: Auth | None) -> Credentials:
    """Resolves variables; ConfigError where one is unset."""
    match auth:
        case None:
            return _Fixed({}, "Declare auth, such as Bearer('${TOKEN}'), or ask for access.")
        case Basic(user, password):
            pair = f"{expand(user, 'the user')}:{expand(password, 'the password')}"
            return _Fixed(_basic(pair), "Renew the user's password, or ask for access.")
        case Bearer(token):
            value = f"Bearer {expand(token, 'the token')}"
            return _Fixed({"Authorization": value}, "Renew the token, or ask for access.")
        case OAuth2ClientCredentials():
            return Tokens(auth)


def _basic(pair: str) -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


@dataclass(frozen=True, slots=True)
class _Fixed:
    sent: Mapping[str, str] = field(repr=False)
    advice: str

    def headers(self, client: httpx2.Client) -> Mapping[str, str]:
        return self.sent

    def refused(self, headers: Mapping[str, str]) -> bool:
        return False


class Tokens:
    """Keeps one token for all threads and renews it at a tenth, at most a minute, before its end."""

    def __init__(self, auth: OAuth2ClientCredentials, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.advice = "Ask whether the client still has the right and the scope, or renew its secret."
        self._url = httpx2.URL(expand(auth.token_url, "the token URL"))
        self._id = expand(auth.client_id, "the client id")
        self._secret = expand(auth.client_secret, "the client secret")
        self._auth, self._monotonic = auth, monotonic
        self._lock = threading.Lock()
        self._headers: dict[str, str] | None = None
        self._renew_at = 0.0

    def headers(self, client: httpx2.Client) -> Mapping[str, str]:
        """The header with a token that is valid for a while; raises Unreachable where none is given."""
        with self._lock:
            if self._headers is None or self._monotonic() >= self._renew_at:
                token, lifetime_s = self._fetched(client)
                self._headers = {"Authorization": f"Bearer {token}"}
                self._renew_at = self._monotonic() + lifetime_s - min(60.0, lifetime_s / 10)
            return self._headers

    def refused(self, headers: Mapping[str, str]) -> bool:
        """Forgets the token that was refused, unless another thread has renewed it since."""
        with self._lock:
            if self._headers is headers:
                self._headers = None
        return True

    def _fetched(self, client: httpx2.Client) -> tuple[str, float]:
        form = {"grant_type": "client_credentials"}
        form |= {"scope": self._auth.scope} if self._auth.scope else {}
        form |= {"client_id": self._id, "client_secret": self._secret} if self._auth.in_body else {}
        headers = {} if self._auth.in_body else _basic(f"{_form(self._id)}:{_form(self._secret)}")
        place = f"the token service at {self._url.host}"
        try:
            response = client.post(self._url, data=form, headers={"Accept": "application/json", **headers})
        except httpx2.RequestError as error:
            raise Unreachable(
                f"{place} does not answer ({type(error).__name__}).", hint="Is the address right, and is it up?"
            ) from None
        if response.status_code != 200:
            raise Unreachable(
                f"{place} gives no token ({response.status_code}).", hint="Renew the client's id and secret."
            )
        return _token(response.content, place)


def _form(text: str) -> str:
    """RFC 6749 has id and secret form-encoded before they go into the basic header."""
    return str(httpx2.QueryParams({"": text}))[1:]


def _token(body: bytes, place: str) -> tuple[str, float]:
    try:
        said: Any = parse_json(body)
        token, lifetime_s = said["access_token"], float(said.get("expires_in") or 3600)
    except (ValueError, TypeError, KeyError, AttributeError):
        token, lifetime_s = None, 0.0
    if not isinstance(token, str) or not token:
        raise Unreachable(f"{place} answered without an access token.", hint="Is token_url the right address?")
    return token, lifetime_s
