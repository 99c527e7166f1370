"""WARC files of a crawl, judged by what wrote none of them: warcio, the server's log, and the server itself."""

from __future__ import annotations

import argparse
import asyncio
import base64
import collections
import contextlib
import errno
import gzip
import http.server
import io
import itertools
import json
import os
import random
import resource
import signal
import subprocess
import threading
import time
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import brotli
import pytest
from backports import zstd
from warcio.archiveiterator import ArchiveIterator
from warcio.bufferedreaders import BufferedReader
from warcio.checker import Checker
from warcio.exceptions import ArchiveLoadFailed

from tests.service.face import ENVIRONMENT, KILLS, LOOPBACK, ROOT, XYRO, process, rows, said, until
from xyro.lab.child import running
from xyro.surt import surt
from xyro.warc_files import SERVER_NOT_MODIFIED, HttpAnswer, WarcFiles, split_answer, warc_of
from xyro.warc_mending import mend

WARC = {"XYRO_KEEP__WARC": "true"}
BufferedReader.DECOMPRESSORS.pop("br", None)  # warcio 1.8.1 sets an attribute that Decompressor of brotli 1.2 has not
HTML = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"


def files(data: Path) -> list[Path]:
    return sorted((data / "contents").glob("*.warc.gz"))


def records(paths: list[Path]) -> list[tuple[str, str, str, bytes, str]]:
    """(type, URL, date, raw block behind the HTTP head, payload digest) of all whole records, in order."""
    found = []
    for path in paths:
        with path.open("rb") as file:
            try:
                for record in ArchiveIterator(file):
                    header = record.rec_headers.get_header
                    found.append(
                        (
                            record.rec_type,
                            header("WARC-Target-URI") or "",
                            header("WARC-Date"),
                            record.raw_stream.read(),
                            header("WARC-Payload-Digest") or "",
                        )
                    )
            except (ArchiveLoadFailed, EOFError, gzip.BadGzipFile):
                continue  # torn by a kill
    return found


def assert_sound(paths: list[Path]) -> None:
    """warcio finds every record whole, with its digests, in a member of its own."""

    checker = Checker(argparse.Namespace(inputs=list(map(str, paths)), verbose=False))
    checker.process_all()
    assert checker.exit_value == 0


def sent(url: str) -> bytes:
    """The body that the server sends now, redirects not followed."""
    parts = urlsplit(url)
    with contextlib.closing(HTTPConnection(parts.netloc)) as connection:
        connection.request("GET", url.split(parts.netloc, 1)[1])
        return connection.getresponse().read()


@pytest.mark.long
@pytest.mark.parametrize(("readers", "partitions"), [("0", "1"), ("2", "1"), ("1", "3")])
def test_every_read_is_a_record_and_every_body_is_what_the_server_sends(tmp_path, readers, partitions):
    data, log = tmp_path / "data", tmp_path / "log"
    with running(pages=120, hosts=6, seed=5, rate_median=0.0, log=log) as web:
        bounds = [
            "--refresh",
            "--max-pages",
            "300",
            "--max-seconds",
            "40",
            "--readers",
            readers,
            "--partitions",
            partitions,
        ]
        done = process("crawl", web.entry, *LOOPBACK, "--data", data, *bounds, "--json", **WARC)
        assert done.returncode == 0, done.stderr
        found = records(files(data))
        bodies = [(url, body) for kind, url, _, body, _ in found if kind == "response"]
        assert len(bodies) > 60  # the rest of the 120 pages, where known ones took more of the turns
        for url, body in bodies:
            assert body == sent(url), url
    requests = log.read_bytes().count(b"\n") - len(bodies)  # those that were sent here
    kinds = collections.Counter(kind for kind, *_ in found)
    assert kinds["response"] + kinds["revisit"] == kinds["request"] == requests
    assert kinds["revisit"] > 100, "pages that did not change are kept once"
    assert (
        sum(b"importance: " in block for kind, *_, block, _ in found if kind == "metadata")
        == (json.loads(done.stdout)["pages_read"])
    )
    assert_sound(files(data))
    assert sorted(path.suffix for path in (data / "contents").iterdir() if "cdxj" in path.name) == [".cdxj"] * len(
        files(data)
    )
    kept = said("status", "--data", data)["contents"]
    assert (kept["records"], kept["paused"], kept["unindexed"]) == (300, "", 0)


def test_a_revisit_names_the_record_that_has_its_payload(tmp_path):
    data = tmp_path / "data"
    with running(pages=48, hosts=4, seed=8, rate_median=0.0) as web:
        done = process("crawl", web.entry, *LOOPBACK, "--data", data, "--refresh", "--max-pages", "120", **WARC)
        assert done.returncode == 0, done.stderr
    digests = {(url, date): digest for kind, url, date, _, digest in records(files(data)) if kind == "response"}
    revisits, heads, unmodified = 0, set(), set()
    for path in files(data):
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                header = record.rec_headers.get_header
                if record.rec_type == "revisit":
                    earlier = header("WARC-Refers-To-Target-URI"), header("WARC-Refers-To-Date")
                    assert digests[earlier] == header("WARC-Payload-Digest")
                    assert earlier[1] < header("WARC-Date")
                    revisits += 1
                    if header("WARC-Profile") == SERVER_NOT_MODIFIED:
                        assert header("Content-Length") == "0", "replay would show a 304 that has a head"
                        unmodified.add(header("WARC-Record-ID"))
                elif record.rec_type == "metadata":
                    assert header("Content-Type") == "application/warc-fields", "replay would take it for a capture"
                    if record.raw_stream.read().startswith(b"status: HTTP/1.1 304 "):
                        heads.add(header("WARC-Concurrent-To"))
    assert revisits > 40
    assert heads == unmodified and len(heads) > 20, "the head of each 304 is there"


def test_the_index_beside_a_file_leads_to_its_records(tmp_path):
    data = tmp_path / "data"
    with running(pages=60, hosts=4, seed=9, rate_median=0.0) as web:
        assert process("crawl", web.entry, *LOOPBACK, "--data", data, **WARC).returncode == 0
    lines = 0
    for path in files(data):
        text = path.with_name(path.name.replace(".warc.gz", ".cdxj")).read_text()
        assert text.splitlines() == sorted(text.splitlines())
        for line in text.splitlines():
            key, moment, facts = line.split(" ", 2)
            place = json.loads(facts)
            with path.open("rb") as file:
                file.seek(int(place["offset"]))
                member = file.read(int(place["length"]))
            (record,) = ArchiveIterator(io.BytesIO(member))
            assert record.rec_headers.get_header("WARC-Target-URI") == place["url"]
            assert place["filename"] == path.name and len(moment) == 14 and key == surt(place["url"])
            assert (record.http_headers.get_statuscode() if record.http_headers else "304") == place["status"]
            lines += 1
    assert lines >= 60


def test_codings_and_chunks_stay_as_they_came(tmp_path):
    """A server of bytes: chunked, gzipped, and cut off in the middle."""
    text = b"<html><body>" + b"<p>hello</p>" * 500 + b"</body></html>"
    packed = gzip.compress(text, mtime=0)
    chunked = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (packed[:20], packed[20:])) + b"0\r\n\r\n"
    links = b'<a href="/chunked">1</a> <a href="/cut">2</a> <a href="/br">3</a> <a href="/zstd">4</a>'
    texts = {path: text.replace(b"hello", path.encode() * 9) for path in ("br", "zstd")} | {"chunked": text}
    newer = {"br": brotli.compress(texts["br"]), "zstd": zstd.compress(texts["zstd"])}
    answers = {
        b"/robots.txt": b"HTTP/1.1 404 no\r\nContent-Length: 0\r\n\r\n",
        b"/": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s" % (len(links), links),
        b"/chunked": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n" + chunked,
        b"/cut": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5000\r\n\r\n<p>half of",
    }
    for coding, body in newer.items():
        answers[f"/{coding}".encode()] = (
            HTML[:-2] + f"Content-Encoding: {coding}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        )

    async def crawl() -> tuple[int, int, str]:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ")[1]
                writer.write(answers[path])
                await writer.drain()
                if path == b"/cut":
                    break
            writer.close()

        async def quiet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await answer(reader, writer)
            except asyncio.IncompleteReadError:
                writer.close()

        server = await asyncio.start_server(quiet, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        arguments = ["crawl", f"http://127.0.0.1:{port}/", *LOOPBACK, "--data", str(tmp_path / "data")]
        command = await asyncio.create_subprocess_exec(
            *XYRO, *arguments, "--max-seconds", "8", cwd=ROOT, env={**ENVIRONMENT, **WARC}, stderr=subprocess.PIPE
        )
        _, told = await command.communicate()
        server.close()
        return command.returncode, port, told.decode()

    code, port, told = asyncio.run(crawl())
    assert code == 0, told
    found = {
        url.removeprefix(f"http://127.0.0.1:{port}"): body
        for kind, url, _, body, _ in records(files(tmp_path / "data"))
        if kind == "response"
    }
    assert found["/chunked"] == chunked
    assert found["/cut"] == b"<p>half of"
    for path in ("br", "zstd", "chunked"):
        assert found[f"/{path}"] == newer.get(path, chunked)
        url, data = f"http://127.0.0.1:{port}/{path}", str(tmp_path / "data")
        page = [*XYRO, "page", "get", url, "--as", "html", "--data", data]
        assert subprocess.run(page, cwd=ROOT, env=ENVIRONMENT, capture_output=True, check=True).stdout == texts[path]
    assert_sound(files(tmp_path / "data"))
    text = b"".join(gzip.decompress(path.read_bytes()) for path in files(tmp_path / "data"))
    assert text.count(b"WARC-Truncated: disconnect") == text.count(b"/cut\r\nWARC-Warcinfo-ID") // 2 > 0


class KilledCrawl:
    """A crawl that is killed again and again: what holds after each kill."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.answers: collections.Counter[str] = collections.Counter()
        self.ended: set[str] = set()
        """files that no run writes to any more, and that were read"""

    def look(self) -> int:
        """Each read that a commit group told of has its record; the files that are torn, all of them open ones."""
        parts = {path.name.removesuffix(".cdxj.part") for path in (self.data / "contents").glob("*.part")}
        fresh = [path for path in files(self.data) if path.name not in self.ended]
        closed = [path for path in fresh if path.name.removesuffix(".warc.gz") not in parts]
        assert all(map(whole, closed)), "only files that were open are torn"
        self.ended |= {path.name for path in closed}
        self.answers += answered(closed)
        now = self.answers + answered([path for path in fresh if path not in closed])
        told = {row["url"]: row["reads"] for row in rows("pages", self.data) if row["reads"]}
        missing = {url: reads for url, reads in told.items() if now[url] < reads}
        assert told and not missing, "reads that a commit group told of, and no record"
        return sum(not whole(path) for path in fresh if path not in closed)


def killed_crawls(tmp_path: Path, kills: int, readers: str) -> None:
    """Kill a crawl again and again; what its commit groups told has its records, each time."""
    data = tmp_path / "data"
    rng = random.Random(3)
    killed = KilledCrawl(data)
    with running(pages=3000, hosts=40, seed=6, rate_median=0.0, log=tmp_path / "log") as web:
        for _ in range(kills):
            command = [*XYRO, "crawl", web.entry, *LOOPBACK, "--data", str(data), "--readers", readers, "--refresh"]
            crawl = subprocess.Popen(
                command,
                cwd=ROOT,
                env={**ENVIRONMENT, **WARC, "XYRO_KEEP__FILE_BYTES": "300 KB"},
                stderr=subprocess.PIPE,
            )
            until((data / "run").exists)
            so_far = (tmp_path / "log").stat().st_size
            until(lambda size=so_far: (tmp_path / "log").stat().st_size > size + 20_000)
            time.sleep(rng.random() / 2)
            assert crawl.poll() is None, crawl.stderr.read()
            crawl.send_signal(signal.SIGKILL)
            crawl.communicate()
            (data / "run").unlink()
            time.sleep(0.3)  # reader processes end by themselves
            killed.look()
        command = ["crawl", web.entry, *LOOPBACK, "--data", data, "--readers", readers, "--max-pages", "20", "--json"]
        assert process(*command, **WARC).returncode == 0
    assert_sound(files(data))
    assert not list((data / "contents").glob("*.part"))
    assert len(files(data)) > kills


def answered(paths: list[Path]) -> collections.Counter[str]:
    return collections.Counter(url for kind, url, *_ in records(paths) if kind in ("response", "revisit"))


def whole(path: Path) -> bool:
    """gzip reads it to its end."""
    try:
        with gzip.open(path) as file:
            while file.read(1 << 20):
                pass
    except (EOFError, gzip.BadGzipFile):
        return False
    return True


@pytest.mark.long
def test_kills_lose_no_record_that_a_commit_told_of(tmp_path):
    killed_crawls(tmp_path, 3, "0")


class LargePages(http.server.BaseHTTPRequestHandler):
    """Eight pages of 5 MB that link to each other, are other ones each time, and cannot be packed."""

    protocol_version = "HTTP/1.1"
    noise = base64.b64encode(random.Random(7).randbytes(3_750_000))
    number = itertools.count()

    def do_GET(self) -> None:
        links = "".join(f'<a href="/{n}">{n}</a>' for n in range(8))
        found = self.path.strip("/") in "01234567"
        body = f"<html>{links}<!-- {next(self.number)} ".encode() + self.noise + b"--></html>" if found else b""
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def kill_in_a_write(crawl: subprocess.Popen[bytes], contents: Path, skipped: int) -> None:
    """Wait until a large record begins to appear in the open file, the first after so many, and kill at once."""

    def opened() -> Path | None:
        begun = [warc_of(path) for path in contents.glob("*.cdxj.part") if ".m0-" not in path.name]
        return next(filter(Path.exists, begun), None)

    path = until(opened)
    until(lambda: path.stat().st_size > skipped * len(LargePages.noise) // 2)
    size, deadline = path.stat().st_size, time.monotonic() + 30
    while path.stat().st_size == size and time.monotonic() < deadline:
        pass
    crawl.send_signal(signal.SIGKILL)


@pytest.mark.long
def test_kills_tear_large_records_and_lose_none_that_a_commit_told_of(tmp_path):
    """A record of 4 MB is written in milliseconds, in which a kill leaves half of it."""
    data, rng, torn, cut = tmp_path / "data", random.Random(14), 0, 0
    killed = KilledCrawl(data)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), LargePages) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        command = [*XYRO, "crawl", f"http://127.0.0.1:{server.server_port}/0", *LOOPBACK, "--data", str(data), "--warc"]
        for _ in range(KILLS):
            with (tmp_path / "told").open("wb") as told:
                crawl = subprocess.Popen([*command, "--refresh"], cwd=ROOT, env=ENVIRONMENT, stderr=told)
                until((data / "run").exists)
                kill_in_a_write(crawl, data / "contents", rng.randrange(2, 12))
                crawl.wait()
            (data / "run").unlink()
            torn += killed.look()
            cut += (tmp_path / "told").read_text().count("of a record that was being written are cut off")
        done = subprocess.run(
            [*command, "--refresh", "--max-pages", "30", "--json"], cwd=ROOT, env=ENVIRONMENT, capture_output=True
        )
        server.shutdown()
    cut += done.stderr.decode().count("of a record that was being written are cut off")
    print(f"{KILLS} kills: {torn} torn files, each mended by the next start")
    assert cut == torn >= 1, "a busy machine kills late: few are torn there"
    assert json.loads(done.stdout)["pages_read"] == 30
    assert killed.look() == 0 and not list((data / "contents").glob("*.part"))
    assert_sound(files(data))
    kinds = collections.Counter(kind for kind, *_ in records(files(data)))
    assert 0 <= kinds["response"] + kinds["revisit"] - kinds["request"] <= torn, "those whose request was torn"
    assert kinds["response"] + kinds["revisit"] >= json.loads(done.stdout)["reads_total"]


@pytest.mark.long
@pytest.mark.parametrize("readers", ["0", "2"])
def test_many_kills_lose_no_record_that_a_commit_told_of(tmp_path, readers):
    killed_crawls(tmp_path, KILLS, readers)


def written(directory: Path, count: int) -> Path:
    archive = WarcFiles(directory, "crawl", "node", 1 << 30)
    for number in range(count):
        archive.write(HttpAnswer(f"http://a.test/{number}", 1e9 + number, b"GET / HTTP/1.1\r\n\r\n", HTML, 200))
    assert archive._open is not None
    archive._open.warc.close()  # as if it were killed
    archive._open.index.close()
    (path,) = directory.glob("*.warc.gz")
    return path


def test_a_file_torn_at_any_byte_is_mended(tmp_path):
    path = written(tmp_path, 3)
    data, index = path.read_bytes(), next(tmp_path.glob("*.part")).read_bytes()
    for place, size in enumerate(range(1, len(data), 7)):
        here = tmp_path / str(place)
        here.mkdir()
        (here / path.name).write_bytes(data[:size])
        (here / next(tmp_path.glob("*.part")).name).write_bytes(index[: place * 11])
        mend(here)
        assert not list(here.glob("*.part"))
        left = list(here.glob("*.warc.gz"))
        if left:
            assert_sound(left)
            lines = (here / path.name.replace(".warc.gz", ".cdxj")).read_text().splitlines()
            answers = [url for kind, url, *_ in records(left) if kind == "response"]
            assert sorted(json.loads(line.split(" ", 2)[2])["url"] for line in lines) == sorted(answers)


def test_a_file_that_is_whole_and_was_left_open_keeps_every_record(tmp_path):
    path = written(tmp_path, 4)
    before = path.read_bytes()
    assert mend(tmp_path) == [] and path.read_bytes() == before


def test_a_full_disk_leaves_whole_records_and_goes_on_when_there_is_room(tmp_path):
    archive = WarcFiles(tmp_path, "crawl", "node", 1 << 30)
    body = HTML + os.urandom(30_000)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    count = 0
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))
        with pytest.raises(OSError) as error:
            while count < 20:
                archive.write(HttpAnswer(f"http://a.test/{count}", 1e9, b"GET / HTTP/1.1\r\n\r\n", body, 200))
                count += 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert error.value.errno == errno.EFBIG and 3 < count < 20
    archive.write(HttpAnswer("http://a.test/after", 1e9, b"GET / HTTP/1.1\r\n\r\n", body, 200))
    archive.close()
    found = [url for kind, url, *_ in records(list(tmp_path.glob("*.warc.gz"))) if kind == "response"]
    assert found == [*(f"http://a.test/{number}" for number in range(count)), "http://a.test/after"]
    assert_sound(list(tmp_path.glob("*.warc.gz")))


def test_nothing_is_kept_unless_it_is_asked_for(tmp_path):
    with running(pages=24, hosts=2, seed=1, rate_median=0.0) as web:
        assert process("crawl", web.entry, *LOOPBACK, "--data", tmp_path / "data").returncode == 0
    assert not (tmp_path / "data" / "contents").exists()
    assert "contents" not in said("status", "--data", tmp_path / "data")


@pytest.mark.parametrize(
    ("raw", "head"),
    [
        (b"HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody", b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n"),
        (b"HTTP/1.1 200 OK\nA: b\n\nbody", b"HTTP/1.1 200 OK\nA: b\n\n"),
        (b"HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 200 OK\r\n\r\nx", b"HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nA: b", b"HTTP/1.1 200 OK\r\nA: b"),
    ],
)
def test_the_body_begins_behind_the_head(raw, head):
    assert split_answer(raw) == (head, raw[len(head) :])


@pytest.mark.long
def test_a_directory_of_contents_is_of_one_crawl(tmp_path):
    """Page ids of two crawls mean two pages each: `export texts` of one listed the other's."""
    kept, second = tmp_path / "kept", tmp_path / "second"
    keeping = {"XYRO_KEEP__DIRECTORY": str(kept), "XYRO_KEEP__TEXT": "true"}

    def crawled(data: Path, *more: str, **environment: str) -> tuple[int, bool]:
        done = process("crawl", web.entry, "--data", data, *LOOPBACK, *more, **environment)
        return done.returncode, "another crawl" in done.stderr

    with running(pages=20, hosts=1) as web:
        assert crawled(tmp_path / "first", "--max-pages", "10", **keeping) == (0, False)
        whose = (kept / "crawl-id").read_text()
        assert crawled(second, **keeping) == (2, True)
        assert not second.exists()
        assert crawled(second, "--max-pages", "5") == (0, False)
        assert crawled(second, **keeping) == (2, True)
        assert crawled(tmp_path / "first", **keeping) == (0, False)
    assert (kept / "crawl-id").read_text() == whose
