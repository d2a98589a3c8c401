"""Anchors reach a file, a bucket, a mailbox and a webhook by themselves, and show what was rewritten."""

from __future__ import annotations

import email
import email.policy
import json
import smtplib
import socket
import sqlite3
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import boto3
import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult
from botocore.exceptions import ClientError
from moto.server import ThreadedMotoServer
from standardwebhooks import Webhook as Checker
from test_cli_run import trueup  # noqa: F401  a fixture

import trueup as api
from trueup.engine.account import prove
from trueup.errors import ConfigError, SideError, Unreachable
from trueup.model.evidence import Head, anchors_in, append
from trueup.project import Project
from trueup.sides.memory import Memory

Trueup = Callable[..., tuple[int, str, str]]
SECRET = "whsec_dHJ1ZXVwIGFuY2hvcnMgb2YgYSB0ZXN0"
HEAD = Head(7, "ab" * 32)


# ── places ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """A server that speaks S3."""
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def vault(s3: str, request: pytest.FixtureRequest) -> Iterator[api.AnchorBucket]:
    """A bucket with object lock."""
    name = f"vault-{abs(hash(request.node.name))}"
    client(s3).create_bucket(Bucket=name, ObjectLockEnabledForBucket=True)
    place = bucket(s3, name)
    yield place
    place.close()


def client(s3: str) -> Any:
    return boto3.client(
        "s3", endpoint_url=s3, region_name="us-east-1", aws_access_key_id="k", aws_secret_access_key="s"
    )


def bucket(s3: str, name: str, **options: Any) -> api.AnchorBucket:
    return api.AnchorBucket(name, endpoint=s3, key="k", secret="s", keep="1y", **options)


class Mailbox:
    """A mail server on loopback. code: what it answers to a mail."""

    def __init__(self) -> None:
        self.mails: list[email.message.Message] = []
        self.answer = "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        if self.answer.startswith("250"):
            self.mails.append(email.message_from_bytes(envelope.content, policy=email.policy.default))
        return self.answer


def free_port() -> int:
    """The mail server has to be told which."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@pytest.fixture
def mailbox() -> Iterator[tuple[Mailbox, int]]:
    box, port = Mailbox(), free_port()

    def check(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
        return AuthResult(handled=False, success=(data.login, data.password) == (b"ann", b"p@ss:word"))

    controller = Controller(box, "127.0.0.1", port, authenticator=check, auth_require_tls=False)
    controller.start()
    yield box, port
    controller.stop()


class Desk:
    """Keeps what is posted to it. status: what it answers, after so many seconds."""

    def __init__(self) -> None:
        self.posts: list[tuple[dict[str, str], bytes]] = []
        self.status, self.delay_s, self.url = 200, 0.0, ""


@pytest.fixture
def desk() -> Iterator[Desk]:
    found = Desk()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            time.sleep(found.delay_s)
            found.posts.append(({name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(found.status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_port}/t0ken"
    threading.Thread(target=server.serve_forever).start()
    yield found
    server.shutdown()
    server.server_close()


def test_a_bucket_keeps_what_nobody_can_delete(s3: str, vault: api.AnchorBucket) -> None:
    """Given an anchor in a locked bucket, I expect that it can neither be removed nor hidden."""
    assert vault.heads() == []
    vault.give(HEAD, 1_800_000_000_000_000)
    vault.give(HEAD, 1_800_000_000_000_000)
    vault.give(Head(8, "cd" * 32), 1_800_000_000_000_000)
    asked = client(s3)
    first = asked.list_object_versions(Bucket=vault.bucket)["Versions"][-1]
    told = asked.head_object(Bucket=vault.bucket, Key=first["Key"], VersionId=first["VersionId"])
    assert (told["ObjectLockMode"], told["ObjectLockRetainUntilDate"].year) == ("COMPLIANCE", 2028)
    with pytest.raises(ClientError, match="AccessDenied"):
        asked.delete_object(Bucket=vault.bucket, Key=first["Key"], VersionId=first["VersionId"])
    asked.delete_object(Bucket=vault.bucket, Key=first["Key"])
    asked.put_object(Bucket=vault.bucket, Key=first["Key"], Body=b"something else")
    asked.put_object(Bucket=vault.bucket, Key="trueup/readme.txt", Body=b"no anchor")
    assert vault.heads() == [HEAD, Head(8, "cd" * 32)]


def test_more_anchors_than_a_page_holds_are_all_read(vault: api.AnchorBucket, s3: str) -> None:
    asked = client(s3)
    for at in range(1, 1_010):
        asked.put_object(Bucket=vault.bucket, Key=f"trueup/{at:012}-{'ab' * 32}.txt", Body=b"x")
    assert [head.number for head in vault.heads()] == list(range(1, 1_010))


def test_a_bucket_that_can_not_lock_is_refused(s3: str) -> None:
    client(s3).create_bucket(Bucket="plain")
    with pytest.raises(SideError) as error:
        bucket(s3, "plain").give(HEAD, 0)
    assert error.value.message == "the bucket plain answered InvalidRequest."
    with pytest.raises(SideError) as error:
        bucket(s3, "nowhere").heads()
    assert error.value.message == "the bucket nowhere answered NoSuchBucket."
    with pytest.raises(Unreachable):
        bucket("http://127.0.0.1:9", "plain").heads()


def test_a_mail_holds_the_anchor_in_one_line(mailbox: tuple[Mailbox, int]) -> None:
    box, port = mailbox
    place = api.AnchorMail(f"smtp://ann:p%40ss%3Aword@127.0.0.1:{port}", ["audit@example.org"], "books@example.org")
    place.give(HEAD, 1_800_000_000_000_000)
    [mail] = box.mails
    assert (mail["To"], mail["From"]) == ("audit@example.org", "books@example.org")
    assert mail["Subject"] == "trueup: evidence up to entry 7"
    # As it is saved by a reader, headers and all.
    assert anchors_in(mail.as_string().splitlines(), "mail") == [HEAD]
    with pytest.raises(SideError, match="answered 535"):
        api.AnchorMail(f"smtp://ann:wr0ng@127.0.0.1:{port}", "a@x.org", "b@x.org").give(HEAD, 0)
    box.answer = "554 no"
    with pytest.raises(SideError) as error:
        place.give(HEAD, 0)
    assert error.value.message == "the mail server 127.0.0.1 answered 554."
    with pytest.raises(Unreachable):
        api.AnchorMail("smtp://127.0.0.1:9", "a@x.org", "b@x.org").give(HEAD, 0)


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """Of a server at 127.0.0.1, which this process trusts."""
    files = ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")]
    told = ["-subj", "/CN=mail", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2", "-nodes"]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", *told, *files], check=True, capture_output=True)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    return context


@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
def test_a_mail_goes_by_tls_where_the_server_has_it(
    certificate: ssl.SSLContext, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a server that takes nothing without TLS, I expect a mail; given one that nobody vouches for, an error."""
    box, port = Mailbox(), free_port()
    options: dict[str, Any] = (
        {"ssl_context": certificate} if scheme == "smtps" else {"tls_context": certificate, "require_starttls": True}
    )
    controller = Controller(box, "127.0.0.1", port, **options)
    controller.start()
    place = api.AnchorMail(f"{scheme}://127.0.0.1:{port}", "audit@example.org", "books@example.org")
    place.give(HEAD, 0)
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(Unreachable, match="SSLCertVerificationError"):
        place.give(HEAD, 0)
    controller.stop()
    assert len(box.mails) == 1


def test_a_login_is_not_sent_in_the_clear() -> None:
    """Given a server elsewhere without TLS, I expect that it is not told the password."""
    place = api.AnchorMail("smtp://ann:s3cret@mail.example:25", "audit@example.org", "books@example.org")
    with pytest.raises(SideError) as error:
        place._introduce(Plain(), ssl.create_default_context(), safe=False)
    assert error.value.message == "the mail server mail.example offers no TLS for the login."


class Plain(smtplib.SMTP):
    """A connection to a server that offers nothing."""

    def ehlo(self, name: str = "") -> tuple[int, bytes]:
        return 250, b""

    def login(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("the password was sent")


def test_a_post_is_signed_as_others_are(desk: Desk) -> None:
    api.AnchorWebhook(api.Webhook(desk.url, [SECRET]), "books").give(HEAD, 1_800_000_000_000_000)
    [(headers, body)] = desk.posts
    said = Checker(SECRET).verify(body, headers)
    assert (said["type"], said["timestamp"]) == ("evidence.anchored", "2027-01-15T08:00:00+00:00")
    assert (said["data"]["number"], said["data"]["digest"], said["data"]["project"]) == (7, HEAD.digest, "books")
    assert anchors_in([said["data"]["line"]], "post") == [HEAD]
    assert headers["webhook-id"] == "anchor-7-abababababababab"


def test_a_file_is_only_added_to(tmp_path: Path) -> None:
    path = tmp_path / "anchors.txt"
    place = api.AnchorFile(path)
    assert place.heads() == []
    path.write_text("kept by the auditor", "utf-8")
    for head in (HEAD, HEAD, Head(8, "cd" * 32)):
        place.give(head, 0)
    assert place.heads() == [HEAD, Head(8, "cd" * 32)]
    assert path.read_text("utf-8").startswith("kept by the auditor\ntrueup-anchor 7 ")
    with pytest.raises(SideError, match="can't be written: IsADirectoryError"):
        api.AnchorFile(tmp_path).give(HEAD, 0)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: api.AnchorBucket(""), "the anchor's bucket lacks a name, or a time to keep."),
        (lambda: api.AnchorBucket("b", mode="never"), "the anchor's bucket: mode is 'never'."),
        (lambda: api.AnchorBucket("b", key="k"), "the anchor's bucket has a key or a secret, and not the other."),
        (lambda: api.AnchorBucket("b", endpoint="s3"), "the anchor's bucket: endpoint is no HTTP address."),
        (lambda: api.AnchorMail("mail.example", "a@x", "b@x"), "the anchor's smtp is no address."),
        (lambda: api.AnchorMail("smtp://h:x", "a@x", "b@x"), "the anchor's smtp is no address."),
        (lambda: api.AnchorMail("smtp://h", [], "b@x"), "the anchor's mail goes to nobody."),
        (lambda: api.AnchorMail("smtp://h", "a@x\nBcc: e@x", "b@x"), "'a@x\\nBcc: e@x' is no address of mail."),
    ],
)
def test_a_place_that_is_declared_wrongly_is_refused(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        make()
    assert error.value.message == said


# ── by itself ────────────────────────────────────────────────────────────────────────────────────────


def books(folder: Path, **places: Any) -> Project:
    made = Project(f"sqlite:///{folder}/state.db", seed=1)
    rows = [{"id": 1, "name": "a"}]
    made.pair("orders", authority=Memory(rows, key="id"), replica=Memory(rows, key="id"), settle=0)
    for name, place in places.items():
        made.anchor(name, place)
    return made


def test_every_place_is_given_the_head_without_being_asked(
    tmp_path: Path, vault: api.AnchorBucket, mailbox: tuple[Mailbox, int], desk: Desk
) -> None:
    box, port = mailbox
    project = books(
        tmp_path, file=api.AnchorFile(tmp_path / "anchors.txt"), vault=vault,
        mail=api.AnchorMail(f"smtp://127.0.0.1:{port}", "audit@example.org", "books@example.org"),
        desk=api.AnchorWebhook(api.Webhook(desk.url)),
    )  # fmt: skip
    with project:
        project.find("orders").adopt()
    with books(tmp_path) as again:
        head = again.archive.head()
        assert {each.head for each in again.archive.places.known(["file", "vault", "mail", "desk"]).values()} == {head}
    assert api.AnchorFile(tmp_path / "anchors.txt").heads() == vault.heads() == [head]
    assert (len(box.mails), len(desk.posts)) == (1, 1)


def test_a_place_that_stands_still_holds_up_no_run(tmp_path: Path, desk: Desk) -> None:
    desk.delay_s = 3.0
    with books(tmp_path, desk=api.AnchorWebhook(api.Webhook(desk.url))) as project:
        pair = project.find("orders")
        began = time.monotonic()
        for _ in range(3):
            pair.adopt()
        took_s = time.monotonic() - began
        assert project.archive.head().number == 3
        assert took_s < desk.delay_s
    assert 1 <= len(desk.posts) <= 2  # the last of them vouches for all


def test_what_did_not_arrive_is_given_again_and_is_a_condition(tmp_path: Path, desk: Desk) -> None:
    desk.status = 503
    with books(tmp_path, desk=api.AnchorWebhook(api.Webhook(desk.url))) as project:
        project.find("orders").adopt()
        anchoring = project.anchoring()
        wait_for(lambda: project.archive.places.known(["desk"])["desk"].tries >= 1)
        for _ in range(2):
            assert [given.error for given in anchoring.send()] == [
                "the webhook at 127.0.0.1 answered 503. Check its address, and what it takes."
            ]
        assert [each.name for each in project.conditions_of_store()] == ["anchors"]
        desk.status = 200
        assert [given.error for given in anchoring.send()] == [None]
        assert anchoring.send() == []
        assert project.conditions_of_store() == []
        kept = project.archive.places.known(["desk"])["desk"]
        assert (kept.head, kept.tries, kept.failed, kept.error) == (project.archive.head(), 0, 3, "")


def wait_for(happened: Callable[[], bool]) -> None:
    ends = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < ends
        time.sleep(0.02)


def test_of_several_processes_one_gives_it(tmp_path: Path, desk: Desk) -> None:
    with books(tmp_path) as project:
        project.find("orders").adopt()
    desk.delay_s = 0.2
    made = [books(tmp_path, desk=api.AnchorWebhook(api.Webhook(desk.url))) for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        given = [*pool.map(lambda each: each.anchoring().send(), made)]
    assert (len(desk.posts), sum(map(len, given))) == (1, 1)
    for each in made:
        each.close()


def test_a_place_that_rests_is_given_only_the_last(tmp_path: Path) -> None:
    path = tmp_path / "anchors.txt"
    with books(tmp_path) as project:
        project.anchor("file", api.AnchorFile(path), every="1h")
        for _ in range(3):
            project.find("orders").adopt()
        project.anchoring().wake()
        wait_for(lambda: bool(api.AnchorFile(path).heads()))
        project.find("orders").adopt()
        time.sleep(0.2)
        assert len(api.AnchorFile(path).heads()) == 1
        project.anchoring().send()
        assert len(api.AnchorFile(path).heads()) == 2


# ── what anchors show ────────────────────────────────────────────────────────────────────────────────


def rewrite(path: Path, project: Project, *, keep: int, told: str | None) -> None:
    """Writes the chain anew behind entry `keep`, consistently, or leaves out its end where nothing is told."""
    entries = project.archive.entries()
    head = entries[keep - 1].head if keep else Head()
    with closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM trueup_evidence WHERE number > ?", (keep,))
        for each in entries[keep:] if told else ():
            fact = each.fact
            anew = append(head, type(fact)(fact.kind, fact.pair, fact.about, told or ""), each.at_us)
            values = anew.number, fact.kind, fact.pair, fact.about, each.at_us, told, anew.previous, anew.digest
            db.execute("INSERT INTO trueup_evidence VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
            head = anew.head
        db.execute("UPDATE trueup_chain SET number = ?, digest = ?", (head.number, head.digest))
        db.execute("UPDATE trueup_anchored SET number = ?, digest = ?", (head.number, head.digest))
        db.commit()


@pytest.mark.parametrize("kind", ["file", "vault", "mail", "desk"])
@pytest.mark.parametrize(
    ("keep", "told", "wrong"),
    [(0, "{}", "rewritten"), (2, "{}", "rewritten"), (2, None, "missing"), (3, "fork", "forked")],
)
def test_a_chain_that_was_altered_shows_by_what_each_place_keeps(
    tmp_path: Path, vault: api.AnchorBucket, mailbox: tuple[Mailbox, int], desk: Desk, kind: str, keep: int,
    told: str | None, wrong: str,
) -> None:  # fmt: skip
    """Given a rewritten chain, a rewritten end, a removed end, and a chain that went on in two ways, I expect each to
    show by the anchors of every kind of place, and by nothing else."""
    box, port = mailbox
    places: dict[str, Any] = {
        "file": api.AnchorFile(tmp_path / "anchors.txt"), "vault": vault,
        "mail": api.AnchorMail(f"smtp://127.0.0.1:{port}", "audit@example.org", "books@example.org"),
        "desk": api.AnchorWebhook(api.Webhook(desk.url)),
    }  # fmt: skip
    with books(tmp_path, **{kind: places[kind]}) as project:
        for _ in range(4):
            project.archive.put_on_record(fact(len(project.archive.entries()) + 1))
        project.anchoring().send()
        rewrite(tmp_path / "state.db", project, keep=keep, told=None if told == "fork" else told)
        if told == "fork":
            project.archive.put_on_record(fact(99))
            project.anchoring().send()
        said = [mail.as_string() for mail in box.mails] + [json.loads(body)["data"]["line"] for _, body in desk.posts]
        heads = [head for text in said for head in anchors_in(text.splitlines(), "kept")]
        assert prove(project.archive).chain.findings == []
        found = prove(project.archive, heads, project.anchoring().kept()).chain.findings
        # Whoever alters what the store knows of a place shows by that as well.
        assert (4, wrong) in {(each.number, each.wrong) for each in found}


def fact(at: int) -> Any:
    from trueup.model.evidence import RUN, Fact

    return Fact(RUN, "orders", str(at), '{"told":"the truth"}')


def test_a_place_from_which_an_anchor_was_removed_is_named(tmp_path: Path) -> None:
    path = tmp_path / "anchors.txt"
    with books(tmp_path, file=api.AnchorFile(path)) as project:
        project.find("orders").adopt()
        project.anchoring().send()
        wait_for(lambda: project.archive.places.known(["file"])["file"].head.number == 1)
        path.write_text("", "utf-8")
        found = prove(project.archive, (), project.anchoring().kept()).chain.findings
    assert [each.said for each in found] == ["file does not keep the anchor of entry 1 any more, which it was given"]


# ── from a file ──────────────────────────────────────────────────────────────────────────────────────

TOML = """\
[pair.orders]
authority = { path = "a.csv", key = "id" }
replica = { path = "b.csv", key = "id" }
settle = 0
handler = "acting:act"

[evidence]
name = "books"

[evidence.anchor.vault]
bucket = "%(bucket)s"
endpoint = "%(s3)s"
key = "${VAULT_KEY}"
secret = "${VAULT_SECRET}"
keep = "7y"

[evidence.anchor.audit]
mail = ["audit@example.org"]
smtp = "smtp://127.0.0.1:%(port)s"
sender = "books@example.org"

[evidence.anchor.desk]
url = "%(url)s"
secrets = ["${DESK}"]
every = "1d"

[evidence.anchor.share]
file = "anchors.txt"
"""


def test_places_are_declared_and_asked_from_the_command_line(
    trueup: Trueup, vault: api.AnchorBucket, s3: str, mailbox: tuple[Mailbox, int], desk: Desk, monkeypatch: Any  # noqa: F811
) -> None:  # fmt: skip
    for name, value in (("VAULT_KEY", "k"), ("VAULT_SECRET", "s"), ("DESK", SECRET)):
        monkeypatch.setenv(name, value)
    box, port = mailbox
    told = {"bucket": vault.bucket, "s3": s3, "port": port, "url": desk.url}
    Path("trueup.toml").write_text(TOML % told, "utf-8")
    Path("acting.py").write_text("def act(change):\n    pass\n", "utf-8")
    for name in ("a.csv", "b.csv"):
        Path(name).write_text("id,v\n1,a\n", "utf-8")
    assert trueup("adopt", "orders")[0] == 0
    assert [mail["Subject"] for mail in box.mails] == ["books: evidence up to entry 1"]
    assert (len(desk.posts), len(vault.heads()), len(api.AnchorFile("anchors.txt").heads())) == (1, 1, 1)
    code, out, _ = trueup("evidence", "anchor")
    assert (code, out.splitlines()) == (
        0,
        [f"{each}: entry 1 is anchored" for each in ("vault", "audit", "desk", "share")],
    )
    code, out, _ = trueup("evidence", "verify")
    assert (code, "Up to entry 1 it is the chain that was anchored." in out) == (0, True)
    proof = json.loads(trueup("evidence", "verify", "--json")[1])
    assert proof["places"] == [{"place": each, "anchors": 1, "error": None} for each in ("vault", "share")]
    Path("anchors.txt").unlink()
    Path("anchors.txt").mkdir()
    code, out, _ = trueup("evidence", "verify")
    assert (code, "could not  share: the file " in out) == (2, True)
    trueup("run", "orders")
    code, out, _ = trueup("evidence", "anchor")
    assert (code, "vault: entry 2 is anchored" in out, "waits  share: the file " in out) == (2, True, True)
    printed = "".join(trueup("evidence", each)[1] for each in ("list", "anchor", "verify")) + trueup("status")[1]
    assert not any(secret in printed for secret in (SECRET, "t0ken"))


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ("", "a place of anchors has one of bucket, file, mail and url"),
        ('bucket = "b"\nfile = "f"', "a place of anchors has one of bucket, file, mail and url"),
        ('file = "f"\nkeep = "1y"', "keep has no meaning for file"),
        ('mail = "a@x"', "mail needs smtp and sender"),
        ('bucket = "b"\nkeep = "long"', "keep: write seconds"),
    ],
)
def test_a_place_that_does_not_fit_is_named(trueup: Trueup, toml: str, said: str) -> None:  # noqa: F811
    Path("trueup.toml").write_text(TOML.partition("[evidence]")[0] + f"[evidence.anchor.x]\n{toml}\n", "utf-8")
    code, _, err = trueup("status")
    assert (code, said in err) == (2, True)
