"""Strings of strangers made safe to show: in a log line, on a terminal, in an error message. Counts, in words."""

from __future__ import annotations

import math
from datetime import UTC, datetime

ELLIPSIS = "…"
LOG_FIELDS = "fields"
"""attribute of a log record (`extra`): what JSON has beside the text"""


def printable(text: str, limit: int = 200) -> str:
    r"""`text` as one line of at most `limit` (>= 1) characters that can neither move a cursor nor forge a log line.

    Everything that Unicode calls not printable is escaped as Python writes it (\x1b, \u202e, \ud800): C0 and C1
    controls, line and paragraph separators, bidirectional controls, zero-width characters, lone surrogates, unassigned
    code points, spaces other than U+0020. What does not fit is cut, never inside an escape, and an ellipsis ends it.
    """
    if len(text) <= limit and text.isprintable():
        return text
    pieces: list[str] = []
    room = limit
    for char in text[: limit + 1]:  # every character takes at least one place, so more would never fit
        piece = char if char.isprintable() else ascii(char)[1:-1]
        pieces.append(piece)
        room -= len(piece)
    if room >= 0:
        return "".join(pieces)
    while room < 1:  # one place is the ellipsis's own
        room += len(pieces.pop())
    return "".join(pieces) + ELLIPSIS


def counted(number: int, noun: str) -> str:
    """`1 page`, `2,000 pages`: a noun whose plural has an s."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def figure(value: float, digits: int = 3) -> str:
    """Format a number to so many significant digits: `0.0271`, `44.2`, `6,860`; never `6.86e+03`."""
    text = f"{value:.{digits}g}"
    return f"{float(text):,.0f}" if "e+" in text and math.isfinite(value) else text


def stamp(seconds: float) -> str | None:
    """Format seconds since 1970 by RFC 3339 in UTC; None for 0, which means never."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if seconds else None


def short(error: BaseException) -> str:
    """An exception as one line for the log."""
    return f"{type(error).__name__}: {error}"[:300]
