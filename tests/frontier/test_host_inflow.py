"""Sites of a crawl: the online inflow, the pass over Link-Data and exact importance agree; crashes cost nothing."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import pytest

from tests.frontier.rig import START, Crawl, copied, report, url
from xyro.configs import schema
from xyro.configs.schema import OpicSettings, RefreshSettings, Settings, StoreSettings
from xyro.frontier.batch import MessageBatch
from xyro.frontier.host_inflow import mixed
from xyro.opic.graph import from_lists
from xyro.opic.pagerank import pagerank
from xyro.opic.sites import site_rank
from xyro.service.views.site_ranking import rank_sites, ranked_sites, site_parts, top_sites
from xyro.wire.errors import InputError

PLAIN = Settings(crawl=schema.CrawlSettings(scope="any"), refresh=RefreshSettings())
SITES = msgspec.structs.replace(PLAIN, opic=OpicSettings(sites=True))
HOSTS, PAGES = 8, 15


def a_web(seed=3):
    """links[i] of page i (host i // PAGES): mostly within the host, the others to hosts of low number."""
    rng = np.random.default_rng(seed)
    links = []
    for page in range(HOSTS * PAGES):
        home = page - page % PAGES
        near = home + rng.integers(PAGES, size=3)
        far = (rng.integers(HOSTS, size=2) * rng.random(2)).astype(int) * PAGES + rng.integers(PAGES, size=2)
        links.append(
            sorted({*near.tolist(), *far.tolist(), home + (page + 1) % PAGES, (home + PAGES) % (HOSTS * PAGES)})
        )
    return links


def name(page):
    return url(page // PAGES, page % PAGES)


def crawled(crawl, links, spends=0):
    order = {name(page): [name(child) for child in children] for page, children in enumerate(links)}
    crawl.submit(name(0))
    crawl.run(lambda out: report(out, START, order[out.url]))
    spend(crawl, spends)
    return crawl


def spend(crawl, turns):
    for _ in range(turns):
        for q, frontier in enumerate(crawl.frontiers):
            crawl.write(frontier.turn(MessageBatch(), crawl.now, crawl.room, 40), q)
        crawl.deliver_all()
        crawl.turn()


def exact(links):
    """(external inflow by host, SiteRank by number of links) of the web, by dense means."""
    graph = from_lists(links)
    rank = pagerank(graph, tolerance=1e-13).rank * graph.n
    inflow, between = np.zeros(HOSTS), np.zeros((HOSTS, HOSTS))
    for page, children in enumerate(links):
        for child in children:
            if page // PAGES != child // PAGES:
                inflow[child // PAGES] += 0.85 * rank[page] / len(children)
                between[child // PAGES, page // PAGES] += 1
    between /= between.sum(axis=0)
    rows = np.linalg.solve(np.eye(HOSTS) - 0.85 * between, np.full(HOSTS, 0.15 / HOSTS))
    return inflow, rows * HOSTS


def by_host(rows, field, key="site"):
    return np.array([next(row[field] for row in rows if row[key] == f"h{host}.example") for host in range(HOSTS)])


@pytest.mark.parametrize("partitions", [1, 3])
def test_measured_and_found_inflow_are_that_of_exact_importance(partitions):
    links = a_web()
    crawl = crawled(Crawl.in_memory(partitions, settings=SITES), links, 300)
    inflow, rank = exact(links)
    with crawl.views() as views:
        rows, exported = top_sites(views, 100, "host"), list(views.hosts(rank_sites(views).row_by_name))
    np.testing.assert_allclose(by_host(rows, "site_rank"), rank, atol=1e-6)
    np.testing.assert_allclose(by_host(rows, "external_inflow"), inflow, rtol=0.05)
    np.testing.assert_allclose(by_host(rows, "measured_inflow"), inflow, rtol=0.08)
    assert by_host(rows, "measured_inflow").sum() == pytest.approx(inflow.sum(), rel=0.02)
    assert [row["site_rank"] for row in rows] == sorted((row["site_rank"] for row in rows), reverse=True)
    assert sum(row["pages"] for row in rows) == HOSTS * PAGES
    assert sum(row["importance"] for row in rows) == pytest.approx(HOSTS * PAGES, abs=1e-3)
    for field in ("site_rank", "external_inflow", "measured_inflow", "internal_share"):
        np.testing.assert_array_equal(by_host(exported, field, "host"), by_host(rows, field))


def test_off_by_default_and_found_from_the_links_all_the_same():
    links = a_web()
    crawl = crawled(Crawl.in_memory(settings=PLAIN), links, 300)
    assert crawl.frontier.ledger.host_inflow is None
    with crawl.views() as views:
        rows = top_sites(views, 3, "host")
        assert len(rows) == 3
        assert rows[0]["measured_inflow"] is None
        np.testing.assert_allclose(rank_sites(views).inflow.sum(), exact(links)[0].sum(), rtol=0.05)
        json.dumps(rows)


def test_registrable_domains():
    """All hosts are h*.example; seen as domains these are apart, and two names of one domain are one site."""
    crawl = Crawl.in_memory(settings=SITES)
    pages = {
        "http://a.one.com/": ["http://b.one.com/", "http://two.com:81/"],
        "http://b.one.com/": ["http://a.one.com/"],
        "http://two.com:81/": ["http://two.com/", "http://a.one.com/"],
        "http://two.com/": ["http://b.one.com/"],
    }
    crawl.submit("http://a.one.com/", "http://two.com/", "http://two.com:81/", "http://b.one.com/")
    crawl.run(lambda out: report(out, START, pages[out.url]))
    with crawl.views() as views:
        domains = rank_sites(views, "domain")
        rows = {row["site"]: row for row in top_sites(views, 9, "domain")}
        assert len(top_sites(views, 9, "host")) == 4
    assert {site: row["pages"] for site, row in rows.items()} == {"one.com": 2, "two.com": 2}
    assert domains.graph.links.sum() == 3
    np.testing.assert_allclose(site_rank(domains.graph), 0.5)


def test_a_reopened_crawl_goes_on_measuring(tmp_path):
    links = a_web()
    crawl = crawled(Crawl.on_disk(tmp_path / "data", settings=SITES), links, 200)
    again = Crawl.on_disk(copied(tmp_path / "data", tmp_path / "copy"), settings=SITES)
    now = crawl.frontier.ledger.clock.ticks
    np.testing.assert_allclose(
        again.frontier.ledger.inflow_of_hosts(), crawl.frontier.ledger.host_inflow.inflow(now).flow[:HOSTS]
    )
    spend(again, 100)
    with again.views() as views:
        found = by_host(top_sites(views, 100, "host"), "measured_inflow")
    np.testing.assert_allclose(found, exact(links)[0], rtol=0.08)
    crawl.close()
    again.close()


@pytest.mark.parametrize("level", ["host", "domain"])
def test_parts_of_several_nodes_are_ranked_as_the_whole(level):
    crawl = crawled(Crawl.in_memory(3, settings=SITES), a_web(), 100)
    with crawl.views() as views:
        parts = [part.dump() for part in reversed(site_parts(views, level))]
        found, whole = (
            {row["site"]: row for row in rows}
            for rows in (ranked_sites(json.loads(json.dumps(parts))).top(100), top_sites(views, 100, level))
        )
    assert found.keys() == whole.keys() and whole
    for site, row in found.items():
        for field in row.keys() - {"site"}:
            assert row[field] == pytest.approx(whole[site][field], abs=2e-6), field


def test_without_links_it_says_what_is_missing():
    crawl = Crawl.in_memory(settings=Settings(store=StoreSettings(links=False)))
    with crawl.views() as views:
        with pytest.raises(InputError, match="keeps no links"):
            top_sites(views, 5, "host")
        with pytest.raises(InputError, match="level"):
            top_sites(views, 5, "continent")


def test_site_weight_puts_pages_of_linked_sites_first():
    """h1 is linked from elsewhere, h2 only from within: with the sites' weight alone h1's unread pages go first."""
    crawl = Crawl.in_memory(settings=msgspec.structs.replace(PLAIN, opic=OpicSettings(site_weight=1.0)))
    ledger = crawl.frontier.ledger
    crawl.submit(url(1), url(2))
    crawl.turn()
    inflow = ledger.host_inflow.inflow(ledger.clock.ticks)
    inflow.add(np.array([crawl.frontier.partition.host("h1.example")]), np.array([1 << 20]))
    inflow.measure(1000, 4.0)
    hosts = np.array([crawl.frontier.partition.host(f"h{host}.example") for host in (1, 2)], np.uint32)
    cash = np.array([1 << 10, 1 << 20], np.int64)
    whole, half, none = (mixed(cash, ledger.inflow_of_hosts()[hosts], weight) for weight in (1.0, 0.5, 0.0))
    assert whole[0] > whole[1] == 0
    assert half[0] < half[1] + (1 << 21)
    assert none.tolist() == cash.tolist()
    for crawled in (crawl, Crawl.in_memory(settings=PLAIN)):
        crawled.submit(url(1), url(2))
        crawled.turn()
        crawled.frontier.columns["cash"][:2] += cash
    weighed, plain = (crawled.frontier.scheduler.discovery.score(np.array([0, 1])) for crawled in (crawl, crawled))
    assert weighed[0] > weighed[1] == 0 and plain[0] < plain[1]
