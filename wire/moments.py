"""Moments as people write them: 2026-11-25, 2026-11-25T10:30:00Z, yesterday, 24h (ago), now. Those of all commands."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from xyro.wire.durations import UNITS
from xyro.wire.errors import InputError

EXAMPLES = "2026-11-25, 2026-11-25T10:30:00Z, yesterday, today, 24h or 7d (ago), now"
_AGO = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*([smhdw])(?:\s+ago)?", re.ASCII)
_DAYS = {"today": 0, "yesterday": 1}
DAY = 86_400.0


def moment_of(text: str, now: float) -> float | None:
    """Seconds since 1970 of a moment, None where the text is none. Days begin at midnight UTC, and a time without a
    zone is UTC. now: seconds since 1970."""
    word = text.strip()
    if word.lower() == "now":
        return now
    if (days := _DAYS.get(word.lower())) is not None:
        return max((now // DAY - days) * DAY, 0.0)
    if ago := _AGO.fullmatch(word):
        return max(now - float(ago[1]) * UNITS[ago[2]], 0.0)
    if not word[:1].isdigit():
        return None
    try:
        found = datetime.fromisoformat(word)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def moment(text: str, name: str, now: float) -> float:
    """Seconds since 1970 of a moment. InputError names it, and shows what is accepted."""
    found = moment_of(text, now)
    if found is None:
        raise InputError(f"{name}: expected a time such as {EXAMPLES}; got {text!a:.60}")
    return found
