"""What promises.py and page_clusters.py need of the page node that owns them (which imports them)."""

from __future__ import annotations

from typing import Protocol

from xyro.frontier.dating import Dates
from xyro.frontier.pages import Pages
from xyro.frontier.requests import Wanted
from xyro.frontier.scheduler import Scheduler
from xyro.metadata.hot import Columns
from xyro.metadata.manager import Partition


class Node(Protocol):
    """A page node within its commit group: see frontier/partition.py."""

    partition: Partition
    columns: Columns
    scheduler: Scheduler
    dates: Dates
    pages: Pages
    wanted: Wanted
