"""`stale`: the probability that a page has changed since it was read, on every row of pages."""

import json
import math

from tests.frontier.rig import Crawl, signature, url
from tests.plugins.test_changes import visit
from tests.service.face import xyro
from xyro.configs.load import load
from xyro.refresh.rate_belief import RATES

DAY = 86_400.0


def rows(crawl, now):
    with crawl.crawl_views.views(now) as views:
        return {row["url"]: row for row in views.pages()}


def test_stale_is_the_chance_of_a_change_by_the_belief_of_the_page():
    c = Crawl.in_memory(settings=load(overrides={"crawl.scope": "any"}), refreshing=True)
    c.submit(url(9))  # known, never read
    for number in range(30):
        visit(c, url(0), signature=signature(number))  # changes at each read
        visit(c, url(1), signature=signature(1))  # never changes
    visit(c, url(2), error="http-404", status=404)
    frontier, page = c.page(url(0))
    row = frontier.partition.row(page)
    weights = row.belief.shares()
    for days in (0.0, 0.01, 1.0, 100.0):
        expected = 1 - math.fsum(w * math.exp(-r * days) for w, r in zip(weights, RATES, strict=True))
        assert abs(rows(c, row.last_read + days * DAY)[url(0)]["stale"] - expected) < 2e-6
    found = rows(c, c.now + DAY / 24)
    assert found[url(0)]["stale"] > 0.9 and found[url(1)]["stale"] < 0.1
    assert found[url(2)]["stale"] is None and found[url(9)]["stale"] is None
    assert 0 <= rows(c, c.now)[url(1)]["stale"] < rows(c, c.now + 100 * DAY)[url(1)]["stale"] <= 1


def test_a_clock_that_was_set_back_makes_nothing_stale():
    c = Crawl.in_memory(settings=load(overrides={"crawl.scope": "any"}))
    visit(c, url(0))
    assert rows(c, c.now - 10 * DAY)[url(0)]["stale"] == 0.0


def test_the_command_s_rows_have_it(tmp_path):
    c = Crawl.on_disk(tmp_path / "d", settings=load(overrides={"crawl.scope": "any"}))
    visit(c, url(0))
    c.close()
    done = xyro("export", "pages", "--data", tmp_path / "d")
    (row,) = map(json.loads, done.stdout.splitlines())
    top = json.loads(xyro("top", "--json", "--data", tmp_path / "d").stdout)
    assert 0.5 < row["stale"] <= 1 and abs(top[0]["stale"] - row["stale"]) < 1e-3, "it was read in 2023"
    head = xyro("export", "pages", "--format", "csv", "--data", tmp_path / "d").stdout.splitlines()[0]
    assert "stale" in head.split(",")
