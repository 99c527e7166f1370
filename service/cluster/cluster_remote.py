"""Asks a cluster what `run_file.Remote` asks one process: the seam of the commands that take --join.

A request goes to one node: to one that is named, or to whichever says first that it can answer, so never to one that
stands still. It does what a request of its own HTTP interface does, and its answer comes back in pieces. One that does
not come is an error within seconds.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlencode

import msgpack

from xyro.service.cluster.broker_link import BrokerLink
from xyro.service.cluster.bucket import Bucket
from xyro.wire.errors import CodecError, InputError, MachineError
from xyro.wire.placement import Placement

if TYPE_CHECKING:
    from nats.aio.msg import Msg

TAKEN_SECONDS: Final = 5.0
"""until a node has said that it has the request"""
PIECE_SECONDS: Final = 600.0
"""until the next piece of its answer came"""
NOBODY: Final = "503"
"""a broker's answer to what nobody listens to"""
CRAWLS: Final = "xyro.crawls"
"""subject on which every node says of which crawl it is"""
NAME_SECONDS: Final = 2.0
"""for a node to say so"""
LOST_SECONDS: Final = 10.0
"""without a sign of life from the node that answers"""


class Unanswered(MachineError):
    """Nobody took a request, or who did went away. `begun`: a node had it, and may have done it."""

    def __init__(self, fault: str, begun: bool) -> None:
        super().__init__(f"{fault}; `xyro cluster status` shows which nodes are there")
        self.begun = begun


def ask_subject(crawl: str, node: int) -> str:
    """Subject of the requests to a node."""
    return f"xyro.{crawl}.ask.{node}"


def offer_subject(crawl: str) -> str:
    """Subject on which nodes that can answer a request say their number."""
    return f"xyro.{crawl}.ask"


async def first_node(link: BrokerLink, crawl: str) -> int:
    """Number of the node that says first that it can answer. Unanswered: none does."""
    from nats.errors import Error

    try:
        answer = await link.client.request(offer_subject(crawl), b"", timeout=TAKEN_SECONDS)
    except (OSError, Error):
        raise Unanswered("no node takes the request", begun=False) from None
    return int(answer.data)


def packed_request(method: str, path: str, body: bytes) -> bytes:
    """A request as it travels."""
    packed: bytes = msgpack.packb((method, path, body))
    return packed


def unpacked_request(data: bytes) -> tuple[str, str, bytes]:
    """Read a request of `packed_request`. CodecError: it is none."""
    method, path, body = _row(data, (str, str, bytes))
    return method, path, body


def packed_piece(number: int, status: int, headers: str, data: bytes, last: bool) -> bytes:
    """A piece of an answer: 0 says that the request was taken, 1 begins the answer, -1 that it is still worked on."""
    packed: bytes = msgpack.packb((number, status, headers, data, last))
    return packed


def _unpacked_piece(data: bytes) -> tuple[int, int, str, bytes, bool]:
    number, status, headers, part, last = _row(data, (int, int, str, bytes, bool))
    return number, status, headers, part, last


def _row(data: bytes, types: tuple[type, ...]) -> Any:
    try:
        raw = msgpack.unpackb(data, max_map_len=0, max_ext_len=0, max_array_len=len(types))
    except (ValueError, msgpack.UnpackException) as error:
        raise CodecError(f"request: {error}") from error
    if type(raw) is not list or tuple(map(type, raw)) != types:
        raise CodecError("request: other types")
    return tuple(raw)


async def exchange(
    link: BrokerLink, subject: str, method: str, path: str, body: bytes = b"", patience: float = TAKEN_SECONDS
) -> AsyncGenerator[tuple[int, str, bytes], None]:
    """Ask, and yield (HTTP status, headers as JSON, some of the body) as they come, each piece in its order.

    patience: seconds for the node to say that it has the request. Unanswered: it did not, or went away.
    """
    pieces: asyncio.Queue[Msg] = asyncio.Queue()
    inbox = link.client.new_inbox()
    subscription = await link.subscribe(inbox, pieces.put)
    try:
        await link.publish(subject, packed_request(method, path, body), inbox)
        expected = 0
        while True:
            try:
                async with asyncio.timeout(patience):
                    piece = await pieces.get()
                if (piece.headers or {}).get("Status") == NOBODY:
                    raise TimeoutError
            except TimeoutError:
                fault = "nobody took the request" if not expected else "the node that answered went away"
                raise Unanswered(fault, begun=expected > 0) from None
            patience = LOST_SECONDS
            number, status, headers, data, last = _unpacked_piece(piece.data)
            if number < 0:
                continue
            if number != expected:
                raise MachineError("a part of the answer was lost: ask again")
            expected += 1
            if number:
                yield status, headers, data
                await link.publish(piece.reply, b"")
            if last:
                return
    finally:
        if link.connected:
            await subscription.unsubscribe()


class ClusterRemote:
    """The cluster of a broker, with the methods of `run_file.Remote`. Close it."""

    def __init__(self, url: str, ca: Path | None = None) -> None:
        """InputError: the URL; MachineError: no broker, or no crawl there."""
        self._loop = asyncio.new_event_loop()
        try:
            self._link, self.placement = self._loop.run_until_complete(_found(url, ca))
        except BaseException:
            self._loop.close()
            raise
        self._node: int | None = None

    def nodes(self) -> dict[int, ClusterRemote]:
        """Each node by its number, to be asked for what it has itself; open as long as this one is."""
        found = {int(number): copy(self) for number in self.placement.members}
        for number, remote in found.items():
            remote._node = number
        return found

    def close(self) -> None:
        """Give up the connection."""
        self._loop.run_until_complete(self._link.close())
        self._loop.close()

    def __enter__(self) -> ClusterRemote:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def get(self, path: str, **query: object) -> Any:
        """The JSON that the cluster answers with."""
        return json.loads(b"".join(self._parts("GET", _with_query(path, query))))

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return json.loads(b"".join(self._parts("POST", path, json.dumps(body).encode())))

    def body(self, path: str, **query: object) -> tuple[bytes, dict[str, str]]:
        """The bytes that a node answers with, and what its X-Xyro headers say of them."""
        found: dict[str, str] = {}
        parts = list(self._parts("GET", _with_query(path, query), headers=found))
        headers = {name[7:]: unquote(value) for name, value in found.items() if name.startswith("X-Xyro-")}
        return b"".join(parts), headers

    def lines(self, path: str, **query: object) -> Iterator[dict[str, Any]]:
        """Rows of a JSON-lines answer, as they come. MachineError: it broke off."""
        rest = b""
        for part in self._parts("GET", _with_query(path, query)):
            *lines, rest = (rest + part).split(b"\n")
            yield from (json.loads(line) for line in lines if line)  # an empty one only says that it lives
        if rest:
            yield json.loads(rest)

    def parts(self, path: str, **query: object) -> Iterator[bytes]:
        """An answer as it comes. MachineError: it broke off."""
        return self._parts("GET", _with_query(path, query))

    def _parts(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> Iterator[bytes]:
        refusal, status = b"", 200
        for status, sent, data in self._pieces(method, path, body):
            if status != 200:
                refusal += data
                continue
            if headers is not None and sent:
                headers.update(json.loads(sent))
            yield data
        if status != 200:
            raise (InputError if status == 400 else MachineError)(reason_of(refusal, status))

    def _pieces(self, method: str, path: str, body: bytes) -> Iterator[tuple[int, str, bytes]]:
        """The pieces of an answer of the node that is meant, or of any: where that one goes away before it has said
        anything, another one is asked, unless it may have changed something."""
        crawl = self.placement.crawl
        for last in (False, True):
            node, begun = self._node, False
            if node is None:
                node = self._loop.run_until_complete(first_node(self._link, crawl))
            pieces = exchange(self._link, ask_subject(crawl, node), method, path, body)
            try:
                while True:
                    piece = self._loop.run_until_complete(anext(pieces))
                    begun = True
                    yield piece
            except StopAsyncIteration:
                return
            except MachineError as error:
                if self._node is not None:
                    raise MachineError(f"node {self._node}: {error}") from error
                undone = isinstance(error, Unanswered) and (method == "GET" or not error.begun)
                if last or begun or not undone:
                    raise


def reason_of(body: bytes, status: int) -> str:
    """The sentence of an answer that is none."""
    try:
        return str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return f"the node answers HTTP {status}"


def _with_query(path: str, query: dict[str, object]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


async def _found(url: str, ca: Path | None) -> tuple[BrokerLink, Placement]:
    link = await BrokerLink.open(url, ca, "xyro command")
    try:
        return link, await read_placement(link)
    except BaseException:
        await link.close()
        raise


async def read_placement(link: BrokerLink) -> Placement:
    """The placement of the crawl of a broker. InputError: there is none yet; MachineError: the broker has lost it."""
    placement = await (await Bucket.open(link)).read()
    if placement is not None:
        return placement
    if crawl := await running_crawl(link):
        raise MachineError(lost_bucket(link, crawl))
    raise InputError(
        f"{link.url}: no crawl there yet; start one with `xyro serve --join`, or the nodes of one that "
        "the broker has lost"
    )


async def running_crawl(link: BrokerLink) -> str:
    """Name of a crawl whose nodes run, whether the broker's bucket has it or not; empty: no node answers."""
    from nats.errors import Error

    try:
        answer = await link.client.request(CRAWLS, b"", timeout=NAME_SECONDS)
    except (OSError, Error):
        return ""
    return str(answer.data.decode("ascii", "replace"))


def lost_bucket(link: BrokerLink, crawl: str) -> str:
    """The sentence about a crawl that runs, and that its broker does not know."""
    return (
        f"{link.url}: nodes of crawl {crawl} run, and the broker has lost which node has which partition: "
        "`xyro cluster adopt` makes that anew from what the nodes know"
    )


async def gather_answer(
    link: BrokerLink, crawl: str, node: int, method: str, path: str, body: bytes = b"", patience: float = TAKEN_SECONDS
) -> tuple[int, bytes, dict[str, str]]:
    """The whole answer of one node: HTTP status, body and headers. patience, Unanswered: as `exchange`."""
    status, parts, headers = 0, [], dict[str, str]()
    async with aclosing(exchange(link, ask_subject(crawl, node), method, path, body, patience)) as pieces:
        async for status, sent, data in pieces:  # noqa: B007
            headers.update(json.loads(sent or "{}"))
            parts.append(data)
    return status, b"".join(parts), headers
