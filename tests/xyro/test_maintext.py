"""The text signature: what it ignores, and that nothing hostile ever reaches lexbor."""

from __future__ import annotations

import resource
import time

import pytest

from xyro import maintext
from xyro.maintext import signature, tamed

PAGE = b"""<html><head><title>t</title><script>var a = 1;</script></head><body><nav><a href=1>Home</a></nav>
<main><h1>Heading</h1><p>The main   text.</p></main>
<aside>Advertisement 1</aside><footer>12:00</footer></body></html>"""


def test_menus_scripts_and_white_space_do_not_matter() -> None:
    other = PAGE.replace(b"12:00", b"12:01").replace(b"Home", b"News").replace(b"main   text", b"main\ntext")
    other = other.replace(b"var a = 1", b"var a = 2").replace(b"<h1>", b"<h1 class=x>").replace(b"ment 1", b"ment 2")
    assert signature(PAGE, "utf-8") == signature(other, "utf-8") is not None
    assert len(signature(PAGE, "utf-8") or b"") == 16


def test_the_text_matters() -> None:
    assert signature(PAGE, "utf-8") != signature(PAGE.replace(b"main ", b"other "), "utf-8")


def test_the_encoding_is_used() -> None:
    text = "<p>é</p>"
    assert signature(text.encode("cp1252"), "cp1252") == signature(text.encode(), "utf-8")


def test_a_page_without_text_has_none() -> None:
    for body in (b"", b"<nav>x</nav>", b"<p> </p>"):
        assert signature(body, "utf-8") is None


BOMBS = {
    "60 adoption agency, 19 kB": b"<font color=i><p>" * 1000,
    "60 adoption agency, 59 kB": b"<font color=i><p>" * 3000,
    "60 other formatting": b"<b><p><i><div>" * 300,
    "60 upper case": b"<FONT><P>" * 1000,
    "58 nesting": b"<div>" * 100_000,
    "58 nesting of unknown elements": b"<x-y>" * 5_000,
    "58 nesting behind wrong end tags": b"<div></span>" * 5_000,
    "58 nesting behind ignored end tags": b"<div><table></div></table>" * 3_000,
    "60 formatting behind wrong end tags": b"<font color=i><p></b>" * 1000,
    "59 attributes": b"<a " + b" ".join(b"a%d=1" % n for n in range(50_000)) + b">",
    "61 options": b"<select>" + b"<option>" * 10_000,
    "size": b"x" * (maintext.MAX_SIZE + 1),
    "size, comments and all": b"x" * maintext.MAX_SIZE + b"<!--" * maintext.MAX_SIZE,
    "unclosed scripts": b"<script>" * 5_000 + b"<div>" + b"</script>" * 2 + b"<div>" * 1_000,
    "quotes": b'<a b="' * 25_000,
    "unclosed drawings": b"<svg>" * 100_000,
    "drawings in drawings": b"<svg><g>" * 5_000 + b"</svg>" * 5_000,
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused(name: str) -> None:
    assert tamed(BOMBS[name], "utf-8") is None
    assert signature(BOMBS[name], "utf-8") is None
    assert signature(BOMBS[name].decode().encode("utf-16-le"), "utf-16-le") is None


def test_the_worst_that_is_let_through_is_bearable() -> None:
    """At each limit lexbor needs less than 2 s of CPU time and 100 MiB."""
    worst = [
        b"<font color=i><p>" * maintext.MAX_FORMATTING + b"<p>" * (maintext.MAX_TAGS - 200),
        b"<div>" * maintext.MAX_DEPTH + b"<p>x" * 18_000,
        b"<select>" + b"<option>" * maintext.MAX_OPTIONS,
        b"<p " + b" ".join(b"a%d" % n for n in range(1_400)) + b">",
        b"<li>" * (maintext.MAX_TAGS - 1),
        b"<table><tr><td>" * 150 + b"x" * 100_000,
    ]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for body in worst:
        assert tamed(body, "utf-8"), body[:40]
        start = time.process_time()
        signature(body, "utf-8")
        assert time.process_time() - start < 2.0, body[:40]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024


def test_honest_pages_are_tame() -> None:
    table = b"<table>" + b"<tr><td>a<td>b" * 3000 + b"</table>"
    items = b"<ul>" + b"<li><a href=x><b>x</b></a>" * 3000 + b"</ul>"
    assert all(tamed(body, "utf-8") for body in (PAGE, table, items, b""))


@pytest.mark.parametrize(
    "heavy",
    [
        b"<script>" + b"if (a<b) {} " * 60_000 + b"</script >",
        b"<STYLE>" + b"<b>" * 30_000 + b"</STYLE>",
        b"<!--" + b"<div>" * 2_000 + b"-->",
        b'<img src="data:image/png;base64,' + b"A" * 20_000 + b'">',
        b"<svg class=icon>" + b"<path d='M0'/>" * 2_000 + b"</svg>",
        b"<p data-state='" + b"{&quot;a&quot;: 1}" * 1_000 + b"'>",
    ],
    ids=lambda heavy: heavy[:8].decode(),
)
def test_a_page_that_is_too_much_only_by_what_nobody_reads_keeps_its_text(heavy: bytes) -> None:
    assert len(heavy) < maintext.MAX_BODY
    assert signature(PAGE.replace(b"<main>", heavy + b"<main>"), "utf-8") == signature(PAGE, "utf-8")
