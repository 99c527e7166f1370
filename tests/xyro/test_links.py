"""The two ways through a page (scan, parser) tell the same, whole or in pieces, on real, hostile and random markup."""

from __future__ import annotations

import codecs
import gzip
import random
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xyro import links as module
from xyro import scan
from xyro.charset import codec_for, codec_of
from xyro.hrefs import ENTRY, MOST_CHARACTERS, refresh_target
from xyro.links import ExtractedLinks, HrefCache, LinkExtractor
from xyro.wire.messages import LINK_EXTERNAL, LINK_HINT, LINK_NOFOLLOW, MAX_LINKS, LinkKind

PAGE = "http://example.org/docs/page.html"


def found(
    body: bytes | str, url: str = PAGE, *, pieces: int = 0, charset: str = "", cache: HrefCache | None = None
) -> ExtractedLinks:
    data = body.encode() if isinstance(body, str) else body
    extractor = LinkExtractor(url, resolver=cache, charset=charset)
    step = pieces or max(len(data), 1)
    for start in range(0, len(data), step):
        extractor.feed(data[start : start + step])
    return extractor.close()


def parsed(body: bytes | str, url: str = PAGE, *, charset: str = "", cache: HrefCache | None = None) -> ExtractedLinks:
    """The same through the parser."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module.scan, "tags", lambda body: ([], body))
        return found(body, url, charset=charset, cache=cache)


def links(body: bytes | str, url: str = PAGE) -> list[tuple[str, int]]:
    one, two = found(body, url), parsed(body, url)
    assert one == two
    return list(zip(one.links.urls, one.links.flags, strict=True))


def urls(body: bytes | str, url: str = PAGE) -> list[str]:
    return [target for target, _ in links(body, url)]


def test_hubs_and_the_url_that_they_call_the_page_by() -> None:
    page = """<head><link rel="HUB nofollow" href=//hub.example/a><link rel=hub href="/b"><link rel=self href=feed>
    <link rel=hub href=""><link rel=hub><link rel=hub href="javascript:x"><link rel=self href=second>
    <base href="http://other.example/d/"></head><a rel=hub href=no>"""
    one = found(page)
    assert one == parsed(page) == found(page, pieces=7)
    assert one.hubs == ("http://hub.example/a", "http://other.example/b", "http://other.example/d/")
    assert one.topic == "http://other.example/d/feed" and one.links.urls == ("http://other.example/d/no",)
    alone = found("<link rel=self href=feed><link rel=hubs href=x>")
    assert alone == parsed("<link rel=self href=feed><link rel=hubs href=x>") and not alone.hubs and not alone.topic
    many = found("".join(f"<link rel=hub href=//h{k}.example/>" for k in range(1000)))
    assert 1 < len(many.hubs) <= 16


def test_a_hub_is_told_on_each_page_of_a_folder() -> None:
    cache = HrefCache()
    for number in range(3):
        assert found("<link rel=hub href=/hub>", f"http://a.example/p{number}", cache=cache).hubs == (
            "http://a.example/hub",
        )
    assert not found("<p>", "http://a.example/p9", cache=cache).hubs


def test_elements_and_their_kinds() -> None:
    page = """<!DOCTYPE html><html><head><title>a <a href=no></title>
    <link rel="Next" href=n1><link rel="canonical" href="/canon">
    <link rel=alternate type="application/rss+xml" href=feed.xml>
    <link rel="alternate stylesheet" href=no.css><link rel=stylesheet href=no.css>
    <link rel=alternate hreflang=de href=de>
    </head><body><A HREF='one'>1</A><area href=two><iframe src=three></iframe><frame src="four">
    <a name=x>no</a><a rel="x NoFollow" href=five></a><img src=no></body>"""
    got = {url.removeprefix("http://example.org"): flags for url, flags in links(page)}
    assert got == {
        "/docs/n1": LinkKind.NEXT,
        "/canon": LinkKind.CANONICAL | LINK_HINT,
        "/docs/feed.xml": LinkKind.FEED,
        "/docs/de": LinkKind.ALTERNATE,
        "/docs/one": LinkKind.ANCHOR,
        "/docs/two": LinkKind.AREA,
        "/docs/three": LinkKind.FRAME,
        "/docs/four": LinkKind.FRAME,
        "/docs/five": LinkKind.ANCHOR | LINK_NOFOLLOW,
    }
    assert found(page).canonical == "http://example.org/canon"


def test_order_is_that_of_first_appearance_and_urls_are_distinct() -> None:
    assert urls("<a href=b></a><a href=a></a><a href=b#x></a><a href='./a'>") == [
        "http://example.org/docs/b",
        "http://example.org/docs/a",
    ]


def test_self_links_count_but_fragments_of_the_page_do_not() -> None:
    assert urls("<a href=page.html>self</a><a href='#top'>t</a><a href=''>e</a><a href=' #x '>f</a>") == [PAGE]


def test_what_names_no_http_url_is_dropped_and_counted() -> None:
    page = "<a href='javascript:x()'><a href='mailto:a@b'>"
    page += "<a href='http://['><a href='mailto:a@b'><a href='tel:1'><a href='ok'>"
    assert urls(page) == ["http://example.org/docs/ok"]
    assert found(page).links.dropped == 4


def test_external_is_another_host_or_port() -> None:
    flags = dict(
        links("<a href='//example.org:81/'><a href='http://other.net/'><a href=/in><a href=https://example.org/>")
    )
    assert [flag & LINK_EXTERNAL != 0 for flag in flags.values()] == [True, True, False, False]


def test_the_first_valid_base_counts_for_all_links_and_external_stays_the_pages() -> None:
    page = "<link rel=next href=n><base target=x>"
    page += "<base href='data:x'><base href='http://other.net/d/'><base href='/z/'><a href=a>"
    assert links(page) == [
        ("http://other.net/d/n", LinkKind.NEXT | LINK_EXTERNAL),
        ("http://other.net/d/a", LinkKind.ANCHOR | LINK_EXTERNAL),
    ]
    assert found(page).base == "http://other.net/d/"


def test_a_plain_link_outweighs_nofollow_and_both_a_hint() -> None:
    page = "<link rel=canonical href=x><a rel=nofollow href=y></a>"
    page += "<a rel=nofollow href=x></a><a href=y></a><a rel=nofollow href=y>"
    assert dict(links(page)) == {
        "http://example.org/docs/x": LinkKind.ANCHOR | LINK_NOFOLLOW,
        "http://example.org/docs/y": LinkKind.ANCHOR,
    }


@pytest.mark.parametrize(
    ("meta", "noindex", "nofollow"),
    [
        ("<meta name=ROBOTS content='NoIndex, nofollow'>", True, True),
        ("<meta name='xyro' content=none>", True, True),
        ("<meta name=googlebot content=none>", False, False),
        ("<meta content=nofollow name=robots>", False, True),
    ],
)
def test_meta_robots(meta: str, noindex: bool, nofollow: bool) -> None:
    cache = HrefCache()
    for _ in range(2):  # the second time the tag has been met in this folder
        got = found(meta, cache=cache)
        assert (got.noindex, got.nofollow) == (noindex, nofollow)
        assert parsed(meta) == got


@pytest.mark.parametrize(
    ("content", "target"),
    [
        ("5; url=next.html", "next.html"),
        ("0;URL='a b'", "a b"),
        ('1 , url = "x" y', "x"),
        ("0; next", "next"),
        ("7", ""),
        ("", ""),
        ("x", "x"),
    ],
)
def test_refresh(content: str, target: str) -> None:
    assert refresh_target(content) == target


def test_meta_refresh_is_a_redirect_link_on_every_page_of_a_folder() -> None:
    cache = HrefCache()
    page = "<meta http-equiv=Refresh content='0; url=/elsewhere'>"
    for _ in range(2):
        got = found(page, cache=cache)
        assert (got.links.urls, got.links.flags) == (("http://example.org/elsewhere",), bytes([LinkKind.REDIRECT]))
        assert got.refresh == "http://example.org/elsewhere"


def test_a_bare_query_hangs_on_its_page_even_when_the_folder_is_known() -> None:
    cache = HrefCache()
    for name in ("a", "b"):
        for page in ("<a href='?q=1'>", "<a href='\x01 ?q=1'>"):
            assert found(page, f"http://h.org/{name}", cache=cache).links.urls == (f"http://h.org/{name}?q=1",)


def test_the_same_tag_in_another_folder_or_encoding_is_another_link() -> None:
    cache = HrefCache()
    tag = "<a href='x\xe9'>".encode("latin-1")
    assert found(tag, "http://h.org/1/", cache=cache, charset="iso-8859-1").links.urls == ("http://h.org/1/x%C3%A9",)
    assert found(tag, "http://h.org/2/", cache=cache, charset="iso-8859-1").links.urls == ("http://h.org/2/x%C3%A9",)
    assert found(tag, "http://h.org/1/", cache=cache, charset="cp1251").links.urls == ("http://h.org/1/x%D0%B9",)


def test_equal_urls_are_one_object_and_the_cache_stays_bounded() -> None:
    cache = HrefCache(size=100)
    one = found("<a href=x>", cache=cache).links.urls[0]
    assert found("<a href=x>", cache=cache).links.urls[0] is one
    assert found("<a href='/docs/x'>", "http://example.org/other/", cache=cache).links.urls[0] is one
    for number in range(500):
        assert found(f"<a href={number}>", f"http://h.org/{number}/", cache=cache).links.urls == (
            f"http://h.org/{number}/{number}",
        )
    assert len(cache._young) + len(cache._old) <= 200


def kept(cache: HrefCache) -> int:
    """Characters of all URLs that a cache holds, and of its folders' names."""
    folders = {**cache._old, **cache._young}
    marks = {mark[0] for folder in folders.values() for mark in folder.marks.values() if mark}
    return sum(map(len, marks | set(cache._urls) | set(folders)))


BASE = "<base href='http://example.org/" + "b" * 4000 + "/'>"


@pytest.mark.parametrize(
    ("head", "href"),
    [
        ("", "?q={page}-{n}"),  # is never remembered, for it hangs on its page
        ("", "x" * 600 + "{page}-{n}"),  # too long to be
        (BASE, "{page}-{n}"),  # a few bytes of the page, 4,000 of the cache
        ("<base href='http://example.org/" + "b" * 3000 + "{page}/'>", "{n}"),
    ],
    ids=["bare queries", "long hrefs", "a long base", "long bases"],
)
@pytest.mark.parametrize("reader", [found, parsed])
def test_no_site_fills_the_cache(head: str, href: str, reader: Callable[..., ExtractedLinks]) -> None:
    cache = HrefCache(size=1_000)
    for page in range(40):
        body = head.format(page=page) + "".join(f"<a href='{href.format(page=page, n=n)}'>" for n in range(100))
        reader(body, f"http://example.org/docs/{page}", cache=cache)
        assert len(cache._urls) <= 1_000
        assert kept(cache) <= 3 * 1_000 * ENTRY + 100 * 4_096, page


def test_folders_that_are_always_in_use_do_not_grow_for_ever() -> None:
    cache = HrefCache(size=10_000)
    for page in range(300):
        for folder in range(10):
            body = "".join(f"<a href='{page}-{n}'>" for n in range(50)) + "<a href=menu>"
            assert len(found(body, f"http://h.org/{folder}/p", cache=cache).links.urls) == 51
    entries = sum(len(folder.marks) for folder in {**cache._old, **cache._young}.values())
    assert entries <= 2 * 10_000


@pytest.mark.parametrize("reader", [found, parsed])
def test_links_of_a_page_are_bounded_in_characters_too(reader: Callable[..., ExtractedLinks]) -> None:
    got = reader(BASE + "".join(f"<a href={n}>" for n in range(15_000)))
    assert sum(map(len, got.links.urls)) <= MOST_CHARACTERS + 4_096
    assert len(got.links.urls) > 2_000 and got.links.truncated == 15_000 - len(got.links.urls)


def test_anonymous_references_in_attributes() -> None:
    page = "<a href='?a=1&amp;b=2&copy=3&copy;=4&notit;&#x41;&#66;&#0;&lt&gt'>"
    assert urls(page) == [PAGE + "?a=1&b=2&copy=3%C2%A9=4&notit;AB%EF%BF%BD%3C%3E"]


def test_first_of_equal_attributes_counts() -> None:
    assert urls("<a href=one href=two HREF=three>") == ["http://example.org/docs/one"]


def test_links_hidden_in_comments_scripts_and_values_are_none() -> None:
    page = """<!-- <a href=no> --><script>"<a href=no>"</script><style><a href=no></style>
    <textarea><a href=no></textarea>
    <img alt="<a href=no>"><img alt='> <a href=no>'><title><a href=no></title><a href=yes>y</a><!-->
    <a href=two><!-- a --!><a href=three>
    <script><!-- <a href=no> </script><a href=four>"""
    assert urls(page) == [f"http://example.org/docs/{name}" for name in ("yes", "two", "three", "four")]


HARD = [
    b"",
    b"<",
    b"<a",
    b"<a href=x",
    b"<a href='x",
    b"a < b <a href=x> 1 <2",
    b"<<a href=x>",
    b"<a/href=x/>",
    b"<a =x href=y>",
    b"<a ='x' href=y>",
    b"<a href = 'x' b>",
    b'<a href=x\'y z="<a href=no>">',
    b'<a="x>"><a href=y>',
    b'<p x=y="z w= "><a href=x>">',
    b"<p title='a>b'><a href=x>",
    b'<p title="it\'s"><a href=x>',
    b"</p title='<a href=no>'><a href=x>",
    b"</ a><a href=x>",
    b"</><a href=x>",
    b'<!doctype html public "<a href=no>"><a href=x>',
    b"<!DOCTYPE html PUBLIC '-//W3C//DTD XHTML 1.0 Strict//EN' \"http://www.w3.org/TR/xhtml1/strict.dtd\"><a href=x>",
    b"<?xml version='1.0' encoding='utf-8'?><a href=x/>",
    b"<![CDATA[ <a href=x> ]]><a href=y>",
    b"<!--->x<a href=y><!---><a href=z>--><a href=w>",
    b"<!-- a <a href=x>",
    b"<!-- a -- > <a href=x> --><a href=y>",
    b"<script>x</script ><a href=y>",
    b"<script>x</script foo='<a href=no>'><a href=y>",
    b"<script><!--<script></script><a href=no>--></script><a href=y>",
    b"<script/><a href=x></script><a href=y>",
    b"<SCRIPT>1<2</ScRiPt><a href=y>",
    b"<script>x</scripty><a href=no></script><a href=y>",
    b"<title>x<a href=no></title><a href=y>",
    b"<textarea><a href=no>",
    b"<xmp><a href=no></xmp><a href=y>",
    b"<noscript><a href=x></noscript><noembed><a href=no></noembed>",
    b"<iframe src=f>text</iframe><a href=y>",
    b"<iframe src=f><a href=no></iframe><a href=y>",
    b"<plaintext><a href=no>",
    b"<svg><a xlink:href=no href=y></a><style><a href=no></style></svg>",
    b"<base href=/b/><basefont href=no><a href=x>",
    b"<BASE HREF=/b/><Base href=/c/><a href=x>",
    b"<a\thref=x\n><a\x0chref=y\r\n><a\r\nhref='z\r\n'>",
    b"<abbr href=no><address><article><area href=x><link href=no><li><i><img><input><p><s><span><strong><table>",
    b"<x-custom a=b><my:tag c='d'><m_n><a href=x>",
    b"<a href=x\0y><a\0 href=z>",
    b"<a href=\xff\xfe><a href='\xc3\xa9'>",
    b"<a href=a&mp;;b><link rel=next href=&mp;;><a href='&copy;;x'><a href='&#65;;x'>",
    b"<a href=`x`><a href=x`y>",
    b"<a href=x onclick='f(\"y\")'><a href=y title='&quot;>'>",
    b"<a href><a href=><a href=''><a href=\"\">",
    b"<a href=x/><a href=y / ><a href=z/ >",
    b"<A HREF=x><LINK REL=NEXT HREF=y><META NAME=ROBOTS CONTENT=NONE>",
    b"<meta charset=utf-16><a href=\xc3\xa9>",
    b'<a href="x#y"><a title="<b>" href="z#"><a href="#t"><a name="n"><a name="n" href="a&amp;b#c"><a href="x">',
    b'<a href="a&#35;b"><a href="a&num;b#c"><a href=" s #f"><a href="s #f"><a href="\xe9#f"><a href="">',
    b'<a href="mailto:x#1"><a href="mailto:x#2"><a href="//o.test/p#q"><a href="?q#r"><a href="http://[#x">',
    b'<a rel="nofollow" href="z"><a href="y" rel="nofollow"><a role="x" href="w"><a href="x" href="no"><a href="v"/>',
    b'<a href="x"y="z"><a href="x" "><a href="w"><a href="q\'><a href="p">',
    b'<a href="' + b"k" * 600 + b'"><a href="x#' + b"f" * 5000 + b'"><a href="a>b#c"><a href="a<b#c"><a href="d',
]


@pytest.mark.parametrize("body", HARD)
def test_scan_and_parser_agree_and_pieces_change_nothing(body: bytes) -> None:
    whole = found(body)
    assert whole == parsed(body)
    for size in range(1, 8):
        assert found(body, pieces=size) == whole
    assert found(body + b" <a href=last>") == parsed(body + b" <a href=last>")


@pytest.mark.parametrize("body", HARD)
def test_the_parser_is_fed_at_every_byte(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    charset = "utf-8"  # a stream decides on its encoding by its first piece
    whole = parsed(body, charset=charset)
    monkeypatch.setattr(module, "WHOLE", 0)
    monkeypatch.setattr(module, "PIECE", 0)
    assert found(body, pieces=1, charset=charset) == whole


@pytest.mark.parametrize("size", [1, 7, 40])
@pytest.mark.parametrize("body", HARD)
def test_a_long_page_is_scanned_in_pieces(body: bytes, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = parsed(body, charset="utf-8")
    monkeypatch.setattr(module, "WHOLE", 60)
    monkeypatch.setattr(module, "PIECE", 20)
    assert found(body, pieces=size, charset="utf-8") == whole


def test_the_parser_begins_where_the_scan_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long page with one thing in doubt: tags before it are the scan's, those after it the parser's."""
    row = "".join(f"<p>text</p><a href=\"p{n}#x\">a</a><a href='q{n}'>b</a>" for n in range(5000))
    page = f"{row}<a href='late\x00'><base href=/b/>{row}<link rel=canonical href=c>".encode()
    assert len(page) > 2 * module.WHOLE
    one, two = found(page, pieces=50_000, charset="utf-8"), parsed(page, charset="utf-8")
    assert one == two and one.base.endswith("/b/") and len(one.links.urls) == 10_002
    monkeypatch.setattr(module, "PENDING", 100)
    assert not found(page, pieces=50_000, charset="utf-8").base


FRAGMENTS = [
    *(
        "<a href=",
        "<a ",
        "href=",
        "x",
        "'",
        '"',
        ">",
        "<",
        "/",
        " ",
        "=",
        "\n",
        "<!--",
        "-->",
        "--!>",
        "<!",
        "<?",
        "</",
    ),
    *(
        "<p ",
        "<p>",
        "</p>",
        "title=",
        "<script>",
        "</script>",
        "<title>",
        "</title>",
        "<base href=/b/>",
        "&amp;",
        "&copy",
    ),
    *(
        "<textarea>",
        "</textarea>",
        "<iframe src=i>",
        "</iframe>",
        "<area href=y>",
        "<link rel=next href=n>",
        "text",
        "é",
        "-",
    ),
    *(
        "<a href='q'>",
        '<a class="c" href="r">',
        "<style>",
        "</style>",
        "<S",
        "<li",
        "<meta name=robots content=none>",
        "`",
    ),
]


ODD = [
    *("\f", "\r", "\t", "\r\n", "\v", "\xa0", "\u2003", "\x1f", "  "),
    *("<a", "<a hre", "<a href", "<ar", "<bas", "</a", "</titl", "</script", "<!doctyp", "<!-", "<!--", "--", "<sc"),
    *("<svg>", "</svg>", "<math>", "<foreignobject>", "<desc>", "<![cdata[", "]]>", "<svg/>", "<path d=m/>", "<use/>"),
    *("<a xlink:href=z ", "<noscript>", "<noframes>", "<noembed>", "<xmp>", "<plaintext>", "<template>", "<select>"),
    *("</svg:a>", "<svg:a href=y>", "<frame src=f>", "<base\tHREF=/c/\n>", "<image href=i>", "<basefont>", "<object>"),
    *(
        "<body>",
        "<html>",
        "<head>",
        "</body>",
        "</html>",
        "<frameset>",
        "<table><tr>",
        "</p>",
        "<br/>",
        "<a\thref\n=\r",
    ),
]
"""White space that is none or rare, tags that do not end, elements of SVG and MathML, and of rules of their own."""


def in_odd_case(part: tuple[str, int]) -> str:
    """A fragment, the case of its letters turned where the number has a bit."""
    text, bits = part
    return "".join(c.swapcase() if bits >> (k % 24) & 1 else c for k, c in enumerate(text))


CASE = st.one_of(st.just(0), st.just(2**24 - 1), st.integers(0, 2**24 - 1))
MARKUP = st.lists(st.tuples(st.sampled_from(FRAGMENTS + ODD), CASE).map(in_odd_case), max_size=24).map("".join)


@settings(max_examples=500, deadline=None)
@given(MARKUP)
def test_scan_never_disagrees_with_the_parser(body: str) -> None:
    assert found(body) == parsed(body)


@pytest.mark.long
@settings(max_examples=10_000, deadline=None)
@given(MARKUP)
def test_scan_does_not_disagree_with_the_parser_in_many_tries(body: str) -> None:
    assert found(body) == parsed(body)


@pytest.mark.parametrize(
    ("body", "targets"),
    [
        ("<iFrame src=x></iFRAME>", ["x"]),
        ("<lINK rel=next href=x><aREA href=y><A hREF=z><fRAME src=w>", ["x", "y", "z", "w"]),
        ("<bASE href=/b/><a href=x>", ["/b/x"]),
        ("<Base href=/b/><a href=x>", ["/b/x"]),
        ("<sCRIPT>'<a href=no>'</sCript><a href=x>", ["x"]),
        ("<textArea><a href=no></TEXTarea><tItle><a href=no></title><sTyle><a href=no></STYLE><a href=x>", ["x"]),
        ("<iFrame><a href=no></iframe><nOembed><a href=no></noEmbed><pLAINTEXT><a href=no>", []),
    ],
)
def test_names_of_elements_are_read_in_any_case(body: str, targets: list[str]) -> None:
    assert urls(body) == [f"http://example.org{'' if path[0] == '/' else '/docs/'}{path}" for path in targets]


def test_meta_robots_in_any_case() -> None:
    for reader in (found, parsed):
        assert reader("<mETA NaMe=rObots content=nOne>").noindex


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_raise(body: bytes) -> None:
    assert found(body, pieces=7) == found(body)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="&#xX;0123456789abcogtlnpqu= <>", max_size=30).filter(lambda text: "'" not in text))
def test_references_decode_as_the_parser_decodes_them(value: str) -> None:
    body = f"<a href='http://h/?{value}'>"
    assert found(body) == parsed(body)


def test_real_pages() -> None:
    """Pages of Debian's documentation, where the rig's corpus is (the rig compares all 16,610)."""
    corpus = Path("/root/.cache/xyro-rig/corpus")
    if not corpus.is_dir():
        pytest.skip("no corpus on this machine")
    pages = sorted(corpus.rglob("*.html"))
    cache = HrefCache()
    scanned = 0
    for path in random.Random(7).sample(pages, 60):
        body = path.read_bytes()
        url = f"http://docs.example/{path.relative_to(corpus)}"
        got = found(body, url, cache=cache)
        assert got == parsed(body, url, cache=cache), path
        assert got == found(body, url, pieces=1448, cache=cache), path
        scanned += not scan.tags(body)[1]
    assert scanned >= 55  # or the fast way is no longer the way


def test_utf16_and_other_encodings() -> None:
    text = "<html><a href='/ü'>x</a>"
    for codec, mark in (
        ("utf-16-le", codecs.BOM_UTF16_LE),
        ("utf-16-be", codecs.BOM_UTF16_BE),
        ("utf-8", codecs.BOM_UTF8),
    ):
        got = found(mark + text.encode(codec), charset="koi8-r")
        assert (got.links.urls, got.charset) == (("http://example.org/%C3%BC",), codec)
        assert found(mark + text.encode(codec), pieces=3) == got
    assert found(text.encode("utf-16-le")).links.urls == ("http://example.org/%C3%BC",)
    assert found(text.encode("gb18030"), charset="gb2312").charset == "gb18030"
    assert found(text.encode("cp1252")).charset == "cp1252"


@pytest.mark.parametrize(
    ("body", "header", "codec"),
    [
        (b"<meta charset=koi8-r>", "", "koi8-r"),
        (b"<meta charset=koi8-r>", "UTF-8", "utf-8"),
        (b"\xef\xbb\xbf<meta charset=koi8-r>", "iso-8859-2", "utf-8"),
        (b"<meta http-equiv='Content-Type' content='text/html; charset=windows-1251'>", "", "cp1251"),
        (b"<?xml version='1.0' encoding='iso-8859-2'?>", "", "iso8859-2"),
        (b" " * 1030 + b"<meta charset=koi8-r>", "", "koi8-r"),
        (b" " * 16_384 + b"<meta charset=koi8-r>", "", "utf-8"),
        (b"<meta charset=utf-16>", "", "utf-8"),
        (b"<meta charset=nonsense>", "also-nonsense", "utf-8"),
        (b"<p>\xc3\xa9", "", "utf-8"),
        (b"<p>\xe9", "", "cp1252"),
        (b"<p>\xe9", "us-ascii", "cp1252"),
        (b"<p>", "utf-7", "utf-8"),
        (b"<p>", "base64", "utf-8"),
        (b"<p>", "utf-16", "utf-16-le"),
    ],
)
def test_encoding_rule(body: bytes, header: str, codec: str) -> None:
    assert codec_for(body, header) == codec
    assert found(body, charset=header).charset == codec


def test_queries_are_written_in_the_encoding_of_their_page() -> None:
    cache = HrefCache()
    page = "<meta charset={}><a href='?q=привет'><a href='/s?q=привет'><form><a href='/s/при?x=&eacute;'>"
    octets = "%EF%F0%E8%E2%E5%F2", "%D0%BF%D1%80%D0%B8%D0%B2%D0%B5%D1%82"
    for _ in range(2):  # one cache for pages of both encodings
        for reader in (found, parsed):
            for charset, query, entity in (
                ("windows-1251", octets[0], "%26%23233%3B"),
                ("utf-8", octets[1], "%C3%A9"),
            ):
                body = page.format(charset).encode(charset)
                assert reader(body, "http://h.example/", cache=cache).links.urls == (
                    f"http://h.example/?q={query}",
                    f"http://h.example/s?q={query}",
                    f"http://h.example/s/%D0%BF%D1%80%D0%B8?x={entity}",
                )
    wide = "<a href='/?q=ä'>"
    assert found(codecs.BOM_UTF16_LE + wide.encode("utf-16-le")).links.urls == ("http://example.org/?q=%C3%A4",)
    base = "<base href='/b/?q=ä'><a href=''><a href='?'>".encode("cp1252")
    assert found(base, charset="latin1").base == "http://example.org/b/?q=%E4"


def test_unknown_and_hostile_charset_labels() -> None:
    assert [codec_of(label) for label in ("", "x" * 5000, "\0", "rot13", "unicode_escape", "idna", "\udc80")] == [
        ""
    ] * 7


# --- the hostile zoo, cases 57-62 (lab/zoo)


@pytest.mark.long
def test_a_million_links_are_capped_and_the_rest_counted() -> None:
    """Zoo 57: the first 65,534 distinct are kept."""
    total = 300_000
    body = b"".join(b"<a href=%d>" % number for number in range(total))
    got = found(body, pieces=65_536)
    assert len(got.links.urls) == MAX_LINKS
    assert got.links.urls[-1] == f"http://example.org/docs/{MAX_LINKS - 1}"
    assert got.links.truncated == total - MAX_LINKS


BOMBS = {
    "58 nesting": b"<div>" * 100_000,
    "59 attributes": b"<a " + b" ".join(b"a%d=1" % n for n in range(50_000)) + b">",
    "60 adoption agency": b"<font color=i><p>" * 30_000,
    "61 options": b"<select>" + b"<option>" * 200_000,
    "62 comment": b"<!--" + b"<a href=x>" * 100_000,
    "62 quote": b"<a href='" + b"x" * 4_000_000,
    "62 many comments": b"<!--" * 200_000,
    "62 many quotes": b"<p a='" * 200_000,
    "62 many tags": b"<p a" * 250_000,
    "62 many scripts": b"<script>" * 120_000,
    "62 many titles": b"<title><" * 120_000,
    "62 less-thans": b"<" * 1_000_000,
    "62 dashes": b"<!--" + b"-" * 1_000_000,
    "62 equals": b"<p " + b"=" * 1_000_000,
    "62 slashes": b"<p " + b"/" * 1_000_000,
    "62 references": b"<a href='" + b"&" * 200_000 + b"'>",
    "62 frames": b"<iframe src=x>" * 80_000,
    "62 base": b"<base href=x>" * 80_000,
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("whole", [True, False])
def test_bombs_are_linear_and_small(name: str, whole: bool) -> None:
    """Nothing here takes a time that grows with the square of its size."""

    def seconds(body: bytes) -> float:
        start = time.process_time()
        found(body[: module.WHOLE] if whole else body + b"<a href=end>", pieces=16_384)
        return time.process_time() - start

    assert seconds(BOMBS[name]) < 8.0  # CPU time: linear needs 0.2 s at most, the square of these sizes minutes


@pytest.mark.long
def test_memory_of_a_bomb() -> None:
    body = b"".join(b"<a href=%d>" % number for number in range(130_000))
    tracemalloc.start()
    found(body, pieces=65_536)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 45 * 2**20


def test_gzip_round_trip_of_a_page_changes_nothing() -> None:
    page = b"<a href=x>" * 10
    assert found(gzip.decompress(gzip.compress(page))) == found(page)
