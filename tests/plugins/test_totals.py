"""The sums of the partitions beside each: one pass over all, whatever their number."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontier.rig import Crawl, report, url
from xyro.configs.load import load
from xyro.plugins.totals.shared_totals import SharedTotals, others_of
from xyro.plugins.totals.total_messages import TellSums
from xyro.refresh.other_sums import OtherSums
from xyro.refresh.population import Population
from xyro.wire.codec import decode, encode
from xyro.wire.ids import join, split
from xyro.wire.messages import FetchOrder, PageReport


def part(number: int) -> OtherSums:
    population = Population()
    for page in range(number + 1):
        population.add(1.0 + number, 0.01 * (page + 1))
    return OtherSums(population, 2.0 * number, 0.5, 0.25, number, 10 * number, 20.0 + number, 1.0 + number,
                     3.5 * number, 7 * number)  # fmt: skip


@pytest.mark.parametrize("partitions", [1, 2, 5])
def test_each_partition_is_told_the_sums_of_all_beside_it(partitions: int) -> None:
    parts = {number: part(number) for number in range(partitions)}
    found = dict(others_of(parts))
    assert found.keys() == parts.keys()
    for number, told in found.items():
        expected = OtherSums()
        for source, sums in parts.items():
            if source != number:
                expected.add(sums)
        assert told.population.pages == expected.population.pages == sum(n + 1 for n in parts if n != number)
        assert (told.population.bins.rate.tolist(), told.population.bins.pages.tolist()) == (
            expected.population.bins.rate.tolist(),
            expected.population.bins.pages.tolist(),
        )
        for name in ("spread", "rate", "promised", "unread", "reads", "gamma", "weight", "importance", "page_count"):
            assert getattr(told, name) == pytest.approx(getattr(expected, name))


def test_importance_has_one_scale_over_all_partitions() -> None:
    """As what each change tells of its page: mean 1 over all pages that the crawl knows, a young one, too."""
    crawl = Crawl.in_memory(partitions=3, settings=load(overrides={"crawl.scope": "any"}))
    crawl.submit(url(0), url(1), url(2))

    def shown(order: FetchOrder) -> PageReport:
        numbers = (7 * order.page + 3, 5 * order.page, 1)
        return report(order, crawl.now, [url(number % 9, number // 9 % 7) for number in numbers])

    crawl.run(shown)
    means = [frontier.importance_error.mean for frontier in crawl.frontiers if frontier.ledger.known_pages]
    assert len(means) > 1 and max(means) > 1.2 * min(means) > 1.2, "each by itself has another one"
    sums_of = {number: SharedTotals(frontier)._own(crawl.now) for number, frontier in enumerate(crawl.frontiers)}
    others = others_of(sums_of)
    for number, sums in others:
        crawl.frontiers[number].importance_error.hear_others(decode(encode(TellSums.pack(-1, sums))).sums())
    with crawl.crawl_views.views(crawl.now) as views:
        told = {row["id"]: row["importance"] for row in views.pages()}
        assert sum(told.values()) / views.known_pages == pytest.approx(1.0, abs=1e-5)
    for number, frontier in enumerate(crawl.frontiers):
        pages = [split(page)[1] for page in told if split(page)[0] == number]
        relative = frontier.importance_error.relative(np.array(pages, np.int64))
        assert relative == pytest.approx([told[join(number, page)] for page in pages], rel=0.01)
