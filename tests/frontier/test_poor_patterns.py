"""Patterns that breed get a small share of the reads; honest ones, and crawls that nobody refreshes, lose nothing."""

from __future__ import annotations

import random
from itertools import count

import numpy as np
import pytest

from tests.frontier.rig import Crawl, report, signature, url
from tests.frontier.test_waiting_links import crawled, settings
from xyro.configs.load import SERVE, load
from xyro.frontier.ledger import LINKS_AT_ONCE
from xyro.frontier.waiting_links import SLICE_PAUSE
from xyro.metadata.hosts import CLOSED, COPIES, MENU, POOR, POOR_WORTH, QUERIES, TRIAL
from xyro.metadata.states import State
from xyro.service.views.why import why
from xyro.wire.messages import Priority

DAY = 86_400.0
HOME = url(0)
SERVING = load((SERVE,), {}, {})


def month(number):
    return f"http://h0.example/calendar?month={number}"


def answered(crawl, links, reads, location=lambda target: ""):
    """Answer orders until there were so many; the URLs that were ordered."""
    read, numbers = [], count()
    while len(read) < reads:
        orders = crawl.turn()
        crawl.deliver_all()
        for order in orders:
            read.append(order.url)
            if target := location(order.url):
                crawl.answer(order, status=302, location=target)
            else:
                crawl.answer(order, links(order.url), signature=signature(next(numbers)))
        crawl.now += 1.0
    return read


def calendar(target):
    if target == HOME:
        return [url(0, page) for page in range(1, 60)] + [month(0)]
    if "month" in target:
        number = int(target.rpartition("=")[2])
        return [HOME, *(month(number + step) for step in (-12, -1, 1, 12))]
    return [HOME]


@pytest.mark.long
@pytest.mark.parametrize("partitions", [1, 3])
def test_a_calendar_gets_a_small_share_of_what_a_daemon_discovers(partitions):
    crawl = Crawl.in_memory(partitions, refreshing=True)
    crawl.submit(HOME)
    read = answered(crawl, calendar, 3_000)
    months = {target for target in read if "month" in target}
    assert TRIAL / 2 < len(months) < TRIAL + 1.5 * POOR * len(read)
    assert {url(0, page) for page in range(60)} <= set(read)
    assert crawl.audit()["ok"]


def test_session_ids_get_a_small_share_though_each_product_has_a_path_of_its_own():
    sessions = count()

    def shop(target):
        if target == HOME:
            return [*(url(0, page) for page in range(1, 60)), "http://h0.example/shop/p0.html"]
        if "/shop/" not in target:
            return [HOME]
        session = next(sessions)
        return [HOME, *(f"http://h0.example/shop/p{product}.html?sid={session}" for product in range(20))]

    crawl = Crawl.in_memory()
    crawl.submit(HOME)
    read = answered(crawl, shop, 300)
    first = read.index(max(read, key=lambda target: read.index(target) if "sid" not in target else 0))
    assert sum("sid" in target for target in read[:first]) < 4 * TRIAL
    assert {url(0, page) for page in range(60)} <= set(read)


def test_patterns_that_are_met_on_each_other_alone_get_a_small_share_when_they_make_pages_for_any_name():
    sessions = count(1)

    def site(target):
        if target.startswith("http://h0.example/"):
            return [HOME, *(url(0, page) for page in range(1, 60)), "http://h1.example/"]
        session = next(sessions)
        return [f"http://h1.example/s{session}/index.html", f"http://h1.example/index.html?sid={session}"]

    crawl = Crawl.in_memory(refreshing=True, settings=settings())
    crawl.answer_probes = lambda order, now: report(order, now, site(order.url))
    crawl.submit(HOME)
    read = answered(crawl, site, 1_500)
    assert len(crawl.probes) == 2
    assert sum("h1" in target for target in read[500:]) <= 1.5 * POOR * 1_000  # what was under way is read
    assert crawl.audit()["ok"]


def test_patterns_that_are_met_on_each_other_are_not_poor_where_an_invented_name_leads_nowhere():
    def thread(number):
        return f"http://h0.example/thread?t={number}"

    def user(number):
        return f"http://h0.example/user?u={number}"

    def forum(target):
        name, _, number = target.rpartition("=")
        if target == HOME:
            return [thread(0), *(url(0, page) for page in range(1, 30))]
        if not number.isdigit():
            return []
        return list(map(user if "thread" in name else thread, range(2 * int(number), 2 * int(number) + 3)))

    crawl = Crawl.in_memory()
    crawl.submit(HOME)
    answered(crawl, forum, 600)
    assert sorted(order.url.partition("=")[0] for order in crawl.probes) == [thread("")[:-1], user("")[:-1]]
    standing = crawl.frontier.partition.standing
    assert not any(standing.is_poor(crawl.page(each)[1]) for each in (thread(9), user(9)))


def test_a_page_that_shows_other_urls_each_time_speaks_for_them_once():
    sessions = count()

    def shop(target):
        if target == HOME:
            return [HOME, *(f"http://h0.example/buy?sid={next(sessions)}" for _ in range(20))]
        return [HOME]

    crawl = Crawl.in_memory(refreshing=True)
    crawl.submit(HOME)
    answered(crawl, shop, 100)
    frontier, page = crawl.page("http://h0.example/buy?sid=0")
    assert next(sessions) > 40
    assert frontier.partition.standing.fed[frontier.columns["folder"][page]] == 20


def test_a_host_with_nothing_but_poor_unread_pages_is_not_read_ahead_for_gamma():
    """One host has 30 pages, the other redirects for ever: gamma keeps neither's known pages before their time."""
    other = "http://h1.example/"

    def onward(target):
        if not target.startswith(other):
            return ""
        return f"{other}r?n={int(target.rpartition('=')[2]) + 1 if '=' in target else 0}"

    def links(target):
        return [HOME, other, *(url(0, page) for page in range(1, 30))]

    crawl = Crawl.in_memory(refreshing=True, settings=settings())
    crawl.submit(HOME)
    answered(crawl, links, 400, onward)
    hosts = crawl.frontier.partition.hosts
    assert hosts.barren[hosts.numbers["h1.example"]]
    assert not hosts.barren[hosts.numbers["h0.example"]]
    assert hosts.waiting[hosts.numbers["h1.example"]]
    assert not crawl.frontier.scheduler.look_ahead.stock[hosts.numbers["h1.example"]]


def test_a_crawl_that_is_not_refreshed_reads_the_whole_of_a_finite_pattern():
    pages = [f"http://h0.example/wiki?page={number}" for number in range(200)]
    links = {HOME: pages[:1], **{page: pages[3 * i + 1 : 3 * i + 4] for i, page in enumerate(pages)}}
    crawl = Crawl.in_memory()
    crawl.submit(HOME)
    assert set(crawled(crawl, links, 400)) == {HOME, *pages}


def test_a_pattern_that_other_pages_lead_to_is_not_poor():
    topics = [f"http://h0.example/topic?t={number}" for number in range(100)]
    links = {HOME: topics[:50], **dict.fromkeys(topics[:3], topics[50:])}
    crawl = Crawl.in_memory()
    crawl.submit(HOME)
    crawled(crawl, links, 100)
    frontier, page = crawl.page(topics[-1])
    standing = frontier.partition.standing
    folder = frontier.columns["folder"][page]
    assert standing.fed[folder] == 50
    assert standing.bred[folder] >= 50 > TRIAL
    assert not standing.poor(np.array([page]))[0]


@pytest.mark.long
def test_endless_redirects_run_into_their_share():
    def onward(target):
        return f"http://h0.example/r?n={int(target.rpartition('=')[2]) + 1}" if "/r?" in target else ""

    def links(target):
        return [url(0, page) for page in range(1, 60)] + ["http://h0.example/r?n=0"] if target == HOME else [HOME]

    crawl = Crawl.in_memory(refreshing=True)
    crawl.submit(HOME)
    read = answered(crawl, links, 2_000, onward)
    assert len({target for target in read if "/r?" in target}) < 10 + 2 * POOR * len(read)
    assert crawl.audit()["ok"]


@pytest.mark.long
def test_redirects_from_partition_to_partition_run_into_their_share_as_well():
    """A ring of hosts, each of which sends to the next one: every hop is met by another partition."""

    def onward(target):
        host, _, rest = target.removeprefix("http://r").partition(".")
        if not target.startswith("http://r"):
            return ""
        number = int(rest.rpartition("=")[2]) + 1 if "=" in rest else 1
        return f"http://r{(int(host) + 1) % 5}.example/r?n={number}"

    def links(target):
        rest = [url(host, page) for host in range(5) for page in range(12)]
        return [*rest, *(f"http://r{number}.example/" for number in range(5))]

    crawl = Crawl.in_memory(4, refreshing=True, settings=settings())
    crawl.submit(HOME)
    read = answered(crawl, links, 1_500, onward)
    assert sum(target.startswith("http://r") for target in read) < 100 + 2 * POOR * len(read)
    assert {url(host, page) for host in range(5) for page in range(12)} <= set(read)
    assert crawl.audit()["ok"]


def test_what_was_learned_of_patterns_is_stored(tmp_path):
    crawl = Crawl.on_disk(tmp_path / "c")
    crawl.submit(HOME)
    answered(crawl, calendar, 100)
    crawl.turn()
    standing = crawl.frontier.partition.standing
    (folder,) = (standing.bred[QUERIES:].nonzero()[0] + QUERIES).tolist()
    learned = int(standing.bred[folder]), int(standing.fed[folder])
    assert learned[0] > TRIAL
    crawl.close()
    again = Crawl.on_disk(tmp_path / "c")
    standing = again.frontier.partition.standing
    assert (int(standing.bred[folder]), int(standing.fed[folder])) == learned
    again.close()


def lost_and_found(fresh, pages=60):
    """Links of a site: honest pages in a tree, and /lost/, which answers any name with `fresh()`."""

    def links(target):
        if target == HOME:
            return [*(url(0, page) for page in range(1, 5)), "http://h0.example/lost/x.html"]
        if "/lost/" in target:
            return [HOME, *fresh()]
        number = int(target.rpartition("/p")[2].removesuffix(".html"))
        return [HOME, *(url(0, page) for page in range(4 * number + 1, 4 * number + 5) if page < pages)]

    return links


def test_a_folder_that_makes_pages_for_any_name_gets_a_small_share():
    names = count()
    links = lost_and_found(lambda: [f"http://h0.example/lost/{next(names)}.html" for _ in range(5)])
    crawl = Crawl.in_memory(refreshing=True)
    crawl.answer_probes = lambda order, now: report(order, now, links(order.url) if "/lost/" in order.url else [])
    crawl.submit(HOME)
    read = answered(crawl, links, 1_500)
    lost = [target for target in read if "/lost/" in target]
    assert len([probe for probe in crawl.probes if "/lost/xyro-" in probe.url]) == 1
    assert len(lost) < 2 * TRIAL + 2 * POOR * len(read)
    assert {url(0, page) for page in range(60)} <= set(read)
    frontier, page = crawl.page("http://h0.example/lost/x.html")
    assert frontier.partition.standing.is_poor(page)
    assert not frontier.partition.standing.is_poor(crawl.page(HOME)[1]), "its pages breed, but not from any name"
    assert any(
        "nobody can have made" in line
        for line in why(crawl.views(), "http://h0.example/lost/x.html", crawl.now)["because"]
    )
    assert crawl.audit()["ok"]


@pytest.mark.parametrize("shown", ["missing", "known"])
def test_a_folder_that_breeds_and_makes_nothing_of_any_name_is_honest(shown):
    pages = [f"http://h0.example/book/c{number}.html" for number in range(200)]
    follow = {page: pages[3 * i + 1 : 3 * i + 4] for i, page in enumerate(pages)}

    def links(target):
        return [HOME, pages[0]] if target == HOME else [HOME, *follow[target]]

    crawl = Crawl.in_memory(refreshing=True)
    if shown == "known":
        crawl.answer_probes = lambda order, now: report(order, now, [HOME, pages[0]], signature=signature(9 << 64))
    crawl.submit(HOME)
    read = answered(crawl, links, 450)
    assert [probe.url.rpartition("/")[0] for probe in crawl.probes] == ["http://h0.example/book"]
    assert not crawl.frontier.partition.standing.poor(np.arange(crawl.frontier.columns.n)).any()
    assert set(pages) <= set(read)


def fresh_names():
    names = count()
    return lambda target: [f"http://h0.example/lost/{next(names)}.html" for _ in range(5)]


def numbered(steps):
    """Pages by number, each of which shows those so many numbers away."""

    def links(target):
        number = int(target.rpartition("/")[2].removesuffix(".html")) if "/lost/x" not in target else 24_000
        return [f"http://h0.example/lost/{number + step}.html" for step in steps]

    return links


def way_down(target):
    """Names within names, with the way down to each page."""
    name = target.rpartition("/")[2].removesuffix(".html")
    above = [f"http://h0.example/lost/{name[:stop]}.html" for stop in range(1, len(name))]
    return above + [f"http://h0.example/lost/{name}{letter}.html" for letter in "abc"]


@pytest.mark.long
@pytest.mark.parametrize(
    "onward", [fresh_names(), numbered((-12, -1, 1, 12)), way_down], ids=["tree", "months", "down"]
)
def test_a_folder_that_leads_nowhere_but_on_gets_a_small_share_though_it_knows_its_names(onward):
    crawl = Crawl.in_memory(refreshing=True)
    crawl.submit(HOME)
    below = lost_and_found(list)

    def links(target):
        return [HOME, *onward(target)] if "/lost/" in target else below(target)

    read = answered(crawl, links, 2_400)
    assert crawl.probes, "it was asked for a name that nobody can have made, and has none"
    assert {url(0, page) for page in range(60)} <= set(read)
    frontier, page = crawl.page("http://h0.example/lost/x.html")
    assert frontier.partition.standing.is_poor(page)
    read = answered(crawl, links, 600)
    assert 0 < sum("/lost/" in target for target in read) < 2 * POOR * len(read)
    assert any(
        "lead on to more of them" in line
        for line in why(crawl.views(), "http://h0.example/lost/x.html", crawl.now)["because"]
    )
    assert crawl.audit()["ok"]


@pytest.mark.long
def test_a_crawl_that_refreshes_and_ends_reads_on_where_every_page_is_poor():
    """A chain of pages of one folder, and nothing beside it: its bound counts reads, so it comes to an end."""
    crawl, links, read = Crawl.in_memory(refreshing=True, ahead=True), numbered((-12, -1, 1, 12)), []
    crawl.submit("http://h0.example/lost/0.html")
    for _ in range(600):
        orders = crawl.turn()
        crawl.deliver_all()
        for order in orders:
            crawl.answer(order, links(order.url), signature=signature(order.page))
        read += [order.url for order in orders]
        crawl.now += 0.25
    frontier, page = crawl.page("http://h0.example/lost/1.html")
    assert frontier.partition.standing.is_poor(page)
    assert len(read) > 1_000, "it stood still after 388"


def closed_chain(pages):
    """Pages of one folder, each of which leads to the next, and nothing beside them."""

    def links(target):
        number = int(target.rpartition("/")[2].removesuffix(".html"))
        return [f"http://h0.example/lost/{number + 1}.html"] if number + 1 < pages else []

    return links


def lived(crawl, links, end):
    """Answer orders until then, from one moment at which something is to be done to the next: times and URLs."""
    read: list[tuple[float, str]] = []
    while crawl.now < end:
        orders = crawl.turn()
        crawl.deliver_all()
        for order in orders:
            crawl.answer(order, links(order.url), signature=signature(order.page))
        read += [(crawl.now, order.url) for order in orders]
        due = crawl.frontier.scheduler.next_time()
        crawl.now = crawl.now + 1.0 if orders else min(max(due, crawl.now + 0.25), end)
    return read


@pytest.mark.long
def test_a_daemon_reads_on_slowly_where_every_page_is_poor():
    crawl = Crawl.in_memory(refreshing=True, settings=SERVING)
    begin = crawl.now
    crawl.submit("http://h0.example/lost/0.html")
    read = lived(crawl, closed_chain(300), begin + 3_600)
    frontier, page = crawl.page("http://h0.example/lost/1.html")
    assert frontier.partition.standing.is_poor(page)
    assert 140 < len({target for _, target in read}) < 250, "it stood still after 131"
    read += lived(crawl, closed_chain(300), begin + 6 * 3_600)
    assert len({target for _, target in read}) == 300
    again = lived(crawl, closed_chain(300), begin + 2 * DAY)
    assert 30 < len(again) < 600, "what is known is read again, too"
    assert crawl.audit()["ok"]


@pytest.mark.long
def test_of_several_folders_of_which_every_page_is_poor_a_daemon_reads_all():
    """The one whose pages were met first, and that never ends, does not keep the others waiting."""
    crawl, (far, near) = Crawl.in_memory(refreshing=True, settings=SERVING), (closed_chain(1 << 40), closed_chain(200))
    begin = crawl.now
    other = "http://h1.example/lost/"
    crawl.submit("http://h0.example/lost/0.html", f"{other}0.html")

    def links(target):
        return [link.replace("/h0.", "/h1.") for link in near(target)] if target.startswith(other) else far(target)

    read = {target for _, target in lived(crawl, links, begin + 8 * 3_600)}
    assert sum(target.startswith(other) for target in read) == 200
    assert 180 < sum(not target.startswith(other) for target in read) < 400


@pytest.mark.long
def test_what_a_daemon_reads_of_an_endless_folder_with_nothing_beside_it_becomes_ever_less():
    crawl, links = Crawl.in_memory(refreshing=True, settings=SERVING), closed_chain(1 << 40)
    begin = crawl.now
    crawl.submit("http://h0.example/lost/0.html")
    first, second = (len(lived(crawl, links, begin + hours * 3_600)) for hours in (12, 24))
    assert 300 < first < 600
    assert second < 0.5 * first


def test_a_large_honest_tree_beside_an_endless_folder_is_known_by_its_ends():
    """Each page of either shows its way home and new pages of its folder: only where the tree ends do they differ."""
    onward, below = fresh_names(), lost_and_found(list, pages=4_000)
    doors = [f"http://h0.example/{door}" for door in ("calendar?month=1", "shop/p0.html", "list?a=0", "gone/x.html")]

    def links(target):
        if target in doors:
            return [HOME]
        if target == HOME:
            return [HOME, *below(target), *doors]
        return [HOME, *onward(target)] if "/lost/" in target else below(target)

    crawl = Crawl.in_memory(refreshing=True)
    crawl.submit(HOME)
    read: list[str] = []
    for _ in range(40):
        orders = crawl.turn()
        crawl.deliver_all()
        for order in orders:
            crawl.answer(order, links(order.url), signature=signature(order.page))
        read += [order.url for order in orders]
        crawl.now += max(0.06, 0.015 * len(orders))
    assert not crawl.frontier.partition.standing.is_poor(crawl.page(HOME)[1])
    assert crawl.frontier.partition.standing.is_poor(crawl.page("http://h0.example/lost/x.html")[1])
    trap = {target for target in read if "/lost/" in target}
    assert len(trap) < CLOSED / MENU + 64 + POOR * len(read), "what was out as it became known is read, too"
    assert len(set(read) - trap) > 1_000


def wiki(pages):
    """All in one folder, reached by its first page: links of popular pages, of neighbours, and some back."""
    lots = random.Random(3)
    follow = [
        [*(int(pages ** lots.random()) - 1 for _ in range(lots.randrange(3, 9))), (page + 1) % pages]
        for page in range(pages)
    ]
    return [[f"http://h0.example/wiki/{number}.html" for number in each] for each in follow]


def catalogue(pages):
    """All in one folder: each page of it shows 20 below it, most of which show the way up alone."""
    names = [f"http://h0.example/wiki/{number}.html" for number in range(pages)]
    return [[*names[20 * page + 1 : 20 * page + 21], names[max(0, page - 1) // 20]] for page in range(pages)]


@pytest.mark.parametrize("site", [wiki, catalogue])
def test_a_large_honest_folder_is_never_of_poor_standing(site):
    shown = site(1_000)
    crawl = Crawl.in_memory()
    crawl.submit("http://h0.example/wiki/0.html")
    read: set[str] = set()
    while len(read) < len(shown):
        rest = len(shown) - len(read)
        read |= set(answered(crawl, lambda target: shown[int(target.rpartition("/")[2][:-5])], min(50, rest)))
        pages = np.arange(crawl.frontier.columns.n)
        assert not crawl.frontier.partition.standing.poor(pages).any(), f"after {len(read)} pages"
    standing = crawl.frontier.partition.standing
    assert standing.any_doubt, "nobody had to speak for it"
    assert standing.bred[crawl.frontier.columns["folder"][0]] > CLOSED, "nobody spoke for it"


@pytest.mark.long
def test_what_is_read_again_of_a_trap_counts_as_well():
    crawl = Crawl.in_memory(refreshing=True)
    crawl.submit(HOME)
    read = answered(crawl, calendar, 3_000)
    months = [target for target in read if "month" in target]
    assert len(months) < 2 * TRIAL + 1.5 * POOR * len(read)
    assert crawl.frontier.partition.standing.poor_reads < 10


def test_the_account_of_poor_reads_is_stored(tmp_path):
    crawl = Crawl.on_disk(tmp_path / "c")
    crawl.submit(HOME)
    answered(crawl, calendar, 100)
    crawl.turn()
    owed = crawl.frontier.partition.standing.poor_reads
    assert owed != 0
    crawl.close()
    again = Crawl.on_disk(tmp_path / "c")
    assert again.frontier.partition.standing.poor_reads == pytest.approx(owed)
    assert again.frontier.partition.standing.any_poor
    again.close()


def test_a_page_is_read_by_the_share_of_its_links_that_lead_into_no_trap():
    crawl = Crawl.in_memory()
    crawl.submit(HOME)
    answered(crawl, calendar, 100)
    frontier, home = crawl.page(HOME)
    pages = np.array([home, crawl.page(month(0))[1]])
    worths = frontier.partition.standing.worth(pages, frontier.partition.children)
    assert worths.tolist() == pytest.approx([(59 / 60) ** 2, POOR_WORTH])


def test_a_redirect_belongs_to_the_pattern_it_leads_to_until_it_shows_a_page():
    crawl = Crawl.in_memory()
    door = "http://h0.example/door"
    crawl.submit(HOME, door)
    crawl.run(lambda order: report(order, crawl.now, status=302, location="http://h0.example/r?n=1")
              if order.url == door else report(order, crawl.now))  # fmt: skip
    folders, page = crawl.frontier.columns["folder"], crawl.page(door)[1]
    assert folders[page] == crawl.frontier.partition.folder_slot("http://h0.example/r?n=1") >= QUERIES
    crawl.submit(door, priority=Priority.ORDERED)
    crawl.run(lambda order: report(order, crawl.now, [HOME]))
    assert folders[page] == crawl.frontier.partition.folder_slot(door) < QUERIES


def test_a_host_reads_its_own_pages_first_whatever_the_crawl_has_earned():
    """A slow host among many would spend all of its reads out of the share of all reads."""
    crawl = Crawl.in_memory(refreshing=True)
    crawl.submit(HOME)
    answered(crawl, calendar, 20)
    frontier = crawl.frontier
    standing, discovery = frontier.partition.standing, frontier.scheduler.discovery
    standing.bred[frontier.columns["folder"][crawl.page(month(0))[1]]] = 100
    standing.poor_reads = 1_000.0
    unread = np.flatnonzero(frontier.columns["state"][: frontier.columns.n] == State.UNREAD)
    months = unread[standing.poor(unread)]
    assert 0 < len(months) < len(unread)
    mixed = 0
    for _ in range(200):
        crawl.turn()
        found = discovery._of_good_standing(unread, busy=True, now=crawl.now)
        assert set(unread) - set(months) <= set(found)
        mixed += bool(standing.poor(found).any())
    assert 0 < mixed < 200 * 4 * POOR, "a share by lot, for no page is to starve"
    assert discovery._of_good_standing(months, busy=True, now=crawl.now).tolist() == months.tolist()


def test_links_that_had_to_wait_count_for_their_pattern_when_they_come_in():
    crawl = Crawl.in_memory(settings=settings(host_pages=65_536))
    crawl.submit(month(0))
    (order,) = crawl.turn()
    crawl.deliver_all()
    crawl.answer(order, [month(number) for number in range(1, 2 * LINKS_AT_ONCE + 101)])
    for _ in range(4):
        crawl.turn()
        crawl.now += 2 * SLICE_PAUSE
    frontier, page = crawl.page(month(2 * LINKS_AT_ONCE + 100))
    assert frontier.partition.standing.bred[frontier.columns["folder"][page]] == 2 * LINKS_AT_ONCE + 100


def copied(crawl, shown, skeleton=b""):
    """Read a list that names 2,000 URLs of one host and 1,200 of an honest one; `shown(number)` signs the answer to one
    of the former, which all have this skeleton. The URLs that were read, in order."""
    listed = [f"http://h1.example/item{number}" for number in range(2_000)]
    listed += [f"http://h0.example/docs/{number}.html" for number in range(1_200)]
    crawl.answer_probes = lambda order, now: report(order, now, status=404, error="http-404", final=True)
    crawl.submit(HOME)
    read: list[str] = []
    for _ in range(1_000):
        for order in crawl.turn():
            read.append(order.url)
            item = order.url.rpartition("item")[2]
            one = signature(shown(int(item)) if item.isdigit() else 1 << 40 | len(read))
            links = listed if order.url == HOME else [HOME]
            crawl.answer(order, links, signature=one, skeleton=skeleton if item.isdigit() else b"")
        crawl.deliver_all()
        crawl.now += 1.0
    return read


@pytest.mark.long
@pytest.mark.parametrize("partitions", [1, 3])
def test_pages_that_all_show_the_same_get_a_small_share_whoever_named_them(partitions):
    crawl = Crawl.in_memory(partitions, settings=settings(), refreshing=True)
    read = copied(crawl, lambda number: 7)
    items = [place for place, target in enumerate(read) if "/item" in target]
    owner = next(frontier for frontier in crawl.frontiers if "h1.example" in frontier.partition.hosts.names)
    assert len(crawl.probes) == 1, "the host knows what a 404 is"
    docs = [place for place, target in enumerate(read) if "/docs/" in target]
    assert len(set(docs)) >= 1_200
    last = docs[1_199]
    assert COPIES < sum(place < last for place in items) < 5 * COPIES, "what was out when it was seen is read"
    slot = owner.partition.folder_slot("http://h1.example/item1")
    assert owner.partition.standing.poor_slots(np.array([slot], np.uint16)).all()
    unread = f"http://h1.example/item{next(k for k in range(2_000) if f'http://h1.example/item{k}' not in read)}"
    assert "almost all of its pages that were read show the same" in str(why(crawl.views(), unread, crawl.now))
    assert crawl.audit()["ok"]


@pytest.mark.long
def test_some_copies_among_pages_of_their_own_hold_nobody_back():
    crawl = Crawl.in_memory(settings=settings(), refreshing=True)
    read = copied(crawl, lambda number: 7 if number % 2 else number + 1_000)
    assert sum("/item" in target for target in read) > 300
    assert not crawl.frontier.partition.standing.any_poor


@pytest.mark.long
def test_pages_of_one_make_with_numbers_of_their_own_are_no_copies():
    crawl = Crawl.in_memory(settings=settings(), refreshing=True)
    read = copied(crawl, lambda number: number + 1_000, signature(7))
    assert len(crawl.probes) == 1 and sum("/item" in target for target in read) > 300
    assert not crawl.frontier.partition.standing.any_poor


@pytest.mark.long
def test_that_a_folder_shows_one_page_over_and_over_is_stored(tmp_path):
    crawl = Crawl.on_disk(tmp_path / "c", settings=settings(), refreshing=True)
    copied(crawl, lambda number: 7)
    slot = np.array([crawl.frontier.partition.folder_slot("http://h1.example/item1")], np.uint16)
    assert crawl.frontier.partition.standing.copied(slot).all()
    crawl.close()
    again = Crawl.on_disk(tmp_path / "c", settings=settings(), refreshing=True)
    standing = again.frontier.partition.standing
    assert standing.any_poor and standing.copied(slot).all()
    again.close()
