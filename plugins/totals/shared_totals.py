"""Tells the sums of one partition to the home partition, and takes those of all others from there.

Sums are told when they have moved, at most every EVERY seconds, and at least every LATEST: the home partition knows
none after a restart, and tells nobody a part of them. A command that is lost is followed by the next one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from xyro.plugins.totals.total_messages import TellSums
from xyro.refresh.other_sums import OtherSums
from xyro.refresh.population import Population
from xyro.wire.ids import HOME

if TYPE_CHECKING:
    from xyro.frontier.batch import Settled
    from xyro.frontier.frontier import Frontier

EVERY, LATEST = 3.0, 60.0
"""seconds from one word to the next"""
CLOSE = 0.02
"""sums that moved by less are as they were"""


class SharedTotals:
    """Registers with the hooks of one frontier."""

    def __init__(self, frontier: Frontier) -> None:
        self._frontier = frontier
        self._sent_at = -math.inf
        """wall clock: when it told its sums last"""
        self._last: tuple[float, ...] = ()
        self._parts: dict[int, OtherSums] = {}
        """home partition: what each has told last"""
        self._fresh = False
        """some of it has not been passed on"""
        self._passed_at = -math.inf
        self._next = -math.inf
        """wall clock: when a turn is wanted; sums move in turns only"""
        frontier.hooks.alarms.append(self._alarm)
        frontier.hooks.settled.append(self._turn)
        frontier.commands.handle(TellSums, self._hear)

    def _sums(self) -> tuple[float, ...]:
        """The sums that are told when they move."""
        scheduler = self._frontier.scheduler
        bandwidth, discovery = scheduler.bandwidth, scheduler.discovery
        unread = 0 if discovery.poor_only else discovery.waiting
        return (
            bandwidth.spread.total,
            bandwidth.population.pages,
            bandwidth.capacity.rate(),
            unread,
            self._frontier.reads,
        )

    def _moved(self) -> bool:
        now, before = self._sums(), self._last
        return not before or any(abs(new - old) > CLOSE * old for new, old in zip(now, before, strict=True))

    def _alarm(self) -> float:
        return self._next

    @property
    def _complete(self) -> bool:
        """All partitions have told the home partition."""
        return len(self._parts) == self._frontier.partitions

    def _turn(self, _: Sequence[Settled], now: float) -> None:
        if now < self._sent_at or now < self._passed_at:  # the clock was set back
            self._sent_at = self._passed_at = -math.inf
        hooks, number = self._frontier.hooks, self._frontier.partition.number
        moment = self._sent_at + (EVERY if self._moved() else LATEST)
        if now >= moment:
            self._sent_at, self._last = now, self._sums()
            hooks.post(HOME, TellSums.pack(number, self._own(now)))
            moment = now + LATEST
        if self._fresh and self._complete and now >= self._passed_at + EVERY:
            self._fresh, self._passed_at = False, now
            for target, others in others_of(self._parts):
                hooks.post(target, TellSums.pack(-1, others))
        self._next = min(moment, self._passed_at + EVERY) if self._fresh and self._complete else moment

    def _own(self, now: float) -> OtherSums:
        spread, _, rate, unread, reads = self._sums()
        scheduler, population = self._frontier.scheduler, Population()
        population.merge(scheduler.bandwidth.population)
        promised = scheduler.bandwidth.deadline_reads.rate(now)
        gamma = scheduler.gamma.percent
        return OtherSums(population, spread, rate, promised, int(unread), int(reads), gamma, 1.0 + reads,
                         self._frontier.importance_error.own, self._frontier.ledger.known_pages)  # fmt: skip

    def _hear(self, command: TellSums) -> None:
        if command.source >= 0:
            self._parts[command.source] = command.sums()
            self._fresh = True
        else:
            others, scheduler = command.sums(), self._frontier.scheduler
            scheduler.bandwidth.hear_others(others)
            scheduler.gamma.hear_others(others)
            self._frontier.importance_error.hear_others(others)


def others_of(parts: Mapping[int, OtherSums]) -> list[tuple[int, OtherSums]]:
    """Each partition, and the sums of all beside it: those before it and those after it, a merge each."""
    found, before, after = list[tuple[int, OtherSums]](), OtherSums(), OtherSums()
    for target, sums in parts.items():
        found.append((target, OtherSums()))
        found[-1][1].add(before)
        before.add(sums)
    for target, others in reversed(found):
        others.add(after)
        after.add(parts[target])
    return found
