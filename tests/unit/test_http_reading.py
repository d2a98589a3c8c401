"""Reading over HTTP: every paging style, lists that move, odd answers, and absence that is not an error."""

from __future__ import annotations

import contextlib

import pytest

from api import Api, Reply, serving
from trueup.engine.gate import Caller, SystemGate, calling
from trueup.errors import BadInput, ConfigError, IncompleteScan, SchemaError, SideError, Unreachable
from trueup.model.budget import System
from trueup.model.kinds import INTEGER, TEXT
from trueup.model.outcome import RateLimited
from trueup.model.record import Field, Projection
from trueup.ports import Scope
from trueup.sides.http import Http
from trueup.stores.budgets import MemoryBudgets
from trueup.testing.sides.asking import key_of, projection_of, scanned


@pytest.fixture
def api():
    with serving(Api(rows=[{"id": number, "name": f"n{number}"} for number in range(1, 26)])) as api:
        yield api


@pytest.fixture
def side_of(api):
    with contextlib.ExitStack() as stack:

        def side_of(**options):
            side = Http(options.pop("url", f"{api.url}/items"), **{"key": "id", "page_size": 10, **options})
            stack.callback(side.close)
            return side

        yield side_of


def ids(side, **scope):
    return [int(row["id"]) for row in scanned(side, projection_of(side, ["id"], ["name"]), Scope(**scope))]


def read(side, *keys):
    return set(side.read(projection_of(side, ["id"], ["name"]), [key_of(str(key)) for key in keys]))


EVERY = list(range(1, 26))
STYLES = {
    "page": {},
    "offset": {},
    "cursor": {"next": "next"},
    "link": {},
    "none": {"size_param": None},
}


# Paging.


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("rows", [0, 1, 9, 10, 11, 20, 25])
def test_every_style_shows_every_record_once(api, side_of, style, rows):
    api.paging, api.wrap, api.rows = style, "data", api.rows[:rows]
    side = side_of(paging=style, columns={"id": "integer", "name": "text"}, **STYLES[style])
    assert ids(side) == EVERY[:rows]


@pytest.mark.parametrize("style", ["page", "offset", "cursor", "link"])
def test_a_server_may_give_smaller_pages_than_asked(api, side_of, style):
    api.paging, api.wrap, api.cap = style, "data", 4
    assert ids(side_of(paging=style, page_size=100, **STYLES[style])) == EVERY


@pytest.mark.parametrize("total", ["total", "header:X-Total-Count"])
def test_a_total_spares_the_empty_page(api, side_of, total):
    api.wrap, api.total, api.rows = "results", True, api.rows[:20]
    side = side_of(total=total)
    side.describe()
    api.calls.clear()
    assert ids(side) == EVERY[:20]
    assert [call.query["page"] for call in api.calls] == ["1", "2"]


def test_a_page_after_the_last_may_not_exist(api, side_of):
    api.rows = api.rows[:20]
    api.before = lambda call: Reply(404, {"detail": "Invalid page."}) if call.query.get("page") == "3" else None
    assert ids(side_of()) == EVERY[:20]


def test_the_first_page_has_to_exist(api, side_of):
    api.before = lambda call: Reply(404, {})
    with pytest.raises(SideError, match=r"items at 127\.0\.0\.1 answered 404 to the first page"):
        side_of().describe()


def test_a_list_that_ignores_paging_is_not_read_for_ever(api, side_of):
    api.paging = "none"
    with pytest.raises(IncompleteScan, match="does not end") as caught:
        ids(side_of())
    assert "paging='none'" in caught.value.hint
    assert len(api.calls) < 10


def test_a_cursor_that_comes_back_is_not_followed_for_ever(api, side_of):
    api.paging = "cursor"
    api.after = lambda call, reply: Reply(200, {"data": reply.body, "next": "5"})
    with pytest.raises(IncompleteScan, match="does not end"):
        ids(side_of(paging="cursor", next="next"))
    assert len(api.calls) < 10


def test_one_page_of_several_is_not_the_whole(api, side_of):
    api.paging, api.cap = "link", 10
    with pytest.raises(IncompleteScan, match="more pages"):
        ids(side_of(paging="none"))


def test_what_changed_is_asked_for_and_more_is_left_out(api, side_of):
    api.rows = [{"id": number, "at": number % 7, "name": "x"} for number in range(1, 26)]
    side = side_of(version="at", changed_param="since")
    projection = projection_of(side, ["id"], ["name"], version="at")
    found = [(row["at"], int(row["id"])) for row in scanned(side, projection, Scope(since=5))]
    due = [(number % 7, number) for number in range(1, 26) if number % 7 >= 5]
    assert found == sorted(due, key=lambda each: (each[0], str(each[1])))
    assert {call.query.get("since") for call in api.calls[1:]} == {"4"}
    assert side.capabilities.version_index


# Lists that move.


def moving(api, *moves):
    """Each of the moves happens after one page was read, of the pages that begin after the first."""
    waiting = list(moves)

    def after(call, reply):
        if call.path == "/items" and waiting and (call.query.get("page") == "1" or call.query.get("offset") == "9"):
            waiting.pop(0)(api)
        return reply

    api.after = after


def remove_first(api):
    api.rows = api.rows[1:]


def add_first(api):
    api.rows = [{"id": 100 + len(api.rows), "name": "new"}, *api.rows]


@pytest.mark.parametrize("move", [remove_first, add_first])
def test_a_list_that_moved_is_read_anew(api, side_of, move):
    side = side_of(total="header:X-Total-Count")
    side.describe()
    moving(api, move)
    assert sorted(ids(side)) == sorted(row["id"] for row in api.rows)


def test_a_repeated_key_is_noticed_without_a_total(api, side_of):
    side = side_of()
    side.describe()
    moving(api, add_first)
    assert sorted(ids(side)) == sorted(row["id"] for row in api.rows)


def test_a_list_that_never_stands_still_is_incomplete(api, side_of):
    side = side_of(total="header:X-Total-Count", enumerations=2)
    side.describe()
    moving(api, remove_first, remove_first)
    with pytest.raises(IncompleteScan, match="changed while it was read, 2 times: its total changed"):
        ids(side)


def test_fewer_records_than_the_total_are_incomplete(api, side_of):
    api.wrap, api.total = "data", True
    api.after = lambda call, reply: Reply(200, {"data": reply.body["data"], "total": 30})
    with pytest.raises(IncompleteScan, match="25 of 30 records came"):
        ids(side_of(total="total"))


def test_a_short_page_with_more_behind_it_is_incomplete(api, side_of):
    def short(call, reply):
        return Reply(200, reply.body[:-1]) if call.query.get("page") == "2" else reply

    api.after = short
    with pytest.raises(IncompleteScan, match="a page was short"):
        ids(side_of())


def test_by_offset_records_that_left_do_not_hide_others(api, side_of):
    """Ten records were read when one of them leaves: by page numbers the eleventh would be skipped."""
    api.paging = "offset"
    side = side_of(paging="offset", enumerations=1)
    side.describe()

    def leave(call, reply):
        if call.query.get("offset") is None:
            remove_first(api)
        return reply

    api.after = leave
    assert ids(side) == EVERY


def test_by_offset_records_that_join_do_not_repeat_others(api, side_of):
    api.paging = "offset"
    side = side_of(paging="offset", enumerations=1)
    side.describe()

    def join(call, reply):
        if call.query.get("offset") is None:
            add_first(api)
        return reply

    api.after = join
    assert ids(side) == EVERY


def test_a_key_twice_in_two_pages_is_a_duplicate(api, side_of):
    api.rows.append({"id": 3, "name": "again"})
    assert sorted(ids(side_of())) == sorted([*EVERY, 3])


# Odd answers.


@pytest.mark.parametrize(("reply", "error", "text"), [
    (Reply(raw=b"<html>login</html>", headers={"Content-Type": "text/html"}), Unreachable, "a web page"),
    (Reply(raw=b"<!doctype html>"), Unreachable, "a web page"),
    (Reply(204), Unreachable, "answered nothing"),
    (Reply(raw=b""), Unreachable, "answered nothing"),
    (Reply(raw=b'[{"id": 1'), Unreachable, "not JSON"),
    (Reply(raw=b'[{"id": 1, "id": 2}]'), Unreachable, "not JSON"),
    (Reply(raw=b'[{"id": NaN}]'), Unreachable, "not JSON"),
    (Reply(body={"rows": []}), BadInput, "which list holds the records"),
    (Reply(body={"data": [], "items": []}), BadInput, "data and items"),
    (Reply(body=7), BadInput, "no list of records"),
    (Reply(body=[1, 2]), BadInput, "no JSON object"),
    (Reply(302, headers={"Location": "https://elsewhere.example/x?token=s3cret"}), Unreachable, "redirects"),
    (Reply(401), Unreachable, "refuses"),
    (Reply(403), Unreachable, "refuses"),
    (Reply(500), Unreachable, "answered 500"),
    (Reply(503), Unreachable, "answered 503"),
    (Reply(400), SideError, "answered 400"),
    (Reply(drop=True), Unreachable, "broke off"),
], ids=lambda value: getattr(value, "status", None))  # fmt: skip
def test_an_odd_answer_is_a_named_error(api, side_of, reply, error, text):
    api.before = lambda _: reply
    side = side_of(auth=None, headers={"X-Key": "s3cret"})
    with pytest.raises(error, match=text) as caught:
        ids(side)
    assert caught.value.hint
    assert "s3cret" not in str(caught.value)


def test_an_odd_answer_in_the_middle_ends_the_scan(api, side_of):
    side = side_of()
    side.describe()
    api.before = lambda call: Reply(502, {}) if call.query.get("page") == "3" else None
    with pytest.raises(Unreachable):
        ids(side)


def test_a_redirect_within_the_system_is_followed(api, side_of):
    api.before = lambda call: (
        Reply(301, headers={"Location": f"/items?{'&'.join(f'{k}={v}' for k, v in call.query.items())}"})
        if call.path == "/old"
        else None
    )
    assert ids(side_of(url=f"{api.url}/old")) == EVERY


def test_an_answer_that_drips_is_given_up(api, side_of):
    api.before = lambda _: Reply(delay_s=5, body=[])
    with pytest.raises(Unreachable, match=r"did not answer within 0\.2 s"):
        side_of(timeout_s=0.2).describe()


def test_a_lost_connection_is_read_again_once(api, side_of):
    side = side_of()
    side.describe()
    drops = [True]
    api.before = lambda _: Reply(drop=True) if drops and drops.pop() else None
    assert ids(side) == EVERY


def test_nobody_listens(side_of):
    with pytest.raises(Unreachable, match="can't be reached"):
        side_of(url="http://127.0.0.1:9/items").describe()


# Absence.


def test_C124_a_lookup_that_fails_is_not_absence(api, side_of):
    api.rows = [{"id": number, "name": "x"} for number in range(1, 431)]
    side = side_of(page_size=500)
    side.describe()
    assert len(read(side, *range(1, 431))) == 430
    for fault in (Reply(drop=True), Reply(502, {}), Reply(403, {})):
        api.before = lambda call, fault=fault: fault if int(call.path.rpartition("/")[2]) > 100 else None
        with pytest.raises(Unreachable):
            read(side, *range(1, 431))
    api.before = lambda call: Reply(404, {}) if call.path.rpartition("/")[2] in ("7", "8", "430") else None
    assert set(range(1, 431)) - {int(key[2:-2]) for key in read(side, *range(1, 431))} == {7, 8, 430}


def test_gone_is_absence_too(api, side_of):
    side = side_of()
    side.describe()
    api.before = lambda call: Reply(410, {}) if call.path == "/items/3" else None
    assert read(side, 3, 4) == {key_of("4")}


def test_an_answer_about_another_record_is_an_error(api, side_of):
    side = side_of(item_url="{url}/1")
    with pytest.raises(BadInput, match="another record"):
        read(side, 2)


def test_many_keys_in_one_call(api, side_of):
    side = side_of(keys_param="ids", keys_at_once=20, item_url=None)
    side.describe()
    api.calls.clear()
    assert len(read(side, *range(1, 51))) == 25
    assert all(call.path == "/items" for call in api.calls)
    assert side.capabilities.reads_by_key


def test_without_a_list_columns_are_declared(api, side_of):
    with pytest.raises(ConfigError, match="no list"):
        side_of(lists=False)
    side = side_of(lists=False, columns={"id": "integer", "name": "text"})
    assert read(side, 1, 99) == {key_of("1")}
    with pytest.raises(SideError, match="no list of records"):
        ids(side)
    assert {call.path for call in api.calls} == {"/items/1", "/items/99"}


def test_a_key_is_encoded_into_the_address(api, side_of):
    api.key = ("code",)
    api.rows = [{"code": code} for code in ("a/b", "..", "%2F", "ü ?#", "x&y=z")]
    side = side_of(key="code")
    projection = projection_of(side, ["code"], [])
    keys = [key_of(row["code"]) for row in api.rows]
    assert set(side.read(projection, keys)) == set(keys)


# Columns.


def test_numbers_are_exact_and_fields_are_found(api, side_of):
    raw = (
        b'{"response": [{"id": 1, "price": {"amount": 12345678901234567890.10, "n": 3}, "tags": ["a"], "none": null}]}'
    )
    api.before = lambda call: Reply(raw=raw if call.query.get("page") == "1" else b'{"response": []}')
    fields = {"id": "id", "amount": "price.amount", "n": "price.n", "tags": "tags", "none": "none"}
    side = side_of(items="response", fields=fields)
    kinds = {column.name: str(column.kind) for column in side.describe().columns}
    assert kinds == {"id": "integer", "amount": "decimal", "n": "integer", "tags": "array of text", "none": "text"}
    [row] = scanned(side, projection_of(side, ["id"], ["amount", "n", "tags", "none"]))
    assert row == {"id": "1", "amount": "12345678901234567890.1", "n": "3", "tags": '["a"]', "none": None}


def test_what_was_guessed_is_said(api, side_of):
    api.wrap = "results"
    assert side_of().describe().system == "HTTP API, records under results"


def test_a_record_without_its_key_is_an_error(api, side_of):
    with pytest.raises(SchemaError, match="no column uid"):
        side_of(key="uid").describe()
    side = side_of()
    side.describe()
    api.before = lambda _: Reply(200, [{"name": "x"}])
    with pytest.raises(BadInput, match="has no id"):
        ids(side)


@pytest.mark.parametrize(("options", "text"), [
    ({"paging": "pages"}, "paging can't be 'pages'"),
    ({"paging": "cursor"}, "needs to know"),
    ({"page_size": 1}, "page_size"),
    ({"items": "a["}, "is no JMESPath"),
    ({"fields": {"name": "name"}}, "does not say where id is"),
    ({"item_url": "{url}/{uid}"}, "{uid} is not known"),
    ({"url": "ftp://host/x"}, "no HTTP address"),
    ({"headers": {"X-Key": "${NOT_SET_ANYWHERE}"}}, "NOT_SET_ANYWHERE is not set"),
    ({"columns": {"id": "int"}}, "is not a kind"),
])  # fmt: skip
def test_a_wrong_declaration_is_named(side_of, options, text):
    with pytest.raises(ConfigError) as caught:
        side_of(**options)
    assert text in str(caught.value)


def test_a_condition_is_refused_and_a_column_named(side_of):
    side = side_of()
    with pytest.raises(ConfigError, match="takes no condition"):
        ids(side, where="x")
    asked = Projection((Field("id", "id", INTEGER),), (Field("name", "nam", TEXT),))
    with pytest.raises(SchemaError, match="no column nam"):
        side.read(asked, [key_of("1")])


def test_the_systems_clock_is_that_of_its_answers(api, side_of):
    side = side_of()
    assert side.now_us() is None
    api.after = lambda call, reply: Reply(200, reply.body, {"Date": "Mon, 30 Nov 2026 08:00:00 GMT"})
    side.describe()
    assert 0 <= side.now_us() - 1_796_025_600_000_000 < 60_000_000


# Called too often.


class Jumping:
    """A clock that sleeps in no time."""

    def __init__(self):
        self.us, self.slept = 1_796_025_510_200_000, []

    def now_us(self):
        return self.us

    def elapsed_us(self):
        return self.us

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.us += int(seconds * 1e6)

    def every(self, seconds, call):
        raise NotImplementedError


def gate_of(clock):
    return SystemGate(System("courses"), MemoryBudgets(clock), clock, "tests")


@pytest.mark.parametrize(("said", "seconds"), [
    ("Mon, 30 Nov 2026 08:00:00 GMT", 90), ("120", 120), (None, 60), ("Mon, 30 Nov 2026 07:00:00 GMT", 0), ("soon", 60),
], ids=str)  # fmt: skip
def test_C116_a_scan_waits_as_asked_and_goes_on(api, side_of, said, seconds):
    clock = Jumping()
    side = side_of()
    side.describe()
    side.gate = gate_of(clock)
    date = {"Date": "Mon, 30 Nov 2026 07:58:30 GMT"}
    refusals = [Reply(429, {}, date if said is None else {"Retry-After": said, **date})]
    api.before = lambda call: refusals.pop() if refusals and call.query.get("page") == "2" else None
    assert ids(side) == EVERY
    assert sum(clock.slept) == pytest.approx(seconds, abs=0.3)


def test_C119_an_unreadable_pause_stops_all_callers(api, side_of):
    clock = Jumping()
    gate = gate_of(clock)
    api.before = lambda _: Reply(429, {}, {"Retry-After": "soon"})
    sides = [side_of(gate=gate, columns={"id": "integer", "name": "text"}, lists=False) for _ in range(10)]
    with calling(Caller(patience_us=0)):
        for side in sides:
            with pytest.raises(RateLimited):
                read(side, 1)
    assert len(api.calls) == 1


@pytest.mark.parametrize(("when", "reply"), [
    ("error.reason == 'dailyLimitExceeded'", Reply(403, {"error": {"reason": "dailyLimitExceeded"}})),
    (403, Reply(403, {}, {"Retry-After": "7"})),
    ((420, 598), Reply(598, {}, {"Retry-After": "7"})),
    (None, Reply(429, {}, {"Retry-After": "7"})),
], ids=str)  # fmt: skip
def test_too_often_is_said_in_many_ways(api, side_of, when, reply):
    api.before = lambda _: reply
    with pytest.raises(RateLimited) as caught:
        side_of(throttled_when=when).describe()
    assert caught.value.retry_after_s == (7 if reply.headers else 60)
