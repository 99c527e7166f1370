"""What guides the refresh of HTML pages: the file of interests, and what becomes of it when it is damaged."""

from __future__ import annotations

import logging
import os

import numpy as np
import pytest

from tests.frontier.rig import Crawl, url
from xyro.configs.schema import CrawlSettings as CrawlSettings
from xyro.configs.schema import RefreshSettings, Settings
from xyro.metadata.states import KIND_SHIFT, LEASED
from xyro.plugins.rank.guide import LEAST, LOOK, NAME, Guide, read, values_of, write
from xyro.wire.errors import MachineError
from xyro.wire.messages import Kind

HTML, XML = (np.uint16(int(kind) << KIND_SHIFT) for kind in (Kind.HTML, Kind.XML))
VALUES = np.array([2.0, np.nan, 0.5, 4.0], np.float32)


def test_values_survive_the_disk(tmp_path):
    for values in (VALUES, VALUES[:0]):
        write(tmp_path, 3, values)
        np.testing.assert_array_equal(read(tmp_path / NAME, 3), values)
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


def test_html_pages_weigh_together_what_their_importance_does():
    interest, importance = np.array([9.0, 1.0, 0.0, 2.0]), np.array([5.0, 1.0, 3.0, 2.0])
    html = np.array([False, True, True, True])
    kept = values_of(interest, importance, html)
    assert np.isnan(kept[0])
    np.testing.assert_allclose(kept[1:], [2.0, LEAST * 2, 4.0])
    assert np.isnan(values_of(np.zeros(4), importance, html)).all()


def weigh(guide, now=0.0):
    pages = np.array([0, 1, 2, 3, 9])
    flags = np.array([HTML | LEASED, HTML, XML, HTML, HTML], np.uint16)
    return guide.weigh(pages, flags, [1.0, 1.0, 1.0, 1.0, 1.0], now)


def test_only_html_pages_with_an_interest_are_guided(tmp_path):
    write(tmp_path, 0, VALUES)
    assert weigh(Guide(tmp_path, 0)) == [2.0, 1.0, 1.0, 4.0, 1.0]


def test_a_new_file_is_seen_after_a_while(tmp_path, caplog):
    guide = Guide(tmp_path, 0)
    assert weigh(guide) == [1.0] * 5
    write(tmp_path, 0, VALUES)
    assert weigh(guide, LOOK - 1) == [1.0] * 5
    assert weigh(guide, LOOK) == [2.0, 1.0, 1.0, 4.0, 1.0]
    write(tmp_path, 0, VALUES * 2)
    assert weigh(guide, 3 * LOOK) == [4.0, 1.0, 1.0, 8.0, 1.0]
    assert weigh(guide, -5.0)[0] == 4.0  # the clock was set back


def _cut(data):
    return data[:-1]


def _flip(data):
    return data[:-1] + bytes([data[-1] ^ 1])


@pytest.mark.parametrize(
    "damage",
    [_cut, _flip, lambda data: b"", lambda data: data[:10], lambda data: b"XYRJ" + data[4:],
     lambda data: data[:4] + b"\x02" + data[5:], lambda data: data[:8] + b"\x01" + data[9:],
     lambda data: data[:16] + b"\xff" * 8 + data[24:]],
)  # fmt: skip
def test_a_damaged_file_leaves_importance_with_one_warning(tmp_path, caplog, damage):
    write(tmp_path, 0, VALUES)
    path = tmp_path / NAME
    path.write_bytes(damage(path.read_bytes()))
    guide = Guide(tmp_path, 0)
    with caplog.at_level(logging.WARNING, "xyro"):
        for turn in range(5):
            assert weigh(guide, turn * LOOK) == [1.0] * 5
            os.utime(path, ns=(turn, turn))
    assert len(caplog.records) == 1 and "xyro rank" in caplog.text
    write(tmp_path, 0, VALUES)
    assert weigh(guide, 9 * LOOK)[0] == 2.0


def test_a_disk_that_fails_is_told(tmp_path):
    with pytest.raises(MachineError, match="nowhere"):
        write(tmp_path / "nowhere", 0, VALUES)


@pytest.mark.parametrize("guided", [False, True])
def test_a_crawl_dates_html_pages_by_it_and_s_stays_exact(tmp_path, guided):
    """Page 1 is given a hundred times page 2's interest: it is read ten times as soon. S adds up all the same."""
    refresh = RefreshSettings(guide="interest" if guided else "importance", bandwidth=1.0)
    settings = Settings(crawl=CrawlSettings(scope="any"), refresh=refresh)
    crawl = Crawl.on_disk(tmp_path / "data", settings=settings, refreshing=True)
    crawl.submit(url(0), url(1), url(2))
    for _ in range(3):
        for order in crawl.turn():
            crawl.answer(order, [url(1), url(2)])
        crawl.now += 5
    write(crawl.frontier.partition.directory, 0, np.array([np.nan, 50.0, 0.5], np.float32))
    assert len(crawl.frontier.hooks.importance) == guided
    crawl.submit(url(1), url(2), seed=False)
    crawl.now += LOOK
    for order in crawl.turn():
        crawl.answer(order, [url(1), url(2)])
    crawl.turn()
    weights = [crawl.frontier.partition.row(page).weight for page in (1, 2)]
    assert weights[0] / weights[1] == pytest.approx(10.0 if guided else 1.0, rel=0.1)
    assert crawl.audit()["ok"]
    crawl.close()
