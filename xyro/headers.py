"""Headers: those of an answer, read; those of a conditional request, made. Pure.

Where a header stands twice, the first one counts (but X-Robots-Tag, which adds up).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Final

from xyro.wire.messages import FetchOrder

READ_HEADERS: Final = (
    *("Accept-Signature", "Age", "Cache-Control", "Content-Encoding", "Content-Length", "Content-Type", "Date"),
    *("ETag", "Expires", "Keep-Alive", "Link", "Last-Modified", "Location", "Retry-After", "Transfer-Encoding"),
    *("X-Robots-Tag", "cf-mitigated", "x-amzn-waf-action", "x-vercel-mitigated"),
)
"""All headers that anything here asks for: fast_client.py keeps no others."""
DAY = 86_400.0
YEAR = 365 * DAY
MAX_VALIDATOR = 1024
"""Longest ETag or Last-Modified (characters) that is stored and sent back."""

_CHARSET = re.compile(r"charset\s*+=\s*+[\"']?\s*+([A-Za-z0-9][A-Za-z0-9._:+()-]{0,39}+)(?=[\s\"';,]|$)", re.IGNORECASE)
"""A label of the registry's form: it is stored and shown, so what stands in it has to be harmless."""
_MIME = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+*/-]{0,99}").fullmatch
_WITH_VALUE: Final = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
"""Words of X-Robots-Tag that a colon follows, which otherwise ends an agent's name."""
_DIRECTIVE = re.compile(r"(?:^|,)\s*(no-cache|no-store|max-age|s-maxage)\s*(?:=\s*\"?(\d{1,12})\"?)?\s*(?=,|$)")
_NAMED: Final = frozenset({401, 403, 404, 410, 429})
_LENGTH_NAME = b"\r\ncontent-length"
_LENGTH_LINE = re.compile(rb"\r\nContent-Length[ \t]*:([ \t\d,]*)(?=\r\n)", re.IGNORECASE)


def conditions(order: FetchOrder) -> dict[str, str] | None:
    """The validators of the last answer, verbatim (RFC 9110 13.1): both, the server chooses."""
    if not order.etag and not order.last_modified:
        return None
    conditions = {}
    if order.etag:
        conditions["If-None-Match"] = order.etag
    if order.last_modified:
        conditions["If-Modified-Since"] = order.last_modified
    return conditions


def validator(headers: Mapping[str, str], name: str) -> str:
    """A header worth sending back, or an empty string: it must be harmless in a request of ours."""
    value = headers.get(name, "")
    return value if len(value) <= MAX_VALIDATOR and value.isascii() and value.isprintable() else ""


def failure_of(status: int) -> str:
    """The failure class of a status that brings nothing to read; empty for the others."""
    if 200 <= status < 300 and status != 206:
        return ""
    if status in _NAMED:
        return f"http-{status}"
    if status in (206, 304):
        return f"unasked-{status}"
    if 500 <= status < 600:
        return "http-5xx"
    return "bad-status" if status < 400 else "http-4xx"  # 999 is a block of theirs


def mitigated(headers: Mapping[str, str]) -> str:
    """The vendor whose challenge this is instead of the page, as it says itself, whatever the status; else empty."""
    if headers.get("cf-mitigated") == "challenge":
        return "cloudflare"
    if "x-amzn-waf-action" in headers:
        return "aws-waf"
    return "vercel" if "x-vercel-mitigated" in headers else ""


def robots_words(values: Iterable[str]) -> tuple[bool, bool]:
    """(noindex, nofollow) of X-Robots-Tag headers: those for everyone and those that begin with "xyro:"."""
    words: set[str] = set()
    for value in values:
        agent, colon, rest = value.lower().partition(":")
        if colon and "," not in agent and agent.strip() not in _WITH_VALUE:
            if agent.strip() != "xyro":
                continue
            value = rest
        words.update(word.strip() for word in value.lower().split(","))
    return bool(words & {"noindex", "none"}), bool(words & {"nofollow", "none"})


@lru_cache(maxsize=1024)
def media_type(header: str) -> tuple[str, str]:
    """(type in lower case, charset) of a Content-Type; empty where there is none, or what cannot be one."""
    mime, _, parameters = header.partition(";")
    charset = _CHARSET.search(parameters)
    kind = mime.strip().lower()
    return (kind if _MIME(kind) else ""), charset[1] if charset else ""


def retry_after(text: str, now: float) -> float:
    """Seconds (0 .. 1 day) that a Retry-After asks for; 0 for garbage, a negative number and a date in the past."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:12]), DAY)
    try:
        when = parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return 0.0
    return min(max(when - now, 0.0), DAY)


def fresh_for(headers: Mapping[str, str]) -> float:
    """Seconds (0 .. 1 year) for which an answer says that it stays as it is (RFC 9111 4.2.1, 4.2.3); 0 = it does not.

    s-maxage, then max-age, then Expires - Date; less the Age that it has already. no-cache and no-store say nothing.
    """
    control, expires = headers.get("Cache-Control", ""), headers.get("Expires", "")
    if not control and not expires:
        return 0.0
    lifetime = _lifetime(control[:MAX_VALIDATOR])
    if lifetime is None:
        lifetime = _apart(expires, headers.get("Date", ""))
    age = headers.get("Age", "").strip()
    passed = float(age[:12]) if age.isascii() and age.isdigit() else 0.0
    return min(max(lifetime - passed, 0.0), YEAR)


@lru_cache(maxsize=1024)
def _lifetime(control: str) -> float | None:
    """Return the lifetime that a Cache-Control gives, in seconds; None where it leaves that to Expires."""
    directives = dict(_DIRECTIVE.findall(control.lower()))
    if "no-cache" in directives or "no-store" in directives:
        return 0.0
    for name in ("s-maxage", "max-age"):
        if directives.get(name):
            return float(directives[name])
    return None


def _apart(expires: str, date: str) -> float:
    try:
        return (parsedate_to_datetime(expires) - parsedate_to_datetime(date)).total_seconds()
    except (ValueError, TypeError, OverflowError, IndexError):  # one of them without a zone; or garbage: RFC 9111 5.3
        return 0.0


def one_length(data: bytes) -> bytes:
    """The first bytes of an answer, with one Content-Length where its head tells the same one several times (RFC 9110
    8.6). A head that tells different ones, or is not whole, stays as it is: the parser refuses it."""
    end = data.find(b"\r\n\r\n") + 2
    head = data[:end]
    plain = head.lower()
    start = plain.find(_LENGTH_NAME)
    if plain.find(_LENGTH_NAME, start + 1) < 0 and b"," not in plain[start : plain.find(b"\r", start + 2)]:
        return data
    values = {value.strip(b" \t") for line in _LENGTH_LINE.findall(head) for value in line.split(b",")}
    if len(values) != 1:
        return data
    first, _, rest = _LENGTH_LINE.sub(b"", head).partition(b"\r\n")
    return b"%b\r\nContent-Length: %b\r\n%b%b" % (first, values.pop(), rest, data[end:])
