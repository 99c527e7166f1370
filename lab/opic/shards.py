"""One graph over several partitions that exchange cash through an unreliable post.

A shard does with opic's own pieces what the crawl's ledger and post do with rows: it spends its rich pages, pays
children of other shards by letters, sends its virtual income to shard 0 and raises its scalar by what comes back.
Letters of a pair carry numbers without gaps; the receiver applies them in that order and keeps aside what comes too
early, so late, lost, reordered and repeated letters change nothing but the time; the sender repeats what is not
acknowledged.

Holds at every consistent cut: cash of the pages + pots + accounts + letters sent and not applied = UNIT x pages.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from xyro.lab.opic.histories import History
from xyro.lab.opic.selectors import Cash, SweepSelector
from xyro.opic.arrays import Pages, Reals, Units
from xyro.opic.cash import DAMPING, UNIT, VirtualPage, credit, seeds_of, shares
from xyro.opic.graph import Graph
from xyro.opic.importance import OpicClock


@dataclass(frozen=True, slots=True)
class Letter:
    """Cash from one shard to another: `cash[k]` units for page `pages[k]`, `virtual` units of the virtual page; and
    what the sender knows of the clock: units spent and pages known (shard 0 tells of all but the receiver)."""

    source: int
    target: int
    seq: int
    pages: Pages
    cash: Units
    virtual: int
    spent: int
    pages_known: int

    @property
    def units(self) -> int:
        return self.virtual + int(self.cash.sum())


class Shard:
    """The pages with owner[page] == number. Every page begins with one page's worth of cash."""

    def __init__(self, graph: Graph, owner: Pages, number: int, history: History) -> None:
        self.graph, self.owner, self.number, self.history = graph, owner, number, history
        self.pages = np.flatnonzero(owner == number)
        self.place = np.full(graph.n, -1, np.int64)
        self.place[self.pages] = np.arange(self.pages.size)
        self.keys: Units = np.full(self.pages.size, UNIT, np.int64)
        self.virtual, self.clock, self.sweep = VirtualPage(), OpicClock(), SweepSelector()
        self.visits = np.zeros(self.pages.size, np.int64)
        self.spent = self.spent_elsewhere = self.known_elsewhere = 0
        self.others: dict[int, tuple[int, int]] = {}
        """shard 0: (units spent, pages) of each other shard, as last told"""
        self.sent: dict[int, int] = defaultdict(int)
        self.applied: dict[int, int] = defaultdict(int)
        self.early: dict[tuple[int, int], Letter] = {}
        """(source, number) -> a letter that waits for those before it"""
        self.outbox: dict[tuple[int, int], Letter] = {}
        """(target, number) -> what is not acknowledged yet"""

    @property
    def pages_known(self) -> int:
        return self.pages.size

    @property
    def everywhere(self) -> int:
        """Pages of all shards, as far as this one has heard."""
        return self.pages_known + self.known_elsewhere

    @property
    def cash_total(self) -> int:
        """Units in this shard: on pages and in the virtual page's pot and account."""
        return int(self.keys.sum()) + self.virtual.scalar * self.pages_known + self.virtual.balance

    @property
    def importance(self) -> Reals:
        """The importance of this shard's pages, by its own clock."""
        return self.history.estimate((self.keys + self.virtual.scalar) / UNIT, self.clock.turnovers)

    # -- a turn --------------------------------------------------------------------------------------------------

    def turn(self, limit: int) -> list[Letter]:
        """Spend at most `limit` rich pages at the same time; returns the letters that leave."""
        if not self.pages_known:
            return []
        places = self.sweep.pick(Cash(self.keys, self.virtual.scalar), limit)
        pages, cash = self.pages[places], self.keys[places] + self.virtual.scalar
        self.history.measure(places, cash / UNIT, self.clock.turnovers)
        indptr, targets = self.graph.links_of(pages)
        virtual, amounts = shares(cash, indptr, seeds_of(pages, self.visits[places]), DAMPING)
        self.keys[places] = -self.virtual.scalar
        self.visits[places] += 1
        here = self.owner[targets] == self.number
        credit(self.keys, self.place[targets[here]], amounts[here])
        self.virtual.receive(int(virtual.sum()))
        units = int(cash.sum())
        self.spent += units
        self.clock.advance(units, UNIT * self.everywhere)
        return self._post(targets[~here], amounts[~here])

    def _post(self, pages: Pages, amounts: Units) -> list[Letter]:
        """One letter to each shard that is owed something, with each page once."""
        distinct, where = np.unique(pages, return_inverse=True)
        sums = np.zeros(distinct.size, np.int64)
        np.add.at(sums, where, amounts)
        owners, virtual = self.owner[distinct], self._virtual()
        targets = sorted({*np.unique(owners).tolist(), *virtual})
        return [self._letter(t, distinct[owners == t], sums[owners == t], virtual.get(t, 0)) for t in targets]

    def _virtual(self) -> dict[int, int]:
        """Units of the virtual page to each shard: income to 0, or 0's payouts. Settles this one's account."""
        virtual, out = self.virtual, dict[int, int]()
        if self.number:
            if virtual.due(self.pages_known) or not self.sent[0]:
                out[0] = virtual.take()
        elif virtual.due(self.everywhere):
            parts = virtual.split([self.pages_known, *(count for _, count in self.others.values())])
            virtual.deposit(parts[0])
            out = dict(zip(self.others, parts[1:], strict=True))
        virtual.settle(self.pages_known)
        return out

    def _letter(self, target: int, pages: Pages, cash: Units, virtual: int) -> Letter:
        spent, count = self.spent, self.pages_known
        if self.number == 0:
            spent += sum(counts[0] for source, counts in self.others.items() if source != target)
            count += sum(pair[1] for source, pair in self.others.items() if source != target)
        self.sent[target] += 1
        letter = Letter(self.number, target, self.sent[target], pages, cash, virtual, spent, count)
        self.outbox[target, letter.seq] = letter
        return letter

    # -- letters that come ---------------------------------------------------------------------------------------

    def take(self, letter: Letter) -> int:
        """Apply the letter, and those it held up, once its turn has come. Returns the number of the last one
        applied."""
        source = letter.source
        if letter.seq > self.applied[source]:
            self.early[source, letter.seq] = letter
        while (following := self.early.pop((source, self.applied[source] + 1), None)) is not None:
            self.applied[source] += 1
            credit(self.keys, self.place[following.pages], following.cash)
            self._hear(following)
        return self.applied[source]

    def _hear(self, letter: Letter) -> None:
        if self.number == 0:
            self.virtual.receive(letter.virtual)
            self.others[letter.source] = letter.spent, letter.pages_known
            spent, count = (sum(column) for column in zip(*self.others.values(), strict=True))
            self._tick(spent, count)
        elif letter.source == 0:
            self.virtual.deposit(letter.virtual)
            self._tick(letter.spent, letter.pages_known)

    def _tick(self, spent: int, count: int) -> None:
        """Advance the clock by the spendings of the other shards. spent: in all, units; count: pages that they know."""
        self.known_elsewhere = max(self.known_elsewhere, count)
        if spent > self.spent_elsewhere:
            self.clock.advance(spent - self.spent_elsewhere, UNIT * self.everywhere)
            self.spent_elsewhere = spent

    def acknowledged(self, target: int, seq: int) -> None:
        """Drop the letters to `target` up to number `seq`, which it has applied."""
        for pair in [pair for pair in self.outbox if pair[0] == target and pair[1] <= seq]:
            del self.outbox[pair]
