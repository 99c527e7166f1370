"""Names the proxies of the settings that do not do their part: in the log, in `xyro status` and in the closing report.

A page that such a proxy keeps from being read has the failure class `proxy-failed` (xyro/proxy.py).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from xyro.configs.schema import Settings
from xyro.wire.ids import owner_of
from xyro.wire.text import LOG_FIELDS, printable
from xyro.wire.urls import authority, fits

if TYPE_CHECKING:
    from xyro.answer import Answer
    from xyro.frontier.frontier import Frontier
    from xyro.service.node.services import Services
    from xyro.wire.messages import PageReport

PROXY_FAILED = "proxy-failed"
_log = logging.getLogger("xyro")


class ProxyFailures:
    """Hears each report of a page of one partition while the settings name a proxy, and keeps `failed_proxies` of the
    services."""

    def __init__(self, frontier: Frontier, services: Services) -> None:
        self._number = frontier.partition.number
        self._services = services
        self._since = 0.0
        """when the proxies named now were; what was asked before went through others"""
        services.followed.append(self._follow)
        self._follow()

    async def run(self) -> None:
        """There is nothing to do beside."""

    def _follow(self) -> None:
        """Begin to hear reports, or end, as the settings are now; forget proxies that they no longer name."""
        settings, heard = self._services.settings, self._services.answered
        failing = self._services.failed_proxies
        named = {settings.fetch.proxy, *(site.proxy for site in settings.sites)} - {"", None}
        self._since = self._services.clock.time()
        for proxy in failing.keys() - named:
            del failing[proxy]
        if named and self._note not in heard:
            heard.append(self._note)
        elif not named and self._note in heard:
            heard.remove(self._note)

    def _note(self, report: PageReport, answer: Answer) -> None:
        """A page was read, or could not be."""
        failing = self._services.failed_proxies
        if owner_of(report.page) != self._number or not (report.error == PROXY_FAILED or (report.status and failing)):
            return
        if answer.started < self._since:
            return
        proxy = proxy_url(self._services.settings, authority(report.url))
        row = failing.get(proxy)
        if report.error != PROXY_FAILED:
            if failing.pop(proxy, None) is not None:
                _log.warning("the proxy %s leads to sites again", proxy, extra={LOG_FIELDS: {"event": "proxy"}})
            return
        failing[proxy] = {"failures": 1 + (row["failures"] if row else 0), "error": answer.detail}
        if row is None:
            fields = {"event": "proxy", "class": PROXY_FAILED, "proxy": proxy, "error": answer.detail}
            _log.warning(
                "the proxy %s fails (%s): pages are not read through it until it answers",
                proxy,
                printable(answer.detail, 200),
                extra={LOG_FIELDS: fields},
            )


def proxy_url(settings: Settings, host: str) -> str:
    """The proxy that a host (host[:port]) is read through, as the settings name it; empty: none."""
    site = next((site for site in settings.sites if fits(host, site.host)), None)
    return settings.fetch.proxy if site is None or site.proxy is None else site.proxy
