"""Lists what the plug-ins of this distribution add to views; the commands and the HTTP interface pass it on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xyro.plugins.publish import promise_report
from xyro.plugins.warehouse.warehouse_audit import check_repository
from xyro.service.views.extensions import ViewExtension

if TYPE_CHECKING:
    from xyro.service.node.node import Node

VIEW_EXTENSIONS = (ViewExtension(audit=check_repository), ViewExtension(status=promise_report.stopped))
"""xyro.plugins.warehouse; xyro.plugins.publish and clusters. Their fields appear in `xyro status` in this order."""


def running_status(node: Node) -> dict[str, Any]:
    """The fields that plug-ins add to the status of a running crawl."""
    return {name: value for plugin in node.plugins for name, value in plugin.status().items()}
