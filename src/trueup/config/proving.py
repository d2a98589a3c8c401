"""What trueup.toml says of evidence: where its anchors are kept."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from trueup.config.values import Duration, Names, Options

_MAIL = {"mail", "smtp", "sender"}
_WEBHOOK = {"url", "secrets", "headers"}
_BUCKET = {"bucket", "prefix", "keep", "mode", "endpoint", "region", "key", "secret"}
_WAYS = {"file": {"file"}, "bucket": _BUCKET, "mail": _MAIL, "url": _WEBHOOK}


class AnchorOptions(Options):
    """A place where anchors are kept, `[evidence.anchor.NAME]`: `bucket`, `file`, `mail` or `url`."""

    every: Duration = Field(
        0, description="The least time between two anchors. By default one for whatever is put on record."
    )
    bucket: str | None = Field(None, description="A bucket that speaks S3, with object lock switched on.")
    prefix: str = Field("trueup/", description="Of `bucket`: what names of objects begin with, one for each project.")
    keep: Duration = Field("10y", description="Of `bucket`: for how long each anchor is locked.")
    mode: Literal["compliance", "governance"] = Field(
        "compliance", description="Of `bucket`: whether nobody can lift a lock, or some may."
    )
    endpoint: str | None = Field(None, description="Of `bucket`: the address of a service that is not AWS.")
    region: str | None = Field(None, description="Of `bucket`. By default what the environment tells AWS libraries.")
    key: str | None = Field(None, description="Of `bucket`: the access key, as `${VARIABLE}`; by default as `region`.")
    secret: str | None = Field(None, description="Of `bucket`: what belongs to `key`, as `${VARIABLE}`.")
    file: str | None = Field(None, description="A file to which lines are added, on storage of somebody else.")
    mail: Names = Field((), description="Who gets a mail for each anchor; with `smtp` and `sender`.")
    smtp: str | None = Field(
        None, description="Of `mail`: `smtps://user:${PASSWORD}@host:465`, or `smtp://host:587` with TLS if offered."
    )
    sender: str | None = Field(None, description="Of `mail`: whom it is from.")
    url: str | None = Field(None, description="A webhook to which each anchor is posted as JSON.")
    secrets: Names = Field(
        (), description="Of `url`: what signs posts: base64, as `${VARIABLE}`; several for a change."
    )
    headers: dict[str, str] = Field({}, description="Of `url`: headers of every call.")
    timeout_s: float | None = Field(
        None, gt=0, description="Of `mail` and `url`: seconds for each wait. By default 20 and 10."
    )

    @model_validator(mode="after")
    def _one_way(self) -> AnchorOptions:
        ways = [way for way in _WAYS if getattr(self, way)]
        if len(ways) != 1:
            raise ValueError("a place of anchors has one of bucket, file, mail and url")
        also = {"every", "timeout_s"} if ways[0] in ("mail", "url") else {"every"}
        if alien := sorted(self.model_fields_set - _WAYS[ways[0]] - also):
            raise ValueError(f"{alien[0]} has no meaning for {ways[0]}")
        if ways[0] == "mail" and not (self.smtp and self.sender):
            raise ValueError("mail needs smtp and sender")
        return self


class EvidenceOptions(Options):
    """Evidence: `[evidence]`."""

    name: str = Field("trueup", description="How mails and posts name the project.")
    anchor: dict[str, AnchorOptions] = Field(
        {}, description="Where anchors are kept, by name, each in a table `[evidence.anchor.NAME]`."
    )
