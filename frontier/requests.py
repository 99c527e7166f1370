"""Pages that somebody wants read ahead of the plan: people, publishers and subscribers, loads that need a part.

Filled by `order` and, over a restart, from the WANTED rows; emptied by the scheduler, which asks for all of it each
turn. A row stays until an order for its page is settled (`release`), so that a crash in between reads the page again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from xyro.metadata import rows
from xyro.metadata.partition import Partition
from xyro.metadata.rows import WantedRow
from xyro.metadata.states import WANTED, State
from xyro.wire.ids import LocalPage
from xyro.wire.messages import Priority, Submit

_OUT, _BLOCKED, _FOREIGN = int(State.OUT), int(State.BLOCKED), int(State.FOREIGN)


class Requests:
    """The requests of one partition. Invariant: a page has the flag WANTED exactly while its WANTED row is stored.

    Its length is the number of pages that wait to be ordered, among them such as were released since.
    """

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.queues: dict[Priority, deque[LocalPage]] = {Priority.BLOCKING: deque(), Priority.ORDERED: deque()}
        """most urgent first"""
        self.elsewhere: list[Submit] = []
        """pages of other partitions, of this turn"""
        self._blocking: set[LocalPage] = set()
        """pages ordered BLOCKING, until their order is settled; of other partitions, in this turn"""

    def __len__(self) -> int:
        return sum(map(len, self.queues.values()))

    def recover(self) -> None:
        """Queue again what was wanted and not settled."""
        for key, value in self.partition.scan(rows.WANTED.prefix):
            self._queue(rows.WANTED.split(key), Priority(rows.unpack_wanted(value).priority))

    # -- in ------------------------------------------------------------------------------------------------------

    def order(self, pages: Sequence[LocalPage], priority: Priority) -> None:
        """Want pages read that may be, BLOCKING or ORDERED."""
        for page in pages:
            if not self.may_read(page, priority) or (priority is Priority.BLOCKING and self._is_asked(page)):
                continue
            if self.partition.states[page] == _FOREIGN:
                self.order_elsewhere(Submit((self.partition.url(page),), priority, seed=False))
                continue
            self.keep(page, priority)
            self._queue(page, priority)

    def may_read(self, page: LocalPage, priority: Priority) -> bool:
        """Tell whether the page may be read: pages out of scope only by BLOCKING orders, blocked pages by none."""
        state = self.partition.states[page]
        return state != _BLOCKED and (state != _OUT or priority is Priority.BLOCKING)

    def order_elsewhere(self, submit: Submit) -> None:
        """Pages of other partitions that are to be ordered when this group is on disk."""
        self.elsewhere.append(submit)

    def keep(self, page: LocalPage, priority: Priority) -> None:
        """Over a restart only: after it the page is wanted, unless it is released before."""
        self.partition.set_flag(page, WANTED)
        self.partition.put(rows.WANTED.key(page), rows.pack(WantedRow(priority)))

    def again(self, page: LocalPage) -> None:
        """Queue a page that is still wanted, and was put aside."""
        stored = self.partition.get(rows.WANTED.key(page))
        self._queue(page, Priority(rows.unpack_wanted(stored).priority) if stored else Priority.ORDERED)

    def _queue(self, page: LocalPage, priority: Priority) -> None:
        self.queues[Priority.BLOCKING if priority is Priority.BLOCKING else Priority.ORDERED].append(page)

    def _is_asked(self, page: LocalPage) -> bool:
        """Was it ordered BLOCKING before, and not settled since? Thousands of documents may need the same part."""
        if page in self._blocking:
            return self.partition.states[page] == _FOREIGN or bool(self.partition.flags[page] & WANTED)
        self._blocking.add(page)
        return False

    # -- out -----------------------------------------------------------------------------------------------------

    def pop(self) -> tuple[LocalPage, Priority] | None:
        """The most urgent page; whether it is still wanted its flag says."""
        for priority, queue in self.queues.items():
            if queue:
                return queue.popleft(), priority
        return None

    def release(self, page: LocalPage) -> None:
        """An order for the page is settled."""
        if self.partition.flags[page] & WANTED:
            self._blocking.discard(page)
            self.partition.clear_flag(page, WANTED)
            self.partition.delete(rows.WANTED.key(page))

    def take_elsewhere(self) -> list[Submit]:
        """Take the requests for other partitions, to be sent when this group is on disk; each turn may ask once for a
        page."""
        submits, self.elsewhere = self.elsewhere, []
        for submit in submits:
            self._blocking.difference_update(self.partition.url_index.find(submit.urls))
        return submits
