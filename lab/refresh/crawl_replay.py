"""A crawl's own history replayed: `xyro plan --replay`, and `xyro lab refresh --crawl FILE`.

In: `xyro export histories`. Out: how fresh the crawl was, and what other policies and bandwidths would have given.

A crawl sees of a change only that it came between two reads. What is not seen is drawn from its own belief: between a
read and the next that showed a change at least one, by a Poisson process of the page's rate; behind the last read any
number. Where Last-Modified dates the last change, the others lie before it. So the changes that reads hid are there,
and a policy that reads less misses more of them than the history shows. The draw is repeated, and the spread told.
A page that had changed at each read may change any faster: what is missed of it is a lower bound.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import msgspec
import numpy as np

from xyro.lab.refresh.page_arrays import TICK
from xyro.lab.refresh.rates import Estimator
from xyro.lab.refresh.rules import rule
from xyro.lab.refresh.sim import simulate
from xyro.lab.refresh.world import BURN_SHARE, PageHistory, World, of_histories
from xyro.wire.errors import InputError

DAY = 86_400.0
DRAWS = 3
"""worlds that are drawn: a figure is their mean"""
TICKS = 500
"""of a replay at least"""
MOST_HIDDEN = 1_000
"""changes that are drawn between two reads"""
FEW_READS = 10
"""reads a page at which obsolescence, by rates learned anew, still missed more than uniform reads (docs/data.md)"""
SHORTEST = 600.0
"""seconds that a history spans at least"""
PLAN_RULES = {"obsolescence": "p1", "mixed": "mixed:1"}
"""policies of `xyro plan` by other names than the laboratory's"""


class CrawlLine(msgspec.Struct):
    """A page of `xyro export histories` (plugins/changes/change_histories.py)."""

    path: str
    events: list[tuple[float, str]]
    between: list[tuple[float, float]]
    importance: float
    rate: float
    reads: int
    last_read: float


@dataclass(frozen=True, slots=True)
class CrawlRow:
    """How fresh a policy would have kept the pages with a bandwidth; `as it was`: how fresh they were."""

    policy: str
    reads_per_day: float
    share_per_day: float
    freshness: float
    obsolescence: float
    spread: float
    """of the freshness, between the draws: the largest difference from their mean"""


@dataclass(frozen=True, slots=True)
class SeenHistory:
    """The pages of a crawl, as it saw them."""

    lines: Sequence[CrawlLine]
    begin: float
    end: float

    @property
    def reads(self) -> int:
        """Reads that refreshed a page."""
        return sum(max(line.reads - 1, 0) for line in self.lines)

    @property
    def page_days(self) -> float:
        return sum(self.end - line.events[0][0] for line in self.lines) / DAY

    @property
    def bandwidth(self) -> float:
        """Reads a day for each page that is there, as the crawl spent them."""
        return self.reads / self.page_days

    def counts(self) -> dict[str, float]:
        """Count the changes that were seen, and those that the rates expect: the censoring of the history."""
        seen = [pair for line in self.lines for pair in zip(line.events[1:], line.between[1:], strict=True)]
        dated = sum(time < shown for (time, _), (_, shown) in seen)
        gaps = [shown - since for (time, _), (since, shown) in seen if time == shown]
        expected = sum(line.rate * (self.end - line.events[0][0]) / DAY for line in self.lines)
        return {
            "pages": len(self.lines),
            "days": (self.end - self.begin) / DAY,
            "reads": self.reads,
            "seen": len(seen),
            "dated": dated,
            "undated_days": float(np.mean(gaps)) / DAY if gaps else 0.0,
            "expected": expected,
            "read_once": sum(line.reads < 2 for line in self.lines),
            "always_changed": sum(1 < line.reads <= len(line.events) for line in self.lines),
        }


def read_history(file: Path) -> SeenHistory:
    """Read an export. InputError, with its line: none; too short to replay."""
    lines: list[CrawlLine] = []
    decoder = msgspec.json.Decoder(CrawlLine)
    try:
        for number, text in enumerate(file.read_bytes().splitlines(), start=1):
            line = decoder.decode(text)
            if not line.events or len(line.events) != len(line.between):
                raise InputError(f"{file}:{number}: expected events, and `between` for each of them")
            lines.append(line)
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{file}:{len(lines) + 1}: no line of `xyro export histories`: {error}") from error
    times = [line.events[0][0] for line in lines]
    ends = [max(line.last_read, line.events[-1][0]) for line in lines]
    if not times or max(ends) - min(times) < SHORTEST or all(line.reads < 2 for line in lines):
        raise InputError(f"nothing to replay: no page was read twice, {SHORTEST:g} seconds apart or more")
    return SeenHistory(lines, min(times), max(ends))


def drawn(line: CrawlLine, end: float, draws: np.random.Generator) -> tuple[list[float], list[tuple[float, float]]]:
    """(the changes of a page, sorted; (change, read that showed it) of each). What no read saw is drawn."""
    rate = line.rate / DAY
    pairs: list[tuple[float, float]] = []
    for (time, _), (since, shown) in zip(line.events[1:], line.between[1:], strict=True):
        if time < shown:  # dated: the last before the read; others may lie before it
            since = min(since, time)
            hidden = min(draws.poisson(rate * (time - since)), MOST_HIDDEN)
            pairs.append((time, shown))
        else:
            hidden = _at_least_one(rate * (shown - since), draws)
        pairs += [(since + (time - since) * share, shown) for share in draws.random(hidden).tolist()]
    since = max(line.last_read, line.between[-1][1])
    if since < end and line.events[-1][1] != "D":
        unseen = min(draws.poisson(rate * (end - since)), MOST_HIDDEN)
        pairs += [(since + (end - since) * share, end) for share in draws.random(unseen).tolist()]
    pairs.sort()
    return [time for time, _ in pairs], pairs


def _at_least_one(mean: float, draws: np.random.Generator) -> int:
    """A Poisson number, of those above 0: the first event by its own law, then those of the rest."""
    if mean < 1e-9:
        return 1
    first = -np.log1p(-draws.random() * -np.expm1(-mean))
    return 1 + min(int(draws.poisson(max(mean - first, 0.0))), MOST_HIDDEN)


def crawl_rows(
    history: SeenHistory, policies: Sequence[str], bandwidths: Sequence[float], seed: int = 1
) -> list[CrawlRow]:
    """Return how fresh they were, then a row a policy and bandwidth (reads a day for each page that is there)."""
    found: dict[tuple[str, float], list[tuple[float, float]]] = {}
    for draw in range(DRAWS):
        draws = np.random.default_rng((seed, draw))
        worlds = [drawn(line, history.end, draws) for line in history.lines]
        world = _world(history, [times for times, _ in worlds])
        found.setdefault(("as it was", history.bandwidth), []).append(_as_it_was(history, worlds, world.burn))
        tick = max(1, min(TICK, int(world.days * DAY / TICKS)))
        for bandwidth in bandwidths:
            for name in policies:
                rates = Estimator().rates_for(world)
                policy = rule(PLAN_RULES.get(name, name), world.born, seed, tick, world.days)
                score = simulate(world, policy, rates, bandwidth, tick=tick)
                found.setdefault((name, bandwidth), []).append((score.freshness, score.obsolescence))
    return [_row(history, name, bandwidth, scores) for (name, bandwidth), scores in found.items()]


def _row(history: SeenHistory, name: str, bandwidth: float, scores: Sequence[tuple[float, float]]) -> CrawlRow:
    fresh, missed = np.mean(scores, axis=0).tolist()
    spread = max(abs(each - fresh) for each, _ in scores)
    return CrawlRow(name, bandwidth * len(history.lines), bandwidth, fresh, missed, spread)


def _world(history: SeenHistory, changes: Sequence[Sequence[float]]) -> World:
    born = [line.events[0][0] for line in history.lines]
    pages = [
        PageHistory(line.path, birth, times) for line, birth, times in zip(history.lines, born, changes, strict=True)
    ]
    importance = np.maximum(np.array([line.importance for line in history.lines]), 1e-9)
    days = (history.end - history.begin) / DAY
    return replace(of_histories(pages, importance), days=days, burn=BURN_SHARE * days)


def _as_it_was(
    history: SeenHistory, worlds: Sequence[tuple[list[float], list[tuple[float, float]]]], burn: float
) -> tuple[float, float]:
    """(Freshness, changes that copies were behind) of what the crawl did, after the burn-in, weighted by importance."""
    begin, stale, missed, whole = history.begin + burn * DAY, 0.0, 0.0, 0.0
    for line, (_, pairs) in zip(history.lines, worlds, strict=True):
        whole += line.importance * (history.end - max(line.events[0][0], begin))
        until = 0.0
        for time, shown in pairs:
            since = max(time, begin)
            missed += line.importance * max(shown - since, 0.0)
            stale += line.importance * max(shown - max(since, until), 0.0)
            until = max(until, shown)
    return 1.0 - stale / whole, missed / whole


def text_of(history: SeenHistory, rows: Sequence[CrawlRow]) -> str:
    """For people: a line a row, then what the history cannot tell."""
    counts = history.counts()
    lines = [f"{'policy':13} {'reads/day':>12} {'of pages':>9} {'fresh':>7} {'+-':>6} {'changes missed':>15}"]
    lines += [
        f"{row.policy:13} {row.reads_per_day:12,.1f} {row.share_per_day:9.1%} {row.freshness:7.1%} "
        f"{row.spread:6.1%} {row.obsolescence:15.3g}"
        for row in rows
    ]
    seen, undated, always = counts["seen"], counts["seen"] - counts["dated"], counts["always_changed"]
    lines += [
        f"over {counts['pages']:,} pages, {counts['days']:.3g} days (the first {BURN_SHARE:.0%} not measured), "
        f"{counts['reads']:,} repeated reads; each page weighed by its importance of now",
        f"What the history cannot tell: of {seen:,} changes that reads showed {undated:,} have no date, and came at "
        f"any time between two reads, {counts['undated_days']:.3g} days",
        f"apart on average. The rates say that there were {counts['expected']:,.0f}: reads hid the rest. Both are "
        f"drawn from the rates, {DRAWS} times (+-: their spread).",
        f"{always:,} pages had changed at each read: they may change any faster, and more be missed of them. Of "
        f"{counts['read_once']:,} pages read once",
        "only the prior is known. Discovery is left as it was.",
        "Each policy begins without rates and learns them from its own reads, "
        f"{history.reads / len(history.lines):.3g} a page as it was. With {FEW_READS} or fewer",
        "obsolescence, which needs rates most, may miss more changes than others do; `xyro plan` knows today's rates.",
    ]
    return "\n".join(lines)


def replay_crawl(file: Path, policies: Sequence[str], reads_per_day: float, seed: int, as_json: bool) -> str:
    """Replay an export. reads_per_day: of all pages; 0 = as the crawl had, half, and twice of it. InputError: a policy
    or a history that is none."""
    history = read_history(file)
    share = reads_per_day / len(history.lines)
    bandwidths = [share] if share else [history.bandwidth * factor for factor in (1.0, 0.5, 2.0)]
    rows = crawl_rows(
        history, list(dict.fromkeys(policies)) or ["obsolescence", "freshness", "uniform"], bandwidths, seed
    )
    if as_json:
        return json.dumps({"rows": [asdict(row) for row in rows], "history": history.counts()})
    return text_of(history, rows)
