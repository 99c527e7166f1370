"""Opens a crawl that does not run, with all plug-ins, for the commands that show one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier
    from xyro.service.views.views import Views


@contextlib.contextmanager
def stopped_nodes(directory: Path) -> Iterator[list[Frontier]]:
    """Open the partitions of a data directory. InputError where there is none, or a process works on it."""
    from xyro.plugins import extensions
    from xyro.service.node.stopped import nodes_of

    with nodes_of(directory, extensions) as frontiers:
        yield frontiers


@contextlib.contextmanager
def stopped_views(directory: Path) -> Iterator[Views]:
    """The crawl as of its last commit."""
    from xyro.service.views.views import Views

    with stopped_nodes(directory) as frontiers, Views(frontiers) as views:
        yield views
