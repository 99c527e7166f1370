"""Sends POSTs to receivers that the operator names, webhooks of [[sinks]] and subscribers, over a client of its own: a
receiver that hangs holds up no page.

It is not the web that is crawled: no gap between requests, no lane of the pool, no
deny list of addresses. --only-net holds all the same, for the address really connected to. Proxies, certificates and
time limits are those of [fetch].
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from xyro.guard import Guard
from xyro.headers import retry_after
from xyro.posts import Posted
from xyro.proxy import UnresolvedNames, context_with
from xyro.service.node.reader_factory import options_of, user_agent_of
from xyro.service.node.site_factory import site_options
from xyro.site_entries import SiteEntries
from xyro.wire.errors import TheirError

if TYPE_CHECKING:
    from xyro.client import AiohttpClient
    from xyro.service.node.services import Services


class OperatorGuard(Guard):
    """The guard of servers that the operator names: they may be anywhere that --only-net allows, on any port."""

    def verdict(self, address: str, port: int) -> str:
        return self.operator_verdict(address, port)

    def host_allowed(self, url: str) -> str:
        """Nothing is refused by its name: the address is judged when it is connected to."""
        return ""


class WebhookClient:
    """The client of one sink, or of all subscriptions, made with its first request."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._sites = SiteEntries(site_options(services.settings))
        services.followed.append(self._follow)
        self._client: AiohttpClient | None = None

    def _follow(self) -> None:
        """The settings are others: so may proxies be."""
        self._sites.follow(site_options(self._services.settings))

    def _open(self) -> AiohttpClient:
        from xyro.client import AiohttpClient

        settings, clock = self._services.settings, self._services.clock
        guard = OperatorGuard(settings.fetch.only_net, name_servers=settings.fetch.name_servers)
        return AiohttpClient(
            guard,
            UnresolvedNames(guard, clock, self._sites.proxy, operator=True),
            user_agent=user_agent_of(settings.fetch),
            reads=False,
            limits=options_of(settings, frozenset(), 0.0).limits,
            tls=context_with(settings.fetch.ca_file),
            proxy_of=self._sites.proxy,
        )

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Posted:
        """Send a request; of the answer's body no more is read than keeps the connection. TheirError: it failed."""
        if self._client is None:
            self._client = self._open()
        try:
            reply = await self._client.post(url, body, headers)
        except TheirError as error:
            if error.kind != "closed-idle":
                raise
            reply = await self._client.post(url, body, headers)  # the connection that was kept had come to its end
        await reply.drop()
        return Posted(reply.status, retry_after(reply.headers.get("Retry-After", ""), self._services.clock.time()))

    async def close(self) -> None:
        """Close its connections; a request that comes later makes new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()
            await client.resolver.close()
