"""Snapshots of importances: when they are taken, what their movement says, what a restart leaves of them."""

import numpy as np
import pytest

from xyro.opic.confidence import FLOOR, NEVER, TRUSTED, half_widths, young_width
from xyro.opic.snapshots import KEEP, MIXING, SAMPLE, SMALLEST, HalfWidths, Snapshots

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
        return found, float((np.abs(np.log(now)) <= widths(found, now)).mean())


def widths(found, importance):
    """Of the sample's own pages."""
    return found.look_up(found.stride * np.arange(len(importance)), importance)


@pytest.mark.parametrize(("remembered", "chance"), [(0.3, 0.5), (0.3, 0.0), (0.0, 1.0), (0.5, 0.1), (0.1, 1.0)])
@pytest.mark.parametrize("until", [8.0, 20.0, 60.0])
def test_they_hold_95_of_100_pages_whatever_the_errors_are_made_of(remembered, chance, until):
    found, covered = Settling(remembered, chance).live(until).half_widths()
    assert covered >= 0.87, found  # where each page errs by itself; on real graphs: docs/figures.md


def test_they_narrow_as_the_window_grows_and_what_is_remembered_fades():
    squares = [np.median(Settling(0.5, 0.5).live(until).half_widths()[0].squares) for until in (8.0, 16.0, 32.0, 64.0)]
    assert squares == sorted(squares, reverse=True) and squares[0] > 16 * squares[-1]


def test_a_page_that_moves_more_has_a_wider_one_whatever_its_importance():
    """Herds of 20 pages, found together and alike; every second herd errs eight times as far as the others."""
    crawl, herd = Settling(0.0, 0.0, window=lambda time: 16.0), np.arange(PAGES) // 20
    spread, size = np.where(herd % 2, 0.08, 0.01), np.exp(0.4 * np.sin(7.0 * herd))
    crawl.importance = lambda: size * np.exp(spread * crawl.rng.standard_normal(PAGES))
    found, now = crawl.live(60.0).half_widths()[0], crawl.importance()
    wide = widths(found, now)
    assert np.median(wide[herd % 2 == 1]) > 2.5 * np.median(wide[herd % 2 == 0])
    held = np.abs(np.log(now / size)) <= wide
    assert held[herd % 2 == 1].mean() > 0.88 and held[herd % 2 == 0].mean() > 0.88


def test_pages_beside_the_sample_have_the_widths_of_pages_found_with_them_that_are_alike():
    found = HalfWidths(4, np.log([1.0, 2.0, 1.0, 1.0, 2.0, np.inf]), np.array([1.0, 9.0, 1.0, 1.0, 9.0, 100.0]))
    one, two = found.look_up(np.array([9, 9]), np.array([1.1, 2.0]))
    assert one == 1.0 and two == pytest.approx(np.sqrt((9.0 + 9.0 + 1.0) / 3.0)), "never one that was not measured"
    lone = HalfWidths(4, np.zeros(1), np.array([4.0]))
    assert lone.look_up(np.array([0, 9_999]), np.array([5.0, 1.0])).tolist() == [2.0, 2.0]


@pytest.mark.long
def test_pages_that_err_together_are_held_at_most_moments():
    crawl, shift = Settling(0.0, 0.0, window=lambda time: 16.0), 0.0
    crawl.importance = lambda: np.exp(shift + 0.002 * crawl.rng.standard_normal(PAGES))
    held = []
    for moment in range(1, 200):
        crawl.live(4.0 * moment)
        shift = 0.03 * float(crawl.rng.standard_normal())
        if moment > KEEP:
            held.append(crawl.half_widths()[1])
    assert 0.8 <= np.mean(held) <= 0.98  # 0.62 by the mean of the squared movements alone


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
    covered = (np.abs(np.log(now)) <= widths(found, now))[~some]
    assert 0.92 <= covered.mean() <= 0.98


def test_a_restart_goes_on_from_what_was_dumped():
    crawl = Settling().live(30.0)
    again, now = Snapshots.load(crawl.snapshots.dump()), crawl.importance()
    assert (again.stride, again.next) == (crawl.snapshots.stride, crawl.snapshots.next)
    squares = [snapshots.half_widths(31.0, 16.0, now).squares for snapshots in (again, crawl.snapshots)]
    assert (squares[0] == squares[1]).all()
    assert not Snapshots.load((b"", [1.0], b"")).kept  # of the version that compared halves of the settled time


def test_half_widths_of_pages_not_measured_yet_and_before_anything_moved_are_told_by_the_clock():
    moved = Settling().live(30.0).half_widths()[0]
    pages, importance, never = np.arange(2), np.ones(2), np.array([False, True])
    age = np.array([99.0, 4.0])
    found = half_widths(pages, importance, never, 40.0, 30.0, age, moved)
    own = moved.look_up(pages, importance)[0]
    assert found[0] == pytest.approx(own, rel=0.05) and found[1] == NEVER.width(4.0, importance)[1]
    assert half_widths(pages, importance, never, 40.0, 30.0, age)[0] == young_width(40.0, 30.0)
    assert (half_widths(pages, importance, never, 1e6, 1e6, np.full(2, 1e6)) >= FLOOR).all()


def test_while_a_crawl_outgrows_itself_the_clock_is_the_witness_and_of_a_settled_one_its_movement():
    moved, pages = Settling().live(30.0).half_widths()[0], np.arange(3)
    old, none = np.full(3, 99.0), np.zeros(3, np.bool_)
    own = moved.look_up(pages, np.ones(3))
    young, even, late = (half_widths(pages, np.ones(3), none, 8.0, s, old, moved) for s in (0.0, TRUSTED, 99.0))
    np.testing.assert_allclose(young, young_width(8.0, 0.0))
    np.testing.assert_allclose(even, np.sqrt(young_width(8.0, TRUSTED) * own))
    np.testing.assert_allclose(late, own, rtol=0.01)
    born = half_widths(pages, np.ones(3), none, 40.0, 30.0, np.array([0.0, TRUSTED, 30.0]), moved)
    assert born[0] == young_width(40.0, 0.0) and born[0] > 2 * born[1] > 4 * born[2]


def test_a_young_crawl_is_least_sure_at_first_and_while_it_grows_late():
    first, read_once, late = (float(young_width(time, 0.5)) for time in (0.5, 2.8, 9.0))
    assert 0.4 < read_once < 0.6 and first > 2 * read_once and late > 1.5 * read_once
    assert young_width(50.0, 1.0) == young_width(10.0, 1.0) and young_width(0.0, 0.0) <= 1.5
    assert (np.diff(young_width(8.0, np.arange(20.0))) < 0).all() and young_width(8.0, 99.0) == 0.05


def test_a_repaired_directory_that_lost_pages_still_has_half_widths():
    crawl = Settling().live(20.0)
    crawl.snapshots.kept[3] = crawl.snapshots.kept[3]._replace(values=crawl.snapshots.kept[3].values[:-4])
    now = crawl.importance()[:-7]
    found = crawl.snapshots.half_widths(crawl.time, crawl.window(crawl.time), now)
    assert found is not None and len(found.squares) == len(now) and (found.squares > 0.0).all()
