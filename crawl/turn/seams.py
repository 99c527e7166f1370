"""What promises.py and clustered.py need of the page node that owns them (which imports them)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from crawl.turn.dates import Dates
from crawl.turn.planner import Planner
from metadata.hot import Columns
from metadata.manager import Partition
from wire.messages import Priority, Submit


class Node(Protocol):
    """A page node within its commit group: see crawl/page_node.py."""

    partition: Partition
    columns: Columns
    planner: Planner
    dates: Dates

    def resolve(self, urls: Sequence[str], depths: Sequence[int], exempt: bool = False) -> NDArray[np.int64]: ...

    def want(self, pages: Sequence[int], priority: Priority) -> None: ...

    def order_elsewhere(self, submit: Submit) -> None: ...
