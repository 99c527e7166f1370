"""Chooses the next notice to POST: at most one request a host is under way, and a host that asked for time is left
alone.

Many subscriptions may notify one machine, all at once. It is asked one after the other, hosts in turn, so a slow one
holds one place and nothing else. What goes to no host (a command) waits for none.
"""

from __future__ import annotations

from collections import deque

NOBODY = ""
"""the host of what goes to none"""


class NoticeOutbox:
    """`put` what is to be sent; `take` what may be sent now, each answered by `done`. Times are seconds of a clock."""

    def __init__(self) -> None:
        self._lines: dict[str, deque[int]] = {}
        self._turns: deque[str] = deque()
        """hosts with something in line"""
        self._busy: set[str] = set()
        self._until: dict[str, float] = {}
        """hosts that asked to be left alone until then"""

    def __len__(self) -> int:
        """Numbers in line."""
        return sum(map(len, self._lines.values()))

    def waiting(self, now: float) -> int:
        """Numbers in line that may not be sent now."""
        return sum(len(line) for host, line in self._lines.items() if not self.is_free(host, now))

    def put(self, number: int, host: str) -> None:
        line = self._lines.get(host)
        if line is None:
            line = self._lines[host] = deque()
            self._turns.append(host)
        line.append(number)

    def take(self, now: float) -> tuple[int, str] | None:
        """The next number and its host, which is busy from here on; None: nothing may be sent now."""
        for _ in range(len(self._turns)):
            host = self._turns.popleft()
            if not self.is_free(host, now):
                self._turns.append(host)
                continue
            line = self._lines[host]
            number = line.popleft()
            if line:
                self._turns.append(host)
            else:
                del self._lines[host]
            if host != NOBODY:
                self._busy.add(host)
            return number, host
        return None

    def is_free(self, host: str, now: float) -> bool:
        """Tell whether a notice may be sent to this host now."""
        if self._until.get(host, now) > now:
            return False
        self._until.pop(host, None)
        return host not in self._busy

    def done(self, host: str, until: float = 0.0) -> None:
        """The request ended; `until`: the host asked to be left alone so long, 0 = it did not."""
        self._busy.discard(host)
        if until and host != NOBODY:
            self._until[host] = max(until, self._until.get(host, 0.0))
