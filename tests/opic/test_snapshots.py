"""Snapshots of importances: when they are taken, what their movement says, what a restart leaves of them."""

import numpy as np
import pytest

from xyro.opic.confidence import FLOOR, LAWS, half_widths
from xyro.opic.snapshots import KEEP, MIXING, SAMPLE, SMALLEST, Snapshots

PAGES = 3000


class Settling:
    """A crawl whose errors are fade x what it remembers + chance / window; the truth of every page is 1."""

    def __init__(self, remembered=0.3, chance=0.5, pages=PAGES, window=lambda time: min(max(0.8 * time, 4.0), 16.0)):
        self.rng, self.window = np.random.default_rng(3), window
        self.bias = remembered * self.rng.standard_normal(pages)
        self.chance, self.snapshots = chance, Snapshots()
        self.time = self.faded = 0.0

    def live(self, until, step=0.25):
        while self.time < until:
            if self.time >= self.snapshots.next:
                self.snapshots.take(self.time, self.window(self.time), self.importance())
            self.time += step
            self.faded += step * min(1.0 / self.window(self.time), MIXING)
        return self

    def importance(self):
        chance = self.chance * self.rng.standard_normal(len(self.bias)) / self.window(self.time)
        error = np.exp(-self.faded) * self.bias + chance
        return np.exp(error)[self.snapshots.pages(len(self.bias))]

    def half_widths(self):
        now = self.importance()
        found = self.snapshots.half_widths(self.time, self.window(self.time), now)
        return found, float((np.abs(np.log(now)) <= found.look_up(now)).mean())


@pytest.mark.parametrize(("remembered", "chance"), [(0.3, 0.5), (0.3, 0.0), (0.0, 1.0), (0.5, 0.1), (0.1, 1.0)])
@pytest.mark.parametrize("until", [8.0, 20.0, 60.0])
def test_they_hold_95_of_100_pages_whatever_the_errors_are_made_of(remembered, chance, until):
    found, covered = Settling(remembered, chance).live(until).half_widths()
    assert 0.92 <= covered <= 0.99, found


def test_they_narrow_as_the_window_grows_and_what_is_remembered_fades():
    widths = [np.median(Settling(0.5, 0.5).live(until).half_widths()[0].by_class) for until in (8.0, 16.0, 32.0, 64.0)]
    assert widths == sorted(widths, reverse=True) and widths[0] > 4 * widths[-1]


def test_a_class_whose_pages_move_more_has_wider_ones():
    crawl = Settling(0.0, 0.0, window=lambda time: 16.0)
    size = np.where(np.arange(PAGES) % 2, 0.56, 1.44)
    spread = np.where(np.arange(PAGES) % 2, 0.08, 0.01)
    crawl.importance = lambda: size * np.exp(spread * crawl.rng.standard_normal(PAGES))
    found = crawl.live(60.0).half_widths()[0]
    small, large = found.look_up(np.array([0.56, 1.44]))
    assert small == pytest.approx(1.96 * 0.08, rel=0.1) and large == pytest.approx(1.96 * 0.01, rel=0.1)


@pytest.mark.long
def test_pages_that_err_together_are_held_at_95_of_100_moments():
    crawl, shift = Settling(0.0, 0.0, window=lambda time: 16.0), 0.0
    crawl.importance = lambda: np.exp(shift + 0.002 * crawl.rng.standard_normal(PAGES))
    held = []
    for moment in range(1, 200):
        crawl.live(4.0 * moment)
        shift = 0.03 * float(crawl.rng.standard_normal())
        if moment > KEEP:
            held.append(crawl.half_widths()[1])
    assert 0.88 <= np.mean(held) <= 0.98  # 0.67 by the mean of the squared movements alone


def test_a_moment_at_which_herds_are_farther_off_than_mostly_has_wider_ones():
    """100 herds of 30 pages that err together: now twice as far as at all moments before."""
    crawl, herd = Settling(0.0, 0.0, window=lambda time: 16.0), np.arange(PAGES) % 100
    spread, held = [0.03], []
    crawl.importance = lambda: np.exp((spread[0] * crawl.rng.standard_normal(100))[herd])
    for _ in range(10):
        crawl.live(crawl.time + 60.0)
        spread[0] = 0.06
        held.append(crawl.half_widths()[1])
        spread[0] = 0.03
    assert 0.88 <= np.mean(held) <= 0.99  # 0.75 with the chance of the mean moment


def test_few_are_kept_and_the_sample_grows_with_the_crawl():
    snapshots = Snapshots()
    for time in range(40):
        pages = snapshots.pages(500 * (time + 1))
        assert SAMPLE <= len(pages) <= 2 * SAMPLE or snapshots.stride == 1
        snapshots.take(float(time), 4.0, 1.0 + pages)
        assert all(len(kept.values) <= len(pages) for kept in snapshots.kept)
    assert len(snapshots.kept) == KEEP and snapshots.stride == 8
    last = snapshots.kept[-1].values  # thinned ones are of the pages that they say
    assert np.argsort(last, kind="stable").tolist() == list(range(len(last)))


def test_one_is_due_each_quarter_of_a_window_and_at_most_one_a_turnover():
    snapshots = Snapshots()
    snapshots.take(5.0, 16.0, np.ones(9))
    assert snapshots.next == 9.0
    snapshots.take(9.0, 2.0, np.ones(9))
    assert snapshots.next == 10.0


def test_nothing_is_said_of_too_few_pages_or_too_soon():
    assert Snapshots().half_widths(50.0, 4.0, np.ones(0)) is None
    assert Settling(pages=SMALLEST - 1).live(30.0).snapshots.half_widths(30.0, 16.0, np.ones(SMALLEST - 1)) is None
    early = Settling().live(1.0)
    assert early.snapshots.half_widths(1.0, 4.0, early.importance()) is None


def test_pages_that_were_not_measured_yet_say_nothing():
    crawl = Settling()
    some = np.arange(PAGES) % 3 == 0
    whole = crawl.importance
    crawl.importance = lambda: np.where(some, np.nan, whole())
    crawl.live(30.0)
    now = crawl.importance()
    found = crawl.snapshots.half_widths(30.0, 16.0, now)
    covered = np.abs(np.log(now[~some])) <= found.look_up(now[~some])
    assert 0.92 <= covered.mean() <= 0.98


def test_a_restart_goes_on_from_what_was_dumped():
    crawl = Settling().live(30.0)
    again, now = Snapshots.load(crawl.snapshots.dump()), crawl.importance()
    assert (again.stride, again.next) == (crawl.snapshots.stride, crawl.snapshots.next)
    widths = [snapshots.half_widths(31.0, 16.0, now).by_class for snapshots in (again, crawl.snapshots)]
    assert (widths[0] == widths[1]).all()
    assert not Snapshots.load((b"", [1.0], b"")).kept  # of the version that compared halves of the settled time


def test_half_widths_of_pages_not_measured_yet_and_before_anything_moved_are_those_of_the_law():
    moved = Settling().live(30.0).half_widths()[0]
    importance, never = np.array([1.0, 1.0]), np.array([False, True])
    found = half_widths(importance, never, 30.0, np.array([99.0, 4.0]), moved)
    assert found[0] == moved.look_up(importance)[0] and found[1] == LAWS["never"].width(4.0, importance)[1]
    assert half_widths(importance, never, 30.0, np.array([99.0, 4.0]))[0] == LAWS["crawl"].width(30.0, importance)[0]
    assert (half_widths(importance, never, 1e6, np.full(2, 1e6)) >= FLOOR).all()


def test_a_repaired_directory_that_lost_pages_still_has_half_widths():
    crawl = Settling().live(20.0)
    crawl.snapshots.kept[3] = crawl.snapshots.kept[3]._replace(values=crawl.snapshots.kept[3].values[:-4])
    now = crawl.importance()[:-7]
    found = crawl.snapshots.half_widths(crawl.time, crawl.window(crawl.time), now)
    assert found is not None and (found.by_class > 0.0).all()
