"""Moments as people write them: a date, a time, how long ago (`1d`, `90m`), `today`, `yesterday`."""

from __future__ import annotations

from datetime import UTC, datetime

from xyro.wire.durations import UNITS, seconds
from xyro.wire.errors import InputError

DAY = UNITS["d"]
FORMS = "a time such as 2026-11-22, 2026-11-22T10:30:00Z, 1d (a day ago), 90m, today or yesterday"


def moment(text: str, now: float) -> float | None:
    """Seconds since 1970 of a moment (UTC where it names no zone); None where the text is none."""
    if text in ("today", "yesterday"):
        return now - now % DAY - (DAY if text == "yesterday" else 0.0)
    if not text[:1].isdigit():
        return None
    if text[-1] in UNITS:
        try:
            return now - seconds(text, "")
        except InputError:
            return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
