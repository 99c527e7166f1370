"""The plug-in for publications and subscriptions, as a node runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xyro.plugins.publish.promise_report import costs
from xyro.plugins.publish.publishing import Publishing
from xyro.plugins.publish.subscribed import Subscribed
from xyro.wire.errors import MachineError

if TYPE_CHECKING:
    from xyro.service.node.node import Node
    from xyro.service.node.services import Services


class PublishPlugin:
    """Publications and subscriptions of one node. WebSub (websub.py) is a plug-in of its own over `publishing`."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.publishing = Publishing(services)
        self.subscribed = Subscribed(services)

    def recover(self) -> None:
        """Take up the subscriptions that were stored."""
        self.subscribed.recover()

    async def run(self) -> None:
        """Refresh pages and send notices until cancelled."""
        await self.subscribed.run()

    def status(self) -> dict[str, Any]:
        """The fields `published`, `subscribed` and `cost` of `xyro status`."""
        services = self.services
        return {
            "published": self.publishing.counters(),
            "subscribed": self.subscribed.counters(),
            **costs(services.frontiers, self.subscribed.subscriptions, services.clock.time()),
        }


def publish_plugin_of(node: Node) -> PublishPlugin:
    """The plug-in of a running crawl. MachineError: the crawl was made without it."""
    plugin = node.plugin(PublishPlugin)
    if plugin is None:
        raise MachineError("a node was made without the plug-in for publications (a bug)")
    return plugin
