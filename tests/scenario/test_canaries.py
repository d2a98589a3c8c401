"""No secret, and no value of a redacted field, gets out: canaries are planted everywhere, and all that was written is
searched for them.

Secrets must stand nowhere: not in output, logs, evidence, messages, nor in the state store. Redacted values stand in
the state store, which holds what waits to be written; they must stand in none of the rest. Commands that show a record
to a person who asks (`explain`, `review show`, `diff`) are not searched for values: showing them is their purpose.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from api import Api, Call, Reply, serving
from trueup.cli.logs import Objects
from trueup.cli.main import main

SECRETS: Mapping[str, str] = {
    "DATABASE_PASSWORD": "canary-database-4711",
    "CLIENT_SECRET": "canary-client-4711",
    "API_HEADER": "canary-api-header-4711",
    "API_QUERY": "canary-api-query-4711",
    "WEBHOOK_SECRET": "canary-webhook-4711",
    "HOOK_SECRET": base64.b64encode(b"canary-hook-secret-4711!").decode(),
    "HOOK_TOKEN": "canary-hook-token-4711",
    "ALERT_SECRET": base64.b64encode(b"canary-alert-secret-471!").decode(),
    "ALERT_TOKEN": "canary-alert-token-4711",
    "PING_TOKEN": "canary-ping-token-4711",
    "SENDER_TOKEN": "canary-sender-4711",
    "LITERAL": "canary-literal-4711",
}
# Values of the redacted field `mail`; each begins so.
PERSONAL = "canary.person."

CONFIG = """
[alerts]
every = 0.5
group = 0

[alerts.target.desk]
url = "{url}/alerts/${{ALERT_TOKEN}}"
secrets = ["${{ALERT_SECRET}}"]
headers = {{ X-Token = "${{ALERT_TOKEN}}" }}

[pair.people]
authority = {{ url = "sqlite:///school.db", table = "people", key = "id", version = "v" }}
settle = 0
redact = ["mail"]
ping = "{url}/ping/{literal}"
tries = 1

[pair.people.replica]
api = "{url}/items?sig=${{API_QUERY}}"
key = "id"
columns = {{ id = "integer", name = "text", mail = "text" }}
headers = {{ X-Api = "${{API_HEADER}}" }}
auth = {{ token_url = "{url}/token", client_id = "desk", client_secret = "${{CLIENT_SECRET}}" }}

[pair.hooked]
authority = {{ url = "sqlite:///school.db", table = "people", key = "id", version = "v" }}
settle = 0
redact = ["mail"]
unsynced = "v > 1"
mark = "v = 1"

[pair.hooked.handler]
url = "{url}/hook/${{HOOK_TOKEN}}"
secrets = ["${{HOOK_SECRET}}"]
headers = {{ X-T = "${{HOOK_TOKEN}}" }}

[pair.coded]
authority = {{ url = "sqlite:///school.db", table = "people", key = "id", version = "v" }}
settle = 0
redact = ["mail"]
unsynced = "v > 1"
mark = "v = 1"
tries = 1
handler = "handling:push"

[pair.unreachable]
authority = {{ url = "postgresql://desk:${{DATABASE_PASSWORD}}@127.0.0.1:1/school", table = "people", key = "id" }}
replica = {{ url = "mysql://desk:{literal}@127.0.0.1:1/school", table = "people", key = "id" }}
redact = ["mail"]

[source.school]
style = "github"
secrets = ["${{WEBHOOK_SECRET}}"]

[[source.school.events]]
pair = "people"
values = {{ id = "person.id", mail = "person.mail", v = "person.v" }}
"""
HANDLING = """
def push(change):
    raise ValueError(f"the partner does not know {change.values['mail']}")
"""
LITERAL = SECRETS["LITERAL"]
PAIR = '[pair.a]\nauthority = {{ url = "{}", table = "t", key = "id" }}\n'
FILE = '[pair.a]\nauthority = { path = "a.csv", key = "id" }\n'
BROKEN = {
    "not TOML": f'state = "sqlite:///trueup.db"\n[pair.a]\nauthority = "postgresql://u:{LITERAL}@h/d"]\n',
    "a secret that is no text": f"[source.s]\nstyle = 'github'\nsecrets = {{ a = '{LITERAL}' }}\n{FILE}",
    "an unknown option": PAIR.format(f"postgresql://u:{LITERAL}@h/d") + 'tabel = "t"\n',
    "a hole that is not closed": PAIR.format(f"postgresql://u:${{{LITERAL}@h/d"),
    "no port": PAIR.format(f"postgresql://u:{LITERAL}@h:x/d"),
    "no system": PAIR.format(f"postgrex://u:{LITERAL}@h/d"),
    "state": f'state = "postgresql://u:{LITERAL}@127.0.0.1:1/d"\n{FILE}',
    "state of no system": f'state = "redis://u:{LITERAL}@127.0.0.1:1/d"\n{FILE}',
    "state with a broken host": f'state = "postgresql://u:{LITERAL}@[h/d"\n{FILE}',
    "a webhook secret": f'[source.s]\nstyle = "standard"\nsecrets = ["{LITERAL}%"]\n{FILE}',
}


@dataclass
class World:
    """The project in a folder, its systems, and all that was written."""

    folder: Path
    api: Api
    written: dict[str, str] = field(default_factory=dict)
    codes: dict[str, int] = field(default_factory=dict)

    def execute(self, *statements: str) -> None:
        with closing(sqlite3.connect(self.folder / "school.db")) as db:
            for statement in statements:
                db.execute(statement)
            db.commit()

    def note(self, what: str, text: str) -> None:
        self.written[what] = self.written.get(what, "") + text

    def answer(self, call: Call) -> Reply | None:
        """Takes alerts and pings, refuses what handlers post with the value in the answer."""
        text = call.body.decode()
        if call.path.startswith(("/alerts/", "/ping/")):
            self.note(call.path.split("/")[1] + " that were told", text)
            return Reply(200, {})
        if call.path.startswith("/hook/"):
            return Reply(422, {"error": "no"})
        if "refused" in text and call.path != "/token":
            return Reply(422, {"error": f"unknown: {text} {dict(call.headers)}"})
        return None


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    api = Api(guarded=True, secret=SECRETS["CLIENT_SECRET"])
    with serving(api):
        found = World(tmp_path, api)
        api.before = found.answer
        config = CONFIG.format(url=api.url, literal=SECRETS["LITERAL"])
        (tmp_path / "trueup.toml").write_text(config, "utf-8")
        (tmp_path / "handling.py").write_text(HANDLING, "utf-8")
        monkeypatch.chdir(tmp_path)
        monkeypatch.delenv("TRUEUP_PROJECT", raising=False)
        for name, secret in SECRETS.items():
            monkeypatch.setenv(name, secret)
        found.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, mail TEXT, v INTEGER)")
        found.execute(
            *(f"INSERT INTO people VALUES ({n}, 'n{n}', '{PERSONAL}{n}@example.org', 1)" for n in range(1, 9))
        )
        api.rows = [{"id": n, "name": f"n{n}", "mail": f"{PERSONAL}{n}@example.org"} for n in range(1, 9)]
        yield found


@pytest.fixture
def trueup(world: World, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Callable[..., str]:
    caplog.set_level(logging.DEBUG, "trueup")

    def run(*arguments: str, expect: int | None = None) -> str:
        what = "trueup " + " ".join(each.replace(SECRETS["LITERAL"], "…") for each in arguments)
        code = main(list(arguments), standalone=False)
        captured = capsys.readouterr()
        said = captured.out + captured.err + caplog.text + "\n".join(map(Objects().format, caplog.records))
        caplog.clear()
        world.note(what, said)
        world.codes[what] = code
        if expect is not None:
            assert code == expect, said
        return said

    return run


def forms(secret: str) -> set[str]:
    """How a text may be written."""
    quoted = urllib.parse.quote(secret, safe="")
    return {secret, quoted, base64.b64encode(secret.encode()).decode().rstrip("=")[:-2]}


def told(text: str, canaries: Mapping[str, str]) -> list[str]:
    """The canaries that a text holds."""
    return [name for name, secret in canaries.items() if any(form in text for form in forms(secret))]


def leaks(written: Mapping[str, str], canaries: Mapping[str, str]) -> list[str]:
    return [f"{what}: {', '.join(found)}" for what, text in written.items() if (found := told(text, canaries))]


def on_disk(folder: Path) -> dict[str, str]:
    """What the program wrote to files, but for what was there before it."""
    given = {"trueup.toml", "handling.py", "school.db"}
    files = [each for each in folder.rglob("*") if each.is_file() and each.name not in given]
    return {each.name: each.read_bytes().decode("latin-1") for each in files if each.suffix != ".pyc"}


def post(url: str, body: bytes, *, secret: str = SECRETS["WEBHOOK_SECRET"]) -> int:
    token = SECRETS["SENDER_TOKEN"]
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    headers = {
        "X-Hub-Signature-256": f"sha256={signature}", "Authorization": f"Bearer {token}", "X-Gitlab-Token": token,
        "X-Api-Key": token, "Cookie": f"session={token}", "X-GitHub-Delivery": hashlib.sha256(body).hexdigest(),
    }  # fmt: skip
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_the_search_finds_what_it_looks_for() -> None:
    secret = SECRETS["LITERAL"]
    assert told(f"postgresql://u:{secret}@h", SECRETS) == ["LITERAL"]
    assert told(base64.b64encode(secret.encode()).decode(), SECRETS) == ["LITERAL"]
    assert told("nothing", SECRETS) == []


def test_commands_runs_errors_and_evidence_hold_no_canary(world: World, trueup) -> None:
    trueup("adopt", "people", expect=0)
    world.execute(
        f"UPDATE people SET mail = '{PERSONAL}new@example.org', v = 2 WHERE id = 1",
        f"UPDATE people SET mail = '{PERSONAL}refused@example.org', v = 2 WHERE id = 2",
        "UPDATE people SET mail = NULL, v = 2 WHERE id = 7",
    )
    world.api.rows[2]["mail"] = f"{PERSONAL}edited@example.org"
    trueup("run", "people", "--dry-run")
    trueup("run", "people")
    for pair in ("hooked", "coded"):
        trueup("run", pair)
        world.execute(f"UPDATE people SET mail = '{PERSONAL}{pair}@example.org', v = 3 WHERE id = 4")
        trueup("run", pair)
    trueup("run", "unreachable", expect=2)
    trueup("review", "list")
    trueup("review", "decide", "1", "take-authority", "--by", "ana", "--reason", "checked")
    for command in (("status",), ("status", "--json"), ("doctor",), ("alerts",), ("alerts", "test"), ("alerts", "send"),
                    ("evidence", "list"), ("evidence", "show", "2"), ("evidence", "verify"), ("letters",),
                    ("schedule",), ("retry", "people"), ("retry", "coded"), ("run", "coded"),
                    ("pause", "--all"), ("resume", "--all"), ("worker", "nobody"),
                    ("evidence", "export", "--to", "chain.jsonl"),
                    ("evidence", "export", "--format", "html", "--to", "page.html")):  # fmt: skip
        trueup(*command)
    # The test itself sees the world: what must be secret was used, and what must be hidden was written.
    lines = "".join(world.written.values())
    for event in ("run_began", "phase_ended", "run_ended", "job_done", "job_parked", "case_opened", "case_decided",
                  "system_held"):  # fmt: skip
        assert f'"event": "{event}"' in lines, event
    assert any(SECRETS["API_HEADER"] in call.headers.get("x-api", "") for call in world.api.calls)
    assert any(call.path == f"/ping/{SECRETS['LITERAL']}" for call in world.api.calls)
    assert any(SECRETS["HOOK_TOKEN"] in call.path for call in world.api.calls)
    assert f"{PERSONAL}new@example.org" in {row["mail"] for row in world.api.rows}
    files = on_disk(world.folder)
    assert {"trueup.db", "chain.jsonl", "page.html"} <= set(files)
    assert "redacted" in files["chain.jsonl"]
    assert leaks(world.written | files, SECRETS) == []
    exported = {name: files[name] for name in ("chain.jsonl", "page.html")}
    assert leaks(world.written | exported, {"mail": PERSONAL}) == []


@pytest.mark.parametrize("name", BROKEN)
def test_errors_of_declarations_hold_no_canary(world: World, trueup, name: str) -> None:
    (world.folder / "trueup.toml").write_text(BROKEN[name], "utf-8")
    for command in (("status",), ("run", "a"), ("doctor",)):
        trueup(*command)
    assert 2 in world.codes.values()
    assert leaks(world.written, SECRETS) == []


@pytest.mark.parametrize(
    "left", ["postgresql://u:{}@127.0.0.1:1/d#t", "mysql://u:{}@127.0.0.1:1/d#t", "sqlserver://u:{}@h/d#t",
             "postgresql://u:{}@[broken/d#t", "postgresql://u@127.0.0.1:1/d?password={}#t"],
)  # fmt: skip
def test_a_diff_that_fails_holds_no_canary(world: World, trueup, left: str) -> None:
    (world.folder / "right.csv").write_text("id,name\n1,a\n", "utf-8")
    for more in ((), ("--json",), ("--explain",)):
        trueup("diff", left.format(SECRETS["LITERAL"]), "right.csv", "--key", "id", *more, expect=2)
    assert leaks(world.written, SECRETS) == []


@pytest.mark.slow
def test_serving_webhooks_and_work_hold_no_canary(world: World) -> None:
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    logs = ["--log-format", "json", "--log-level", "debug"]
    command = [sys.executable, "-m", "trueup", *logs, "serve", "--port", "0", "--every", "0.2"]
    process = subprocess.Popen(
        command, cwd=world.folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        first = ""
        while (line := process.stdout.readline()) and "http://" not in line:
            first += line
        found = re.search(r"http://[^/\s]+", line)
        assert found is not None, first
        base = found[0]
        url = f"{base}/events/school?token={SECRETS['SENDER_TOKEN']}"
        mail = f"{PERSONAL}event@example.org"
        good = json.dumps({"person": {"id": 1, "mail": mail, "v": 5}}).encode()
        assert post(url, good) == 200
        assert post(url, good, secret="wrong") == 401
        assert post(url, b'{"person": {"mail": "' + mail.encode() + b'"') == 400
        assert post(url, json.dumps({"person": {"mail": mail}}).encode()) == 422
        assert post(f"{base}/events/{SECRETS['SENDER_TOKEN']}", good) == 404
        for path in ("/healthz", "/healthz/live", "/healthz/ready", "/metrics"):
            with suppress(urllib.error.HTTPError), urllib.request.urlopen(base + path, timeout=20) as answer:
                world.note(path, answer.read().decode())
        threading.Event().wait(1.5)
        process.send_signal(signal.SIGTERM)
        out, error = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    world.note("serve", first + line + out + error)
    assert process.returncode == 0, error
    assert '"event": "job_' in error
    files = on_disk(world.folder)
    assert mail in files["trueup.db"] + files.get("trueup.db-wal", ""), "a dead letter keeps its body"
    assert leaks(world.written | files, SECRETS) == []
    assert leaks(world.written, {"mail": PERSONAL}) == []
