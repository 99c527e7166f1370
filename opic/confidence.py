"""Confidence in an importance: convergence, a bound on all errors together, an interval for each page.

Convergence. OPIC over the n pages and the virtual page moves cash by L', so over any span of the clock in which the
links stand still (Lemma 2.3 of P2 between its ends, h = what was spent): C_end - C_begin = L'h - h. With all cash as 1
and y = h / span, a measure with one window for all pages, |L'y - y|_1 = |C_end - C_begin|_1 / span <= 2 / span
(`convergence`). A further step, which leaving the endowment out is, never lengthens it. P2's interpolation fades pages
one by one, so for it the same figure is a bound shown in the laboratory (there residuals are a tenth of it), and links
that changed within the window count as more change than it knows. The residual is "not, strictly speaking, the error"
(P2 s.3): on half of the pages the error is greater.

The bound. Let f_i be the share of its cash that page i pays the virtual page (1 where it has no links), p how the
virtual page pays (sum 1), and f <= f_i. Given (x, v) over pages and virtual page with the residual (a, b):
  a = A x + p v - x,  b = f.x - v;   so with the virtual page put in its place, K = A + p f', every column of sum 1,
  K x - x = a + p b,  and |K x - x|_1 <= |a|_1 + |b|: the residual over the pages alone is no longer.
Each column of K is f p and 1 - f of something that sums to 1. On vectors that sum to 0 the first part vanishes, so K
shortens these by 1 - f. With s = sum x and the fixpoint x* of sum s (x - x* sums to 0):
  x - x* = (x - Kx) + K (x - x*)  =>  |x - x*|_1 <= |Kx - x|_1 + (1-f) |x - x*|_1  =>  |x - x*|_1 <= |Kx - x|_1 / f.
`condition` is 1/f: 1 / (1-c) with damping c, (d + w) / w with a small edge w and at most d links. For x brought to
sum 1 the residual is that of the whole over s; a measure of flow counts pages only, its sum is 1 as it is.

The interval. Its middle is the estimate with half of what the cash in hand says (importance.centred), which the truth
is nearer to. |log(middle / truth)| of the share SURE of pages is less than a half width (`half_widths`). Two witnesses
tell it: how long the clock has run, in all and since the crawl last outgrew itself (`young_width`), and by how much a
sample of the middles moved (snapshots.py). While a crawl outgrows itself movement tells nothing, for what moves then is
the truth; of a settled one it tells all. So the half width is the product of both, to powers of sum 1: the clock's
begins with 1 and falls as 1 / (1 + (s / TRUSTED)^2) with the s turnovers since. Of pages that were not measured yet it
is `Law.width`, a power law in the turnovers that back the estimate. Checked by lab/opic/interval_coverage.py on graphs
made up, and by lab/order/served_intervals.py on real ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xyro.opic.arrays import Mask, Pages, Reals
from xyro.opic.cash import DAMPING
from xyro.opic.snapshots import HalfWidths

FARTHEST = 2.0
"""L1 distance of two vectors of sum 1 that share nothing: no bound says more"""
SURE = 0.95
FLOOR = 0.005
"""half width below which links that change and pages that are found matter more than what was calibrated"""


def convergence(span: float) -> float:
    """Bound of the residual |L'x - x|_1 (x of sum 1) of flow gathered over so many turnovers. Not an error."""
    return min(FARTHEST, 2.0 / span) if span > 0 else FARTHEST


def condition(damping: float = DAMPING, edge: float = 0.0, links: int = 0) -> float:
    """1/f: how many times the residual the L1 error may be. `edge` > 0: small edges, at most `links` links a page.

    ValueError: damping outside 0..1.
    """
    if not (0 <= damping <= 1 and edge >= 0 and links >= 0):
        raise ValueError(f"condition: damping {damping} of 0..1, edge {edge} and links {links} of 0 or more")
    if edge:
        return (links + edge) / edge
    return 1.0 / (1.0 - damping) if damping < 1 else np.inf


def error_bound(residual: float, factor: float) -> float:
    """L1 error of an importance of sum 1, at most; half of it is the share of importance on wrong pages."""
    return min(FARTHEST, residual * factor)


class Law(NamedTuple):
    """|log(estimate/truth)| <= scale x turnovers^-fade x importance^-calm, from `floor` to `cap`, on SURE of pages."""

    scale: float
    fade: float
    calm: float
    cap: float
    floor: float = FLOOR
    early: float = 0.0
    """turnovers below which all that is known is `cap`"""

    def width(self, turnovers: Reals | float, importance: Reals) -> Reals:
        """Half width of the interval in log importance: float64[n]."""
        backed = np.maximum(np.asarray(turnovers, np.float64), SHORTEST)
        wide = self.scale * backed**-self.fade * np.clip(importance, LEAST, GREATEST) ** -self.calm
        return np.where(backed < self.early, self.cap, np.clip(wide, self.floor, self.cap))


SHORTEST = 0.25
"""turnovers below which less evidence does not widen an interval: the default history is worth as much"""
LEAST, GREATEST = 1.0 - DAMPING, 100.0
"""importance (mean 1) between which the laws were fitted; no page is below the first where all are paid alike"""


def interval(importance: Reals, width: Reals, least: float = LEAST) -> tuple[Reals, Reals]:
    """(low, high) about importances of mean 1; `least`: what every page has for certain."""
    centre = np.maximum(importance, max(least, 1e-9))
    return np.minimum(centre * np.exp(-width), importance), centre * np.exp(width)


class Trend(NamedTuple):
    """Relative growth a turnover, log(now/then) / turnovers, with its interval."""

    growth: Reals
    low: Reals
    high: Reals


def trend(now: Reals, now_width: Reals, then: Reals, then_width: Reals, turnovers: Reals) -> Trend:
    """Growth between two estimates whose widths are given, so many (> 0) turnovers apart: float64[n] each.

    The widths add: the two windows may share evidence, or be wrong in the same way.
    """
    both, spans = now_width + then_width, np.maximum(turnovers, 1e-9)
    moved = np.log(np.maximum(now, 1e-9) / np.maximum(then, 1e-9))
    return Trend(moved / spans, (moved - both) / spans, (moved + both) / spans)


NEVER = Law(0.547, 0.857, 0.539, 1.029)
"""Of pages not measured yet; turnovers: since the crawl last outgrew itself, or the page's birth. Printed by `xyro lab
opic confidence --fit` (5 shapes x 2 seeds of 6,000 pages, worst moment of the worst graph, and MARGIN)."""
TRUSTED, FADE = 3.0, 1.5
"""turnovers since the crawl last outgrew itself from which movement is the better witness; how errors fall from then"""
YOUNG, BEST = 0.27, 2.5
NARROWEST, WIDEST = 0.05, 1.5
EARLIEST, LATEST = 0.1, 10.0
"""turnovers before and after which the age of a crawl says no more"""


def young_width(time: Reals | float, settled: Reals | float) -> Reals:
    """Half widths by the clock alone: turnovers in all, and since the crawl last outgrew itself (or a page's birth).

    YOUNG (t/BEST + BEST/t) / (1 + (s/TRUSTED)^FADE), NARROWEST to WIDEST. In its first turnovers a crawl has measured
    little; one that still outgrows itself after eight has measured another graph well. Fitted to crawls of 11 real
    graphs, from each of which it is off by a factor of 1.5 either way.
    """
    age = np.clip(time, EARLIEST, LATEST) / BEST
    wide = YOUNG * (age + 1.0 / age) / (1.0 + (np.asarray(settled, np.float64) / TRUSTED) ** FADE)
    found: Reals = np.clip(wide, NARROWEST, WIDEST)
    return found


def half_widths(
    pages: Pages,
    importance: Reals,
    never: Mask,
    time: float,
    settled: float,
    age: Reals,
    moved: HalfWidths | None = None,
) -> Reals:
    """Half widths of the intervals of pages with these importances, of mean 1, in log importance: float64[n].

    never: pages not measured yet; time, settled, age: turnovers, since the crawl last outgrew itself, and since births.
    """
    backed = np.minimum(settled, age)
    measured = young_width(time, backed)
    if moved is not None:
        clock = 1.0 / (1.0 + np.square(backed / TRUSTED))
        measured = measured**clock * moved.look_up(pages, importance) ** (1.0 - clock)
    return np.where(never, NEVER.width(backed, importance), np.clip(measured, FLOOR, FARTHEST))
