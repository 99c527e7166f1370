"""Feeds and sitemaps as they are met: none of these slips may cost a URL, or change one."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.loader.intake import Intake
from xyro.loader.mend import mended
from xyro.wire.messages import Kind, LoadReport, LoadState, XmlPage

BASE = "http://h.test/blog/"
SLIP = "<title>a\x0bb</title>"
DECLARED = "<?xml version='1.0' encoding='utf-16'?>\n"


def rss(content: str) -> str:
    return f'<rss version="2.0"><channel>{content}</channel></rss>'


def item(link: str = "a") -> str:
    return f"<item><link>{BASE}{link}</link></item>"


def load(body: bytes | str, charset: str = "") -> tuple[LoadState, str, list[str]]:
    """State, error, and links below BASE."""
    raw = body if isinstance(body, bytes) else body.encode()
    told = Intake().take(XmlPage(1, BASE + "feed.xml", 1, 1.7e9, Kind.XML, "text/xml", charset, raw), 1.7e9)[-1]
    assert isinstance(told, LoadReport)
    return told.state, told.error, [url.removeprefix(BASE) for url in told.links.urls]


@pytest.mark.parametrize(
    ("body", "charset"),
    [
        (DECLARED + rss(item()), ""),
        (DECLARED.replace("utf-16", "unicode") + rss(item()), ""),
        (rss(item()), "utf-16"),
        (rss("<title>caf\u00e9</title>" + item()), "us-ascii"),
        (rss("<title>caf\u00e9</title>" + item()), "x-unknown"),
        ("<b>Warning</b>: in line 7<br />\n<?xml version='1.0'?>" + rss(item()), ""),
        ("Notice: in line 7\n" + rss(item()), ""),
        (rss(item()) + "<script/>", ""),
        (rss("<title>a&nbsp;b</title>" + item()), ""),
        (rss("<p><br></p>" + item()), ""),
        (rss(item())[:-20], ""),
        (rss(item()).encode("utf-32"), ""),
        (rss(item()).encode("utf-32-be"), ""),
        (b"\0\0\xfe\xff" + rss(item()).encode("utf-32-be"), ""),
    ],
)
def test_slips_that_cost_no_url(body: bytes | str, charset: str) -> None:
    state, error, links = load(body, charset)
    assert links == ["a"]
    assert (state is LoadState.FAILED) == bool(error)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_urls_behind_a_slip_are_the_ones_that_stand_there(encoding: str) -> None:
    """libxml2 leaves out &amp; once it has met a fault: http://h/?x=1y=2 would be read instead."""
    links = item("a?x=1&amp;y=2") + item("b?x=1&y=2&copy=3") + item("<![CDATA[c?x=1&y=2]]>") + item("d?&eacute;&#38;")
    _, error, found = load(rss(SLIP + links).encode(encoding))
    assert error == "not-well-formed"
    assert found == ["a?x=1&y=2", "b?x=1&y=2&copy=3", "c?x=1&y=2", "d?%C3%A9&"]


def test_what_is_no_list_stays_a_failure_without_links() -> None:
    assert load("Warning\n<doc xmlns:x='http://www.w3.org/1999/xlink' x:href='a'/>") == (
        LoadState.FAILED,
        "not-well-formed",
        [],
    )


@pytest.mark.parametrize(
    "content", [b"&" * 5_000_000, b"&eacute;" * 600_000, b"<![CDATA[" * 500_000, b"<![CDATA[&a;]]>&" * 300_000]
)
def test_mending_costs_little_of_what_is_built_for_it(content: bytes) -> None:
    before = time.process_time()
    body, _ = mended(b"<rss>" + content, "")
    assert time.process_time() - before < 5.0  # of CPU: 0.1 is usual, the square of these sizes minutes
    assert len(body) <= 1.5 * len(content)


@given(st.text(), st.sampled_from(["", "utf-8", "utf-16", "utf-7", "rot13", "zlib", "idna", "no such"]))
def test_anything_is_mended_without_a_fault(text: str, charset: str) -> None:
    for head in ("", "<rss>", DECLARED + "<rss>"):
        for encoding in ("utf-8", "utf-16", "utf-32-be"):
            body, _ = mended((head + text).encode(encoding, "replace"), charset)
            again, _ = mended(body, charset)
            assert mended(again, charset)[0] == again
