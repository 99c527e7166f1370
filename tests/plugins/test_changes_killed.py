"""The stream of changes under SIGKILLs of the crawler and of who reads it, beside what the site itself computed."""

import json
import os
import random
import signal
import subprocess
import time
from collections import defaultdict

import pytest

from tests.plugins.changing_site import ChangingSite
from tests.service.face import ENVIRONMENT, KILLS, ROOT, XYRO, said, until, xyro

CHANGES = int(os.environ.get("XYRO_TEST_CHANGES", str(1_200 * KILLS)))
"""changes of the long test; with `XYRO_TEST_CHANGES=100000 XYRO_TEST_KILLS=50` it takes some minutes"""
HOSTS, VERSIONS = 8, 40
SETTINGS = """
[changes]
record = true
[[sinks]]
name = "files"
path = "{files}"
roll = 200000
wait = 0.1
"""


class Reader:
    """`xyro changes --follow` into a file, killed and begun again behind the last whole line."""

    def __init__(self, data, path):
        self.data, self.path, self.lives = data, path, 0
        self.path.touch()
        self.process = None

    def whole(self):
        """Cut a torn last line off; the lines."""
        text = self.path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        self.path.write_bytes(whole)
        return whole.splitlines()

    def start(self):
        lines = self.whole()
        since = ("--since", json.loads(lines[-1])["cursor"]) if lines else ()
        self.lives += 1
        with self.path.open("ab") as out:
            command = [*XYRO, "changes", "--follow", *since, "--data", str(self.data)]
            self.process = subprocess.Popen(command, cwd=ROOT, env=ENVIRONMENT, stdout=out, stderr=subprocess.DEVNULL)

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def run(tmp_path, site, kills, partitions, seed=1, seconds=600.0):
    """A crawl of all versions; -> (lines that the reader has, lines of the sink's files, kills that hit a process)."""
    data, files, settings = tmp_path / "d", tmp_path / "files", tmp_path / "s.toml"
    settings.write_text(SETTINGS.format(files=files))
    crawl = [*XYRO, "crawl", site.entry, "--scope", "any", "--only-net", "127.0.0.0/8", "--delay", "0", "--refresh",
             "--data", str(data), "--config", str(settings), "--partitions", str(partitions)]  # fmt: skip
    rng, reader, hits, end = random.Random(seed), Reader(data, tmp_path / "read.jsonl"), [0, 0], time.time() + seconds
    log = (tmp_path / "log").open("ab")
    crawler = None
    try:
        for left in range(kills, -1, -1):
            crawler = subprocess.Popen(crawl, cwd=ROOT, env=ENVIRONMENT, stdout=log, stderr=log)
            until(data.exists)
            if reader.process is None:
                reader.start()
            deadline = time.time() + rng.uniform(0.6, 3.0)
            while (left == 0 and not site.complete) or (left and time.time() < deadline):
                assert time.time() < end, f"{len(site.done)} pages are complete, {site.reads} reads"
                if rng.random() < 0.02:
                    hits[1] += 1
                    reader.kill()
                    reader.start()
                time.sleep(0.05)
            if left:
                hits[0] += crawler.poll() is None
                crawler.send_signal(signal.SIGKILL)
            else:
                time.sleep(2.0)  # the sink takes its last batch
                crawler.send_signal(signal.SIGINT)
            crawler.wait(60)
    finally:
        reader.kill()
        if crawler is not None and crawler.poll() is None:
            crawler.kill()
            crawler.wait()
        log.close()
    lines = [json.loads(line) for line in reader.whole()]
    since = ("--since", lines[-1]["cursor"]) if lines else ()
    rest = xyro("changes", *since, "--data", data)
    assert rest.returncode == 0, rest.stderr
    lines += map(json.loads, rest.stdout.splitlines())
    written = [json.loads(line) for path in sorted(files.iterdir()) for line in path.read_text().splitlines()]
    return lines, written, hits


def hold(lines, site, partitions):
    """Every number once and in order, and the changes of each page are those that the site computed."""
    numbers, pages, epochs = defaultdict(list), defaultdict(list), set()
    for line in lines:
        numbers[line["partition"]].append(line["number"])
        pages[line["url"]].append((line["change"], line["signature_old"], line["signature"]))
        epochs.add((line["partition"], line["epoch"]))
    assert len(epochs) == len(numbers) <= partitions, "one epoch a partition: nobody restored anything"
    assert all(found == list(range(1, len(found) + 1)) for found in numbers.values())
    assert pages == site.expected()


@pytest.mark.parametrize(
    ("kills", "hosts", "pages", "versions", "partitions"),
    [
        (4, 3, 12, 6, 2),
        pytest.param(KILLS, HOSTS, -(-CHANGES // (HOSTS * VERSIONS)), VERSIONS, 2, marks=pytest.mark.long),
    ],
)
def test_every_change_is_told_once_and_none_is_missing(tmp_path, kills, hosts, pages, versions, partitions):
    with ChangingSite(hosts, pages, versions).serving() as site:
        lines, written, hits = run(tmp_path, site, kills, partitions)
        hold(lines, site, partitions)
        hold(written, site, partitions)
        assert hits[0] >= 0.8 * kills - 1, f"{hits}: the crawls were over before they were to be killed"
        status = said("status", "--data", tmp_path / "d")
        assert status["changes"]["recorded"] == len(lines) == hosts * (pages * versions + 1)
        assert status["sinks"]["files"]["delivered"] == len(lines)
        print(f"{len(lines)} changes, SIGKILLs: {hits[0]} of the crawler, {hits[1]} of the reader, {site.reads} reads, "
              f"{len(os.listdir(tmp_path / 'files'))} files")  # fmt: skip
