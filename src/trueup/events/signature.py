"""Who sent this? Signatures over the raw bytes of a body.

A style says where a sender puts signature and time, and what text it signs. Known styles:
Standard Webhooks (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md),
GitHub (https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries),
Stripe (https://docs.stripe.com/webhooks/signature), and
Shopify (https://shopify.dev/docs/apps/build/webhooks/subscribe/https). All are HMAC (RFC 2104).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from trueup.errors import ConfigError, EventRefused

WINDOW_US: Final = 300_000_000
# A header with more candidates than any rotation needs is not worth comparing.
_CANDIDATES_MAX: Final = 16
_SECONDS = re.compile(r"\d{1,12}\Z", re.ASCII)
_HOLE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Style:
    """How a sender signs.

    header: where the signature stands. prefix: what stands before it. separator: between several signatures.
    signed: the text under the signature; `{body}` is the raw body, `{timestamp}` and `{id}` are headers' values.
    timestamp: the header with the time of sending in seconds since 1970. timestamp_prefix: where the time shares
    the header with the signature, what stands before it. id: the header that is signed as `{id}`.
    key_form: `text`, or `base64` after an optional `whsec_`.
    delivery, delivery_field: the header, or the member of the body, that names the delivery.

    ConfigError where a time is read but not signed, or signed but not read: it would prove nothing.
    """

    header: str
    prefix: str = ""
    separator: str | None = None
    encoding: Literal["hex", "base64"] = "hex"
    algorithm: Literal["sha256", "sha512"] = "sha256"
    signed: str = "{body}"
    timestamp: str | None = None
    timestamp_prefix: str = ""
    id: str | None = None
    key_form: Literal["text", "base64"] = "text"
    delivery: str | None = None
    delivery_field: str | None = None

    def __post_init__(self) -> None:
        for name in ("header", "timestamp", "id", "delivery"):
            if (header := getattr(self, name)) is not None:
                object.__setattr__(self, name, header.lower())
        holes = _HOLE.findall(self.signed)
        known = {"body"} | {name for name in ("timestamp", "id") if getattr(self, name)}
        if sorted(holes) != sorted(known):
            needed = " and ".join(f"{{{name}}}" for name in sorted(known))
            raise ConfigError(
                f"signature in {self.header}: signed = {self.signed!r} does not hold exactly {needed}.",
                hint="A time or id that is read must be signed, and the other way round.",
            )


STYLES: Final[Mapping[str, Style]] = {
    "standard": Style(
        "webhook-signature", prefix="v1,", separator=" ", encoding="base64", signed="{id}.{timestamp}.{body}",
        timestamp="webhook-timestamp", id="webhook-id", key_form="base64", delivery="webhook-id",
    ),
    "github": Style("x-hub-signature-256", prefix="sha256=", delivery="x-github-delivery"),
    "stripe": Style(
        "stripe-signature", prefix="v1=", separator=",", signed="{timestamp}.{body}",
        timestamp="stripe-signature", timestamp_prefix="t=", delivery_field="id",
    ),
    "shopify": Style("x-shopify-hmac-sha256", encoding="base64", delivery="x-shopify-webhook-id"),
}  # fmt: skip


def key_of(style: Style, secret: str, what: str) -> bytes:
    """The bytes with which a secret signs; ConfigError names `what` where it can't be a secret."""
    key = secret.encode()
    if style.key_form == "base64":
        text = secret.removeprefix("whsec_")
        try:
            # Senders leave out the padding; what is too much of it does no harm.
            key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
        except (binascii.Error, ValueError):
            raise ConfigError(
                f"{what}: the secret is not base64.", hint="Copy it whole, with its whsec_ where it has one."
            ) from None
    if not key:
        raise ConfigError(f"{what}: the secret is empty.", hint="An empty secret would let anybody in.")
    return key


def verify(
    style: Style,
    keys: Sequence[bytes],
    body: bytes,
    headers: Mapping[str, str],
    now_us: int,
    window_us: int = WINDOW_US,
) -> None:
    """Returns where one of the keys signed exactly these bytes, at a time within the window; else EventRefused.

    headers: by lower-case name. keys: several while a secret is being changed.
    """
    parts = _parts(style, headers)
    candidates = [
        found
        for part in parts[: _CANDIDATES_MAX + 1]
        if part.startswith(style.prefix) and (found := _decoded(style, part.removeprefix(style.prefix))) is not None
    ]
    if not candidates:
        raise EventRefused(f"The header {style.header} holds no signature of the form {_form(style)}.", status=401)
    stated = {"timestamp": _timestamp(style, headers, now_us, window_us), "id": _stated(style.id, headers)}
    message = _message(style, body, stated)
    # Every pair is compared, each in constant time: how long it took tells nothing.
    equal = [
        hmac.compare_digest(hmac.digest(key, message, style.algorithm), candidate)
        for key in keys
        for candidate in candidates
    ]
    if not any(equal):
        raise EventRefused(f"No signature in {style.header} fits the body.", status=401)


def sign(style: Style, keys: Sequence[bytes], body: bytes, *, delivery: str, now_us: int) -> dict[str, str]:
    """The headers, by lower-case name, with which `verify` accepts these bytes: the sender's half.

    keys: several while a secret is being changed; ConfigError where the style has no room for more than one.
    delivery: names the delivery, the same for every attempt, where the style has a header for it.
    """
    if len(keys) > 1 and style.separator is None:
        raise ConfigError(f"{style.header} has room for one signature.", hint="Sign with one secret at a time.")
    stated = {"timestamp": str(now_us // 1_000_000), "id": delivery}
    message = _message(style, body, stated)
    parts = [style.prefix + _encoded(style, hmac.digest(key, message, style.algorithm)) for key in keys]
    headers = {name: delivery for name in (style.id, style.delivery) if name is not None}
    if style.timestamp_prefix:
        parts.insert(0, style.timestamp_prefix + stated["timestamp"])
    elif style.timestamp is not None:
        headers[style.timestamp] = stated["timestamp"]
    return {**headers, style.header: (style.separator or "").join(parts)}


def _message(style: Style, body: bytes, stated: Mapping[str, str]) -> bytes:
    """The bytes under a signature. stated: time and id, as headers hold them."""
    return b"".join(
        # Latin-1 gives back the bytes of a header as they came.
        body if name == "body" else stated[name].encode("latin-1", "replace") if name else text.encode()
        for text, name in _pieces(style.signed)
    )


def _pieces(signed: str) -> list[tuple[str, str]]:
    """(literal text, "") and ("", name of a hole) in order."""
    return [("", part) if at % 2 else (part, "") for at, part in enumerate(_HOLE.split(signed))]


def _parts(style: Style, headers: Mapping[str, str]) -> list[str]:
    value = _stated(style.header, headers)
    return [part.strip() for part in value.split(style.separator)] if style.separator else [value.strip()]


def _stated(header: str | None, headers: Mapping[str, str]) -> str:
    if header is None:
        return ""
    value = headers.get(header, "")
    if not value:
        raise EventRefused(f"The header {header} is missing.", status=401)
    return value


def _timestamp(style: Style, headers: Mapping[str, str], now_us: int, window_us: int) -> str:
    """The time as stated; EventRefused where it is no time, or outside the window."""
    if style.timestamp is None:
        return ""
    if style.timestamp_prefix:
        times = [part for part in _parts(style, headers) if part.startswith(style.timestamp_prefix)]
        stated = times[0].removeprefix(style.timestamp_prefix) if len(times) == 1 else ""
    else:
        stated = _stated(style.timestamp, headers).strip()
    if not _SECONDS.match(stated):
        raise EventRefused(f"The header {style.timestamp} holds no time in seconds since 1970.", status=401)
    off_us = now_us - int(stated) * 1_000_000
    if abs(off_us) > window_us:
        off = f"{abs(off_us) // 1_000_000} s in the {'past' if off_us > 0 else 'future'}"
        raise EventRefused(f"The time in {style.timestamp} is {off}; {window_us // 1_000_000} s may be.", status=401)
    return stated


def _decoded(style: Style, text: str) -> bytes | None:
    """The signature's bytes, or None for what can't be one."""
    try:
        found = bytes.fromhex(text) if style.encoding == "hex" else base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return found if len(found) == hashlib.new(style.algorithm).digest_size else None


def _encoded(style: Style, mac: bytes) -> str:
    return mac.hex() if style.encoding == "hex" else base64.b64encode(mac).decode()


def _form(style: Style) -> str:
    return f"{style.prefix}<{style.algorithm} in {style.encoding}>"
