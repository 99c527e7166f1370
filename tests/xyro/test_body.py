"""Bodies in pieces: what comes to nothing, however much there is of it, keeps nobody waiting."""

from __future__ import annotations

import asyncio
import gzip

from xyro.body import Body
from xyro.decode import Caps


class _Reply:
    """An answer that was received whole."""

    def __init__(self, body: bytes) -> None:
        self.headers = {"Content-Encoding": "gzip"}
        self._body = body

    async def read(self) -> bytes:
        body, self._body = self._body, b""
        return body


async def _turns(body: bytes) -> tuple[bytes, int]:
    """What is read of a body, and how many turns others had meanwhile."""
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    read, pieces = Body(_Reply(body), Caps()), []
    while piece := await read.piece():
        pieces.append(piece)
    task.cancel()
    return b"".join(pieces), turns


async def test_thousands_of_empty_streams_in_one_packet_let_others_have_their_turns():
    empty, words = gzip.compress(b"", mtime=0), b"<p>words"
    read, turns = await _turns(empty * 9_000 + gzip.compress(words))
    assert read == words and turns > 8


async def test_a_bomb_in_one_packet_lets_others_have_their_turns():
    read, turns = await _turns(gzip.compress(bytes(40_000_000)))
    assert turns and 0 < len(read) < 40_000_000


async def test_a_bomb_is_decoded_in_small_steps():
    read = Body(_Reply(gzip.compress(bytes(40_000_000))), Caps())
    assert len(await read.piece()) <= 1 << 20 >= len(await read.piece())


async def test_a_page_in_one_packet_is_decoded_at_once():
    assert await _turns(gzip.compress(b"<p>words" * 1_000)) == (b"<p>words" * 1_000, 0)
