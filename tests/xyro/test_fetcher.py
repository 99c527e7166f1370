"""One order -> one Answer, against real servers on loopback: statuses, headers, bodies, robots.txt, guard, zoo B-E."""

from __future__ import annotations

import asyncio
import codecs
import gzip
import hashlib
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from email.utils import formatdate
from ipaddress import ip_address
from itertools import pairwise
from types import SimpleNamespace
from typing import cast

import brotli
import pytest
from backports import zstd
from msgspec.structs import replace

from tests.xyro.raw_server import QUICK, Talk, fetched, order, page, reading, says, serving
from xyro import links, scan
from xyro.body import AT_ONCE, LARGE, OTHERS, RECENT, Body, LongPages
from xyro.decode import Caps
from xyro.exchange import ClientLimits
from xyro.failures import POLICIES
from xyro.fetcher import AT_ONCE as STEPS_AT_ONCE
from xyro.fetcher import ROBOTS_CAPS
from xyro.guard import Guard
from xyro.headers import DAY, fresh_for, media_type, retry_after, robots_words
from xyro.links import MORSEL, WHOLE
from xyro.politeness import Manners
from xyro.reader import ReaderOptions, fetcher_of
from xyro.site_entries import SiteEntries
from xyro.wire.clock import ManualClock, SystemClock
from xyro.wire.errors import TheirError
from xyro.wire.messages import LINK_EXTERNAL, LINK_FOCUSED, Kind, LinkKind, Priority

BODY = b"<html><head><title>t</title></head><body><a href=/one>1</a> <a href='http://127.0.0.9/two'>2</a></body></html>"
pytestmark = pytest.mark.usefixtures("client")
MD5 = hashlib.md5(BODY).digest()


async def test_a_good_read() -> None:
    headers = (b'ETag: W/"v1"', b"Last-Modified: Sat, 21 Nov 2026 10:00:00 GMT")
    async with serving(says(page(BODY, *headers, mime=b"Text/HTML; Charset=UTF-8"))) as server, reading() as fetcher:
        answer = await fetcher.fetch(order(server.url + "/dir/p"))
    assert (answer.status, answer.error, answer.kind, answer.mime, answer.charset) == (
        200,
        "",
        Kind.HTML,
        "text/html",
        "utf-8",
    )
    assert answer.links.urls == (server.url + "/one", "http://127.0.0.9/two")
    assert answer.links.flags == bytes([LinkKind.ANCHOR, LinkKind.ANCHOR | LINK_EXTERNAL])
    assert (answer.signature, answer.size, answer.truncated, answer.body) == (MD5, len(BODY), "", None)
    assert (answer.etag, answer.last_modified) == ('W/"v1"', "Sat, 21 Nov 2026 10:00:00 GMT")
    assert answer.address == "127.0.0.1"
    assert answer.bytes > len(BODY)
    assert 0 < answer.started <= answer.ended
    assert answer.duration >= 0


async def test_what_we_do_with_an_answer_is_no_time_of_its_server() -> None:
    body = b"".join(b"<a href=/%d>" % link for link in range(10_000))
    async with serving(says(page(body))) as server, reading() as fetcher:
        before = time.monotonic()
        answer = await fetcher.fetch(order(server.url + "/"))
        worked = time.monotonic() - answer.received_at
    assert before < answer.received_at
    assert answer.duration <= answer.received_at - before
    assert len(answer.links.urls) == 10_000
    assert worked > 0.002  # 10,000 links take ten times as long on a fast machine


@pytest.mark.parametrize(
    "body", [b"", b" \n", b"<!DOCTYPE html><html><head><title></title></head><body>\n</body></html>"]
)
async def test_an_empty_body_is_no_page(body: bytes) -> None:
    """Zoo 46."""
    answer = await fetched(says(page(body)))
    assert (answer.status, answer.error, answer.vendor, answer.signature) == (200, "challenge", "empty", b"")


@pytest.mark.parametrize("step", [1, 7, 40, 1000])
async def test_the_pieces_a_body_comes_in_do_not_matter(step: int) -> None:
    raw = page(gzip.compress(BODY), b"Content-Encoding: gzip")
    answer = await fetched(says(*[raw[at : at + step] for at in range(0, len(raw), step)]))
    assert (answer.error, answer.signature, len(answer.links.urls)) == ("", MD5, 2)


# --- conditional requests (zoo 39, 41, 42, 44)


async def test_validators_are_sent_verbatim_and_a_304_is_a_visit() -> None:
    async def script(talk: Talk) -> None:
        assert talk.header("If-None-Match") == 'W/"a b"'
        assert talk.header("If-Modified-Since") == "some day"
        await talk.say(b'HTTP/1.1 304 Not Modified\r\nETag: "new"\r\n\r\n')

    answer = await fetched(script, etag='W/"a b"', last_modified="some day")
    assert (answer.status, answer.error, answer.etag, answer.signature) == (304, "", '"new"', b"")


async def test_a_304_with_a_body_has_none_and_its_connection_is_not_used_again() -> None:
    """Zoo 39."""

    async def script(talk: Talk) -> None:
        if talk.path == "/1":
            await talk.say(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\nEVIL")
        else:
            await talk.say(page(BODY))

    async with serving(script) as server, reading() as fetcher:
        first = await fetcher.fetch(order(server.url + "/1", etag="x"))
        assert (first.error, first.etag) == ("", "")
        await asyncio.sleep(0.02)
        second = await fetcher.fetch(order(server.url + "/2"))
        assert (second.error, second.signature) == ("", MD5)


async def test_a_204_has_nothing_to_read() -> None:
    answer = await fetched(says(b"HTTP/1.1 204 No Content\r\n\r\n"))
    assert (answer.status, answer.error, answer.signature, answer.kind) == (204, "", b"", Kind.UNKNOWN)


async def test_validators_that_could_do_harm_are_dropped_and_of_two_the_first_counts() -> None:
    """Zoo 42."""
    headers = (b'ETag: "1"', b'ETag: "2"', b"Last-Modified: \xe9\xff")
    answer = await fetched(says(page(BODY, *headers)))
    assert (answer.error, answer.etag, answer.last_modified) == ("", '"1"', "")
    assert (await fetched(says(page(BODY, b'ETag: "' + b"x" * 2000 + b'"')))).etag == ""


# --- statuses and redirects (zoo 22, 45, 74)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        *((401, "http-401"), (403, "http-403"), (404, "http-404"), (410, "http-410"), (429, "http-429")),
        *((400, "http-4xx"), (451, "http-4xx"), (500, "http-5xx"), (503, "http-5xx"), (599, "http-5xx")),
        *((600, "http-4xx"), (999, "http-4xx"), (305, "bad-status"), (206, "unasked-206"), (304, "unasked-304")),
    ],
)
async def test_statuses(status: int, error: str) -> None:
    answer = await fetched(says(page(BODY, b"Retry-After: 77", status=b"%d Text" % status)))
    assert (answer.status, answer.error) == (status, error)
    assert error in POLICIES
    assert answer.retry_after == 77
    assert not answer.links.urls
    assert not answer.signature


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    ("location", "target"),
    [
        (b"/next?a=1#part", "{}/next?a=1"),
        (b"next", "{}/dir/next"),
        (b"http://127.0.0.9:8080/x y", "http://127.0.0.9:8080/x%20y"),
        (b"//127.0.0.9/", "http://127.0.0.9/"),
        (b"http://169.254.169.254/latest", "http://169.254.169.254/latest"),
        (b"/\xc3\xa9", "{}/%C3%A9"),
    ],
)
async def test_redirects_are_told_not_followed(status: int, location: bytes, target: str) -> None:
    async with serving(says(page(b"moved", b"Location: " + location, status=b"%d Go" % status))) as server:
        async with reading() as fetcher:
            answer = await fetcher.fetch(order(server.url + "/dir/page"))
        assert (answer.status, answer.error, answer.location) == (status, "", target.format(server.url))
        assert len(server.heads) == 1


@pytest.mark.parametrize("location", [b"", b"file:///etc/passwd", b"javascript:alert(1)", b"http://", b"http://[::"])
async def test_redirects_to_nowhere(location: bytes) -> None:
    answer = await fetched(says(page(b"", b"Location: " + location, status=b"302 Go")))
    assert (answer.error, answer.location) == ("redirect-bad", "")
    assert (await fetched(says(page(b"", status=b"301 Go")))).error == "redirect-bad"


async def test_a_redirect_to_itself() -> None:
    answer = await fetched(says(page(b"", b"Location: ./page#x", status=b"302 Go")), "/page")
    assert answer.error == "redirect-loop"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("120", 120.0), (" 7 ", 7.0), ("0", 0.0), ("1000000000000", DAY), ("9" * 400, DAY), ("-5", 0.0), ("", 0.0)),
        *(("soon", 0.0), ("1.5", 0.0), ("٣", 0.0), (formatdate(1000 + 300, usegmt=True), 300.0)),
        *((formatdate(10, usegmt=True), 0.0), ("Fri, 31 Dec 9999 23:59:59 GMT", DAY), ("Mon, 99 Foo 0000", 0.0)),
    ],
)
def test_retry_after_is_clamped(text: str, seconds: float) -> None:
    """Zoo 45."""
    assert retry_after(text, 1000.0) == seconds
    assert retry_after("Sat, 01 Jan 0001 00:00:00 GMT", 2e9) == 0.0


# --- what is read and what is not


@pytest.mark.parametrize(
    ("mime", "body", "kind"),
    [
        (b"application/xhtml+xml", b"<html xmlns='x'><a href='/x'/></html>", Kind.HTML),
        (b"text/xml", b"<?xml version='1.0'?><doc/>", Kind.XML),
        (b"application/rss+xml; charset=iso-8859-1", b"<rss/>", Kind.XML),
        (b"application/xml-dtd", b"<!ELEMENT a EMPTY>", Kind.DTD),
        (b"application/octet-stream", b"<?xml version='1.0'?><doc/>", Kind.XML),
    ],
)
async def test_kinds(mime: bytes, body: bytes, kind: Kind) -> None:
    answer = await fetched(says(page(body, mime=mime)))
    assert (answer.error, answer.kind) == ("", kind)
    assert answer.signature == hashlib.md5(body).digest()
    assert answer.body == (None if kind is Kind.HTML else body)
    assert len(answer.links.urls) == (kind is Kind.HTML)


@pytest.mark.parametrize("mime", [b"image/png", b"application/pdf", b"text/plain", b"application/octet-stream"])
async def test_bodies_of_no_use_are_dropped_after_the_headers(mime: bytes) -> None:
    """A small one is read to its end, for its connection's sake; a large one is not."""
    small, large = page(b"\x89PNG" * 10, mime=mime), page(b"\x89PNG" * 500_000, mime=mime)

    async def script(talk: Talk) -> None:
        await talk.say(large if talk.path == "/large" else small)

    async with serving(script) as server, reading(ClientLimits()) as fetcher:
        for path in ("/small", "/small", "/large", "/small"):
            answer = await fetcher.fetch(order(server.url + path))
            assert (answer.error, answer.kind, answer.signature) == ("not-readable", Kind.OTHER, b"")
            assert answer.bytes < 1_000_000
        assert server.connections == 2


async def test_suffixes_to_skip_are_not_asked_for() -> None:
    async with serving(says(page(BODY), close=False)) as server, reading(skip_suffixes={"png", "zip"}) as fetcher:
        answers = [await fetcher.fetch(order(server.url + path)) for path in ("/a.png", "/b.ZIP?x", "/c.html", "/png")]
        assert [answer.error for answer in answers] == ["not-readable", "not-readable", "", ""]
        assert len(server.heads) == 2


# --- codings and caps (zoo 25, 31, 32, 48-54)


@pytest.mark.parametrize(
    ("coding", "body", "error"),
    [
        (b"gzip", gzip.compress(BODY), ""),
        (b"deflate", zlib.compress(BODY), ""),
        (b"gzip, gzip", gzip.compress(gzip.compress(BODY)), ""),
        (b"gzip", BODY, ""),
        (b"identity", BODY, ""),
        (b"dcb", b"\x0b\x02\x80abc\x03", "encoding"),
        (b"compress", BODY, "encoding"),
        (b"none", BODY, ""),
        (b"UTF-8", BODY, ""),
        (b"text/html", BODY, ""),
        (b"gzip, utf-8", gzip.compress(BODY), ""),
        (b"gzip, gzip, gzip", BODY, "encoding"),
        (b"gzip", gzip.compress(BODY)[:40] + b"\xff" * 40, "encoding"),
        (b"gzip", gzip.compress(BODY)[:-8] + b"\0" * 8, "encoding"),
        (b"gzip", gzip.compress(BODY)[:-9], "truncated"),
        (b"gzip", gzip.compress(b"\0" * 10_000_000), "ratio-too-large"),
        (b"gzip, gzip", gzip.compress(gzip.compress(b"\0" * 50_000_000)), "ratio-too-large"),
        *(
            case
            for name, pack in ((b"br", brotli.compress), (b"zstd", zstd.compress))
            for case in (
                (name, pack(BODY), ""),
                (name.upper(), pack(BODY), ""),
                (b"gzip, " + name, pack(gzip.compress(BODY)), ""),
                (name, BODY, ""),
                (name, pack(BODY)[:-3], "truncated"),
                (name, pack(b"\0" * 10_000_000), "ratio-too-large"),
                (name + b", gzip", gzip.compress(pack(b"\0" * 50_000_000)), "ratio-too-large"),
            )
        ),
    ],
    ids=[f"body{number}" for number in range(31)],
)
async def test_codings(coding: bytes, body: bytes, error: str) -> None:
    answer = await fetched(says(page(body, b"Content-Encoding: " + coding)))
    assert answer.error == error
    assert answer.signature == (b"" if error else MD5)
    assert answer.size <= QUICK.body.size


def chunked(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


@pytest.mark.parametrize(
    ("headers", "body", "error"),
    [
        (b"Transfer-Encoding: gzip, chunked", chunked(gzip.compress(BODY)), ""),
        (b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked", chunked(gzip.compress(BODY)), ""),
        (b"Transfer-Encoding: X-GZIP , Chunked", chunked(gzip.compress(BODY)), ""),
        (b"Transfer-Encoding: deflate, chunked", chunked(zlib.compress(BODY)), ""),
        (b"Transfer-Encoding: gzip", gzip.compress(BODY), ""),
        (b"Transfer-Encoding: identity", BODY, ""),
        (
            b"Transfer-Encoding: gzip, chunked\r\nContent-Encoding: deflate",
            chunked(gzip.compress(zlib.compress(BODY))),
            "",
        ),
        (b"Transfer-Encoding: gzip, chunked\r\nContent-Encoding: gzip, gzip", chunked(BODY), "encoding"),
        (b"Transfer-Encoding: compress, chunked", chunked(BODY), "encoding"),
        (b"Transfer-Encoding: gzip, chunked", chunked(gzip.compress(BODY)[:-9]), "truncated"),
    ],
    ids=range(10),
)
async def test_transfer_codings(headers: bytes, body: bytes, error: str) -> None:
    """RFC 9112 7: chunked is one of several."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n" + headers + b"\r\n\r\n"
    answer = await fetched(says(head + body))
    assert (answer.error, answer.signature) == (error, b"" if error else MD5)


async def test_what_came_of_half_a_page_counts_but_has_no_signature() -> None:
    """Zoo 25, 31, 48."""
    half = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 999\r\nETag: x\r\n\r\n" + BODY
    answer = await fetched(says(half))
    assert (answer.error, answer.truncated, answer.signature, len(answer.links.urls)) == (
        "truncated",
        "disconnect",
        b"",
        2,
    )
    assert POLICIES[answer.error].readable
    endless = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + BODY
    answer = await fetched(says(endless, *[b"x" * 50_000] * 6))
    assert (answer.error, answer.truncated, answer.signature, len(answer.links.urls)) == ("too-large", "length", b"", 2)
    assert answer.size == QUICK.body.size


async def test_a_page_of_exactly_the_cap_is_whole() -> None:
    limits = replace(QUICK, body=Caps(size=len(BODY)))
    assert (await fetched(says(page(BODY)), limits=limits)).error == ""
    limits = replace(QUICK, body=Caps(size=len(BODY) - 1))
    assert (await fetched(says(page(BODY)), limits=limits)).error == "too-large"


# The wire's cap is above what an event loop reads in one go (256 KiB): it is raised as soon as the first bytes tell.
SMALL = replace(QUICK, body=Caps(size=20_000), wire=300_000)
URLSET = b"<?xml version='1.0'?><urlset>" + b"<url><loc>http://x/</loc></url>" * 20_000 + b"</urlset>"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/a.xml", URLSET),
        ("/a.xml.gz", gzip.compress(URLSET, 0)),
        ("/b.xml", URLSET.replace(b"urlset", b"sitemapindex")),
        ("/sitemap.txt", b"http://x/1234567\n" * 40_000),
    ],
)
async def test_a_sitemap_may_be_larger_than_any_other_body(path: str, body: bytes) -> None:
    mime = b"text/plain" if path.endswith("txt") else b"application/gzip" if path.endswith("gz") else b"text/xml"
    answer = await fetched(says(page(body, mime=mime)), path, SMALL)
    assert (answer.error, answer.kind, answer.size > 600_000) == ("", Kind.XML, True)
    assert answer.signature == hashlib.md5(answer.body or b"").digest()


async def test_another_document_is_cut_at_the_cap() -> None:
    answer = await fetched(says(page(URLSET.replace(b"urlset", b"urls"), mime=b"text/xml")), limits=SMALL)
    assert (answer.error, answer.size) == ("too-large", 20_000)


async def test_a_few_large_sitemaps_at_a_time() -> None:
    """The others are cut where every body is; and a slow small one takes none of the room."""
    go_on = asyncio.Event()
    small, large = (URLSET[:size] + b"</urlset>" for size in (10_000, 62_000))

    async def script(talk: Talk) -> None:
        slow = "slow" in talk.path
        raw, first = page(small if slow else large, mime=b"text/xml"), 1_000 if slow else 30_000
        await talk.say(raw[:first])
        await go_on.wait()
        await talk.say(raw[first:])

    limits = replace(SMALL, total=10.0, slow_window=10.0)
    async with serving(script) as server, reading(limits) as fetcher:
        slow = [asyncio.create_task(fetcher.fetch(order(f"{server.url}/slow{n}.xml"))) for n in range(LARGE)]
        tasks = [asyncio.create_task(fetcher.fetch(order(f"{server.url}/{n}.xml"))) for n in range(LARGE + 2)]
        ended = asyncio.as_completed(tasks, timeout=9.0)
        cut = [await next(ended) for _ in range(2)]
        assert [(answer.error, 20_000 < answer.size <= 30_000) for answer in cut] == [("too-large", True)] * 2
        go_on.set()
        assert [(await task).error for task in ended] == [""] * LARGE
        assert [answer.error for answer in await asyncio.gather(*slow)] == [""] * LARGE
        assert (await fetcher.fetch(order(f"{server.url}/after.xml"))).error == ""


@pytest.mark.long
async def test_long_pages_that_come_to_a_halt_keep_no_other_from_being_read() -> None:
    """A few at a time are read to their end: those whose servers say no more give their places up. A place is for pages
    of very many links only."""
    halted = asyncio.Event()
    raw = page(b"".join(b"<a href=/%05d>some text of it</a>" % n for n in range(11_000)))
    text = page(b"<p>the same again and again</p>" * 11_000)

    async def script(talk: Talk) -> None:
        body = text if "text" in talk.path else raw
        await talk.say(body[:300_000])
        if "halts" in talk.path:
            await halted.wait()
        await talk.say(body[300_000:])

    def urls(name: str) -> list[str]:
        return [f"{server.url}/{name}{n}" for n in range(LARGE + 2)]

    limits = ClientLimits(total=30.0, slow_window=1.0)
    async with serving(script) as server, reading(limits) as fetcher:
        answers = await asyncio.gather(*(fetcher.fetch(order(url)) for url in urls("halts") + urls("p")))
        halted.set()
    assert [answer.error for answer in answers] == ["slow-body"] * (LARGE + 2) + [""] * (LARGE + 2)
    assert all(answer.size == 374_000 for answer in answers[LARGE + 2 :])

    halted.clear()
    async with serving(script) as server, reading(ClientLimits(total=30.0)) as fetcher:
        waits = [asyncio.create_task(fetcher.fetch(order(url))) for url in urls("text-halts")]
        assert [(await fetcher.fetch(order(url))).error for url in urls("p")] == [""] * (LARGE + 2)
        assert not any(task.done() for task in waits)
        halted.set()
        assert [answer.error for answer in await asyncio.gather(*waits)] == [""] * (LARGE + 2)


@pytest.mark.parametrize(("waiting", "seconds"), [(0, 29), (1, 10), (LARGE, 10), (3 * LARGE, 4), (100 * LARGE, 1)])
async def test_the_more_long_pages_wait_the_less_patience_is_there_with_a_slow_one(waiting: int, seconds: int) -> None:
    clock = ManualClock()

    class Slow:
        async def piece(self) -> bytes:
            clock.advance(1.0)
            return b"drip" if clock.monotonic() < 29 else b""

        def pause(self, paused: bool) -> None:
            pass

    pages, slow, over, error = LongPages(10.0, clock), cast(Body, Slow()), asyncio.Event(), ""

    async def hold() -> None:
        async with pages.place(slow):
            await over.wait()

    async with asyncio.TaskGroup() as group:
        async with pages.place(slow):
            for _ in range(LARGE - 1 + waiting):
                group.create_task(hold())
            await asyncio.sleep(0)
            try:
                assert b"".join([piece async for piece in pages.pieces(b"first", slow)]) == b"first" + 28 * b"drip"
            except TheirError as failure:
                error = failure.kind
        over.set()
    assert (error, clock.monotonic()) == ("slow-body" if waiting else "", seconds)


@pytest.mark.parametrize(("sent", "error"), [(15_000, "slow-body"), (40_000, "too-large")])
async def test_a_sitemap_that_comes_to_a_halt_beyond_the_cap_is_cut(sent: int, error: str) -> None:
    """What is beyond it is welcome, not needed: what came counts, as it would have if it had been cut."""
    answer = await fetched(says(page(URLSET, mime=b"text/xml")[:sent], close=False), limits=SMALL)
    assert (answer.error, answer.signature, (answer.body or b"")[20_000:30_000] != b"") == (
        error,
        b"",
        error == "too-large",
    )


@pytest.mark.parametrize("headers", [(), (b"Content-Encoding: gzip",)])
@pytest.mark.parametrize("mime", [b"text/xml", b"application/gzip", b"application/octet-stream"])
async def test_packed_sitemaps(headers: tuple[bytes, ...], mime: bytes) -> None:
    """Zoo 54: a .gz file, sent as it is or with the coding told once too often (then it is packed twice)."""
    urlset = b"<?xml version='1.0'?><urlset>" + b"<url><loc>http://x/</loc></url>" * 100 + b"</urlset>"
    packed = gzip.compress(urlset)
    for body in (packed, gzip.compress(packed)) if headers else (packed,):
        answer = await fetched(says(page(body, *headers, mime=mime)), "/sitemap.xml.gz")
        assert (answer.error, answer.kind, answer.body) == ("", Kind.XML, urlset)
        assert answer.signature == hashlib.md5(urlset).digest()
    cut = await fetched(says(page(packed[:-20], mime=mime)), "/sitemap.xml.gz")
    assert (cut.error, cut.signature) == ("truncated", b"")


# --- encodings (zoo 55, 56)


@pytest.mark.parametrize(
    ("mime", "body", "charset"),
    [
        (b"text/html; charset=koi8-r", codecs.BOM_UTF8 + BODY, "utf-8"),
        (b"text/html; charset='koi8-r'", b"<meta charset=utf-8>" + BODY, "koi8-r"),
        (b"text/html", b"<meta charset=koi8-r>" + BODY, "koi8-r"),
        (b"text/html; charset=nonsense", BODY + b"\xff", "cp1252"),
        (b"text/html; charset=utf-7", BODY, "utf-8"),
        (b"text/html", codecs.BOM_UTF16_LE + BODY.decode().encode("utf-16-le"), "utf-16-le"),
        (b"text/html", BODY.decode().encode("utf-16-be"), "utf-16-be"),
        (b"text/html", BODY + b"\0\xff\xfe\xed\xa0\x80", "cp1252"),
    ],
)
async def test_encodings(mime: bytes, body: bytes, charset: str) -> None:
    answer = await fetched(says(page(body, mime=mime)))
    assert (answer.error, answer.charset, len(answer.links.urls)) == ("", charset, 2)


def test_media_types() -> None:
    assert media_type("Text/HTML ; a=b; Charset = 'UTF-8' ; x") == ("text/html", "UTF-8")
    assert media_type("") == ("", "")
    assert media_type(";charset=x") == ("", "x")
    assert media_type('a/b;charset=;charset="x') == ("a/b", "x")
    blanks = " " * 1_000_000  # hours, where one place after the other is tried
    assert media_type(f"a/b;charset={blanks};") == media_type(f"a/b;charset{blanks}") == ("a/b", "")
    assert media_type(f"a/b;charset={blanks}x") == ("a/b", "x")
    assert media_type("text/html; charset") == ("text/html", "")


@pytest.mark.parametrize(
    "label", ["\x1b[31mred", "=1+1", "@x", "utf\x078", "-1", "utf-8\x9b", "é", "+1", "a" * 41, "<b>"]
)
def test_what_is_no_label_is_not_stored(label: str) -> None:
    assert media_type(f"text/xml; charset={label}") == ("text/xml", "")
    assert media_type(f"text/xml; charset='{label}'; charset=utf-8")[1] in ("", "utf-8")
    assert media_type(f"{label}/x; charset=utf-8")[0].isprintable()


@pytest.mark.parametrize("kind", ["=1+1", "text/\x1b[31mhtml", "text html", "<b>", "a" * 101])
def test_what_is_no_type_is_not_stored(kind: str) -> None:
    assert media_type(kind) == ("", "")


# --- robots words (zoo 66)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["noindex"], (True, False)),
        (["NoIndex , NoFollow"], (True, True)),
        (["otherbot: none", "nofollow"], (False, True)),
        (["xyro: none"], (True, True)),
        (["otherbot: noindex, nofollow"], (False, False)),
        (["unavailable_after: 1 Jan 2030 00:00:00 GMT"], (False, False)),
        (["max-snippet:3, noindex"], (True, False)),
        ([], (False, False)),
    ],
)
def test_x_robots_tag(values: list[str], words: tuple[bool, bool]) -> None:
    assert robots_words(values) == words


async def test_header_and_meta_add_up() -> None:
    body = b"<meta name=robots content=nofollow>" + BODY
    answer = await fetched(says(page(body, b"X-Robots-Tag: noindex")))
    assert (answer.noindex, answer.nofollow) == (True, True)


async def test_meta_refresh_is_a_link() -> None:
    """Zoo 65."""
    answer = await fetched(says(page(b"<meta http-equiv=refresh content='0; url=/next'>")))
    assert answer.links.flags == bytes([LinkKind.REDIRECT])


# --- the text signature


async def test_the_text_signature_outlives_a_changed_menu() -> None:
    def body(menu: bytes, text: bytes) -> bytes:
        return page(b"<nav>" + menu + b"</nav><p>" + text + b"</p><a href=x>x</a>")

    async def signature(raw: bytes, kind: str) -> bytes:
        async with serving(says(raw)) as server, reading(signature=kind) as fetcher:
            return (await fetcher.fetch(order(server.url + "/"))).signature

    assert await signature(body(b"1", b"a"), "text") == await signature(body(b"2", b"a"), "text")
    assert await signature(body(b"1", b"a"), "text") != await signature(body(b"1", b"b"), "text")
    assert await signature(body(b"1", b"a"), "bytes") != await signature(body(b"2", b"a"), "bytes")
    wild = b"<font color=i><p>" * 3000
    assert await signature(page(wild), "text") == hashlib.md5(wild).digest()


async def test_the_signature_of_links_outlives_all_but_other_links() -> None:
    async def signature(raw: bytes) -> bytes:
        async with serving(says(page(raw))) as server, reading(signature="links") as fetcher:
            return (await fetcher.fetch(order(server.url + "/"))).signature

    one, two = b"<a href=http://a.example/1>1</a>", b"<a href=http://a.example/2>2</a>"
    first = await signature(one + two)
    assert first == await signature(b"<p>other words</p>" + two + one + two)
    assert first == hashlib.md5(b"http://a.example/1\nhttp://a.example/2").digest()
    assert first != await signature(one)


async def test_how_long_an_answer_stays_fresh_is_told() -> None:
    raw = page(b"x", b"Cache-Control: public, max-age=600", b"Age: 100")
    async with serving(says(raw)) as server, reading() as fetcher:
        assert (await fetcher.fetch(order(server.url + "/"))).fresh_for == 500.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 0.0),
        ({"Cache-Control": "max-age=600"}, 600.0),
        ({"Cache-Control": 'Public , Max-Age="600", s-maxage=60', "Age": "10"}, 50.0),
        ({"Cache-Control": "no-cache, max-age=600"}, 0.0),
        ({"Cache-Control": "no-store", "Expires": "Thu, 01 Dec 1994 16:00:00 GMT", "Date": "whenever"}, 0.0),
        ({"Cache-Control": "x-max-age=5, min-fresh=7"}, 0.0),
        ({"Cache-Control": "max-age=-1"}, 0.0),
        ({"Cache-Control": "max-age=999999999999"}, 365 * 86_400.0),
        ({"Cache-Control": "max-age=60", "Age": "90"}, 0.0),
        ({"Cache-Control": "max-age=60", "Age": "\u0665"}, 60.0),
        ({"Expires": "Thu, 01 Dec 1994 16:00:00 GMT", "Date": "Thu, 01 Dec 1994 15:00:00 GMT"}, 3600.0),
        ({"Expires": "Thu, 01 Dec 1994 16:00:00", "Date": "Thu, 01 Dec 1994 15:00:00 GMT"}, 0.0),
        ({"Expires": "0", "Date": "Thu, 01 Dec 1994 15:00:00 GMT"}, 0.0),
        ({"Cache-Control": "private", "Expires": "Thu, 01 Dec 1994 16:00:00 GMT"}, 0.0),
        ({"Cache-Control": "max-age" + " " * 5000 + "=5"}, 0.0),
    ],
)
def test_what_headers_say_of_freshness(headers: dict[str, str], seconds: float) -> None:
    assert fresh_for(headers) == seconds


async def test_links_next_to_words_asked_for_are_marked() -> None:
    far = b" far" * 9
    raw = page(b"<a href=/one>the News</a>" + far + b"<a href=/two>2</a>" + far + b"<a href=/three title=news>3</a>")
    async with serving(says(raw)) as server, reading(words=frozenset({"news"})) as fetcher:
        links = (await fetcher.fetch(order(server.url + "/"))).links
    assert list(links.flags) == [LINK_FOCUSED, 0, LINK_FOCUSED]


# --- guard (zoo 12, 13, 16)


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("http://10.0.0.1/", "only-net"),
        ("http://example.org/", "only-net"),
        ("http://[::1]/", "only-net"),
        ("http://0.0.0.0/", "blocked-address"),
        ("http://127.0.0.1:25/", "blocked-port"),
    ],
)
async def test_nothing_outside_is_contacted(url: str, error: str) -> None:
    async with reading() as fetcher:
        answer = await fetcher.fetch(order(url))
        assert (answer.error, answer.status, answer.bytes) == (error, 0, 0)
        assert (await fetcher.fetch_robots(url.rstrip("/") + "/robots.txt")).error == error


async def test_loopback_is_blocked_unless_a_setting_names_it() -> None:
    async with serving(says(page(BODY))) as server, reading(guard=Guard(ports=[server.port])) as fetcher:
        assert (await fetcher.fetch(order(server.url + "/"))).error == "blocked-address"
        assert (await fetcher.fetch(order(f"http://localhost:{server.port}/"))).error == "blocked-address"
        assert server.connections == 0


async def test_the_socket_has_the_last_word() -> None:
    """Even if nothing before it objects (a name that resolves to where we may not go)."""
    guard = Guard(only_net=["127.0.0.0/8"])
    async with serving(says(page(BODY))) as server, reading(guard=guard) as fetcher:
        guard.host_allowed = lambda url: ""  # type: ignore[method-assign]
        guard._denied.add((ip_address("127.0.0.1"), server.port))
        assert (await fetcher.fetch(order(server.url + "/"))).error == "blocked-address"
        assert server.connections == 0


async def test_localhost_needs_no_name_server() -> None:
    async with serving(says(page(BODY), close=False)) as server, reading() as fetcher:
        answer = await fetcher.fetch(order(f"http://localhost:{server.port}/"))
        assert (answer.error, answer.address) == ("", "127.0.0.1")
        assert await fetcher.address("http://localhost/") == "127.0.0.1"
        assert await fetcher.address("http://127.0.0.5/") == "127.0.0.5"
        assert await fetcher.address("http://example.org/") == ""


# --- robots.txt (zoo 75)


async def robots(script_of: dict[str, bytes], limits: ClientLimits = QUICK) -> tuple[object, list[str]]:
    async def script(talk: Talk) -> None:
        raw = script_of[talk.path].replace(b"{port}", talk.header("Host").rpartition(":")[2].encode())
        await talk.say(raw)
        if b"Content-Length" not in raw:
            talk.writer.close()

    async with serving(script) as server, reading(limits) as fetcher:
        answer = await fetcher.fetch_robots(server.url + "/robots.txt")
        return answer, [head.split(" ")[1] for head in server.heads]


def moved(to: bytes) -> bytes:
    return page(b"", b"Location: " + to, status=b"301 Moved")


RULES = b"User-agent: *\nDisallow: /private\n"


async def test_robots_is_read_whole_whatever_its_type() -> None:
    for mime in (b"text/plain", b"text/html", b"application/octet-stream"):
        answer, paths = await robots({"/robots.txt": page(RULES, mime=mime)})
        assert (answer.status, answer.error, answer.body, paths) == (200, "", RULES, ["/robots.txt"])
    answer, _ = await robots({"/robots.txt": page(gzip.compress(RULES), b"Content-Encoding: gzip")})
    assert answer.body == RULES


async def test_a_redirect_of_robots_is_told_and_not_followed() -> None:
    answer, paths = await robots({"/robots.txt": moved(b"/1"), "/1": page(RULES)})
    assert (answer.status, answer.error, answer.body, paths) == (301, "", None, ["/robots.txt"])
    assert answer.location.endswith("/1")
    answer, paths = await robots({"/robots.txt": moved(b"/robots.txt")})
    assert (answer.error, paths) == ("redirect-loop", ["/robots.txt"])


@pytest.mark.parametrize(
    ("target", "error", "then"),
    [
        (b"http://169.254.169.254/", "", "only-net"),
        (b"http://127.0.0.1:25/", "", "blocked-port"),
        (b"ftp://x/", "redirect-bad", ""),
    ],
)
async def test_robots_redirected_to_another_host_is_told_and_goes_past_the_guard(
    target: bytes, error: str, then: str
) -> None:
    answer, paths = await robots({"/robots.txt": moved(target)})
    assert (answer.error, answer.body, paths) == (error, None, ["/robots.txt"])
    assert answer.location == ("" if error else target.decode())
    if then:
        async with reading() as fetcher:
            assert (await fetcher.fetch_robots(target.decode())).error == then


async def test_a_huge_robots_is_cut() -> None:
    line = b"Disallow: /%07d\n"
    huge = b"User-agent: *\n" + b"".join(line % number for number in range(60_000))
    answer, _ = await robots({"/robots.txt": page(huge)}, ClientLimits())
    assert (answer.error, answer.truncated, answer.body) == ("", "length", huge[: ROBOTS_CAPS.size])


async def test_half_a_robots_counts() -> None:
    half = b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s" % (
        len(RULES) + 5,
        RULES,
    )
    answer, _ = await robots({"/robots.txt": half})
    assert (answer.error, answer.truncated, answer.body) == ("", "disconnect", RULES)


@pytest.mark.parametrize(
    ("status", "error"), [(404, "http-404"), (503, "http-5xx"), (429, "http-429"), (403, "http-403")]
)
async def test_robots_statuses(status: int, error: str) -> None:
    answer, _ = await robots({"/robots.txt": page(b"x", b"Retry-After: 9", status=b"%d X" % status)})
    assert (answer.status, answer.error, answer.body, answer.retry_after) == (status, error, None, 9)


# --- order in the house


async def test_one_connection_serves_a_host() -> None:
    async with serving(says(page(BODY), close=False)) as server, reading() as fetcher:
        for number in range(5):
            assert (await fetcher.fetch(order(f"{server.url}/{number}"))).error == ""
        await fetcher.fetch_robots(server.url + "/robots.txt")
        assert server.connections == 1


async def test_many_reads_at_once_do_not_mix() -> None:
    async def script(talk: Talk) -> None:
        await talk.say(page(b"<a href='%s/x'>" % talk.path.encode() * 50), pause=0.001)

    async with serving(script) as server, reading() as fetcher:
        urls = [f"{server.url}/{number}" for number in range(60)]
        answers = await asyncio.gather(*(fetcher.fetch(order(url)) for url in urls))
        assert [answer.links.urls for answer in answers] == [(f"{url}/x",) for url in urls]


async def test_a_part_that_a_loader_waits_for_is_read_whatever_it_is_called() -> None:
    body = b'<!ENTITY copyright "2026">'
    async with serving(says(page(body, mime=b"application/octet-stream"))) as server, reading() as fetcher:
        wanted = replace(order(server.url + "/common.mod"), priority=Priority.BLOCKING)
        answer = await fetcher.fetch(wanted)
        plain = await fetcher.fetch(order(server.url + "/common.mod"))
    assert (answer.error, answer.body) == ("", body) and answer.kind in (Kind.XML, Kind.DTD)
    assert plain.body is None or plain.kind is Kind.DTD


@pytest.mark.parametrize("options", [{}, {"signature": "text"}, {"signature": "links"}])
async def test_a_key_file_sent_as_html_is_told_whole(options: dict[str, object]) -> None:
    """Servers call any file text/html; a page of the crawl is forgotten all the same."""
    async with serving(says(page(b"0123456789abcdef\n"), close=False)) as server, reading(**options) as fetcher:
        wanted = replace(order(server.url + "/key.txt"), priority=Priority.BLOCKING)
        assert (await fetcher.fetch(wanted)).body == b"0123456789abcdef\n"
        assert (await fetcher.fetch(order(server.url + "/key.txt"))).body is None


class Others:
    """Counts the turns of the event loop that others get meanwhile."""

    def __init__(self) -> None:
        self.turns = 0

    async def __aenter__(self) -> Others:
        self._task = asyncio.create_task(self._go())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()

    async def _go(self) -> None:
        while True:
            await asyncio.sleep(0)
            self.turns += 1


async def test_a_large_page_does_not_hold_the_others_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """4 MiB that came as some kB, so in one piece: between any two slices of it others have their turn."""
    fed = list[tuple[int, int]]()
    tags = scan.tags
    monkeypatch.setattr(scan, "tags", lambda body: (fed.append((len(body), others.turns)), tags(body))[1])
    body = gzip.compress(b"<p>the same again and again</p>" * 135_000)
    async with Others() as others:
        answer = await fetched(
            says(page(body, b"Content-Encoding: gzip")), limits=ClientLimits(body=Caps(ratio=1_000_000))
        )
    assert answer.error == "" and answer.size == 135_000 * 31 <= sum(size for size, _ in fed)
    assert max(size for size, _ in fed) <= WHOLE + MORSEL
    moments = [turn for _, turn in fed]
    assert len(moments) > 60 and len(set(moments)) == len(moments)


async def test_a_small_page_of_thousands_of_links_does_not_hold_the_others_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """100 kB hold 8,000 links, which take .2 s: others have their turn after the first thousand."""
    resolved = list[int]()
    learnt = links._learnt
    monkeypatch.setattr(links, "_learnt", lambda *words: (resolved.append(others.turns), learnt(*words))[1])
    async with Others() as others:
        answer = await fetched(says(page(b"".join(b"<a href=p%d>" % number for number in range(8_000)))))
    assert (answer.error, len(answer.links.urls)) == ("", 8_000) and len(resolved) >= 8_000
    assert max(Counter(resolved).values()) <= (STEPS_AT_ONCE + 1) * links.STEP < 2_000


@pytest.mark.parametrize(("busy", "turns"), [(0.0, 1), (2**-10, 2 * OTHERS), (1.0, 1)])
async def test_a_long_page_is_parsed_in_idle_time_and_for_a_ninth_of_the_time_else(busy: float, turns: int) -> None:
    """A step takes 1/512 s, a turn of the others `busy` seconds."""
    clock, log = ManualClock(), ""

    def steps() -> Iterator[None]:
        nonlocal log
        for _ in range(5):
            log += "|"
            clock.advance(2**-9)
            yield

    async def others() -> None:
        nonlocal log
        while True:
            log += "."
            clock.advance(busy)
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    await asyncio.sleep(0)
    await LongPages(10.0, clock).go(steps(), cast(Body, SimpleNamespace(place=0, turns=0)))
    task.cancel()
    assert [len(each) for each in log.split("|")[1:]] == [turns] * 5


async def test_long_pages_end_in_the_order_in_which_they_began_but_for_the_longest() -> None:
    """Their hosts are read again when they end, on connections that servers keep for some seconds."""
    pages, log, ends = LongPages(10.0, ManualClock()), list[str](), list[str]()

    async def read(name: str, pieces: int) -> None:
        body = cast(Body, SimpleNamespace(place=0, turns=0))
        for _ in range(pieces):
            await pages.go(iter([None]), body)
            log.append(name)
        ends.append(name)

    async with asyncio.TaskGroup() as group:
        for name, pieces in (("a", 3), ("long", AT_ONCE + 2), ("b", 3), ("c", 2)):
            group.create_task(read(name, pieces))
    assert ends == ["a", "b", "c", "long"]
    assert log[:5] == ["a", "long", "a", "long", "a"], "one is parsed while the next piece of the first comes"


async def test_a_long_page_that_is_given_up_passes_its_turn_on() -> None:
    pages, log = LongPages(10.0, ManualClock()), list[str]()

    async def read(name: str) -> None:
        await pages.go(iter([None]), cast(Body, SimpleNamespace(place=0, turns=0)))
        log.append(name)

    tasks = [asyncio.create_task(read(name)) for name in "abcd"]
    await asyncio.sleep(0)
    tasks[1].cancel()
    await tasks[0]
    tasks[2].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert log == ["a", "d"]


@pytest.mark.parametrize(("others", "rest"), [(True, OTHERS), (False, 0)])
async def test_a_page_that_has_a_place_gives_way_while_others_are_read(others: bool, rest: int) -> None:
    """However little the event loop has to do; its own deadlines stand still meanwhile. When the others have ended it
    goes on at once."""
    clock, body, ends, pauses = ManualClock(), cast(Body, Slow()), list[float](), list[bool]()
    pages, step = LongPages(10.0, clock), 2**-9

    def steps() -> Iterator[None]:
        for _ in range(5):
            clock.advance(step)
            ends.append(clock.monotonic())
            pauses.append(Slow.paused)
            yield

    async def time() -> None:
        while True:
            await asyncio.sleep(0)
            if clock.sleepers:
                clock.advance(step)

    task = asyncio.create_task(time())
    if others:
        pages.note_other(clock.monotonic())
    await pages.go_in_place(steps(), body)
    assert [round((after - before) / step) for before, after in pairwise(ends)] == [rest + 1] * 4
    assert all(pauses) and not Slow.paused
    clock.advance(RECENT)
    ends.clear()
    await pages.go_in_place(steps(), body)
    assert [round((after - before) / step) for before, after in pairwise(ends)] == [1] * 4
    task.cancel()


class Slow:
    """A body of which only the pauses count."""

    place = turns = 0
    paused = False

    def pause(self, paused: bool) -> None:
        Slow.paused = paused


async def test_answers_of_few_bytes_show_that_others_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a long page itself, nor a host that does not answer."""
    notes = list[float]()
    monkeypatch.setattr(LongPages, "note_other", lambda self, now: notes.append(now))
    counts = []
    for body in (b"<a href=/x>", b"<p>of it</p>" * 12_000):
        await fetched(says(page(body)))
        counts.append(len(notes))
    await fetched(says(b""), limits=QUICK)
    assert [*counts, len(notes)] == [1, 1, 1]


async def test_a_connection_whose_host_is_read_soon_is_kept_for_that() -> None:
    """The other host's is closed meanwhile."""
    limits = replace(QUICK, idle=0.1)
    ends = asyncio.Queue[str]()

    async def script(talk: Talk) -> None:
        await talk.say(page(b"<p>"))
        if talk.path == "/other":
            await talk.reader.read(1)
            ends.put_nowait(talk.path)

    async with serving(script) as server, serving(script) as other, reading(limits) as fetcher:
        assert (await fetcher.fetch(order(server.url + "/"))).error == ""
        fetcher.expect(server.url.removeprefix("http://"), 5.0)
        assert (await fetcher.fetch(order(other.url + "/other"))).error == ""
        async with asyncio.timeout(10):
            assert await ends.get() == "/other"
        assert (await fetcher.fetch(order(server.url + "/"))).error == ""
    assert (server.connections, other.connections) == (1, 1)


async def test_the_moment_of_the_last_byte_is_of_the_clock_that_keeps_the_delays() -> None:
    """It was the system's: a simulated host was read too soon as soon as more simulated time had passed than the
    machine was up."""

    class Ahead(SystemClock):
        def monotonic(self) -> float:
            return super().monotonic() + 1e6

    known = {"user_agent": "xyro/0.1", "robots_token": "xyro", "contact": "a@x.test"}
    options = ReaderOptions(**known, limits=QUICK, manners=Manners(), concurrency=1)
    guard, clock = Guard(only_net=["127.0.0.0/8"]), Ahead()
    for name in ("fast", "aiohttp"):
        chosen = replace(options, client=name)
        async with serving(says(page(b"<p>a"), pause=0.2)) as server:
            fetcher = fetcher_of(chosen, guard, clock, lambda host: 1.0, SiteEntries())
            began = clock.monotonic()
            answer = await fetcher.fetch(order(server.url + "/"))
            assert began < answer.received_at <= clock.monotonic() and answer.duration > 0.0
            await fetcher.close()
