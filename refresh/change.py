"""Dates of change: the age that a Last-Modified proves, or that it proves none."""

from __future__ import annotations

from xyro.refresh.rate_sums import DAY

YOUNGEST = 60.0 / DAY
"""Least age (days) of a Last-Modified we trust: dynamic servers answer "now" (RFC 7232 2.2.2 asks for 60 s, too)."""
OLDEST_DATE = 631_152_000.0
"""1990-01-01: before the web. Year 0001, 1970 and 1980 (FAT, reproducible archives) are defaults, not dates."""


def usable_last_modified(modified: float | None, read_at: float, changed_after: float | None = None) -> float | None:
    """Age in days that a Last-Modified proves, or None where it is not to be trusted.

    modified, read_at: seconds since 1970. changed_after: a time after which we know the page changed (the read before
    the last change we saw). Not trusted: in the future, younger than a minute, before 1990, older than a change we saw.
    """
    if modified is None or not modified >= OLDEST_DATE:
        return None
    if changed_after is not None and modified < changed_after:
        return None
    age = (read_at - modified) / DAY
    return age if age >= YOUNGEST else None
