"""Sitemaps: their URLs, dates, the location rule and the limit of entries."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.loader.dates import w3c_time
from xyro.loader.intake import Intake
from xyro.loader.sitemaps import MAX_ENTRIES, NESTED, REMEMBERED, Nesting, folder_of
from xyro.wire.ids import PageId
from xyro.wire.messages import LINK_EXTERNAL, LINK_HINT, Kind, LinkKind, LoadReport, LoadState, XmlPage

Load = Callable[..., LoadReport]
NS = "http://www.sitemaps.org/schemas/sitemap/0.9"
ROOT = "http://h.test/sitemap.xml"


def urlset(*entries: str, namespace: str = NS) -> str:
    return f'<urlset xmlns="{namespace}">{"".join(f"<url>{entry}</url>" for entry in entries)}</urlset>'


@pytest.mark.parametrize("namespace", [NS, "http://www.google.com/schemas/sitemap/0.84", ""])
def test_urls_and_dates(namespace: str, load: Load) -> None:
    body = urlset(
        "<loc>\n http://h.test/a?x=1&amp;y=2 </loc><lastmod>2023-01-02</lastmod>",
        "<lastmod>2023-01-02T03:04:05+02:00</lastmod><changefreq>daily</changefreq><loc>http://h.test/b</loc>",
        "<loc>http://h.test/c</loc><priority>0.5</priority>",
        "<loc>http://h.test/d</loc><lastmod>yesterday</lastmod>",
        "<loc>http://h.test/e</loc><lastmod>2999-01-01</lastmod>",
        "<lastmod>2023-01-02</lastmod>",
        namespace=namespace,
    )
    report = load(body, ROOT)
    assert (report.state, report.format) == (LoadState.LOADED, "sitemap")
    assert report.links.urls == tuple(f"http://h.test/{path}" for path in ("a?x=1&y=2", "b", "c", "d", "e"))
    assert set(report.links.flags) == {LinkKind.SITEMAP}
    second = datetime(2023, 1, 2, 1, 4, 5, tzinfo=UTC).timestamp()
    first = datetime(2023, 1, 2, tzinfo=UTC).timestamp()
    assert report.modified == (("http://h.test/a?x=1&y=2", first), ("http://h.test/b", second))


def test_index(load: Load) -> None:
    report = load(
        f'<sitemapindex xmlns="{NS}"><sitemap><loc>http://h.test/1.xml.gz</loc><lastmod>2023</lastmod></sitemap>'
        "<sitemap><loc>http://h.test/sitemap.xml</loc></sitemap></sitemapindex>",
        ROOT,
    )
    assert report.format == "sitemapindex"
    assert report.links.urls == ("http://h.test/1.xml.gz", ROOT)
    assert report.modified == (("http://h.test/1.xml.gz", datetime(2023, 1, 1, tzinfo=UTC).timestamp()),)


def index(*urls: str) -> bytes:
    entries = "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in urls)
    return f'<sitemapindex xmlns="{NS}">{entries}</sitemapindex>'.encode()


def load_all(intake: Intake, first: str, serve: Callable[[str], bytes], most: int = 100) -> list[str]:
    """URLs read, in order: a crawl of sitemaps by themselves."""
    wanted, read = [first], list[str]()
    while wanted and len(read) < most:
        url = wanted.pop(0)
        page = XmlPage(PageId(len(read) + 1), url, 1, 0.0, Kind.XML, "text/xml", "", serve(url))
        (report,) = intake.take(page, 0.0)
        assert isinstance(report, LoadReport)
        read.append(url)
        wanted += [found for found in report.links.urls if found not in read]
    return read


def test_a_chain_of_indexes_ends() -> None:
    """?page=n+1 for ever: sitemaps.org lets no index lie in another."""
    read = load_all(Intake(), "http://h.test/?x=0", lambda url: index(f"http://h.test/?x={int(url.split('=')[1]) + 1}"))
    assert read == [f"http://h.test/?x={number}" for number in range(NESTED + 1)]


def test_sitemaps_in_indexes_in_indexes_are_read_and_so_are_circles() -> None:
    served = {
        "http://h.test/": index("http://h.test/a", "http://h.test/b", "http://h.test/"),
        "http://h.test/a": index("http://h.test/c", "http://h.test/"),
        "http://h.test/b": urlset("<loc>http://h.test/1</loc>").encode(),
        "http://h.test/c": urlset("<loc>http://h.test/2</loc>").encode(),
        "http://h.test/1": urlset().encode(),
        "http://h.test/2": urlset().encode(),
    }
    intake = Intake()
    for _ in range(3):  # depths do not grow by reading again
        assert sorted(load_all(intake, "http://h.test/", served.__getitem__)) == sorted(served)


def test_depths_remembered_are_bounded() -> None:
    nesting = Nesting()
    for number in range(2 * REMEMBERED):
        nesting.note(f"http://h.test/{number}", 2)
    assert nesting.depth(f"http://h.test/{2 * REMEMBERED - 1}") == 2
    assert nesting.depth("http://h.test/0") == 0


def test_a_gzipped_sitemap_by_its_first_bytes(load: Load) -> None:
    report = load(gzip.compress(urlset("<loc>http://h.test/a</loc>").encode()), ROOT, mime="application/xml")
    assert report.links.urls == ("http://h.test/a",)


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("http://h.test/d/a", True),
        ("http://h.test/d/e/a", True),
        ("http://h.test/d/", True),
        ("http://h.test/d", False),
        ("http://h.test/a", False),
        ("http://h.test/d/../a", False),
        ("http://h.test/dd/a", False),
        ("https://h.test/d/a", False),
        ("http://h.test:81/d/a", False),
        ("http://h.test.evil.test/d/a", False),
        ("http://o.test/d/a", False),
    ],
)
def test_location_rule(url: str, allowed: bool, load: Load) -> None:
    report = load(urlset(f"<loc>{url}</loc>"), "http://h.test/d/sitemap.xml?v=/x/1")
    assert (len(report.links.urls), report.links.dropped) == ((1, 0) if allowed else (0, 1))
    named = load(urlset(f"<loc>{url}</loc>"), "http://h.test/d/sitemap.xml", named=True)
    assert len(named.links.urls) == 1


def test_named_sitemaps_may_list_other_hosts(load: Load) -> None:
    report = load(urlset("<loc>http://o.test/a</loc>"), ROOT, named=True)
    assert report.links.flags == bytes([LinkKind.SITEMAP | LINK_EXTERNAL])


IMAGE = "http://www.google.com/schemas/sitemap-image/1.1"
VIDEO = "https://www.google.com/schemas/sitemap-video/1.1"
NEWS = "http://www.google.com/schemas/sitemap-news/0.9"


def test_extensions(load: Load) -> None:
    body = urlset(
        "<loc>http://h.test/a</loc>"
        f'<i:image xmlns:i="{IMAGE}"><i:loc>http://h.test/i.png</i:loc></i:image>'
        '<link xmlns="http://www.w3.org/1999/xhtml" rel="alternate" hreflang="de" href="http://de.test/a"/>'
        f'<v:video xmlns:v="{VIDEO}"><v:player_loc>http://h.test/play?v=1</v:player_loc>'
        "<v:content_loc>http://h.test/v.mp4</v:content_loc><v:title>http://h.test/no</v:title></v:video>"
        "<lastmod>2023-01-02</lastmod>"
    )
    report = load(body, ROOT)
    assert dict(zip(report.links.urls, report.links.flags, strict=True)) == {
        "http://h.test/a": LinkKind.SITEMAP,
        "http://h.test/i.png": LinkKind.MEDIA | LINK_HINT,
        "http://de.test/a": LinkKind.ALTERNATE | LINK_EXTERNAL,
        "http://h.test/play?v=1": LinkKind.SITEMAP,
        "http://h.test/v.mp4": LinkKind.MEDIA | LINK_HINT,
    }
    assert len(report.modified) == 1


@pytest.mark.parametrize("lastmod", ["", "<lastmod>2023-02-03</lastmod>"])
def test_news_are_dated_by_their_publication_unless_lastmod_says_more(lastmod: str, load: Load) -> None:
    news = f'<n:news xmlns:n="{NEWS}"><n:publication_date>2023-01-02</n:publication_date></n:news>'
    ((_, when),) = load(urlset("<loc>http://h.test/a</loc>" + news + lastmod), ROOT).modified
    assert when == datetime(2023, 2 if lastmod else 1, 3 if lastmod else 2, tzinfo=UTC).timestamp()


def test_changefreq_is_a_claim(load: Load) -> None:
    entries = "</url><url>".join(
        f"<loc>http://h.test/{word}</loc><changefreq>{word}</changefreq>"
        for word in ("Daily", "weekly", "never", "often")
    )
    assert load(urlset(entries), ROOT).rates == (
        ("http://h.test/Daily", 1.0),
        ("http://h.test/weekly", 1 / 7),
        ("http://h.test/never", 0.0),
    )


def test_escaped_twice(load: Load) -> None:
    assert load(urlset("<loc>http://h.test/?a&amp;amp;b</loc>"), ROOT).links.urls == ("http://h.test/?a&b",)


def test_comments_and_cdata_inside_a_loc(load: Load) -> None:
    body = urlset("<loc><!-- x -->http://h.<![CDATA[test/a?b&c]]></loc>")
    assert load(body, ROOT).links.urls == ("http://h.test/a?b&c",)


def test_the_limit_of_entries(load: Load) -> None:
    entries = [f"<loc>http://h.test/{i}</loc>" for i in range(MAX_ENTRIES)]
    report = load(urlset(*entries), ROOT)
    assert (report.state, len(report.links.urls)) == (LoadState.LOADED, MAX_ENTRIES)
    report = load(urlset(*entries, "<loc>http://h.test/one-more</loc>"), ROOT)
    assert (report.state, report.error, len(report.links.urls)) == (LoadState.FAILED, "too-many-urls", MAX_ENTRIES)


@pytest.mark.parametrize(
    "slip", ["<loc>http://h.test/b?x&y&copy=1</loc>", "<loc>http://h.test/b?x&amp;y&amp;copy=1</loc>\x0b"]
)
def test_a_broken_sitemap_keeps_what_is_before_and_behind_the_slip(slip: str, load: Load) -> None:
    entries = ("<loc>http://h.test/a</loc><lastmod>2023</lastmod>", slip, "<loc>http://h.test/c</loc>")
    report = load(urlset(*entries), ROOT)
    assert (report.state, report.error) == (LoadState.FAILED, "not-well-formed")
    assert report.links.urls == ("http://h.test/a", "http://h.test/b?x&y&copy=1", "http://h.test/c")
    assert len(report.modified) == 1


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("1997", (1997, 1, 1)),
        ("1997-07", (1997, 7, 1)),
        ("1997-07-16", (1997, 7, 16)),
        ("1997-07-16T19:20Z", (1997, 7, 16, 19, 20)),
        ("1997-07-16T19:20+01:00", (1997, 7, 16, 18, 20)),
        ("1997-07-16T19:20:30-01:00", (1997, 7, 16, 20, 20, 30)),
        ("1997-07-16T19:20:30.45Z", (1997, 7, 16, 19, 20, 30, 450_000)),
        ("1997-07-16 19:20:30", (1997, 7, 16, 19, 20, 30)),
    ],
)
def test_w3c_datetime(text: str, when: tuple[int, ...]) -> None:
    assert w3c_time(text) == datetime(*when, tzinfo=UTC).timestamp()  # type: ignore[misc, arg-type]


@pytest.mark.parametrize(
    "text", ["", "x", "97", "1997-13", "1997-02-30", "19970", "1997-07-16T25:00Z", "1" * 100, "２０２３x"]
)
def test_no_w3c_datetime(text: str) -> None:
    assert w3c_time(text) is None


@given(st.text(max_size=70))
def test_any_text_is_a_date_or_none(text: str) -> None:
    assert isinstance(w3c_time(text), float | None)


@given(st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30), timezones=st.just(UTC)))
def test_dates_round_trip(when: datetime) -> None:
    assert w3c_time(when.isoformat()) == when.timestamp()


def test_folder() -> None:
    assert folder_of("http://h.test/") == "http://h.test/"
    assert folder_of("http://h.test/a/b.xml?c/d") == "http://h.test/a/"
