"""From start to stop of a crawling process: `crawl` in the foreground and `serve`.

start: settings, guard, interface's socket, data directory (locked), nodes, DIR/run       serve: to the end or a signal
stop:  no new reads, those under way end, everything is committed, snapshot, DIR/run removed

Whatever can be refused is refused before the data directory is made. SIGINT, SIGTERM and SIGHUP stop in order, and the
process ends with its closing report and 0: that was no failure. (A daemon without a terminal reads its settings again
on SIGHUP: reload.py.) A second signal ends it at once with 128 + its number;
what was committed stays, and the journal brings it back.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from xyro import process_memory
from xyro.configs.schema import Settings
from xyro.guard import Guard
from xyro.service.node import crawl_file, open_files, run_file
from xyro.service.node.cluster_seam import Membership
from xyro.service.node.data_dir import DataDir
from xyro.service.node.endpoint import Endpoint, Interface
from xyro.service.node.guard_factory import check_contact, guard_of
from xyro.service.node.node import Bounds, Node
from xyro.service.node.progress import offer, show
from xyro.service.node.reader_factory import check_options
from xyro.service.node.reload import reload
from xyro.service.node.seeds import failed_seeds, why_unread
from xyro.service.node.services import NO_PLUGINS, PluginSet
from xyro.wire.errors import InputError
from xyro.wire.text import LOG_FIELDS, counted, printable
from xyro.wire.urls import canonical, load_suffixes

SEEDS_AT_ONCE = 5_000
"""seeds that are handed over in one commit group"""
LONGEST_ENDING = 10.0
"""seconds that a crawl which has ended waits for those that take its changes"""
FEW = 10
"""failed seeds that the closing report names"""
SHOW_CURSOR = "\x1b[?25h"
_log = logging.getLogger("xyro")


class Job(Struct, frozen=True):
    """The task of one `xyro crawl` or `xyro serve`: directory, settings, bounds, seeds and plug-ins."""

    data: Path
    settings: Settings
    bounds: Bounds
    endpoints: tuple[Endpoint, ...]
    """the first one's address stands in DIR/run, and is never off"""
    seeds: tuple[str, ...] = ()
    partitions: int | None = None
    again: Callable[[], Settings] | None = None
    """a daemon: reads its settings anew, on SIGHUP"""
    plugins: PluginSet = NO_PLUGINS
    membership: Membership | None = None
    """its part in a cluster; None: the crawl is this process's alone"""
    stopping: Stopping | None = None
    """who stops it inside a program, whose signals, terminal, umask and garbage are its own; None: signals do"""


class Ended(Struct):
    """The outcome of a job. `refused`: seeds that are not read, and why."""

    report: dict[str, Any] = field(default_factory=dict)
    """the object that `crawl --json` prints"""
    best: list[dict[str, Any]] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    """seeds that were tried and gave no page, each with the class of its failure"""

    @property
    def fruitless(self) -> bool:
        """True where every seed was tried and none gave a page."""
        return bool(self.failed) and len(self.failed) == self.report["seeds"]


def run(job: Job) -> Ended:
    """Until the crawl ends or somebody stops it. InputError: nothing was changed; MachineError: the disk failed."""
    import uvloop

    if job.membership is not None:
        job = replace(job, settings=job.membership.adapt(job.data, job.settings))
    settings = job.settings
    if not job.data.exists() and not job.seeds and not job.bounds.forever:
        raise InputError(f"{job.data}: nothing to resume there; give a seed URL to begin a crawl")
    seeds = list(dict.fromkeys(canonical(seed, fold_slashes=settings.crawl.fold_slashes) for seed in job.seeds))
    guard = guard_of(settings.fetch)
    check_contact(settings.fetch, guard)
    check_options(settings, job.data)
    job.plugins.check(settings, guard)
    if remote := run_file.Remote.find(job.data):
        raise InputError(
            f"{job.data}: in use by process {remote.pid}; `xyro submit URL --data {job.data}` hands it URLs, "
            f"`xyro status --data {job.data}` shows what it does, `xyro stop --data {job.data}` ends it"
        )
    with contextlib.ExitStack() as stack:
        stopping = job.stopping
        if stopping is None:
            open_files.make_room(settings, job.partitions or settings.crawl.partitions)
            os.umask(0o077)
            stopping = stack.enter_context(_Signals(job.again is not None and not _has_terminal()).installed())
        opened = [(endpoint, stack.enter_context(socket)) for endpoint, socket in _listen(job)]
        data = _open(job, make=bool(seeds) or job.bounds.forever)
        stack.callback(data.close)
        _warn_of_readers(job.data)
        if job.membership is None:
            crawl_file.check(job.data, data.home.store)
        homes = [data.home] if job.membership is None else data.partitions
        crawl_file.remember(job.data, settings, *(partition.store for partition in homes))
        if job.stopping is None:
            process_memory.tune()
        load_suffixes()
        return uvloop.run(_Life(job, seeds, stopping, opened).run(data, guard))


def _listen(job: Job) -> Iterator[tuple[Endpoint, socket.socket]]:
    """Open the sockets of the endpoints that the settings do not leave off. InputError: one is refused."""
    for endpoint in job.endpoints:
        listening = endpoint.listen(job.settings)
        if listening is not None:
            yield endpoint, listening


def _open(job: Job, make: bool) -> DataDir:
    """The data directory. Another --partitions on a resume is refused, and so is another setting of that name."""
    if job.membership is not None:
        return job.membership.open(job.data, job.settings, job.partitions)
    wanted = job.partitions or (job.settings.crawl.partitions if job.settings.crawl.partitions > 1 else None)
    return DataDir.open(job.data, partitions=wanted, make=make)


def _warn_of_readers(directory: Path) -> None:
    """Warn where others may read the directory: it was made before directories were closed to them, or opened since."""
    if directory.stat().st_mode & 0o077:
        _log.warning("%s can be read by other users of this machine: `chmod 700 %s` closes it", directory, directory)


class _Life:
    """One run."""

    def __init__(
        self, job: Job, seeds: list[str], stopping: Stopping, opened: Sequence[tuple[Endpoint, socket.socket]]
    ) -> None:
        self.job = job
        self.seeds = seeds
        self.stopping = stopping
        self.opened = opened
        self.stop = asyncio.Event()

    async def run(self, data: DataDir, guard: Guard) -> Ended:
        """From start to stop, whatever happens in between."""
        loop = asyncio.get_running_loop()
        self.stopping.attach(loop, self._stopped)
        for _, listening in self.opened:
            guard.deny(*listening.getsockname()[:2])
        membership = self.job.membership
        network = None if membership is None else await membership.connect(guard)
        node = Node(data, self.job.settings, guard, self.job.bounds, plugins=self.job.plugins, network=network)
        if self.job.again is not None and isinstance(self.stopping, _Signals):
            self.stopping.attach_again(loop, partial(reload, node, self.job.again))
        token, interfaces = secrets.token_urlsafe(24), list[Interface]()
        ended = Ended()
        reason = "failed"
        try:
            node.start()
            for endpoint, listening in self.opened:
                interfaces.append(endpoint.interface(node, token))
                await interfaces[-1].start(listening)
            host, port = self.opened[0][1].getsockname()[:2]
            run_file.write(self.job.data, host, port, token)
            if membership is not None:
                await membership.serve(node, (host, port), token)
            if self.job.settings.backup.directory:
                from xyro.service.node.backup import scheduled

                node.watch(scheduled(node))
            self._greet(node, data.created, host, port)
            await self._submit(node, ended)
            reason = await self._serve(node)
            ended.failed = await self._failed_seeds(node)
        finally:
            run_file.remove(self.job.data)
            if membership is not None:
                await membership.leave()
            for interface in interfaces:
                await interface.close()
            try:
                await node.stop()
                node.check_writes()
            finally:
                if membership is not None:
                    await membership.close(sys.exc_info()[1])
        ended.report = closing_report(node, reason)
        ended.best = [{**row, "next_read": None} for row in node.best]  # nothing runs any more
        failures = [{"url": url, "error": error} for url, error in ended.failed]
        ended.report |= {"seeds": len(self.seeds), "failed_seeds": failures}
        return ended

    def _greet(self, node: Node, created: bool, host: str, port: int) -> None:
        so_far = f"{counted(node.known_pages, 'page')} known, {counted(node.reads_total, 'read')}"
        subject = "a new crawl" if created else f"resuming: {so_far}"
        fields = {"event": "started", "data": str(self.job.data), "address": f"{host}:{port}"}
        _log.info("%s: %s; listening at %s:%d", self.job.data, subject, host, port, extra={LOG_FIELDS: fields})

    async def _submit(self, node: Node, ended: Ended) -> None:
        """Hand the seeds over; those that are not to be read are recorded too, and told."""
        if not self.seeds:
            return
        for first in range(0, len(self.seeds), SEEDS_AT_ONCE):
            await node.sow(self.seeds[first : first + SEEDS_AT_ONCE])
        for url in self.seeds:
            if reason := why_unread(url, node.scope):
                ended.refused.append((url, reason))
                fields = {"event": "url-refused", "url": url}
                _log.error("%s: not read: %s", url, reason.removeprefix(f"{url}: "), extra={LOG_FIELDS: fields})

    async def _failed_seeds(self, node: Node) -> list[tuple[str, str]]:
        """The seeds of this run that were tried and gave no page."""
        if not self.seeds or not node.has_partitions:
            return []
        with await node.views() as views:
            return failed_seeds(views, self.seeds)

    async def _serve(self, node: Node) -> str:
        """Until the crawl ends or somebody stops it; the reason."""
        shown = asyncio.create_task(show(node, live=self.job.stopping is None))
        offered = asyncio.create_task(offer(node)) if self.job.bounds.forever else None
        ended = asyncio.create_task(node.finished())
        stopped = asyncio.create_task(self.stop.wait())
        try:
            await asyncio.wait([ended, stopped], return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                return "stopped"
            if ended.result() in ("complete", "challenged") or (ended.result() == "max-pages" and node.all_read):
                await _first(node.settle(), stopped)
            if node.services.endings:
                node.end_reads()
                await _first(_gathered(node.services.endings), stopped, LONGEST_ENDING)
            return ended.result()
        finally:
            for task in (shown, ended, stopped, offered):
                if task is not None:
                    task.cancel()
            await asyncio.gather(shown, ended, stopped, return_exceptions=True)

    def _stopped(self) -> None:
        if not self.stop.is_set() and self.job.stopping is None:
            text = "stopping: reads under way are finished and committed; a second signal stops at once"
            _log.warning("%s", text, extra={LOG_FIELDS: {"event": "stopping"}})
        self.stop.set()


async def _first(work: Coroutine[Any, Any, None], stopped: asyncio.Task[Any], seconds: float | None = None) -> None:
    """Work at the end of a crawl. Importance of a million pages takes minutes to settle, so a signal ends that, too."""
    working = asyncio.create_task(work)
    try:
        await asyncio.wait([working, stopped], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


async def _gathered(endings: Sequence[Callable[[], Awaitable[None]]]) -> None:
    await asyncio.gather(*(ending() for ending in endings))


class Stopping:
    """Asks a crawl for an orderly stop, from any thread, also before it runs or after it has ended."""

    _asked = False
    _tell: tuple[asyncio.AbstractEventLoop, Callable[[], None]] | None = None

    def attach(self, loop: asyncio.AbstractEventLoop, tell: Callable[[], None]) -> None:
        """From now on `tell` is called, on the loop."""
        self._tell = loop, tell
        if self._asked:
            tell()

    def ask(self) -> None:
        """Stop; again: nothing more. It takes no lock, so that it may be called whenever garbage is collected."""
        self._asked = True
        if self._tell is not None:
            loop, tell = self._tell
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(tell)


class _Signals(Stopping):
    """The first signal asks for an orderly stop, also one that comes during start; the second ends the process.

    By handlers of `signal`, not of the loop: those would wait for the loop's turn, and a second signal must not.
    """

    def __init__(self, again: bool = False) -> None:
        """again: SIGHUP asks for the settings to be read again instead."""
        self.again = again
        self._reload: tuple[asyncio.AbstractEventLoop, Any] | None = None

    @contextlib.contextmanager
    def installed(self) -> Iterator[_Signals]:
        """While the block lasts. A SIGHUP that would end us, and that the caller had ignored (nohup), stays ignored."""
        chosen = [signal.SIGINT, signal.SIGTERM]
        if self.again or signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            chosen.append(signal.SIGHUP)
        before = {number: signal.signal(number, self._came) for number in chosen}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def attach_again(self, loop: asyncio.AbstractEventLoop, reload: Any) -> None:
        """From now on SIGHUP calls `reload`, on the loop; one that came before found the settings fresh anyway."""
        self._reload = loop, reload

    def _came(self, number: int, _: object) -> None:
        if number == signal.SIGHUP and self.again:
            if self._reload is not None:
                loop, reload = self._reload
                loop.call_soon_threadsafe(reload)
            return
        if self._asked:
            if sys.stderr.isatty():
                os.write(2, SHOW_CURSOR.encode())  # the live line may have hidden it
            os._exit(128 + number)
        self.ask()


def _has_terminal() -> bool:
    """Tell whether the process has a terminal, whose end SIGHUP would report."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


def closing_report(node: Node, reason: str) -> dict[str, Any]:
    """The object that `crawl --json` prints. `reads_total` counts from the crawl's beginning, the rest this run."""
    return {
        "pages_read": node.reads,
        "pages_known": node.known_pages,
        "out_of_scope": node.crawl_views.states()["out-of-scope"],
        "errors": dict(sorted(node.errors.items())),
        "cut_short": dict(sorted(node.pool.counters.cut.items())),
        "seconds": round(node.clock.monotonic() - node.started, 3),
        "bytes": node.pool.counters.bytes,
        "reads_total": node.reads_total,
        "ended": reason,
        "unread": node.crawl_views.states()["unread"],
        "unstored": dict(node.services.unstored),
        "textless": node.services.textless,
        "proxies": node.services.failed_proxies,
    }


def sentence(report: dict[str, Any]) -> str:
    """The closing report for people."""
    cut_short = report.get("cut_short", {})
    return (
        f"{counted(report['pages_read'], 'page')} read, {report['pages_known']:,} known"
        + (f" ({report['unread']:,} unread), " if report["unread"] else ", ")
        + f"{report['bytes'] / 1e6:.1f} MB in {report['seconds']:.1f} s ({report['ended']})."
        + f" Errors: {_by_class(report['errors'])}."
        + (f" Cut short, and used as far as they came: {_by_class(cut_short)}." if cut_short else "")
        + _out_of_scope(report)
        + (f" Seeds that failed: {_named(report['failed_seeds'])}." if report["failed_seeds"] else "")
        + "".join(
            f" The proxy {proxy} failed ({printable(row['error'], 200)})."
            for proxy, row in report.get("proxies", {}).items()
        )
        + "".join(
            f" Contents of {counted(count, 'answer')} could not be stored ([keep]): {failure}; free or mend the disk: "
            "what is missing is stored as pages are read again."
            for failure, count in report.get("unstored", {}).items()
        )
        + (f" No text could be found in {counted(report['textless'], 'page')}." if report["textless"] else "")
    )


def _by_class(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{kind} {count:,}" for kind, count in counts.items()) or "none"


def _out_of_scope(report: Mapping[str, Any]) -> str:
    """How many pages are out of scope, and what lets them in where these are most."""
    if not report["out_of_scope"]:
        return ""
    hint = report["ended"] == "complete" and report["pages_read"] <= FEW < report["out_of_scope"]
    return f" Out of scope: {report['out_of_scope']:,}{' (see --scope)' if hint else ''}."


def _named(seeds: Sequence[Mapping[str, str]]) -> str:
    """The first failed seeds, each with the class of its failure."""
    named = ", ".join(f"{seed['url']} ({seed['error']})" for seed in seeds[:FEW])
    return f"{named} and {len(seeds) - FEW:,} more" if len(seeds) > FEW else named
