"""From settings to the reader's options."""

from __future__ import annotations

from xyro.client import ClientLimits
from xyro.configs.schema import FetchSettings, Settings
from xyro.decode import Caps
from xyro.politeness import Manners
from xyro.reader import ReaderOptions


def options_of(settings: Settings, words: frozenset[str], gamma: float) -> ReaderOptions:
    """The options of a reader that marks links by `words` and begins with `gamma` (0 to 100)."""
    fetch = settings.fetch
    limits = ClientLimits(
        connect=fetch.connect_timeout,
        first_byte=fetch.first_byte_timeout,
        headers=fetch.header_timeout,
        total=fetch.total_timeout,
        slow_bytes=fetch.min_throughput,
        body=Caps(size=fetch.max_body, ratio=int(fetch.max_ratio)),
        wire=2 * fetch.max_body,
        most_idle=fetch.concurrency,
    )
    return ReaderOptions(
        user_agent=_user_agent(fetch),
        robots_token=fetch.user_agent,
        contact=fetch.contact,
        limits=limits,
        manners=manners_of(settings),
        concurrency=fetch.concurrency,
        signature=fetch.signature,
        skip_suffixes=tuple(suffix[1:] for suffix in settings.crawl.skip_suffixes),
        fold_slashes=settings.crawl.fold_slashes,
        words=words,
        gamma=gamma,
    )


def _user_agent(fetch: FetchSettings) -> str:
    """Xyro/0.1.0 (+contact): the product token that robots.txt knows, and whom to ask."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        number = version("xyro")
    except PackageNotFoundError:  # run from a checkout that was not installed
        number = "0"
    contact = fetch.contact if not fetch.contact or "://" in fetch.contact else f"mailto:{fetch.contact}"
    return f"{fetch.user_agent}/{number} (+{contact})" if contact else f"{fetch.user_agent}/{number}"


def manners_of(settings: Settings) -> Manners:
    """--delay S replaces the three delays; else they are those of [politeness]."""
    polite = settings.politeness
    if polite.delay is not None:
        return Manners.fixed(polite.delay, polite.net_delay, polite.domain_delay)
    return Manners(
        polite.min_delay,
        polite.factor,
        polite.factor_cap,
        polite.ip_delay,
        polite.crawl_delay_cap,
        net_delay=polite.net_delay,
        domain_delay=polite.domain_delay,
    )
