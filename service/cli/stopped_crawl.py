"""Opens a crawl that does not run, with all plug-ins, for the commands that show one; and the tables of either."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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


@contextlib.contextmanager
def exported(place: CrawlPlace, table: str) -> Iterator[Iterable[dict[str, Any]]]:
    """All rows of a table, of the running process or the stopped directory."""
    remote = place.find()
    if remote is not None:
        yield remote.lines(f"/export/{table}")
        return
    with stopped_views(place.directory) as views:
        yield _rows(views, table)


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
