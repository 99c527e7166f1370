"""Settings that went: a file, variable or option that names one is answered in one line with what stands for it now.

GONE maps (section, key, value) to that line; value None means any value of the key.
"""

from __future__ import annotations

from collections.abc import Mapping

GONE: Mapping[tuple[str, str, str | None], str] = {
    ("refresh", "estimator", None): (
        "went: change rates are a running belief of each page; `xyro lab refresh` compares others: remove this key"
    ),
    ("refresh", "execution", None): (
        "went: pages are found by folders of their dates, `time_unit` seconds each: remove this key"
    ),
    ("refresh", "policy", "kolobov"): 'went: write policy = "mixed" and alpha = 0.3, or another of the three',
    ("refresh", "policy", "proportional"): "went: `xyro lab refresh` compares it; write one of the three that stayed",
    ("refresh", "policy", "uniform"): "went: `xyro plan` and `xyro lab refresh` compare it; write one of the three",
    ("refresh", "scout_pages", None): (
        "went: unread pages are read by score from the first read on (`xyro why URL` shows it): remove this key"
    ),
    ("opic", "history", None): (
        "went: importance is told by interpolation over `window` turnovers; `xyro lab opic` compares the other "
        "histories: remove this key"
    ),
    ("opic", "measures", None): "went with the histories that keep measures; remove this key",
    ("opic", "select", None): (
        "went: the sweep selects the pages that spend; `xyro lab opic` compares the other selectors: remove this key"
    ),
}


def stand_in(section: str, key: str, value: object) -> str | None:
    """The line for a key, or for a value of it, that went; None for one that did not."""
    line = GONE.get((section, key, None))
    return line if line is not None or not isinstance(value, str) else GONE.get((section, key, value))
