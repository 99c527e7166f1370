"""IndexNow (www.indexnow.org): a site proves by a key file of its own that it may publish its URLs.

    200   the key is known to be right: the URLs are published, and on disk
    202   the key is to be read first: the URLs are on disk, and published when it is found to be right
    400   not the protocol's form            403   the key was looked up and is wrong
    422   URLs (or the key's place) of another host, a key that is none, or nothing that this crawl reads
    429   too many: of this host, or of all; Retry-After says when to come back

The key file is read as any page is: guard, robots.txt, politeness. One check a host is under way at a time; a key that
was right is believed for `key_age`, a wrong one is refused for WRONG seconds. Unknown keys are few an hour: of a host,
and of one who sends, so that nobody uses up a host's share alone; one that was right is looked up again in any case.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from xyro.answer import Answer
from xyro.metadata import rows
from xyro.plugins.publish.promises import PublisherClaim
from xyro.plugins.publish.publish_messages import ListRows, RowTable, store_row
from xyro.plugins.publish.publishing import MOST_URLS, Publishing
from xyro.plugins.publish.stored_rows import KeyedRow, unpack_keyed
from xyro.refresh.allowance import HOUR, Allowance
from xyro.service.node.slicing import unhurried
from xyro.wire.errors import InputError
from xyro.wire.ids import HOME
from xyro.wire.urls import authority, canonical, origin

if TYPE_CHECKING:
    from xyro.service.node.services import Services

WRONG = 600.0
"""seconds for which a key that was wrong, or could not be read, is refused without another look"""
MOST_KEYS = 10_000
MOST_WAITING, MOST_OF_HOST = 256, 4
"""publications that wait for their key: of all hosts, of one"""
MOST_TEXT = 32 << 20
"""characters of all URLs that wait for their key: anybody can make them wait"""
CHECKS, ALL_CHECKS, SENDER_CHECKS = 20, 2_000, 5
"""publications with a key that is not known, an hour: of one host, of all, of one sender for one host"""
SAMPLE = 100
"""URLs, the first ones, of which one has to be read here before an unknown key is worth a look"""
LISTED_AT_ONCE = 16
"""publications, of 1 MB at most each, in one ListRows"""
AT_ONCE = 16
"""keys that are being read at once"""
KEY = re.compile(r"[A-Za-z0-9-]{8,128}", re.ASCII)
_log = logging.getLogger("xyro")


@dataclass(frozen=True, slots=True)
class KeyVerdict:
    """The answer to a publication: an HTTP status and a sentence."""

    status: int
    why: str = ""
    again: float = 0.0
    """429: seconds until it may work"""


_FULL = KeyVerdict(429, "too many wait for their key", 60.0)


class IndexNow:
    """`publish` answers; keys are checked in tasks of its own, which `close` ends."""

    def __init__(self, services: Services, publishing: Publishing) -> None:
        self.services = services
        self.publishing = publishing
        self._unknown = Allowance(CHECKS, ALL_CHECKS)
        self._senders = Allowance(SENDER_CHECKS, ALL_CHECKS)
        self._verdicts: dict[tuple[str, str, str], tuple[bool, float]] = {}
        """(host, key, location) -> (right, until when that is believed)"""
        self._waiting: dict[int, KeyedRow] = {}
        self._text = 0
        """characters of their URLs"""
        self._queue: deque[int] = deque()
        self._checking: set[str] = set()
        """hosts"""
        self._tasks: set[asyncio.Task[None]] = set()
        """one for each check, and for what is right and has to wait"""
        self._next = 1

    async def recover(self) -> None:
        """Take up what was accepted with a key that nobody has looked at yet."""
        while True:
            ask = partial(ListRows, table=RowTable.KEYED, first=self._next, limit=LISTED_AT_ONCE)
            some = await self.services.commands.send(HOME, ask)
            for number, row in some:
                self._hold(number, unpack_keyed(row))
                self._next = number + 1
                self._queue.append(number)
            if len(some) < LISTED_AT_ONCE:
                break
        self._go_on()

    def _hold(self, number: int, row: KeyedRow) -> None:
        self._waiting[number] = row
        self._text += sum(map(len, row.urls))

    async def publish(self, host: object, key: object, location: object, urls: object, sender: str = "") -> KeyVerdict:
        """One submission; what came from the network is not trusted to be of any type. sender: its address, empty where
        that says nothing (a proxy's)."""
        if not isinstance(host, str) or not isinstance(key, str) or not isinstance(location, str | None):
            return KeyVerdict(400, "host, key and keyLocation are text")
        if not isinstance(urls, list) or not all(isinstance(url, str) for url in urls) or not urls:
            return KeyVerdict(400, "urlList is a list of URLs")
        if len(urls) > MOST_URLS:
            return KeyVerdict(400, f"at most {MOST_URLS:,} URLs at once")
        if not KEY.fullmatch(key):
            return KeyVerdict(422, "a key has 8 to 128 letters, digits or -")
        try:
            return await self._judge(host, key, location, urls, sender)
        except InputError as error:
            return KeyVerdict(400, str(error))

    async def _judge(self, host: str, key: str, location: str | None, urls: list[str], sender: str) -> KeyVerdict:
        """Anybody may send this: what takes no look at all the URLs comes first. InputError: one is none."""
        fold = self.services.scope.fold_slashes
        first = canonical(urls[0], fold_slashes=fold)
        named = authority(canonical(f"{first.partition(':')[0]}://{host}/"))  # as URLs write it
        place = canonical(location, fold_slashes=fold) if location else f"{origin(first)}/{key}.txt"
        if named != authority(first):
            return KeyVerdict(422, "all URLs, and the key's, belong to the host")
        right = self._status((named, key, place))
        if right is False:
            return KeyVerdict(403, "the key is not at its place")
        if right is None and (full := self._refused((named, key, place), urls, sender)):
            return full
        found = {canonical(url, fold_slashes=fold): None async for url in unhurried(urls)}
        below = place[: place.rindex("/") + 1].partition("://")[2]  # begins with its host: all are of one
        if not all(url.partition("://")[2].startswith(below) for url in found):
            return KeyVerdict(422, "a key speaks for URLs of its host and below its folder")
        readable, refused = await self.publishing.sift(list(found))
        if not readable:
            return KeyVerdict(422, f"this crawler does not read them ({refused[0][1]})")
        if right:
            return await self._publish(named, readable)
        return await self._later(KeyedRow(named, key, place, tuple(readable), self.services.clock.time()))

    def _status(self, name: tuple[str, str, str]) -> bool | None:
        right, until = self._verdicts.get(name, (False, -math.inf))
        return right if self.services.clock.monotonic() < until else None

    async def _publish(self, host: str, urls: list[str], made_at: float | None = None) -> KeyVerdict:
        wait = self.publishing.allowance.take(host, len(urls), self.services.clock.monotonic())
        if wait:
            return KeyVerdict(429, "too many URLs", wait)
        now = self.services.clock.time()
        claim = PublisherClaim("changed", made_at or now, (made_at or now) + self.services.settings.publish.deadline)
        refused = await self.publishing.publish(urls, claim)
        if len(refused) < len(urls):
            return KeyVerdict(200)
        if all(why == "too-many" for _, why in refused):
            return KeyVerdict(429, "too many of this host wait to be read", WRONG)
        return KeyVerdict(422, f"this crawler does not read them ({refused[0][1]})")

    def _refused(self, name: tuple[str, str, str], urls: Sequence[str], sender: str) -> KeyVerdict | None:
        """Return the reason why a key is not looked up for these URLs. It is found before the URLs are parsed (10,000
        take 0.5 s)."""
        if self._is_full(name[0], sum(map(len, urls))):
            return _FULL
        readable, reasons = self.publishing.readable(urls[:SAMPLE])
        if not readable:  # nor does it count against those who publish what is read here
            return KeyVerdict(422, f"this crawler does not read them ({reasons[0][1]})")
        wait = self._take_check(name, sender)
        return KeyVerdict(429, "too many keys of this host", wait) if wait else None

    async def _later(self, row: KeyedRow) -> KeyVerdict:
        """Keep it until its key has been read. What could never be published then is refused now."""
        if self._is_full(row.host, sum(map(len, row.urls))):
            return _FULL
        if len(row.urls) > self.publishing.largest:
            return KeyVerdict(429, "too many URLs", HOUR)
        number, self._next = self._next, self._next + 1
        self._hold(number, row)
        self._queue.append(number)  # at once: who asked may go away while it is written
        try:
            await store_row(self.services.commands, RowTable.KEYED, number, rows.pack(row))
        finally:
            self._go_on()
        return KeyVerdict(202, "the key is read first")

    def _is_full(self, host: str, text: int) -> bool:
        """Tell whether there is no room for another waiting publication of this size in characters."""
        if len(self._waiting) >= MOST_WAITING or self._text + text > MOST_TEXT:
            return True
        return sum(other.host == host for other in self._waiting.values()) >= MOST_OF_HOST

    def _take_check(self, name: tuple[str, str, str], sender: str) -> float:
        """Seconds until this key (host, key, location) may be looked up, 0.0 if now."""
        if self._verdicts.get(name, (False, 0.0))[0]:
            return 0.0  # it was right when it was looked up last
        now = self.services.clock.monotonic()
        own = self._senders.take(f"{sender} {name[0]}", 1.0, now) if sender else 0.0
        return own or self._unknown.take(name[0], 1.0, now)

    # -- keys ----------------------------------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Check what waits: one of a host, AT_ONCE of all."""
        for number in list(self._queue):
            if len(self._checking) >= AT_ONCE:
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
        """Read its key, then publish it; what was accepted waits as long as its host may publish no more."""
        row, wait = self._waiting[number], 0.0
        try:
            if await self._is_right(row):
                wait = (await self._publish(row.host, list(row.urls), row.received_at)).again
            if not wait:
                await store_row(self.services.commands, RowTable.KEYED, number, b"")
        finally:
            self._checking.discard(row.host)
            if not wait:
                del self._waiting[number]
                self._text -= sum(map(len, row.urls))
        if wait:
            self._go_on()
            await self.services.clock.sleep(wait)
            self._queue.append(number)

    async def _is_right(self, row: KeyedRow) -> bool:
        name = row.host, row.key, row.location
        right = self._status(name)
        if right is None:
            right = await self._read(row)
            self._remember(name, right)
        return right

    async def _read(self, row: KeyedRow) -> bool:
        """Read the key's file; tell whether it holds the key."""
        answer: Answer | None = None
        with contextlib.suppress(TimeoutError):
            answer = await self.services.side_reads.read(row.location)
        body = answer.body if answer is not None and answer.status == 200 and not answer.error else None
        return body is not None and len(body) < 1_024 and body.removeprefix(b"\xef\xbb\xbf").strip() == row.key.encode()

    def _remember(self, name: tuple[str, str, str], right: bool) -> None:
        if len(self._verdicts) >= MOST_KEYS:
            now = self.services.clock.monotonic()
            self._verdicts = {name: verdict for name, verdict in self._verdicts.items() if verdict[1] > now}
            if len(self._verdicts) >= MOST_KEYS:
                self._verdicts.clear()  # they are looked up again: a cache, no record
        age = self.services.settings.publish.key_age if right else WRONG
        self._verdicts[name] = right, self.services.clock.monotonic() + age

    async def close(self) -> None:
        """End the checks; what waits is on disk."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
