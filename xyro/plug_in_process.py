"""The process in which the plug-ins of one reading process run (plug_in_child.py): what they do there, hanging in C,
catching every exception or ending their process, costs an answer.

It is started with the first question and takes one at a time; the others wait in line. One that is not answered costs
the process: it is killed, and started again for the next question.

    here -> child    [path, log level, log form, values, parsers, fold]    first; answered once they are imported
    here -> child    [PARSE or VALUE, ...]                                 one question about a page
    child -> here    [DONE, answer], or [FAULT, why there is none]
"""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
import weakref
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from xyro.child_process import end_child, start_child
from xyro.reader_frames import FrameBuffer, frame
from xyro.wire.errors import CodecError, InputError

SECONDS: Final = 1.0
"""that a plug-in has for a page: then a timer of the kernel ends the child in the middle of whatever it does"""
START: Final = 30.0
"""seconds that it has to be imported in: a model is loaded"""
GRACE: Final = 1.0
"""seconds after which a child that put this timer off is killed from here"""
AT_ONCE: Final = 1 << 20
"""bytes that are read from a socket at once"""
PARSE, VALUE = range(2)
DONE, FAULT = range(2)


@cache
def check_plug_ins(values: str, parsers: tuple[tuple[str, str], ...]) -> None:
    """InputError: a plug-in cannot be imported. A process tries that, which ends: nothing of it is imported here."""
    process, sock = start_child("xyro.plug_in_child")
    try:
        with sock:
            sock.settimeout(START + GRACE)
            sock.sendall(frame(_path(), "error", "text", values, dict(parsers), True))
            kind, words = _received(sock)
    except TimeoutError:
        kind, words = FAULT, _late(START)
    except (OSError, EOFError, CodecError):
        kind, words = FAULT, _cause(process, START)
    finally:
        end_child(process)
    if kind == FAULT:
        raise InputError(f"[opic] values, [fetch] parsers: {words}")


def _received(sock: socket.socket) -> list[Any]:
    """The next frame."""
    buffer = FrameBuffer()
    while data := sock.recv(AT_ONCE):
        for values in buffer.feed(data):
            return values
    raise EOFError


class PlugInFault(Exception):
    """A plug-in gave no answer; the text says why."""


class PlugInProcess:
    """Ask on the running loop, which never waits for the process."""

    def __init__(self, values: str, parsers: Mapping[str, str], *, fold_slashes: bool, log: tuple[str, str]) -> None:
        """values: a name, or empty; parsers: media type -> name; log: level and form of lines that plug-ins log."""
        self._setup = (*log, values, dict(parsers), fold_slashes)
        self._turn = asyncio.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._end: weakref.finalize[..., Any] | None = None
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._buffer = FrameBuffer()

    async def ask(self, *question: Any) -> Any:
        """The answer. PlugInFault: there is none."""
        async with self._turn:
            answered = False
            try:
                if self._streams is None or self._streams[0].at_eof():
                    await self._start()
                kind, answer = await self._exchange(SECONDS, *question)
                answered = True
            finally:
                if not answered:  # of a question that was given up, too: it may still be at that
                    self.close()
        if kind == FAULT:
            raise PlugInFault(answer)
        return answer

    def close(self) -> None:
        """End it; another question starts it again."""
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None
        if self._end is not None:
            self._end()

    async def _start(self) -> None:
        self.close()
        try:
            self._process, sock = start_child("xyro.plug_in_child")
            self._end = weakref.finalize(self, end_child, self._process)
            self._buffer = FrameBuffer()
            self._streams = await asyncio.open_unix_connection(sock=sock)
            kind, words = await self._exchange(START, _path(), *self._setup)
        except (PlugInFault, OSError) as fault:
            raise PlugInFault(f"its process did not start: {fault}") from fault
        if kind == FAULT:
            raise PlugInFault(words)

    async def _exchange(self, seconds: float, *sent: Any) -> list[Any]:
        """The child's answer. PlugInFault: it ended, or says nothing."""
        assert self._streams is not None
        reader, writer = self._streams
        writer.write(frame(*sent))
        reading = asyncio.ensure_future(self._read(reader))
        try:
            for wait in (seconds, GRACE):  # twice: what came while a turn of this loop took long is seen by the second
                await asyncio.wait([reading], timeout=wait)
                if reading.done():
                    return reading.result()
        except CodecError as error:
            raise PlugInFault(str(error)) from error
        except (OSError, EOFError) as error:
            assert self._process is not None
            raise PlugInFault(_cause(self._process, seconds)) from error
        finally:
            reading.cancel()
        raise PlugInFault(_late(seconds))

    async def _read(self, reader: asyncio.StreamReader) -> list[Any]:
        while data := await reader.read(AT_ONCE):
            for answer in self._buffer.feed(data):
                return answer
        raise EOFError


def _path() -> list[str]:
    """Where this process finds modules, for the child."""
    return [place for place in sys.path if isinstance(place, str)]


def _cause(process: subprocess.Popen[bytes], seconds: float) -> str:
    """Say what the process died of."""
    code = end_child(process)
    if code == -signal.SIGALRM:
        return _late(seconds)
    return f"its process ended by {signal.Signals(-code).name}" if code < 0 else f"its process ended, exit {code}"


def _late(seconds: float) -> str:
    return f"not done after {seconds:g} s"
