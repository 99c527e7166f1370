"""`xyro lab unattended`: a daemon that one can leave alone, on a clock that jumps, by the count of the site's server.

A site of 32 pages that never change is served under `xyro serve` with its default settings: how often is it read on
each day? Then one page begins to change every hour: when is that found, and how often is it read a day later?

    first day    at most 3 reads a page
    later        after day 2 at most a read a page and day, and fewer from week to week
    found        the change is found at the page's next read; on the second day after that it is read at least half as
                 often as in the third week, and then at least hourly
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from xyro.configs.load import SERVE, load
from xyro.lab.crawls.jumping import Jumping
from xyro.lab.web.scripted import ScriptedPage, ScriptedSite
from xyro.lab.web.shape import DAY, ORIGIN
from xyro.plugins import PLUGINS
from xyro.service.node.data_dir import DataDir
from xyro.service.node.guard_factory import guard_of
from xyro.service.node.node import Bounds, Node
from xyro.wire.clock import ManualClock

HOUR = 3_600.0
GRAIN = 60.0
"""seconds that the clock jumps at least: a folder of due pages"""
WATCHED = (1, 2, 3, 7, 14, 30)
"""days whose reads are shown"""


def static_site(pages: int) -> dict[str, ScriptedPage]:
    """A home page that links to all others; each leads on to the next two and back."""
    paths = ["/", *(f"/page-{number}.html" for number in range(1, pages))]
    site = {paths[0]: ScriptedPage(links=paths[1:])}
    for number in range(1, pages):
        site[paths[number]] = ScriptedPage(links=[paths[0], *(paths[(number + step) % pages] for step in (1, 2))])
    return site


async def watch(pages: int, days: int, after: int, directory: Path) -> dict[str, Any]:
    """Serve the still site for so many days, then for `after` more in which one page changes every hour."""
    clock = ManualClock(ORIGIN)
    settings = load((SERVE,), {}, {"fetch.only_net": ("127.0.0.0/8",), "store.commit_seconds": 0.002})
    async with ScriptedSite(static_site(pages), clock) as site:
        data = DataDir.open(directory, make=True)
        node = Node(data, settings, guard_of(settings.fetch), Bounds(forever=True), clock, plugins=PLUGINS)
        daemon = Jumping(node, clock, GRAIN)
        try:
            node.start()
            await node.submit([site.url("/")])
            await daemon.until(ORIGIN + days * DAY)
            hourly = f"/page-{pages // 2}.html"
            began = clock.time()
            site.pages[hourly].changes = [began + HOUR * step for step in range(1, after * 24)]
            await daemon.until(began + after * DAY)
        finally:
            await node.stop()
            data.close()
    return _report(site, hourly, days, after, began)


def _report(site: ScriptedSite, hourly: str, days: int, after: int, began: float) -> dict[str, Any]:
    pages = len(site.pages)
    still = [_between(site, day * DAY, (day + 1) * DAY) for day in range(days)]
    weeks = [sum(still[start : start + 7]) for start in range(0, days - 6, 7)]
    times = [read.time for read in site.reads if read.path == hourly and read.time > began + HOUR]
    first = times[0] if times else math.inf
    days_after = [sum(day <= (t - first) / DAY < day + 1 for t in times) for day in range(after - 7)]
    found = {
        "pages": pages,
        "reads_on_day": {str(day): still[day - 1] for day in WATCHED if day <= days},
        "reads_in_week": weeks,
        "hours_to_its_next_read": round((first - began - HOUR) / HOUR, 2) if times else None,
        "reads_of_it_on_each_day_after": days_after,
    }
    claims = {
        "first day": still[0] <= 3 * pages,
        "later": max(still[2:]) <= pages and all(less < more for more, less in itertools.pairwise(weeks)),
        "found": sum(days_after[-7:]) >= 7 * 24 and days_after[1] >= sum(days_after[-7:]) / 14,
    }
    return {"ok": all(claims.values()), "broken": [name for name, holds in claims.items() if not holds], **found}


def _between(site: ScriptedSite, start: float, stop: float) -> int:
    return sum(start <= read.time - ORIGIN < stop for read in site.reads)


def run(pages: int = 32, days: int = 30, after: int = 28) -> dict[str, Any]:
    """Run it whole; return the report."""
    import uvloop

    with tempfile.TemporaryDirectory(prefix="xyro-unattended-") as directory:
        return uvloop.run(watch(pages, days, after, Path(directory) / "data"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 all holds, 1 something does not."""
    parser = argparse.ArgumentParser(prog="xyro lab unattended", description="A still site under `xyro serve`.")
    parser.add_argument("--pages", type=int, default=32, help="of the site [32]")
    parser.add_argument("--days", type=int, default=30, help="in which nothing changes [30]")
    options = parser.parse_args(arguments)
    report = run(options.pages, options.days)
    sys.stdout.write(json.dumps(report) + "\n")
    return 0 if report["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
