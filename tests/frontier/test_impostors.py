"""Answers that are not the page: challenges, suspicion, soft 404s and duplicates, turn by turn and after a restart."""

from collections import Counter

import msgspec
import pytest

from tests.frontier.rig import START, Crawl, report, signature, snapshot, url
from xyro.configs.schema import CrawlSettings, RefreshSettings, Settings
from xyro.metadata.states import State
from xyro.plugins.metrics.read_counts import ReadCounts
from xyro.service.views.summary import summary
from xyro.service.views.why import why

SETTINGS = Settings(CrawlSettings(scope="any"), refresh=RefreshSettings(audit=0.0, least_chance=0.0, min_interval=1.0))
PAGES = [url(0, page) for page in range(1, 13)]
WALL = signature(0xBAD << 80)


def honest(order, now, **fields):
    links = PAGES if order.url == url(0) else [PAGES[order.page % 12], PAGES[(order.page + 5) % 12], url(0), url(1, 7)]
    return report(order, now, links, size=9_000, signature=signature(order.page + 1 << 64), **fields)


def challenged(order, now, vendor="akamai"):
    wall = {"status": 403, "error": "challenge", "vendor": vendor, "signature": b""}
    return report(order, now, **wall, host_next=now + 3_600.0, host_failures=1)


def walled(order, now):
    return report(order, now, size=300, signature=WALL)


def crawled(partitions=1, path=None, **options):
    options = {"settings": SETTINGS, "refreshing": True} | options
    crawl = Crawl.in_memory(partitions, **options) if path is None else Crawl.on_disk(path, partitions, **options)
    crawl.submit(url(0))
    for _ in range(12):
        for order in list(crawl.orders.values()):
            crawl.give(honest(order, crawl.now))
        crawl.deliver_all()
        crawl.turn()
        crawl.now += 1.0
    return crawl


def facts(crawl, urls=PAGES):
    """What must not change while the web lies."""
    found = {}
    for one in urls:
        frontier, page = crawl.page(one)
        row = frontier.partition.row(page)
        children = frontier.partition.children(page)
        found[one] = crawl.state(one), row.changes, row.rate, row.signature, children.tolist()
    return found


def reread(crawl, answer, turns=30, step=120.0):
    """Refresh the pages, every read answered so."""
    for _ in range(turns):
        crawl.now += step
        for order in list(crawl.orders.values()):
            crawl.give(answer(order, crawl.now))
        crawl.deliver_all()
        crawl.turn()


@pytest.mark.parametrize("partitions", [1, 4])
@pytest.mark.parametrize("answer", [challenged, walled])
def test_a_wall_changes_nothing_and_its_host_is_left_alone(partitions, answer):
    crawl = crawled(partitions)
    before, there = facts(crawl), crawl.cash()
    frontier, page = crawl.page(PAGES[0])
    read_counts, walls = [ReadCounts(frontier) for frontier in crawl.frontiers], 0

    def web(order, now):
        nonlocal walls
        walls += "//h0." in order.url
        return answer(order, now) if "//h0." in order.url else honest(order, now)

    reread(crawl, web)
    assert facts(crawl) == before
    counted = sum((counts.reads for counts in read_counts), Counter())
    doubted = counted["doubted", "refresh"]
    assert counted["challenge", "refresh"] == walls - doubted > 0 and (doubted > 0) is (answer is walled)
    host = frontier.partition.hosts_of[page]
    mask = frontier.partition.hosts.masks[host]
    assert mask.vendor == ("akamai" if answer is challenged else "unnamed") and mask.until > crawl.now - 3_600.0
    with crawl.views() as views:
        because = " ".join(why(views, PAGES[0], crawl.now)["because"])
        (row,) = (row for row in views.hosts() if row["host"] == "h0.example")
    assert f"shows a challenge ({mask.vendor})" in because and row["challenge"] == mask.vendor
    assert summary(crawl.crawl_views.statuses(crawl.now))["challenged_hosts"] == {mask.vendor: 1}
    units, known = crawl.cash()
    assert units == known and there[1] <= known


def test_empty_answers_are_told_as_empty():
    crawl = crawled()

    def empty(order, now):
        return report(order, now, status=200, error="challenge", vendor="empty", signature=b"")

    reread(crawl, lambda order, now: empty(order, now) if "//h0." in order.url else honest(order, now))
    assert crawl.frontier.errors.get("empty") and "challenge" not in crawl.frontier.errors
    with crawl.views() as views:
        because = " ".join(why(views, PAGES[0], crawl.now)["because"])
    assert "Host h0.example shows empty answers in place of its pages" in because and "challenge" not in because


def test_the_wait_doubles_and_a_page_ends_it():
    crawl = crawled()
    lie = True

    def web(order, now):
        return walled(order, now) if lie and "//h0." in order.url else honest(order, now)

    reread(crawl, web, 60, 60.0)
    masks = crawl.frontier.partition.hosts.masks
    (host,) = masks
    first = masks[host]
    reread(crawl, web, 120, 120.0)
    assert masks[host].times > first.times >= 1 and masks[host].since == first.since
    assert masks[host].until - crawl.now > 0.0
    lie, crawl.now = False, masks[host].until + 1.0
    reread(crawl, web, 20, 60.0)
    assert masks[host].vendor == "" and masks[host].times == 0
    assert host not in crawl.frontier.scheduler.host_limits.until


def test_pages_of_one_make_whose_numbers_change_are_no_wall():
    """Prices, weather, scores: one skeleton, a body of its own for each page and read, as large as the one before."""
    crawl, reads = crawled(), Counter()

    def prices(order, now):
        reads[order.url] += 1
        page = honest(order, now, skeleton=signature(7 << 96))
        number = (order.page + 1 << 64) + reads[order.url]
        return msgspec.structs.replace(page, signature=signature(number), size=page.size + reads[order.url] % 3)

    reread(crawl, prices, turns=60)
    frontier, _ = crawl.page(PAGES[0])
    assert not any(mask.times for mask in frontier.partition.hosts.masks.values())
    assert not frontier.scheduler.host_limits.until
    assert min(reads[page] for page in PAGES) > 20


def test_it_is_the_same_after_a_restart(tmp_path):
    crawl = crawled(path=tmp_path / "data")
    reread(crawl, lambda order, now: walled(order, now) if "//h0." in order.url else honest(order, now))
    masks = dict(crawl.frontier.partition.hosts.masks)
    snapshot(crawl.frontier)
    now, before = crawl.now, facts(crawl)
    crawl.close()
    again = Crawl.on_disk(tmp_path / "data", settings=SETTINGS, refreshing=True, now=now)
    assert again.frontier.partition.hosts.masks == masks
    assert again.frontier.scheduler.host_limits.challenged.keys() == {h for h, m in masks.items() if m.until > now}
    assert facts(again) == before
    again.close()


def test_a_page_that_was_never_read_stays_unread_and_waits():
    crawl = Crawl.in_memory(settings=SETTINGS)
    crawl.submit(url(3))
    (order,) = crawl.turn()
    crawl.give(challenged(order, crawl.now, "datadome"))
    assert crawl.turn() == [] and crawl.state(url(3)) is State.UNREAD
    crawl.now += 3_000.0
    assert crawl.turn() == []
    crawl.now += 700.0
    assert [order.url for order in crawl.turn()] == [url(3)]
    assert crawl.frontier.reads == 1 and crawl.frontier.read_pages == 0


def test_a_page_that_lost_all_of_a_sudden_is_asked_once_more_and_then_believed():
    crawl = crawled()
    short, asked = PAGES[3], []

    def web(order, now):
        asked.append(order.url)
        if order.url == short:
            return report(order, now, size=100, signature=signature(77 << 64))
        return honest(order, now)

    before = facts(crawl, [short])[short]
    while short not in asked:
        reread(crawl, web, 1)
    assert facts(crawl, [short])[short] == before
    reread(crawl, web, 30)
    assert facts(crawl, [short])[short][1] == 1


@pytest.mark.parametrize("partitions", [1, 4])
def test_a_soft_404_is_asked_for_once_and_settles_like_one(partitions):
    crawl = crawled(partitions)
    lost = [f"http://h0.example/old/{page}.html" for page in range(8)]
    soft = signature(404 << 64)
    asked = []

    def web(order, now):
        if order.probe:
            asked.append(order.url)
        gone = order.probe or "/old/" in order.url
        return report(order, now, size=500, signature=soft) if gone else honest(order, now)

    known = sum(frontier.ledger.known_pages for frontier in crawl.frontiers)
    crawl.answer_probes = web
    crawl.submit(*lost)
    crawl.turn()
    reread(crawl, web, 12)
    assert len(asked) == 1 and asked[0].startswith("http://h0.example/old/xyro-") and asked[0].endswith(".html")
    assert sum(frontier.ledger.known_pages for frontier in crawl.frontiers) == known + len(lost)
    frontier, page = crawl.page(lost[0])
    assert [crawl.state(one) for one in lost] == [State.FAILED] * len(lost)
    assert frontier.partition.row(page).error == "soft-404" and frontier.partition.row(page).gone_since
    assert {crawl.state(one) for one in PAGES} == {State.READ}
    units, expected = crawl.cash()
    assert units == expected


def test_duplicates_stay_pages_and_their_folder_pays_for_them():
    crawl = crawled()
    copies = [f"http://h0.example/copies/{page}.html" for page in range(6)]
    crawl.submit(*copies)
    crawl.turn()
    standing, paid = crawl.frontier.partition.standing, []

    def web(order, now):
        paid.append(standing.of_folder(crawl.page(copies[0])[1]))
        same = "/copies/" in order.url
        return report(order, now, size=900, signature=signature(5 << 64)) if same else honest(order, now)

    reread(crawl, web, 8)
    assert {crawl.state(one) for one in copies} == {State.READ}
    assert len(crawl.probes) == 1 and not crawl.frontier.partition.hosts.masks[0].not_found
    assert crawl.frontier.partition.hosts.masks[0].probed


def test_a_web_that_tells_the_truth_is_never_probed():
    crawl = crawled()
    reread(crawl, honest)
    assert crawl.probes == [] and crawl.frontier.partition.hosts.masks == {} and crawl.now > START
