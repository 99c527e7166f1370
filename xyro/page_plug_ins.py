"""Plug-ins that look at a page where it was read: `xyro.parsers` ([fetch] parsers) and `xyro.values` ([opic] values).

A parser gives links and text of pages of its media type, of types too that are not read otherwise. A value is the share
of its importance that a page passes on along its links: a focus by a small model, for what a page that is worth little
shows comes later (plugins/focus/value_column.py applies it).
"""

from __future__ import annotations

import logging
import math
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from types import FrameType

from xyro.answer import Answer
from xyro.charset import codec_for
from xyro.hrefs import HrefCache, PageLinks
from xyro.maintext import BRIEF
from xyro.page_copy import PageCopy
from xyro.page_text import PageText, page_text
from xyro.wire.messages import Kind, LinkKind, Links
from xyro.wire.plug_ins import PARSERS, VALUES, plug_in
from xyro.wire.text import LOG_FIELDS, printable

SECONDS = 1.0
"""that a plug-in has for a page"""
MOST_TEXT = 8 * 1024 * 1024
"""characters of a text by a plug-in; the rest is cut off"""
FAULT = 200
"""characters that are told of what a plug-in failed at"""
_log = logging.getLogger("xyro")


@dataclass(frozen=True)
class ReadPage:
    """A page as a plug-in gets it. mime: its media type in lower case, without parameters; charset: Python's name."""

    url: str
    body: bytes
    charset: str
    mime: str = "text/html"
    parsed: PageText | None = field(default=None, repr=False)
    """its text by a plug-in"""

    @cached_property
    def text(self) -> str:
        """The main text, empty where there is none."""
        found = self.parsed
        if found is None and self.mime in ("text/html", "application/xhtml+xml"):
            found = page_text(self.body, self.charset, self.url, BRIEF)
        return found.text if found is not None else ""


@dataclass(frozen=True)
class ParsedPage:
    """A page as a parser found it. links: URLs, absolute or relative to the page's; text: plain or Markdown."""

    links: Sequence[str] = ()
    text: str = ""
    title: str = ""
    language: str = ""


class _Overdue(BaseException):
    """Not an Exception: a plug-in that catches all of these is interrupted, too."""


class PagePlugIns:
    """The plug-ins of one reading process. What one raises, or does not end in SECONDS, costs its field of that page:
    the answer then names it."""

    def __init__(self, values: str, parsers: Mapping[str, str], *, fold_slashes: bool = True) -> None:
        """Import them. values: a name, or empty; parsers: media type -> name. InputError: one is not installed."""
        self._values_name, self._parser_names = values, dict(parsers)
        self._value = plug_in(VALUES, values) if values else None
        self._parsers = {mime: plug_in(PARSERS, name) for mime, name in parsers.items()}
        self._cache = HrefCache(1_000)
        self._fold = fold_slashes
        self.clipped = 0
        """values that were not within 0 to 1"""
        self._next_notice = 1

    def parses(self, mime: str) -> bool:
        """Tell whether pages of this media type have a parser."""
        return mime in self._parsers

    def look_at(self, url: str, copy: PageCopy, answer: Answer) -> None:
        """Add to the answer, and to its copy, what plug-ins say of a page that was read whole."""
        if copy.body and answer.mime in self._parsers:
            self._parse(url, copy, answer)
        if self._value is not None and (answer.kind is Kind.HTML or copy.parsed is not None):
            with self._bounded("value", self._values_name, url, answer):
                answer.value = self._share(url, self._value(_page(url, copy, answer)), answer)

    def _share(self, url: str, value: object, answer: Answer) -> float:
        """A value within 0 to 1. One that is not is taken as the nearer end: `why` tells it of the page, the log once,
        and again when there are ten times as many. ValueError, TypeError: it is no number."""
        found = float(value)  # type: ignore[arg-type]  # what is no number raises
        if not math.isfinite(found):
            raise ValueError(f"{found} is no share")
        share = min(max(found, 0.0), 1.0)
        if share != found:
            self.clipped += 1
            words = f"value {found:.6g} by plug-in {self._values_name} is not within 0 to 1: {share:g} is taken"
            answer.plug_in_faults = (*answer.plug_in_faults, words)
            if self.clipped == self._next_notice:
                self._next_notice *= 10
                fields = {"event": "plug-in-value", "plug_in": self._values_name, "url": url, "clipped": self.clipped}
                _log.warning("%s: %s; %d so far", printable(url), words, self.clipped, extra={LOG_FIELDS: fields})
        return share

    def _parse(self, url: str, copy: PageCopy, answer: Answer) -> None:
        with self._bounded("links and text", self._parser_names[answer.mime], url, answer):
            found = self._parsers[answer.mime](_page(url, copy, answer))
            if found is None:
                return
            if not isinstance(found, ParsedPage):
                raise TypeError(f"expected a ParsedPage or None, got {type(found).__name__}")
            links = self._resolved(url, found.links, answer.links)
            text = found.text[:MOST_TEXT].replace("\0", "")
            parsed = PageText(text, text, found.title[:500].replace("\0", ""), found.language[:35])
            answer.links = links
            if text:
                copy.parsed = parsed

    def _resolved(self, url: str, hrefs: Sequence[str], before: Links) -> Links:
        """The links that the page has anyway, and then these."""
        page = PageLinks(url, self._cache, self._fold)
        page.links.update(zip(before.urls, before.flags, strict=True))
        for href in hrefs:
            page.add(page.mark((href, LinkKind.ANCHOR)))
        links = page.found("").links
        return Links(links.urls, links.flags, links.truncated + before.truncated, links.dropped + before.dropped)

    @contextmanager
    def _bounded(self, field: str, name: str, url: str, answer: Answer) -> Iterator[None]:
        try:
            with _limited(SECONDS):
                yield
        except (Exception, SystemExit, _Overdue) as error:
            words = f"not done after {SECONDS:g} s" if isinstance(error, _Overdue) else printable(repr(error), FAULT)
            answer.plug_in_faults = (*answer.plug_in_faults, f"no {field} by plug-in {name}: {words}")
            _log.warning("%s: no %s by plug-in %s: %s", printable(url), field, name, words)


def _page(url: str, copy: PageCopy, answer: Answer) -> ReadPage:
    charset = copy.charset or (codec_for(copy.body, answer.charset) if answer.charset else "utf-8")
    return ReadPage(url, copy.body, charset, answer.mime or "text/html", copy.parsed)


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Interrupt Python code that takes longer: by SIGALRM, which ends a sleep, too; in another thread than the main one
    (a crawl within a script) by an exception that is raised there once Python code runs."""
    if threading.current_thread() is not threading.main_thread():
        with _limited_here(seconds):
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


@contextmanager
def _limited_here(seconds: float) -> Iterator[None]:
    import ctypes

    thread, lock, over = threading.get_ident(), threading.Lock(), threading.Event()

    def interrupt() -> None:
        with lock:
            if not over.is_set():
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(_Overdue))

    timer = threading.Timer(seconds, interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        with lock:
            over.set()
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), None)  # one that is not raised yet
