"""Settings that went: a file, variable or option that names one is answered in one line with what stands for it now.

GONE maps (section, key, value) to that line; value None means any value of the key.
"""

from __future__ import annotations

from collections.abc import Mapping

GONE: Mapping[tuple[str, str, str | None], str] = {
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
