"""From settings to what reads the web: client, fetcher, pool."""

from __future__ import annotations

from collections.abc import Callable

from xyro.answer import Answer
from xyro.client import Client, Limits
from xyro.configs.schema import Fetch, Settings
from xyro.decode import Caps
from xyro.fetcher import Fetcher
from xyro.frontier.focus import Focus
from xyro.guard import Guard
from xyro.orders import OrderQueue
from xyro.politeness import Manners, Politeness
from xyro.pool import Pool
from xyro.resolver import Resolver
from xyro.wire.clock import Clock
from xyro.wire.messages import PageReport


def fetcher_of(settings: Settings, guard: Guard, clock: Clock) -> Fetcher:
    """Client and fetcher; call on the running loop."""
    fetch = settings.fetch
    limits = Limits(
        connect=fetch.connect_timeout,
        first_byte=fetch.first_byte_timeout,
        headers=fetch.header_timeout,
        total=fetch.total_timeout,
        slow_bytes=fetch.min_throughput,
        body=Caps(size=fetch.max_body, ratio=int(fetch.max_ratio)),
        wire=2 * fetch.max_body,
        most_idle=fetch.concurrency,
    )
    resolver = Resolver(guard, clock)
    client = Client(guard, resolver, user_agent=_user_agent(fetch), contact=fetch.contact, limits=limits)
    return Fetcher(
        client,
        clock,
        signature=fetch.signature,
        skip_suffixes=[suffix[1:] for suffix in settings.crawl.skip_suffixes],
        fold_slashes=settings.crawl.fold_slashes,
        words=Focus(settings).words,
    )


def _user_agent(fetch: Fetch) -> str:
    """Xyro/0.1.0 (+contact): the product token that robots.txt knows, and whom to ask."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        number = version("xyro")
    except PackageNotFoundError:  # run from a checkout that was not installed
        number = "0"
    who = fetch.contact if not fetch.contact or "://" in fetch.contact else f"mailto:{fetch.contact}"
    return f"{fetch.user_agent}/{number} (+{who})" if who else f"{fetch.user_agent}/{number}"


def manners_of(settings: Settings) -> Manners:
    """--delay S replaces the three delays; else they are those of [politeness]."""
    polite = settings.politeness
    if polite.delay is not None:
        return Manners.fixed(polite.delay)
    return Manners(polite.min_delay, polite.factor, polite.factor_cap, polite.ip_delay, polite.crawl_delay_cap)


def pool_of(
    settings: Settings,
    queue: OrderQueue,
    fetcher: Fetcher,
    clock: Clock,
    on_report: Callable[[PageReport, Answer], None],
    may_read: Callable[[], bool],
) -> Pool:
    """The pool over the queue."""
    return Pool(
        queue,
        Politeness(manners_of(settings)),
        fetcher,
        clock,
        robots_token=settings.fetch.user_agent,
        on_report=on_report,
        concurrency=settings.fetch.concurrency,
        may_read=may_read,
    )
