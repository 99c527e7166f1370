"""Links next to words that a focus asks for: text, titles, images, the five words around; nothing else changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.xyro.test_links import FRAGMENTS, HARD, PAGE
from xyro.links import ExtractedLinks, LinkExtractor
from xyro.nearby import AROUND
from xyro.wire.messages import LINK_FOCUSED

WORDS = frozenset({"news", "straße".casefold(), "новости"})


def read(body: bytes | str, words: frozenset[str] = WORDS, *, pieces: int = 0, charset: str = "") -> ExtractedLinks:
    data = body.encode() if isinstance(body, str) else body
    extractor = LinkExtractor(PAGE, words=words, charset=charset)
    for start in range(0, len(data), pieces or max(len(data), 1)):
        extractor.feed(data[start : start + (pieces or len(data))])
    return extractor.close()


def praised(body: bytes | str, **options: object) -> list[str]:
    """Last parts of the URLs that were marked."""
    found = read(body, **options)
    return [
        url.rsplit("/", 1)[1]
        for url, flags in zip(found.links.urls, found.links.flags, strict=True)
        if flags & LINK_FOCUSED
    ]


FAR = " far" * AROUND
"""words that keep neighbours apart"""


@pytest.mark.parametrize(
    "link",
    [
        "<a href=x>the News today</a>",
        "<a href=x><b>big</b> <i>NEWS</i></a>",
        "<a href=x title='all news'>here</a>",
        "<a href=x><img src=p.png alt='news'></a>",
        "<map><area href=x alt=news></map>",
        "<a href=x>in der STRASSE</a>",
        "<a href=x>Новости</a>",
        "<a href=x>n&#101;ws</a>",
        "<p>news<p><a href=x>here</a>",
        "<a href=x>here</a> for the best of news",
        "<a href=x>here</a><table><tr><td>news</table>",
    ],
)
def test_a_word_in_the_link_or_next_to_it_marks_it(link: str) -> None:
    page = f"<a href=before>b</a>{FAR * 2} {link} {FAR * 2}<a href=after>a</a>"
    assert praised(page) == ["x"]
    assert praised(page, words=frozenset({"other"})) == []


@pytest.mark.parametrize(
    "page",
    [
        "<a href=x>newsletter</a>",
        "<a href=x>new s</a>",
        "<a href=news.html>here</a>",
        f"news{FAR} <a href=x>here</a>",
        f"<a href=x>here</a>{FAR} news",
        "<a href=x>here</a><script>var news = 1</script><style>news {}</style>",
        "<a href=x>here</a><!-- news -->",
        "<textarea>news</textarea><a href=x>here</a>",
        "<title>news</title><a href=x>here</a>",
        "<a name=x>news</a>",
        "",
    ],
)
def test_what_is_no_such_word_marks_nothing(page: str) -> None:
    assert praised(page) == []


def test_the_words_around_reach_exactly_so_far() -> None:
    for distance in range(2 * AROUND):
        gap = "far " * distance
        assert bool(praised(f"<p>news {gap}<a href=x>here</a>")) == (distance < AROUND)
        assert bool(praised(f"<a href=x>here</a> {gap}news")) == (distance < AROUND)


def test_an_open_link_ends_where_the_next_begins() -> None:
    assert praised(f"<a href=x>here{FAR}{FAR}<a href=y>{FAR} news</a>{FAR}{FAR}<a href=z>z") == ["y"]


def test_one_good_mention_of_a_url_is_enough() -> None:
    assert praised(f"<a href=x>here</a>{FAR}{FAR}<a href=x>news</a>{FAR}{FAR}<a href=y>y</a>") == ["x"]


def test_other_encodings_and_a_base() -> None:
    page = f"<base href=/deep/><a href=x>Новости</a>{FAR}<a href=y>y</a>".encode("koi8-r")
    found = read(page, charset="koi8-r")
    assert dict(zip(found.links.urls, found.links.flags, strict=True)) == {
        "http://example.org/deep/x": LINK_FOCUSED,
        "http://example.org/deep/y": 0,
    }


@pytest.mark.parametrize("pieces", [1, 3, 7])
def test_pieces_make_no_difference(pieces: int) -> None:
    page = f"<a href=x>news</a>{FAR * 2}<a href=y>y</a>{FAR * 2}<a href=z title=news>z</a>" * 3
    assert read(page, pieces=pieces) == read(page) and praised(page, pieces=pieces) == ["x", "z"]


def test_a_long_page_is_read_in_pieces_too() -> None:
    page = f"<a href=x>news</a>{FAR * 2}" + "<p>text" * 60_000 + f"<a href=y>news</a>{FAR * 2}<a href=z>z</a>"
    assert len(page) > 400_000 and praised(page, pieces=5000) == ["x", "y"]


def same_but_for_the_mark(body: bytes | str) -> None:
    plain, marked = read(body, frozenset()), read(body)
    assert marked.links.urls == plain.links.urls
    assert bytes(flag & ~LINK_FOCUSED for flag in marked.links.flags) == plain.links.flags
    assert (marked.noindex, marked.nofollow, marked.canonical, marked.base, marked.refresh, marked.charset) == (
        plain.noindex, plain.nofollow, plain.canonical, plain.base, plain.refresh, plain.charset,
    )  # fmt: skip


@pytest.mark.parametrize("body", HARD)
def test_hard_markup_has_the_same_links(body: bytes) -> None:
    same_but_for_the_mark(body)


@given(st.lists(st.sampled_from([*FRAGMENTS, "news", " "]), max_size=24).map("".join))
def test_random_markup_has_the_same_links(body: str) -> None:
    same_but_for_the_mark(body)


@given(st.binary(max_size=200))
def test_bytes_have_the_same_links(body: bytes) -> None:
    same_but_for_the_mark(body)
