"""One run: a rule refreshes a world with a bandwidth, and its copies are measured (`xyro lab refresh`).

Time goes in ticks: of 6 h, as the prototype's, unless a run asks for others (lab/refresh/prediction.py). At each the
rule chooses as many pages as the bandwidth allows, a share of the pages that are there a day; reads that a rule leaves
are lost, and fractions of a read are carried on. Changes come between ticks, at their own times. A page is found, and
first read, when it is born: discovery is not judged here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from xyro.lab.refresh.change_signals import SignalInbox
from xyro.lab.refresh.copies import Copies
from xyro.lab.refresh.page_arrays import TICK, PageArrays, Rule
from xyro.lab.refresh.rates import Rates
from xyro.lab.refresh.selection import HostCap
from xyro.lab.refresh.world import World

Watch = Callable[[float], None]
DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Score:
    """The score of a run: after the burn-in, weighted by importance."""

    freshness: float
    """share of time that copies were fresh"""
    obsolescence: float
    """changes that copies were behind, on average"""
    reads: int
    allowed: int
    """reads that the bandwidth allowed"""
    interest: float | None = None
    """share of the interest in changes that was left when they were read; None: it does not fade in this world"""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def simulate(
    world: World, rule: Rule, rates: Rates, bandwidth: float, watch: Watch = lambda share: None, tick: int = TICK
) -> Score:
    """Let a rule refresh a world, and return its score.

    bandwidth: reads a day for each page that is there, > 0. tick: seconds. What a rule chooses beyond what a host
    allows is not read.
    """
    copies, importance = Copies(world), world.importance.astype(np.float32)
    read_at = np.floor(world.born * DAY).astype(np.uint32)
    ticks = int(world.days * DAY // tick)
    burn = round(world.burn * DAY / tick)
    there = np.searchsorted(world.born, np.arange(ticks + 1) * (tick / DAY), side="right")
    credit, reads, allowed, before = 0.0, 0, 0, 0
    inbox = SignalInbox(world.signals, world.n) if world.signals is not None else None
    for turn in range(ticks + 1):
        now, live = turn * tick, int(there[turn])
        days = now / DAY
        if live > before:
            rates.born(slice(before, live))
            before = live
        if turn == burn:
            copies.begin(days)
            reads, allowed = 0, 0
        credit += bandwidth * live * (tick / DAY) if turn else 0.0
        limit = min(int(credit), live)
        credit = min(credit - limit, 1.0)
        if inbox is not None:
            inbox.advance(days)
        if limit:
            belief = partial(rates.belief, live)
            view = PageArrays(importance[:live], rates.now[:live], read_at[:live], now, belief, tick)
            if inbox is not None:
                view.signals = inbox.heard(live)
            if world.host_of is not None:
                view.hosts = HostCap(world.host_of[:live], max(int(world.host_share * limit), 1))
            pages = rule.choose(view, limit)
            if view.hosts is not None:
                pages = view.hosts.admitted(pages)
            visit = copies.read(pages, days)
            read_at[pages] = now
            if inbox is not None:
                inbox.read(pages)
            rates.learn(pages, visit)
            rule.learn(pages, days, visit.changed)
            reads, allowed = reads + len(pages), allowed + limit
        if turn % 64 == 0:
            watch(turn / ticks)
    copies.end(world.days)
    return _score(world, copies, _measured(world, burn * tick / DAY), reads, allowed)


def _score(world: World, copies: Copies, measured: float, reads: int, allowed: int) -> Score:
    stale, missed = float((world.importance * copies.stale).sum()), float((world.importance * copies.missed).sum())
    interest = None
    if copies.fading is not None:
        found = float((world.importance * copies.caught).sum())
        interest = found / max(float((world.importance * copies.published()).sum()), 1e-300)
    return Score(1.0 - stale / measured, missed / measured, reads, allowed, interest)


def _measured(world: World, burn: float) -> float:
    """Importance x days over which copies are measured: from the burn-in's end, or birth, to the end."""
    return float((world.importance * (world.days - np.maximum(world.born, burn))).sum())
