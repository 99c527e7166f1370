"""Snapshots of importances: when they are taken, what their movement says, what a restart leaves of them."""

import numpy as np
import pytest

from xyro.opic.confidence import FLOOR, LAWS, half_widths
from xyro.opic.snapshots import CLASSES, FIRST, KEEP, SAMPLE, SETTLED, STEP, Snapshots, class_of


def crawl(error, until=40.0, pages=6000, seed=1):
    """The snapshots of a crawl whose error at settled time t is error(t, pages of the sample); truth is 1."""
    snapshots, settled = Snapshots(), 0.5
    while settled < until:
        if not snapshots.last <= settled < snapshots.next:
            if not len(snapshots.pages):
                snapshots.draw(np.arange(pages))
            snapshots.take(settled, np.exp(error(settled, snapshots.pages)))
        settled *= 1.02
    return snapshots, settled


def shrinking(settled, pages):
    """Errors that shrink as t^-1.5, as those of real graphs do, each page's of its own size and sign."""
    return np.random.default_rng(5).standard_normal(6000)[pages] / settled**1.5


def test_a_few_are_taken_in_each_doubling_and_few_are_kept():
    snapshots, settled = crawl(shrinking)
    assert len(snapshots.times) == KEEP and len(snapshots.pages) == SAMPLE
    ratios = np.array(snapshots.times[1:]) / np.array(snapshots.times[:-1])
    assert (np.abs(np.log(ratios / STEP)) < 0.03).all()
    assert snapshots.last <= settled and snapshots.last == snapshots.times[-1]


def test_movement_tells_the_error_that_is_left():
    for until in (8.0, 16.0, 32.0):
        snapshots, settled = crawl(shrinking, until)
        now = np.exp(shrinking(settled, snapshots.pages))
        found = snapshots.half_widths(settled, now, 1.0)
        wide = found.look_up(np.ones(1))[0]
        assert wide == pytest.approx(1.96 / settled**1.5, rel=0.3)  # 95 of 100 normal errors


def test_a_class_has_its_own_width_where_it_has_pages_enough():
    def error(settled, pages):
        return shrinking(settled, pages) * np.where(pages % 2, 1.0, 0.1) + np.where(pages % 2, np.log(3.0), 0.0)

    snapshots, settled = crawl(error, 20.0)
    found = snapshots.half_widths(settled, np.exp(error(settled, snapshots.pages)), 1.0)
    assert found.look_up(np.array([3.0]))[0] == pytest.approx(10.0 * found.look_up(np.array([1.01]))[0], rel=0.25)
    assert len(found.by_class) == len(CLASSES) + 1


def test_it_says_nothing_too_early_and_begins_anew_when_the_crawl_outgrew_itself():
    snapshots, settled = crawl(shrinking, SETTLED * 0.9)
    assert snapshots.half_widths(settled, np.ones(len(snapshots.pages)), 1.0) is None
    snapshots, settled = crawl(shrinking, 20.0)
    assert not snapshots.last <= 0.3 < snapshots.next  # the clock counts from the growth on: due
    snapshots.draw(np.arange(7000))
    snapshots.take(0.3, np.ones(len(snapshots.pages)))
    assert not snapshots.times and (snapshots.last, snapshots.next) == (0.0, FIRST)
    assert Snapshots().half_widths(50.0, np.ones(0), 1.0) is None


def test_a_restart_changes_nothing():
    snapshots, settled = crawl(shrinking, 20.0)
    again = Snapshots.load(snapshots.dump())
    now = np.exp(shrinking(settled, snapshots.pages))
    assert (again.last, again.next, again.times) == (snapshots.last, snapshots.next, snapshots.times)
    assert (again.half_widths(settled, now, 1.0).by_class == snapshots.half_widths(settled, now, 1.0).by_class).all()
    assert Snapshots.load(Snapshots().dump()).times == []


def test_half_widths_of_young_pages_and_unmeasured_ones_are_those_of_the_law():
    snapshots, settled = crawl(shrinking, 30.0)
    moved = snapshots.half_widths(settled, np.exp(shrinking(settled, snapshots.pages)), 1.0)
    importance, never = np.full(3, 1.01), np.array([False, False, True])
    found = half_widths(importance, never, settled, np.array([99.0, 4.0, 4.0]), moved)
    assert found[0] == moved.look_up(importance)[0] < found[1] == LAWS["crawl"].width(4.0, importance)[0]
    assert found[2] == LAWS["never"].width(4.0, importance)[0]
    assert (half_widths(importance, never, 1e6, np.full(3, 1e6)) >= FLOOR).all()


def test_classes_cover_all_importances():
    assert class_of(np.array([0.0, 0.15, 0.19, 0.21, 4.9, 5.1, 1e6])).tolist() == [0, 0, 0, 1, 6, 7, 7]
