"""Strings of strangers made safe to show: in a log line, on a terminal, in an error message. Counts, in words."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from unicodedata import bidirectional, category

ELLIPSIS = "…"
LEAST_ROOM = 16
"""columns of a terminal below which nothing is cut"""
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


_CONTROLS = frozenset(["Cc", "Cs", "Zl", "Zp"])
_TURNING = frozenset(["L", "R", "AL", "LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"])


def shown(text: str) -> str:
    r"""A text of many lines for a terminal: what may move a cursor or turn the line around is escaped (\x1b, \u202e).

    Newlines, tabs and letters of all scripts stay; a document is to be read. `printable` is for one line of ours.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(ascii(char)[1:-1] if _moves(char) else char for char in text.replace("\r\n", "\n"))


def _moves(char: str) -> bool:
    kind = category(char)
    return char not in "\n\t" and (kind in _CONTROLS or (kind == "Cf" and bidirectional(char) in _TURNING))


def middle_cut(text: str, room: int) -> str:
    """A text in so many columns: what does not fit is cut out of its middle, for URLs differ at both ends."""
    if columns_of(text) <= room or room < LEAST_ROOM:
        return text
    head = (room - 1) * 3 // 5
    return f"{_begin(text, head)}…{_begin(text[::-1], room - 1 - head)[::-1]}"


def columns_of(text: str) -> int:
    """Columns of a terminal that a text takes: wide characters take two, accents that combine none."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _begin(text: str, room: int) -> str:
    """As much of the beginning of a text as fits into so many columns."""
    end = min(len(text), room)
    while columns_of(text[:end]) > room:
        end -= 1
    return text[:end]


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
