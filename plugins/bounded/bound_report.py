"""Reports the bounds of the last crawl of a cluster for `xyro status`: they hold until the next one, or `unbound`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xyro.plugins.bounded.read_quota import KEY

if TYPE_CHECKING:
    from xyro.service.views.partition_status import PartitionStatus


def bound_status(parts: Sequence[PartitionStatus], now: float) -> dict[str, Any]:
    """The fields `bounded_crawl`: the bounds, and `bounded_reads`: reads charged, partitions whose time is over, and
    those that asked for reads and got none. Nothing where there are no bounds."""
    found = [figures for part in parts if (figures := part.extensions.get(KEY))]
    if not found:
        return {}
    bounds = max((figures["bounds"] for figures in found), key=lambda each: each["run"])
    reads = {key: sum(figures["reads"][key] for figures in found) for key in found[0]["reads"]}
    return {"bounded_crawl": bounds, "bounded_reads": reads}
