"""Keeps what notices need of one partition's pages: new pages of their targets, and pages promised by a date.

Takes part in the partition's turns (frontier/hooks.py) from the first target on. Subscriptions themselves are in the
home partition (subscribed.py), which names the targets and hears of new pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xyro.frontier.targets import Targets
from xyro.metadata.states import LEASED, WANTED, State
from xyro.plugins.publish.publish_messages import MissPages, PagesFound, RefreshPages, WatchTargets
from xyro.refresh.awaited_pages import AwaitedPages
from xyro.wire.ids import HOME, LocalPage, page_range
from xyro.wire.messages import Priority

if TYPE_CHECKING:
    from xyro.frontier.batch import Settled
    from xyro.frontier.frontier import Frontier

READABLE = (State.READ, State.UNREAD, State.ERROR, State.FAILED)
FOUND_AT_ONCE = 10_000
"""pages in one PagesFound"""
_LATENESS = "notice_lateness"


class NoticePages:
    """The pages of one partition."""

    def __init__(self, frontier: Frontier) -> None:
        self.frontier = frontier
        self.targets = Targets()
        self.awaited = AwaitedPages()
        self._registered = False
        frontier.hooks.recover.append(self._recover)
        frontier.hooks.status["notice_pages"] = self.figures
        frontier.commands.handle(WatchTargets, self._watch)
        frontier.commands.handle(RefreshPages, self._refresh)
        frontier.commands.handle(MissPages, self._miss)

    def _recover(self) -> None:
        self.awaited.resume(self.frontier.hooks.stored.get(_LATENESS, 0.0))

    def _register(self) -> None:
        """There are subscriptions: take part in the turns from now on."""
        if not self._registered:
            self._registered = True
            hooks = self.frontier.hooks
            hooks.born.append(self.born)
            hooks.deadlines.append(self.awaited.deadline)
            hooks.settled.append(self.settled)
            hooks.why.append(self.why)
            hooks.keep(_LATENESS, lambda: self.awaited.lateness)

    def figures(self, now: float) -> dict[str, Any]:
        """Lateness, for `xyro status`: that of all partitions adds up (promise_report.py)."""
        return {"lateness": self.awaited.lateness, "overdue": tuple(self.awaited.late(now)),
                "pages": len(self.awaited.overdue)}  # fmt: skip

    # -- commands ------------------------------------------------------------------------------------------------

    def _watch(self, command: WatchTargets) -> None:
        self._register()
        for target in command.targets:
            if command.wanted and target not in self.targets:
                self.targets.add(target)
            elif not command.wanted and target in self.targets:
                self.targets.drop(target)

    def _refresh(self, command: RefreshPages) -> None:
        states = self.frontier.partition.states
        pages = [page for page in command.pages if states[page] in READABLE]
        self.awaited.promise(pages, command.due)
        self.frontier.requests.order([page for page in pages if not self._waits(page)], Priority.ORDERED)

    def _waits(self, page: LocalPage) -> bool:
        """Tell whether the page waits to be ordered. (Its host is paused, say.) Another order adds nothing."""
        flags = self.frontier.partition.flags[page]
        return flags & (WANTED | LEASED) == WANTED and page not in self.frontier.loads.loading

    def _miss(self, command: MissPages) -> None:
        row_of = self.frontier.partition.row
        missed = [page for page in command.pages if (row := row_of(page)) is None or row.last_read < int(command.since)]
        self.awaited.miss(missed, command.due)

    # -- turns ---------------------------------------------------------------------------------------------------

    def born(self, first: LocalPage, urls: Sequence[str]) -> None:
        """Tell the home partition of new pages that targets name; those of other partitions are for these to tell."""
        if not self.targets:
            return
        partition = self.frontier.partition
        states, hosts = partition.states, partition.hosts_of
        found = [
            (target, page, hosts[page])
            for page, url in zip(page_range(first, len(urls)), urls, strict=True)
            if states[page] != State.FOREIGN
            for target in self.targets.names(url)
        ]
        for start in range(0, len(found), FOUND_AT_ONCE):
            names, pages, places = zip(*found[start : start + FOUND_AT_ONCE], strict=True)
            self.frontier.hooks.post(HOME, PagesFound(0, partition.number, names, pages, places))

    def settled(self, settled: Sequence[Settled], now: float) -> None:
        """Pages were read: were they overdue?"""
        if self.awaited.awaited or self.awaited.overdue:
            for order in settled:
                if order.visit.answered or order.report.final:
                    self.awaited.read(order.page, now)

    def why(self, page: LocalPage, now: float) -> list[str]:
        """Explain for `xyro why` that a notice went out without the page."""
        overdue = page in self.awaited.overdue
        return ["A subscription's notice was due before it was refreshed."] if overdue else []
