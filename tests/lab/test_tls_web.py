"""The computed web as the web is: over TLS, with pages as large as real ones, coded, from servers that hang up."""

import asyncio
import ssl
import statistics
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from xyro.lab.web import server as lab_server
from xyro.lab.web.codings import chosen
from xyro.lab.web.padding import MEDIAN, padding, size_of
from xyro.lab.web.places import Doc
from xyro.lab.web.render import render
from xyro.lab.web.server import WebServer
from xyro.lab.web.shape import DAY, ORIGIN
from xyro.lab.web.web import Web
from xyro.links import LinkExtractor

ROOT = Path(__file__).resolve().parents[2]
T = ORIGIN + 20 * DAY


def secured(**settings):
    return Web(pages=120, hosts=6, tls=True, median=8_000, **settings)


@pytest.fixture
async def served(tmp_path):
    """(server, context of a client that trusts it)"""
    async with WebServer(secured(), log=tmp_path / "log") as server:
        server.authority.save(tmp_path / "ca.pem")
        yield server, ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))


def test_sizes_are_those_of_real_pages():
    sizes = [size_of(1, page, MEDIAN) for page in range(20_000)]
    assert statistics.median(sizes) == pytest.approx(138_000, rel=0.02)
    assert statistics.mean(sizes) == pytest.approx(242_000, rel=0.02)


def test_pages_have_the_size_that_was_drawn():
    web = Web(pages=120, hosts=2, median=60_000)
    for page in web.places.of_kind(Doc.HTML).tolist():
        if (size := size_of(1, page, 60_000)) > 10_000:
            assert len(render(web, page, T).body) == pytest.approx(size, rel=0.01, abs=3_000)


def test_padding_shows_no_link():
    light, heavy = Web(pages=120, hosts=2), Web(pages=120, hosts=2, median=60_000)
    for page in light.places.of_kind(Doc.HTML).tolist():
        found = []
        for web in (light, heavy):
            extractor = LinkExtractor(web.url(page))
            extractor.feed(render(web, page, T).body)
            found.append(extractor.close().links.urls)
        assert found[0] == found[1]
    assert len("".join(padding(1, 3, 100_000)).encode()) == pytest.approx(100_000, rel=0.03)


@pytest.mark.parametrize(
    ("wish", "accepted", "coding"),
    [
        ("br", "gzip, deflate, br", "br"),
        ("zstd", "gzip, br", "gzip"),
        ("br", "br;q=0, gzip;q=0.5", "gzip"),
        ("gzip", "", ""),
        ("", "gzip, br", ""),
    ],
)
def test_the_coding_is_the_hosts_wish_where_the_client_takes_it(wish, accepted, coding):
    assert chosen(wish, accepted) == coding


@pytest.mark.parametrize("accepted", ["gzip, br, zstd", "gzip", "identity"])
async def test_every_page_is_served_over_tls_in_a_coding_of_the_client(served, accepted):
    server, trusting = served
    connector, seen = aiohttp.TCPConnector(ssl=trusting), set()
    async with aiohttp.ClientSession(connector=connector, headers={"Accept-Encoding": accepted}) as session:
        for page in range(120):
            assert server.web.url(page).startswith("https://127.1.0.")
            async with session.get(server.web.url(page), allow_redirects=False) as response:
                assert await response.read() == render(server.web, page, server.clock.time()).body
                seen.add(response.headers.get("Content-Encoding", "identity"))
    assert seen <= {*accepted.split(", "), "identity"}
    assert accepted == "identity" or len(seen) > 1


async def test_what_was_prepared_is_what_is_answered(tmp_path):
    async with WebServer(secured(rate_median=0.0)) as server:
        server.answers.prepare(server.clock.time())
        before = list(server.answers._rendered)
        assert len(before) == 120
        server.authority.save(tmp_path / "ca.pem")
        connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=str(tmp_path / "ca.pem")))
        async with aiohttp.ClientSession(connector=connector) as session:
            headers = {"Accept-Encoding": "br, gzip, zstd"}
            async with session.get(server.entry, headers=headers) as response:
                assert await response.read() == render(server.web, 0, T).body
        assert sorted(server.answers._rendered) == sorted(before)


async def test_nobody_who_does_not_trust_the_authority_reads_it(served):
    server, _ = served
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await session.get(server.entry)


async def test_an_idle_connection_is_closed_and_handshakes_are_logged(served, tmp_path, monkeypatch):
    server, trusting = served
    monkeypatch.setattr(lab_server, "LEAST_IDLE", 0.2)
    monkeypatch.setattr(lab_server, "MOST_IDLE", 0.3)
    reader, writer = await asyncio.open_connection("127.1.0.1", server.port, ssl=trusting)
    writer.write(b"GET /robots.txt HTTP/1.1\r\nHost: x\r\n\r\n")
    answer = await asyncio.wait_for(reader.read(), 10)  # ends: the server hung up
    assert answer.startswith(b"HTTP/1.1 200 ")
    writer.close()
    server.log.flush()
    shake, request = ((tmp_path / "log").read_text().splitlines())[:2]
    assert shake.split("\t")[1:8] == ["127.1.0.1", "TLS", "0", "new", "0", "1", "0"]
    size = len(answer.split(b"\r\n\r\n")[1])
    assert request.split("\t")[2:8] == ["GET", "200", "text/plain; charset=utf-8", str(size), "1", "1"]


@pytest.mark.long
def test_speed_tls_counts_pages_and_handshakes():
    command = [sys.executable, "-m", "xyro.lab.speed.speed_lab", "tls"]
    command += ["--pages", "72", "--hosts", "3", "--delay", "0", "--latency", "0"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert said.returncode == 0, said.stderr
    web = Web(pages=72, hosts=3, tls=True, median=MEDIAN, rate_median=0.0, xml=0.0)
    html = web.places.of_kind(Doc.HTML).tolist()
    assert f" {len(html)} HTML pages, " in said.stdout
    mean = statistics.mean(len(render(web, page, T).body) for page in html)
    assert f"{mean / 1000:.0f}"[:2] in said.stdout.partition("a page        ")[2][:4]
    assert "handshakes    3 for " in said.stdout
    assert "pages a second of one core" in said.stdout
