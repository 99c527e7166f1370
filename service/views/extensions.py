"""The seam through which plug-ins add to views: a plug-in offers a ViewExtension, callers pass it to audit or status.

Nothing in this room imports a plug-in; xyro.plugins.view_extensions lists those of this distribution, and the commands
and the HTTP interface pass them on. The figures of a partition, from which a plug-in makes its fields of the status, it
registers with the partition's hooks, and so does it what it adds to `xyro why`: both need its own state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier
    from xyro.service.views.partition_status import PartitionStatus
    from xyro.service.views.views import View

AuditCheck = Callable[["View"], Iterator[str]]
"""Yields a sentence for each violation in one partition; an XyroError that it raises is a violation and ends it."""
StatusPart = Callable[["Sequence[PartitionStatus]", float], dict[str, Any]]
"""(figures of all partitions, now in seconds since 1970) -> fields of `xyro status --json`"""
StoredFigures = Callable[["Frontier"], dict[str, Any]]
"""One partition of a stopped crawl -> the figures that only a running one registers (`hooks.status`)."""


class ViewExtension(Struct, frozen=True):
    """The parts of one plug-in; None where it has nothing to add."""

    audit: AuditCheck | None = None
    status: StatusPart | None = None
    stored: StoredFigures | None = None
