"""A POST to somebody who is told something: short, without redirects, and without a word about the address."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from trueup.errors import ConfigError, SideError, Unreachable


class _Stay(urllib.request.HTTPRedirectHandler):
    """What was signed for one address is not taken to another."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_Stay)


def host_of(address: str, what: str) -> str:
    """The host of an HTTP address; ConfigError names `what` where it is none, or holds a password."""
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        parts, host = urlsplit(""), ""
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError(f"{what} is no HTTP address.", hint="For example https://watch.example/ping/abc.")
    if parts.username is not None or parts.password is not None:
        raise ConfigError(f"{what} holds a user or password.", hint="Give a header, or an address with a token.")
    return host


def post(who: str, address: str, body: bytes, headers: Mapping[str, str], timeout_s: float) -> None:
    """Returns once it was accepted (2xx). Raises Unreachable where there was no answer, SideError for another one.

    who: for messages. address: checked by `host_of`. timeout_s: for each wait.
    """
    request = urllib.request.Request(address, body, dict(headers), method="POST")  # noqa: S310  the scheme is checked
    try:
        with _OPENER.open(request, timeout=timeout_s) as answer:
            answer.read(1 << 16)
    except urllib.error.HTTPError as error:
        error.close()
        raise SideError(f"{who} answered {error.code}.", hint="Check its address, and what it takes.") from None
    except (OSError, http.client.HTTPException) as error:
        cause = getattr(error, "reason", error)
        kind = type(cause if isinstance(cause, BaseException) else error).__name__
        raise Unreachable(f"{who} does not answer ({kind}).", hint="It is tried again later.") from None
