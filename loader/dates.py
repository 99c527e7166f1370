"""Dates as feeds and sitemaps write them: RFC 822 with its many slips, W3C Datetime (ISO 8601) with its own.

The standard library reads what the standards allow; here is what is met besides: zones by the names that RFC 822 does
not know, hours of 24:00, single digits, a blank for the T, words behind the date. A date without a zone is UTC: an
error of hours, where none at all would lose the evidence.
"""

from __future__ import annotations

import calendar
import re
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_tz

_LONGEST = 64
_ISO = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:(?:T|t|\s+)(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d+)?)?\s*([Zz]|UTC|GMT|[+-]\d{2}:?\d{2}|[+-]\d{2})?)?$"
)
_ZONES = {
    "WET": 0, "WEST": 1, "BST": 1, "CET": 1, "MET": 1, "CEST": 2, "MEST": 2, "EET": 2, "EEST": 3, "MSK": 3, "SGT": 8,
    "HKT": 8, "AWST": 8, "JST": 9, "KST": 9, "AEST": 10, "AEDT": 11, "NZST": 12, "NZDT": 13, "BRT": -3, "AKST": -9,
    "AKDT": -8, "HST": -10,
}  # fmt: skip
"""Hours east of Greenwich of zones that feeds name and RFC 822 does not; ambiguous names (IST, CST in Asia) are not
here."""


_COLON = re.compile(r"([+-]\d\d):(\d\d)$")
"""a zone as ISO 8601 writes it, behind an RFC 822 date"""
_NO_DATE = re.compile(r"\s0001\s")
"""the year 1 is what .NET makes of no date; RFC 822 would have it stand for 2001"""


def w3c_time(text: str) -> float | None:
    """Seconds since 1970 of a W3C Datetime (YYYY, YYYY-MM, ... , fractions of a second); None where it is none.

    A day stands for its first moment.
    """
    text = text.strip()
    if len(text) > _LONGEST:
        return None
    if len(text) in (4, 7) and text.isascii():
        text += "-01-01"[: 10 - len(text)]
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return _loose_iso(text)
    return _seconds(when)


def _loose_iso(text: str) -> float | None:
    found = _ISO.match(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    late = hour == 24 and not minute and not second  # midnight at the end of the day
    try:
        when = datetime(year, month, day, 0 if late else hour, minute, min(second, 59), tzinfo=_zone(found[7]))
        return _seconds(when + timedelta(days=late))
    except (ValueError, OverflowError):
        return None


def _zone(text: str | None) -> timezone:
    if not text or text[0] not in "+-":
        return UTC
    minutes = int(text[1:3]) * 60 + int(text[3:].lstrip(":") or 0)
    return timezone(timedelta(minutes=minutes if text[0] == "+" else -minutes))


def _seconds(when: datetime) -> float:
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def feed_time(text: str) -> float | None:
    """Seconds since 1970 of an RFC 822 date or a W3C Datetime; None where it is neither."""
    text = text.strip()
    if len(text) > _LONGEST or _NO_DATE.search(text):
        return None
    if text[:4].isdigit():
        return w3c_time(text)
    parsed = parsedate_tz(_COLON.sub(r"\1\2", text))
    if parsed is None:
        return None
    offset = parsed[9]
    if offset is None or _named(text) is not None:
        offset = round(3600 * (_named(text) or 0))
    try:
        return float(calendar.timegm(_day(parsed)) - offset)
    except (ValueError, OverflowError):
        return None


def _day(parsed: tuple[int | None, ...]) -> tuple[int, int, int, int, int, int]:
    """Checked by datetime: the library lets a 32nd day pass. 24:00 is the next midnight."""
    year, month, day, hour, minute, second = (part or 0 for part in parsed[:6])
    late = hour == 24 and not minute and not second
    when = datetime(year, month, day, 0 if late else hour, minute, min(second, 59)) + timedelta(days=late)
    return when.year, when.month, when.day, when.hour, when.minute, when.second


def _named(text: str) -> int | None:
    """The zone that the date ends with, if it is one that only we know."""
    return _ZONES.get(text.rsplit(None, 1)[-1].strip("()").upper()) if text else None
