"""What promises.py and clustered.py need of the page node that owns them (which imports them)."""

from __future__ import annotations

from typing import Protocol

from crawl.turn.dates import Dates
from crawl.turn.pages import Pages
from crawl.turn.planner import Planner
from crawl.turn.wanted import Wanted
from metadata.hot import Columns
from metadata.manager import Partition


class Node(Protocol):
    """A page node within its commit group: see crawl/page_node.py."""

    partition: Partition
    columns: Columns
    planner: Planner
    dates: Dates
    pages: Pages
    wanted: Wanted
