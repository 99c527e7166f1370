"""The laws of the random graph."""

import numpy as np
import pytest

from xyro.lab.web.places import Doc
from xyro.lab.web.web import Web
from xyro.lab.web.web_graph import LEAST_OUT, LIST, MOST_OUT, NOFOLLOW, TREE


@pytest.fixture(scope="module")
def web():
    return Web(pages=12_000, hosts=24)


def sources_of(web):
    return np.repeat(np.arange(web.shape.pages), np.diff(web.slots.indptr))


def law_edges(web):
    """Distinct followed links of HTML and XML pages, self links left out: (sources, targets)."""
    sources, targets, flags = sources_of(web), web.slots.targets, web.slots.flags
    chosen = (flags & (NOFOLLOW | LIST) == 0) & (sources != targets) & (targets < web.shape.pages)
    codes = np.unique(sources[chosen] * web.size + targets[chosen])
    return codes // web.size, codes % web.size


def test_in_degrees_follow_the_standard_law(web):
    """P(n) ~ n^-2.1 on [2, N/10]: compared with the law's own tail at several points."""
    _, targets = law_edges(web)
    lawful = ~np.isin(web.places.kinds, (Doc.FEED, Doc.SITEMAP, Doc.INDEX))
    degrees = np.bincount(targets, minlength=web.size)[lawful]
    support = np.arange(2, 1_201)
    weights = support**-2.1
    tail = {n: weights[support >= n].sum() / weights.sum() for n in (3, 5, 10, 20, 50, 100, 200)}
    for n, expected in tail.items():
        deviation = 5 * np.sqrt(expected * (1 - expected) / degrees.size)
        assert np.mean(degrees >= n) == pytest.approx(expected, abs=deviation + 0.01)
    assert np.mean(degrees < 2) < 0.001
    assert 600 <= degrees.max() <= 1_300


def test_home_pages_are_the_hubs(web):
    _, targets = law_edges(web)
    degrees = np.bincount(targets, minlength=web.size)
    homes = web.places.starts[:-1]
    assert np.median(degrees[homes]) > 20 * np.median(degrees)


def test_pages_have_about_ten_links_and_lists_what_they_list(web):
    sources, _ = law_edges(web)
    degrees = np.bincount(sources, minlength=web.size)
    pages = np.isin(web.places.kinds, (Doc.HTML, Doc.XML))
    assert degrees[pages].min() >= LEAST_OUT
    assert degrees[pages].max() <= MOST_OUT
    assert degrees[pages].mean() == pytest.approx(10, abs=1.5)
    assert not degrees[~pages].any()
    shown = np.diff(web.slots.indptr)
    assert (shown[web.places.of_kind(Doc.REDIRECT)] == 1).all()
    assert not shown[web.places.of_kind(Doc.DTD, Doc.DEAD, Doc.FILE, Doc.PRIVATE)].any()


def test_four_of_five_links_stay_on_their_host(web):
    sources, targets = law_edges(web)
    near = web.places.hosts[sources] == web.places.hosts[targets]
    assert near.mean() == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize("cross", [0.0, 0.5])
def test_the_share_of_cross_links_is_a_setting(cross):
    web = Web(pages=4_000, hosts=4, cross=cross)
    sources, targets = law_edges(web)
    near = web.places.hosts[sources] == web.places.hosts[targets]
    assert near.mean() == pytest.approx(1 - cross, abs=0.09)  # the largest hubs cannot stay at home


def test_self_links_duplicates_and_nofollow_have_their_shares(web):
    sources, targets, flags = sources_of(web), web.slots.targets, web.slots.flags
    pages = web.places.of_kind(Doc.HTML, Doc.XML)
    itself = np.unique(sources[(sources == targets)])
    assert itself.size / pages.size == pytest.approx(0.03, abs=0.01)
    followed = flags & (NOFOLLOW | LIST) == 0
    distinct = np.unique(sources[followed] * web.size + targets[followed]).size
    assert (followed.sum() - distinct) / distinct == pytest.approx(0.05, abs=0.005)
    assert (flags & NOFOLLOW > 0).sum() / distinct == pytest.approx(0.04, abs=0.005)


def test_no_page_shows_a_link_both_with_and_without_nofollow(web):
    codes = sources_of(web) * web.size + web.slots.targets
    nofollow = web.slots.flags & NOFOLLOW > 0
    assert nofollow.any()
    assert not np.intersect1d(codes[nofollow], codes[~nofollow]).size


def test_feeds_begin_with_the_home_page_and_sitemaps_share_a_quarter_of_their_host(web):
    for host, start in enumerate(web.places.starts[:-1].tolist()):
        kinds = web.places.kinds[start : web.places.starts[host + 1]]
        feed, index = start + int(np.argmax(kinds == Doc.FEED)), start + int(np.argmax(kinds == Doc.INDEX))
        assert web.listed(feed)[0] == start
        assert len(set(web.listed(feed))) == len(web.listed(feed)) == 16
        maps = web.listed(index)
        assert maps == (start + np.flatnonzero(kinds == Doc.SITEMAP)).tolist()
        listed = [page for one in maps for page in web.listed(one)]
        assert len(set(listed)) == len(listed) == round(np.isin(kinds, (Doc.HTML, Doc.XML)).sum() * 0.25)
        assert {web.host(page) for page in listed} == {host}
        assert {web.kind(page) for page in listed} <= {Doc.HTML, Doc.XML}


def test_the_tree_reaches_every_page_that_robots_txt_and_indexes_do_not_name(web):
    """Breadth first over tree links alone: sitemaps apart, everything is found, at most a dozen clicks away."""
    sources, flags = sources_of(web), web.slots.flags
    tree = flags & TREE > 0
    depth = np.full(web.size, -1)
    depth[0] = 0
    for level in range(12):
        reached = np.unique(web.slots.targets[tree & (depth[sources] == level)])
        depth[reached[depth[reached] < 0]] = level + 1
    missed = set(web.places.kinds[depth < 0].tolist())
    assert missed == {Doc.SITEMAP, Doc.INDEX}


def test_xml_documents_need_a_dtd_now_and_then_on_another_host(web):
    xml = web.places.of_kind(Doc.XML).tolist()
    assert all(web.kind(web.needs(page)) is Doc.DTD for page in xml)
    far = np.mean([web.host(page) != web.host(web.needs(page)) for page in xml])
    assert 0.1 < far < 0.3
    assert web.needs(0) == -1


def test_redirects_lead_to_pages_or_along_a_chain_that_ends(web):
    longest = 0
    for page in web.places.of_kind(Doc.REDIRECT).tolist():
        steps = 0
        while web.kind(page) is Doc.REDIRECT:
            (link,), steps = web.links(page, 0), steps + 1
            page = link.target
        assert web.kind(page) is Doc.HTML
        longest = max(longest, steps)
    assert 2 <= longest <= 5


def test_outside_pages_exist_only_when_asked_for_and_each_is_linked():
    assert Web(pages=400, hosts=4).slots.outside == 0
    web = Web(pages=400, hosts=4, outside=0.1)
    beyond = web.slots.targets[web.slots.targets >= 400]
    assert set(beyond.tolist()) == set(range(400, web.size))
    assert web.kind(400) is Doc.OUTSIDE
    assert web.url(400).endswith(".example/p400.html")


@pytest.mark.parametrize(("pages", "hosts"), [(12, 1), (24, 2), (120, 10), (301, 3)])
def test_small_webs_are_webs_too(pages, hosts):
    for seed in range(5):
        web = Web(seed=seed, pages=pages, hosts=hosts, outside=0.1, drift=0.5)
        assert web.slots.indptr[-1] == len(web.slots.targets) == len(web.slots.flags)
        assert web.slots.targets.max() < web.size


def test_equal_settings_give_equal_links_and_other_seeds_others():
    first, again, other = (Web(seed=seed, pages=400, hosts=4).slots for seed in (3, 3, 4))
    assert np.array_equal(first.targets, again.targets)
    assert np.array_equal(first.flags, again.flags)
    assert not np.array_equal(first.indptr, other.indptr)
