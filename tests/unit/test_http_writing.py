"""Writing over HTTP: preconditions, idempotency keys, writes whose answer was lost, bulk, and who may call."""

from __future__ import annotations

import contextlib

import pytest

from api import Api, Reply, serving
from trueup.errors import ConfigError, SideError, Unreachable
from trueup.model.outcome import RateLimited
from trueup.ports import Write
from trueup.sides.http import Basic, Bearer, Http, OAuth2ClientCredentials
from trueup.sides.http.auth import Tokens
from trueup.testing.sides.asking import key_of, projection_of

COLUMNS = {"id": "integer", "name": "text", "kept": "text"}


@pytest.fixture
def api():
    rows = [{"id": 1, "name": "a", "kept": "one"}, {"id": 2, "name": "b", "kept": "two"}]
    with serving(Api(rows=rows)) as api:
        yield api


@pytest.fixture
def side_of(api):
    with contextlib.ExitStack() as stack:

        def side_of(**options):
            url = options.pop("url", f"{api.url}/items")
            side = Http(url, **{"key": "id", "columns": COLUMNS, "timeout_s": 0.5, **options})
            stack.callback(side.close)
            side.describe()
            api.calls.clear()
            return side

        yield side_of


def projection(side):
    return projection_of(side, ["id"], ["name"])


def token(side, key):
    return side.read(projection(side), [key_of(key)])[key_of(key)].token


def put(side, key, name, expect, id="w1"):  # noqa: A002
    [written] = side.apply(projection(side), [Write(key_of(key), {"name": name}, expect, id)])
    return written


def delete(side, key, expect):
    [written] = side.apply(projection(side), [Write(key_of(key), None, expect, "w1")])
    return written


def sent(api):
    return [(call.method, call.path) for call in api.calls]


# Preconditions.


def test_an_update_is_one_conditional_call_and_a_read(api, side_of):
    side = side_of()
    expect = token(side, "1")
    api.calls.clear()
    written = put(side, "1", "x", expect)
    assert written.landed
    assert written.replica.values["name"] == "x"
    assert sent(api) == [("PATCH", "/items/1"), ("GET", "/items/1")]
    headers = api.calls[0].headers
    assert headers["if-match"] == expect
    assert headers["idempotency-key"].startswith("w1-")
    assert api.calls[0].json == {"name": "x"}


def test_a_create_says_that_nothing_may_be_there(api, side_of):
    side = side_of()
    token(side, "1")
    api.calls.clear()
    assert put(side, "3", "c", "").landed
    assert sent(api) == [("PUT", "/items/3"), ("GET", "/items/3")]
    assert api.calls[0].headers["if-none-match"] == "*"
    assert api.calls[0].json == {"id": 3, "name": "c"}


def test_where_no_etag_was_met_a_create_looks_first(api, side_of):
    """An API without ETags takes If-None-Match for nothing."""
    api.etags = ""
    side = side_of()
    assert side.capabilities.precondition == "system"
    written = put(side, "1", "x", "")
    assert (written.landed, written.replica.values["name"]) == (False, "a")
    assert sent(api) == [("GET", "/items/1")]
    assert side.capabilities.precondition == "read"


def test_a_weak_etag_is_no_precondition_unless_declared(api, side_of):
    api.etags = "weak"
    side = side_of()
    assert not token(side, "1").startswith("W/")
    assert put(side, "1", "x", token(side, "1")).landed
    assert "if-match" not in api.methods("PATCH")[0].headers
    side = side_of(etag="weak")
    assert put(side, "1", "y", token(side, "1")).landed
    assert api.methods("PATCH")[0].headers["if-match"].startswith("W/")


def test_a_digest_from_elsewhere_still_leads_to_a_conditional_call(api, side_of):
    side = side_of(keys_param="ids")
    expect = token(side, "1")
    assert not expect.startswith('"')
    assert put(side, "1", "x", expect).landed
    assert api.methods("PATCH")[0].headers["if-match"].startswith('"')
    assert not put(side, "1", "y", expect).landed


def test_a_replacement_keeps_what_it_was_not_given(api, side_of):
    side = side_of(update="PUT")
    assert put(side, "1", "x", token(side, "1")).landed
    assert api.rows[0] == {"id": 1, "name": "x", "kept": "one"}


def test_what_changed_in_between_is_not_overwritten(api, side_of):
    side = side_of(update="PUT")
    expect = token(side, "1")

    def edit(call, reply):
        if call.method == "GET" and api.rows[0]["name"] == "a":
            api.rows[0]["name"] = "by hand"
        return reply

    api.after = edit
    written = put(side, "1", "x", expect)
    assert (written.landed, written.replica.values["name"]) == (False, "by hand")


def test_a_post_that_meets_a_record_is_refused(api, side_of):
    side = side_of(create="POST")
    assert put(side, "3", "c", "").landed
    assert api.methods("POST")[0].path == "/items"
    hidden = [Reply(404, {})]
    api.before = lambda call: hidden.pop() if hidden and call.method == "GET" else None
    written = put(side, "1", "x", "", id="w2")
    assert (written.landed, written.replica.values["name"]) == (False, "a")


def test_a_computed_field_is_not_written(api, side_of):
    fields = {"id": "id", "name": "join('', [name])", "kept": "kept"}
    side = side_of(fields=fields)
    with pytest.raises(ConfigError, match="computed"):
        put(side, "1", "x", None)


def test_nested_places_are_written(api, side_of):
    api.rows = [{"id": 1, "who": {"name": "a", "age": 3}}]
    side = side_of(fields={"id": "id", "name": "who.name"}, columns={"id": "integer", "name": "text"}, update="PUT")
    assert put(side, "1", "x", token(side, "1")).landed
    assert api.rows == [{"id": 1, "who": {"name": "x", "age": 3}}]


# No answer.


def once(api, reply, *, lands):
    """The first write gets this answer, with or without its effect."""
    waiting = [reply]

    def before(call):
        return waiting.pop() if call.method != "GET" and waiting and not lands else None

    def after(call, answer):
        return waiting.pop() if call.method != "GET" and waiting and lands else answer

    api.before, api.after = before, after


LOST = [Reply(drop=True), Reply(delay_s=3)]


@pytest.mark.parametrize("lost", LOST, ids=["dropped", "late"])
@pytest.mark.parametrize("options", [{}, {"etag": False}, {"create": "POST"}], ids=str)
def test_a_write_that_landed_unanswered_is_not_repeated(api, side_of, lost, options):
    side = side_of(**options)
    for key, name, expect in (("1", "x", token(side, "1")), ("3", "c", "")):
        once(api, lost, lands=True)
        api.calls.clear()
        written = put(side, key, name, expect, id=f"w{key}")
        assert (written.landed, written.replica.values["name"]) == (True, name)
        assert len([call for call in api.calls if call.method != "GET"]) == 1


@pytest.mark.parametrize("lost", LOST, ids=["dropped", "late"])
def test_a_write_that_did_not_land_is_repeated_under_the_same_key(api, side_of, lost):
    side = side_of()
    expect = token(side, "1")
    once(api, lost, lands=False)
    assert put(side, "1", "x", expect).landed
    first, second = (call.headers["idempotency-key"] for call in api.methods("PATCH"))
    assert first == second
    assert [call.headers["if-match"] for call in api.methods("PATCH")] == [expect, expect]


def test_a_write_that_lands_late_is_seen_when_its_repetition_is_refused(api, side_of):
    """The first call takes effect after the record was read back unchanged: the second meets its work."""
    side = side_of()
    expect = token(side, "1")
    calls = []

    def before(call):
        if call.method == "PATCH":
            calls.append(call)
            if len(calls) == 1:
                return Reply(drop=True)
            api.rows[0]["name"] = "x"
        return None

    api.before = before
    written = put(side, "1", "x", expect)
    assert (written.landed, written.replica.values["name"]) == (True, "x")


def test_a_write_without_answer_that_met_another_is_refused(api, side_of):
    side = side_of()
    expect = token(side, "1")

    def before(call):
        if call.method != "PATCH":
            return None
        api.rows[0]["name"] = "by hand"
        return Reply(drop=True)

    api.before = before
    written = put(side, "1", "x", expect)
    assert (written.landed, written.replica.values["name"]) == (False, "by hand")
    assert len(api.methods("PATCH")) == 1


def test_a_post_without_a_key_is_not_repeated(api, side_of):
    side = side_of(create="POST")
    once(api, Reply(drop=True), lands=False)
    with pytest.raises(Unreachable, match="broke off"):
        put(side, "3", "c", "", id="")
    assert len(api.methods("POST")) == 1


def test_a_system_that_never_answers_writes_is_left_after_three(api, side_of):
    side = side_of()
    expect = token(side, "1")
    api.before = lambda call: Reply(drop=True) if call.method == "PATCH" else None
    with pytest.raises(Unreachable, match="broke off"):
        put(side, "1", "x", expect)
    assert len(api.methods("PATCH")) == 3


def test_a_write_that_was_undone_is_done_again(api, side_of):
    """The API answers the second, equal write from its memory of the first."""
    side = side_of()
    assert put(side, "3", "c", "").landed
    api.rows = api.rows[:2]
    written = put(side, "3", "c", "")
    assert (written.landed, written.replica.values["name"]) == (True, "c")
    assert len({call.headers["idempotency-key"] for call in api.methods("PUT")}) == 2


def test_a_refusal_is_not_answered_to_the_next_try(api, side_of):
    side = side_of()
    expect = token(side, "1")
    api.rows[0]["name"] = "by hand"
    assert not put(side, "1", "x", expect).landed
    assert put(side, "1", "x", token(side, "1")).landed


@pytest.mark.parametrize("lands", [True, False])
def test_a_delete_without_answer(api, side_of, lands):
    side = side_of()
    expect = token(side, "1")
    once(api, Reply(drop=True), lands=lands)
    assert delete(side, "1", expect).landed
    assert [row["id"] for row in api.rows] == [2]
    assert len(api.methods("DELETE")) == (1 if lands else 2)


# Refused writes.


@pytest.mark.parametrize(("status", "error"), [
    (400, SideError), (422, SideError), (405, SideError), (401, Unreachable), (403, Unreachable), (500, Unreachable),
    (503, Unreachable), (307, Unreachable),
])  # fmt: skip
def test_a_write_that_is_not_accepted_names_the_record_and_no_value(api, side_of, status, error):
    side = side_of()
    expect = token(side, "1")
    api.before = lambda call: Reply(status, {"error": "x"}) if call.method == "PATCH" else None
    with pytest.raises(error) as caught:
        put(side, "1", "s3cret", expect)
    assert type(caught.value) is error
    assert key_of("1") in str(caught.value)
    assert str(status) in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_a_write_that_is_asked_to_wait_is_not_repeated_here(api, side_of):
    side = side_of()
    api.before = lambda call: Reply(429, {}, {"Retry-After": "9"}) if call.method == "PATCH" else None
    with pytest.raises(RateLimited) as caught:
        put(side, "1", "x", token(side, "1"))
    assert caught.value.retry_after_s == 9
    assert len(api.methods("PATCH")) == 1


# In bulk.


def many(side, writes):
    return side.apply(projection(side), [Write(key_of(key), {"name": name}, None, f"w{key}") for key, name in writes])


def test_many_records_in_one_call(api, side_of):
    side = side_of(bulk_url="{url}/bulk", keys_param="ids", bulk_size=3)
    assert [each.landed for each in many(side, [("1", "x"), ("3", "c"), ("4", "d"), ("5", "e"), ("6", "f")])] == [
        True
    ] * 5
    assert [len(call.json) for call in api.methods("POST")] == [3, 2]
    assert api.rows[0] == {"id": 1, "name": "x", "kept": "one"}
    assert side.capabilities.precondition == "read"


def test_one_refused_record_of_many_is_named(api, side_of):
    side = side_of(bulk_url="{url}/bulk")
    with pytest.raises(SideError, match=r"answered 422 to the record \[\"3\"\]"):
        many(side, [("1", "x"), ("3", "refused")])


@pytest.mark.parametrize("lands", [True, False])
def test_a_bulk_call_without_answer_is_read_back(api, side_of, lands):
    side = side_of(bulk_url="{url}/bulk")
    once(api, Reply(drop=True), lands=lands)
    assert [each.landed for each in many(side, [("1", "x"), ("3", "c")])] == [True, True]
    assert len(api.methods("POST")) == 1
    assert len(api.methods("PATCH")) == (0 if lands else 1)


def test_a_bulk_answer_without_results_is_an_error(api, side_of):
    side = side_of(bulk_url="{url}/bulk")
    api.before = lambda call: Reply(200, {"ok": True}) if call.method == "POST" else None
    with pytest.raises(SideError, match="did not answer for each of 2 records"):
        many(side, [("1", "x"), ("3", "c")])


# Who calls.


@pytest.mark.parametrize(("auth", "header"), [
    (Basic("ann", "${API_SECRET}"), "Basic YW5uOnMzY3JldA=="), (Bearer("${API_SECRET}"), "Bearer s3cret"),
])  # fmt: skip
def test_who_calls_is_said_and_not_shown(api, side_of, monkeypatch, auth, header):
    monkeypatch.setenv("API_SECRET", "s3cret")
    api.before = lambda _: Reply(401, {})
    with pytest.raises(Unreachable, match="refuses") as caught:
        side_of(auth=auth)
    assert "Renew the" in caught.value.hint
    assert api.calls[0].headers["authorization"] == header
    assert "s3cret" not in f"{caught.value}{auth}".replace("API_", "")


def test_a_password_in_the_url_is_basic_and_is_not_shown(api, side_of):
    api.before = lambda _: Reply(500, {})
    with pytest.raises(Unreachable) as caught:
        side_of(url=api.url.replace("://", "://ann:s3cret@") + "/items?api_key=s3cret")
    assert "s3cret" not in str(caught.value)
    assert api.calls[0].headers["authorization"] == "Basic YW5uOnMzY3JldA=="
    assert api.calls[0].query["api_key"] == "s3cret"


def oauth(api, **options):
    return OAuth2ClientCredentials(f"{api.url}/token", "client", api.secret, **options)


@pytest.mark.parametrize("in_body", [False, True])
def test_a_token_is_fetched_once_and_renewed_when_refused(api, side_of, in_body):
    api.guarded = True
    side = side_of(auth=oauth(api, in_body=in_body, scope="read write"))
    token(side, "1")
    token(side, "2")
    assert api.methods("POST") == []
    api.tokens.clear()
    token(side, "1")
    assert len(api.methods("POST")) == 1


def test_a_token_that_is_always_refused_is_renewed_once(api, side_of):
    api.guarded = True
    side = side_of(auth=oauth(api))
    api.before = lambda call: Reply(401, {}) if call.path != "/token" else None
    with pytest.raises(Unreachable, match="refuses"):
        token(side, "1")
    assert sent(api) == [("GET", "/items/1"), ("POST", "/token"), ("GET", "/items/1")]


def test_a_token_is_renewed_before_it_runs_out(api, side_of):
    now = [0.0]
    api.token_lifetime_s = 100
    tokens = Tokens(oauth(api), lambda: now[0])
    client = side_of()._calls._connected()
    seen = []
    for now[0] in (0, 89, 91, 92):
        seen.append(tokens.headers(client)["Authorization"])
    assert seen[0] == seen[1] != seen[2] == seen[3]


@pytest.mark.parametrize(("reply", "text"), [
    (Reply(401, {"error": "invalid_client"}), "gives no token"),
    (Reply(200, {"token": "x"}), "without an access token"),
    (Reply(200, raw=b"<html>"), "without an access token"), (Reply(drop=True), "does not answer"),
])  # fmt: skip
def test_a_token_service_in_trouble_is_named(api, side_of, reply, text):
    api.before = lambda call: reply if call.path == "/token" else None
    with pytest.raises(
        Unreachable, match=f"the token service at 127.0.0.1 {'.*' if 'with' in text else ''}{text}"
    ) as caught:
        side_of(auth=oauth(api))
    assert api.secret not in str(caught.value)
