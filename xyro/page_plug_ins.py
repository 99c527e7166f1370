"""Plug-ins that look at a page where it was read: `xyro.parsers` ([fetch] parsers) and `xyro.values` ([opic] values).

A parser gives links and text of pages of its media type, of types too that are not read otherwise. A value is the share
of its importance that a page passes on along its links: a focus by a small model, for what a page that is worth little
shows comes later (plugins/focus/value_column.py applies it). Both run in a process beside the one that reads
(plug_in_process.py, plug_in_child.py).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from xyro.answer import Answer
from xyro.charset import codec_for
from xyro.maintext import BRIEF
from xyro.page_copy import PageCopy
from xyro.page_text import PageText, page_text
from xyro.plug_in_process import PARSE, VALUE, PlugInFault, PlugInProcess
from xyro.wire.messages import Kind, Links
from xyro.wire.text import LOG_FIELDS, printable
from xyro.wire.urls import authority

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


class PagePlugIns:
    """The plug-ins of one reading process. What one raises, or does not end in SECONDS, costs its field of that page:
    the answer then names it."""

    def __init__(
        self,
        values: str,
        parsers: Mapping[str, str],
        *,
        fold_slashes: bool = True,
        log: tuple[str, str] = ("info", "text"),
    ) -> None:
        """values: a name, or empty; parsers: media type -> name; log: level and form of lines that plug-ins log."""
        self._values, self._parsers = values, dict(parsers)
        self._process = PlugInProcess(values, parsers, fold_slashes=fold_slashes, log=log)
        self.clipped = 0
        """values that were not within 0 to 1"""
        self._next_notice = 1

    def parses(self, mime: str) -> bool:
        """Tell whether pages of this media type have a parser."""
        return mime in self._parsers

    async def look_at(self, url: str, copy: PageCopy, answer: Answer) -> None:
        """Add to the answer, and to its copy, what plug-ins say of a page that was read whole."""
        if copy.body and answer.mime in self._parsers:
            await self._parse(url, copy, answer)
        if self._values and (answer.kind is Kind.HTML or copy.parsed is not None):
            await self._weigh(url, copy, answer)

    def close(self) -> None:
        """End their process."""
        self._process.close()

    async def _parse(self, url: str, copy: PageCopy, answer: Answer) -> None:
        before = answer.links
        question = PARSE, _page(url, copy, answer), (before.urls, before.flags)
        found = await self._answer("links and text", self._parsers[answer.mime], url, answer, question)
        if found is not None:
            (text, title, language), (urls, flags, truncated, dropped) = found
            answer.links = Links(tuple(urls), flags, truncated + before.truncated, dropped + before.dropped)
            if text:
                copy.parsed = PageText(text, text, title, language)

    async def _weigh(self, url: str, copy: PageCopy, answer: Answer) -> None:
        parsed = copy.parsed
        words = None if parsed is None else (parsed.text, parsed.markdown, parsed.title, parsed.language)
        question = VALUE, _page(url, copy, answer), words
        found = await self._answer("value", self._values, url, answer, question)
        if found is not None:
            answer.value = self._share(url, found, answer)

    def _share(self, url: str, found: float, answer: Answer) -> float:
        """A value within 0 to 1. One that is not is taken as the nearer end: `why` tells it of the page, the log once,
        and again when there are ten times as many."""
        share = min(max(found, 0.0), 1.0)
        if share != found:
            self.clipped += 1
            words = f"value {found:.6g} by plug-in {self._values} is not within 0 to 1: {share:g} is taken"
            answer.plug_in_faults = (*answer.plug_in_faults, words)
            if self.clipped == self._next_notice:
                self._next_notice *= 10
                fields = {"event": "plug-in-value", "plug_in": self._values, "url": url, "clipped": self.clipped}
                _log.warning("%s: %s; %d so far", printable(url), words, self.clipped, extra={LOG_FIELDS: fields})
        return share

    async def _answer(self, field: str, name: str, url: str, answer: Answer, question: tuple[Any, ...]) -> Any:
        """The answer of a plug-in. None: it says nothing, or failed, which is noted."""
        try:
            return await self._process.ask(*question)
        except PlugInFault as fault:
            answer.plug_in_faults = (*answer.plug_in_faults, f"no {field} by plug-in {name}: {fault}")
            fields = {
                "event": "plug-in-fault",
                "plug_in": name,
                "url": url,
                "host": authority(url),
                "error": str(fault),
            }
            text = "%s: no %s by plug-in %s: %s"
            _log.warning(text, printable(url), field, name, fault, extra={LOG_FIELDS: fields})
            return None


def _page(url: str, copy: PageCopy, answer: Answer) -> tuple[str, bytes, str, str]:
    """URL, body, encoding and media type."""
    charset = copy.charset or (codec_for(copy.body, answer.charset) if answer.charset else "utf-8")
    return url, copy.body, charset, answer.mime or "text/html"
