"""A page's importance as the flow of cash through it, kept in 4 + 4 bytes (P2 s.4, Interpolation).

The clock G counts turnovers: it advances by (cash spent) / (all cash). Flow X is page-units of cash per turnover, so
it has mean 1 by construction. A page that received C over the d turnovers since its last spending is measured by

    X' = X (1 - a) + C / max(d, T_i),    a = min(1, d / T_i),    T_i = min(T, age + p)

which is P2's interpolation (H' = H (T-d)/T + C for d < T, H' = C T/d beyond; X = H/T), also right for d = 0, with three
additions: T_i is the young page's window; what a page held when its time began is not flow (below); reading the
importance applies the same formula with the cash of now. With T infinite X is the cumulative mean of P2 section 3.

The default history xi that a page is born with counts as p turnovers of evidence, p = T_0^2 / (T_0 + age): T_0 at
birth, then fading faster than evidence gathers. A constant p would stay in X
for good, as p / age of it: after 10 N reads that alone is 1 %, twice the error of a settled graph at T >= 16. What
fades between two measures is taken back out of X by one more term, (X - xi) (p - p') / max(d, T_i).

The column `flow` of a page never measured holds -q: q is the cash it held at birth, which came because the page was
found (so it is biased) or as endowment. The sign bit says "never measured", q = 0 included (-0.0); a measured flow
is >= +0.0.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from xyro.opic.arrays import Flow, Mask, Reals, Ticks, Units
from xyro.opic.cash import UNIT

TICKS = 65_536
"""ticks in a turnover; columns keep uint32 ticks modulo 2^32, so differences are right up to 65,536 turnovers"""
WINDOW = 16.0
"""T of a settled crawl: how many turnovers of the past count (about 7 reads of every page; see `Window`)"""
SETTLED = 8.0
"""turnovers after which the middle of an interval leaves out all of that half (`centred`)"""
PRIOR_WINDOW = 0.25
"""T_0: how many turnovers of evidence the default history of a new page is worth at first (tried: .25, .5, 1)"""


class OpicClock(Struct):
    """The OPIC clock G in whole ticks, and the part of a tick that is left (in units x ticks)."""

    ticks: int = 0
    rest: int = 0

    def advance(self, spent: int, total: int) -> int:
        """`spent` of `total` units were spent; returns the new time in ticks. ValueError: spent < 0 or total <= 0.

        The rest carries over, so many small commit groups advance it as one large group does.
        """
        if spent < 0 or total <= 0:
            raise ValueError(f"Clock.advance: spent {spent} of {total} units")
        whole, self.rest = divmod(spent * TICKS + self.rest, total)
        self.ticks += whole
        return self.ticks

    @property
    def turnovers(self) -> float:
        return self.ticks / TICKS

    def dump(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in self.__struct_fields__}

    @classmethod
    def load(cls, state: Mapping[str, int]) -> OpicClock:
        return cls(ticks=state["ticks"], rest=state["rest"])


def at_birth(cash: Units) -> Flow:
    """The flow slot of new pages that hold `cash` units when their time begins: float32[n], -q with the sign bit
    set."""
    return np.copysign(cash / UNIT, -1.0).astype(np.float32)


def never_measured(flow: Flow) -> Mask:
    """Pages whose flow slot still holds -q: bool[n]."""
    return np.signbit(flow)


def elapsed(now: int, since: Ticks) -> Reals:
    """Turnovers from `since` to `now`, both in ticks, modulo 2^32: float64[n]."""
    return (np.uint32(now & 0xFFFF_FFFF) - since) / float(TICKS)


def received(flow: Flow, cash: Units) -> Reals:
    """Page-units that flowed in since the last spending: the cash held, less q on a first measure: float64[n]."""
    return np.maximum(cash / UNIT + np.where(never_measured(flow), flow, np.float32(0)), 0.0)


def backing(age: Reals, prior_window: float = PRIOR_WINDOW) -> Reals:
    """p: turnovers of evidence that the default history is worth to pages of that age: float64[n]."""
    return prior_window * prior_window / (prior_window + age)


def as_if_now(
    flow: Flow,
    cash: Units,
    last: Ticks,
    birth: Ticks,
    now: int,
    window: float = WINDOW,
    prior: float = 1.0,
    prior_window: float = PRIOR_WINDOW,
) -> Reals:
    """The importance of pages as if each were spent now: float64[n], page-units per turnover (mean about 1;
    `normalise`).

    flow, cash (effective: key + scalar), last (ticks of the last spending; birth where there was none) and birth are
    columns of n pages, now is the clock's ticks, window and prior_window are turnovers, prior is `NewPages.prior`.
    """
    if not (window > 0 and prior_window > 0):
        raise ValueError(f"windows of {window} and {prior_window} turnovers: more than 0")
    spans, age = elapsed(now, last), elapsed(now, birth)
    backed = backing(age, prior_window)
    young = age + backed
    windows = np.minimum(window, young)
    history = np.where(never_measured(flow), prior, flow)
    faded = (history - prior) * (backing(np.maximum(age - spans, 0.0), prior_window) - backed) * (young <= window)
    fading = 1.0 - np.minimum(1.0, spans / windows)
    estimate: Reals = history * fading + (received(flow, cash) + faded) / np.maximum(spans, windows)
    return np.maximum(estimate, 0.0)  # the prior may have risen since it was counted in


def centred(importance: Reals, flow: Flow, last: Ticks, birth: Ticks, now: int, window: float, settled: float) -> Reals:
    """Importances as of `as_if_now` with half of what the cash in hand says, the middles of intervals: float64[n].

    Cash comes in lumps. Just after one a page seems to receive more than it does, just before the next one less: as a
    sawtooth, whose mean lies midway between what the last measure said and what one would say now. On 22 graphs that
    is nearer to the truth by a quarter to a third, once they have settled. While a crawl outgrows itself, cash in hand
    is news of the larger graph: less of it is left out the fewer turnovers ago that was.

    settled: turnovers since the crawl last outgrew itself.
    """
    spans, age = elapsed(now, last), elapsed(now, birth)
    weighed = np.maximum(1.0 - spans / np.minimum(window, age + backing(age)), 0.0)
    share = 0.5 * min(1.0, settled / SETTLED)
    middle: Reals = importance - share * np.where(never_measured(flow), 0.0, weighed) * (importance - flow)
    return middle


def measure(
    flow: Flow,
    cash: Units,
    last: Ticks,
    birth: Ticks,
    now: int,
    window: float = WINDOW,
    prior: float = 1.0,
    prior_window: float = PRIOR_WINDOW,
) -> Flow:
    """The new flow of pages that are spent now: float32[n], >= +0.0. Arguments as of `as_if_now`.

    A commit group is measured with the cash and the clock from before the group spends, then the clock advances by what
    the group spent; pages born in the group are born at the clock after it with q = all they hold then.
    """
    return as_if_now(flow, cash, last, birth, now, window, prior, prior_window).astype(np.float32)


def normalise(importance: Reals) -> Reals:
    """Importance with mean 1 over the pages given: float64[n]. Where all is 0 (nothing was spent yet): all 1."""
    mean = importance.mean() if importance.size else 0.0
    return importance / mean if mean > 0 else np.ones_like(importance)


class Window(Struct):
    """T, short while the crawl's graph grows and long once it has settled: clip(SHARE (G - since), least, longest).

    While pages become known their minted cash reaches all pages alike, and pages not yet read are dangling: flow
    measured then is another graph's, too even by 10-20 % at T = 16, and remembering it is worse than noise. So each
    time the crawl has outgrown the size of the last restart by a tenth, the window starts afresh at `least`;
    afterwards it widens with the clock, at the rate at which old flow fades. A fixed T is least == longest.
    """

    least: float = 4.0
    longest: float = WINDOW
    size: int = 0
    since: int = 0

    GROWTH = 1.1
    SHARE = 0.8

    def grew(self, size: int, now: int) -> None:
        """At `now` ticks the crawl's graph has `size` = pages known + pages whose links are known (it may also
        shrink)."""
        if size > self.GROWTH * self.size:
            self.size, self.since = size, now

    def widen_to(self, longest: float, least: float) -> None:
        """T is `longest` once the graph has settled, and begins at `least` or below."""
        self.longest, self.least = longest, min(longest, least)

    def length_at(self, now: int) -> float:
        """T in turnovers at `now` ticks."""
        return min(max(self.SHARE * (now - self.since) / TICKS, self.least), self.longest)

    def dump(self) -> dict[str, float]:
        """The state under the names that stored crawls have."""
        return {"least": self.least, "most": self.longest, "size": self.size, "since": self.since}

    @classmethod
    def load(cls, state: Mapping[str, float]) -> Window:
        return cls(float(state["least"]), float(state["most"]), int(state["size"]), int(state["since"]))


class NewPages(Struct):
    """The default history of a page never measured: an average (EWMA) over first measures.

    Kept as two averages, cash received and turnovers waited, whose ratio is xi: the mean of the ratios, as written
    there, is ruled by the few pages measured right after their birth. Until TRUSTED first measures exist the prior is
    the mean importance, 1.
    """

    received: float = 0.0
    waited: float = 0.0
    seen: int = 0

    GAIN = 0.01
    TRUSTED = 100

    def learn(self, flow: Flow, cash: Units, last: Ticks, now: int) -> None:
        """Take note of the first measures among pages that are about to be measured (arguments as of `measure`)."""
        first = never_measured(flow)
        count = int(first.sum())
        if not count:
            return
        keep = (1.0 - self.GAIN) ** count
        waits = elapsed(now, last[first])
        self.received = self.received * keep + float(received(flow[first], cash[first]).mean()) * (1.0 - keep)
        self.waited = self.waited * keep + float(waits.mean()) * (1.0 - keep)
        self.seen += count

    @property
    def prior(self) -> float:
        """Default importance (page-units per turnover) of a page never measured: at most the mean.

        A crawl's first hundred measures may all come in one group, from pages that waited next to no time: their ratio
        is in the hundreds, and what is measured with it takes many turnovers to forget it.
        """
        return min(1.0, self.received / self.waited) if self.seen >= self.TRUSTED and self.waited > 0 else 1.0

    def dump(self) -> dict[str, float]:
        return {name: getattr(self, name) for name in self.__struct_fields__}

    @classmethod
    def load(cls, state: Mapping[str, float]) -> NewPages:
        return cls(received=state["received"], waited=state["waited"], seen=int(state["seen"]))
