"""trueup keeps two systems in agreement.

The public names load at their first use, so that `import trueup` and `trueup --help` stay fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Project": "trueup.project",
    "load": "trueup.loading",
    "Sql": "trueup.sides.sql",
    "File": "trueup.sides.files",
    "Memory": "trueup.sides.memory",
    "Delta": "trueup.sides.lake",
    "Iceberg": "trueup.sides.lake",
    "Spark": "trueup.sides.spark",
    "Http": "trueup.sides.http",
    "Basic": "trueup.sides.http",
    "Bearer": "trueup.sides.http",
    "OAuth2ClientCredentials": "trueup.sides.http",
    "Rows": "trueup.sides.callable",
    "Url": "trueup.integrations.url",
    "Apprise": "trueup.integrations.targets",
    "Webhook": "trueup.integrations.targets",
    "AnchorBucket": "trueup.integrations.bucket",
    "AnchorFile": "trueup.integrations.anchors",
    "AnchorMail": "trueup.integrations.anchors",
    "AnchorWebhook": "trueup.integrations.anchors",
    "decimal": "trueup.pair",
    "number": "trueup.pair",
    "text": "trueup.pair",
    "timestamp": "trueup.pair",
    "Change": "trueup.model.change",
    "Outcome": "trueup.model.change",
    "Drift": "trueup.model.drift",
    "Verdict": "trueup.model.drift",
    "Retry": "trueup.model.outcome",
    "RateLimited": "trueup.model.outcome",
    "WaitFor": "trueup.model.outcome",
    "Reject": "trueup.model.outcome",
    "TrueupError": "trueup.errors",
}

if TYPE_CHECKING:
    from trueup.engine import context
    from trueup.errors import TrueupError
    from trueup.integrations.anchors import AnchorFile, AnchorMail, AnchorWebhook
    from trueup.integrations.bucket import AnchorBucket
    from trueup.integrations.targets import Apprise, Webhook
    from trueup.integrations.url import Url
    from trueup.loading import load
    from trueup.model.change import Change, Outcome
    from trueup.model.drift import Drift, Verdict
    from trueup.model.outcome import RateLimited, Reject, Retry, WaitFor
    from trueup.pair import decimal, number, text, timestamp
    from trueup.project import Project
    from trueup.sides.callable import Rows
    from trueup.sides.files import File
    from trueup.sides.http import Basic, Bearer, Http, OAuth2ClientCredentials
    from trueup.sides.lake import Delta, Iceberg
    from trueup.sides.memory import Memory
    from trueup.sides.spark import Spark
    from trueup.sides.sql import Sql

__all__ = [
    "AnchorBucket", "AnchorFile", "AnchorMail", "AnchorWebhook", "Apprise", "Basic", "Bearer", "Change", "Delta",
    "Drift", "File", "Http", "Iceberg", "Memory", "OAuth2ClientCredentials", "Outcome", "Project", "RateLimited",
    "Reject", "Retry", "Rows", "Spark", "Sql", "TrueupError", "Url", "Verdict", "WaitFor", "Webhook", "__version__",
    "context", "decimal", "load", "number", "text", "timestamp",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "context":
        return importlib.import_module("trueup.engine.context")
    if name not in _HOMES:
        raise AttributeError(f"module 'trueup' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
