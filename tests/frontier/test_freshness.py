"""How fresh it is: the model against the rows, audits against the truth of a web that changes, delays, restarts."""

import json
import math
import signal

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from tests.frontier.rig import START, Crawl, failed, links_to, report, signature, snapshot, url
from tests.service.face import LOOPBACK, said, started, until, xyro
from xyro.configs.schema import RefreshSettings, Settings
from xyro.frontier.freshness import OWED, Freshness
from xyro.lab.child import running
from xyro.metadata.states import FOLDER, LEASED, State
from xyro.refresh.calibration import corrected
from xyro.refresh.plan_part import PlanPart
from xyro.refresh.policy import NAMES
from xyro.refresh.rate_belief import RATES
from xyro.service.cli.plan_command import POLICIES, plan, plan_table
from xyro.service.views.forecast import USUAL, PlanQuestion, per_day
from xyro.service.views.forecast import report as plan_report
from xyro.service.views.freshness_report import freshness_report
from xyro.wire.errors import InputError
from xyro.wire.messages import Kind, LoadReport, LoadState
from xyro.wire.text import stamp

DAY = 86_400.0
HOSTS, EACH = 6, 10
PAGES = [url(host, page) for host in range(HOSTS) for page in range(EACH)]


def forecast(crawl, question):
    """The object of `xyro plan --json`."""
    return plan_report(crawl.crawl_views.plan_part(crawl.now), crawl.crawl_views.refresh, question, crawl.now)


def settings(**refresh):
    given = {"time_unit": 600, "bandwidth": "30/day", **refresh}
    return Settings(refresh=RefreshSettings(**given))


class World:
    """60 pages in a ring; page i changes every 0.5 to 20 days, at random, whatever we do. Answers orders at once."""

    def __init__(self, crawl, seed=1):
        self.crawl, rng = crawl, np.random.default_rng(seed)
        self.changes = {
            one: START + np.sort(rng.uniform(0, 400, rng.poisson(400 * rate))) * DAY
            for one, rate in zip(
                PAGES, np.exp(rng.uniform(math.log(0.05), math.log(2), len(PAGES))).tolist(), strict=True
            )
        }
        self.read = {}
        self.bits = []

    def version(self, page):
        return int(np.searchsorted(self.changes[page], self.crawl.now))

    def fresh(self, page):
        return self.read[page] == self.version(page)

    def freshness(self):
        """The truth, by the importances of now."""
        frontier, pages = self.crawl.frontier, [self.crawl.page(page)[1] for page in PAGES]
        return np.average([self.fresh(page) for page in PAGES], weights=frontier.ledger.importance(np.array(pages)))

    def answer(self, order):
        here = PAGES.index(order.url)
        version = self.version(order.url)
        frontier, page = self.crawl.page(order.url)
        if page in frontier.freshness.audits.pending:
            self.bits.append(self.fresh(order.url))
        self.read[order.url] = version
        shown = [PAGES[(here + step) % len(PAGES)] for step in (1, 7)]
        return report(order, self.crawl.now, shown, signature=signature(here * 10_000 + version + 1))

    def live(self, days, step=1800.0, each=lambda: None):
        for _ in range(int(days * DAY / step)):
            for order in list(self.crawl.orders.values()):
                self.crawl.give(self.answer(order))
            self.crawl.deliver_all()
            self.crawl.turn()
            self.crawl.now += step
            each()


def lived(days, crawl=None, **refresh):
    crawl = crawl or Crawl.in_memory(settings=settings(**refresh), refreshing=True)
    world = World(crawl)
    crawl.submit(*PAGES)
    world.live(days)
    return crawl, world


def by_hand(crawl, now):
    """(freshness, changes missed) from all rows, each page believed as those of its folder."""
    fresh = missed = total = 0.0
    for frontier in crawl.frontiers:
        for page in range(frontier.columns.n):
            row = frontier.partition.row(page)
            if row is None or not row.weight:
                continue
            importance, age = row.weight**2 / row.rate, (now - row.last_read) / DAY
            total += importance
            (shares,) = frontier.freshness.fitted.shares([row.belief], [int(frontier.columns[FOLDER][page])])
            fresh += importance * float(shares @ np.exp(-RATES * age))
            missed += row.weight**2 * age
    return fresh / total, missed / total


@pytest.mark.long
@pytest.mark.parametrize("partitions", [1, 3])
def test_the_model_is_that_of_the_rows(partitions):
    crawl, _ = lived(15, Crawl.in_memory(partitions, settings=settings(), refreshing=True))
    said = freshness_report(crawl.crawl_views.statuses(crawl.now), crawl.now)
    fresh, missed = by_hand(crawl, crawl.now)
    assert said["freshness_model"] == pytest.approx(fresh, abs=2e-3)
    assert said["missed_changes"] == pytest.approx(missed, rel=1e-3)


def test_importance_is_overdue_while_what_is_due_is_not_read():
    crawl, _ = lived(15)
    for days in (0.0, 3.0, 40.0):
        crawl.now += days * DAY
        views = crawl.views()
        late = sum(
            row["importance"] * views.mean for row in views.pages() if (row["next_read"] or "9") < stamp(crawl.now)
        )
        assert crawl.frontier.freshness.overdue(crawl.now) == pytest.approx(late, abs=1e-3)
    assert late > 0.0


@pytest.mark.long
def test_audits_take_their_share_and_find_the_truth():
    crawl, world = lived(8, audit=40.0, bandwidth="120/day")
    truth = []
    world.live(16, each=lambda: truth.append((crawl.now, world.freshness())))
    said = freshness_report(crawl.crawl_views.statuses(crawl.now), crawl.now)["audit"]
    audits = crawl.frontier.freshness.audits
    assert audits.made / (crawl.frontier.reads - len(PAGES)) == pytest.approx(0.4, abs=0.05)  # some were out already
    assert len(world.bits) == audits.made + audits.missed
    held = audits.window.whole
    assert said["freshness"] == pytest.approx(np.mean(world.bits[-held.audits :]), abs=0.02)  # weights are about 1
    mean = np.mean([fresh for now, fresh in truth if now >= held.since])
    assert said["freshness"] == pytest.approx(mean, abs=0.06)  # 4 sigma: tests/refresh counts how often it is covered
    assert said["low"] < said["freshness"] < said["high"] and said["high"] - said["low"] < 0.1
    assert said["over_s"] > 5 * DAY and said["missed"] == 0


def test_all_is_off_where_no_audit_is_asked_for():
    crawl, _ = lived(5, audit=0.0)
    audits, said = crawl.frontier.freshness.audits, freshness_report(crawl.crawl_views.statuses(crawl.now), crawl.now)
    assert audits.made == 0 and said["audit"]["freshness"] is None
    meter = crawl.frontier.freshness
    ratio = said["changes_over_believed"]
    assert said["freshness"] == pytest.approx(corrected(said["freshness_model"], ratio), abs=2e-4) and ratio != 1.0
    stale = meter.expectation(meter._now).stale(meter._now)
    assert meter.fresh() == meter.calibration.headline(stale, meter.totals.importance).freshness
    assert ratio == pytest.approx(meter.calibration.kappa, abs=1e-4)


def test_first_reads_owe_no_audit():
    """To read again what was read just now finds it fresh, and says nothing of the time that the window is of."""
    crawl = Crawl.in_memory(settings=settings(audit=50.0, bandwidth=30 / DAY), refreshing=True)
    crawl.submit(*PAGES)
    World(crawl).live(0.1)
    audits = crawl.frontier.freshness.audits
    assert crawl.frontier.reads >= len(PAGES) and audits.made + len(audits.pending) <= 1


@pytest.mark.long
def test_a_model_that_expects_too_little_is_put_right_by_audits():
    """The prior has pages change once a day; none does before its audits have told."""
    crawl, world = lived(1, audit=50.0, bandwidth="120/day")
    world.changes = {page: np.zeros(0) for page in PAGES}
    errors = []
    world.live(8, each=lambda: errors.append(tuple(told_and_model(crawl))))
    told, model = np.array(errors[-len(errors) // 4 :]).T - 1.0
    assert (model < -0.01).all() and np.mean(told) > 0.75 * np.mean(model)
    assert crawl.frontier.freshness.fresh() == pytest.approx(
        freshness_report(crawl.crawl_views.statuses(crawl.now), crawl.now)["freshness"], abs=5e-3
    )


def test_nothing_is_said_of_freshness_before_a_page_was_read_again():
    crawl = Crawl.in_memory(settings=settings())
    read(crawl, url(0), START)
    said = freshness_report(crawl.crawl_views.statuses(crawl.now), crawl.now)
    assert [said[name] for name in ("freshness", "freshness_low", "freshness_high")] == [None] * 3
    assert said["freshness_model"] is not None
    for day in range(1, 9):
        read(crawl, url(0), START + day * DAY, signature=signature(day % 2))
    said = freshness_report(crawl.crawl_views.statuses(crawl.now), crawl.now)
    assert said["freshness_low"] <= said["freshness"] <= said["freshness_high"]


@pytest.mark.parametrize("refreshing", [True, False])
def test_no_reads_are_planned_where_nothing_is_read_again(refreshing):
    """A stopped crawl knows its capacity still: that is no plan."""
    crawl = Crawl.in_memory(settings=settings(bandwidth=0.5), refreshing=refreshing)
    read(crawl, url(0), START)
    said = freshness_report(crawl.crawl_views.statuses(crawl.now), crawl.now)
    assert (said["refresh_per_second"]["planned"] > 0.0) is refreshing


def told_and_model(crawl):
    said = freshness_report(crawl.crawl_views.statuses(crawl.now), crawl.now)
    return said["freshness"], said["freshness_model"]


def test_one_percent_is_the_default_and_what_is_owed_is_bounded():
    assert RefreshSettings().audit == 1.0
    audits = Crawl.in_memory(settings=settings()).frontier.freshness.audits
    audits.answered(100_000)
    assert audits._owed == OWED


def test_a_page_that_is_out_is_audited_by_the_read_under_way():
    crawl, _ = lived(3)
    audits, frontier = crawl.frontier.freshness.audits, crawl.frontier
    crawl.submit(*PAGES)
    crawl.turn()
    assert (frontier.columns["flags"][: len(PAGES)] & LEASED).all()
    audits.answered(10_000)
    assert audits.choose(1000) == [] and audits.pending
    made, out = audits.made, len(audits.pending)
    for order in list(crawl.orders.values()):
        crawl.give(report(order, crawl.now, signature=signature(order.page << 64 | 1)))
    crawl.turn()
    assert audits.made == made + out and not audits.pending


def ordered_for_audit(crawl):
    """An audit that is out."""
    for order in list(crawl.orders.values()):
        crawl.give(report(order, crawl.now))
    crawl.turn()
    frontier = crawl.frontier
    frontier.freshness.audits.answered(100)
    crawl.turn()
    page = next(iter(frontier.freshness.audits.pending))
    return crawl.orders[page]


@pytest.mark.parametrize(
    ("error", "status", "retry", "made", "missed"),
    [("http-404", 404, None, 1, 0), ("http-503", 503, 60.0, 0, 1), ("connect-refused", 0, 60.0, 0, 1)],
)
def test_what_a_failed_audit_says(error, status, retry, made, missed):
    crawl, _ = lived(2)
    audits = crawl.frontier.freshness.audits
    before = audits.made, audits.missed, audits.window.whole.fresh
    order = ordered_for_audit(crawl)
    crawl.give(failed(order, crawl.now, error, status=status, retry_in=retry))
    crawl.turn()
    assert (audits.made - before[0], audits.missed - before[1]) == (made, missed)
    assert audits.window.whole.fresh == before[2]  # a page that is gone has changed


def test_an_audit_that_is_taken_back_counts_for_nothing():
    crawl, _ = lived(2)
    audits, order = crawl.frontier.freshness.audits, ordered_for_audit(crawl)
    made = audits.made
    crawl.frontier.partition.begin()
    crawl.frontier.scheduler.drop(order.page & 0xFFFF_FFFF, order.epoch)
    assert audits.missed == 1 and audits.made == made and order.page not in audits.pending


def test_pages_of_a_held_host_are_missed():
    crawl, _ = lived(2, audit=50.0)
    audits = crawl.frontier.freshness.audits
    for order in list(crawl.orders.values()):
        crawl.give(report(order, crawl.now))
    for host in range(len(crawl.frontier.partition.hosts)):
        crawl.frontier.hold(host, "paused")
    crawl.turn()
    audits.answered(100)
    missed = audits.missed
    crawl.turn()
    assert audits.missed > missed and not audits.pending


def test_where_the_choice_falls_depends_on_importance_alone():
    """Two directories alike but for the age of their pages draw the same pages."""
    drawn = []
    for days in (0.0, 300.0):
        crawl, _ = lived(2)
        for order in list(crawl.orders.values()):
            crawl.give(report(order, crawl.now))
        crawl.turn()
        crawl.now += days * DAY
        audits = crawl.frontier.freshness.audits
        audits.answered(100_000)
        audits.choose(1000)
        drawn.append(dict(audits.pending))
    assert drawn[0].keys() == drawn[1].keys() and len(drawn[0]) > 3


def test_a_page_that_leaves_the_scope_leaves_the_model():
    crawl, _ = lived(3)
    frontier = crawl.frontier
    for order in list(crawl.orders.values()):
        crawl.give(report(order, crawl.now))
    crawl.turn()
    before = frontier.freshness.totals.importance
    page = next(p for p in range(frontier.columns.n) if not frontier.partition.flags[p] & LEASED)
    row = frontier.partition.row(page)
    frontier.partition.begin()
    frontier.scheduler.schedule.retire(page)
    frontier.partition.set_state(page, State.OUT)
    frontier.freshness.close(0, crawl.now)
    assert frontier.freshness.totals.importance == pytest.approx(before - row.weight**2 / row.rate, abs=1e-6)
    assert frontier.freshness._importance(page, page + 1)[0] == 0.0


# -- delays ------------------------------------------------------------------------------------------------------------


def modified(when):
    from email.utils import formatdate

    return formatdate(when, usegmt=True)


def read(crawl, one, now, **fields):
    crawl.now = now
    crawl.submit(one)
    crawl.turn()
    crawl.give(report(crawl.order(one), now, **fields))
    crawl.turn()


def test_delays_of_changes_and_births():
    crawl = Crawl.in_memory(settings=settings())
    first, second, third = url(0), url(1), url(2)
    read(crawl, first, START, last_modified=modified(START - 9 * DAY))  # born before there was a crawl
    read(crawl, second, START + DAY, last_modified=modified(START + DAY - 3600))
    said = freshness_report(crawl.crawl_views.statuses(crawl.now), crawl.now)
    assert said["discovery_delay"]["count"] == 1 and said["discovery_delay"]["median_s"] == pytest.approx(3600, rel=0.1)
    read(crawl, first, START + 2 * DAY, signature=signature(99), last_modified=modified(START + 2 * DAY - 600))
    said = freshness_report(crawl.crawl_views.statuses(crawl.now), crawl.now)
    assert said["detection_delay"]["count"] == 1 and said["detection_delay"]["median_s"] == pytest.approx(600, rel=0.1)
    read(crawl, third, START + 2 * DAY, last_modified="yesterday, or so")
    read(crawl, third, START + 4 * DAY, signature=signature(98), last_modified=modified(START))  # older than the read
    said = freshness_report(crawl.crawl_views.statuses(crawl.now), crawl.now)["detection_delay"]
    assert said["count"] == 2 and 500 < said["median_s"] < 3600 < said["p90_s"] <= 2 * DAY


@pytest.mark.parametrize(
    ("form", "dated", "modified_ago", "delay"),
    [
        ("atom", 7200.0, None, 7200.0),  # what a feed says of a page without Last-Modified
        ("sitemap", 7200.0, 600.0, 7200.0),  # the earlier of both
        ("rss", 600.0, 7200.0, 7200.0),
        ("sitemap", -7200.0, None, None),  # of the future: no date
        ("sitemap", 30 * DAY, None, None),  # born before there was a crawl
    ],
)
def test_a_page_is_as_old_as_a_feed_or_sitemap_says(form, dated, modified_ago, delay):
    crawl = Crawl.in_memory(settings=settings())
    feed, page = url(0), url(0, 1)
    read(crawl, url(1), START)
    crawl.now = START + DAY
    crawl.submit(feed)
    crawl.turn()
    order = crawl.order(feed)
    crawl.give(report(order, crawl.now, [], loading=True, kind=Kind.XML))
    claims = ((page, crawl.now - dated),)
    crawl.load(
        LoadReport(order.page, feed, order.epoch, LoadState.LOADED, form, links=links_to([page]), modified=claims)
    )
    given = [*crawl.turn(), *crawl.turn()]
    (found,) = [one for one in given if one.url == page]
    fields = {} if modified_ago is None else {"last_modified": modified(crawl.now - modified_ago)}
    crawl.give(report(found, crawl.now, **fields))
    crawl.turn()
    told = freshness_report(crawl.crawl_views.statuses(crawl.now), crawl.now)["discovery_delay"]
    assert told["count"] == (delay is not None)
    assert delay is None or told["median_s"] == pytest.approx(delay, rel=0.1)


# -- restarts ---------------------------------------------------------------------------------------------------------


def test_it_goes_on_after_a_restart_as_if_nothing_had_been(tmp_path):
    crawl, _ = lived(5, Crawl.on_disk(tmp_path / "a", settings=settings(audit=20.0), refreshing=True))
    said, dumped = freshness_report(crawl.crawl_views.statuses(crawl.now), crawl.now), crawl.frontier.freshness.dump()
    owed = crawl.frontier.freshness.audits.window.dump()
    snapshot(crawl.frontier)
    crawl.close()
    again = Crawl.on_disk(tmp_path / "a", settings=settings(audit=20.0), refreshing=True, now=crawl.now)
    assert again.frontier.freshness.dump() == dumped and again.frontier.freshness.audits.window.dump() == owed
    spent = {"refresh_per_second", "execution"}  # of each process
    assert {
        k: v for k, v in freshness_report(again.crawl_views.statuses(crawl.now), crawl.now).items() if k not in spent
    } == {k: v for k, v in said.items() if k not in spent}
    again.close()


def test_a_directory_from_before_is_counted_once(tmp_path):
    """Its dump has sums by the pages' own priors, and a kappa that says how far these are off."""
    crawl, _ = lived(5, Crawl.on_disk(tmp_path / "a", settings=settings(), refreshing=True))
    meter = crawl.frontier.freshness
    wanted = freshness_report(crawl.crawl_views.statuses(crawl.now), crawl.now)
    old = {name: value for name, value in meter.dump().items() if name not in ("totals", "compared", "refilled")}
    old["calibration"] = {**old["calibration"], "octaves": []}
    again = Freshness(meter.partition, meter.ledger, meter.bandwidth, settings().refresh, meter.hooks)
    for _ in range(2):
        again.recover({**old, "expected": {}}, crawl.now)
        assert again.totals.dump() == meter.totals.dump() and again.sample.pages == meter.sample.pages
        told = again.expectation(crawl.now).freshness(crawl.now)
        assert told == pytest.approx(wanted["freshness_model"], abs=0.02) and again.calibration.kappa == 1.0
    crawl.close()


def test_pages_of_the_sample_that_move_before_a_restart_has_looked_at_them(tmp_path):
    crawl, world = lived(5, Crawl.on_disk(tmp_path / "a", settings=settings(), refreshing=True))
    crawl.frontier.freshness.sample.size = 12
    world.live(3)
    assert crawl.frontier.freshness.sample.threshold > 0.0
    crawl.turn()
    snapshot(crawl.frontier)
    crawl.close()
    again = Crawl.on_disk(tmp_path / "a", settings=settings(), refreshing=True, now=crawl.now)
    sample, partition = again.frontier.freshness.sample, again.frontier.partition
    assert set(sample.unread) == set(crawl.frontier.freshness.sample.pages) and not sample.pages
    sample.size, (gone, dated) = 12, sample.unread[:2]
    partition.begin()
    again.frontier.scheduler.schedule.retire(gone)
    row = partition.row(dated)
    again.frontier.scheduler.schedule.rewrite(dated, row, msgspec.structs.replace(row, weight=3.0 * row.weight))
    again.frontier.freshness.close(0, again.now)
    partition.seal({"node": again.frontier.dump()})
    again.frontier.freshness.expectation(again.now)
    wanted = {page: each for page, each in crawl.frontier.freshness.sample.pages.items() if page not in (gone, dated)}
    assert {page: each for page, each in sample.pages.items() if page != dated} == wanted
    assert sample.pages[dated].page.weight == pytest.approx(3.0 * row.weight)
    again.close()


def test_a_crawl_that_shrinks_has_its_sample_filled_again():
    crawl, _ = lived(5)
    meter = crawl.frontier.freshness
    whole = set(meter.sample.pages)
    meter.sample.size = 4
    meter.sample.threshold = 1e6
    meter.sample.pages = {}
    assert meter.fresh() is None, "nothing is known, and not that all is fresh"
    crawl.turn()
    crawl.now += 60.0
    crawl.turn()
    assert set(meter.sample.pages) <= whole and 4 <= len(meter.sample.pages) <= 8
    assert meter._refilled is None and 0.0 < meter.fresh() < 1.0


# -- plan -------------------------------------------------------------------------------------------------------------


def test_what_a_target_takes_gives_the_target():
    crawl, _ = lived(15)
    for name in ("obsolescence", "freshness", "uniform"):
        row = forecast(crawl, PlanQuestion(target=0.8, policies=(name,)))["rows"][0]
        assert row["freshness"] == pytest.approx(0.8, abs=1e-3)
        back = forecast(crawl, PlanQuestion(bandwidth=f"{row['reads_per_day']}/day", policies=(name,)))["rows"][0]
        assert back["freshness"] == pytest.approx(0.8, abs=1e-3)
        assert back["used_per_day"] == pytest.approx(0.99 * row["reads_per_day"], rel=1e-3)  # the rest audits


def test_the_next_days_begin_with_the_copies_as_they_are():
    crawl, _ = lived(15)
    freshness = crawl.frontier.freshness
    stale = freshness.expectation(crawl.now).stale(crawl.now)
    now = freshness.calibration.headline(stale, freshness.totals.importance)
    little, much = (forecast(crawl, PlanQuestion(bandwidth=each))["rows"][0] for each in ("1/day", "100000/day"))
    assert little["freshness"] < little["next_week"] < little["next_day"] < now.freshness
    assert now.freshness < much["next_day"] < much["next_week"] <= much["freshness"] + 0.02
    part = crawl.crawl_views.plan_part(crawl.now)
    told = PlanPart.load(json.loads(json.dumps(part.dump())))
    assert plan_report(told, crawl.crawl_views.refresh, PlanQuestion(), crawl.now)["rows"] == [
        {name: pytest.approx(value, abs=2e-3) for name, value in row.items()}
        for row in forecast(crawl, PlanQuestion())["rows"]
    ]


def test_more_bandwidth_is_fresher_and_the_freshness_policy_freshest():
    crawl, _ = lived(15)
    said = forecast(crawl, PlanQuestion(policies=("all",)))
    assert said["pages"] == len(PAGES) == crawl.crawl_views.plan_part(crawl.now).pages.pages
    by_policy = {name: [row for row in said["rows"] if row["policy"] == name] for name in NAMES}
    for rows in by_policy.values():
        assert len(rows) == len(USUAL)
        assert [row["freshness"] for row in rows] == sorted(row["freshness"] for row in rows)
    for at in range(len(USUAL)):
        assert by_policy["freshness"][at]["freshness"] == max(rows[at]["freshness"] for rows in by_policy.values())
        missed = {name: rows[at]["obsolescence"] for name, rows in by_policy.items()}
        assert missed["obsolescence"] == min(value for value in missed.values() if value is not None)


def test_a_target_that_no_bandwidth_reaches():
    crawl, _ = lived(10, min_interval=60 * DAY)
    found = forecast(crawl, PlanQuestion(target=0.999))
    (row,) = found["rows"]
    assert row["reads_per_day"] is None and row["freshness"] < 0.999
    assert "not reached" in plan_table(found)


@pytest.mark.parametrize("given", ["0", "-1", "nan", "inf", "4000/week", "a lot", "", "1/0"])
def test_bandwidths_that_are_none(given):
    with pytest.raises(InputError, match="bandwidth"):
        PlanQuestion(bandwidth=given)


def test_bandwidths():
    assert per_day("2") == per_day("2/s") == 2 * DAY and per_day("4000/day") == 4000 and per_day("3 / h") == 72


@pytest.mark.parametrize("asked", [{"target": 0.0}, {"target": 1.0}, {"target": math.nan}, {"policies": ("best",)},
                                   {"target": 0.5, "bandwidth": "3"}])  # fmt: skip
def test_questions_that_make_no_sense(asked):
    with pytest.raises(InputError, match="plan:"):
        PlanQuestion(**asked)


def test_plan_and_status_of_a_crawl_that_runs_and_of_one_that_does_not(tmp_path):
    data, asked = tmp_path / "data", ("plan", "--target", "0.7", "--policy", "mixed", "--policy", "uniform", "--data")
    given = ("--refresh", "--config", refreshing(tmp_path))
    with running(pages=120, hosts=3, seed=3) as web, started("crawl", web.entry, *LOOPBACK, *given, data=data) as crawl:
        until(lambda: said("status", "--data", data)["reads"] > 250)
        alive, status = said(*asked, data), said("status", "--data", data)
        crawl.send_signal(signal.SIGINT)
        crawl.wait(30)
    stopped = said(*asked, data)
    for answered in (alive, stopped):
        assert [row["policy"] for row in answered["rows"]] == ["mixed", "uniform"]
        assert all(row["freshness"] == pytest.approx(0.7, abs=1e-3) for row in answered["rows"])
    assert status["freshness"] > 0.9 and status["audit"]["audits"] > 0 and status["refresh_per_second"]["spent"] > 0
    later = said("status", "--data", data)
    assert later["freshness"] <= status["freshness"] + 1e-3 and later["audit"]["audits"] >= status["audit"]["audits"]
    assert "uniform" in xyro(*asked, data).stdout and "over " in xyro("plan", "--data", data).stdout


def refreshing(path):
    """Settings of a crawl that audits every fifth of its reads."""
    file = path / "given.toml"
    file.write_text("[refresh]\naudit = 20.0\n")
    return file


def test_nothing_to_plan_for():
    with pytest.raises(InputError, match="no page"):
        forecast(Crawl.in_memory(settings=settings()), PlanQuestion())


def test_the_command_offers_every_policy():
    assert set(POLICIES) == {*NAMES, "all"}
    assert CliRunner().invoke(plan, ["--policy", "best"]).exit_code == 2
