"""The intervals of opic/confidence.py: fitted on some graphs, checked on others, beside residual and bound; as JSON.

    xyro lab opic confidence [--fit] [--pages N] [--graph cnr-2000.npz]

What comes out: for each history policy the law (fitted here with --fit, else the one in LAWS), its coverage on each
test graph ("crawl": that of the half widths that a crawl finds by its snapshots), the width over the median error, and
the worst ratios of true residual to `convergence` and of true error to the bound (both below 1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from xyro.lab.opic import names, simulate
from xyro.lab.opic.graphs import laws
from xyro.lab.opic.growing_crawl import GrowingCrawl
from xyro.lab.opic.measure import load, machine
from xyro.lab.opic.simulate import SimulatedWorld
from xyro.lab.reference_rank import reference
from xyro.opic.arrays import Mask, Pages, Reals
from xyro.opic.cash import DAMPING, UNIT
from xyro.opic.confidence import (
    GREATEST,
    LEAST,
    NEVER,
    SHORTEST,
    Law,
    condition,
    convergence,
    error_bound,
    half_widths,
)
from xyro.opic.graph import Graph, from_links, power_law
from xyro.opic.importance import TICKS, elapsed, never_measured, normalise
from xyro.opic.pagerank import pagerank, push
from xyro.opic.snapshots import Snapshots

POLICIES = {
    "static": ("static", np.inf),
    "variable": ("window:8", 8.0),
    "fixed": ("edge:8", 8.0),
    "improved": ("improved:8", 8.0),
    "interpolation": ("interpolation:4", 4.0),
    "interpolation 16": ("interpolation:16", 16.0),
    "adaptive": ("adaptive", np.inf),
}
"""name of a law or its use -> policy, and the turnovers it remembers"""
OWN_WINDOWS = frozenset(("variable", "fixed", "improved"))
"""histories in which each page has a span of its own: twice the bound is shown to hold (worst: .6 of it)"""
LAWS: dict[str, Law] = {
    "static": Law(1.874, 1.023, 0.131, 1.528),
    "variable": Law(1.973, 0.699, 0.0, 2.402, early=6.0),
    "fixed": Law(0.251, 0.0, 0.16, 3.095, early=6.0),
    "improved": Law(0.221, 0.0, 0.0, 3.095, early=6.0),
    "interpolation": Law(1.915, 1.053, 0.171, 1.528),
    "adaptive": Law(1.874, 1.023, 0.131, 1.528),
    "never": NEVER,
}
"""by history of a graph known from the start, beside those of a crawl that finds its graph (opic/confidence.py)"""
READS = (0.5, 1, 2, 4, 7, 10)
MARGIN = 1.1
"""a law is this much wider than its calibration graphs need: others are a little worse"""
COVERED = 0.96
LONG, SLOW, FEW = 1.0, 6.0, 50
"""turnovers from which an error falls by a power of them, and where pages without a measure count as 0 until they have
one; pages below which a quantile is noise"""


class Sample(NamedTuple):
    """All pages of one graph at one moment: what is known of them, and how wrong the estimate is."""

    turnovers: Reals
    importance: Reals
    error: Reals
    """|log(estimate/truth)|, the estimate never below LEAST; of a crawl that finds its graph, |log(middle/truth)|"""
    residual: float
    """over `convergence`"""
    bound: float
    """true L1 error over the bound"""
    width: Reals | None = None
    """half widths as a crawl gives them (opic/snapshots.py); None: those of a law"""

    def part(self, chosen: Mask) -> Sample:
        return self._replace(
            turnovers=self.turnovers[chosen],
            importance=self.importance[chosen],
            error=self.error[chosen],
            width=self.width[chosen] if self.width is not None else None,
        )


def sites(n: int, seed: int, leaves: float = 0.2, away: float = 0.03) -> Graph:
    """A web of sites of all sizes, cash hardly leaves them: trees with links up, down, to the home page and within the
    site, a share `away` of the others anywhere; `leaves` of the pages have no links."""
    rng = np.random.default_rng(seed)
    sizes = power_law(n, rng, least=10, limit=max(n // 10, 11), exponent=1.8)
    starts = np.concatenate(([0], np.cumsum(sizes)))
    starts = starts[starts < n]
    page = np.arange(n)
    site = np.searchsorted(starts, page, side="right") - 1
    home = starts[site]
    size = np.append(starts[1:], n)[site] - home
    parent = home + np.maximum(page - home - 1, 0) // 4
    source = np.repeat(page, power_law(n, rng, least=1, limit=200, exponent=1.9))
    within = home[source] + (rng.random(source.size) ** 2 * size[source]).astype(np.int64)
    other = np.where(rng.random(source.size) < away, rng.integers(n, size=source.size), within)
    sources, targets = np.concatenate((page, page, parent, source)), np.concatenate((parent, home, page, other))
    linked = (rng.random(n) >= leaves)[sources] | (sources == 0)
    return from_links(n, sources[linked], targets[linked])


def graphs(n: int, seed: int) -> dict[str, Graph]:
    """Shapes that differ in what matters: the law of in-degrees, and how slowly cash mixes."""
    chosen = ("standard", "Poisson(10)", "local (95 % within 50 pages)")
    found = laws(n, seed)
    return {**{name: found[name] for name in chosen}, "sites": sites(n, seed), "shut sites": sites(n, seed, 0.3, 0.005)}


def residual(graph: Graph, rank: Reals, damping: float = DAMPING, paid: Reals | None = None) -> float:
    """|K x - x|_1 / sum x, exactly: one pass over all links. `paid`: the virtual page's shares, of sum 1 (alike)."""
    total = float(rank.sum())
    if not total > 0:
        raise ValueError("residual: an importance with a sum above 0")
    shares = np.full(graph.n, 1.0 / max(graph.n, 1)) if paid is None else paid
    lost = damping * float(rank[graph.dangling].sum()) + (1 - damping) * total
    after = push(graph, rank * (damping / np.maximum(graph.out_degree, 1))) + lost * shares
    return float(np.abs(after - rank).sum()) / total


def _sample(graph: Graph, estimate: Reals, truth: Reals, turnovers: Reals, span: float, own: bool = False) -> Sample:
    spread, factor = convergence(span / 2 if own else span), condition()
    centre = np.maximum(estimate, LEAST)
    off = float(np.abs(estimate - truth).mean())
    return Sample(
        turnovers,
        estimate,
        np.abs(np.log(centre / truth)),
        residual(graph, estimate) / spread,
        off / error_bound(spread, factor) if factor else 0.0,
    )


def known_graph(graph: Graph, truth: Reals | None, reads: Sequence[float] = READS) -> Iterator[tuple[str, Sample]]:
    """Samples of every policy, from one run by the sweep over a graph that is known from the start."""
    truth = normalise(reference(graph) if truth is None else truth)
    world = SimulatedWorld(graph)
    select = names.selector("sweep", world.keys, np.random.default_rng(1))
    policies = [names.history(policy, graph.n) for policy, _ in POLICIES.values()]
    for _ in simulate.states(world, select, policies, [round(share * graph.n) for share in reads], machine()):
        now = world.turnovers
        for (name, (_, window)), policy in zip(POLICIES.items(), policies, strict=True):
            estimate = normalise(policy.estimate(world.cash / UNIT, now))
            span = min(now, getattr(policy, "window", window))
            backed = np.full(graph.n, now if name == "variable" else span)
            yield name, _sample(graph, estimate, truth, backed, span, law_of(name) in OWN_WINDOWS)


def found_graph(graph: Graph, batch: int, after: int = 6) -> Iterator[tuple[str, Sample]]:
    """Samples of "crawl" and "never" (pages not measured yet) of a crawl that finds the graph, and goes on after."""
    crawl, rng = GrowingCrawl(graph, seed=int(graph.out_degree.argmax())), np.random.default_rng(1)
    shares, snapshots = [0.05, 0.2, 0.5, 0.8], Snapshots()
    while (unread := crawl.unread(batch)).size:
        _fetch(crawl, unread, snapshots)
        if shares and crawl.read.sum() >= shares[0] * graph.n:
            del shares[0]
            yield from _look(crawl, snapshots)
    yield from _look(crawl, snapshots)
    for _ in range(after):
        for _ in range(max(1, crawl.order.size // batch)):
            _fetch(crawl, rng.choice(crawl.order, min(batch, crawl.order.size), replace=False), snapshots)
        yield from _look(crawl, snapshots)


def _fetch(crawl: GrowingCrawl, pages: Pages, snapshots: Snapshots) -> None:
    """Read pages, and take a snapshot when one is due."""
    crawl.fetch(pages)
    if crawl.clock.turnovers >= snapshots.next:
        snapshots.take(*_sample_of(crawl, snapshots))


def _sample_of(crawl: GrowingCrawl, snapshots: Snapshots) -> tuple[float, float, Reals]:
    """The time, the window and the importances of the sample, as `Snapshots.take` wants them."""
    pages, time = crawl.order[snapshots.pages(crawl.order.size)], crawl.clock.turnovers
    importance = np.where(never_measured(crawl.flow[pages]), np.nan, crawl.middles[pages])
    return time, crawl.window.length_at(crawl.clock.ticks), importance


def _settled(crawl: GrowingCrawl) -> float:
    return (crawl.clock.ticks - crawl.window.since) / TICKS


def _look(crawl: GrowingCrawl, snapshots: Snapshots) -> Iterator[tuple[str, Sample]]:
    graph, order, now = _so_far(crawl), crawl.order, crawl.clock.ticks
    truth = pagerank(graph, tolerance=1e-10).rank * graph.n
    settled, flows = _settled(crawl), crawl.flows
    span, age = min(settled, crawl.window.length_at(now)), elapsed(now, crawl.birth[order])
    estimate, never = normalise(flows[order]), never_measured(crawl.flow[order])
    moved = snapshots.half_widths(*_sample_of(crawl, snapshots))
    sample = _sample(graph, estimate, truth, np.minimum(settled, age), span)
    middle = np.maximum(crawl.middles[order], LEAST)
    pages, error = np.arange(order.size), np.abs(np.log(middle / truth))
    width = half_widths(pages, middle, never, crawl.clock.turnovers, settled, age, moved)
    sample = sample._replace(width=width, error=error)
    yield "crawl", sample.part(~never)
    if never.any():
        yield "never", sample.part(never)


def _so_far(crawl: GrowingCrawl) -> Graph:
    """The graph as the crawl knows it: pages it has not read have no links yet."""
    place = np.full(crawl.graph.n, -1, np.int64)
    place[crawl.order] = np.arange(crawl.order.size)
    read = np.flatnonzero(crawl.read)
    indptr, targets = crawl.graph.links_of(read)
    return from_links(crawl.order.size, place[np.repeat(read, np.diff(indptr))], place[targets])


def fit(samples: Sequence[Sample], early: float = LONG) -> Law:
    """A law that covers COVERED of the pages of every sample, its slopes from the pages of all.

    The power law is fitted to pages with `early` turnovers and more behind them, `cap` to all.
    """
    parts = [long for item in samples if (long := item.part(item.turnovers >= early)).error.size >= 3 * FEW] or list(
        samples
    )
    backed = np.log(np.concatenate([np.maximum(part.turnovers, SHORTEST) for part in parts]))
    rank = np.log(np.concatenate([np.clip(part.importance, LEAST, GREATEST) for part in parts]))
    error = np.log(np.concatenate([np.maximum(part.error, 1e-6) for part in parts]))
    solved = np.linalg.lstsq(np.column_stack((np.ones(error.size), backed, rank)), error, rcond=None)[0]
    fade, calm = max(0.0, -float(solved[1])), max(0.0, -float(solved[2]))
    scale = max(_needed(part, fade, calm) for part in parts)
    cap = max(float(np.quantile(sample.error, COVERED)) for sample in samples if sample.error.size >= FEW)
    numbers = (round(number, 3) for number in (MARGIN * scale, fade, calm, MARGIN * cap))
    return Law(*numbers)._replace(early=early if early > LONG else 0.0)


def _needed(sample: Sample, fade: float, calm: float) -> float:
    """The scale with which COVERED of the top decile are covered, of the rest of the upper half, and of the lower."""
    ranks = np.quantile(sample.importance, (0.0, 0.5, 0.9, 1.0))
    kinds = np.clip(np.searchsorted(ranks, sample.importance, side="right") - 1, 0, 2)
    shape = np.maximum(sample.turnovers, SHORTEST) ** -fade * np.clip(sample.importance, LEAST, GREATEST) ** -calm
    wanted = sample.error / shape
    parts = [wanted, *(wanted[kinds == kind] for kind in range(3))]
    return max(float(np.quantile(part, COVERED)) for part in parts if part is wanted or part.size >= FEW)


def coverage(law: Law | None, sample: Sample) -> float:
    """Share of the pages whose truth lies in the interval."""
    return float((sample.error <= _widths(law, sample)).mean())


def _widths(law: Law | None, sample: Sample) -> Reals:
    if sample.width is not None:
        return sample.width
    if law is None:
        raise ValueError("_widths: a sample without half widths needs a law")
    return law.width(sample.turnovers, sample.importance)


def _over_error(law: Law | None, sample: Sample) -> float | None:
    """Median half width over the median error, at the last moment; None: there is no error."""
    error = float(np.median(sample.error))
    return round(float(np.median(_widths(law, sample))) / error, 2) if error else None


def gather(found: Iterable[tuple[str, Sample]]) -> dict[str, list[Sample]]:
    samples: dict[str, list[Sample]] = {}
    for name, sample in found:
        samples.setdefault(name, []).append(sample)
    return samples


def all_of(graph: Graph, truth: Reals | None = None, batch: int = 64) -> dict[str, list[Sample]]:
    return {**gather(known_graph(graph, truth)), **gather(found_graph(graph, batch))}


def fitted(n: int, seeds: Sequence[int] = (11, 12)) -> dict[str, Law]:
    """Laws from the calibration graphs."""
    samples: dict[str, list[Sample]] = {}
    for seed in seeds:
        for graph in graphs(n, seed).values():
            for name, found in all_of(graph).items():
                if name != "crawl":
                    samples.setdefault(law_of(name), []).extend(found)
    return {name: fit(found, SLOW if name in OWN_WINDOWS else LONG) for name, found in samples.items()}


def law_of(use: str) -> str:
    return use.split()[0]


def check(law: Mapping[str, Law], graph: Graph, truth: Reals | None = None, batch: int = 64) -> dict[str, Any]:
    """Measure the laws on one graph: coverage at the worst moment and over all; residual and error over bounds."""
    figures = {}
    for name, samples in all_of(graph, truth, batch).items():
        covered = [coverage(law.get(law_of(name)), sample) for sample in samples]
        figures[name] = {
            "coverage": round(float(np.average(covered, weights=[len(item.error) for item in samples])), 4),
            "worst_moment": round(min(covered), 4),
            "width": round(float(np.median(_widths(law.get(law_of(name)), samples[-1]))), 4),
            "width_over_error": _over_error(law.get(law_of(name)), samples[-1]),
            "residual_over_convergence": round(max(sample.residual for sample in samples), 4),
            "error_over_bound": round(max(sample.bound for sample in samples), 4),
        }
    return figures


def coverages(pages: int, anew: bool = False, path: Path | None = None) -> dict[str, Any]:
    """The laws (fitted `anew` on graphs of so many pages, or those in use) and what they cover on other graphs.

    path: an .npz as of opic_measure.load, one more graph to check. InputError: it is no graph.
    """
    graph_file = None if path is None else (path.stem, *load(path))
    chosen = fitted(pages) if anew else LAWS
    figures: dict[str, Any] = {"laws": {name: law._asdict() for name, law in chosen.items()}, "test": {}}
    for name, graph in graphs(pages * 3 // 2, 21).items():
        figures["test"][name] = check(chosen, graph)
    if graph_file is not None:
        stem, graph, truth = graph_file
        figures["test"][stem] = check(chosen, graph, truth, batch=max(64, graph.n // 200))
    return figures
