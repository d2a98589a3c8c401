"""Anchors in a bucket that speaks S3, each locked until a date: nobody deletes it or writes over it before that.

A lock (https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-lock.html) is of a version of an object. Whoever
may write can put a newer version over it, or a marker that hides it; so all versions are read, and what an anchor says
stands in the name of its object, of which nothing can be changed.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from trueup.environment import expand
from trueup.errors import ConfigError, SideError, Unreachable
from trueup.integrations.anchors import line_of
from trueup.model.duration import duration_us
from trueup.model.evidence import GENESIS, Head

MODES: Final = {"compliance": "COMPLIANCE", "governance": "GOVERNANCE"}
_TIMEOUT_S: Final = 20
_DIGITS: Final = 12


@dataclass(frozen=True)
class AnchorBucket:
    """An object for each anchor, with a lock, in a bucket that has object lock switched on.

    bucket: its name. prefix: before the names of objects, one for each project. keep: how long each is locked. mode:
    `compliance`, where nobody can lift a lock, or `governance`, where some may. endpoint: the address of a service
    that is not AWS. region, key, secret: by default what the environment, or a role, tells the AWS libraries. Texts in
    which `${VARIABLE}` stands for a variable of the environment. ConfigError where something does not fit.
    """

    bucket: str
    prefix: str = "trueup/"
    keep: str | float = "10y"
    mode: Literal["compliance", "governance"] = "compliance"
    endpoint: str | None = None
    region: str | None = None
    key: str | None = field(default=None, repr=False)
    secret: str | None = field(default=None, repr=False)
    _keep_us: int = field(init=False, repr=False)
    _options: dict[str, Any] = field(init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)
    _clients: list[Any] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        what = "the anchor's bucket"
        keep_us = duration_us(self.keep, f"{what}: keep")
        if not self.bucket or not keep_us:
            raise ConfigError(f"{what} lacks a name, or a time to keep.", hint='Write bucket = "vault", keep = "10y".')
        if self.mode not in MODES:
            raise ConfigError(f"{what}: mode is {self.mode!r}.", hint="Write compliance or governance.")
        if (self.key is None) != (self.secret is None):
            raise ConfigError(f"{what} has a key or a secret, and not the other.", hint="Give both, or neither.")
        options: dict[str, Any] = {"region_name": self.region or ("us-east-1" if self.endpoint else None)}
        if self.endpoint is not None:
            endpoint = expand(self.endpoint, f"{what}: endpoint")
            parts = urlsplit(endpoint)
            if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
                raise ConfigError(f"{what}: endpoint is no HTTP address.", hint="Write https://s3.example.org.")
            options["endpoint_url"] = endpoint
        if self.key is not None and self.secret is not None:
            options["aws_access_key_id"] = expand(self.key, f"{what}: key")
            options["aws_secret_access_key"] = expand(self.secret, f"{what}: secret")
        object.__setattr__(self, "_keep_us", keep_us)
        object.__setattr__(self, "_options", options)

    @property
    def who(self) -> str:
        """For messages."""
        return f"the bucket {self.bucket}"

    def give(self, head: Head, at_us: int) -> None:
        """Puts an object and locks it; one that is there already becomes another version."""
        until = dt.datetime.fromtimestamp((at_us + self._keep_us) // 1_000_000, dt.UTC)
        with self._asked() as client:
            client.put_object(
                Bucket=self.bucket, Key=f"{self.prefix}{head.number:0{_DIGITS}}-{head.digest}.txt",
                Body=f"{line_of(head, at_us)}\n".encode(), ContentType="text/plain", ChecksumAlgorithm="SHA256",
                ObjectLockMode=MODES[self.mode], ObjectLockRetainUntilDate=until,
            )  # fmt: skip

    def heads(self) -> list[Head]:
        """All anchors in it, those that a marker hides included."""
        with self._asked() as client:
            pages = client.get_paginator("list_object_versions").paginate(Bucket=self.bucket, Prefix=self.prefix)
            named = {each["Key"] for page in pages for each in page.get("Versions", ())}
        return [head for name in sorted(named) if (head := self._head_in(name)) is not None]

    def _head_in(self, name: str) -> Head | None:
        number, _, digest = name.removeprefix(self.prefix).removesuffix(".txt").partition("-")
        return Head(int(number), digest) if number.isdecimal() and len(digest) == len(GENESIS) else None

    @contextmanager
    def _asked(self) -> Iterator[Any]:
        """A client, whose errors become ours; none of them names an address or a key."""
        client = self._client()
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

        try:
            yield client
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", "an error"))
            raise SideError(f"{self.who} answered {code}.", hint=_HINTS.get(code, _HINT)) from None
        except BotoCoreError as error:
            kind = type(error).__name__
            if kind in ("NoCredentialsError", "PartialCredentialsError", "NoRegionError"):
                raise SideError(f"{self.who} can't be asked ({kind}).", hint="Give key, secret and region.") from None
            raise Unreachable(f"{self.who} does not answer ({kind}).", hint="It is tried again later.") from None

    def _client(self) -> Any:
        with self._lock:
            if not self._clients:
                try:
                    import boto3  # noqa: PLC0415  loaded when an anchor is given
                    from botocore.config import Config  # noqa: PLC0415
                except ModuleNotFoundError as error:
                    hint = "Install it: pip install 'trueup[s3]'"
                    raise ConfigError(f"{error.name} is not installed.", hint=hint) from None
                style = {"addressing_style": "path"} if self.endpoint else {}
                config = Config(
                    connect_timeout=_TIMEOUT_S, read_timeout=_TIMEOUT_S, retries={"max_attempts": 2}, s3=style
                )
                self._clients.append(boto3.session.Session().client("s3", config=config, **self._options))
            return self._clients[0]

    def close(self) -> None:
        """Gives back connections."""
        with self._lock:
            for each in self._clients:
                each.close()
            self._clients.clear()


_HINT: Final = "It has to allow s3:PutObject, s3:PutObjectRetention and s3:ListBucketVersions under the prefix."
_HINTS: Final = {
    "NoSuchBucket": "Create it, with object lock switched on.",
    "InvalidRequest": "Has the bucket object lock? It can only be switched on where versions are kept.",
}
