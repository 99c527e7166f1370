"""The server over real sockets."""

import asyncio
import contextlib
import os
import re
import socket

import aiohttp
import pytest

from xyro.lab.child import Running
from xyro.lab.web.places import Doc, address_of
from xyro.lab.web.render import render
from xyro.lab.web.server import WebServer, main, parse, running
from xyro.lab.web.shape import DAY, OPTION_HELP, ORIGIN, SETTINGS
from xyro.lab.web.web import Web
from xyro.wire.clock import ManualClock
from xyro.wire.errors import MachineError

T = ORIGIN + 20 * DAY


def small(**settings):
    return Web(pages=120, hosts=3, **settings)


async def raw(port, data, host=0):
    """All bytes that the server sends for `data`, up to its closing the connection."""
    reader, writer = await asyncio.open_connection(address_of(host), port)
    writer.write(data)
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    await writer.wait_closed()
    return answer


async def test_every_page_is_served_by_its_own_host_on_one_port():
    async with WebServer(small(), clock=ManualClock(T)) as server, aiohttp.ClientSession() as session:
        assert server.entry == f"http://127.1.0.1:{server.port}/"
        for page in range(120):
            rendered = render(server.web, page, T)
            async with session.get(server.web.url(page), allow_redirects=False) as response:
                assert response.status == rendered.status
                assert response.headers["Content-Type"] == rendered.mime
                assert await response.read() == rendered.body
        async with session.get(f"http://{address_of(1)}:{server.port}{server.web.places.path(6)}") as response:
            assert response.status == 404


async def test_head_has_the_headers_of_get_and_no_body():
    async with WebServer(small(), clock=ManualClock(T)) as server, aiohttp.ClientSession() as session:
        page = int(server.web.places.of_kind(Doc.HTML)[2])
        async with session.head(server.web.url(page)) as head, session.get(server.web.url(page)) as get:
            assert head.headers == get.headers
            assert await head.read() == b""


async def test_time_passes_by_the_clock_given():
    clock = ManualClock(T)
    async with WebServer(small(rate_median=1.0), clock=clock) as server, aiohttp.ClientSession() as session:
        page = int(server.web.places.of_kind(Doc.HTML)[2])
        url, until = server.web.url(page), server.web.state(page, T).until
        async with session.get(url) as response:
            conditions = {"If-None-Match": response.headers["ETag"]}
        assert server.truth().versions[page] == server.web.version(page, T)
        clock.advance(until - T - 1e-2)
        async with session.get(url, headers=conditions) as response:
            assert response.status == 304
        clock.advance(2e-2)
        async with session.get(url, headers=conditions) as response:
            assert response.status == 200
        assert server.truth().versions[page] == server.web.version(page, T) + 1
        assert server.truth(T).versions[page] == server.web.version(page, T)


async def test_pipelined_requests_are_answered_in_order_however_they_arrive():
    async with WebServer(small(), clock=ManualClock(T)) as server:
        pages = server.web.places.of_kind(Doc.HTML).tolist()[:3]
        lines = [f"GET {server.web.places.path(p)} HTTP/1.1\r\nHost: x\r\n\r\n" for p in pages]
        lines[-1] = lines[-1].replace("Host", "Connection: close\r\nHost")
        data = "".join(lines).encode()
        whole = await raw(server.port, data)
        places = [whole.index(render(server.web, page, T).body) for page in pages]
        assert places == sorted(places)
        for cut in range(0, len(data), 7):
            reader, writer = await asyncio.open_connection(address_of(0), server.port)
            writer.write(data[:cut])
            await asyncio.sleep(0)
            writer.write(data[cut:])
            assert await reader.read() == whole
            writer.close()


async def test_a_client_that_does_not_read_is_not_buffered_for_without_end():
    async with WebServer(small(size=30_000), clock=ManualClock(T)) as server:
        reader, writer = await asyncio.open_connection(address_of(0), server.port, limit=1 << 16)
        request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
        writer.write(request * 2_000 + request.replace(b"Host", b"Connection: close\r\nHost"))
        await asyncio.sleep(0.2)
        (connection,) = server.connections
        assert connection._transport.get_write_buffer_size() < 1 << 20
        received = 0
        while piece := await reader.read(1 << 20):
            received += piece.count(b"HTTP/1.1 200")
        assert received == pytest.approx(2_001, abs=3)  # a status line may be cut between two reads
        writer.close()


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET  / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/2\r\n\r\n", 400),
        (b"GET http://127.1.0.1/ HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000, 431),
        (b"DELETE / HTTP/1.0\r\n\r\n", 405),
        (b"GET /robots.txt HTTP/1.0\r\n\r\n", 200),
        (b"\r\nGET / HTTP/1.1\r\nConnection: close\r\n\r\n", 200),
    ],
)
async def test_odd_requests_get_an_answer_and_the_connection_is_closed(request_bytes, status):
    async with WebServer(small(), clock=ManualClock(T)) as server:
        answer = await raw(server.port, request_bytes)
        assert answer.startswith(f"HTTP/1.1 {status} ".encode())


def test_parse_takes_header_names_in_any_case():
    request = parse(b'GET /a HTTP/1.1\r\nHOST: h \r\nIf-None-Match:  "x"')
    assert request.headers == {"host": "h", "if-none-match": '"x"'}
    assert request.keep_alive


async def test_latency_delays_each_answer_but_not_other_hosts():
    async with WebServer(small(), clock=ManualClock(T), latency=0.05) as server:
        loop, started = asyncio.get_running_loop(), asyncio.get_running_loop().time()
        data = b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.0\r\n\r\n"
        await asyncio.gather(*(raw(server.port, data, host) for host in (0, 1, 2)))
        assert loop.time() - started >= 0.1


async def test_stopping_drops_connections_even_with_answers_due():
    async with WebServer(small(), latency=60.0) as server:
        reader, writer = await asyncio.open_connection(address_of(0), server.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.sleep(0.05)
    with contextlib.suppress(ConnectionError):
        assert await asyncio.wait_for(reader.read(), 5) == b""
    writer.close()
    assert not server.connections


async def test_a_port_in_use_is_a_machine_error_and_leaves_nothing_open():
    async with WebServer(small()) as server:
        with pytest.raises(MachineError, match=str(server.port)):
            async with WebServer(small(), port=server.port):
                pass
    async with WebServer(small(), port=server.port) as again:
        assert again.port == server.port


async def test_the_access_log_has_the_rigs_columns(tmp_path):
    path = tmp_path / "access.log"
    async with WebServer(small(), clock=ManualClock(T), log=path) as server:
        agent = {"User-Agent": 'Xyro/1 "\t\\é'}
        async with aiohttp.ClientSession(headers=agent) as session:
            async with session.get(server.entry) as response:
                etag, size = response.headers["ETag"], len(await response.read())
            async with session.get(server.entry, headers={"If-None-Match": etag}):
                pass
            async with session.head(server.entry):
                pass
        await raw(server.port, b"bad\r\n\r\n")
    rows = [line.split("\t") for line in path.read_text().splitlines()]
    when, html = f"{T:.3f}", "text/html; charset=utf-8"
    escaped = r"Xyro/1 \x22\x09\x5C"
    assert [row[:8] for row in rows] == [
        [when, "127.1.0.1", "GET", "200", html, str(size), "1", "1"],
        [when, "127.1.0.1", "GET", "304", "-", "0", "1", "2"],
        [when, "127.1.0.1", "HEAD", "200", html, "0", "1", "3"],
        [when, "127.1.0.1", "-", "400", "text/plain; charset=utf-8", rows[3][5], "2", "1"],
    ]
    assert rows[0][8].startswith(escaped)
    assert [row[9] for row in rows] == ["/", "/", "/", "-"]


async def fetch(url):
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status, await response.text()


def test_running_serves_from_a_child_and_stops_it(tmp_path):
    log, true = tmp_path / "log", tmp_path / "truth.json"
    with running(pages=60, hosts=2, seed=3, latency=0.01, log=log, truth=true) as child:
        assert isinstance(child, Running)
        assert re.fullmatch(rf"http://127\.1\.0\.1:{child.port}/", child.entry)
        status, text = asyncio.run(fetch(child.entry))
        assert status == 200
        assert "<nav>" in text
        assert f'"{child.entry}"' in true.read_text()
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)
    assert log.read_text().count("\n") == 1


def test_running_says_so_when_the_child_does_not_listen():
    with pytest.raises(MachineError, match="it ended"), running(pages=5):
        pass


def test_bad_settings_are_one_line_and_exit_2(capsys):
    assert main(["--pages", "5"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(SystemExit) as stopped:
        main(["--pages", "many"])
    assert stopped.value.code == 2


def test_help_tells_of_every_setting(capsys):
    assert OPTION_HELP.keys() == set(SETTINGS)
    with pytest.raises(SystemExit) as stopped:
        main(["--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert stopped.value.code == 0
    assert [text for text in OPTION_HELP.values() if text not in said] == []


def test_a_port_in_use_is_one_line_that_names_the_mend(capsys):
    with socket.create_server(("127.1.0.1", 0)) as taken:
        assert main(["--pages", "60", "--hosts", "2", "--port", str(taken.getsockname()[1])]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "Address already in use" in said and "--port" in said
