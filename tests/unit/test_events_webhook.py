"""Sources: from an authentic body to events."""

from __future__ import annotations

import hashlib
import hmac
import json
from decimal import Decimal
from typing import Any

import pytest

from trueup.errors import ConfigError, EventRefused
from trueup.events.mapping import Mapped, mapped
from trueup.events.signature import Style
from trueup.events.webhook import Event, Source

SECRET = "between us"
STYLE = Style("X-Signature", delivery="X-Delivery")


def source(route: Any, **options: Any) -> Source:
    return Source("shop", STYLE, [SECRET], route, **options)


def read(source: Source, body: object, **headers: str) -> Any:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    signature = hmac.new(SECRET.encode(), raw, hashlib.sha256).hexdigest()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return source.read(raw, {"x-signature": signature, **named}, 0)


def refusal(source: Source, body: object, **headers: str) -> EventRefused:
    with pytest.raises(EventRefused) as caught:
        read(source, body, **headers)
    return caught.value


def order(event: Any) -> Event:
    return Event("orders", {"id": event["id"]})


# Routes


def test_a_route_may_give_one_event_several_or_none() -> None:
    assert read(source(order), {"id": 1}).events == (Event("orders", {"id": 1}),)
    assert read(source(lambda event: [order(event)] * 2), {"id": 1}).events == (Event("orders", {"id": 1}),) * 2
    assert read(source(lambda event: None), {"id": 1}).events == ()
    assert read(source(lambda event: []), {"id": 1}).events == ()


def test_a_route_that_asks_for_headers_gets_them() -> None:
    by_header = source(lambda event, headers: Event(headers["x-topic"], event))
    assert read(by_header, {"id": 1}, x_topic="orders").events[0].pair == "orders"


def test_numbers_of_a_body_are_exact() -> None:
    [event] = read(source(lambda event: Event("orders", event)), b'{"id": 12345678901234567890, "fee": 0.10}').events
    assert event.values == {"id": 12345678901234567890, "fee": Decimal("0.10")}


def test_the_delivery_has_its_id_from_header_or_body() -> None:
    assert read(source(order), {"id": 1}, x_delivery="d-1").id == "d-1"
    assert read(source(order), {"id": 1}).id is None
    in_body = Source("shop", Style("X-Signature", delivery_field="id"), [SECRET], order)
    assert read(in_body, {"id": "evt_1"}).id == "evt_1"
    assert read(in_body, {"id": None}).id is None


@pytest.mark.parametrize("odd", ["x" * 201, "two words", "tab\there", "é"])
def test_an_odd_delivery_id_is_kept_as_its_hash(odd: str) -> None:
    assert read(source(order), {"id": 1}, x_delivery=odd).id == hashlib.sha256(odd.encode()).hexdigest()


@pytest.mark.parametrize(
    "body", [b"", b"{", b"nope", b'{"a": NaN}', b'{"a":1,"a":2}', b"\xff\xfe\xfa", b"[" * 100_000, b"1e999999999999999"]
)
def test_what_is_not_json_is_refused_and_worth_keeping(body: bytes) -> None:
    error = refusal(source(order), body)
    assert (error.status, error.authentic) == (400, True)


@pytest.mark.parametrize("body", [1, "text", None, True])
def test_json_that_is_no_object_is_refused(body: object) -> None:
    assert refusal(source(order), body).status == 400


def test_a_route_that_fails_tells_where_but_no_value() -> None:
    def route(event: Any) -> Event:
        return Event("orders", {"id": int(event["secret name"])})

    error = refusal(source(route), {"secret name": "a private value"})
    assert (error.status, error.authentic) == (422, True)
    assert "ValueError in route, line" in error.message
    assert "private" not in str(error)


def test_a_route_that_gives_something_else_is_refused() -> None:
    assert "gave dict, not an event" in refusal(source(lambda event: [event]), {"id": 1}).message


def test_a_source_is_only_about_its_own_pairs() -> None:
    assert refusal(source(order, pairs=("refunds",)), {"id": 1}).status == 422


def test_nothing_is_read_before_the_signature_is_right() -> None:
    with pytest.raises(EventRefused) as caught:
        source(order).read(b"not JSON at all", {"x-signature": "00" * 32}, 0)
    assert (caught.value.status, caught.value.authentic) == (401, False)


def test_a_source_never_shows_its_secrets() -> None:
    assert SECRET not in repr(source(order))


# Mappings

ISSUE = {
    "action": "closed",
    "issue": {"number": 7, "title": None, "labels": [{"name": "a"}, {"name": "b"}]},
    "stamp": "2026-01-01T00:00:00Z",
}


def events(body: object, sent: dict[str, str] | None = None, **options: Any) -> list[Event]:
    return mapped([Mapped("issues", **options)])(body, sent or {})


def test_columns_are_read_by_expressions() -> None:
    values = {"id": "issue.number", "labels": "join(',', issue.labels[].name)", "at": "stamp"}
    [event] = events(ISSUE, values=values)
    assert event == Event("issues", {"id": 7, "labels": "a,b", "at": "2026-01-01T00:00:00Z"})


def test_null_is_a_value_and_what_is_not_there_is_none() -> None:
    [event] = events(ISSUE, values={"id": "issue.number", "title": "issue.title", "body": "issue.body", "x": "a.b.c"})
    assert event.values == {"id": 7, "title": None}


@pytest.mark.parametrize(
    ("when", "fits"),
    [("action == 'closed'", True), ("action == 'opened'", False), ("issue.labels", True), ("issue.title", False),
     ("missing", False), ("issue.number", True)],
)  # fmt: skip
def test_when_decides_whether_it_is_about_the_pair(when: str, fits: bool) -> None:
    assert bool(events(ISSUE, values={"id": "issue.number"}, when=when)) == fits


def test_deleted_when_makes_it_a_delete() -> None:
    [event] = events(ISSUE, values={"id": "issue.number"}, deleted_when="action == 'closed'")
    assert event.deleted


def test_headers_must_be_equal() -> None:
    options: Any = {"values": {"id": "issue.number"}, "headers": {"X-GitHub-Event": "issues"}}
    assert len(events(ISSUE, {"x-github-event": "issues"}, **options)) == 1
    assert events(ISSUE, {"x-github-event": "push"}, **options) == []
    assert events(ISSUE, **options) == []


def test_each_finds_several_records_in_a_body() -> None:
    body = {"rows": [{"id": 1, "gone": True}, {"id": 2, "gone": False}]}
    found = events(body, each="rows", values={"id": "id"}, deleted_when="gone")
    assert found == [Event("issues", {"id": 1}, deleted=True), Event("issues", {"id": 2})]
    assert events([{"id": 1}], each="@", values={"id": "id"}) == [Event("issues", {"id": 1})]


def test_a_list_that_is_not_there_is_refused_not_taken_for_empty() -> None:
    with pytest.raises(EventRefused, match="finds no list"):
        events({"id": 1}, each="rows", values={"id": "id"})


# Options

OPTIONS = {
    "style": "github",
    "secrets": [SECRET],
    "size_max": 25_000_000,
    "window": "2m",
    "events": [{"pair": "issues", "values": {"id": "number"}}, {"pair": "labels", "values": {"id": "label.id"}}],
}


def test_a_source_from_options() -> None:
    made = Source.from_options("github", OPTIONS)
    assert (made.name, made.size_max, made.pairs) == ("github", 25_000_000, ("issues", "labels"))


def test_a_style_from_options() -> None:
    style = {"header": "X-Sig", "encoding": "base64", "timestamp": "X-Time", "signed": "{timestamp}:{body}"}
    Source.from_options("own", OPTIONS | {"style": style})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"style": "gitlab"}, "github"),
        ({"style": {"prefix": "x"}}, "names no header"),
        ({"style": {"header": "X", "prefx": "x"}}, "prefix"),
        ({"secrets": []}, "no list of secrets"),
        ({"secrets": SECRET}, "no list of secrets"),
        ({"secrets": ["${NOT_SET_ANYWHERE}"]}, "NOT_SET_ANYWHERE"),
        ({"size_max": 0}, "size_max"),
        ({"window": "soon"}, "window"),
        ({"sizemax": 1}, "size_max"),
        ({"events": []}, "events or a route"),
        ({"events": [{"pair": "issues"}]}, "lacks pair or values"),
        ({"events": [{"pair": "issues", "values": {}}]}, "no column"),
        ({"events": [{"pair": "issues", "values": {"id": "a["}}]}, "JMESPath"),
        ({"events": [{"pair": "issues", "values": {"id": "a"}, "wen": "b"}]}, "when"),
    ],
)
def test_a_mistake_in_the_options_is_named(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Source.from_options("github", OPTIONS | changed)
    assert said in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("name", ["", "a b", "../x", "Ä", "-a"])
def test_a_name_that_can_t_stand_in_a_url_is_refused(name: str) -> None:
    with pytest.raises(ConfigError):
        Source(name, STYLE, [SECRET], order)
