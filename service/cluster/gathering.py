"""Asks every node of a cluster, and names the partitions of those that do not answer.

A node answers for its own partitions where a request says `part=1` (service/api); the one that was asked by somebody
asks all others so, itself included, and combines what comes. Where the broker is away it answers for itself alone, and
names all others. Each node says which partitions its answer covers (coverage.py): where one moves, so that none or two
had it, all are asked again, until the move is over or has taken too long.

For an audit all partitions stand still at one moment: each node holds its commit boundary and says so; when all do,
what each sees belongs together, and all go on. Reads go on meanwhile; the whole takes a fraction of a second.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xyro.service.cluster.cluster_remote import TAKEN_SECONDS, Unanswered, gather_answer, reason_of
from xyro.service.cluster.node_watch import live_node
from xyro.service.node.coverage import HEADER, covered
from xyro.service.node.long_views import CUT, LongViews
from xyro.service.views.views import Views
from xyro.wire.clock import Clock
from xyro.wire.errors import InputError, MachineError, XyroError

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from xyro.service.cluster.transport import ClusterBus

LATE_SECONDS, LATE_PATIENCE = 30.0, 1.0
"""for so long after a node took no request, further ones wait only so long for it"""
MOVE_SECONDS, AGAIN = 10.0, 0.2
"""for a partition that moves to be open somewhere, before an answer does without it; until it is looked for again"""
MOST_CUTS = 4
"""results of cuts that wait to be fetched"""
Reply = tuple[int, bytes, Mapping[str, str]]
"""HTTP status, body, headers"""
AskSelf = Callable[[str, str, bytes], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class Gathered:
    """The answers of all nodes that own partitions."""

    answers: dict[int, Any]
    """node -> JSON"""
    missing: list[str]
    """a sentence for each node that did not answer"""
    covers: dict[int, frozenset[int]]
    """node -> partitions that its answer covers"""


class MoveWait:
    """Waits until partitions that no node answered for, as they move, are open somewhere.

    find_shut: says which of some partitions their nodes do not have, so that nobody waits for these."""

    def __init__(self, clock: Clock, find_shut: Callable[[set[int]], Awaitable[set[int]]]) -> None:
        self._clock = clock
        self._find_shut = find_shut
        self.renew()

    def renew(self) -> None:
        """Begin anew: a partition came."""
        self._end = self._clock.monotonic() + MOVE_SECONDS

    async def again(self, partitions: Iterable[int]) -> None:
        """Return when it is time to ask again. MachineError: they have moved for too long, or are closed for good."""
        shut = await self._find_shut(absent := {*partitions})
        if absent == shut or self._clock.monotonic() > self._end:
            raise MachineError(
                "; ".join(tell(some) for tell, some in ((closed, shut), (moving, absent - shut)) if some)
            )
        await self._clock.sleep(AGAIN)


class Gathering:
    """Questions of one node to all."""

    def __init__(self, bus: ClusterBus, ask_self: AskSelf, clock: Clock) -> None:
        """ask_self: asks this node's own HTTP interface: method, path, body."""
        self._bus = bus
        self._ask_self = ask_self
        self._clock = clock
        self._late: dict[int, float] = {}
        """nodes that took no request, and when (monotonic)"""

    @property
    def owners(self) -> list[int]:
        """Numbers of the nodes that own partitions."""
        return sorted({owner.node for owner in self._bus.placement.owners})

    def owner_of(self, partition: int) -> int:
        """The node that owns a partition."""
        return self._bus.placement.owners[partition].node

    async def ask(self, path: str, method: str = "GET", body: bytes = b"", nodes: Sequence[int] = ()) -> Gathered:
        """Ask all nodes that own partitions, or those named, once. InputError: what a node refused."""
        asked = nodes or self.owners
        found = await asyncio.gather(*(self._ask(n, method, path, body) for n in asked), return_exceptions=True)
        answers, missing, covers = {}, [], {}
        for node, answer in zip(asked, found, strict=True):
            if isinstance(answer, InputError):
                raise answer
            if isinstance(answer, XyroError | OSError | TimeoutError):
                missing.append(self._absence(node, str(answer)))
            elif isinstance(answer, BaseException):
                raise answer
            else:
                content, covers[node] = answer
                if content is not None:
                    answers[node] = content
        return Gathered(answers, missing, covers)

    async def ask_all(self, path: str) -> Gathered:
        """Ask all nodes, and again while partitions move: each is in one answer, or named by `missing`."""
        wait = self.wait()
        while True:
            gathered = await self.ask(path)
            if not (uneven := self._uneven(gathered)):
                return gathered
            try:
                await wait.again(uneven)
            except MachineError as error:
                gathered.missing.append(str(error))
                return gathered

    def _uneven(self, gathered: Gathered) -> list[int]:
        """Partitions that not one answer covers, but none or several; those of nodes that did not answer aside."""
        owners = self._bus.placement.owners
        counts = Counter(partition for covers in gathered.covers.values() for partition in covers)
        return [
            q for q, owner in enumerate(owners) if counts[q] > 1 or (not counts[q] and owner.node in gathered.covers)
        ]

    async def ask_owner(self, partitions: Collection[int], path: str, method: str = "GET", body: bytes = b"") -> Any:
        """Ask the node that has some partitions. MachineError: it does not answer, or they move for too long."""
        wait = self.wait()
        while True:
            node = self.owner_of(min(partitions))
            try:
                status, data, headers = await self._exchange(node, method, path, body)
            except (XyroError, OSError, TimeoutError) as error:
                raise MachineError(self._absence(node, str(error))) from error
            if not headers or covered(headers).issuperset(partitions):  # without any, the answer is that it broke off
                return _content(status, data)
            await wait.again(partitions)

    def wait(self) -> MoveWait:
        """A wait for partitions that move."""
        return MoveWait(self._clock, self._find_shut)

    async def _find_shut(self, partitions: set[int]) -> set[int]:
        """Find those of some partitions that their nodes do not have."""
        nodes = {self.owner_of(q) for q in partitions}
        answers = await asyncio.gather(*(live_node(self._bus.link, self._bus.placement.crawl, n) for n in nodes))
        return {q for live in answers if live is not None for q in live.shut & partitions}

    async def _ask(self, node: int, method: str, path: str, body: bytes) -> tuple[Any, frozenset[int]]:
        """A node's answer, None where it failed as a partition came or went; what it covers."""
        status, data, headers = await self._exchange(node, method, path, body)
        if status != 200 and headers and HEADER not in headers:
            return None, frozenset()
        return _content(status, data), covered(headers)

    async def _exchange(self, node: int, method: str, path: str, body: bytes) -> Reply:
        if node == self._bus.number:
            return await self._ask_self(method, path, body)
        if not self._bus.link.connected:
            raise MachineError("the broker is away")
        return await self._ask_other(node, method, path, body)

    async def _ask_other(self, node: int, method: str, path: str, body: bytes) -> Reply:
        now = self._clock.monotonic()
        late = now - self._late.get(node, -LATE_SECONDS) < LATE_SECONDS
        patience = LATE_PATIENCE if late else TAKEN_SECONDS
        try:
            found = await gather_answer(self._bus.link, self._bus.placement.crawl, node, method, path, body, patience)
        except Unanswered:
            self._late[node] = self._clock.monotonic()
            raise
        self._late.pop(node, None)
        return found

    def _absence(self, node: int, reason: str) -> str:
        owned = sorted(self._bus.placement.owned(node))
        member = self._bus.placement.members.get(str(node))
        place = f" on {member.host}" if member is not None else ""
        if member is not None and member.ended:
            reason = f"its process failed: {member.ended}"
        return f"partitions {listed(owned)} of node {node}{place} did not answer: {reason.partition(';')[0]}"

    async def cut(self) -> tuple[str, list[int], list[str]]:
        """Let all nodes look at one moment: (name of the cut, nodes that did, sentences about those that did not)."""
        name, crawl = secrets.token_hex(8), self._bus.placement.crawl
        nodes = self.owners
        began = self._clock.monotonic()
        stands = await asyncio.gather(*(self._hold(node, crawl, name) for node in nodes))
        in_time = self._clock.monotonic() - began < CUT
        await self._bus.link.publish(release_subject(crawl), name.encode())
        reason = "it did not stand still in time" if self._bus.link.connected else "the broker is away"
        missing = [self._absence(node, reason) for node, ok in zip(nodes, stands, strict=True) if not ok]
        if not in_time:
            missing += ["the partitions did not come to stand at one moment: ask again"]
        return name, [node for node, ok in zip(nodes, stands, strict=True) if ok and in_time], missing

    async def _hold(self, node: int, crawl: str, name: str) -> bool:
        from nats.errors import Error

        try:
            answer = await self._bus.link.client.request(cut_subject(crawl, node), name.encode(), timeout=CUT - 0.5)
        except (OSError, Error):
            return False
        return bool(answer.data == name.encode())


def _content(status: int, data: bytes) -> Any:
    """The JSON of an answer. InputError, MachineError: it says why it is none."""
    if status != 200:
        raise (InputError if status == 400 else MachineError)(reason_of(data, status))
    return json.loads(data)


def moving(partitions: Iterable[int]) -> str:
    """The sentence about partitions that no node answered for."""
    return f"partitions {listed(sorted(partitions))} are moving between nodes, or open on none: ask again"


def closed(partitions: Iterable[int]) -> str:
    """The sentence about partitions that their nodes do not have."""
    return (
        f"partitions {listed(sorted(partitions))} are closed: their nodes do not have them as the cluster does, as "
        "their logs say; `xyro cluster restore` brings them back from a backup"
    )


def cut_subject(crawl: str, node: int) -> str:
    """Subject of the requests to a node to stand still."""
    return f"xyro.{crawl}.cut.{node}"


def release_subject(crawl: str) -> str:
    """Subject on which a cut is over."""
    return f"xyro.{crawl}.go-on"


class Cuts:
    """The cuts that one node takes part in: what it saw waits here to be fetched."""

    def __init__(self, bus: ClusterBus, views: LongViews, find: Callable[[Views], Any]) -> None:
        """find: what is to be found of a cut, in a thread."""
        self._bus = bus
        self._views = views
        self._find = find
        self._released: dict[str, asyncio.Event] = {}
        self._found: dict[str, asyncio.Task[Any]] = {}

    async def start(self) -> None:
        """Take part from now on."""
        crawl = self._bus.placement.crawl
        await self._bus.link.subscribe(cut_subject(crawl, self._bus.number), self._begin)
        await self._bus.link.subscribe(release_subject(crawl), self._end)

    async def close(self) -> None:
        """Break off what is under way."""
        for task in self._found.values():
            task.cancel()
        await asyncio.gather(*self._found.values(), return_exceptions=True)

    async def _begin(self, received: Msg) -> None:
        name = received.data.decode("ascii", "replace")
        standing, released = asyncio.Event(), self._released.setdefault(name, asyncio.Event())
        self._found[name] = task = asyncio.create_task(self._views.cut(standing.set, released, self._find))
        while len(self._found) > MOST_CUTS:
            self._found.pop(next(iter(self._found))).cancel()
        waiting = asyncio.create_task(standing.wait())
        await asyncio.wait([waiting, task], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if standing.is_set():
            await self._bus.link.publish(received.reply, received.data)
        elif not task.cancelled():
            task.exception()

    async def _end(self, received: Msg) -> None:
        if (released := self._released.pop(received.data.decode("ascii", "replace"), None)) is not None:
            released.set()

    async def take(self, name: str) -> Any:
        """Return the findings of this node at a cut. InputError: it knows none of that name."""
        task = self._found.get(name)
        if task is None:
            raise InputError("this cut is not known here: ask again")
        with suppress(KeyError):
            return await asyncio.shield(task)


def listed(numbers: Iterable[int]) -> str:
    """Write numbers as people do: 3-5, 9."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


SUMS = (
    *("known", "reads", "hosts", "doubted_hosts", "partitions", "waiting_links", "waiting_loads", "versions", "bodies"),
    *("bodies_bytes", "spends", "reads_this_run", "pages_per_second", "in_flight", "leased", "robots_reads", "bytes"),
    *("stale_reports", "states", "held_hosts", "challenged_hosts", "documents", "validity", "queue", "errors"),
    *("refresh_per_second", "missed_changes", "freshness_evidence", "cut_short", "textless", "bounded_reads"),
)
"""fields of a status that are added up, of objects each field"""
MAXIMA = ("seconds", "max_rss_mib", "turnovers")
MACHINE = ("disk", "contents", "clock", "sink", "reader", "proxy")
"""kinds of findings (service/views/limits.py) that are each node's own"""
MEANS = ("freshness", "freshness_low", "freshness_high", "freshness_model", "gamma", "mean_size", "mean_depth")
"""each node's weighed by its known pages"""


def merged_status(gathered: Gathered) -> dict[str, Any]:
    """One status of those of all nodes; first of all, who did not answer. Fields that are neither sums, maxima nor
    means are those of the node that knows most pages."""
    parts = sorted(gathered.answers.values(), key=lambda part: -part.get("known", 0))
    merged: dict[str, Any] = {"missing": gathered.missing} if gathered.missing else {}
    for key in dict.fromkeys(key for part in parts for key in part):
        values = [(part[key], part.get("known", 0)) for part in parts if part.get(key) is not None]
        if key in SUMS:
            merged[key] = _sum([value for value, _ in values])
        elif key in MAXIMA:
            merged[key] = max(value for value, _ in values)
        elif key in MEANS and values:
            weight = sum(pages for _, pages in values)
            merged[key] = round(sum(v * pages for v, pages in values) / weight, 4) if weight else values[0][0]
        else:
            merged[key] = values[0][0] if values else None
    merged["nodes"] = [
        {"node": node, "partitions": part["partitions"], "known": part["known"], "reads": part["reads"]}
        for node, part in sorted(gathered.answers.items())
    ]
    merged["troubled_nodes"] = [
        {"node": node, **row}
        for node, part in sorted(gathered.answers.items())
        for row in part["limits"]["wrong"]
        if row["kind"] in MACHINE
    ]
    return merged


def _sum(values: list[Any]) -> Any:
    if any(isinstance(value, dict) for value in values):
        keys = dict.fromkeys(key for value in values for key in value)
        return {key: _sum([value[key] for value in values if value.get(key) is not None]) for key in keys}
    total = sum(values)
    return round(total, 4) if isinstance(total, float) else total
