"""JSON Feeds and sitemaps of plain text."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xyro.loader.intake import Intake
from xyro.wire.messages import LINK_EXTERNAL, LINK_HINT, Kind, LinkKind, LoadReport, LoadState, XmlPage

Load = Callable[..., LoadReport]
H = "http://h.test/"
WHEN = datetime(2023, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp()
FEED: dict[str, Any] = {
    "version": "https://jsonfeed.org/version/1.1",
    "title": "T",
    "home_page_url": "/",
    "feed_url": "http://h.test/d/feed.json",
    "next_url": "feed.json?page=2",
    "hubs": [{"type": "WebSub", "url": "https://hub.test/"}, {"type": "x"}, 7],
    "items": [
        {"id": "1", "url": "/a", "date_published": "2023-01-01T00:00:00Z", "date_modified": "2023-01-02T03:04:05Z"},
        {"id": "2", "url": "/b", "external_url": "http://o.test/c", "image": "/i.png"},
        {"id": "3", "url": 7, "date_published": []},
        "no item",
    ],
}
LEAVES = st.none() | st.booleans() | st.floats() | st.text(max_size=9)
NAMES = st.sampled_from(["items", "url", "hubs", "date_published", "next_url", "version"])


def shown(report: LoadReport) -> dict[str, int]:
    return dict(zip(report.links.urls, report.links.flags, strict=True))


@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b" \n"])
def test_a_feed(before: bytes, load: Load) -> None:
    report = load(before + json.dumps(FEED).encode(), H + "d/feed.json", mime="application/feed+json")
    assert (report.state, report.format, report.error) == (LoadState.LOADED, "jsonfeed", "")
    assert shown(report) == {
        H + "d/feed.json": LinkKind.CANONICAL | LINK_HINT,
        H: LinkKind.FEED,
        H + "d/feed.json?page=2": LinkKind.NEXT,
        H + "a": LinkKind.FEED,
        H + "b": LinkKind.FEED,
        "http://o.test/c": LinkKind.ANCHOR | LINK_EXTERNAL,
    }
    assert report.modified == ((H + "a", WHEN),)
    assert report.hubs == ("https://hub.test/",)


@pytest.mark.parametrize(
    "body", ["{", "{}", '{"version": 1}', '{"version": "1.0"}', "[" * 9, '{"version":' + "[" * 100_000, '{"a": 1} x']
)
def test_other_json_has_a_named_fault(body: str, load: Load) -> None:
    report = load(body)
    assert (report.state, report.error) == (LoadState.FAILED, "not-well-formed")


@pytest.mark.parametrize("slip", [b'"\\ud83d"', b'"caf\xe9"', b"1e99999", b"NaN"])
def test_one_slip_is_not_the_end_of_a_feed(slip: bytes, load: Load) -> None:
    body = b'{"version":"https://jsonfeed.org/version/1","items":[{"title":%s,"url":"http://h.test/a"},{"url":%s}]}'
    report = load(body % (slip, slip), "http://h.test/feed.json")
    assert report.state is LoadState.LOADED
    assert "http://h.test/a" in report.links.urls


@settings(deadline=None)
@given(st.recursive(LEAVES, lambda value: st.lists(value) | st.dictionaries(NAMES, value)))
def test_any_json_is_answered(value: Any) -> None:
    body = json.dumps({"version": "https://jsonfeed.org/version/1", "items": value, "hubs": value, "next_url": value})
    page = XmlPage(7, H, 1, 1e9, Kind.XML, "application/feed+json", "", body.encode())
    (report,) = Intake().take(page, 1e9)
    assert report.state in (LoadState.LOADED, LoadState.FAILED)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_sitemap_of_plain_text(pack: Callable[[bytes], bytes], load: Load) -> None:
    lines = (
        "\ufeffhttp://h.test/d/a\r\n",
        "  http://h.test/d/b?x&y ",
        "http://h.test/outside",
        "http://o.test/d/",
        "no url\n",
    )
    body = "\n".join(lines).encode()
    report = load(pack(body), H + "d/sitemap.txt", mime="text/plain")
    assert (report.state, report.format) == (LoadState.LOADED, "sitemap")
    assert shown(report) == {H + "d/a": LinkKind.SITEMAP, H + "d/b?x&y": LinkKind.SITEMAP}
    assert report.links.dropped == 2


def test_a_named_one_may_list_any_host(load: Load) -> None:
    report = load("http://o.test/a\n", H + "d/sitemap.txt", named=True)
    assert shown(report) == {"http://o.test/a": LinkKind.SITEMAP | LINK_EXTERNAL}


def test_its_limit_of_entries(load: Load) -> None:
    lines = [f"{H}d/{number}" for number in range(50_001)]
    report = load("\n".join(lines), H + "d/sitemap.txt")
    assert (report.state, report.error, len(report.links.urls)) == (LoadState.FAILED, "too-many-urls", 50_000)
