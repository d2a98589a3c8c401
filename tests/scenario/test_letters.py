"""Dead letters on the command line: listed, shown without secrets, read again once the mapping is mended, dropped."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from test_cli_run import execute, trueup  # noqa: F401  a fixture

from trueup.deliveries import replay
from trueup.events.webhook import Source
from trueup.loading import load
from trueup.model.letter import BODY_KEPT, DeadLetter
from trueup.web.ingest import app

SECRET = "between-us"
CONFIG = """\
[pair.orders]
authority = { url = "sqlite:///shop.db", table = "orders", key = "id", version = "rev" }
handler = "operator:truth"
settle = 0

[source.shop]
style = "github"
secrets = ["${SHOP_SECRET}"]

[[source.shop.events]]
pair = "orders"
values = { id = "order.number" }
"""
MENDED = CONFIG.replace("order.number", "order.id")
ORDER = b'{"type": "paid", "order": {"id": 7, "email": "ann@example.org", "tags": ["a", "b"], "ann@example.org": null}}'

Trueup = Callable[..., tuple[int, str, str]]


@pytest.fixture
def shop(trueup: Trueup, monkeypatch: pytest.MonkeyPatch) -> Trueup:  # noqa: F811
    """A project whose source maps a column that its sender does not send."""
    monkeypatch.setenv("SHOP_SECRET", SECRET)
    Path("trueup.toml").write_text(CONFIG, "utf-8")
    execute("shop.db", "CREATE TABLE orders (id INTEGER PRIMARY KEY, rev INTEGER)", "INSERT INTO orders VALUES (7, 1)")
    return trueup


def send(body: bytes, delivery: str) -> int:
    """Sends a webhook to the project as it is now."""
    signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    headers = {
        "X-Hub-Signature-256": f"sha256={signature}", "X-GitHub-Delivery": delivery, "X-Api-Key": "let-me-in",
        "X-Topic": "orders", "Content-Type": "application/json",
    }  # fmt: skip
    with load("trueup.toml") as project:
        client = TestClient(app(project, project.sources.values()))
        return client.post("/events/shop", content=body, headers=headers).status_code


def test_a_letter_is_listed_with_its_reason_and_the_next_command(shop: Trueup) -> None:
    """Given a delivery that the mapping can't read, I expect it listed, and status to say so."""
    assert shop("letters") == (0, "no dead letters\n", "")
    assert "dead letter" not in shop("status")[1]
    assert send(ORDER, "d-1") == 422
    assert send(b"{", "d-2") == 400

    code, out, err = shop("letters")
    lines = out.splitlines()
    assert (code, err) == (1, "")
    assert lines[0].split()[:2] == ["2", "shop"]
    assert lines[0].endswith("1 byte  d-2")
    assert lines[1].strip().startswith("400: source shop: the body is not JSON.")
    assert lines[2].endswith(f"{len(ORDER)} bytes  d-1")
    assert lines[-1] == "next: trueup letters show 2, then trueup letters replay or drop"
    assert shop("letters", "list", "--limit", "1")[1].splitlines()[2] == "… 1 more: --limit 0 for all"
    assert shop("letters", "list", "--source", "nobody")[:2] == (0, "no dead letters\n")
    assert "2 dead letters from webhooks → trueup letters" in shop("status")[1]
    assert json.loads(shop("status", "--json")[1])["letters"] == 2


def test_a_letter_is_shown_without_secrets_and_without_values(shop: Trueup) -> None:
    """Given a letter, I expect its reason and shape; its values only with --body; what lets somebody in never."""
    send(ORDER, "d-1")

    code, out, err = shop("letters", "show", "1")
    assert (code, err) == (0, "")
    assert "letter 1 of shop, received" in out
    assert "refused with 422: pair orders: " in out
    assert "x-topic: orders" in out
    assert "x-hub-signature-256: (hidden)" in out
    assert "x-api-key: (hidden)" in out
    assert "{type: text, order: {id: number, email: text, tags: [text × 2], …: null}}" in out
    assert "ann@example.org" not in out
    assert "ann@example.org" not in shop("letters", "show", "1", "--json")[1]

    shown = shop("letters", "show", "1", "--body")[1]
    assert ORDER.decode() in shown
    found = json.loads(shop("letters", "show", "1", "--body", "--json")[1])
    assert (found["body"], found["whole"], found["headers"]["x-hub-signature-256"]) == (
        ORDER.decode(),
        True,
        "(hidden)",
    )
    for said in (out, shown, json.dumps(found), shop("letters", "list", "--json")[1]):
        assert "let-me-in" not in said
        assert "sha256=" not in said


def test_a_body_can_t_move_the_cursor_of_a_terminal(shop: Trueup) -> None:
    """Given a body with control characters, I expect them escaped."""
    send(b'{"a": "\x1b[2J\xff"', "d-1")
    out = shop("letters", "show", "1", "--body")[1]
    assert r'{"a": "\x1b[2J\xff"' in out
    assert "not JSON" in shop("letters", "show", "1")[1]


def test_replay_goes_through_once_the_mapping_is_mended(shop: Trueup) -> None:
    """Given a mended mapping, I expect the letter offered under its own delivery, and gone."""
    send(ORDER, "d-1")
    code, out, _ = shop("letters", "replay", "1")
    assert code == 1
    assert out.startswith("1  kept: pair orders: ")

    Path("trueup.toml").write_text(MENDED, "utf-8")
    code, out, err = shop("letters", "replay", "1")
    assert (code, out, err) == (0, "1  offered: 1 refetch\n1 letter read again and dropped\n", "")
    assert shop("letters")[1] == "no dead letters\n"
    assert "delivery shop/d" in shop("explain", "orders", "7")[1]
    assert send(ORDER, "d-1") == 200, "the sender may repeat it; it is judged once"
    assert shop("run", "orders")[1] == "orders: 1 stuck, 0 changed: 1 done\n"


def test_what_is_refused_again_stays_with_the_new_reason(shop: Trueup) -> None:
    """Given several letters of which one makes sense now, I expect it gone and the others kept with today's reason."""
    for at, body in enumerate((b"{", ORDER, b'{"order": {"id": "seven"}}'), 1):
        send(body, f"d-{at}")
    before = json.loads(shop("letters", "list", "--json")[1])["letters"]
    Path("trueup.toml").write_text(MENDED, "utf-8")

    code, out, _ = shop("letters", "replay", "--all", "--json")
    said = {each["number"]: each for each in json.loads(out)["letters"]}
    assert code == 1
    assert said[2] == {"number": 2, "source": "shop", "kept": None, "outcomes": {"refetch": 1}}
    kept = json.loads(shop("letters", "list", "--json")[1])["letters"]
    assert [(each["number"], each["status"]) for each in kept] == [(3, 422), (1, 400)]
    assert kept[0]["reason"] == said[3]["kept"] != before[0]["reason"]
    assert kept[0]["received_us"] == before[0]["received_us"]


def test_a_letter_that_is_not_for_us_after_all_is_dropped(shop: Trueup) -> None:
    """Given a mapping that now passes over the body, I expect the letter gone and told so."""
    send(ORDER, "d-1")
    Path("trueup.toml").write_text(MENDED + "when = \"type != 'paid'\"\n", "utf-8")
    code, out, _ = shop("letters", "replay", "1")
    assert (code, out.splitlines()[0]) == (0, "1  dropped: it is about no record of this project")


@pytest.mark.parametrize(
    ("letter", "why"),
    [
        (DeadLetter("gone", 1, 422, "The route failed.", b"{}", 2), "declares no source gone"),
        (DeadLetter("shop", 1, 400, "It is not JSON.", b"x" * BODY_KEPT, 2 << 20), "Only the first 1,048,576 of"),
    ],
)
def test_what_can_t_be_read_again_stays_as_it_was(shop: Trueup, letter: DeadLetter, why: str) -> None:
    """Given a letter without its source or without all of its body, I expect it kept, with its old reason."""
    with load("trueup.toml") as project:
        project.archive.keep_letter(letter)
    code, out, _ = shop("letters", "replay", "1")
    assert (code, why in out) == (1, True)
    assert json.loads(shop("letters", "show", "1", "--json")[1])["reason"] == letter.reason


def test_drop_forgets(shop: Trueup) -> None:
    """Given numbers, or --all, I expect exactly those gone; and nothing gone where one number is wrong."""
    for at in range(4):
        send(b"{", f"d-{at}")
    code, _, err = shop("letters", "drop", "1", "99")
    assert (code, "there is no letter 99" in err) == (2, True)
    assert shop("letters", "drop", "1", "3", "3")[:2] == (0, "2 letters dropped\n")
    assert [each["number"] for each in json.loads(shop("letters", "list", "--json")[1])["letters"]] == [4, 2]
    assert shop("letters", "drop", "--all", "--source", "other")[1] == "0 letters dropped\n"
    assert json.loads(shop("letters", "drop", "--all", "--json")[1]) == {"dropped": 2}
    assert shop("letters", "replay", "--all")[:2] == (0, "0 letters read again and dropped\n")


@pytest.mark.parametrize(
    "arguments",
    [("replay",), ("drop",), ("drop", "1", "--all"), ("drop", "1", "--source", "shop"), ("show", "7"), ("show",),
     ("sort",)],
)  # fmt: skip
def test_what_can_t_be_meant_is_one_line(shop: Trueup, arguments: tuple[str, ...]) -> None:
    """Given no number, or too much, I expect one line and exit code 2."""
    code, out, err = shop("letters", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert "hint: " in err


def test_a_crash_between_offer_and_drop_offers_nothing_twice(shop: Trueup, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a replay that died before the letter was dropped, I expect the next one to find its delivery judged."""
    send(ORDER, "d-1")
    Path("trueup.toml").write_text(MENDED, "utf-8")
    with load("trueup.toml") as project:
        [letter] = project.archive.letters()
        monkeypatch.setattr(project.archive, "drop_letters", lambda numbers: 0)
        assert replay(project, letter).outcomes == {"refetch": 1}
    assert shop("letters", "replay", "1")[1].startswith("1  offered: 1 repeated\n")


def test_a_style_that_signs_elsewhere_is_hidden_too(shop: Trueup) -> None:
    """Given a signature in a header of a harmless name, I expect it hidden by what the source declares."""
    Path("trueup.toml").write_text(CONFIG.replace('"github"', '{ header = "X-Proof" }'), "utf-8")
    signature = hmac.new(SECRET.encode(), b"{", hashlib.sha256).hexdigest()
    with load("trueup.toml") as project:
        source: Any = project.sources["shop"]
        assert isinstance(source, Source)
        client = TestClient(app(project, [source]))
        assert client.post("/events/shop", content=b"{", headers={"X-Proof": signature}).status_code == 400
    out = shop("letters", "show", "1")[1]
    assert "x-proof: (hidden)" in out
    assert signature not in out
