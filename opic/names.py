"""Selectors and history policies by the names that settings and the command line give them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from xyro.opic.adaptive import Adaptive
from xyro.opic.arrays import Units
from xyro.opic.buckets import Buckets, Levels
from xyro.opic.choose import Cycle, Greedy, Random, Select, Selector, Sweep
from xyro.opic.windows import NO_PRIOR, FixedWindow, History, Interpolation, Static, VariableWindow

SELECTORS: dict[str, Callable[[Units, np.random.Generator], Select]] = {
    "sweep": lambda keys, rng: Sweep(),
    "greedy": lambda keys, rng: Greedy(keys),
    "cycle": lambda keys, rng: Cycle(),
    "random": lambda keys, rng: Random(int(rng.integers(2**63))),
    "buckets": lambda keys, rng: Buckets(keys, 0),
    "levels": lambda keys, rng: Levels(),
}
CRAWLED: dict[str, Callable[[Mapping[str, Any] | None], Selector]] = {
    "sweep": lambda state: Sweep.load(state) if state else Sweep(),
    "cycle": lambda state: Cycle.load(state) if state else Cycle(),
    "random": lambda state: Random.load(state) if state else Random(),
    "greedy": lambda state: Greedy(),
    "buckets": lambda state: Levels.load(state) if state else Levels(),
}
"""what a crawl can be told to use, new or from what its `dump` said"""
PLAIN: dict[str, Callable[[int], History]] = {
    "static": Static,
    "paper": lambda n: Static(n, paper=1.0),
    "adaptive": Adaptive,
}
"""histories without a number: (H+C-C0)/G, P2's (H+C)/(G+1), and interpolation whose T follows the web"""
WINDOWS: dict[str, Callable[[int, float], History]] = {
    "window": lambda n, m: VariableWindow(n, int(m)),
    "fixed": FixedWindow,
    "edge": lambda n, window: FixedWindow(n, window, edge=True),
    "improved": lambda n, window: FixedWindow(n, window, edge=True, least=3),
    "interpolation": lambda n, window: Interpolation(n, window, prior_window=NO_PRIOR),
}
"""histories with one: m measures, or T turnovers"""


def selector(name: str, keys: Units, rng: np.random.Generator) -> Select:
    """The selector of that name for pages with these keys and scalar 0. ValueError: there is none."""
    if name not in SELECTORS:
        raise ValueError(f"select {name!r}: one of {', '.join(SELECTORS)}")
    return SELECTORS[name](keys, rng)


def history(name: str, n: int) -> History:
    """The policy of that name ("static", "window:8", "edge:4.5") for n pages. ValueError: there is none."""
    kind, colon, number = name.partition(":")
    if not colon and kind in PLAIN:
        return PLAIN[kind](n)
    if not colon or kind not in WINDOWS:
        names = [*PLAIN, *(f"{kind}:{'m' if kind == 'window' else 'T'}" for kind in WINDOWS)]
        raise ValueError(f"history {name!r}: one of {', '.join(names)}")
    return WINDOWS[kind](n, _number(name, number, whole=kind == "window"))


def _number(name: str, text: str, whole: bool) -> float:
    try:
        number = float(int(text)) if whole else float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= 65_536:
        raise ValueError(f"history {name!r}: a {'whole ' if whole else ''}number above 0, 65536 at most")
    return number
