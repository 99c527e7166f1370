"""From start to stop of a crawling process: `crawl` in the foreground and `serve`.

start: settings, guard, data directory (locked), nodes, interface, DIR/run    serve: until the end or a signal
stop:  no new reads, those under way end, everything is committed, snapshot, DIR/run removed.  A second signal: at once.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import secrets
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from configs.schema import Settings
from crawl import given, run_file
from crawl.api import Api
from crawl.data_dir import DataDir
from crawl.progress import show
from crawl.reading import check_contact, guard_of
from crawl.seeds import why_refused
from crawl.single import Bounds, Single
from crawl.table import table
from wire.errors import InputError
from wire.text import printable
from wire.urls import canonical

TOP = 10
_log = logging.getLogger("xyro")


@dataclass(frozen=True, slots=True)
class Job:
    """What `crawl` or `serve` was asked for."""

    data: Path
    settings: Settings
    bounds: Bounds
    seeds: tuple[str, ...] = ()
    partitions: int | None = None
    as_json: bool = False


def run(job: Job) -> int:
    """The process's exit code: 0, or 1 where a seed was refused. InputError and MachineError go to the caller."""
    import uvloop

    seeds = [canonical(seed, fold_slashes=job.settings.crawl.fold_slashes) for seed in job.seeds]
    gc.collect()
    gc.freeze()  # imports live for ever: spare the collector from looking at them again and again
    gc.set_threshold(50_000, 20, 50)
    return uvloop.run(_Life(job, seeds).run())


class _Life:
    """One run."""

    def __init__(self, job: Job, seeds: Sequence[str]) -> None:
        self.job = job
        self.seeds = list(dict.fromkeys(seeds))
        self.stop = asyncio.Event()
        self.signals = 0

    async def run(self) -> int:
        settings = self.job.settings
        guard = guard_of(settings.fetch)
        check_contact(settings.fetch, guard)
        if not self.job.data.exists() and not self.seeds and not self.job.bounds.forever:
            raise InputError(f"{self.job.data}: nothing to resume there; give a seed URL to begin a crawl")
        data = DataDir.open(self.job.data, partitions=self.job.partitions, make=True)
        given.remember(self.job.data, settings)
        single = Single(data, settings, guard, self.job.bounds)
        refused = [(url, reason) for url in self.seeds if (reason := why_refused(url, single.scope))]
        for url, reason in refused:
            print(f"{printable(url)}: refused: {reason}", file=sys.stderr)  # noqa: T201  # the command's own output
        api = Api(single, secrets.token_urlsafe(24), self.stop.set)
        reason = ""
        try:
            single.start()
            await api.start(settings.api.host, settings.api.port)
            guard.deny(settings.api.host, api.port)
            run_file.write(self.job.data, settings.api.host, api.port, api.token)
            self._listen()
            if self.seeds:
                await single.sow(self.seeds)
            reason = await self._serve(single)
        finally:
            run_file.remove(self.job.data)
            await api.close()
            await single.stop()
        single.check_writes()
        await self._tell(single, reason)
        return 1 if refused else 0

    async def _serve(self, single: Single) -> str:
        """Until the crawl ends or somebody stops it; the reason."""
        shown = asyncio.create_task(show(single))
        ended = asyncio.create_task(single.finished())
        stopped = asyncio.create_task(self.stop.wait())
        try:
            await asyncio.wait([ended, stopped], return_when=asyncio.FIRST_COMPLETED)
            return ended.result() if ended.done() else "stopped"
        finally:
            for task in (shown, ended, stopped):
                task.cancel()
            await asyncio.gather(shown, ended, stopped, return_exceptions=True)

    def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._signalled)

    def _signalled(self) -> None:
        self.signals += 1
        if self.signals > 1:
            os._exit(130)  # state is what was committed; the journal brings it back
        _log.warning("stopping: reads under way are finished and committed; a second signal stops at once")
        self.stop.set()

    async def _tell(self, single: Single, reason: str) -> None:
        closing = closing_report(single, reason)
        if self.job.as_json:
            print(json.dumps(closing))  # noqa: T201
        elif not self.job.bounds.forever:
            print(_sentence(closing))  # noqa: T201
            print(table(single.best, "importance"))  # noqa: T201


def closing_report(single: Single, reason: str) -> dict[str, Any]:
    """The object that `crawl --json` prints."""
    return {
        "pages_read": single.reads,
        "pages_known": single.known,
        "errors": dict(sorted(single.errors.items())),
        "seconds": round(single.clock.monotonic() - single.started, 3),
        "bytes": single.pool.counters.bytes,
        "reads_total": single.reads_total,
        "ended": reason,
    }


def _sentence(closing: dict[str, Any]) -> str:
    errors = ", ".join(f"{kind} {count}" for kind, count in closing["errors"].items()) or "none"
    return (
        f"{closing['pages_read']:,} pages read, {closing['pages_known']:,} known, {closing['bytes'] / 1e6:.1f} MB "
        f"in {closing['seconds']:.1f} s ({closing['ended']}). Errors: {errors}."
    )
