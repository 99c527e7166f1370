"""The statistics: against numpy, and against a crawl whose numbers are known."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.frontier.rig import Crawl
from tests.plugins.warehouse import ANY, BOOK, BOOKS, DTD, FEED, MODULE, NOTE, fill
from xyro.metadata.documents import VersionRow
from xyro.plugins.warehouse.documents_view import dtds, grammars, merged_dtds
from xyro.plugins.warehouse.warehouse_stats import (
    Distribution,
    _Documents,
    merged_stats,
    nesting,
    stats,
    stats_part,
    stats_text,
)
from xyro.service.views.views import Views
from xyro.wire.messages import Kind


@given(st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 1e9)), min_size=1, max_size=200))
def test_a_spread_is_exact_but_for_quantiles_and_those_are_near(numbers):
    spread = Distribution()
    for number in numbers:
        spread.add(number)
    said = spread.fields()
    assert said["count"] == len(numbers)
    assert said["mean"] == pytest.approx(np.mean(numbers), rel=1e-4)
    assert (said["least"], said["most"]) == pytest.approx((min(numbers), max(numbers)), rel=1e-4)
    for name, share in (("median", 0.5), ("p90", 0.9)):
        exact = float(np.quantile(numbers, share, method="inverted_cdf"))
        assert said[name] == pytest.approx(exact, rel=0.1)
    assert sum(count for _, count in said["histogram"]) == len(numbers)
    for end, count in said["histogram"]:
        inside = [number for number in numbers if (end <= number < 2 * end if end else number == 0)]
        assert count == len(inside)


def test_what_was_not_judged_alone_declares_nothing_that_is_known():
    documents = _Documents()
    for problems, tags in (((), 4), (("not judged alone: %x; is declared elsewhere",), 0), (("as a DTD: broken",), 0)):
        documents.latest(DTD, VersionRow(b"", 0.0, Kind.DTD, problems=problems, tags=tags))
    assert (documents.declared.count, documents.declared.highest, documents.count["DTD"]) == (1, 4, 3)


def test_an_empty_spread():
    assert Distribution().fields() == {
        "count": 0, "mean": None, "least": None, "median": None, "p90": None, "most": None, "histogram": [],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("parts", "depths"),
    [
        ({}, {}),
        ({"a": set()}, {"a": 1}),
        ({"a": {"x"}}, {"a": 2}),
        ({"a": {"b", "c"}, "b": {"c"}, "c": set()}, {"a": 3, "b": 2, "c": 1}),
        ({"a": {"b"}, "b": {"a"}}, {"a": 1, "b": 1}),
        ({"a": {"a"}}, {"a": 1}),
        ({f"n{i}": {f"n{i + 1}"} for i in range(100)}, {f"n{i}": min(65, 101 - i) for i in range(100)}),
    ],
)
def test_nesting(parts, depths):
    assert nesting(parts) == depths


@pytest.mark.parametrize("partitions", [1, 3])
def test_the_numbers_of_a_known_crawl(partitions):
    crawl = fill(Crawl.in_memory(partitions, settings=ANY))
    with crawl.views() as views:
        found = stats(views)
    assert {kind: pages["pages"] for kind, pages in found["pages"].items()} == {
        "HTML": 3,
        "XML": 4,
        "DTD": 2,
        "OTHER": 0,
    }
    assert found["xml_to_html"] == pytest.approx(4 / 3, rel=1e-5)
    sizes = [len(body) for body in (BOOKS[2], FEED, NOTE, BOOKS[2])]
    assert found["documents"]["size"]["mean"] == pytest.approx(np.mean(sizes), rel=1e-4)
    assert found["documents"]["count"] == 4
    assert found["documents"]["validity"] == {"valid": 1, "invalid": 1, "unvalidated": 1, "no-grammar": 1}
    assert found["dtds"]["most_used"] == [(DTD, 2)] and found["dtds"]["nesting"] == {"1": 1, "2": 1}
    assert (found["dtds"]["declared"]["count"], found["dtds"]["declared"]["mean"]) == (2, 1.0)
    versions = found["versions"]
    assert versions["count"] == 8 and versions["days_between"]["mean"] == 1.0
    assert (versions["changed_bytes"]["count"], versions["changed_bytes"]["least"]) == (2, 3.0)
    assert found["pages"]["XML"]["changed_reads"] == 1.0 and found["pages"]["HTML"]["changed_reads"] is None
    assert "XML pages to an HTML page: 1.333" in stats_text(found)
    rates = {kind: pages["change_rate"] for kind, pages in found["pages"].items()}
    assert (rates["XML"]["count"], rates["HTML"]["count"]) == (1, 0), "of pages that were read twice or more"
    frontier, page = crawl.page(BOOK)
    assert (
        rates["XML"]["mean"] == pytest.approx(frontier.partition.row(page).rate, rel=1e-5) and rates["XML"]["mean"] > 0
    )
    assert found["pages"]["XML"]["size"]["mean"] == pytest.approx(np.mean(sizes), rel=1e-4)


def test_parts_of_several_nodes_are_the_whole():
    crawl = fill(Crawl.in_memory(5, settings=ANY))
    with crawl.views() as views:
        nodes = [Views(views.views[:2]), Views(views.views[2:3]), Views(views.views[3:])]
        whole, parts = stats(views), [json.loads(json.dumps(stats_part(node))) for node in nodes]
        assert merged_stats(parts) == whole and whole["versions"]["changed_bytes"]["count"] == 2
        for limit in (0, 1, 10):
            found = merged_dtds([[*grammars(node, limit)] for node in nodes], limit)
            assert found == [*dtds(views, limit)] and [row["url"] for row in found] == [DTD, MODULE]
