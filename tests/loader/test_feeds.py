"""RSS and Atom: links of entries, paging, and dates as evidence."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.loader.dates import feed_time
from xyro.wire.messages import LINK_EXTERNAL, LINK_HINT, LinkKind, LoadReport, LoadState

Load = Callable[..., LoadReport]
T1 = datetime(2023, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp()
T2 = datetime(2023, 2, 3, tzinfo=UTC).timestamp()
RFC1, RFC2 = "Mon, 02 Jan 2023 03:04:05 GMT", "Fri, 03 Feb 2023 01:00:00 +0100"
H = "http://h.test/"


def shown(report: LoadReport) -> dict[str, int]:
    assert report.state is LoadState.LOADED, report.error
    return dict(zip(report.links.urls, report.links.flags, strict=True))


def rss(items: str, channel: str = "", attrs: str = 'version="2.0"') -> str:
    return f"<rss {attrs}><channel>{channel}{items}</channel></rss>"


def test_rss_2(load: Load) -> None:
    report = load(
        rss(
            f"<item><title>A &amp; B</title><link>\n /a </link><guid>http://h.test/x</guid><pubDate>{RFC1}</pubDate></item>"
            f"<item><pubDate>{RFC2}</pubDate><link>http://o.test/b?c&amp;d</link><enclosure url='/m.mp3'/></item>"
            "<item><guid>http://h.test/c</guid></item>"
            "<item><guid isPermaLink='false'>http://h.test/no</guid></item>"
            "<item><guid>tag:1</guid></item>"
            "<item><description>&lt;a href='/no'&gt;</description></item>",
            "<title>T</title><link>/</link><image><url>/i.png</url><link>/</link></image>",
        )
    )
    assert report.format == "rss"
    assert shown(report) == {
        H: LinkKind.FEED,
        H + "a": LinkKind.FEED,
        "http://o.test/b?c&d": LinkKind.FEED | LINK_EXTERNAL,
        H + "c": LinkKind.FEED,
    }
    assert dict(report.modified) == {H + "a": T1, "http://o.test/b?c&d": T2}


@pytest.mark.parametrize("version", ["0.91", "0.92", "0.94", "2.0"])
def test_rss_versions_without_a_namespace(version: str, load: Load) -> None:
    report = load(rss("<item><link>/a</link></item>", "<link>/</link>", f'version="{version}"'))
    assert (report.format, set(shown(report))) == ("rss", {H, H + "a"})


def test_rss_in_a_namespace_of_its_own(load: Load) -> None:
    report = load(rss("<item><link>/a</link></item>", attrs='xmlns="http://backend.userland.com/rss2"'))
    assert (report.format, set(shown(report))) == ("rss", {H + "a"})


@pytest.mark.parametrize("namespace", ["http://purl.org/rss/1.0/", "http://my.netscape.com/rdf/simple/0.9/"])
def test_rss_1_and_0_9(namespace: str, load: Load) -> None:
    report = load(
        f'<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="{namespace}" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><link>/</link><dc:date>2022-01-01</dc:date></channel>'
        '<item r:about="/about"><link>/a</link><dc:date>2023-01-02T03:04:05Z</dc:date></item></r:RDF>'
    )
    assert (report.format, set(shown(report)), report.modified) == ("rss", {H, H + "a"}, ((H + "a", T1),))


def test_other_rdf_is_xml(load: Load) -> None:
    report = load('<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><item><link>/a</link></item></r:RDF>')
    assert (report.format, shown(report)) == ("xml", {})


def test_atom_links_in_rss(load: Load) -> None:
    report = load(
        rss(
            '<item><link>/a</link><a:link rel="replies" href="/a/comments"/><a:updated>2023-02-03T00:00:00Z</a:updated>'
            f"<pubDate>{RFC1}</pubDate></item>",
            '<a:link rel="self" href="/feed"/><a:link rel="next" href="/feed?page=2"/><a:link rel="hub" href="/hub"/>',
            'xmlns:a="http://www.w3.org/2005/Atom"',
        )
    )
    assert shown(report) == {
        H + "feed": LinkKind.CANONICAL | LINK_HINT,
        H + "feed?page=2": LinkKind.NEXT,
        H + "a": LinkKind.FEED,
        H + "a/comments": LinkKind.ANCHOR,
    }
    assert report.modified == ((H + "a", T2),)


def test_atom(load: Load) -> None:
    report = load(
        '<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://b.test/x/"><id>http://h.test/id</id>'
        '<updated>2023-05-05T00:00:00Z</updated><link rel="self" href="http://h.test/feed"/><link href="."/>'
        '<link rel="next" href="?2"/><link rel="edit" href="edit"/><link rel="icon" href="i"/>'
        '<entry xml:base="a/"><link rel="enclosure" href="m.mp3"/><link rel="alternate" type="text/html" href="1"/>'
        "<published>2023-01-02T03:04:05Z</published><updated>2023-02-03T00:00:00Z</updated>"
        '<source><link href="http://s.test/"/><updated>2023-06-06T00:00:00Z</updated></source>'
        '<link rel="via" href="http://v.test/"/></entry>'
        '<entry><updated>2023-01-02T03:04:05Z</updated><link href="2"/><content src="2.html"/></entry>'
        '<entry><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><a href="3"/></div></content></entry>'
        "</feed>"
    )
    base, external = "http://b.test/x/", LINK_EXTERNAL
    assert report.format == "atom"
    assert shown(report) == {
        H + "feed": LinkKind.CANONICAL | LINK_HINT,
        base: LinkKind.FEED | external,
        base + "?2": LinkKind.NEXT | external,
        base + "a/1": LinkKind.FEED | external,
        "http://s.test/": LinkKind.FEED | external,
        "http://v.test/": LinkKind.ANCHOR | external,
        base + "2": LinkKind.FEED | external,
        base + "2.html": LinkKind.ANCHOR | external,
        base + "3": LinkKind.ANCHOR | external,
    }
    assert dict(report.modified) == {base + "a/1": T2, base + "2": T1}


def test_atom_0_3_and_a_lone_entry(load: Load) -> None:
    report = load(
        '<feed xmlns="http://purl.org/atom/ns#"><entry><link rel="alternate" href="/a"/>'
        "<modified>2023-01-02T03:04:05Z</modified></entry></feed>"
    )
    assert (report.format, report.modified) == ("atom", ((H + "a", T1),))
    report = load('<entry xmlns="http://www.w3.org/2005/Atom"><link href="/a"/></entry>')
    assert (report.format, set(shown(report))) == ("atom", {H + "a"})


def test_feed_in_another_namespace_is_xml(load: Load) -> None:
    assert load("<feed><entry/></feed>").format == "xml"
    assert load('<feed xmlns="urn:x"/>').format == "xml"


def test_a_feed_that_breaks_keeps_its_links(load: Load) -> None:
    report = load(rss("<item><link>/a</link><title>x</title></item><item><link>/b</link><title>a & b</title></item>"))
    assert (report.state, report.error, report.format) == (LoadState.FAILED, "not-well-formed", "rss")
    assert report.links.urls == (H + "a", H + "b")


def test_every_cut_is_the_same_feed(load: Load) -> None:
    """Broken off anywhere, the links are the first ones of the whole."""
    body = rss(f"<item><link>/a</link><pubDate>{RFC1}</pubDate></item><item><link>/b</link></item>", "<link>/</link>")
    whole = load(body).links.urls
    for cut in range(len(body)):
        part = load(body[:cut])
        assert part.state is LoadState.FAILED
        assert part.links.urls == whole[: len(part.links.urls)]


@pytest.mark.parametrize(
    ("channel", "rate"),
    [
        ("<ttl>60</ttl>", 24.0),
        ("<ttl>0</ttl>", None),
        ("<ttl>soon</ttl>", None),
        ("<ttl>1440</ttl><skipDays><day>Saturday</day><day>Sunday</day></skipDays>", 5 / 7),
        ("<skipHours><hour>0</hour><hour>1</hour></skipHours><ttl>720</ttl>", 2 * 22 / 24),
        ("<s:updatePeriod>daily</s:updatePeriod><s:updateFrequency>4</s:updateFrequency>", 4.0),
        ("<s:updateFrequency>2</s:updateFrequency><s:updatePeriod>weekly</s:updatePeriod>", 2 / 7),
        ("<s:updatePeriod>often</s:updatePeriod>", None),
    ],
)
def test_how_often_a_feed_says_it_is_written(channel: str, rate: float | None, load: Load) -> None:
    namespace = 'version="2.0" xmlns:s="http://purl.org/rss/1.0/modules/syndication/"'
    report = load(rss("<item><link>/a</link></item>", channel, namespace))
    assert dict(report.rates) == ({} if rate is None else {H + "d/doc.xml": pytest.approx(rate)})


def test_hubs_and_comments(load: Load) -> None:
    atom = 'xmlns:a="http://www.w3.org/2005/Atom" xmlns:w="http://wellformedweb.org/CommentAPI/"'
    report = load(
        rss(
            "<item><link>/a</link><comments>/a#c</comments><w:commentRss>/a/feed</w:commentRss></item>",
            "<a:link rel='hub' href='http://hub.test/'/><a:link rel='self' href='/feed'/>",
            f'version="2.0" {atom}',
        )
    )
    assert report.hubs == ("http://hub.test/",)
    assert shown(report) == {
        H + "feed": LinkKind.CANONICAL | LINK_HINT,
        H + "a": LinkKind.FEED,
        H + "a/feed": LinkKind.FEED,
    }


@pytest.mark.parametrize(
    ("text", "when"),
    [
        (RFC1, T1),
        (RFC2, T2),
        ("02 Jan 2023 03:04:05 +0000", T1),
        ("2 Jan 23 03:04:05 UT", T1),
        ("Sun, 01 Jan 2023 22:04:05 EST", T1),
        ("Monday, 02 January 2023 03:04:05 GMT", T1),
        ("2023-01-02T03:04:05Z", T1),
        ("2023-02-03", T2),
    ],
)
def test_feed_dates(text: str, when: float) -> None:
    assert feed_time(text) == when


@pytest.mark.parametrize(
    "text", ["", "now", "Mon", "32 Foo 2023 00:00:00 GMT", "1 Foo 2023", "Mon, 1 Jan 99999999 0:0:0 GMT", "x" * 99]
)
def test_no_feed_date(text: str) -> None:
    assert feed_time(text) is None


@given(st.text(max_size=70))
def test_any_text_is_a_feed_date_or_none(text: str) -> None:
    assert isinstance(feed_time(text), float | None)
