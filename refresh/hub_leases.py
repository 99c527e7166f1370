"""Times at which a WebSub subscription asks its hub, renews, asks again: WebSub (W3C) section 5, as a table. Pure.

state    until                            then
asked    the hub verifies                 active; a challenge is answered once for each time that we asked
         it fails                         asked again, after a back-off that doubles
         no word within PATIENCE          the same, from a longer one on
active   RENEW of the lease has passed    asked again, and still active meanwhile
         the lease ends                   what the hub sends is no longer taken
denied   RETRY_DENIED                     asked again
"""

from __future__ import annotations

PATIENCE = 600.0
"""seconds in which a hub verifies"""
RENEW = 0.8
"""share of the lease after which it is renewed"""
BACK_OFF, MOST_BACK_OFF = 60.0, 21_600.0
SILENT = 5
"""failures that a silent hub counts as: BACK_OFF 2^(SILENT - 1) is the first such back-off above PATIENCE"""
MOST_FAILURES = 32
RETRY_DENIED = 7 * 86_400.0
LEASE = 604_800.0
"""seconds that we ask for"""
LEAST_LEASE, MOST_LEASE = 60.0, 30 * 86_400.0
GRACE = 60.0
"""seconds after the end of a lease in which content that was under way is still taken"""


def next_asking(state: str, asked: float, begun: float, until: float, failures: int) -> float:
    """Return when the hub is to be asked. `asked`: last time, 0 = answered since; `begun`: begin of the lease; times
    in s."""
    if state == "denied":
        return begun + RETRY_DENIED
    if asked:
        return asked + (min(BACK_OFF * 2.0 ** (failures - 1), MOST_BACK_OFF) if failures else PATIENCE)
    return begun + RENEW * max(until - begun, 0.0)


def unheard(failures: int, accepted: bool) -> int:
    """Failures in a row after an asking that was not verified (yet). taken: the hub said that it would; it then has
    PATIENCE at least, and one that never does is asked as seldom as one that is down."""
    return min(max(failures + 1, SILENT if accepted else 1), MOST_FAILURES)


def lease(text: str) -> float:
    """hub.lease_seconds within reason; ours where it says nothing."""
    if not (text.isascii() and text.isdigit()):
        return LEASE
    return min(max(float(text[:12]), LEAST_LEASE), MOST_LEASE)


def takes(state: str, until: float, now: float) -> bool:
    """Tell whether content is accepted now."""
    return state == "active" and now < until + GRACE
