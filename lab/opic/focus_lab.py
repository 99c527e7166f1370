"""`xyro lab opic focus`: what the virtual page and the weights of links do, on the computed web.

Its web is grown page by page as a crawl grows it, with the product's integer cash: known pages without a read wait,
the richest are read, read ones spend again without a read. Five questions, each a table and a sentence: how soon a
focus is read, how soon importance is found when unread pages are paid more, whither importance moves, and what it
changes that links within a host say less, and that pages with a query do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from xyro.lab.opic.focus_world import FocusWorld, flows, internal_links
from xyro.lab.opic.simulate import spearman
from xyro.lab.web.places import Doc
from xyro.lab.web.shape import ORIGIN
from xyro.lab.web.truth import Truth, truth
from xyro.lab.web.web import Web
from xyro.lab.work_parts import compute, write
from xyro.opic.arrays import Mask, Pages, Reals
from xyro.opic.cash import LINK, UNIT, credit, seeds_of, shares
from xyro.opic.focus import FocusedPage, Terms, weights_of
from xyro.opic.graph import Graph
from xyro.opic.pagerank import pagerank

Watch = Callable[[float], None]
WEIGHTS = (1.0, 5.0, 25.0)
INTERNAL = (1.0, 0.5, 0.2, 0.05)
MARKS = (0.05, 0.1, 0.2, 0.5)
"""shares of all reads at which the crawl is looked at"""
AT_ONCE = 256
"""batches in which the whole web is read"""
SPENDS = 2
"""spends without a read, for each read"""


@dataclass(frozen=True, slots=True)
class Field:
    """The computed web as the measurements need it; all arrays by known URL."""

    graph: Graph
    importance: Reals
    readable: Mask
    focus: Mask
    hosts: Pages

    @classmethod
    def from_truth(cls, found: Truth) -> Field:
        """The focus: XML documents, which their suffix tells before they are read."""
        names = [url.split("/", 3)[2] for url in found.urls]
        _, hosts = np.unique(names, return_inverse=True)
        return cls(found.graph, found.importance, found.readable(), found.kinds == Doc.XML, hosts)


class FocusCrawl:
    """A crawl of the field from page 0. Class: 2 where the focus fits, one more while a page waits to be read.

    Holds: cash of known pages + virtual page = UNIT x known pages.
    """

    def __init__(self, field: Field, terms: Terms) -> None:
        n = field.graph.n
        self.field, self.virtual = field, FocusedPage(terms.weights)
        self.found, self.read = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        self.keys, self.classes = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.turn = 0
        self._meet(np.zeros(1, np.int64))
        self.virtual.pay(1)

    @property
    def cash(self) -> Pages:
        """The cash of every page, units; 0 for unknown pages."""
        return np.where(self.found, self.keys + self.virtual.scalars[self.classes], 0)

    @property
    def exact(self) -> bool:
        count = int(self.found.sum())
        return int(self.cash.sum()) + self.virtual.balance == UNIT * count

    def reads(self, limit: int) -> Pages:
        """Read the richest `limit` pages that wait, let others spend; returns those read, in order."""
        cash = self.cash
        waiting = np.flatnonzero(self.found & ~self.read & self.field.readable)
        chosen = waiting[np.argsort(-cash[waiting], kind="stable")[:limit]]
        able = np.flatnonzero(self.found & (self.read | ~self.field.readable))
        rich = able[np.argsort(-cash[able], kind="stable")[: SPENDS * max(1, chosen.size)]]
        self.read[chosen] = True
        self.keys[chosen] += self.virtual.moved(self.classes[chosen], self.classes[chosen] & ~1)
        self.classes[chosen] &= ~1
        self._spend(np.concatenate((chosen, rich)))
        self.virtual.pay(int(self.found.sum()))
        return chosen

    def _spend(self, pages: Pages) -> None:
        indptr, targets = self.field.graph.links_of(pages)
        cash = self.cash[pages]
        self._meet(np.unique(targets[~self.found[targets]]))
        self.turn += 1
        virtual, amounts = shares(cash, indptr, seeds_of(pages, self.turn))
        self.keys[pages] -= cash
        credit(self.keys, targets, amounts)
        self.virtual.receive(int(virtual.sum()))

    def _meet(self, pages: Pages) -> None:
        self.found[pages] = True
        self.classes[pages] = 2 * self.field.focus[pages] + self.field.readable[pages]
        self.keys[pages] = self.virtual.joined(self.classes[pages])
        self.virtual.mint(pages.size)


def first_reads(field: Field, terms: Terms, watch: Watch) -> dict[str, Any]:
    """Crawl everything; at each of MARKS: which share of the focus pages, and of importance, was read by then."""
    crawl, order = FocusCrawl(field, terms), [np.empty(0, np.int64)]
    total = int(field.readable.sum())
    while (batch := crawl.reads(max(1, total // AT_ONCE))).size:
        order.append(batch)
        watch(sum(map(len, order)) / total)
    done = np.concatenate(order)
    marks = [max(1, round(mark * done.size)) for mark in MARKS]
    mine, weight = field.focus & field.readable, np.where(field.readable, field.importance, 0.0)
    return {
        "reads": marks,
        "focus": [float(field.focus[done[:mark]].sum() / mine.sum()) for mark in marks],
        "importance": [float(weight[done[:mark]].sum() / weight[done].sum()) for mark in marks],
        "cash_exact": crawl.exact,
    }


def focus_first(field: Field, watch: Watch) -> dict[str, Any]:
    """The focus is paid 1, 5, 25 times an ordinary page's share."""
    runs = {}
    for weight in WEIGHTS:
        runs[f"{weight:g}"] = first_reads(field, Terms(weights=weights_of([1.0, weight], 1.0)), watch)
    return {"marks": list(MARKS), "runs": runs}


def unread_first(field: Field, watch: Watch) -> dict[str, Any]:
    """An unread page is paid 1, 5, 25 times a read page's share."""
    runs = {f"{weight:g}": first_reads(field, Terms(weights=weights_of([1.0], weight)), watch) for weight in WEIGHTS}
    return {"marks": list(MARKS), "runs": runs}


def shift(field: Field, watch: Watch) -> dict[str, Any]:
    """Importance once all is known: OPIC's flow beside PageRank personalised in the same proportion."""
    plain, runs = pagerank(field.graph).rank, {}
    for number, weight in enumerate(WEIGHTS, 1):
        p = np.where(field.focus, weight, 1.0)
        world = FocusWorld(field.graph, Terms(weights=weights_of([1.0, weight], 1.0)), field.focus * 2, cash=UNIT << 16)
        flow, reference = _flow(world), pagerank(field.graph, personalization=p, dangling=p).rank
        runs[f"{weight:g}"] = {
            "focus": float(flow[field.focus].sum()),
            "spearman": spearman(flow, plain),
            "error": float(100 * np.abs(flow / reference - 1).mean()),
            "cash_exact": world.total == field.graph.n * (UNIT << 16),
        }
        watch(number / len(WEIGHTS))
    return {"pages": float(field.focus.mean()), "runs": runs}


def links(field: Field, watch: Watch) -> dict[str, Any]:
    """Links within a host weigh 1, 1/2, 1/5, 1/20 of one that leads elsewhere."""
    inside, plain, runs = internal_links(field.graph, field.hosts), pagerank(field.graph).rank, {}
    linked = np.bincount(field.graph.indices[~inside], minlength=field.graph.n) > 0
    for number, weight in enumerate(INTERNAL, 1):
        weights = np.where(inside, round(LINK * weight), LINK)
        world = FocusWorld(field.graph, Terms(internal=round(LINK * weight)), weights=weights, cash=UNIT << 16)
        flow = _flow(world)
        runs[f"{weight:g}"] = {
            "elsewhere": float(flow[linked].sum()),
            "spearman": spearman(flow, plain),
            "cash_exact": world.total == field.graph.n * (UNIT << 16),
        }
        watch(number / len(INTERNAL))
    return {"internal": float(inside.mean()), "pages": float(linked.mean()), "runs": runs}


def queries(field: Field, watch: Watch) -> dict[str, Any]:
    """One page in ten as if its URL had a query (the computed web has none): its links weigh 1, 1/2, 1/5, 1/20."""
    graph, runs = field.graph, {}
    asking = np.random.default_rng(1).random(graph.n) < 0.1
    linked = np.bincount(graph.indices[asking[graph.sources]], minlength=graph.n) > 0
    plain = pagerank(graph).rank
    for number, weight in enumerate(INTERNAL, 1):
        voices = np.where(asking, round(LINK * weight), LINK)
        world = FocusWorld(graph, Terms(query=round(LINK * weight)), voices=voices, cash=UNIT << 16)
        flow = _flow(world)
        runs[f"{weight:g}"] = {
            "told": float(flow[linked].sum()),
            "spearman": spearman(flow, plain),
            "cash_exact": world.total == graph.n * (UNIT << 16),
        }
        watch(number / len(INTERNAL))
    return {"asking": float(asking.mean()), "pages": float(linked.mean()), "runs": runs}


def _flow(world: FocusWorld) -> Reals:
    n = world.graph.n
    return flows(world, np.array_split(np.arange(n), min(n, 64)), 15, 15)


def sentences(results: Mapping[str, Any]) -> list[str]:
    """One for each question."""
    names = ("focus", "unread", "shift", "links", "queries")
    first, unread, moved, lines, asked = (results[name] for name in names)
    mark = MARKS.index(0.1)

    def row(part: Mapping[str, Any], key: str, weights: Sequence[float]) -> list[float]:
        runs = [part["runs"][f"{weight:g}"][key] for weight in weights]
        return [100 * (run[mark] if isinstance(run, list) else run) for run in runs]

    f, i = row(first, "focus", WEIGHTS), row(unread, "importance", WEIGHTS)
    q = row(asked, "told", INTERNAL)
    s, e, w = row(moved, "focus", WEIGHTS), row(lines, "elsewhere", INTERNAL), row(lines, "spearman", INTERNAL)
    return [
        f"Focus: the first tenth of the reads holds {f[0]:.0f} % of all XML pages, {f[1]:.0f} % where they are paid 5 "
        f"times an ordinary page's share, {f[2]:.0f} % at 25 times.",
        f"Discovery: the first tenth of the reads finds {i[0]:.0f} % of all importance, {i[1]:.0f} % where unread "
        f"pages are paid 5 times a read page's share, {i[2]:.0f} % at 25 times.",
        f"Shift: XML pages, {100 * moved['pages']:.1f} % of all, hold {s[0]:.1f} % of importance, {s[1]:.1f} % at 5 "
        f"times the share, {s[2]:.1f} % at 25 times: personalised PageRank.",
        f"Links: pages that other hosts link to hold {e[0]:.0f} % of importance, {e[1]:.0f} % where a link within its "
        f"host weighs a half, {e[2]:.0f} % at a fifth, {e[3]:.0f} % at a twentieth (rank correlation "
        f"{w[1] / 100:.2f}, {w[2] / 100:.2f}, {w[3] / 100:.2f}).",
        f"Queries: pages that some page in ten links to, {100 * asked['pages']:.0f} % of all, hold {q[0]:.1f} % of "
        f"importance, {q[1]:.1f} % where the links of that tenth weigh a half, {q[2]:.1f} % at a fifth, {q[3]:.1f} % "
        "at a twentieth.",
    ]


def focus_files(out: Path, pages: int, seed: int = 1, show: bool = True) -> dict[str, Any]:
    """All five on a web of so many pages: OUT/focus.json and OUT/focus.txt."""
    field = Field.from_truth(truth(Web(seed=seed, pages=pages, hosts=max(1, pages // 250)), ORIGIN))
    parts = {"focus": focus_first, "unread": unread_first, "shift": shift, "links": links, "queries": queries}
    work = {name: (lambda watch, part=part: part(field, watch)) for name, part in parts.items()}
    results = compute(work, {"focus lab": 2, "pages": pages, "seed": seed}, out, show)
    exact = all(run["cash_exact"] for part in results.values() for run in part["runs"].values())
    last = "Every unit of cash was accounted for in every run." if exact else "CASH WAS NOT EXACT in some run."
    lines = [*sentences(results), last]
    results = {"pages": pages, "seed": seed, "cash_exact": exact, **results, "sentences": lines}
    write(out / "focus.json", results)
    (out / "focus.txt").write_text("\n".join(results["sentences"]) + "\n", encoding="utf-8")
    return results
