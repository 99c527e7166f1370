"""The access log of the rig: one line a request, tab-separated, in the words of nginx.

time, host, method, status, type, bytes of body, connection, requests on it, user agent, URI

A TLS handshake is a line, too: its method is TLS, its type `new` or `resumed`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import NamedTuple

FLUSH_SECONDS = 1.0
FLUSH_LINES = 2_000


class LogEntry(NamedTuple):
    """Strings are as the client sent them; `write` makes them harmless."""

    time: float
    host: str
    method: str
    status: int
    mime: str
    sent: int
    connection: int
    requests: int
    agent: str
    uri: str


class AccessLog:
    """Appends to a file. Lines wait in memory for at most FLUSH_SECONDS or FLUSH_LINES; `close` writes the rest."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")
        self._lines: list[str] = []
        self._timer: asyncio.TimerHandle | None = None

    def write(self, entry: LogEntry) -> None:
        """Note one request; call it inside a running event loop."""
        self._lines.append("\t".join(_field(value) for value in entry) + "\n")
        if len(self._lines) >= FLUSH_LINES:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_SECONDS, self.flush)

    def flush(self) -> None:
        """Hand all lines to the operating system."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._file.writelines(self._lines)
        self._lines.clear()
        self._file.flush()

    def close(self) -> None:
        """Flush and close; a second call does nothing."""
        if not self._file.closed:
            self.flush()
            self._file.close()


def _field(value: object) -> str:
    """As nginx writes it: '-' for nothing, \\xHH for what could break the line."""
    if isinstance(value, float):
        return f"{value:.3f}"
    text = str(value) or "-"
    if text.isprintable() and '"' not in text and "\\" not in text:
        return text
    return "".join(char if char.isprintable() and char not in '"\\' else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    return "".join(f"\\x{byte:02X}" for byte in char.encode("utf-8", "surrogatepass"))
