"""Explains for `xyro why` how a page's host is asked: by which entry of [[sites]], what it sets, by which proxy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from xyro.configs.schema import SiteTable
from xyro.plugins.sites.proxy_failures import proxy_url
from xyro.wire.durations import duration_text
from xyro.wire.ids import LocalPage
from xyro.wire.urls import fits

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier


class SiteSentences:
    """Of one partition; registers with its hooks."""

    def __init__(self, frontier: Frontier) -> None:
        self._partition = frontier.partition
        self._frontier = frontier
        frontier.hooks.why.append(self.why)

    def why(self, page: LocalPage, now: float) -> list[str]:
        """The sentence of the first entry that fits the page's host, and that of a proxy which holds for all hosts."""
        hosts = self._partition.hosts
        name = hosts.names[self._partition.hosts_of[page]]
        return [*self._entry(name), *self._proxy(name)]

    def _entry(self, name: str) -> Iterator[str]:
        for number, site in enumerate(self._frontier.settings.sites, start=1):
            if fits(name, site.host):
                phrases = "; ".join(_parts(site)) or "nothing of its own"
                yield f"[[sites]] number {number} ({site.host}) holds for its host: {phrases}."
                return

    def _proxy(self, name: str) -> Iterator[str]:
        settings = self._frontier.settings
        if (proxy := proxy_url(settings, name)) and proxy == settings.fetch.proxy:
            yield f"[fetch] has it read through the proxy {proxy}."


def _parts(site: SiteTable) -> Iterator[str]:
    """Phrases for the settings of an entry, without its values."""
    for kind, names in (("headers", site.headers), ("cookies", site.cookies)):
        if names:
            yield f"{kind} {', '.join(names)}"
    if site.auth is not None:
        yield "a user and a password"
    if site.delay is not None:
        yield f"delay {site.delay:g} s"
    if site.min_interval is not None:
        yield f"read again no sooner than {duration_text(site.min_interval)} later"
    if site.max_interval is not None:
        yield f"read again at latest {duration_text(site.max_interval)} later"
    if site.proxy is not None:
        yield f"proxy {site.proxy or 'none'}"
    if site.signature is not None:
        yield f"signature of its {site.signature}"
