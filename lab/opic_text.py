"""Which claims of the papers hold, in words and numbers (what `xyro lab opic` writes beside its plots)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Results = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Claim:
    """What a paper says, whether it was found so, and the numbers."""

    source: str
    says: str
    holds: bool
    found: str


def claims(results: Results, rates: Sequence[float]) -> list[Claim]:
    """Each claim, judged by a rule on the numbers alone."""
    return [
        *_strategies(results["strategies"]),
        *_other(results),
        *_windows(results, rates),
        _adaptive(results, rates),
    ]


def _strategies(s: Results) -> list[Claim]:
    online, at = s["online"], s["reads"].index(10)

    def errors(name: str, kind: str) -> float:
        return float(online[name][kind][at])

    paper = {name: errors(name, "paper all") for name in online}
    top = {name: errors(name, "paper top") for name in online}
    offline = s["offline"]["all"][at]
    ratio = paper["cycle"] / paper["greedy"]
    order = sorted(("L1", "RMS", "free all"), key=lambda kind: errors("random", kind) / errors("greedy", kind))
    agree = all(errors("random", k) > errors("cycle", k) > errors("greedy", k) for k in order)
    ends = [online[name]["crawled cash"][at] for name in ("cycle", "greedy")]
    spend = ", ".join(f"{name} {online[name]['crawled cash'][at]:.2f}" for name in online)
    return [
        Claim("P2 fig. 2", "Random is clearly the worst strategy", paper["random"] > 1.5 * paper["cycle"],
              _list(paper)),
        Claim("P2 fig. 2", "Greedy is close to Cycle on all pages", 0.67 < ratio < 1.5, f"Cycle / Greedy {ratio:.2f}"),
        Claim("P2 fig. 2", "offline converges almost like Cycle and Greedy", offline > paper["greedy"] / 3,
              f"offline {offline:.4f} % after 10 iterations, Greedy {paper['greedy']:.1f} % after 10 N reads"),
        Claim("P2 fig. 3", "Greedy is the best of the papers' on-line strategies on the top decile",
              top["greedy"] < min(top["cycle"], top["random"]), _list(top)),
        Claim("P2 s.5", "almost no page has more than twice the mean error", errors("greedy", "paper twice") < 0.05,
              f"Greedy: {100 * errors('greedy', 'paper twice'):.1f} % of the pages with the papers' estimator, "
              f"{100 * errors('greedy', 'free twice'):.1f} % endowment-free"),
        Claim("P2 s.5", "measures of error agree on the order of the strategies", agree, "mean relative, L1, RMS"),
        Claim("P2 s.5", "the cash of a page read tends to 2/N", all(abs(x / 2 - 1) <= 0.2 for x in ends),
              f"times N, in the 10th N reads: {spend}"),
        Claim("ours", "the sweep beats Greedy on all pages", errors("sweep", "free all") < errors("greedy", "free all"),
              f"endowment-free {errors('sweep', 'free all'):.2f} % and {errors('greedy', 'free all'):.2f} %"),
        Claim("ours", "leaving the endowment out divides Greedy's error by more than five",
              errors("greedy", "free all") * 5 < paper["greedy"],
              f"{paper['greedy']:.2f} % -> {errors('greedy', 'free all'):.2f} %"),
    ]  # fmt: skip


def _other(results: Results) -> list[Claim]:
    graphs, cash, gathers = results["other graphs"], results["first cash"], results["cash gathers"]
    sizes = [graphs[name]["all"] for name in ("standard", "standard, N/3", "standard, N/10")]
    laws = {name: graph["all"] for name, graph in graphs.items()}
    worst = max(graph["error after 10 iterations"] for graph in graphs.values())
    unread = results["never read"]
    most = max(cash[name][0] for name in cash)
    return [
        Claim("P2 s.5", "the size of the graph does not matter", max(sizes) < 1.5 * min(sizes),
              "sweep, 10 N reads, N, N/3, N/10: " + ", ".join(f"{size:.2f} %" for size in sizes)),
        Claim("P2 s.5", "the law of the in-degrees does not matter", max(laws.values()) < 2 * min(laws.values()),
              _list(laws)),
        Claim("P2 s.5", "the first cash C_0 does not matter", most < 2 * cash["even"][0],
              "after 10 N reads: " + _list({name: cash[name][0] for name in cash})
              + "; every error falls as 1/G, but not from the same height"),
        Claim("P2 s.3", "cash gathers linearly in time", abs(gathers["slope"] - 1) < 0.2,
              f"log C grows with log X d at slope {gathers['slope']:.2f} (1: linear), {gathers['reads']:,} reads"),
        Claim("P2 s.5", "pages never read are ranked well", unread["spearman"] > 0.5,
              f"rank correlation {unread['spearman']:.2f} among the {100 * unread['share']:.0f} % unread after 1.5 N"),
        Claim("P1 s.5", "ten iterations suffice on any graph", worst < 0.1,
              "error after 10: " + _list({name: graph["error after 10 iterations"] for name, graph in graphs.items()})),
    ]  # fmt: skip


def _windows(results: Results, rates: Sequence[float]) -> list[Claim]:
    still, fast = results[f"greedy at {rates[0]:g}"], results["greedy at 0.1"]
    naive, edge = still["fixed 8, naive"][0], still["fixed 8, edge"][0]
    small, big = fast["window 4"][1] < fast["window 16"][1], still["window 4"][1] > still["window 16"][1]
    interpolated = {rate: _best(results[f"greedy at {rate:g}"], "interpolation") for rate in rates}
    windows = {rate: _best(results[f"greedy at {rate:g}"], "window", "improved") for rate in rates}
    wins = [rate for rate in rates if interpolated[rate] <= 1.1 * windows[rate]]
    return [
        Claim("P2 fig. 5", "a fixed window is bad for unimportant pages", naive > 2 * edge,
              f"all pages, no change: naive {naive:.1f} %, corrected at its edge {edge:.1f} %"),
        Claim("P2 fig. 4", "small windows adapt, big ones are precise", small and big,
              f"top decile: at 10 % change m=4 {fast['window 4'][1]:.0f} %, m=16 {fast['window 16'][1]:.0f} %; "
              f"without m=4 {still['window 4'][1]:.1f} %, m=16 {still['window 16'][1]:.1f} %"),
        Claim("P2 fig. 6", "interpolation, with one measure a page, is as good as the windows", len(wins) == len(rates),
              "best interpolation / best window, all pages: " + ", ".join(
                  f"{interpolated[rate]:.1f} / {windows[rate]:.1f} % at {100 * rate:g} %" for rate in rates)),
    ]  # fmt: skip


def _adaptive(results: Results, rates: Sequence[float]) -> Claim:
    ratios = {}
    for rate in rates:
        found = results[f"sweep at {rate:g}"]
        ratios[rate] = found["adaptive T"][0] / _best(found, "interpolation")
    text = ", ".join(f"{ratio:.2f} at {100 * rate:g} %" for rate, ratio in ratios.items())
    says = "adaptive T costs at most a quarter more than the best fixed T (sweep)"
    return Claim("ours", says, max(ratios.values()) <= 1.25, text)


def _best(found: Mapping[str, Sequence[float]], *prefixes: str) -> float:
    """Least error over all pages among the policies of these names."""
    return min(errors[0] for name, errors in found.items() if name.startswith(prefixes))


def _list(numbers: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {number:.3g} %" for name, number in numbers.items())


def page(results: Results) -> str:
    """The page of text."""
    lines = ["Claims of the papers, held against the laboratory", ""]
    for claim in results["claims"]:
        lines += [
            f"{'HOLDS' if claim['holds'] else 'NO   '}  {claim['source']}: {claim['says']}",
            f"       {claim['found']}",
        ]
    rows = results["acceptance"]
    if rows:
        met = sum(row["met"] for row in rows)
        lines += ["", f"Acceptance (algorithms.md H, N = {results['strategies']['n']:,}): {met} of {len(rows)} met", ""]
        lines += [_acceptance(row) for row in rows]
    return "\n".join(lines) + "\n"


def _acceptance(row: Mapping[str, Any]) -> str:
    verdict = "within 10 %" if row["met"] and not row["better"] else "better" if row["better"] else "NOT MET"
    return f"  {row['what']:22} {row['wanted']:>7g} {row['found']:>8.3f}  {verdict}"


def patterns(results: Results) -> str:
    """The patterns as a table."""
    head = (
        f"{'pattern':10} {'pages':>7} {'greatest':>9} {'least':>7} {'all %':>7} {'top %':>7} {'rank':>7}  closed form"
    )
    lines = [head]
    for name, row in results.items():
        form = f"off by {row['off closed form']:.1e} %" if row["closed form"] else "none"
        lines.append(
            f"{name:10} {row['pages']:>7,} {row['greatest']:>9.3f} {row['least']:>7.4f} {row['all']:>7.3f} "
            f"{row['top']:>7.3f} {row['spearman']:>7.4f}  {form}"
        )
    return "\n".join(lines) + "\n"
