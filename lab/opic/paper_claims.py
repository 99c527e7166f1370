"""The claims of the papers, and our own, each judged by a rule on the numbers alone, and shown with them.

A claim of P1 or P2 stands beside the words that it was taken from. CHECKED are sentences of P2's abstract (the paper is
WWW 2003, pp. 280-290), word for word as two public catalogues have it (sciweavers.org, citegraph.io). QUOTES are second
hand: the text of neither paper was at hand, so their wording was not checked against the print, and none has its page.
A claim without words is our reading of the section or figure named. Claims whose source is OURS are counted apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Results = Mapping[str, Any]
OURS = "ours"
UNQUOTED = "no sentence of the paper was at hand: our reading"
QUOTES: Mapping[str, str] = {
    "offline converges almost like Cycle and Greedy": "offline converges almost like Cycle and Greedy",
    "almost no page has more than twice the mean error": "Almost no page above twice the mean error",
    "the residual is, strictly speaking, not the error": "strictly speaking, not the error",
    "ten iterations suffice on any graph": "Ten iterations are enough",
    "a fixed window is bad for unimportant pages": "Fixed Window bad for unimportant pages",
    "the improved fixed window (3 measures at least, corrected at its edge) is better": "Improved Fixed better",
    "small windows adapt, big ones are precise": "small windows adapt, big are precise",
    "interpolation, with one measure a page, is as good as the windows": "Interpolation outperforms with 1 measure",
}
"""claim -> words of the paper, as notes on it have them"""
CHECKED: Mapping[str, str] = {
    "the estimate becomes better with every reading of the graph, before the graph was read often": "It is on-line in "
    "that it continuously refines its estimate of page importance while the web/graph is visited.",
}
"""claim -> sentence of the paper, as public copies have it"""


@dataclass(frozen=True, slots=True)
class PaperClaim:
    """A statement of a paper, or of ours, whether it was found so, and the numbers."""

    source: str
    says: str
    holds: bool
    found: str

    @property
    def quote(self) -> str:
        """The words of the paper, in quotation marks, or that there are none; empty for claims of ours."""
        if self.source == OURS:
            return ""
        if self.says in CHECKED:
            return f'"{CHECKED[self.says]}" (word for word)'
        return f'"{QUOTES[self.says]}" (second hand)' if self.says in QUOTES else UNQUOTED


def verdict(claims: Sequence[Mapping[str, Any]]) -> str:
    """How many claims of the papers hold, and how many of ours, apart."""
    parts = {
        "claims of the papers": [claim for claim in claims if claim["source"] != OURS],
        "claims of ours": [claim for claim in claims if claim["source"] == OURS],
    }
    counts = [f"{sum(one['holds'] for one in part)} of {len(part)} {name} hold" for name, part in parts.items()]
    says = [claim["says"] for claim in parts["claims of the papers"]]
    checked, second = (sum(one in quotes for one in says) for quotes in (CHECKED, QUOTES))
    counts[0] += (
        f" ({checked} by a sentence that was checked, {second} second hand, {len(says) - checked - second} ours"
    )
    return "; ".join([counts[0] + " to read)", *counts[1:]])


def claims(results: Results) -> list[PaperClaim]:
    """Judge all claims. results: as `figures` gathers them."""
    changes = results["changes"]
    return [
        *_strategies(results["strategies"]),
        *_measures(results["strategies"]),
        *_graphs(results["other graphs"]),
        *_cash(results),
        *_residual(results["residual"]),
        *_windows(changes["greedy"]),
        *(_adaptive(select, changes[select]) for select in changes),
    ]


def _error_at(s: Results, name: str, kind: str, reads: int = 10) -> float:
    return float(s["online"][name][kind][s["reads"].index(reads)])


def _strategies(s: Results) -> list[PaperClaim]:
    paper = {name: _error_at(s, name, "paper all") for name in s["online"]}
    top = {name: _error_at(s, name, "paper top") for name in s["online"]}
    offline = s["offline"]["all"][s["reads"].index(10)]
    ratio = paper["cycle"] / paper["greedy"]
    free, best = _error_at(s, "greedy", "free all"), _error_at(s, "sweep", "free all")
    refined = {name: s["online"][name]["paper all"] for name in s["online"]}
    return [
        PaperClaim("P2 abstract", "the estimate becomes better with every reading of the graph, before the graph was "
              "read often", all(list(errors) == sorted(errors, reverse=True) for errors in refined.values()),
              "; ".join(f"{name} {errors[0]:.0f} -> {errors[-1]:.1f} %" for name, errors in refined.items())),
        PaperClaim("P2 fig. 2", "Random is clearly the worst strategy", paper["random"] > 1.5 * paper["cycle"],
              _list(paper)),
        PaperClaim("P2 fig. 2", "Greedy is close to Cycle on all pages", 0.67 < ratio < 1.5,
              f"Cycle / Greedy {ratio:.2f}"),
        PaperClaim("P2 fig. 2", "offline converges almost like Cycle and Greedy", offline > paper["greedy"] / 3,
              f"offline {offline:.4f} % after 10 iterations, Greedy {paper['greedy']:.1f} % after 10 N reads"),
        PaperClaim("P2 fig. 3", "Greedy is the best of the papers' on-line strategies on the top decile",
              top["greedy"] < min(top["cycle"], top["random"]), _list(top)),
        _greedy_or_offline(s),
        PaperClaim(OURS, "the sweep beats Greedy on all pages", best < free,
              f"endowment-free {best:.2f} % and {free:.2f} %"),
        PaperClaim(OURS, "leaving the endowment out divides Greedy's error by more than five",
              free * 5 < paper["greedy"], f"{paper['greedy']:.2f} % -> {free:.2f} %"),
    ]  # fmt: skip


def _greedy_or_offline(s: Results) -> PaperClaim:
    pairs = list(zip(s["reads"], s["online"]["greedy"]["paper top"], s["offline"]["top"], strict=True))
    return PaperClaim(
        "P2 fig. 3",
        "Greedy is better than offline on the top decile",
        all(greedy < offline for _, greedy, offline in pairs),
        "Greedy / offline: "
        + ", ".join(f"{greedy:.3g} / {offline:.3g} % at {reads} N" for reads, greedy, offline in pairs),
    )


def _measures(s: Results) -> list[PaperClaim]:
    twice = {kind: 100 * _error_at(s, "greedy", f"{kind} twice") for kind in ("paper", "free")}
    measures = {
        kind: [_error_at(s, name, kind) for name in ("random", "cycle", "greedy")] for kind in ("free all", "L1", "RMS")
    }
    agree = all(list(row) == sorted(row, reverse=True) for row in measures.values())
    spend = {name: _error_at(s, name, "crawled cash") for name in s["online"]}
    two = all(abs(spend[name] / 2 - 1) <= 0.2 for name in ("cycle", "greedy"))
    return [
        PaperClaim("P2 s.5", "almost no page has more than twice the mean error", twice["paper"] < 5,
              f"Greedy: {twice['paper']:.1f} % of the pages with the papers' estimator, {twice['free']:.1f} % "
              "endowment-free"),
        PaperClaim("P2 s.5", "measures of error agree on the order of the strategies", agree,
              "random > cycle > greedy: " + "; ".join(
                  f"{kind.replace('free all', 'mean relative %')} {', '.join(f'{x:.3g}' for x in row)}"
                  for kind, row in measures.items())),
        PaperClaim("P2 s.5", "the cash of a page read tends to 2/N", two,
              "times N, in the 10th N reads: " + ", ".join(f"{name} {x:.2f}" for name, x in spend.items())),
    ]  # fmt: skip


def _graphs(graphs: Results) -> list[PaperClaim]:
    sizes = [graphs[name]["all"] for name in ("standard", "standard, N/3", "standard, N/10")]
    laws = {name: graph["all"] for name, graph in graphs.items()}
    ten = {name: graph["error after 10 iterations"] for name, graph in graphs.items()}
    steps = ", ".join(f"{name} {graph['iterations to 1e-4']}" for name, graph in graphs.items())
    return [
        PaperClaim("P2 s.5", "the size of the graph does not matter", max(sizes) < 1.5 * min(sizes),
              "sweep, 10 N reads, N, N/3, N/10: " + ", ".join(f"{size:.2f} %" for size in sizes)),
        PaperClaim("P2 s.5", "the law of the in-degrees does not matter", max(laws.values()) < 2 * min(laws.values()),
              _list(laws)),
        PaperClaim("P1 s.5", "ten iterations suffice on any graph", max(ten.values()) < 0.1,
              f"error after 10: {_list(ten)}; iterations to 1e-4: {steps}"),
    ]  # fmt: skip


def _cash(results: Results) -> list[PaperClaim]:
    cash, gathers, unread = results["first cash"], results["cash gathers"], results["never read"]
    kinds = [row[kind] for row in cash.values() for kind in ("paper", "free")]
    largest = max(row["paper"][0] for row in cash.values()) / cash["even"]["paper"][0]
    after = "; ".join(f"{name} {row['paper'][0]:.3g} -> {row['paper'][1]:.3g} %" for name, row in cash.items())
    free = ", ".join(f"{name} {row['free'][0]:.3g} -> {row['free'][1]:.3g} %" for name, row in cash.items())
    return [
        PaperClaim("P2 s.3", "wherever the first cash C_0 lay, the same limit is reached, as 1/G",
              all(0.4 < late / early < 0.65 for early, late in kinds),
              f"from 10 N to 20 N reads, the papers' estimator: {after}; endowment-free: {free}"),
        PaperClaim("P2 s.5", "the first cash C_0 does not matter for the error on the way",
              largest < 1.5, f"after 10 N reads up to {largest:.1f} times the error of even cash"),
        PaperClaim("P2 s.3", "cash gathers linearly in time", abs(gathers["slope"] - 1) < 0.2,
              f"log C grows with log X d at slope {gathers['slope']:.2f} (1: linear), {gathers['reads']:,} reads"),
        PaperClaim("P2 s.5", "pages never read are ranked well", unread["spearman"] > 0.5,
              f"rank correlation {unread['spearman']:.2f} among the {100 * unread['share']:.0f} % unread after 1.5 N"),
    ]  # fmt: skip


def _residual(found: Results) -> list[PaperClaim]:
    above = {name: 100 * row["above"] for name, row in found["estimators"].items()}
    bound = {name: row["of bound"] for name, row in found["estimators"].items()}
    return [
        PaperClaim("P2 s.3", "1/G bounds the residual of H / G", found["residual x G"] <= 2,
              f"L1 residual x G = {found['residual x G']:.2f} (at most |C_0| + |C| = 2)"),
        PaperClaim("P2 s.3", "the residual is, strictly speaking, not the error", min(above.values()) > 10,
              f"pages whose error is above their own residual: {_list(above)}"),
        PaperClaim(OURS, "all errors together are at most all residuals together / (1-c)", max(bound.values()) <= 1,
              "error over that bound: " + ", ".join(f"{name} {x:.2f}" for name, x in bound.items())),
    ]  # fmt: skip


def mean(rate: Results, policy: str, pages: str = "all") -> float:
    """The mean over seeds of a policy's error at one rate of change."""
    return float(np.mean(rate[policy][pages]))


def _windows(greedy: Results) -> list[PaperClaim]:
    still, fast = greedy["0"], greedy["0.1"]
    plain, edge = mean(still, "fixed 8, naive"), mean(still, "fixed 8, edge")
    small = mean(fast, "window 4", "top") < mean(fast, "window 16", "top")
    big = mean(still, "window 4", "top") > mean(still, "window 16", "top")
    interpolated = {rate: _best(found, "interpolation") for rate, found in greedy.items()}
    windows = {rate: _best(found, "window", "improved", "fixed") for rate, found in greedy.items()}
    wins = all(interpolated[rate] <= 1.1 * windows[rate] for rate in greedy)
    fixed = {rate: (mean(row, "improved fixed 4"), mean(row, "fixed 8, naive")) for rate, row in greedy.items()}
    return [
        PaperClaim("P2 fig. 5", "a fixed window is bad for unimportant pages", plain > 2 * edge,
              f"all pages, no change: naive {plain:.1f} %, corrected at its edge {edge:.1f} %"),
        PaperClaim("P2 fig. 5", "the improved fixed window (3 measures at least, corrected at its edge) is better",
              all(ours < naive for ours, naive in fixed.values()), f"all pages, improved / naive: {_pairs(fixed)}"),
        PaperClaim("P2 fig. 4", "small windows adapt, big ones are precise", small and big,
              f"top decile: at 10 % change m=4 {mean(fast, 'window 4', 'top'):.0f} %, m=16 "
              f"{mean(fast, 'window 16', 'top'):.0f} %; without m=4 {mean(still, 'window 4', 'top'):.1f} %, m=16 "
              f"{mean(still, 'window 16', 'top'):.1f} %"),
        PaperClaim("P2 fig. 6", "interpolation, with one measure a page, is as good as the windows", wins,
              "best interpolation / best window, all pages: "
              + _pairs({rate: (interpolated[rate], windows[rate]) for rate in greedy})),
    ]  # fmt: skip


def _adaptive(select: str, found: Results) -> PaperClaim:
    worst: dict[str, float] = {}
    for rate, row in found.items():
        fixed = [row[name]["all"] for name in row if name.startswith("interpolation") and "paper" not in name]
        worst[rate] = float(max(np.array(row["adaptive T"]["all"]) / np.min(fixed, axis=0)))
    text = ", ".join(f"{ratio:.2f} at {100 * float(rate):g} %" for rate, ratio in worst.items())
    says = f"adaptive T costs at most a quarter more than the best fixed T ({select}, the worst seed)"
    return PaperClaim(OURS, says, max(worst.values()) <= 1.25, text)


def _best(rate: Results, *prefixes: str) -> float:
    """Least error over all pages among the policies of these names."""
    return min(mean(rate, name) for name in rate if name.startswith(prefixes))


def _pairs(found: Mapping[str, Sequence[float]]) -> str:
    return ", ".join(f"{a:.1f} / {b:.1f} % at {100 * float(rate):g} %" for rate, (a, b) in found.items())


def _list(numbers: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {number:.3g} %" for name, number in numbers.items())
