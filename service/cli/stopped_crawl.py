"""Opens a crawl that does not run, with all plug-ins, for the commands that show one; and the tables of either."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from xyro.service.cli.crawl_place import CrawlPlace
    from xyro.service.node.crawl_views import CrawlViews
    from xyro.service.views.views import Views


@contextlib.contextmanager
def stopped_crawl(directory: Path) -> Iterator[CrawlViews]:
    """Open a data directory as of its last commit. InputError where there is none, or a process works on it."""
    from xyro.plugins import extensions
    from xyro.service.node.stopped import open_stopped

    with open_stopped(directory, extensions) as crawl:
        yield crawl


@contextlib.contextmanager
def stopped_views(directory: Path) -> Iterator[Views]:
    """The pages of a crawl as of its last commit."""
    from xyro.wire.clock import SystemClock

    with stopped_crawl(directory) as crawl, crawl.views(SystemClock().time()) as views:
        yield views


def audited(directory: Path) -> dict[str, Any]:
    """Audit a data directory; of a cluster's node, or a backup of one, as far as its partitions alone allow it."""
    from xyro.plugins import extensions
    from xyro.plugins.view_extensions import VIEW_EXTENSIONS
    from xyro.service.cluster.bucket import epochs
    from xyro.service.cluster.gathering import listed
    from xyro.service.node.crawl_views import CrawlViews
    from xyro.service.node.stopped import nodes_of
    from xyro.service.views.audit import audit_part, combined_audit

    there = epochs(directory)
    numbers = [*there] if any(there.values()) else None  # else of a crawl of one process: they have to be all
    with nodes_of(directory, extensions, numbers) as frontiers:
        absent = [q for q in range(frontiers[0].partitions) if q not in there]
        with CrawlViews(frontiers, stopped=True).views() as views:
            part = audit_part(views.views, VIEW_EXTENSIONS)
    missing = (
        f"partitions {listed(absent)} are not in {directory}: cash, and what partitions sent each other, are not "
        "checked (`xyro audit --join URL` does, of all nodes at one moment); rows, maps, links, counters and outboxes "
        "of the others are"
    )
    return combined_audit([part], [missing] if absent else [])


@contextlib.contextmanager
def exported(place: CrawlPlace, table: str) -> Iterator[Iterable[dict[str, Any]]]:
    """All rows of a table, of the running process or the stopped directory."""
    remote = place.find()
    if remote is not None:
        yield remote.lines(f"/export/{table}")
        return
    with stopped_views(place.directory) as views:
        yield _rows(views, table)


def importances(place: CrawlPlace) -> list[tuple[int, NDArray[np.float32]]]:
    """(partition, importances of its pages, by their numbers there; a mean page has 1), of the running process (of a
    node, by all nodes of its cluster) or the stopped directory. InputError: that has not all partitions."""
    from xyro.plugins.contents.page_weights import unpacked_weights, weights_of

    if (remote := place.find()) is not None:
        return unpacked_weights(remote.body("/contents/weights")[0])
    with stopped_views(place.directory) as views:
        return weights_of(views)


def _rows(views: Views, table: str) -> Iterator[dict[str, Any]]:
    """All rows of a table."""
    if table == "hosts":
        from xyro.service.views.site_ranking import rank_sites

        return views.hosts(rank_sites(views).row_by_name)
    if table == "histories":
        from xyro.plugins.changes.change_histories import gather_histories, history_rows

        return history_rows(views, gather_histories(views))
    rows: Iterator[dict[str, Any]] = getattr(views, table)()
    return rows
