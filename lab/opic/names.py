"""Selectors and history policies by the names that the command line gives them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from xyro.lab.opic.buckets import Buckets, Levels
from xyro.lab.opic.histories import NO_PRIOR, Adaptive, FixedWindow, History, Interpolation, Static, VariableWindow
from xyro.lab.opic.selectors import Cycle, Greedy, Random, Selector, SweepSelector
from xyro.opic.arrays import Units

SELECTORS: dict[str, Callable[[Units, np.random.Generator], Selector]] = {
    "sweep": lambda keys, rng: SweepSelector(),
    "greedy": lambda keys, rng: Greedy(keys),
    "cycle": lambda keys, rng: Cycle(),
    "random": lambda keys, rng: Random(int(rng.integers(2**63))),
    "buckets": lambda keys, rng: Buckets(keys, 0),
    "levels": lambda keys, rng: Levels(),
}
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


def selector(name: str, keys: Units, rng: np.random.Generator) -> Selector:
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
