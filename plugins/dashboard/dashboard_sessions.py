"""Keys and sessions of the dashboard: a link holds a key that opens one session, once, within ten minutes.

A session may look, and pause or block hosts; it is no token of the interface. The key stands behind the # of the link,
which browsers send to nobody, and the session in the page's memory: there is no cookie, which other programs that
answer on this machine's address would be sent, too.
"""

from __future__ import annotations

import hashlib
import secrets

from xyro.wire.clock import Clock, SystemClock

KEY_LIFE = 600.0
"""seconds"""
SESSION_LIFE = 86_400.0
MOST_SESSIONS = 64
"""keys, and sessions, at a time: the oldest goes first"""


class DashboardSessions:
    """Keys and sessions, by digest: finding one takes as long whatever is asked for."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._keys: dict[bytes, float] = {}
        self._sessions: dict[bytes, float] = {}

    def key(self) -> str:
        """Make a key for a link."""
        return self._issue(self._keys, KEY_LIFE)

    def open(self, key: str) -> str | None:
        """A new session for a key; None where it is unknown, used or too old."""
        ends = self._keys.pop(_digest(key), 0.0)
        return self._issue(self._sessions, SESSION_LIFE) if ends > self._clock.monotonic() else None

    def admits(self, authorization: str) -> bool:
        """Tell whether a request's Authorization names a session that is open."""
        scheme, _, session = authorization.partition(" ")
        ends = self._sessions.get(_digest(session), 0.0)
        return scheme == "Session" and ends > self._clock.monotonic()

    def _issue(self, table: dict[bytes, float], life: float) -> str:
        issued = secrets.token_urlsafe(24)
        table[_digest(issued)] = self._clock.monotonic() + life
        while len(table) > MOST_SESSIONS:
            del table[next(iter(table))]
        return issued


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
