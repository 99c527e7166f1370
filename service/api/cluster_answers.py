"""Answers of a node of a cluster for the whole crawl, made of the parts of all nodes.

A request with `part=1` is one of these questions between nodes, and is answered for this node's partitions alone
(http_api.py). `mean` in it is the importance of a mean page of the whole crawl, by which importances are shown.

Where a node does not answer, rankings, sums and tables fail (MachineError with its name). What is about single pages or
hosts comes of those that answer: a status and an explanation have the field `missing`, sentences about the others; rows
end, where the request says `partial=1`, with one that has `missing` alone.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any
from urllib.parse import urlencode

import msgspec
from aiohttp import ClientError, ClientSession, web

from xyro.plugins.dashboard.page_failures import merged_failures
from xyro.plugins.warehouse.documents_view import is_page_id
from xyro.service.cluster.cluster_remote import ask_subject, exchange, gather_answer, reason_of
from xyro.service.cluster.gathering import MOVE_SECONDS, Cuts, Gathered, Gathering, Reply, listed, merged_status
from xyro.service.cluster.node_answers import BROKEN_OFF
from xyro.service.cluster.node_watch import live_node
from xyro.service.cluster.transport import ClusterBus
from xyro.service.node.coverage import PARAMETER, covered, packed_partitions
from xyro.service.views.audit import PartitionAudit, combined_audit
from xyro.service.views.limits import limits
from xyro.service.views.site_ranking import ranked_sites
from xyro.service.views.views import NO_SITE
from xyro.wire.clock import Clock
from xyro.wire.errors import InputError, MachineError
from xyro.wire.ids import PageId, owner_of
from xyro.wire.urls import host_of, partition_of

ROWS_AT_ONCE = 256
"""rows of a table that are completed between two turns of the event loop"""


class ClusterAnswers:
    """The answers of one node for all."""

    def __init__(self, bus: ClusterBus, cuts: Cuts, clock: Clock, base: str, bearer: str) -> None:
        """base, bearer: address of this node's own interface, and its Authorization."""
        self.cuts = cuts
        self._bus = bus
        self._base = base
        self._session = ClientSession(headers={"Authorization": bearer})
        self._gathering = Gathering(bus, self._ask_self, clock)

    async def close(self) -> None:
        await self.cuts.close()
        await self._session.close()

    async def _ask_self(self, method: str, path: str, body: bytes) -> Reply:
        async with self._session.request(method, self._base + path, data=body or None) as response:
            return response.status, await response.read(), response.headers

    async def status(self) -> dict[str, Any]:
        """The status of all nodes together."""
        merged = merged_status(await self._gathering.ask_all("/status?part=1"))
        return merged | {"limits": limits(merged)}

    async def audit(self) -> dict[str, Any]:
        """The audit of all partitions, of one cut."""
        parts, missing = await self._audits()
        absent = {*range(self._bus.placement.partitions)}.difference(*(part.partitions for part in parts))
        if absent and not missing:
            missing.append(f"partitions {listed(sorted(absent))} are open on no node")
        return combined_audit(parts, missing)

    async def absent(self, partitions: Collection[int], seconds: float) -> dict[int, str]:
        """Name those of some partitions whose node does not answer or, after MOVE_SECONDS, does not have them open."""
        link, crawl, members = self._bus.link, self._bus.placement.crawl, self._bus.placement.members
        owners = {q: self._gathering.owner_of(q) for q in partitions}
        nodes = sorted({*owners.values()})
        answers = await asyncio.gather(*(live_node(link, crawl, node) for node in nodes))
        here, found = dict(zip(nodes, answers, strict=True)), dict[int, str]()
        for q, node in owners.items():
            if (live := here[node]) is None:
                host = members[str(node)].host if str(node) in members else "?"
                found[q] = (
                    f"node {node} on {host}, which has its host, does not answer: submit it again when it is back"
                )
            elif q in live.shut or (q not in live.open and seconds > MOVE_SECONDS):
                found[q] = f"partition {q}, which has its host, is open on no node: the log of node {node} says why"
        return found

    async def books(self) -> dict[str, Any]:
        """The audits of all nodes that answer, of one cut, not combined yet; and who does not."""
        parts, missing = await self._audits()
        return {"parts": [packed(part) for part in parts], "missing": missing}

    async def _audits(self) -> tuple[list[PartitionAudit], list[str]]:
        name, stood, missing = await self._gathering.cut()
        if not stood:
            return [], missing
        gathered = await self._gathering.ask(f"/audit?part=1&cut={name}", nodes=stood)
        parts = [convert_audit(answer) for answer in gathered.answers.values() if answer is not None]
        return parts, [*missing, *gathered.missing]

    async def parts_of(self, path: str) -> list[Any]:
        """Ask all nodes; return their answers. MachineError: somebody did not answer, or a partition is in none."""
        gathered = await self._gathering.ask_all(path)
        if gathered.missing:
            raise MachineError("; ".join(gathered.missing))
        return list(gathered.answers.values())

    async def parts(self, request: web.Request) -> list[Any]:
        """Ask all nodes for their parts of what a request asks for. MachineError: as `parts_of`."""
        query = {**request.query, "part": 1, "mean": await self.mean()}
        return await self.parts_of(f"{request.path}?{urlencode(query)}")

    async def mean(self) -> float:
        """Importance of a mean page of the whole crawl. MachineError: somebody did not answer."""
        mean, there = await self._known_mean()
        if there.missing:
            raise MachineError("; ".join(there.missing))
        return mean

    async def _known_mean(self) -> tuple[float, Gathered]:
        """The same of the nodes that answer; and which these are."""
        there = await self._gathering.ask_all("/mass?part=1")
        pages = sum(answer["known"] for answer in there.answers.values())
        total = sum(answer["importance"] for answer in there.answers.values())
        return total / pages if pages and total > 0 else 1.0, there

    async def why(self, url: str) -> dict[str, Any]:
        """Explain a URL, by the node that has its host; `missing`: what the others did not say. MachineError: that node
        does not answer."""
        mean, there = await self._known_mean()
        explanation: dict[str, Any] = await self.of_owner(url, "/why", {"url": url, "mean": mean})
        if not there.missing:
            return explanation
        absences = [f"{absence[0].upper()}{absence[1:]}: importance is told beside a mean page of the others."
                    for absence in there.missing]  # fmt: skip
        return {**explanation, "missing": there.missing, "because": [*explanation["because"], *absences]}

    async def failures(self, partial: bool) -> list[dict[str, Any]]:
        """Failures by class, of all nodes. partial: as in the head of this file; else MachineError."""
        gathered = await self._gathering.ask_all("/errors?part=1")
        if gathered.missing and not partial:
            raise MachineError("; ".join(gathered.missing))
        return [*merged_failures(gathered.answers.values()), *_absent(gathered.missing)]

    async def top(self, count: int, by: str) -> list[dict[str, Any]]:
        """The best of all nodes. MachineError: somebody did not answer."""
        path = f"/top?{urlencode({'part': 1, 'n': count, 'by': by, 'mean': await self.mean()})}"
        found = [row for answer in await self.parts_of(path) for row in answer]
        return sorted(found, key=lambda row: -row["score"])[:count]

    def _partition_of(self, url: str) -> int:
        return partition_of(host_of(url), self._bus.placement.partitions)

    async def of_owner(self, url: str, path: str, query: Mapping[str, Any], body: bytes = b"") -> Any:
        """Ask the node that has a URL's host. MachineError: it does not answer."""
        method, path = "POST" if body else "GET", f"{path}?{urlencode({'part': 1, **query})}"
        return await self._gathering.ask_owner([self._partition_of(url)], path, method, body)

    async def ask_partition(self, partition: int, path: str) -> Any:
        """Ask the node that has a partition. MachineError: it does not answer."""
        return await self._gathering.ask_owner([partition], path)

    async def passed_on(self, request: web.Request) -> web.Response | None:
        """Return the answer of the node whose document a request names, by URL or page id; None: this node has it."""
        reference, partitions = request.query.get("what", ""), self._bus.placement.partitions
        partition = (
            owner_of(PageId(int(reference))) if is_page_id(reference) else partition_of(host_of(reference), partitions)
        )
        if partition >= partitions:
            raise InputError(f"{reference}: no page has this id; `xyro export documents` lists them")
        path, wait = f"{request.path}?{urlencode({**request.query, 'part': 1})}", self._gathering.wait()
        while partition not in self._bus.open:
            if (node := self._gathering.owner_of(partition)) != self._bus.number:
                try:
                    status, body, sent = await gather_answer(
                        self._bus.link, self._bus.placement.crawl, node, "GET", path
                    )
                except MachineError as error:
                    raise MachineError(f"node {node}: {error}") from error
                if not sent or partition in covered(sent):
                    headers = {key: value for key, value in sent.items() if key.startswith(("X-", "Content-Type"))}
                    return web.Response(status=status, headers=headers, body=body)
            await wait.again([partition])
        return None

    async def streamed(self, request: web.Request) -> AsyncIterator[bytes]:
        """The answers of all nodes to a request, one node after the other, each of one commit boundary of that node.

        One that has a partition no more leaves it to the node that has it now: each partition is in one answer.
        MachineError: somebody does not answer, or went away meanwhile."""
        mean = await self.mean()
        async for part in self._covering(request, mean, {*range(self._bus.placement.partitions)}):
            yield part

    async def _covering(self, request: web.Request, mean: float, lacking: set[int]) -> AsyncIterator[bytes]:
        """The answers of the nodes that have these partitions, each in one of them. MachineError: as `streamed`."""
        query, wait = {**request.query, "part": 1, "mean": mean}, self._gathering.wait()
        while lacking:
            node = self._gathering.owner_of(min(lacking))
            asked = [q for q in lacking if self._gathering.owner_of(q) == node]
            path = f"{request.path}?{urlencode({**query, PARAMETER: packed_partitions(asked)})}"
            came: frozenset[int] = frozenset()
            try:
                async for covers, part in self._parts(node, path):
                    came = covers
                    yield part
            except (OSError, ClientError) as error:
                raise MachineError(f"node {node}: {BROKEN_OFF}") from error
            except MachineError as error:
                raise MachineError(f"node {node}: {error}") from error
            lacking -= came
            if came:
                wait.renew()
            else:
                await wait.again(asked)

    async def hosts(self, request: web.Request) -> AsyncIterator[bytes]:
        """Rows of hosts of all nodes, with what the links of all nodes say of them as sites; with `partial=1` of those
        that answer.

        InputError, MachineError: as `streamed`."""
        mean, there = await self._known_mean()
        if there.missing and request.query.get("partial") != "1":
            raise MachineError("; ".join(there.missing))
        try:
            path = f"/top?{urlencode({'part': 1, 'by': 'site', 'mean': mean})}"
            sites = await self._gathering.ask(path, nodes=list(there.answers))
            ranking = await asyncio.to_thread(
                ranked_sites, [part for found in sites.answers.values() for part in found]
            )
        except InputError:  # no links are kept
            ranking = None
        there_are = {q for q in range(self._bus.placement.partitions) if self._gathering.owner_of(q) in there.answers}
        async for rows in _rows(self._covering(request, mean, there_are)):
            for row in rows:
                row.update(NO_SITE if ranking is None else ranking.row_by_name(row["host"]))
            yield _json_lines(rows)
        yield _json_lines(_absent(there.missing))

    async def links(self, request: web.Request) -> AsyncIterator[bytes]:
        """Rows of links of all nodes, with the ids of targets on other nodes. MachineError: as `streamed`."""
        async for rows in _rows(self.streamed(request)):
            ids = await self._ids({row["target_url"] for row in rows if row["target"] is None})
            for row in rows:
                if row["target"] is None:
                    row["target"] = ids[row["target_url"]]
            yield _json_lines(rows)

    async def _ids(self, urls: Iterable[str]) -> dict[str, int | None]:
        """Ids of pages, by canonical URL; None where its node does not know it."""
        lacking, wait = {url: self._partition_of(url) for url in urls}, self._gathering.wait()
        found: dict[str, int | None] = {}
        while lacking:
            node = self._gathering.owner_of(min(lacking.values()))
            asked = [url for url, q in lacking.items() if self._gathering.owner_of(q) == node]
            body = json.dumps({"urls": asked}).encode()
            gathered = await self._gathering.ask("/ids?part=1", "POST", body, [node])
            if gathered.missing:
                raise MachineError(gathered.missing[0])
            answers = zip(asked, gathered.answers.get(node, ()), strict=False)
            ids = {url: page for url, page in answers if lacking[url] in gathered.covers[node]}
            if not ids:
                await wait.again({lacking[url] for url in asked})
            found |= ids
            lacking = {url: q for url, q in lacking.items() if url not in ids}
        return found

    async def _parts(self, node: int, path: str) -> AsyncIterator[tuple[frozenset[int], bytes]]:
        """The partitions that a node's answer covers, with each of its parts; nothing where it covers none."""
        if node == self._bus.number:
            async with self._session.get(self._base + path) as response:
                if covers := covered(response.headers):
                    async for part in response.content.iter_chunked(1 << 16):
                        _check(response.status, part)
                        yield covers, part
                    yield covers, b""
            return
        found: frozenset[int] | None = None
        pieces = exchange(self._bus.link, ask_subject(self._bus.placement.crawl, node), "GET", path)
        async with aclosing(pieces):
            async for status, sent, part in pieces:
                found = covered(json.loads(sent)) if sent else found
                if found is not None and not found:
                    return
                _check(status, part)
                yield found or frozenset(), part


def _check(status: int, part: bytes) -> None:
    """InputError, MachineError: what a node answers instead."""
    if status != 200:
        raise (InputError if status == 400 else MachineError)(reason_of(part, status))


async def _rows(parts: AsyncIterator[bytes]) -> AsyncIterator[list[dict[str, Any]]]:
    """The JSON lines of an answer, some at a time."""
    rows, rest = list[dict[str, Any]](), b""
    async for part in parts:
        *lines, rest = (rest + part).split(b"\n")
        rows += (json.loads(line) for line in lines)
        while len(rows) >= ROWS_AT_ONCE:
            yield rows[:ROWS_AT_ONCE]
            del rows[:ROWS_AT_ONCE]
    if rows:
        yield rows


def _absent(missing: Sequence[str]) -> list[dict[str, Any]]:
    """The last row of those that come without some nodes."""
    return [{"missing": list(missing)}] if missing else []


def _json_lines(rows: Iterable[object]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def is_part(request: web.Request) -> bool:
    """Tell whether a request is for this node's partitions alone."""
    return request.query.get("part") == "1"


def mean_of(request: web.Request, own: float) -> float:
    """The mean importance that a request names, else our own. InputError: it is no number above 0."""
    try:
        mean = float(request.query.get("mean", own))
    except ValueError:
        mean = 0.0
    if not 0.0 < mean < float("inf"):
        raise InputError("mean: a number above 0")
    return mean


def convert_audit(answer: Any) -> PartitionAudit:
    """An audit of some partitions, from JSON."""
    return msgspec.convert(answer, PartitionAudit, strict=False)


def packed(part: PartitionAudit | None) -> Any:
    """An audit of this node's partitions, as JSON."""
    return None if part is None else json.loads(msgspec.json.encode(part))
