"""`[keep] bytes`: what matters least goes first, by a recomputation of its worth; the index stays true."""

from __future__ import annotations

import contextlib
import json
import os
import random
import zlib
from pathlib import Path

import pytest

from tests.service.neighbours import Neighbours, crawling
from xyro.configs.load import load
from xyro.contents_index import open_index, totals
from xyro.packed_text import StoredText
from xyro.plugins.contents.retention import Retention
from xyro.plugins.contents.text_versions import TextVersions
from xyro.service.node.reader_factory import archive_of
from xyro.warc_files import Earlier, HttpAnswer, WarcFiles, sha1

NOW = 1e9
DAY = 86_400.0


def keep_text(index, page: int, time: float, words: bytes) -> None:
    packed = zlib.compress(words)
    TextVersions(index, 0, 0.0).store(
        page, time, StoredText(words[:16].ljust(16), len(words), packed, "t", "en", "", "")
    )


@pytest.fixture
def index(tmp_path):
    base = open_index(tmp_path, write=True)
    yield base
    base.close()


@pytest.mark.parametrize(("versions", "days", "kept"), [(0, 0.0, 4), (2, 0.0, 2), (0, 1.5, 3), (0, 9.0, 4)])
def test_settings_bound_the_versions_of_a_text(index, versions, days, kept):
    """Four versions, a day apart: with the last, the first was replaced two days ago, the second one."""
    texts = TextVersions(index, versions, days)
    for number in range(4):
        words = b"%d" % number
        found = StoredText(words.ljust(16), 1, zlib.compress(words), "t", "en", "", "")
        assert texts.store(1, NOW + number * DAY, found)
    assert [number for (number,) in index.execute("SELECT number FROM texts ORDER BY number")] == [1, 2, 3, 4][-kept:]
    assert len(index.execute("SELECT digest FROM bodies").fetchall()) == kept


def test_texts_go_by_worth(tmp_path, index):
    rng = random.Random(4)
    worth = {}
    for page in range(60):
        importance, rate, age = rng.uniform(0.1, 20), rng.uniform(0, 2), rng.uniform(0, 30) * DAY
        index.execute(
            "INSERT INTO pages VALUES (?, ?, ?, ?, ?)", (page, f"http://a/{page}", importance, rate, NOW - age)
        )
        versions = rng.randint(1, 4)
        for number in range(1, versions + 1):
            keep_text(index, page, NOW - age - (versions - number) * DAY, b"%d.%d " % (page, number) + os.urandom(1500))
            worth[page, number] = importance / (1 + versions - number + rate * age / DAY)
    index.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    before = Retention(tmp_path, index, 0).size()
    gone = Retention(tmp_path, index, before // 2).sweep(NOW)
    left = {(page, number) for page, number in index.execute("SELECT page, number FROM texts")}
    assert max(worth[key] for key in worth if key not in left) <= min(worth[key] for key in left)
    assert 0.5 * before <= gone <= 0.7 * before
    left_bytes = sum(path.stat().st_size for path in tmp_path.glob("index.sqlite*") if "-shm" not in path.name)
    assert left_bytes == pytest.approx(before - gone, abs=8_192), "the disk has its room back"
    assert totals(index)["dropped"] == len(worth) - len(left)


def test_a_bound_far_below_what_is_there_is_used(tmp_path, index):
    """What goes is more than its own bytes, by what the index says of it."""
    for page in range(2_000):
        index.execute("INSERT INTO pages VALUES (?, ?, ?, 0, ?)", (page, f"http://a/{page}", float(page), NOW))
        keep_text(index, page, NOW, b"%d " % page + os.urandom(300))
    files = sum(path.stat().st_size for path in tmp_path.glob("index.sqlite"))
    limit = 300_000
    retention = Retention(tmp_path, index, limit)
    assert files > 3 * limit
    retention.sweep(NOW)
    assert 0.8 * limit < retention.size() <= limit
    kept = {page for (page,) in index.execute("SELECT page FROM texts")}
    assert kept == set(range(min(kept), 2_000))


def test_a_body_stays_while_a_version_has_it(tmp_path, index):
    body = b"same" + os.urandom(2000)
    for page, importance in ((1, 9.0), (2, 0.1)):
        index.execute("INSERT INTO pages VALUES (?, ?, ?, 0, ?)", (page, f"http://a/{page}", importance, NOW))
        keep_text(index, page, NOW, body)
    assert totals(index)["texts"] == 2 and index.execute("SELECT count(*) FROM bodies").fetchone() == (1,)
    TextVersions(index, 0, 0.0).drop(2, 1)
    assert index.execute("SELECT uses FROM bodies").fetchone() == (1,)


def test_files_go_whole_with_their_index_and_never_the_open_one(tmp_path, index):
    files = WarcFiles(tmp_path, "crawl", "node", 65_536)
    for page in range(40):
        body = b"HTTP/1.1 200 OK\r\n\r\n" + os.urandom(20_000)
        answer = HttpAnswer(f"http://a/{page}", NOW + page, b"GET / HTTP/1.1\r\n\r\n", body, 200)
        place = files.write(answer)
        index.execute("INSERT INTO pages VALUES (?, ?, ?, 0, ?)", (page, answer.url, float(page % 7 + page / 8), NOW))
        index.execute(
            "INSERT INTO records VALUES (?, ?, ?, ?, ?, 0, 200, '', ?, ?, ?)",
            (page, answer.started, place.file, place.offset, place.length, place.payload, place.date, b""),
        )
    (part,) = tmp_path.glob("*.part")
    retention = Retention(tmp_path, index, 400_000)
    retention.sweep(NOW)
    assert retention.size() <= 400_000
    named = {file for (file,) in index.execute("SELECT DISTINCT file FROM records")}
    assert named == {path.name for path in tmp_path.glob("*.warc.gz")}
    assert part.name.replace(".cdxj.part", ".warc.gz") in named
    assert {path.name.replace(".cdxj", ".warc.gz") for path in tmp_path.glob("*.cdxj")} | {
        part.name.replace(".cdxj.part", ".warc.gz")
    } == named
    left = index.execute("SELECT avg(importance) FROM pages JOIN records USING (page)").fetchone()[0]
    assert left > index.execute("SELECT avg(importance) FROM pages").fetchone()[0]
    files.close()


def test_nothing_goes_below_the_bound_or_without_one(tmp_path: Path, index):
    index.execute("INSERT INTO pages VALUES (1, 'http://a/', 1, 0, ?)", (NOW,))
    keep_text(index, 1, NOW, os.urandom(5000))
    assert Retention(tmp_path, index, 0).sweep(NOW) == 0
    assert Retention(tmp_path, index, 1 << 30).sweep(NOW) == 0
    assert totals(index)["texts"] == 1


def test_the_index_and_its_log_count(tmp_path, index):
    for page in range(2_000):
        index.execute("INSERT INTO pages VALUES (?, ?, 1, 0, ?)", (page, f"http://a.test/{page}", NOW))
    index.execute("INSERT INTO pages VALUES (5000, 'http://a.test/kept', 9, 0, ?)", (NOW,))
    keep_text(index, 5000, NOW, os.urandom(9_000))
    retention = Retention(tmp_path, index, 64_000)
    log = tmp_path / "index.sqlite-wal"
    assert retention.size() > log.stat().st_size > 100_000
    retention.sweep(NOW)
    assert log.stat().st_size == 0, "the log is emptied"
    assert totals(index)["texts"] == 0, "rows of pages alone are more than the bound"
    assert 64_000 < retention.size() == pytest.approx((tmp_path / "index.sqlite").stat().st_size, abs=8_192)


def test_a_log_that_somebody_reads_costs_no_text(tmp_path, index):
    keep_text(index, 1, NOW, os.urandom(1_000))
    index.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    with contextlib.closing(open_index(tmp_path)) as reader:
        reader.execute("BEGIN")
        totals(reader)
        for number in range(50):
            index.execute("INSERT INTO pages VALUES (1, 'http://a', ?, 0, ?) ON CONFLICT (page) DO UPDATE SET "
                          "importance = excluded.importance", (float(number), NOW))  # fmt: skip
        retention = Retention(tmp_path, index, (tmp_path / "index.sqlite").stat().st_size + 8_000)
        assert retention.size() > 2 * (tmp_path / "index.sqlite").stat().st_size
        retention.sweep(NOW)
        assert totals(index)["texts"] == 1


def test_a_bound_below_one_file_closes_files_sooner(tmp_path):
    for bound, readers, expected in ((0, 0, 10**9), (8 * 10**7, 0, 10**7), (8 * 10**7, 3, 25 * 10**5), (99, 0, 2**16)):
        settings = load((), {}, {"keep.warc": True, "keep.bytes": bound, "fetch.readers": readers})
        assert archive_of(settings, tmp_path).file_bytes == expected


def insert_record(index, page, answer, place, revisit: bool) -> None:
    index.execute(
        "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, 200, '', ?, ?, ?)",
        (page, answer.started, place.file, place.offset, place.length, revisit, place.payload, place.date, b""),
    )


def test_revisits_go_with_the_answer_that_they_refer_to(tmp_path, index):
    """From both indexes, of closed files and of the one that is being written."""
    files = WarcFiles(tmp_path, "crawl", "node", 65_536)
    bodies = {page: b"HTTP/1.1 200 OK\r\n\r\n" + os.urandom(30_000) for page in range(8)}
    for again in range(5):
        for page, body in bodies.items():
            answer = HttpAnswer(f"http://a/{page}", NOW + again * 100 + page, b"GET / HTTP/1.1\r\n\r\n", body, 200)
            body_of = "SELECT payload, date FROM records WHERE page = ? AND NOT revisit"
            first = index.execute(body_of, (page,)).fetchone()
            place = files.write(answer, first and Earlier("unchanged", *first))
            index.execute("INSERT OR IGNORE INTO pages VALUES (?, ?, ?, 0, ?)", (page, answer.url, 1.0 + page, NOW))
            insert_record(index, page, answer, place, first is not None)
        other = HttpAnswer("http://b/", NOW + again * 100 + 50, b"GET / HTTP/1.1\r\n\r\n", os.urandom(66_000), 200)
        files.write(other)
    retention = Retention(tmp_path, index, 200_000 + 5 * 66_000)
    assert retention.sweep(NOW)
    left = {page for (page,) in index.execute("SELECT DISTINCT page FROM records WHERE NOT revisit")}
    revisited = {page for (page,) in index.execute("SELECT DISTINCT page FROM records WHERE revisit")}
    assert 0 < len(left) < 8 and revisited == left
    files.close()
    urls = {f"http://a/{page}" for page in left}
    lines = [
        json.loads(line.split(" ", 2)[2]) for path in tmp_path.glob("*.cdxj") for line in path.read_text().splitlines()
    ]
    assert {line["url"] for line in lines if line["mime"] == "warc/revisit"} == urls
    assert not list(tmp_path.glob("*.gone")) and not list(tmp_path.glob("*.part"))


def dangling(contents: Path) -> tuple[set[str], set[str]]:
    """URLs of revisits that refer to no answer which is left, by the CDXJ indexes and by the index of contents."""
    lines = [
        json.loads(line.split(" ", 2)[2]) for path in contents.glob("*.cdxj") for line in path.read_text().splitlines()
    ]
    whole = {(line["url"], line["digest"]) for line in lines if line["mime"] != "warc/revisit"}
    again = {line["url"] for line in lines if (line["url"], line["digest"]) not in whole}
    with contextlib.closing(open_index(contents)) as index:
        rows = index.execute("SELECT url, payload, revisit FROM records JOIN pages USING (page)").fetchall()
    bodies = {(url, payload) for url, payload, revisit in rows if not revisit}
    return again, {url for url, payload, _ in rows if (url, payload) not in bodies}


def drop_all_closed(contents: Path) -> None:
    with contextlib.closing(open_index(contents, write=True)) as index:
        Retention(contents, index, 1).sweep(NOW)


async def test_a_revisit_that_is_under_way_while_its_answer_goes_goes_too(tmp_path):
    """Its reader has written it, its commit group has not told of it."""
    neighbours, contents, path = Neighbours(), tmp_path / "d" / "contents", "/p1.html"
    async with neighbours.serving():
        async with crawling(tmp_path / "d", neighbours, keep__warc=True):
            pass
        async with crawling(tmp_path / "d", neighbours, keep__warc=True) as running:
            (closed,) = (file for file in contents.glob("*.cdxj") if file.stat().st_size)
            services, reads = running.single.services, neighbours.reads[path]
            services.answered.append(lambda report, answer: drop_all_closed(contents))
            await running.single.submit([neighbours.url(path)], seed=False)
            await running.until(lambda: neighbours.reads[path] > reads and running.single._settled())
            services.answered.pop()
            assert not closed.exists()
            await running.single.submit([neighbours.url(path)], seed=False)
            await running.until(lambda: neighbours.reads[path] > reads + 1 and running.single._settled())
    assert dangling(contents) == (set(), set())
    with contextlib.closing(open_index(contents)) as index:
        kinds = index.execute("SELECT revisit FROM records JOIN pages USING (page) WHERE url LIKE ?", (f"%{path}",))
        assert kinds.fetchall() == [(0,)], "the next read is kept whole"


async def test_a_revisit_of_a_killed_process_goes_with_the_answer_that_it_refers_to(tmp_path):
    """No commit group told of it, so only its line knows of it."""
    neighbours, contents = Neighbours(), tmp_path / "d" / "contents"
    async with neighbours.serving():
        async with crawling(tmp_path / "d", neighbours, keep__warc=True):
            pass
        killed, url = WarcFiles(contents, "d", "killed", 1 << 20), neighbours.url("/p1.html")
        payload = sha1(neighbours.pages["/p1.html"].encode())
        head = b"HTTP/1.1 200 OK\r\n\r\n"
        place = killed.write(HttpAnswer(url, NOW, b"GET / HTTP/1.1\r\n\r\n", head, 200), Earlier("unchanged", payload))
        killed._abandon(killed._open)
        async with crawling(tmp_path / "d", neighbours, keep__warc=True):
            with contextlib.closing(open_index(contents, write=True)) as index:
                retention = Retention(contents, index, 1)
                for (file,) in index.execute("SELECT DISTINCT file FROM records WHERE NOT revisit").fetchall():
                    retention._drop_file(file)
    assert (contents / place.file).exists()
    assert dangling(contents) == (set(), set())
