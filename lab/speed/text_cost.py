"""Measures what the text of a page costs: ours (text and Markdown) beside what other libraries take for a part of it.

Each page is given to one after the other, and counts with the least time of its rounds: so what else the machine does
is left out, or is the same for all. Ours is given bytes, the others what these decode to.
"""

from __future__ import annotations

import importlib.util
import itertools
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from xyro.charset import codec_for
from xyro.lab.speed.measures import cpu_seconds
from xyro.page_text import page_text
from xyro.wire.errors import InputError

URL = "https://example.org/manual/page.html"
MOST_BYTES = 1_000_000
"""bytes of a page"""
BESIDE = "resiliparse"
SLOW = frozenset(["trafilatura"])
"""these have one round, the first"""
Tool = Callable[[bytes, str, str], object]
"""(body, codec, the body decoded)"""


def cost(directories: Sequence[Path], pages: int, rounds: int) -> None:
    """Print ms of CPU a page of each. pages: so many, spread evenly over all that have a text. InputError: none has."""
    found = sorted(path for each in directories for path in each.rglob("*.html") if path.is_file())
    step = max(1, len(found) // pages)
    chosen = [page for path in found[::step] if (page := _page(path)) is not None]
    if not chosen:
        raise InputError(f"{', '.join(map(str, directories))}: no page of HTML that has a text")
    tools = _tools()
    least = {name: [float("inf")] * len(chosen) for name in tools}
    for number, (place, page) in itertools.product(range(rounds), enumerate(chosen)):
        for name, tool in tools.items():
            if name in SLOW and number:
                continue
            start = cpu_seconds()
            tool(*page)
            least[name][place] = min(least[name][place], cpu_seconds() - start)
    size = statistics.mean(len(body) for body, _, _ in chosen)
    _tell(f"{len(chosen)} pages, {size / 1000:.1f} kB a page, the least of {rounds} rounds")
    _tell("                                          ms a page  for 25 kB  times resiliparse's main text")
    for name, times in least.items():
        mean = 1000.0 * statistics.mean(times)
        beside = f"{sum(times) / sum(least[BESIDE]):30.2f}" if BESIDE in least else ""
        _tell(f"{LABELS[name]:40}  {mean:9.2f}  {mean * 25_000 / size:9.2f}{beside}")


LABELS = {
    "xyro": "xyro, text and Markdown",
    BESIDE: "resiliparse, main text alone",
    "trafilatura": "trafilatura, main text and Markdown",
}


def _tools() -> dict[str, Tool]:
    """Ours, and those libraries that are installed."""
    tools: dict[str, Tool] = {"xyro": lambda body, codec, _: page_text(body, codec, URL)}
    if importlib.util.find_spec(BESIDE):
        from resiliparse.extract.html2text import extract_plain_text

        tools[BESIDE] = lambda _, __, source: extract_plain_text(source, main_content=True, preserve_formatting=True)
    if importlib.util.find_spec("trafilatura"):
        from trafilatura import extract

        tools["trafilatura"] = lambda _, __, source: (
            extract(source, url=URL),
            extract(source, url=URL, include_links=True, output_format="markdown"),
        )
    return tools


def _page(path: Path) -> tuple[bytes, str, str] | None:
    """(body, codec, decoded) of a page that has a text."""
    body = path.read_bytes()
    if not 0 < len(body) <= MOST_BYTES:
        return None
    codec = codec_for(body, "")
    return (body, codec, body.decode(codec, "replace")) if page_text(body, codec, URL) is not None else None


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")
