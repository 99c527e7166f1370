"""Bytes: well-formed where they claim it, showing exactly the links of the graph, changing exactly with the version."""

import subprocess
import sys
from email.utils import parsedate_to_datetime
from hashlib import md5
from io import BytesIO
from urllib.parse import urldefrag, urljoin
from xml.etree import ElementTree

import numpy as np
import pytest
from lxml import etree

from xyro.lab.web.places import Doc
from xyro.lab.web.render import render
from xyro.lab.web.shape import DAY, ORIGIN
from xyro.lab.web.web import Web

T = ORIGIN + 20 * DAY
DIGEST = """
import sys
from hashlib import md5
from xyro.lab.web.render import render
from xyro.lab.web.web import Web
web = Web(seed=int(sys.argv[1]), pages=200, hosts=2, drift=.5)
print(md5(b"".join(render(web, p, float(sys.argv[2])).body for p in range(200))).hexdigest())
"""


@pytest.fixture(scope="module")
def web():
    return Web(pages=900, hosts=6, outside=0.05, drift=0.3, rate_median=0.5)


class Shelf(etree.Resolver):
    """Answers the parser from memory; what it does not have is an error."""

    def __init__(self, parts):
        self.parts = parts

    def resolve(self, system, public, context):
        return self.resolve_string(self.parts[system], context)


def shown(web, page, body):
    """(href, nofollow) of each a, area and iframe of a page, in document order, resolved by the standard library."""
    root = etree.HTML(body.decode())
    elements = [(e, e.get("href") or e.get("src")) for e in root.iter("a", "area", "iframe")]
    return [
        (urldefrag(urljoin(web.url(page), href))[0], "nofollow" in e.get("rel", ""))
        for e, href in elements
        if not href.startswith(("mailto:", "javascript:"))
    ]


def test_html_pages_show_their_links_in_order(web):
    for page in web.places.of_kind(Doc.HTML).tolist()[:300]:
        links = web.links(page, web.version(page, T))
        expected = [(web.url(link.target), link.nofollow) for link in links]
        assert shown(web, page, render(web, page, T).body) == expected


def test_links_are_written_in_many_ways(web):
    body = b"".join(render(web, page, T).body for page in web.places.of_kind(Doc.HTML).tolist())
    spellings = [
        'href="http://127.1.',
        'href="//127.1.',
        'href="/d',
        'href="../d',
        'href="p',
        "#top",
        "<area",
        "<iframe",
    ]
    for spelling in [*spellings, "<a href='", 'rel="nofollow', 'rel="canonical"', 'rel="alternate"']:
        assert spelling.encode() in body


def test_size_is_what_was_asked_for():
    for size in (3_000, 28_000):
        web = Web(pages=300, hosts=2, size=size)
        sizes = [len(render(web, page, T).body) for page in web.places.of_kind(Doc.HTML).tolist()]
        assert np.mean(sizes) == pytest.approx(size, rel=0.15)
        assert min(sizes) > 500


def test_a_page_changes_exactly_when_its_version_does(web):
    for kind in (Doc.HTML, Doc.XML, Doc.DTD, Doc.FEED, Doc.SITEMAP, Doc.INDEX):
        for page in web.places.of_kind(kind).tolist()[:15]:
            state = web.state(page, T)
            body = render(web, page, T).body
            assert render(web, page, max(state.since, ORIGIN) + 1e-3).body == body
            assert render(web, page, state.until - 1e-3).body == body
            assert render(web, page, state.until + 1e-3).body != body


def test_most_changes_leave_most_of_the_text(web):
    page = int(web.places.of_kind(Doc.HTML)[5])
    state = web.state(page, T)
    old, new = (render(web, page, t).body.split(b". ") for t in (T, state.until + 1e-3))
    assert len(set(old) & set(new)) > len(old) / 3


def test_links_drift_only_when_asked_and_never_lose_the_tree():
    still, drifting = (Web(pages=300, hosts=3, drift=drift) for drift in (0.0, 0.5))
    pages = still.places.of_kind(Doc.HTML, Doc.XML).tolist()
    altered = 0
    for page in pages:
        assert still.links(page, 100) == still.links(page, 0) == drifting.links(page, 0)
        old, new = drifting.links(page, 0), drifting.links(page, 40)
        moved = [(a, b) for a, b in zip(old, new, strict=True) if a != b]
        assert all(a.flags == 0 for a, _ in moved)
        altered += len(moved)
        assert drifting.links(page, 40) == new
    assert altered > 3 * len(pages)


def test_xml_documents_are_valid_against_their_dtd_and_need_it(web):
    for page in web.places.of_kind(Doc.XML).tolist():
        body = render(web, page, T).body
        grammar = render(web, web.needs(page), T).body
        parser = etree.XMLParser(dtd_validation=True, no_network=True)
        parser.resolvers.add(Shelf({web.url(web.needs(page)): grammar}))
        document = etree.fromstring(body, parser)
        (publisher,) = (e.content for e in etree.DTD(BytesIO(grammar)).iterentities())
        assert document.findtext("publisher") == publisher
        with pytest.raises(ElementTree.ParseError, match="undefined entity"):
            ElementTree.fromstring(body)
        hrefs = [e.get("{http://www.w3.org/1999/xlink}href") for e in document.iter("see")]
        assert hrefs == [web.url(link.target) for link in web.links(page, web.version(page, T))]


def test_sitemaps_tell_the_true_time_of_change(web):
    space = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
    for page in web.places.of_kind(Doc.SITEMAP, Doc.INDEX).tolist():
        root = ElementTree.fromstring(render(web, page, T).body)
        assert root.tag == space + ("sitemapindex" if web.kind(page) is Doc.INDEX else "urlset")
        entries = {e.findtext(space + "loc"): e.findtext(space + "lastmod") for e in root}
        assert list(entries) == [web.url(item) for item in web.listed(page)]
        for item in web.listed(page):
            when = np.datetime64(entries[web.url(item)].removesuffix("+00:00")).astype("datetime64[s]").astype(int)
            assert 0 <= web.state(item, T).modified - when < 1


def test_feeds_list_pages_with_their_dates(web):
    atom = "{http://www.w3.org/2005/Atom}"
    for page in web.places.of_kind(Doc.FEED).tolist():
        rendered = render(web, page, T)
        root, (home, *items) = ElementTree.fromstring(rendered.body), web.listed(page)
        if web.host(page) % 2:
            assert rendered.mime == "application/atom+xml"
            entries = root.findall(atom + "entry")
            links = [root.find(atom + "link").get("href"), *(e.find(atom + "link").get("href") for e in entries)]
        else:
            assert rendered.mime == "application/rss+xml"
            entries = root.findall("channel/item")
            links = [root.findtext("channel/link"), *(e.findtext("link") for e in entries)]
            dates = [parsedate_to_datetime(e.findtext("pubDate")).timestamp() for e in entries]
            assert dates == [int(web.state(item, T).modified) for item in items]
        assert links == [web.url(item) for item in (home, *items)]


def test_redirects_dead_pages_and_files_answer_as_such(web):
    for page in range(web.shape.pages):
        rendered, kind = render(web, page, T), web.kind(page)
        assert rendered.status == web.status(page)
        match kind:
            case Doc.REDIRECT:
                assert rendered.status in (301, 302)
                assert urljoin(web.url(page), rendered.location) == web.url(web.links(page, 0)[0].target)
            case Doc.DEAD:
                assert rendered.status in (404, 410)
            case _:
                assert rendered.status == 200
                assert not rendered.location
    assert {web.status(page) for page in web.places.of_kind(Doc.DEAD).tolist()} == {404, 410}
    assert {web.status(page) for page in web.places.of_kind(Doc.REDIRECT).tolist()} == {301, 302}
    assert render(web, int(web.places.of_kind(Doc.FILE)[0]), T).mime.startswith(("image/", "application/"))


def test_the_same_seed_gives_the_same_bytes_in_another_process():
    def elsewhere(seed):
        run = [sys.executable, "-c", DIGEST, str(seed), str(T)]
        return subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip()

    here = Web(seed=5, pages=200, hosts=2, drift=0.5)
    digest = md5(b"".join(render(here, page, T).body for page in range(200))).hexdigest()
    assert elsewhere(5) == digest
    assert elsewhere(6) != digest
