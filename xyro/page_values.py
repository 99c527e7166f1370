"""Values of pages by a plug-in: the share of its importance that a page passes on along its links.

A focus by a small model: what a page that is worth little shows comes later, for its links get less cash and the
virtual page the rest (plugins/focus/value_column.py applies it). The plug-in runs where the page was parsed.
"""

from __future__ import annotations

import logging
import math
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from types import FrameType

from xyro.page_copy import PageCopy
from xyro.page_text import page_text
from xyro.wire.plug_ins import VALUES, plug_in
from xyro.wire.text import printable

SECONDS = 1.0
"""that a plug-in has for a page"""
_log = logging.getLogger("xyro")


@dataclass(frozen=True)
class ReadPage:
    """A page as a plug-in of `xyro.values` gets it."""

    url: str
    body: bytes
    charset: str

    @cached_property
    def text(self) -> str:
        """The main text, empty where there is none."""
        found = page_text(self.body, self.charset, self.url)
        return found.text if found is not None else ""


class _Overdue(BaseException):
    """Not an Exception: a plug-in that catches all of these is interrupted, too."""


class PageValues:
    """The plug-in of one reading process. What it raises, or does not end in SECONDS, costs the value of that page."""

    def __init__(self, name: str) -> None:
        """InputError: it is not installed."""
        self._name = name
        self._value = plug_in(VALUES, name)

    def value(self, url: str, copy: PageCopy) -> float:
        """0 to 1; 1 where the plug-in fails, or says what is no number."""
        try:
            with _limited(SECONDS):
                found = float(self._value(ReadPage(url, copy.html, copy.charset)))
        except (Exception, _Overdue) as error:
            words = f"not done after {SECONDS:g} s" if isinstance(error, _Overdue) else repr(error)
            _log.warning("%s: no value by plug-in %s: %s", printable(url), self._name, printable(words, 200))
            return 1.0
        return min(max(found, 0.0), 1.0) if math.isfinite(found) else 1.0


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Interrupt Python code that takes longer, by SIGALRM; only the main thread can be."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise _Overdue

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
