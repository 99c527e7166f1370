"""Bounded runs through the interface of a node of a cluster (service/api/http_api.py says who may ask).

POST /bounds   {"run": n, "pages": n, "seconds": s, "refresh": bool}   -> {"run", "missing"}; run 0: lift the bounds;
               {"run": n, "stop": true}: end the run of this number
GET  /bounds   one round of counts: {"parts": {partition: counts}, "missing": [partitions that did not answer]}
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from aiohttp import web

from xyro.plugins.bounded.bound_messages import BoundReads, CountReads
from xyro.service.node import http_json
from xyro.wire.commands import Command
from xyro.wire.errors import InputError, MachineError
from xyro.wire.ids import HOME

if TYPE_CHECKING:
    from xyro.service.node.node import Node

BEGIN_SECONDS = 10.0
"""for all partitions to have a bound on disk"""
COUNT_SECONDS = 3.0
"""for a partition to tell its counts"""


def bound_routes(node: Node) -> list[web.RouteDef]:
    api = _BoundRoutes(node)
    return [web.get("/bounds", api.count), web.post("/bounds", api.begin)]


class _BoundRoutes:
    def __init__(self, node: Node) -> None:
        self.node = node

    async def begin(self, request: web.Request) -> web.Response:
        """Answer when every partition has the bound on disk: no read from then on is beyond it."""
        if not self.node.settings.cluster.join:
            raise InputError("bounds: of a cluster; `xyro crawl` bounds a crawl of one process")
        body = await http_json.body_of(request)
        run, pages, seconds = (body.get(name, 0) for name in ("run", "pages", "seconds"))
        fault = not all(type(each) is int and 0 <= each < 1 << 53 for each in (run, pages))
        if fault or not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
            raise InputError("bounds: run and pages are whole numbers, seconds is a number, none below 0")
        until = self.node.clock.time() + seconds if seconds else 0.0 if body.get("stop") else math.inf
        bound = partial(BoundReads, run=run, pages=pages, until=until, refresh=body.get("refresh", False) is True)
        late = [q for q in (HOME,) if await self._ask(q, bound, BEGIN_SECONDS) is _LATE]
        if not late:
            others = range(HOME + 1, self.node.services.commands.partitions)
            answers = await asyncio.gather(*(self._ask(q, bound, BEGIN_SECONDS) for q in others))
            late = [q for q, answer in zip(others, answers, strict=True) if answer is _LATE]
        return http_json.answer({"run": run, "missing": late})

    async def count(self, _: web.Request) -> web.Response:
        partitions = range(self.node.services.commands.partitions)
        question = partial(CountReads, now=self.node.clock.time())
        answers = await asyncio.gather(*(self._ask(q, question, COUNT_SECONDS) for q in partitions))
        found = dict(zip(partitions, answers, strict=True))
        parts = {q: counts for q, counts in found.items() if counts is not _LATE}
        return http_json.answer({"parts": parts, "missing": [q for q in partitions if q not in parts]})

    async def _ask(self, partition: int, command: Callable[[int], Command], seconds: float) -> Any:
        try:
            async with asyncio.timeout(seconds):
                return await self.node.services.commands.send(partition, command)
        except (TimeoutError, MachineError):
            return _LATE


_LATE = object()
"""the answer of a partition that gave none"""
