"""`xyro lab demo`: the whole loop in half a minute, on a web whose true importance is known.

lab's computed web is served on loopback by a child process; it is crawled to its end and then refreshed for a while, as
`xyro crawl --refresh --only-net 127.0.0.0/8` with gamma = 95 would; then the importance that the crawl computed while
it read stands beside the true one, which the lab gets from the whole graph at once.
"""

from __future__ import annotations

import itertools
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from xyro.configs.load import load
from xyro.lab.child import running
from xyro.lab.web.truth import truth
from xyro.lab.web.web import Web
from xyro.plugins import PLUGINS, extensions
from xyro.service.api.endpoints import ENDPOINTS
from xyro.service.cli.options import tell
from xyro.service.node.life_cycle import Job, run, sentence
from xyro.service.node.node import Bounds
from xyro.service.node.stopped import open_stopped
from xyro.wire.clock import SystemClock
from xyro.wire.errors import InputError
from xyro.wire.log_setup import set_up

Floats = NDArray[np.float64]

PAGES_A_HOST, HOSTS = 150, 8
SPEED = 3_000.0
"""how much faster than a real web's its pages change, so that some do while one watches"""
READS_A_PAGE = 5
GAMMA = 95.0
"""percent of the reads that go to new pages while there are some: whoever asks how important the pages of a web are
wants all of them first. By the default, 50, 3,000 of 15,000 reads would be repeats in a graph that is half known: the
mean error is 2.1 to 2.6 % in place of 1.9 to 2.0 % (3,000 pages, two seeds)"""
SECONDS = 60.0
TOP = 10


def demo(data: Path | None, pages: int) -> int:
    """Run the demo; return the exit code. InputError: the directory exists."""
    directory = _fresh(data)
    settings: dict[str, Any] = {"seed": 1, "pages": pages, "hosts": max(HOSTS, pages // PAGES_A_HOST), "speed": SPEED}
    settings["origin"] = SystemClock().time()
    set_up("warning", "text")
    signal.signal(signal.SIGTERM, _leave)
    with running(**settings) as web:
        tell(f"A web of {pages:,} pages on {settings['hosts']} hosts, computed, served at {web.entry}", err=True)
        rule = f"new pages first (gamma {GAMMA:.0f})"
        tell(f"Crawling it into {directory}, {rule}; Ctrl-C ends it early, in order.", err=True)
        options = {
            "crawl.scope": "any",
            "crawl.refresh": True,
            "refresh.gamma": GAMMA,
            "politeness.delay": 0.0,
            "fetch.only_net": ("127.0.0.0/8",),
        }
        bounds = Bounds(pages=READS_A_PAGE * pages, seconds=SECONDS, refresh=True)
        ended = run(Job(directory, load((), {}, options), bounds, ENDPOINTS, (web.entry,), plugins=PLUGINS))
        true = _truth(Web(**settings).served_at(web.port))
    click.echo(sentence(ended.report))
    with open_stopped(directory, extensions) as crawl, crawl.views() as views:
        estimates = {row["url"]: row["importance"] for row in views.pages()}
        best = views.top(TOP, "importance", SystemClock().time())
    click.echo("\n".join(["", *_compared(best, true), "", *_judged(estimates, true), "", *_next(directory, best)]))
    return 0


def _fresh(data: Path | None) -> Path:
    """A directory that is not there yet: the ports of a computed web are new each time, so none can be resumed."""
    if data is not None:
        if data.exists() and (not data.is_dir() or any(data.iterdir())):
            raise InputError(f"{data}: exists; the demo makes a new directory, name another one with --data")
        return data
    names = itertools.chain(["xyro-demo"], (f"xyro-demo-{number}" for number in itertools.count(2)))
    return next(path for path in map(Path, names) if not path.exists())


def _leave(number: int, _: object) -> None:
    """End the process and its child by a signal before or after the crawl, which has handlers of its own."""
    sys.exit(128 + number)


def _truth(web: Web) -> dict[str, float]:
    """URL -> true importance, mean 1. Its links stay as they are, whatever changes on its pages."""
    found = truth(web, web.shape.origin)
    return dict(zip(found.urls, found.importance.tolist(), strict=True))


def _compared(best: Sequence[Mapping[str, Any]], true: Mapping[str, float]) -> list[str]:
    places = {url: place for place, url in enumerate(sorted(true, key=lambda url: -true[url]), 1)}
    lines = [f"{'importance':>10}  {'true':>6}  {'true place':>10}  {'reads':>5}  {'changes':>7}  url"]
    for row in best:
        url = row["url"]
        lines.append(
            f"{row['importance']:10.2f}  {true[url]:6.2f}  {places[url]:10d}  "
            f"{row['reads']:5d}  {row['changes']:7d}  {url}"
        )
    return lines


def _judged(estimates: Mapping[str, float], true: Mapping[str, float]) -> list[str]:
    """Return sentences that compare the importance computed while crawling with the true one."""
    urls = sorted(estimates.keys() & true.keys(), key=lambda url: -true[url])
    if not urls:
        return ["Nothing was read before it was stopped."]
    ours, theirs = np.array([estimates[url] for url in urls]), np.array([true[url] for url in urls])
    error = np.abs(ours / theirs - 1)
    tenth = max(1, len(urls) // 10)
    return [
        "Importance 1 is an average page's. It was computed while crawling, without a link matrix, and compared with",
        f"PageRank over the whole graph: mean error {error[:tenth].mean():.1%} over the tenth of the pages that matter",
        f"most, {error.mean():.1%} over all {len(urls):,}; rank correlation {_spearman(ours, theirs):.4f}.",
    ]


def _spearman(a: Floats, b: Floats) -> float:
    """Rank correlation; ties in the order they come."""
    if len(a) < 2:
        return 1.0
    ranks = [np.argsort(np.argsort(column, kind="stable"), kind="stable") for column in (a, b)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _next(directory: Path, best: Sequence[Mapping[str, Any]]) -> list[str]:
    url, xyro = best[0]["url"] if best else "URL", _command()
    return [
        "Look around in it:",
        f"  {xyro} top --data {directory} --by stale",
        f"  {xyro} why {url} --data {directory}",
        f"  {xyro} export pages --data {directory} --format csv -o pages.csv",
        f"  {xyro} audit --data {directory}",
        "or crawl a site:",
        f"  {xyro} crawl https://example.org/ --contact you@example.org --max-pages 500",
    ]


def _command() -> str:
    """The command as it can be typed here."""
    if shutil.which("xyro"):
        return "xyro"
    return "python -m xyro" if sys.argv[0].endswith("__main__.py") else sys.argv[0]
