"""A stopped crawl, opened to be looked at: nothing is written."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from xyro.configs.load import load
from xyro.frontier.partition import PageNode
from xyro.frontier.scope import Scope
from xyro.plugins import extensions
from xyro.service.node import crawl_file
from xyro.service.node.data_dir import DataDir
from xyro.service.node.guard_factory import guard_of
from xyro.wire.clock import SystemClock


@contextlib.contextmanager
def nodes_of(directory: Path) -> Iterator[list[PageNode]]:
    """The page nodes of a data directory as of its last commit. InputError where there is none, or it is in use."""
    data = DataDir.open(directory)
    try:
        settings = load(crawl_file.paths(directory))
        scope = Scope(settings.crawl, settings.rules, guard_of(settings.fetch).host_allowed)
        nodes = [PageNode(partition, scope, settings, False, extensions(settings)) for partition in data.partitions]
        now = SystemClock().time()
        for node in nodes:
            node.recover(now)
        yield nodes
    finally:
        data.close()
