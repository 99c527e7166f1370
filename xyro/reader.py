"""The reader is all that a process needs to read the web: client, fetcher, queue, politeness and pool, assembled.

It takes plain arguments and loads nothing of the store, the importance or the schedule, so that a process of its own
can run it: orders go in with `pool.submit`, and each comes back once through `on_report`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from xyro.answer import Answer
from xyro.client import Client, ClientLimits
from xyro.fetch_queue import FetchQueue
from xyro.fetcher import Fetcher
from xyro.guard import Guard
from xyro.politeness import Manners, Politeness
from xyro.pool import Pool
from xyro.resolver import Resolver
from xyro.wire.clock import Clock
from xyro.wire.messages import PageReport

OnReport = Callable[[PageReport, Answer], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderOptions:
    """Options of a reader. Durations and sizes are in `limits` and `manners`, which name their units."""

    user_agent: str
    """value of the header User-Agent"""
    robots_token: str
    """product token that robots.txt is asked for"""
    contact: str
    """address of whoever runs the crawl, for the header From; empty for none"""
    limits: ClientLimits
    manners: Manners
    concurrency: int
    """most reads at once"""
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


class Reader:
    """Everything between an order and its report. Make it on the running loop.

    `on_report`: called once for each order, with its report and the answer; it must not wait.
    `may_read`: asked before each read; False holds reads back until `pool.wake`.
    """

    def __init__(
        self,
        options: ReaderOptions,
        guard: Guard,
        clock: Clock,
        on_report: OnReport,
        may_read: Callable[[], bool] = lambda: True,
    ) -> None:
        client = Client(
            guard,
            Resolver(guard, clock),
            user_agent=options.user_agent,
            contact=options.contact,
            limits=options.limits,
        )
        self.fetcher = Fetcher(
            client,
            clock,
            signature=options.signature,
            skip_suffixes=options.skip_suffixes,
            fold_slashes=options.fold_slashes,
            words=options.words,
        )
        self.queue = FetchQueue(options.gamma)
        self.pool = Pool(
            self.queue,
            Politeness(options.manners),
            self.fetcher,
            clock,
            robots_token=options.robots_token,
            on_report=on_report,
            concurrency=options.concurrency,
            may_read=may_read,
        )
