"""The seam through which plug-ins add to views: a plug-in offers a ViewExtension, callers pass it to audit or status.

Nothing in this room imports a plug-in; xyro.plugins.view_extensions lists those of this distribution, and the commands
and the HTTP interface pass them on. What a plug-in adds to `xyro why` it registers with the hooks of a partition
(xyro.frontier), because such sentences need its own state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xyro.service.views.views import View

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier

AuditCheck = Callable[[View], Iterator[str]]
"""Yields a sentence for each violation in one partition; an XyroError that it raises is a violation and ends it."""
StatusPart = Callable[["Sequence[Frontier]", float], dict[str, Any]]
"""(the nodes of a stopped crawl, now in seconds since 1970) -> fields of `xyro status --json`"""


@dataclass(frozen=True, slots=True)
class ViewExtension:
    """The parts of one plug-in; None where it has nothing to add."""

    audit: AuditCheck | None = None
    status: StatusPart | None = None
    """of a stopped crawl: a running one asks the living plug-in"""


def status_parts(extensions: Sequence[ViewExtension], frontiers: Sequence[Frontier], now: float) -> dict[str, Any]:
    """The fields that extensions add to the status of a stopped crawl, in the order of the extensions."""
    fields: dict[str, Any] = {}
    for extension in extensions:
        if extension.status is not None:
            fields |= extension.status(frontiers, now)
    return fields
