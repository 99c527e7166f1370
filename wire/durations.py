"""Spans of time as people write them: 90s, 15m, 1.5h, 7d, 2w, or plain seconds."""

from __future__ import annotations

import math
import re

from xyro.wire.errors import InputError
from xyro.wire.text import figure

UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_FORM = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*([smhdw]?)", re.ASCII)
LONGEST = 1e9
"""seconds: about 30 years"""


def span(seconds: float) -> str:
    """Write a span as `seconds` reads it, in the largest unit up to days that needs no fraction."""
    for unit, length in (("d", UNITS["d"]), ("h", UNITS["h"]), ("m", UNITS["m"])):
        if seconds >= length and seconds % length == 0.0:
            return f"{seconds / length:.0f}{unit}"
    return f"{seconds:g}s"


def seconds(text: object, name: str) -> float:
    """Seconds of a span, above 0. InputError names it."""
    found = _FORM.fullmatch(str(text).strip()) if isinstance(text, str | int | float) else None
    value = float(found[1]) * UNITS[found[2] or "s"] if found and not isinstance(text, bool) else 0.0
    if not 0.0 < value <= LONGEST:
        raise InputError(f"{name}: expected a span of time such as 90s, 15m, 1h, 7d or seconds, got {text!a:.60}")
    return value


_WORDS = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))


def duration_text(seconds: float) -> str:
    """Seconds in words, by the two largest units that are not nought: "3 days 4 hours", "2.4 seconds"."""
    if math.isinf(seconds):
        return "for ever"
    if 1.0 <= seconds < 10.0 and (short := figure(seconds, 2)) != "1":
        return f"{short} seconds"
    rest, parts = round(seconds), list[str]()
    for unit, size in _WORDS:
        number, rest = divmod(rest, size)
        if number and len(parts) < 2:
            parts.append(f"{number:,} {unit}{'' if number == 1 else 's'}")
    return " ".join(parts) or "less than a second"
