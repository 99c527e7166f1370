"""The body of an answer, decoded, in pieces; and sitemaps, which may be larger than anything else."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Iterable, Mapping
from heapq import heappop, heappush
from typing import Final

from msgspec.structs import replace

from xyro.decode import GZIP_MAGIC, Caps, Decoder, codings_of
from xyro.doctype import SNIFF
from xyro.page_client import Reply
from xyro.wire.clock import Clock
from xyro.wire.errors import TheirError

READABLE: Final = {"truncated": "disconnect", "too-large": "length", "ratio-too-large": "ratio"}
"""Failures that leave a body worth keeping, and the word for what happened to it (PageReport.truncated)."""
SITEMAP = 52_428_800
"""sitemaps.org: bytes of a sitemap, unpacked"""
FIRST = 16 * 1024
"""bytes as they were sent that are decoded before it is known what they are: at any ratio allowed less than a cap"""
DENSE, MILD = 4 * 1024, 16
"""bytes at a time of a coded body while each of them becomes more than MILD, or none was decoded: a bomb has 10 ms"""
LARGE = 2
"""sitemaps at a time that may go past the cap for bodies; long pages at a time"""
LEAST = 1 / 20
"""of the patience with a long page, however many wait: .5 s"""
IDLE = 0.0002
"""seconds: a turn of the event loop that took less had nothing else to do"""
OTHERS = 8
"""times as long as a step of a long page took others may go on, then the next one has its turn all the same"""
AT_ONCE = 8
"""turns that a long page has before those that began later: half a megabyte"""
RECENT = 0.1
"""seconds: a page of few links that was read since shows that others are read now"""


def _codings(headers: Mapping[str, str]) -> str:
    """The codings of a body in the order applied: those of its content, then (RFC 9112 7) those of its transfer, but
    for chunked, which the client undoes."""
    transfer = headers.get("Transfer-Encoding", "")
    coding = headers.get("Content-Encoding", "")
    return coding if transfer.lower() in ("", "chunked") else f"{coding},{transfer}"


def whole_body(coding: str, data: bytes) -> bytes:
    """A stored body, the codings of its Content-Encoding undone as far as they can be: no larger than any that is read.
    TheirError for a coding that is not ours."""
    decoder = Decoder(codings_of(coding), Caps(size=SITEMAP))
    return decoder.feed(data) + decoder.finish()


class Body:
    """The decoded body in pieces. `failure`: it ended before its end (a key of READABLE); other failures raise."""

    def __init__(self, reply: Reply, caps: Caps) -> None:
        coding = _codings(reply.headers)
        self._coded = bool(coding)
        self._reply = reply
        self._caps = caps
        self._decoders = [Decoder(codings_of(coding), caps)] if coding else []
        self._size = 0
        """bytes of a body without coding"""
        self.place, self.turns = 0, 0
        """among long pages; 0: not among them yet"""
        self._pending: bytes | None = None
        """what was received with the first bytes; None: nothing was received yet"""
        self._ahead = b""
        self._over = False
        self.failure = ""

    def widen(self, size: int) -> None:
        """More may come than was thought: `size` bytes of decoded body, twice as many as they are sent."""
        self._caps = replace(self._caps, size=size)
        for decoder in self._decoders:
            decoder.caps = self._caps
        self._reply.widen(2 * size)

    async def head(self) -> bytes:
        """The first SNIFF bytes at least, or all there are: they count as read."""
        head = await self.piece()
        while len(head) < SNIFF and (more := await self.piece()):
            head += more
        return head

    def pause(self, paused: bool) -> None:
        """Let the server wait, or no more: the answer's deadlines are put off meanwhile."""
        self._reply.pause(paused)

    def unpack(self, head: bytes) -> None:
        """Decode on: the body has turned out to be a gzip file, of which `head` was read."""
        self._coded = True
        decoder = Decoder(("gzip",), self._caps)
        self._decoders.append(decoder)
        self._ahead = decoder.feed(head)
        if self._over and not self.failure:
            self._ahead += decoder.finish()
        self._ended(decoder)

    async def piece(self) -> bytes:
        """The next bytes, empty at the end."""
        if self._ahead:
            ahead, self._ahead = self._ahead, b""
            return ahead
        while not self._over:
            data = self._decoded(await self._received())
            if self._coded and self._pending:
                await asyncio.sleep(0)  # thousands of empty streams, or a bomb, come in one packet
            if data:
                return data
        return b""

    async def _received(self) -> bytes:
        if self._pending:
            return self._some(self._pending)
        try:
            data = await self._reply.read()
            return self._some(data) if self._coded or self._pending is None else data
        except TheirError as error:
            if error.kind not in READABLE:
                raise
            self.failure, self._over = error.kind, True
            return b""

    def _some(self, data: bytes) -> bytes:
        """Take a piece to decode at once: of a coded body little, for each byte may become hundreds; of a
        sitemap no more than the cap, which is raised later."""
        few = self._coded or data.startswith(GZIP_MAGIC[:1]) or len(data) > self._caps.size
        size = len(data)
        if few:
            size = FIRST if all(0 < each.produced < MILD * each.received for each in self._decoders) else DENSE
        self._pending = data[size:]
        return data[:size]

    def _decoded(self, data: bytes) -> bytes:
        """`data` through the decoders; an empty one is the body's end."""
        last = not data
        if not self._coded:
            self._size += len(data)
            if self._size > self._caps.size:
                data, self.failure, self._over = data[: self._caps.size - self._size], "too-large", True
        for decoder in self._decoders:
            data = decoder.feed(data) if data else b""
            if last and not self.failure:
                data += decoder.finish()
            self._ended(decoder)
        self._over |= last
        return data

    def _ended(self, decoder: Decoder) -> None:
        if decoder.failure and not self.failure:
            if decoder.failure not in READABLE:
                raise TheirError(decoder.failure, "the content coding is broken")
            self.failure, self._over = decoder.failure, True


class Sitemaps:
    """Reads sitemaps whole, of which LARGE at a time may be larger than `cap`, the size of any other body. So their RAM
    is bounded, and a large one is cut at `cap` only while others are read.
    """

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._large = 0

    async def read(self, body: Body, piece: bytes) -> bytes:
        """The rest of a body that begins with `piece`. What is beyond the cap is welcome, not needed: where the body
        breaks off in it, the failure is `too-large`, as if it had been cut there."""
        body.widen(max(self._cap, SITEMAP))
        pieces, size, large = [], 0, False
        try:
            while piece:
                pieces.append(piece)
                size += len(piece)
                if size > self._cap and not large:
                    if self._large >= LARGE:
                        body.failure = "too-large"
                        break
                    large = True
                    self._large += 1
                piece = await body.piece()
        except TheirError:
            if not large:
                raise
            body.failure = "too-large"
        finally:
            self._large -= large
        return b"".join(pieces)


class LongPages:
    """Reads pages of very many links, LARGE of them at a time: each holds up to 65,536 links, 13 MB, until its end.
    The others are let wait where they are; their servers send no more than a buffer.

    A place is no place to rest: while others wait, a page whose server has let us wait for `patience` seconds ends as
    `slow-body`; where many wait, for as much less: they hold slots, and may be as many as there are.
    """

    def __init__(self, patience: float, clock: Clock) -> None:
        self._patience = patience
        self._clock = clock
        self._parsing = False
        """a piece of one of them, one at a time: the loop is everybody's"""
        self._queue: list[tuple[int, asyncio.Future[None]]] = []
        """a heap by place: the page that began first is read to its end, so that its host may be read again"""
        self._begun = 0
        self._places = asyncio.Semaphore(LARGE)
        self._waiting = 0
        self._read_beside = -math.inf

    def note_other(self, now: float) -> None:
        """A page that is no long one was read."""
        self._read_beside = now

    async def go(self, steps: Iterable[None], body: Body) -> None:
        """Go through the steps of one: each when nobody else has anything to do, or has had OTHERS times as long."""
        async with self._turn(body):
            began = self._clock.monotonic()
            for _ in steps:
                began = await self._rest(began)

    async def go_in_place(self, steps: Iterable[None], body: Body) -> None:
        """Go through the steps of one that has a place: while other pages are read they have OTHERS times as long.

        An idle moment is no sign that they have nothing to do: they wait for a server or for a delay to pass, and a
        process that fills all of them is the last that a loaded machine lets go on.
        """
        body.pause(True)
        try:
            async with self._turn(body):
                began = self._clock.monotonic()
                for _ in steps:
                    now = self._clock.monotonic()
                    if now - self._read_beside < RECENT:
                        await self._clock.sleep(OTHERS * (now - began))
                        began = self._clock.monotonic()
                    else:
                        began = await self._rest(began)
        finally:
            body.pause(False)

    @contextlib.asynccontextmanager
    async def _turn(self, body: Body) -> AsyncIterator[None]:
        """Wait until no other page is parsed and none waits that began before, and keep the others off."""
        if body.turns % AT_ONCE == 0:  # a very long one begins anew, behind all others
            self._begun += 1
            body.place = self._begun
        body.turns += 1
        if self._parsing:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            heappush(self._queue, (body.place, turn))
            try:
                await turn
            except asyncio.CancelledError:
                if not turn.cancelled():
                    self._pass_on()
                raise
        self._parsing = True
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        while self._queue:
            _, turn = heappop(self._queue)
            if not turn.done():
                turn.set_result(None)
                return
        self._parsing = False

    async def _rest(self, began: float) -> float:
        """Let others go on after a step; when that ended."""
        passed = self._clock.monotonic()
        end, busy = passed + OTHERS * (passed - began), True
        while busy:
            await asyncio.sleep(0)
            before, passed = passed, self._clock.monotonic()
            busy = passed - before > IDLE and passed < end
        return passed

    @contextlib.asynccontextmanager
    async def place(self, body: Body) -> AsyncIterator[None]:
        """Wait for a place, and hold it."""
        body.pause(True)
        self._waiting += 1
        try:
            await self._places.acquire()
        finally:
            self._waiting -= 1
            body.pause(False)
        try:
            yield
        finally:
            self._places.release()

    async def pieces(self, piece: bytes, body: Body) -> AsyncIterator[bytes]:
        """Yield a piece, then the rest of its body, which has a place."""
        waited, look = 0.0, self._patience * LEAST
        while piece:
            yield piece
            more: bytes | None = None
            while more is None:
                began = self._clock.monotonic()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(look):
                        more = await body.piece()
                waited += self._clock.monotonic() - began
                patience = max(look, self._patience * LARGE / max(self._waiting, LARGE))
                if self._waiting and waited >= patience and more != b"":
                    raise TheirError("slow-body", "other pages wait for its place")
            piece = more
