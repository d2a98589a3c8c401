"""Signatures: who may send, and what any change of a request means."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import hmac

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from standardwebhooks import Webhook

from trueup.errors import ConfigError, EventRefused
from trueup.events.signature import STYLES, Style, key_of, sign, verify

NOW_S = 1_790_000_000
NOW_US = NOW_S * 1_000_000
BODY = b'{"id":"evt_9", "amount":10.0}'
TIMED = Style("X-Signature", prefix="sha256=", signed="{timestamp}.{body}", timestamp="X-Timestamp")


def refused(style: Style, secrets: list[str], body: bytes, headers: dict[str, str], now_us: int = NOW_US) -> str | None:
    """Why, or None where it was accepted."""
    try:
        verify(style, [key_of(style, each, "test") for each in secrets], body, headers, now_us)
    except EventRefused as caught:
        error = caught
    else:
        return None
    assert (error.status, error.authentic) == (401, False)
    assert not any(secret in str(error) for secret in secrets)
    return error.message


def mac(secret: str, message: bytes) -> str:
    return hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()


def timed(at_s: int = NOW_S, body: bytes = BODY) -> dict[str, str]:
    return {
        "x-timestamp": str(at_s),
        "x-signature": f"sha256={mac('whsec_demo', f'{at_s}.'.encode() + body)}",
    }


def signed(name: str, body: bytes, secret: str, at_s: int = NOW_S) -> dict[str, str]:
    """Headers as the senders make them, by their documentation and not by our code."""
    if name == "standard":
        text = Webhook(secret).sign("msg_1", dt.datetime.fromtimestamp(at_s, dt.UTC), body.decode())
        return {"webhook-id": "msg_1", "webhook-timestamp": str(at_s), "webhook-signature": text}
    if name == "github":
        return {"x-hub-signature-256": f"sha256={mac(secret, body)}", "x-github-delivery": "d-1"}
    if name == "stripe":
        return {"stripe-signature": f"t={at_s},v1={mac(secret, f'{at_s}.'.encode() + body)},v0={'0' * 64}"}
    digest = hmac.new(secret.encode(), body, hashlib.sha256).digest()
    return {"x-shopify-hmac-sha256": base64.b64encode(digest).decode()}


def secret_for(name: str, seed: str = "one") -> str:
    return "whsec_" + base64.b64encode(seed.encode() * 8).decode() if name == "standard" else f"secret {seed}"


# Each style


def test_github_documents_this_example() -> None:
    headers = {"x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}
    assert refused(STYLES["github"], ["It's a Secret to Everybody"], b"Hello, World!", headers) is None


@pytest.mark.parametrize("name", STYLES)
def test_what_the_sender_signed_is_accepted(name: str) -> None:
    assert refused(STYLES[name], [secret_for(name)], BODY, signed(name, BODY, secret_for(name))) is None


@pytest.mark.parametrize("name", STYLES)
def test_one_changed_byte_is_refused(name: str) -> None:
    changed = BODY.replace(b"10.0", b"10.1")
    assert refused(STYLES[name], [secret_for(name)], changed, signed(name, BODY, secret_for(name)))


@pytest.mark.parametrize("name", STYLES)
def test_another_secret_is_refused(name: str) -> None:
    assert refused(STYLES[name], [secret_for(name, "two")], BODY, signed(name, BODY, secret_for(name)))


@pytest.mark.parametrize("name", STYLES)
def test_while_a_secret_is_changed_both_are_taken(name: str) -> None:
    secrets = [secret_for(name, "new"), secret_for(name, "old")]
    for secret in secrets:
        assert refused(STYLES[name], secrets, BODY, signed(name, BODY, secret)) is None


@pytest.mark.parametrize("name", STYLES)
def test_every_header_that_is_needed_is_missed(name: str) -> None:
    headers = signed(name, BODY, secret_for(name))
    for gone in set(headers) - {"x-github-delivery"}:
        left = {header: value for header, value in headers.items() if header != gone}
        assert gone in str(refused(STYLES[name], [secret_for(name)], BODY, left))


@pytest.mark.parametrize("name", ["standard", "stripe"])
@pytest.mark.parametrize(("off_s", "taken"), [(0, True), (299, True), (301, False), (-299, True), (-301, False)])
def test_a_time_outside_the_window_is_refused(name: str, off_s: int, taken: bool) -> None:
    headers = signed(name, BODY, secret_for(name), NOW_S - off_s)
    assert (refused(STYLES[name], [secret_for(name)], BODY, headers) is None) == taken


def test_a_sender_that_signs_with_two_secrets_is_known_by_either() -> None:
    one, two = (signed("standard", BODY, secret_for("standard", seed)) for seed in ("one", "two"))
    both = one | {"webhook-signature": f"v1a,xyz {two['webhook-signature']} {one['webhook-signature']}"}
    for seed in ("one", "two"):
        assert refused(STYLES["standard"], [secret_for("standard", seed)], BODY, both) is None


def test_a_stripe_header_with_two_times_is_refused() -> None:
    header = signed("stripe", BODY, "secret")["stripe-signature"]
    assert refused(STYLES["stripe"], ["secret"], BODY, {"stripe-signature": f"t={NOW_S},{header}"})


# Cases


def test_C106_the_raw_bytes_are_checked_not_what_they_mean() -> None:
    style = Style("X-Signature")
    right = mac("whsec_demo", BODY)
    assert right.startswith("824839fbb3d8ecce")
    assert refused(style, ["whsec_demo"], BODY, {"x-signature": right}) is None
    again = b'{"id":"evt_9","amount":10.0}'
    assert mac("whsec_demo", again).startswith("7d1b079003ce97eb")
    assert refused(style, ["whsec_demo"], again, {"x-signature": right})
    assert refused(style, ["whsec_other"], BODY, {"x-signature": right})
    assert refused(style, ["whsec_demo"], BODY, {})
    for wrong in (right[:-2], right + "00", "", "zz", "é", right[:-1] + ("0" if right[-1] != "0" else "1")):
        assert refused(style, ["whsec_demo"], BODY, {"x-signature": wrong})


def test_C109_the_time_is_required_and_signed() -> None:
    headers = timed()
    ten_minutes_later = NOW_US + 600_000_000
    assert refused(TIMED, ["whsec_demo"], BODY, headers) is None
    assert "600 s in the past" in str(refused(TIMED, ["whsec_demo"], BODY, headers, ten_minutes_later))
    without = {"x-signature": headers["x-signature"]}
    assert "x-timestamp is missing" in str(refused(TIMED, ["whsec_demo"], BODY, without, ten_minutes_later))
    renewed = headers | {"x-timestamp": str(NOW_S + 600)}
    assert "fits" in str(refused(TIMED, ["whsec_demo"], BODY, renewed, ten_minutes_later))


# Laws


@settings(deadline=None)
@given(st.binary(max_size=200), st.text(max_size=40), st.text(max_size=40))
def test_no_header_gets_in_by_chance_or_breaks_the_check(body: bytes, signature: str, time: str) -> None:
    for style in (*STYLES.values(), TIMED):
        needed = filter(None, (style.header, style.timestamp, style.id))
        headers = dict.fromkeys(needed, time) | {style.header: signature}
        assert refused(style, ["c2VjcmV0"], body, headers) is not None


@settings(deadline=None)
@given(st.binary(max_size=500), st.integers(-400, 400))
def test_a_signed_body_is_accepted_exactly_within_the_window(body: bytes, off_s: int) -> None:
    headers = timed(NOW_S + off_s, body)
    assert (refused(TIMED, ["whsec_demo"], body, headers) is None) == (abs(off_s) <= 300)


# Declarations


@pytest.mark.parametrize(
    "options",
    [
        {"signed": "{body}", "timestamp": "X-Timestamp"},
        {"signed": "{timestamp}.{body}"},
        {"signed": "{id}.{body}"},
        {"signed": "{timestamp}", "timestamp": "X-Timestamp"},
        {"signed": "{body}{secret}"},
        {"signed": "{body}{body}"},
    ],
)
def test_a_time_or_id_that_is_read_but_not_signed_is_refused_at_start(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="does not hold exactly"):
        Style("X-Signature", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("secret", ["whsec_", "", "whsec_%%%", "whsec_é"])
def test_a_secret_that_is_none_is_refused_at_start(secret: str) -> None:
    with pytest.raises(ConfigError) as caught:
        key_of(STYLES["standard"], secret, "source shop")
    assert "source shop" in str(caught.value)
    assert secret in ("", "whsec_") or secret not in str(caught.value)


def test_a_secret_may_lack_its_padding() -> None:
    assert key_of(STYLES["standard"], "whsec_YWJjZA", "test") == b"abcd"


# The sender's half


SIGNED_SECRETS = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "b2xkIHNlY3JldA=="]


@given(st.binary(max_size=200), st.sampled_from([*sorted(STYLES), "timed"]), st.sampled_from(SIGNED_SECRETS))
def test_what_we_sign_we_accept_and_nothing_else(body: bytes, name: str, secret: str) -> None:
    style = STYLES.get(name, TIMED)
    headers = sign(style, [key_of(style, secret, "test")], body, delivery="msg_1", now_us=NOW_US)
    assert refused(style, [secret], body, headers) is None
    assert refused(style, [secret], body + b" ", headers) is not None
    assert refused(style, ["c29tZWJvZHkgZWxzZQ=="], body, headers) is not None
    if style.timestamp is not None:
        assert refused(style, [secret], body, headers, NOW_US + 301_000_000) is not None


@pytest.mark.parametrize("secret", SIGNED_SECRETS)
def test_we_sign_as_the_library_of_standard_webhooks_does(secret: str) -> None:
    style = STYLES["standard"]
    keys = [key_of(style, each, "test") for each in SIGNED_SECRETS]
    headers = sign(style, keys, BODY, delivery="msg_1", now_us=NOW_US)
    assert signed("standard", BODY, secret)["webhook-signature"] in headers["webhook-signature"].split()
    assert (headers["webhook-id"], headers["webhook-timestamp"]) == ("msg_1", str(NOW_S))


def test_a_style_with_room_for_one_signature_takes_one_secret() -> None:
    with pytest.raises(ConfigError, match="room for one signature"):
        sign(STYLES["github"], [b"a", b"b"], BODY, delivery="d", now_us=NOW_US)
