"""Records whose file is dropped before a commit group tells of them, and revisits that none tells of."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import random
import threading
import time
from pathlib import Path

import pytest

from tests.plugins.test_retention import NOW, dangling, insert_record
from tests.service.neighbours import Neighbours, crawling
from xyro.configs.load import load
from xyro.contents_index import open_index
from xyro.plugins.contents import contents_writer
from xyro.plugins.contents.contents_rebuild import ContentsRebuild
from xyro.plugins.contents.retention import Retention, drop_unindexed
from xyro.warc_files import Earlier, HttpAnswer, WarcFiles, drop_lines, index_of, seal, sha1, warc_of
from xyro.wire.ids import PageId

HEAD = b"HTTP/1.1 200 OK\r\n\r\n"
REQUEST = b"GET / HTTP/1.1\r\n\r\n"
SMALL = 1 << 16
"""bytes at which a file is closed, of pages that are larger"""


def large_pages() -> Neighbours:
    """Pages that fill a file each."""
    neighbours, rng = Neighbours(), random.Random(3)
    for path in neighbours.pages:
        neighbours.pages[path] = f"<p>{rng.randbytes(SMALL).hex()}</p>"
    return neighbours


def named_and_missing(contents: Path) -> set[str]:
    """Files that the index of contents names, and that are not there."""
    with contextlib.closing(open_index(contents)) as index:
        named = {file for (file,) in index.execute("SELECT DISTINCT file FROM records")}
    return {file for file in named if not (contents / file).exists()}


def closed_files(contents: Path) -> list[Path]:
    return [warc_of(path) for path in contents.glob("*.cdxj") if path.stat().st_size]


async def test_a_record_whose_file_is_dropped_before_its_commit_group_was_kept(tmp_path):
    """The retention of `[keep] bytes` is between the reader and the commit group: nothing failed, nothing is told."""
    neighbours, contents = large_pages(), tmp_path / "d" / "contents"
    bound = {"keep__warc": True, "keep__text": True, "keep__bytes": 1 << 30, "keep__file_bytes": SMALL}
    gone: list[Path] = []

    def drop() -> None:
        with contextlib.closing(open_index(contents, write=True)) as index:
            for path in closed_files(contents):
                Retention(contents, index, 1)._drop_file(path.name)
                gone.append(path)

    async with neighbours.serving(), crawling(tmp_path / "d", neighbours, **bound) as running:
        services = running.single.services
        services.barriers.insert(0, drop)
        told = int(running.status["contents"].get("dropped", 0))
        for again in range(2, 5):
            for path in neighbours.pages:
                await running.single.submit([neighbours.url(path)], seed=False)
            await running.until(lambda again=again: min(neighbours.reads[path] for path in neighbours.pages) >= again)
            await running.until(running.single._settled)
        services.barriers.remove(drop)
        assert gone and not any(path.exists() for path in gone)
        assert not services.unstored
        assert not running.status["contents"]["paused"]
        assert running.status["contents"]["dropped"] > told
    assert not services.unstored
    assert named_and_missing(contents) == set() and dangling(contents) == (set(), set())


async def test_without_a_bound_a_file_that_somebody_removed_is_told(tmp_path):
    neighbours, contents = large_pages(), tmp_path / "d" / "contents"

    def remove() -> None:
        for path in closed_files(contents):
            path.unlink(missing_ok=True)

    async with neighbours.serving(), crawling(tmp_path / "d", neighbours, keep__warc=True, keep__file_bytes=SMALL) as r:
        r.single.services.barriers.insert(0, remove)
        for path in neighbours.pages:
            neighbours.pages[path] += "again"
            await r.single.submit([neighbours.url(path)], seed=False)
        await r.until(lambda: all(neighbours.reads[path] == 2 for path in neighbours.pages) and r.single._settled())
        assert sum(r.single.services.unstored.values()) > 0


class SlowRetention(Retention):
    """Takes its time, so that a commit group comes before the transaction in which it forgets a file ends, or after."""

    slow = "within"

    @contextlib.contextmanager
    def _transaction(self):
        with super()._transaction():
            time.sleep(0.3 if self.slow == "within" else 0.0)
            yield

    def _forget(self, file: str) -> None:
        super()._forget(file)
        time.sleep(0.3 if self.slow == "after" else 0.0)


@pytest.mark.long
@pytest.mark.parametrize("slow", ["within", "after"])
async def test_no_row_is_left_of_a_file_that_goes_while_a_commit_group_is_written(tmp_path, slow):
    neighbours, contents = large_pages(), tmp_path / "d" / "contents"
    bound = {"keep__warc": True, "keep__bytes": 1 << 30, "keep__file_bytes": SMALL}
    threads: list[threading.Thread] = []
    taken: set[Path] = set()

    def drop(begun: threading.Event) -> None:
        with contextlib.closing(open_index(contents, write=True)) as index:
            for path in set(closed_files(contents)) - taken:
                taken.add(path)
                begun.set()
                retention = SlowRetention(contents, index, 1)
                retention.slow = slow
                retention._drop_file(path.name)
        begun.set()

    def begin_to_drop() -> None:
        begun = threading.Event()
        threads.append(threading.Thread(target=drop, args=(begun,)))
        threads[-1].start()
        begun.wait()

    async with neighbours.serving(), crawling(tmp_path / "d", neighbours, **bound) as running:
        taken.update(closed_files(contents))
        running.single.services.barriers.insert(0, begin_to_drop)
        for path in neighbours.pages:
            neighbours.pages[path] += "again"
        await running.single.submit(map(neighbours.url, neighbours.pages), seed=False)
        await running.until(lambda: all(neighbours.reads[path] == 2 for path in neighbours.pages))
        await running.until(running.single._settled)
        running.single.services.barriers.remove(begin_to_drop)
        for thread in threads:
            thread.join()
        assert any(not path.exists() for path in taken) and named_and_missing(contents) == set()
        assert not running.single.services.unstored


async def test_revisits_of_a_failed_fsync_go_with_their_answers(tmp_path, monkeypatch):
    """No commit group tells of them: only their lines in a closed file know of them."""
    neighbours, contents = Neighbours(), tmp_path / "d" / "contents"
    keep = {"keep__warc": True}
    async with neighbours.serving():
        async with crawling(tmp_path / "d", neighbours, **keep):
            pass
        bodies = {path.name for path in contents.glob("*.warc.gz")}

        def fail(path: Path) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

        async with crawling(tmp_path / "d", neighbours, **keep) as running:
            with monkeypatch.context() as disk:
                disk.setattr(contents_writer, "_sync", fail)
                for path in neighbours.pages:
                    await running.single.submit([neighbours.url(path)], seed=False)
                await running.until(lambda: all(neighbours.reads[path] == 2 for path in neighbours.pages))
                await running.until(running.single._settled)
            assert sum(running.single.services.unstored.values()) == len(neighbours.pages)
        fresh = [index_of(path) for path in contents.glob("*.warc.gz") if path.name not in bodies]
        assert fresh
        with contextlib.closing(open_index(contents, write=True)) as index:
            for name in bodies:
                Retention(contents, index, 1)._drop_file(name)
    assert dangling(contents) == (set(), set())
    assert not list(contents.glob("*.fresh"))


def test_a_closed_file_is_looked_at_once_nothing_of_it_waits(tmp_path):
    files = WarcFiles(tmp_path, "crawl", "node", 1 << 20)
    payload = sha1(b"body")
    places = [
        files.write(HttpAnswer(f"http://a/{n}", NOW + n, REQUEST, HEAD, 200), Earlier("unchanged", payload))
        for n in range(4)
    ]
    files.close()
    final = index_of(tmp_path / places[0].file)
    with contextlib.closing(open_index(tmp_path, write=True)) as index:
        for n in (1, 3):
            answer = HttpAnswer(f"http://a/{n}", NOW + n, REQUEST, HEAD, 200)
            insert_record(index, n, answer, places[n], revisit=True)
        drop_unindexed(tmp_path, index, waiting={places[0].file})
        drop_unindexed(tmp_path, index, before=time.time() - 60)
        assert len(final.read_text().splitlines()) == 4
        drop_unindexed(tmp_path, index, before=time.time() + 60)
        assert [json.loads(line.split(" ", 2)[2])["url"] for line in final.read_text().splitlines()] == [
            "http://a/1", "http://a/3"
        ]  # fmt: skip
        index.execute("DELETE FROM records")
        drop_unindexed(tmp_path, index)
        assert len(final.read_text().splitlines()) == 2, "once: an index that is begun anew costs no line"


def test_repair_leaves_out_revisits_without_an_answer(tmp_path):
    """The answer's file was dropped, then the index was lost: neither the new one nor the lines name its revisits."""
    files = WarcFiles(tmp_path, "crawl", "node", 1)
    bodies = {url: HEAD + url.encode() for url in ("http://a/1", "http://a/2")}
    answers = [HttpAnswer(url, NOW, REQUEST, body, 200, "text/plain") for url, body in bodies.items()]
    first = [files.write(answer) for answer in answers]
    again = [
        files.write(HttpAnswer(answer.url, NOW + 9, REQUEST, HEAD, 200), Earlier("unchanged", place.payload))
        for answer, place in zip(answers, first, strict=True)
    ]
    files.close()
    (tmp_path / first[0].file).unlink()
    index_of(tmp_path / first[0].file).unlink()
    ids = {url: PageId(number) for number, url in enumerate(bodies, 1)}
    found = ContentsRebuild(tmp_path, load(overrides={"keep.warc": True}), ids.get, lambda page: None).run()
    assert (found["records"], found["revisits"]) == (2, 1)
    with contextlib.closing(open_index(tmp_path)) as index:
        assert index.execute("SELECT file, first, revisit FROM records ORDER BY time").fetchall() == [
            (first[1].file, first[1].offset, 0), (again[1].file, again[1].offset, 1)
        ]  # fmt: skip
    assert dangling(tmp_path) == (set(), set())


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_a_line_that_is_dropped_while_its_file_is_closed_goes(tmp_path, seed):
    """At whatever moment of closing it comes."""
    files = WarcFiles(tmp_path, "crawl", "node", 1 << 30)
    place = files.write(HttpAnswer("http://a/", NOW, REQUEST, HEAD, 200), Earlier("unchanged", sha1(b"")))
    files._abandon(files._open)
    path = tmp_path / place.file
    part = index_of(path).with_name(index_of(path).name + ".part")
    line = part.read_text()
    others = [
        line.replace("http://a/", f"http://a/{n}").replace(f'"{place.offset}"', f'"{10**6 + n}"') for n in range(20_000)
    ]
    part.write_text("".join([*others, line]))
    rng = random.Random(seed)
    closing = threading.Thread(target=seal, args=(path,))
    closing.start()
    time.sleep(rng.uniform(0.0, 0.03))
    drop_lines(path, [place.offset])
    closing.join()
    lines = index_of(path).read_text().splitlines()
    assert len(lines) == 20_000 and not any(f'"offset": "{place.offset}"' in line for line in lines)
    assert not list(tmp_path.glob("*.gone"))
