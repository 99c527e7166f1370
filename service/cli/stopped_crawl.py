"""Opens a crawl that does not run, with all plug-ins, for the commands that show one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
