"""The process of plug-ins (plug_in_process.py starts it): calls them, one page after the other.

    python -P -m xyro.plug_in_child SOCKET      a descriptor that it inherits

It ends when the other end of the socket closes, and while a plug-in runs, by a timer of the kernel: there is nothing
that such code could catch.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from xyro.child_process import confine, ignore_signals
from xyro.hrefs import HrefCache, PageLinks
from xyro.page_plug_ins import ParsedPage, ReadPage
from xyro.page_text import PageText
from xyro.plug_in_process import AT_ONCE, DONE, FAULT, PARSE, SECONDS, START
from xyro.reader_frames import FrameBuffer, frame
from xyro.wire.errors import InputError
from xyro.wire.log_setup import set_up
from xyro.wire.messages import LinkKind
from xyro.wire.plug_ins import PARSERS, VALUES, plug_in
from xyro.wire.text import printable

MOST_TEXT: Final = 8 * 1024 * 1024
"""characters of a text by a plug-in; the rest is cut off"""
MOST_WORDS: Final = 200
"""characters that are told of what a plug-in failed at"""


class PlugIns:
    """The plug-ins, imported. Whatever they raise leaves here."""

    def __init__(self, values: str, parsers: Mapping[str, str], fold_slashes: bool) -> None:
        """InputError: one cannot be imported."""
        self._value = plug_in(VALUES, values) if values else None
        self._parsers = {mime: plug_in(PARSERS, name) for mime, name in parsers.items()}
        self._cache = HrefCache(1_000)
        self._fold = fold_slashes

    def answer(self, verb: int, page: Sequence[Any], more: Sequence[Any] | None) -> Any:
        """The answer to one question."""
        url, body, charset, mime = page
        if verb == PARSE:
            return self._parsed(ReadPage(url, body, charset, mime), *more or ())
        assert self._value is not None
        parsed = PageText(*more) if more is not None else None
        found = float(self._value(ReadPage(url, body, charset, mime, parsed)))
        if not math.isfinite(found):
            raise ValueError(f"{found} is no share")
        return found

    def _parsed(self, page: ReadPage, urls: Sequence[str], flags: bytes) -> Any:
        """Text, title and language; then the links: those that the page has anyway, and the plug-in's. None: it says
        nothing."""
        found = self._parsers[page.mime](page)
        if found is None:
            return None
        if not isinstance(found, ParsedPage):
            raise TypeError(f"expected a ParsedPage or None, got {type(found).__name__}")
        links = PageLinks(page.url, self._cache, self._fold)
        links.links.update(zip(urls, flags, strict=True))
        for href in found.links:
            links.add(links.mark((href, LinkKind.ANCHOR)))
        all_links = links.found("").links
        text = found.text[:MOST_TEXT].replace("\0", "")
        title, language = found.title[:500].replace("\0", ""), found.language[:35]
        return [text, title, language], [all_links.urls, all_links.flags, all_links.truncated, all_links.dropped]


def _bounded(seconds: float, call: Callable[..., Any], *arguments: Any) -> bytes:
    """The frame of what the call returns or raises, within these seconds by any clock."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # a plug-in may have set a handler of its own
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        answer = frame(DONE, call(*arguments))
    except BaseException as error:  # SystemExit, and what plug-ins call their own
        words = str(error) if isinstance(error, InputError) else repr(error)
        answer = frame(FAULT, printable(words, MOST_WORDS))
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    return answer


class _Server:
    """The plug-ins, from the first frame on."""

    def __init__(self) -> None:
        self._plug_ins: PlugIns | None = None

    def answer(self, values: list[Any]) -> bytes:
        """The answer to one frame."""
        if self._plug_ins is None:
            return _bounded(START, self._begin, *values)
        return _bounded(SECONDS, self._plug_ins.answer, *values)

    def _begin(self, path: list[str], level: str, form: str, *settings: Any) -> None:
        sys.path[:] = path  # what the process that reads finds
        set_up(level, form)
        self._plug_ins = PlugIns(*settings)
        confine()


def main() -> None:
    """Answer until the other end of the socket closes."""
    ignore_signals()
    os.setpgid(0, 0)  # what plug-ins start is killed with it
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # it is killed at the end
    sock, buffer, server = socket.socket(fileno=int(sys.argv[1])), FrameBuffer(), _Server()
    with contextlib.suppress(ConnectionError):
        while data := sock.recv(AT_ONCE):
            for values in buffer.feed(data):
                sock.sendall(server.answer(values))
    os._exit(0)  # without waiting for threads of plug-ins


if __name__ == "__main__":
    main()
