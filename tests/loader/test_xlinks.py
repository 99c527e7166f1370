"""Links of XHTML, XLink and XInclude, and how the collector counts them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.loader.xlinks import DocumentLinks
from xyro.wire.messages import LINK_EXTERNAL, LINK_HINT, LINK_NOFOLLOW, MAX_LINKS, LinkKind, LoadReport, LoadState

Load = Callable[..., LoadReport]
XHTML = '<html xmlns="http://www.w3.org/1999/xhtml">{}</html>'
XLINK = '<doc xmlns:l="http://www.w3.org/1999/xlink">{}</doc>'
HERE = "http://h.test/d/"


def shown(report: LoadReport) -> dict[str, int]:
    assert report.state is LoadState.LOADED, report.error
    return dict(zip(report.links.urls, report.links.flags, strict=True))


@pytest.mark.parametrize(
    ("markup", "links"),
    [
        ('<a href="x"/>', {HERE + "x": LinkKind.ANCHOR}),
        ('<map><area href="x"/></map>', {HERE + "x": LinkKind.AREA}),
        ('<frame src="x"/><iframe src="y"/>', {HERE + "x": LinkKind.FRAME, HERE + "y": LinkKind.FRAME}),
        ('<a href="//other.test/"/>', {"http://other.test/": LinkKind.ANCHOR | LINK_EXTERNAL}),
        ('<a href="http://h.test:8080/"/>', {"http://h.test:8080/": LinkKind.ANCHOR | LINK_EXTERNAL}),
        ('<a href="x" rel="noopener NoFollow"/>', {HERE + "x": LinkKind.ANCHOR | LINK_NOFOLLOW}),
        ('<link rel="alternate" href="x"/>', {HERE + "x": LinkKind.ALTERNATE}),
        ('<link rel="alternate" type="application/rss+xml" href="x"/>', {HERE + "x": LinkKind.FEED}),
        ('<link rel="next" href="x"/>', {HERE + "x": LinkKind.NEXT}),
        ('<link rel="canonical" href="x"/>', {HERE + "x": LinkKind.CANONICAL | LINK_HINT}),
        ('<link rel="stylesheet" href="x"/><link rel="alternate stylesheet" href="y"/><link href="z"/>', {}),
        ('<a name="x"/><a href=""/><a href="#top"/><img src="x"/><script src="y"/>', {}),
        ('<meta http-equiv="Refresh" content="5; URL=x"/>', {HERE + "x": LinkKind.REDIRECT}),
        ("<meta http-equiv=\"refresh\" content=\"0;url='x y'\"/>", {HERE + "x%20y": LinkKind.REDIRECT}),
        ('<meta http-equiv="refresh" content="5"/><meta http-equiv="refresh"/>', {}),
        ('<base href="/b/"/><a href="x"/><base href="/c/"/><a href="y"/>',
         {"http://h.test/b/x": 0, "http://h.test/b/y": 0}),
        ('<base href="mailto:x"/><base href="/c/"/><a href="y"/>', {"http://h.test/c/y": 0}),
        ('<a href="x"/><meta name="robots" content="noindex, NoFollow"/><a href="y"/>',
         {HERE + "x": LINK_NOFOLLOW, HERE + "y": LINK_NOFOLLOW}),
        ('<meta name="robots" content="none"/><a href="x"/>', {HERE + "x": LINK_NOFOLLOW}),
        ('<meta name="robots" content="noindex"/><a href="x"/>', {HERE + "x": LinkKind.ANCHOR}),
        ('<div xml:base="/b/"><a href="x"/><p xml:base="c/"><a href="y"/></p><a href="z"/></div><a href="w"/>',
         {"http://h.test/b/x": 0, "http://h.test/b/c/y": 0, "http://h.test/b/z": 0, HERE + "w": 0}),
        ('<div xml:base="file:///etc/"><a href="x"/></div>', {HERE + "x": 0}),
    ],
)  # fmt: skip
def test_xhtml(markup: str, links: dict[str, int], load: Load) -> None:
    report = load(XHTML.format(markup))
    assert report.format == "xhtml"
    assert shown(report) == links


def test_html_root_without_its_namespace(load: Load) -> None:
    assert shown(load('<html><base href="/b/"/><a href="x"/></html>')) == {"http://h.test/b/x": 0}
    assert load('<html><base href="/b/"/></html>').format == "xhtml"


def test_xhtml_inside_other_documents_is_seen(load: Load) -> None:
    report = load('<doc xmlns:h="http://www.w3.org/1999/xhtml"><h:a href="x"/><a href="y"/></doc>')
    assert (report.format, shown(report)) == ("xml", {HERE + "x": 0})


@pytest.mark.parametrize(
    ("markup", "urls"),
    [
        ('<e l:type="simple" l:href="x"/>', [HERE + "x"]),
        ('<e l:href="x"/>', [HERE + "x"]),
        ('<e l:type="extended"><f l:type="locator" l:href="x"/><f l:type="arc" l:href="y"/></e>', [HERE + "x"]),
        ('<e l:type="simple" l:show="embed" l:href="x"/>', []),
        ('<e l:type="simple" l:show="new" l:href="x"/>', [HERE + "x"]),
        ('<e l:type="simple" l:href="#part"/>', []),
        ('<e xml:base="b/" l:href="x"/>', [HERE + "b/x"]),
        ('<s xmlns="http://www.w3.org/2000/svg"><a l:href="x"/><image l:href="y"/><use l:href="z#q"/></s>',
         [HERE + "x"]),
        ('<i xmlns="http://www.w3.org/2001/XInclude"><include href="x"/><include href="y" parse="text"/></i>',
         [HERE + "x", HERE + "y"]),
        ('<include href="x"/>', []),
    ],
)  # fmt: skip
def test_xlink_and_xinclude(markup: str, urls: list[str], load: Load) -> None:
    report = load(XLINK.format(markup))
    assert report.format == "xml"
    assert shown(report) == dict.fromkeys(urls, LinkKind.XLINK)


def test_stylesheets_are_links_where_they_are_xml_and_schemas_are_none(load: Load) -> None:
    report = load(
        '<?xml-stylesheet href="x.css" type="text/css"?>'
        '<?xml-stylesheet href="x.xsl" type="text/xsl"?><r xmlns:s="http://www.w3.org/2001/XMLSchema-instance" '
        's:schemaLocation="urn:x x.xsd" s:noNamespaceSchemaLocation="y.xsd"/>'
    )
    assert shown(report) == {HERE + "x.xsl": LinkKind.STYLESHEET}


def test_what_names_no_page_is_counted(load: Load) -> None:
    report = load(XHTML.format('<a href="mailto:x@y"/><a href="javascript:x()"/><a href="file:///x"/><a href="ok"/>'))
    assert (report.links.urls, report.links.dropped) == ((HERE + "ok",), 3)


def test_a_plain_link_outweighs_nofollow_and_both_a_hint() -> None:
    plain, nofollow, hint = LinkKind.ANCHOR, LinkKind.AREA | LINK_NOFOLLOW, LinkKind.CANONICAL | LINK_HINT
    for weaker, stronger in ((nofollow, plain), (hint, plain), (hint, nofollow)):
        for order in ((weaker, stronger), (stronger, weaker), (weaker, stronger, weaker)):
            found = DocumentLinks("http://h.test/", 0.0)
            for flags in order:
                found.add("http://o.test/x", flags)
            assert found.links().flags == bytes([stronger | LINK_EXTERNAL])


def test_the_first_kind_counts() -> None:
    found = DocumentLinks("http://h.test/", 0.0)
    found.add("x", LinkKind.FRAME)
    found.add("./x", LinkKind.ANCHOR)
    assert found.links().flags == bytes([LinkKind.FRAME])


def test_at_most_max_links_and_the_rest_is_counted_once_each() -> None:
    found = DocumentLinks("http://h.test/", 0.0)
    for i in range(MAX_LINKS + 10):
        found.add(f"/{i}", 0)
    for i in range(MAX_LINKS + 10):
        found.add(f"/{i}", 0)
    links = found.links()
    assert (len(links.urls), links.truncated, links.urls[-1]) == (MAX_LINKS, 10, f"http://h.test/{MAX_LINKS - 1}")


@given(st.lists(st.tuples(st.sampled_from(["/a", "b", "?c", "//o.test/d", "ftp://e/"]), st.integers(0, 9))))
def test_distinct_in_order_of_first_appearance(rows: list[tuple[str, int]]) -> None:
    found = DocumentLinks("http://h.test/x", 0.0)
    urls = [found.add(href, kind) for href, kind in rows]
    assert list(found.links().urls) == list(dict.fromkeys(url for url in urls if url))
    assert found.links().dropped == urls.count(None)


def test_slashes_are_folded_or_not() -> None:
    for fold, url in ((True, "http://h.test/a/b"), (False, "http://h.test/a//b")):
        assert DocumentLinks("http://h.test/", 0.0, fold_slashes=fold).add("a//b", 0) == url


def test_dates_are_of_links_and_neither_in_the_future_nor_before_1970() -> None:
    found = DocumentLinks("http://h.test/", 1_000_000.0)
    url = found.add("x", 0)
    for when in (5.0, 900.0, -1.0, 0.0, 1_086_401.0, 30.0, float("nan")):
        found.date(url, when)
    found.date("http://h.test/unknown", 900.0)
    found.date(None, 900.0)
    assert found.dates == ((url, 900.0),)
    found.date(url, 1_086_400.0)
    assert found.dates == ((url, 1_000_000.0),)
