"""The reader is all that a process needs to read the web: client, fetcher, queue, politeness and pool, assembled.

It takes plain arguments and loads nothing of the store, the importance or the schedule, so that a process of its own
can run it: orders go in with `pool.submit`, and each comes back once through `on_report`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from xyro.answer import Answer
from xyro.archive_options import ArchiveOptions
from xyro.clock_log import ClockLog
from xyro.exchange import ClientLimits
from xyro.fetch_queue import FetchQueue
from xyro.fetcher import Fetcher
from xyro.guard import Guard
from xyro.politeness import Manners, Politeness
from xyro.pool import Pool
from xyro.proxy import UnresolvedNames, context_with
from xyro.readers import Readers
from xyro.request_signing import RequestSigner, SigningOptions
from xyro.server_floors import AddressClaims
from xyro.site_entries import NO_SITES, SiteEntries, SiteOptions
from xyro.slot_shares import LEAST_SHARE, SlotShares
from xyro.wire.clock import Clock
from xyro.wire.messages import PageReport
from xyro.wire.uses import SEARCH

if TYPE_CHECKING:
    from xyro.client import AiohttpClient
    from xyro.fast_client import FastClient

OnReport = Callable[[PageReport, Answer], None]


class ReaderOptions(Struct, frozen=True, kw_only=True):
    """Options of a reader. Durations and sizes are in `limits` and `manners`, which name their units."""

    user_agent: str
    """value of the header User-Agent"""
    robots_token: str
    """product token that robots.txt is asked for"""
    purposes: int = SEARCH
    """uses that pages are read for (wire/uses.py)"""
    contact: str
    """address of whoever runs the crawl, for the header From; empty for none"""
    limits: ClientLimits
    manners: Manners
    concurrency: int
    """most reads at once"""
    newcomers: float = LEAST_SHARE
    """share of them that hosts which never answered have in any case"""
    signature: Literal["bytes", "text", "links"] = "bytes"
    """what a page's signature is taken of"""
    skip_suffixes: tuple[str, ...] = ()
    """URL suffixes, without their dot, of pages that are not worth reading"""
    fold_slashes: bool = True
    """whether runs of slashes in a path count as one"""
    words: frozenset[str] = frozenset()
    """words, case-folded, that a link is marked for when they stand in it or near it"""
    gamma: float = 50.0
    """share of reads, 0 to 100, that goes to pages never read before"""
    clock_log: Path | None = None
    """file in which delays that outlive a restart are kept; None: they are forgotten"""
    pause: float = 0.0
    """seconds that pass after any restart before the first request"""
    processes: int = 0
    """reader processes that connect and parse; 0 = this process does it itself"""
    values: str = ""
    """the plug-in that values pages (page_plug_ins.py); empty: none"""
    parsers: dict[str, str] = field(default_factory=dict)
    """media type -> plug-in that parses pages of it"""
    archive: ArchiveOptions | None = None
    """what is kept of each answer; None: nothing"""
    client: Literal["fast", "aiohttp"] = "fast"
    """what sends requests"""
    log_level: str = "info"
    log_form: str = "text"
    """of the log lines that a reader process, or one of plug-ins, writes"""
    sites: SiteOptions = NO_SITES
    """what some hosts are asked with, and how"""
    ca_file: str = ""
    """certificates of authorities that are trusted beside the system's"""
    signing: SigningOptions | None = None
    """how requests are signed; None: they are not"""


def client_class(name: Literal["fast", "aiohttp"]) -> type[FastClient] | type[AiohttpClient]:
    """The class of a client; none is loaded that is not asked for."""
    if name == "fast":
        from xyro.fast_client import FastClient

        return FastClient
    from xyro.client import AiohttpClient

    return AiohttpClient


def fetcher_of(
    options: ReaderOptions, guard: Guard, clock: Clock, patience: Callable[[str], float], sites: SiteEntries
) -> Fetcher:
    """The fetcher of a process that reads the web itself. patience: see `AiohttpClient`."""
    archive = None
    if options.archive is not None:
        from xyro.page_archive import PageArchive

        archive = PageArchive(options.archive, clock)
    plug_ins = None
    if options.values or options.parsers:
        from xyro.page_plug_ins import PagePlugIns

        log = options.log_level, options.log_form
        plug_ins = PagePlugIns(options.values, options.parsers, fold_slashes=options.fold_slashes, log=log)
    signer = RequestSigner(options.signing, clock) if options.signing is not None else None
    client = client_class(options.client)(
        guard,
        UnresolvedNames(guard, clock, sites.proxy),
        user_agent=options.user_agent,
        contact=options.contact,
        limits=options.limits,
        tls=context_with(options.ca_file),
        proxy_of=sites.proxy if sites.on else None,
        patience=patience,
        tape_of=archive.tape_of if archive is not None else None,
        monotonic=clock.monotonic,
    )
    return Fetcher(
        client,
        clock,
        signature=options.signature,
        skip_suffixes=options.skip_suffixes,
        fold_slashes=options.fold_slashes,
        words=options.words,
        archive=archive,
        plug_ins=plug_ins,
        signer=signer,
        sites=sites,
    )


class Reader:
    """Everything between an order and its report. Make it on the running loop.

    `on_report`: called once for each order, with its report and the answer; it must not wait.
    `may_read`: asked before each read; False holds reads back until `pool.wake`. `turns`: of addresses that other nodes
    read, too.
    """

    def __init__(
        self,
        options: ReaderOptions,
        guard: Guard,
        clock: Clock,
        on_report: OnReport,
        may_read: Callable[[], bool] = lambda: True,
        turns: AddressClaims | None = None,
    ) -> None:
        self.queue = FetchQueue(options.gamma)
        self.clock_log = ClockLog(options.clock_log, clock, options.pause) if options.clock_log is not None else None
        self.options = options
        self._sites = SiteEntries(options.sites)
        self._politeness = politeness = Politeness(
            options.manners, self.clock_log, self._sites.delay if self._sites.on else None, turns
        )
        slots = SlotShares(self.queue, politeness, clock, options.concurrency, options.newcomers)
        self.fetcher: Fetcher | Readers = (
            Readers(
                options.processes,
                msgspec.msgpack.encode(replace(options, clock_log=None)),  # of the pool, which stays here
                guard,
                clock,
                slots.patience,
            )
            if options.processes
            else fetcher_of(options, guard, clock, slots.patience, self._sites)
        )
        self.pool = Pool(
            self.queue,
            politeness,
            self.fetcher,
            clock,
            robots_token=options.robots_token,
            purposes=options.purposes,
            on_report=on_report,
            slots=slots,
            may_read=may_read,
        )
        self.pool.restore_clocks()

    def follow(self, sites: SiteOptions) -> None:
        """Ask hosts by other entries, from the next request to each on."""
        if sites != self.options.sites:
            self.options = replace(self.options, sites=sites)
            self._sites.follow(sites)
            self._politeness.delay_of = self._sites.delay if self._sites.on else None
            self.fetcher.follow(sites)

    def lost(self, seconds: float) -> int:
        """Count reader processes that ended within the last seconds although nobody asked them to."""
        return self.fetcher.lost(seconds) if isinstance(self.fetcher, Readers) else 0

    async def close(self) -> None:
        """Close every connection, and the log."""
        await self.fetcher.close()
        if self.clock_log is not None:
            self.clock_log.close()
