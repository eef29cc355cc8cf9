"""The time that a busy endpoint asks to wait, from its headers and its error's text. Pure."""

from __future__ import annotations

import email.utils
import math
import re
from collections.abc import Mapping
from datetime import datetime, timezone

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)(?:illi)?(?:ec(?:ond)?s?|in(?:ute)?s?|(?:ou)?rs?|ays?)?"
_PART += r"(?![a-z])[\s,]*"
_DURATION = re.compile(rf"(?:{_PART})+", re.I)
# In an error's text: "Please try again in 1m30.5s", "retryDelay": "34s".
_IN_WORDS = re.compile(rf"(?:try again|retry|wait|reset)[^.\d]{{0,30}}?((?:{_PART})+)", re.I)
# "retry_after": 12, or a header that is quoted in a text.
_NAMED = re.compile(r"(?:retry[_-]after|x-ratelimit-reset)\W{1,5}(\d+(?:\.\d+)?)\b", re.I)
_RESET = re.compile(r"(?:x-|anthropic-)?rate-?limit(?:bysize)?-(?:\w+-)*reset(?:-\w+)*")
_WORDS = 4000  # characters of an error's text that are searched


def asked_wait(headers: Mapping[str, str], text: str, now: float) -> float | None:
    """Return the seconds that an error asks to wait, 0.0 or more; None if it does not say.

    Sources are Retry-After (seconds, a date, a duration such as "1m30s"), the times at which
    used-up limits are reset (the latest), and the error's text.

    Args:
        headers: those of the response, in any case.
        text: the error's message.
        now: the time, in seconds since 1970.
    """
    plain = {name.lower(): value for name, value in headers.items()}
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):  # both are Azure's
        if (given := _seconds(plain.get(name, ""), now)) is not None:
            return given / 1000
    if (given := _seconds(plain.get("retry-after", ""), now)) is not None:
        return given
    resets = [
        seconds
        for name, value in plain.items()
        if _RESET.fullmatch(name)
        and _is_used_up(plain.get(name.replace("reset", "remaining"), "0"))
        and (seconds := _seconds(value, now)) is not None
    ]
    if resets:
        return max(resets)
    said = _IN_WORDS.search(text[:_WORDS]) or _NAMED.search(text[:_WORDS])
    return _seconds(said[1], now) if said else None


def _is_used_up(remaining: str) -> bool:
    return not re.fullmatch(r"0*[1-9]\d*(\.\d+)?", remaining.strip())


def _seconds(text: str, now: float) -> float | None:
    """Return the seconds to wait, from a number, a duration, a date, or a time since 1970."""
    text = text.strip()
    try:
        value = float(text)
    except ValueError:
        if _DURATION.fullmatch(text):
            parts = re.findall(_PART, text, re.I)
            return math.fsum(float(number) * _UNITS[unit.lower()] for number, unit in parts)
        return _until(text, now)
    if not math.isfinite(value):
        return None
    since_1970 = value / 1000 if value > 1e11 else value
    return max(0.0, since_1970 - now if since_1970 > 1e9 else value)


def _until(date: str, now: float) -> float | None:
    """Return the seconds until a date of HTTP or of ISO 8601; None if it is neither."""
    try:
        if parsed := email.utils.parsedate_tz(date):
            return max(0.0, email.utils.mktime_tz(parsed) - now)
        moment = datetime.fromisoformat(date.replace("Z", "+00:00"))
        zone = moment.tzinfo or timezone.utc
        return max(0.0, moment.replace(tzinfo=zone).timestamp() - now)
    except (ValueError, OverflowError):
        return None
