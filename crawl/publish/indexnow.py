"""IndexNow (www.indexnow.org): a site proves by a key file of its own that it may publish its URLs.

    200   the key is known to be right: the URLs are published, and on disk
    202   the key is to be read first: the URLs are on disk, and published when it is found to be right
    400   not the protocol's form            403   the key was looked up and is wrong
    422   URLs (or the key's place) of another host, a key that is none, or nothing that this crawl reads
    429   too many: of this host, or of all; Retry-After says when to come back

The key file is read as any page is: guard, robots.txt, politeness. One check a host is under way at a time; a key that
was right is believed for `key_age`, a wrong one is refused for WRONG seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import re
from collections import deque
from dataclasses import dataclass

from crawl.publish.machine import Machine
from crawl.publish.promises import Said
from crawl.publish.publishing import MOST_URLS, Publishing
from metadata import keys, rows
from metadata.rows import KeyedRow
from refresh.allowance import Allowance
from wire.errors import InputError
from wire.urls import authority, canonical, origin
from xyro.answer import Answer

WRONG = 600.0
"""seconds for which a key that was wrong, or could not be read, is refused without another look"""
MOST_KEYS = 10_000
MOST_WAITING, MOST_OF_HOST = 256, 4
"""publications that wait for their key: of all hosts, of one"""
MOST_TEXT = 32 << 20
"""characters of all URLs that wait for their key: anybody can make them wait"""
CHECKS, ALL_CHECKS = 20, 2_000
"""publications with a key that is not known, an hour: of one host, of all"""
AT_ONCE = 16
"""keys that are being read at once"""
KEY = re.compile(r"[A-Za-z0-9-]{8,128}", re.ASCII)
_log = logging.getLogger("xyro")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to answer."""

    status: int
    why: str = ""
    again: float = 0.0
    """429: seconds until it may work"""


class IndexNow:
    """`publish` answers; keys are checked in tasks of its own, which `close` ends."""

    def __init__(self, single: Machine, publishing: Publishing) -> None:
        self.single = single
        self.publishing = publishing
        self._unknown = Allowance(CHECKS, ALL_CHECKS)
        self._known: dict[tuple[str, str, str], tuple[bool, float]] = {}
        """(host, key, location) -> (right, until when that is believed)"""
        self._waiting: dict[int, KeyedRow] = {}
        self._text = 0
        """characters of their URLs"""
        self._queue: deque[int] = deque()
        self._checking: set[str] = set()
        """hosts"""
        self._tasks: set[asyncio.Task[None]] = set()
        self._next = 1

    def recover(self) -> None:
        """Take up what was accepted with a key that nobody has looked at yet."""
        for key, value in self.single.nodes[0].partition.scan(keys.KEYED.prefix):
            number = keys.KEYED.split(key)
            self._hold(number, rows.unpack_keyed(value))
            self._next = max(self._next, number + 1)
            self._queue.append(number)
        self._go_on()

    def _hold(self, number: int, row: KeyedRow) -> None:
        self._waiting[number] = row
        self._text += sum(map(len, row.urls))

    async def publish(self, host: object, key: object, location: object, urls: object) -> Verdict:
        """One submission; what came from the network is not trusted to be of any type."""
        if not isinstance(host, str) or not isinstance(key, str) or not isinstance(location, str | None):
            return Verdict(400, "host, key and keyLocation are text")
        if not isinstance(urls, list) or not all(isinstance(url, str) for url in urls) or not urls:
            return Verdict(400, "urlList is a list of URLs")
        if len(urls) > MOST_URLS:
            return Verdict(400, f"at most {MOST_URLS:,} URLs at once")
        if not KEY.fullmatch(key):
            return Verdict(422, "a key has 8 to 128 letters, digits or -")
        try:
            found = [canonical(url) for url in urls]
            named = authority(canonical(f"{found[0].partition(':')[0]}://{host}/"))  # as URLs write it
            place = canonical(location) if location else f"{origin(found[0])}/{key}.txt"
        except InputError as error:
            return Verdict(400, str(error))
        return await self._judge(named, key, place, list(dict.fromkeys(found)))

    async def _judge(self, host: str, key: str, place: str, urls: list[str]) -> Verdict:
        if any(authority(url) != host for url in (place, *urls)):
            return Verdict(422, "all URLs, and the key's, belong to the host")
        below = place[: place.rindex("/") + 1].partition("://")[2]
        if not all(url.partition("://")[2].startswith(below) for url in urls):
            return Verdict(422, "a key below a folder speaks for the URLs below that folder")
        readable, refused = self.publishing.readable(urls)
        if not readable:
            return Verdict(422, f"this crawler does not read them ({refused[0][1]})")
        right = self._status((host, key, place))
        if right is None:
            return await self._later(KeyedRow(host, key, place, tuple(readable), self.single.clock.time()))
        return await self._publish(host, readable) if right else Verdict(403, "the key is not at its place")

    def _status(self, name: tuple[str, str, str]) -> bool | None:
        right, until = self._known.get(name, (False, -math.inf))
        return right if self.single.clock.monotonic() < until else None

    async def _publish(self, host: str, urls: list[str], at: float | None = None) -> Verdict:
        wait = self.publishing.allowance.take(host, len(urls), self.single.clock.monotonic())
        if wait:
            return Verdict(429, "too many URLs", wait)
        now = self.single.clock.time()
        said = Said("changed", at or now, (at or now) + self.single.settings.publish.deadline)
        refused = await self.publishing.publish(urls, said)
        if refused and len(refused) == len(urls):
            return Verdict(429, "too many of this host wait to be read", WRONG)
        return Verdict(200)

    async def _later(self, row: KeyedRow) -> Verdict:
        """Keep it until its key has been read."""
        of_host = sum(other.host == row.host for other in self._waiting.values())
        text = sum(map(len, row.urls))
        full = len(self._waiting) >= MOST_WAITING or self._text + text > MOST_TEXT
        if full or of_host >= MOST_OF_HOST:
            return Verdict(429, "too many wait for their key", 60.0)
        wait = self._unknown.take(row.host, 1.0, self.single.clock.monotonic())
        if wait:
            return Verdict(429, "too many keys of this host", wait)
        number, self._next = self._next, self._next + 1
        self._hold(number, row)
        partition = self.single.nodes[0].partition
        await self.single.loops[0].edit(lambda: partition.put(keys.KEYED.key(number), rows.pack(row)))
        self._queue.append(number)
        self._go_on()
        return Verdict(202, "the key is read first")

    # -- keys ----------------------------------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Check what waits: one of a host, AT_ONCE of all."""
        for number in list(self._queue):
            if len(self._tasks) >= AT_ONCE:
                return
            host = self._waiting[number].host
            if host not in self._checking:
                self._queue.remove(number)
                self._checking.add(host)
                task = asyncio.create_task(self._check(number))
                self._tasks.add(task)
                task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            if error := task.exception():
                _log.error("a key could not be checked (a bug): %r", error)
            self._go_on()

    async def _check(self, number: int) -> None:
        row = self._waiting[number]
        try:
            name = row.host, row.key, row.location
            right = self._status(name)
            if right is None:
                right = await self._read(row)
                self._remember(name, right)
            if right:
                await self._publish(row.host, list(row.urls), row.at)
            partition = self.single.nodes[0].partition
            await self.single.loops[0].edit(lambda: partition.delete(keys.KEYED.key(number)))
        finally:
            self._checking.discard(row.host)
            if self._waiting.pop(number, None) is not None:
                self._text -= sum(map(len, row.urls))

    async def _read(self, row: KeyedRow) -> bool:
        """Does the key stand at its place?"""
        answer: Answer | None = None
        with contextlib.suppress(TimeoutError):
            answer = await self.single.side.read(row.location)
        body = answer.body if answer is not None and answer.status == 200 and not answer.error else None
        return body is not None and len(body) < 1_024 and body.removeprefix(b"\xef\xbb\xbf").strip() == row.key.encode()

    def _remember(self, name: tuple[str, str, str], right: bool) -> None:
        if len(self._known) >= MOST_KEYS:
            now = self.single.clock.monotonic()
            self._known = {name: known for name, known in self._known.items() if known[1] > now}
            if len(self._known) >= MOST_KEYS:
                self._known.clear()  # they are looked up again: a cache, no record
        age = self.single.settings.publish.key_age if right else WRONG
        self._known[name] = right, self.single.clock.monotonic() + age

    async def close(self) -> None:
        """End the checks; what waits is on disk."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
