"""Importance settles over all partitions of a process at once, as if their pages were one graph.

Once every page was read, pages spend over stored links until the OPIC clock shows enough turnovers. Partition by
partition that takes a round of commit groups, transfers and acknowledgements for every few spends of each. Here the
columns that spending needs are put one behind the other, links to pages of other partitions lead to these pages, and
one ledger spends in memory. Then each partition stores its part in a commit group of its own.

No cash leaves its partition by that, so it does not matter which of these groups a crash leaves out. A partition that
received more than it gave keeps its total by taking the difference from all of its pages alike, in proportion; one that
gave more puts the difference into the pot of its virtual page. Those pots go to partition 0 as ever, which pays them to
the partitions that are short (`Outbox.claims`), so the next part of the settling begins with totals that are nearly
right. What is off after the last part moves little: it is of the time since a page last spent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from xyro.configs.schema import OpicSettings
from xyro.frontier.batch import Effects
from xyro.frontier.ledger import NO_CHILDREN, Ledger
from xyro.frontier.outbox import PartitionCounts
from xyro.frontier.terms import terms_of
from xyro.metadata.columns import Columns
from xyro.metadata.states import COLUMNS, VOICE, State
from xyro.opic.cash import VirtualPage
from xyro.opic.focus import FocusedPage, Terms
from xyro.opic.importance import NewPages, OpicClock, Window
from xyro.wire.ids import LocalPage, local_pages

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier

SWEEPS_IDLE = 20
"""sweeps in a row that found nothing rich enough to spend: the threshold halves with each"""
STEP = 16
"""of the read pages one in so many may spend in one go"""
LEAST_STEP = 32
UNKNOWN = -1
"""place of a page that its own partition does not know yet"""
_NAMES = ("cash", "flow", "clock", "birth", "host", "state", "flags")
Ids = NDArray[np.int64]


@dataclass(slots=True)
class _Member:
    """One partition and its pages among all."""

    frontier: Frontier
    first: int
    """number of its first page"""
    own: Ids
    """its pages, without those of other partitions, in order"""
    cash: Ids
    """what they held when it began"""
    total: int
    """with the pot of its virtual page"""
    shift: int
    """ticks by which the common clock is ahead of its own"""

    @property
    def pages(self) -> slice:
        return slice(self.first, self.first + len(self.own))


class _JointLedger(Ledger):
    """The ledger over the pages of all members, each of which measures what reaches its own hosts."""

    def __init__(
        self, members: Sequence[_Member], columns: Columns, opic: OpicSettings, terms: Terms, window: float
    ) -> None:
        super().__init__(columns, 0, opic.damping, window, opic.sweep_target, terms)
        self._members = members

    def _cite(self, pages: Ids, amounts: Ids) -> None:
        order = pages.argsort(kind="stable")
        pages, amounts = pages[order], amounts[order]
        bounds = pages.searchsorted([member.first for member in self._members]).tolist()
        for member, start, stop in zip(self._members, bounds, [*bounds[1:], len(pages)], strict=True):
            meter = member.frontier.ledger.host_inflow
            if meter is not None and stop > start:
                own = member.own[pages[start:stop] - member.first]
                meter.add(own, amounts[start:stop], self.clock.ticks - member.shift)


def places(frontiers: Sequence[Frontier]) -> list[Ids]:
    """For each partition the numbers, among all pages, of those it has a row of; UNKNOWN where the owner has none."""
    order: dict[int, int] = {}
    found: list[Ids] = []
    total = 0
    for frontier in frontiers:
        columns, number = frontier.columns, frontier.partition.number
        own = columns["state"][: columns.n] != State.FOREIGN
        numbers = np.full(columns.n, UNKNOWN, np.int64)
        numbers[own] = total + np.arange(int(own.sum()))
        order[number] = len(found)
        found.append(numbers)
        total += int(own.sum())
    own_places = [numbers.copy() for numbers in found]
    for frontier, numbers in zip(frontiers, found, strict=True):
        columns = frontier.columns
        foreign = np.flatnonzero(numbers == UNKNOWN)
        owners = frontier.partition.owners()[columns["host"][foreign]]
        for owner in np.unique(owners).tolist():
            if owner not in order:
                continue
            pages, index = foreign[owners == owner], order[owner]
            urls = [frontier.partition.url(page) for page in local_pages(pages)]
            there = np.array(frontiers[index].partition.url_index.find(urls), np.int64)
            numbers[pages] = np.where(there >= 0, own_places[index][there], UNKNOWN)
    return found


class JointSettling:
    """Some turnovers of all partitions of a crawl: `spend`, then `close` each. All at a commit boundary."""

    def __init__(
        self, frontiers: Sequence[Frontier], placed: Sequence[Ids], children: dict[LocalPage, Ids | None] | None = None
    ) -> None:
        """`placed`: as `places` told them, of the same pages. `children`: what an earlier part with the same places has
        found of stored links; more is added."""
        richest = max(frontiers, key=lambda frontier: frontier.read_pages)
        self._terms = terms_of(richest.settings)
        self._placed = placed
        self._clock = richest.ledger.clock.ticks
        self._members: list[_Member] = []
        self._known_children = {} if children is None else children
        count = 0
        for frontier, numbers in zip(frontiers, placed, strict=True):
            own = np.flatnonzero(frontier.columns["state"][: len(numbers)] != State.FOREIGN)
            shift = self._clock - frontier.ledger.clock.ticks
            cash = frontier.ledger.effective(own)
            total = int(cash.sum()) + frontier.ledger.virtual.pot
            self._members.append(_Member(frontier, count, own, cash, total, shift))
            count += len(own)
        self._firsts = np.array([member.first for member in self._members])
        self._spent = np.zeros(len(self._members), np.int64)
        self._spends = np.zeros(len(self._members), np.int64)
        self._step = max(LEAST_STEP, sum(frontier.read_pages for frontier in frontiers) // STEP)
        self.ledger = self._joined(richest, self._columns(count))
        self.spends = 0

    def _columns(self, count: int) -> Columns:
        voiced = any(VOICE in member.frontier.columns for member in self._members)
        spec = {name: COLUMNS[name] for name in _NAMES}
        if voiced:
            spec[VOICE] = next(m.frontier.columns.spec[VOICE] for m in self._members if VOICE in m.frontier.columns)
        columns, hosts = Columns(spec, max(count, 1)), 0
        columns.grow(count)
        for member in self._members:
            theirs = member.frontier.columns
            for name in spec:
                if name in theirs:
                    columns[name][member.pages] = theirs[name][member.own]
            columns["cash"][member.pages] = member.cash
            columns["host"][member.pages] += np.uint32(hosts)
            hosts += len(member.frontier.partition.hosts)
            for name in ("clock", "birth"):
                columns[name][member.pages] += np.uint32(member.shift & 0xFFFF_FFFF)
        return columns

    def _joined(self, richest: Frontier, columns: Columns) -> Ledger:
        """A ledger over all pages that goes on with the clock of the partition that read most."""
        theirs, pot = richest.ledger, sum(member.frontier.ledger.virtual.pot for member in self._members)
        ledger = _JointLedger(self._members, columns, richest.settings.opic, self._terms, theirs.window.longest)
        if isinstance(ledger.virtual, FocusedPage):
            ledger.virtual = FocusedPage(self._terms.weights, pot)
            ledger.virtual.recount(ledger.classes(slice(0, columns.n)))
        else:
            ledger.virtual = VirtualPage(pot)
        ledger.clock = OpicClock.load(theirs.clock.dump())
        ledger.window = Window.load(theirs.window.dump())
        ledger.new_pages = NewPages.load(theirs.new_pages.dump())
        for member, numbers in zip(self._members, self._placed, strict=True):
            for page, links in member.frontier.ledger.withheld.items():
                ledger.withheld[LocalPage(int(numbers[page]))] = links
        return ledger

    # -- spending ------------------------------------------------------------------------------------------------

    def spend(self, turnovers: float, limit: int) -> int:
        """Let pages spend until the clock shows so many turnovers, at most so many of them, or until nothing is left
        that is worth it. Returns the spends."""
        ledger, idle, done = self.ledger, 0, 0
        while ledger.clock.turnovers < turnovers and done < limit and idle < SWEEPS_IDLE:
            count = self._sweep()
            idle, done = 0 if count else idle + 1, done + count
            ledger.pay()
        ledger.columns.settle()
        self.spends += done
        return done

    def _sweep(self) -> int:
        read, dangling = self.ledger.rich(self._step)
        shown = [(page, children) for page in local_pages(read) if (children := self._children(page)) is not None]
        pages = np.array([page for page, _ in shown], np.int64)
        pages = np.concatenate([pages, dangling])
        links: list[NDArray[Any]] = [children for _, children in shown]
        if len(pages):
            links += [NO_CHILDREN] * len(dangling)
            members = self._firsts.searchsorted(pages, "right") - 1
            np.add.at(self._spent, members, self.ledger.effective(pages))
            np.add.at(self._spends, members, 1)
            self.ledger.spend(pages, links, self.ledger.columns.n, self.ledger.spends)
        return len(pages)

    def _children(self, page: LocalPage) -> Ids | None:
        """The children of a page, by their numbers among all; None where none are stored."""
        if page not in self._known_children:
            self._known_children[page] = self._targets(page)
        return self._known_children[page]

    def _targets(self, page: LocalPage) -> Ids | None:
        index = int(self._firsts.searchsorted(page, "right")) - 1
        member = self._members[index]
        children = member.frontier.partition.children(LocalPage(int(member.own[page - member.first])))
        if children is None:
            return None
        numbers: Ids = self._placed[index][children]
        targets: Ids = numbers[numbers != UNKNOWN]
        return targets

    # -- the end -------------------------------------------------------------------------------------------------

    def close(self, index: int, now: float) -> Effects:
        """One partition's commit group, with its part of what came out."""
        return self._members[index].frontier.settled_group(partial(self._store, index), now)

    def _store(self, index: int) -> None:
        """Take over clock, cash and flow; the partition's total stays, to the unit."""
        member, union = self._members[index], self.ledger
        ledger, columns, own = member.frontier.ledger, member.frontier.columns, member.own
        cash, pot = _evened(self._cash(member), member.total)
        changed = cash != member.cash
        columns["cash"][own] += cash - member.cash
        columns.touch("cash", own[changed])
        clock = union.columns["clock"][member.pages] - np.uint32(member.shift & 0xFFFF_FFFF)
        spent = clock != columns["clock"][own]
        columns["clock"][own], columns["flow"][own] = clock, union.columns["flow"][member.pages]
        for name in ("clock", "flow"):
            columns.touch(name, own[spent])
        ledger.virtual.refill(pot)
        ledger.clock = OpicClock(ledger.clock.ticks + union.clock.ticks - self._clock, union.clock.rest)
        ledger.new_pages = NewPages.load(union.new_pages.dump())
        ledger.spent += int(self._spent[index])
        ledger.spends += int(self._spends[index])
        ledger.elsewhere_spent += int(self._spent.sum() - self._spent[index])
        if ledger.host_inflow is not None:
            ledger.host_inflow.store(ledger.clock.ticks, ledger.remembered)
        self._tell_bank(member)

    def _tell_bank(self, bank: _Member) -> None:
        """Partition 0 is told what the others spent, and how much more than they had is theirs."""
        if bank.frontier.partition.number:
            return
        outbox = bank.frontier.outbox
        for member in self._members:
            if (short := int(self._cash(member).sum()) - member.total) > 0:
                outbox.claims[member.frontier.partition.number] = short
        elsewhere = outbox.elsewhere
        for other, spent_there in zip(self._members, self._spent.tolist(), strict=True):
            number = other.frontier.partition.number
            if number in elsewhere:
                counts = elsewhere[number]
                elsewhere[number] = PartitionCounts(counts.spent + spent_there, counts.pages, counts.weighted)

    def _cash(self, member: _Member) -> Ids:
        return self.ledger.effective(member.pages)


def _evened(cash: Ids, total: int) -> tuple[Ids, int]:
    """Make the pages of a partition hold no more than its total, each less in the same proportion.

    -> what each holds, and what is left of the total for the pot.
    """
    excess = int(cash.sum()) - total
    if excess > 0:
        share = excess / int(cash.sum()) * (1.0 + 1e-9)  # never too little, however it is rounded
        cut = np.minimum(np.ceil(cash * share).astype(np.int64), cash)
        cash, excess = cash - cut, excess - int(cut.sum())
    return cash, -excess
