"""Costs of OPIC online: nanoseconds per link and per selection, beside a floor in the same run.

    kernels   one page after the other in machine code (fast.py): what the algorithm takes at least
    groups    commit groups in numpy (opic/cash.py, importance.py, sweep.py): what the crawler runs
    floor     the same accesses and nothing else: one addition at every page and every link target, in machine code

Every graph is random and larger than the cache from 2 M pages on, so what is measured there is mostly cache misses.
Reads of the links themselves (from the store) are not in it.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from xyro.lab import work_parts
from xyro.lab.opic import fast, spend_kernels
from xyro.lab.opic.selectors import Cash, SweepSelector
from xyro.lab.opic.simulate import SimulatedWorld
from xyro.opic.arrays import Pages, Units
from xyro.opic.cash import DAMPING, UNIT, VirtualPage, credit, seeds_of, shares
from xyro.opic.graph import Graph, power_law
from xyro.opic.importance import OpicClock, at_birth, measure
from xyro.opic.jit import compiled
from xyro.wire.clock import SystemClock

RUNS = 5
GROUP = 2_048
"""pages of a commit group that a busy crawl spends (256 reports and their free spends make some 800)"""
WINDOW = 16.0
LINK_NS, SELECTION_NS = 50.0, 200.0
"""what is asked for from LARGE pages on; smaller graphs lie in the cache and are printed beside"""
LARGE = 2_000_000
Found = dict[str, Any]


@compiled
def touch(pages: Pages, indptr: Pages, indices: Pages, keys: Units) -> None:
    """The floor: add 1 to each page's key and to that of every page it links to."""
    for k in range(pages.size):
        page = pages[k]
        keys[page] += 1
        for link in range(indptr[page], indptr[page + 1]):
            keys[indices[link]] += 1


def speed(out: Path, sizes: Sequence[int], show: bool = True) -> Found:
    """OUT/speed.json and speed.txt."""
    work: dict[str, work_parts.Part] = {
        f"{pages}": work_parts.KeyedPart({"pages": pages}, partial(_one_size, pages)) for pages in sizes
    }
    results = work_parts.compute(work, {}, out / "speed", show)
    work_parts.write(out / "speed.json", results)
    (out / "speed.txt").write_text(page(results), encoding="utf-8")
    return results


def random_graph(n: int, rng: np.random.Generator) -> Graph:
    """About 10 links a page, in-degree ~ k^-2.1: made in the order of the parents, without sorting."""
    targets = np.repeat(np.arange(n), power_law(n, rng))
    rng.shuffle(targets)
    ends = np.sort(rng.integers(targets.size + 1, size=n - 1))
    return Graph(np.concatenate(([0], ends, [targets.size])), targets)


def _one_size(n: int, watch: work_parts.Watch) -> Found:
    graph = random_graph(n, np.random.default_rng(1))
    watch(0.2)
    kernels = _kernels(graph, watch)
    groups = _groups(graph)
    return {"pages": n, "links_per_page": graph.m / n, "kernels": kernels, "groups": groups}


def _kernels(graph: Graph, watch: work_parts.Watch) -> Found:
    """Reads picked by the sweep; the same reads again, given; the same accesses alone. Differences are costs."""
    clock, world, select = SystemClock(), SimulatedWorld(graph), SweepSelector()
    fast.advance(world, select, graph.n)  # the cash of a crawl under way, and compiled code
    touch(np.zeros(1, np.int64), graph.indptr, graph.indices, np.zeros(graph.n, np.int64))
    reads, rows = max(graph.n // 4, 1000), []
    for run in range(RUNS):
        keys, visits, virtual = world.keys.copy(), world.visits.copy(), VirtualPage(**world.virtual.dump())
        moments = [clock.monotonic()]
        pages = fast.advance(world, select, reads).pages
        moments.append(clock.monotonic())
        books = np.array([virtual.scalar, virtual.pot, virtual.account, 0])
        log = pages.copy(), np.empty(reads, np.int64), np.empty(reads, np.int64)
        weight = round((1 - world.damping) * (1 << 31))
        moments.append(clock.monotonic())
        spend_kernels.in_order(graph.indptr, graph.indices, keys, visits, books, weight, *log)
        moments.append(clock.monotonic())
        touch(pages, graph.indptr, graph.indices, keys)
        moments.append(clock.monotonic())
        links = int((graph.indptr[pages + 1] - graph.indptr[pages]).sum())
        rows.append((*np.diff(moments)[[0, 2, 3]].tolist(), links))
        watch(0.3 + 0.5 * run / RUNS)
    link = statistics.median(1e9 * spend / links for _, spend, _, links in rows)
    floor = statistics.median(1e9 * bare / links for *_, bare, links in rows)
    choice = statistics.median(1e9 * (whole - spend) / reads for whole, spend, _, _ in rows)
    return {"link_ns": link, "selection_ns": max(choice, 0.0), "floor_link_ns": floor, "ratio": link / floor}


def _groups(graph: Graph) -> Found:
    """Time spending as frontier/ledger.py does it, commit group by commit group."""
    world, sweep = _Columns(graph), SweepSelector()
    rounds = max(40, min(400, graph.n // GROUP))
    for _ in range(rounds // 4):
        world.group(sweep)
    many = rounds // RUNS
    times = [[*map(sum, zip(*(world.group(sweep) for _ in range(many)), strict=True))] for _ in range(RUNS)]
    link = statistics.median(1e9 * spend / links for _, spend, _, links, _ in times)
    floor = statistics.median(1e9 * bare / links for _, _, bare, links, _ in times)
    choice = statistics.median(1e9 * choosing / count for choosing, _, _, _, count in times)
    return {"link_ns": link, "selection_ns": choice, "floor_link_ns": floor, "ratio": link / floor}


class _Columns:
    """The columns that spending touches, as the crawler holds them."""

    def __init__(self, graph: Graph) -> None:
        self.graph, n = graph, graph.n
        self.cash = np.full(n, UNIT, np.int64)
        self.idle = self.cash.copy()
        self.flow = at_birth(self.cash)
        self.last, self.birth = np.zeros(n, np.uint32), np.zeros(n, np.uint32)
        self.virtual, self.clock, self.turn, self.time = VirtualPage(), OpicClock(), 0, SystemClock()

    def group(self, sweep: SweepSelector) -> tuple[float, float, float, int, int]:
        """Choose and spend one group: (seconds of choosing, of spending, of the floor, links, pages)."""
        begun = self.time.monotonic()
        pages = sweep.pick(Cash(self.cash, self.virtual.scalar), GROUP)
        chosen = self.time.monotonic()
        indptr, targets = self.graph.links_of(pages)
        fetched = self.time.monotonic()
        self._spend(pages, indptr, targets)
        spent = self.time.monotonic()
        others = (pages + self.cash.size // 2) % self.cash.size  # as far from the cache as the group was
        touch(others, self.graph.indptr, self.graph.indices, self.idle)
        bare = (self.time.monotonic() - spent) * targets.size / self.graph.out_degree[others].sum()
        return chosen - begun, spent - fetched, bare, targets.size, pages.size

    def _spend(self, pages: Pages, indptr: Pages, targets: Pages) -> None:
        self.turn += 1
        cash = self.cash[pages] + self.virtual.scalar
        virtual, amounts = shares(cash, indptr, seeds_of(pages, self.turn), DAMPING)
        now = self.clock.ticks
        self.flow[pages] = measure(self.flow[pages], cash, self.last[pages], self.birth[pages], now, WINDOW, 1.0)
        self.last[pages] = now & 0xFFFF_FFFF
        self.cash[pages] = -self.virtual.scalar
        credit(self.cash, targets, amounts)
        self.virtual.receive(int(virtual.sum()))
        self.virtual.pay(self.cash.size)
        self.clock.advance(int(cash.sum()), UNIT * self.cash.size)


def page(results: Found) -> str:
    """The table for people, with the limits that it has to keep."""
    lines = [f"{'pages':>12} {'':8} {'ns / link':>10} {'floor':>8} {'ratio':>7} {'ns / selection':>15}"]
    for found in results.values():
        for form in ("kernels", "groups"):
            row = found[form]
            lines.append(
                f"{found['pages']:>12,} {form:8} {row['link_ns']:>10.1f} {row['floor_link_ns']:>8.1f}"
                f" {row['ratio']:>7.2f} {row['selection_ns']:>15.1f}"
            )
    met = all(
        found["groups"]["link_ns"] <= LINK_NS and found["groups"]["selection_ns"] <= SELECTION_NS
        for found in results.values()
        if found["pages"] >= LARGE or len(results) == 1
    )
    asked = f"at most {LINK_NS:g} ns a link and {SELECTION_NS:g} ns a selection in the crawler's groups"
    return "\n".join([*lines, "", f"{asked}: {'met' if met else 'NOT met'} from {LARGE:,} pages on"]) + "\n"
