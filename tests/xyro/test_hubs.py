"""WebSub discovery in Link headers: the cases of RFC 8288, and bytes of any kind."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.hubs import LONGEST, MOST_HUBS, links, websub

PAGE = "http://site.example/dir/page.html"
HUB = "https://hub.example/"


@pytest.mark.parametrize(
    ("headers", "hubs", "topic"),
    [
        ([f"<{HUB}>; rel=hub"], (HUB,), ""),
        ([f'<{HUB}>; rel="hub", <feed.xml>; rel="self"'], (HUB,), "http://site.example/dir/feed.xml"),
        ([f'<{HUB}>; rel="HUB"', "</f>; rel=self"], (HUB,), "http://site.example/f"),
        ([f'<{HUB}>;title="a, b; rel=self <x>" ; rel = "next hub"'], (HUB,), ""),
        ([f"<{HUB}>; rel=next; rel=hub"], (), ""),  # the first one counts
        ([f"<{HUB}>; rel=preload; as=hub"], (), ""),
        (["</f>; rel=self"], (), ""),
        ([f'<{HUB}>; rel=hub; anchor="http://elsewhere.example/"'], (), ""),
        ([f"<{HUB}>; rel=hub, <{HUB}>; rel=hub, <//other.example/h>; rel=hub"], (HUB, "http://other.example/h"), ""),
        (["<javascript:alert(1)>; rel=hub"], (), ""),
        (["hub"], (), ""),
        ([f'<{HUB}>; rel="hub'], (), ""),
        ([f",, <{HUB}>;rel=hub,"], (HUB,), ""),
    ],
)
def test_link_headers(headers: list[str], hubs: tuple[str, ...], topic: str) -> None:
    assert websub(headers, PAGE) == (hubs, topic)


def test_hubs_are_few() -> None:
    many = ", ".join(f"<https://hub{i}.example/>; rel=hub" for i in range(100))
    assert len(websub([many], PAGE)[0]) == MOST_HUBS


@given(st.lists(st.text(alphabet=st.sampled_from('<>";,=\\ relhubsf\t'), max_size=60), max_size=4))
def test_nothing_breaks_it(headers: list[str]) -> None:
    hubs, topic = websub(headers, PAGE)
    assert hubs or not topic


@pytest.mark.parametrize("piece", [" ", ",", "<", '"', ";", '\\"', "<>;", '<a>;"', ";a=", "<hub>;a;", "a="])
def test_hostile_repetition_is_linear(piece: str) -> None:
    began = time.process_time()
    for _ in range(20):
        list(links((piece * LONGEST)[:LONGEST]))
    assert time.process_time() - began < 5.0  # 20 times; a quadratic one takes minutes
