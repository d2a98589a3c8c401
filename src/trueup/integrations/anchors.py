"""Places where anchors are kept: a file, a mailbox, a webhook. Buckets are in `trueup.integrations.bucket`."""

from __future__ import annotations

import datetime as dt
import os
import smtplib
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, unquote, urlsplit

from trueup.environment import expand
from trueup.errors import BadInput, ConfigError, SideError, Unreachable
from trueup.integrations.targets import Webhook
from trueup.model.evidence import Head, anchor_line, anchors_in

ANCHORED: Final = "evidence.anchored"
_SMTP_PORT: Final = 587
_SMTPS_PORT: Final = 465
_HERE: Final = ("localhost", "127.0.0.1", "::1")


def line_of(head: Head, at_us: int) -> str:
    """An anchor as one line, with its time."""
    return anchor_line(head, moment(at_us))


def moment(at_us: int) -> str:
    """A time as ISO 8601 has it, to the second, UTC."""
    return dt.datetime.fromtimestamp(at_us // 1_000_000, dt.UTC).isoformat()


@dataclass(frozen=True)
class AnchorFile:
    """A file to which a line is added for each anchor. It has to lie where whoever writes the state store can't write.

    path: its folder has to exist.
    """

    path: str | os.PathLike[str]

    @property
    def who(self) -> str:
        """For messages."""
        return f"the file {self.path}"

    def give(self, head: Head, at_us: int) -> None:
        """Adds a line, on disk when this returns, unless the file ends with this anchor already."""
        try:
            with Path(self.path).open("a+", encoding="utf-8") as file:
                file.seek(0)
                *_, last = ["", *file]
                if anchor_line(head, "").strip() in last:
                    return
                file.write(("" if last.endswith("\n") or not last else "\n") + line_of(head, at_us) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except (OSError, UnicodeDecodeError) as error:
            raise SideError(f"{self.who} can't be written: {type(error).__name__}.", hint=_FILE_HINT) from None

    def heads(self) -> list[Head]:
        """All anchors in it; none where there is no file yet."""
        try:
            text = Path(self.path).read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError) as error:
            raise SideError(f"{self.who} can't be read: {type(error).__name__}.", hint=_FILE_HINT) from None
        try:
            return anchors_in(text.splitlines(), self.who)
        except BadInput:
            return []

    def close(self) -> None:
        """Nothing stays open between anchors."""


_FILE_HINT: Final = "Its folder has to exist, and the file has to be text that may be added to."


@dataclass(frozen=True)
class AnchorMail:
    """A mail for each anchor.

    smtp: `smtps://user:password@host:465`, or `smtp://host:587`, which turns to TLS where the server offers it; a login
    needs TLS, unless the server is this machine. A text in which `${VARIABLE}` stands for a variable of the
    environment; what is special in a password is percent-encoded. timeout_s: for each wait. project: how the mail names
    it. ConfigError where something does not fit.
    """

    smtp: str = field(repr=False)
    to: Sequence[str]
    sender: str
    timeout_s: float = 20.0
    project: str = "trueup"
    # With the variables put in.
    _server: SplitResult = field(init=False, repr=False)

    def __post_init__(self) -> None:
        server = urlsplit(expand(self.smtp, "the anchor's smtp"))
        try:
            usable = server.scheme in ("smtp", "smtps") and server.hostname and (server.port or 1)
        except ValueError:
            usable = False
        if not usable:
            raise ConfigError("the anchor's smtp is no address.", hint="Write smtps://user:password@host:465.")
        people = [self.to] if isinstance(self.to, str) else list(self.to)
        for each in (*people, self.sender):
            if "@" not in each or any(character.isspace() for character in each):
                raise ConfigError(f"{each!r} is no address of mail.", hint="Write one such as audit@example.org.")
        if not people:
            raise ConfigError("the anchor's mail goes to nobody.", hint='Name somebody: to = ["audit@example.org"].')
        object.__setattr__(self, "to", tuple(people))
        object.__setattr__(self, "_server", server)

    @property
    def who(self) -> str:
        """For messages: the server, because the rest of an address may hold a password."""
        return f"the mail server {self._server.hostname}"

    def give(self, head: Head, at_us: int) -> None:
        """Hands a mail over. Two of the same anchor have the same Message-ID."""
        message = EmailMessage()
        message["Subject"] = f"{self.project}: evidence up to entry {head.number}"
        message["From"], message["To"] = self.sender, ", ".join(self.to)
        message["Message-ID"] = f"<anchor-{head.number}-{head.digest}@trueup>"
        message["Date"] = dt.datetime.fromtimestamp(at_us // 1_000_000, dt.UTC)
        # Not wrapped: the line has to stay one line.
        message.set_content(_MAIL.format(line=line_of(head, at_us)), cte="7bit")
        try:
            with self._connected() as server:
                refused = server.send_message(message)
        except smtplib.SMTPResponseException as error:
            code, hint = error.smtp_code, "Check the login, the sender and the recipients."
            raise SideError(f"{self.who} answered {code}.", hint=hint) from None
        except smtplib.SMTPRecipientsRefused:
            raise SideError(f"{self.who} takes mail for none of them.", hint="Check the recipients.") from None
        except (OSError, smtplib.SMTPException) as error:
            kind = type(error).__name__
            raise Unreachable(f"{self.who} does not answer ({kind}).", hint="It is tried again later.") from None
        if refused:
            raise SideError(f"{self.who} refused {len(refused)} of the recipients.", hint="Check who they are.")

    def _connected(self) -> smtplib.SMTP:
        server, host, wait_s = self._server, str(self._server.hostname), self.timeout_s
        context = ssl.create_default_context()
        if server.scheme == "smtps":
            port = server.port or _SMTPS_PORT
            connected: smtplib.SMTP = smtplib.SMTP_SSL(host, port, timeout=wait_s, context=context)
        else:
            connected = smtplib.SMTP(host, server.port or _SMTP_PORT, timeout=wait_s)
        try:
            self._introduce(connected, context, safe=server.scheme == "smtps" or host in _HERE)
        except BaseException:
            connected.close()
            raise
        return connected

    def _introduce(self, connected: smtplib.SMTP, context: ssl.SSLContext, *, safe: bool) -> None:
        """TLS and the login. safe: nobody between reads the login."""
        server = self._server
        connected.ehlo()
        if server.scheme == "smtp" and connected.has_extn("starttls"):
            connected.starttls(context=context)
            safe = True
        if server.username is not None:
            if not safe:
                raise SideError(f"{self.who} offers no TLS for the login.", hint="Use smtps://, or no login.")
            connected.login(unquote(server.username), unquote(server.password or ""))

    def close(self) -> None:
        """Nothing stays open between mails."""


_MAIL: Final = """\
This mail vouches for an account of reconciliation. Keep it.

{line}

Save it as a text and compare it with the account at any time:
trueup evidence verify --anchors FILE
"""


@dataclass(frozen=True)
class AnchorWebhook:
    """Posts each anchor as JSON to a webhook, signed as Standard Webhooks are where it has secrets.

    The document: `type` (`evidence.anchored`), `timestamp`, `data` (`number`, `digest`, `line`, `project`).
    """

    webhook: Webhook
    project: str = "trueup"

    @property
    def who(self) -> str:
        """For messages."""
        return self.webhook.who

    def give(self, head: Head, at_us: int) -> None:
        """Posts it. The `webhook-id` is the same whenever the same anchor is given."""
        data: dict[str, Any] = {
            "number": head.number, "digest": head.digest, "line": line_of(head, at_us), "project": self.project,
        }  # fmt: skip
        document = {"type": ANCHORED, "timestamp": moment(at_us), "data": data}
        self.webhook.post(f"anchor-{head.number}-{head.digest[:16]}", document)

    def close(self) -> None:
        """Nothing stays open between anchors."""
