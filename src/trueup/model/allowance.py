"""What a system says is left of its limit, in the headers of its answers.

Read are the two headers that many APIs send (such as X-RateLimit-Remaining and X-RateLimit-Reset), and the field
RateLimit of draft-ietf-httpapi-ratelimit-headers: `"default";r=50;t=30`.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from trueup.model.retry_after import LONGEST_US, http_date_us

# How long what is left counts where the system does not say until when.
UNSAID_US: Final = 60_000_000
# Resets that are said a little differently from answer to answer are one reset.
SAME_US: Final = 2_000_000
_STRUCTURED: Final = "ratelimit"
_LEFT = re.compile(r";\s*r=(\d{1,15})", re.ASCII)
_LASTS = re.compile(r";\s*t=(\d{1,15})", re.ASCII)
_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,9})?\Z", re.ASCII)
_EPOCH_S: Final = 1e9
_EPOCH_MS: Final = 1e12


@dataclass(frozen=True, slots=True)
class Said:
    """What an answer said: so much is left for so long."""

    left: float
    lasts_us: int


@dataclass(frozen=True, slots=True)
class Allowance:
    """What is left until a reset, as far as the system said, less what was spent since. of: the most that was left."""

    left: float
    of: float
    until_us: int

    def heard(self, said: Said, now_us: int) -> Allowance:
        """The same after another answer: a later reset begins anew, else the stricter of both counts."""
        if self.until_us <= now_us or now_us + said.lasts_us > self.until_us + SAME_US:
            return begun(said, now_us)
        return Allowance(min(self.left, said.left), max(self.of, said.left), self.until_us)


def begun(said: Said, now_us: int) -> Allowance:
    """What is known after a first answer."""
    return Allowance(said.left, said.left, now_us + said.lasts_us)


def said_in(headers: Mapping[str, str], remaining: str, reset: str | None, now_us: int) -> Said | None:
    """What these headers say, or None where nothing readable is said. Never raises.

    headers: names in lower case. remaining, reset: names of the two headers. now_us: by the system's clock.
    """
    text = headers.get(remaining.lower(), "")
    if remaining.lower() == _STRUCTURED:
        return _strictest(text)
    left = number_in(text)
    if left is None:
        return None
    lasts_us = None if reset is None else _lasts_us(headers.get(reset.lower(), ""), now_us)
    return Said(left, UNSAID_US if lasts_us is None else min(lasts_us, LONGEST_US))


def number_in(text: str | None) -> float | None:
    """A number of at least 0 in a header; None where it is none."""
    found = _NUMBER.match((text or "").strip())
    return None if found is None else float(found[0])


def _strictest(text: str) -> Said | None:
    """Of several policies in one field, that of which the least is left."""
    said = []
    for policy in text.split(","):
        left, lasts = _LEFT.search(policy), _LASTS.search(policy)
        if left is not None:
            lasts_us = UNSAID_US if lasts is None else int(lasts[1]) * 1_000_000
            said.append(Said(float(left[1]), min(lasts_us, LONGEST_US)))
    return min(said, key=lambda each: (each.left, -each.lasts_us), default=None)


def _lasts_us(text: str, now_us: int) -> int | None:
    """Until a reset that is said as seconds from now, as seconds or milliseconds of the epoch, or as a date."""
    number = number_in(text)
    if number is not None:
        if number < _EPOCH_S:
            return math.ceil(number) * 1_000_000
        scale = 1_000_000 if number < _EPOCH_MS else 1_000
        return max(0, math.ceil(number * scale) - now_us)
    at_us = http_date_us(text)
    if at_us is None:
        at_us = _iso_us(text)
    return None if at_us is None else max(0, at_us - now_us)


def _iso_us(text: str) -> int | None:
    try:
        at = dt.datetime.fromisoformat(text.strip())
        return None if at.tzinfo is None else math.ceil(at.timestamp()) * 1_000_000
    except (ValueError, OverflowError):
        return None
