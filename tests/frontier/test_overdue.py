"""Where more is due than the bandwidth allows, all intervals grow alike: fast pages do not wait behind slow ones."""

from __future__ import annotations

import pytest

from tests.frontier.rig import Crawl, url
from xyro.configs.schema import CrawlSettings, RefreshSettings, Settings
from xyro.frontier.bandwidth import DAY

HOUR = 3600.0
PAGES = [url(host, page) for host in range(10) for page in range(20)]
FAST = PAGES[0]


@pytest.mark.long
def test_a_page_that_changes_all_the_time_is_followed_while_all_others_fall_due_together():
    refresh = RefreshSettings(audit=0.0, bandwidth="75/day", least_chance=0.3, min_interval=HOUR, time_unit=1800)
    crawl = Crawl.in_memory(settings=Settings(CrawlSettings(scope="any"), refresh=refresh), refreshing=True)
    crawl.frontier.scheduler.schedule.doublings = None  # else all are dated anew before so many fall due together
    crawl.submit(*PAGES)
    start, reads, version, waiting = crawl.now, dict[str, list[float]](), 0, 0
    while crawl.now < start + 8 * DAY:
        for order in crawl.turn():
            reads.setdefault(order.url, []).append(crawl.now)
            version += 1
            crawl.answer(order, **({"signature": version.to_bytes(16, "big")} if order.url == FAST else {}))
        if not crawl.pending[0]:
            crawl.now = max(crawl.now + 1.0, min(crawl.frontier.scheduler.next_time(), crawl.now + 600.0))
        waiting = max(waiting, len(crawl.frontier.scheduler.due_queue.overdue))
    assert sum(map(len, reads.values())) <= len(PAGES) + 75 * 8 + 20, "the bandwidth is kept"
    assert sum(len(times) >= 2 for times in reads.values()) >= 75, "the others have their turn, too"
    gaps = [after - before for before, after in zip(reads[FAST], reads[FAST][1:], strict=False)]
    assert waiting > 75, "so many wait that one behind them all would wait for more than a day"
    assert gaps == sorted(gaps, reverse=True) and gaps[-1] <= 12 * HOUR, gaps
