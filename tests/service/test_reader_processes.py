"""The command with reader processes: the same pages, nothing read in excess, and no process that outlives its node."""

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.service.face import ENVIRONMENT, LOOPBACK, ROOT, XYRO, process, rows
from xyro.lab.child import running


def readers_of(pid: int) -> list[int]:
    """Pids of the reader processes below a process."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == pid and "xyro.reader_child" in (entry / "cmdline").read_text():
                found.append(int(entry.name))
    return found


def waited(found, seconds: float = 20.0):
    """The first true answer of `found`."""
    end = time.monotonic() + seconds
    while not (answer := found()) and time.monotonic() < end:
        time.sleep(0.05)
    assert answer
    return answer


@pytest.mark.long
def test_pages_links_and_requests_are_those_of_one_process(tmp_path):
    exports, requests = [], []
    for readers in ("0", "2"):
        data, log = tmp_path / readers, tmp_path / f"{readers}.log"
        with running(pages=120, hosts=6, seed=5, rate_median=0.0, log=log, port=0) as web:
            done = process("crawl", web.entry, *LOOPBACK, "--data", data, "--readers", readers, "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["ended"] == "complete"
        exports.append({strip(row["url"], web.port): (row["state"], row["out_links"]) for row in rows("pages", data)})
        requests.append(log.read_bytes().count(b"\n"))
    assert exports[0] == exports[1]
    assert len(exports[0]) >= 120
    assert requests[0] == requests[1]


def strip(url: str, port: int) -> str:
    return url.replace(f":{port}/", "/")


@pytest.mark.long
def test_readers_that_are_killed_cost_a_read_each_and_end_with_their_node(tmp_path):
    with running(pages=400, hosts=8, seed=6, rate_median=0.0) as web:
        options = [*LOOPBACK, "--data", str(tmp_path / "data"), "--readers", "2", "--delay", "0.02"]
        command = [*XYRO, "crawl", web.entry, *options]
        crawl = subprocess.Popen(command, cwd=ROOT, env=ENVIRONMENT, stderr=subprocess.DEVNULL)
        try:
            for pid in waited(lambda: len(found := readers_of(crawl.pid)) == 2 and found):
                time.sleep(0.5)
                os.kill(pid, signal.SIGKILL)
            assert waited(lambda: len(found := readers_of(crawl.pid)) == 2 and found)
            assert crawl.wait(60) == 0
        finally:
            crawl.kill()
            crawl.wait()
    pages = rows("pages", tmp_path / "data")
    assert not {row["error"] for row in pages} & {"reader-lost", "poison", "internal"}
    assert sum(row["state"] == "read" for row in pages) > 350


@pytest.mark.long
def test_a_killed_node_leaves_no_reader(tmp_path):
    with running(pages=400, hosts=8, seed=7, rate_median=0.0) as web:
        command = [*XYRO, "crawl", web.entry, *LOOPBACK, "--data", str(tmp_path / "data"), "--readers", "2"]
        crawl = subprocess.Popen(command, cwd=ROOT, env=ENVIRONMENT, stderr=subprocess.DEVNULL)
        readers = waited(lambda: len(found := readers_of(crawl.pid)) == 2 and found)
        crawl.kill()
        crawl.wait()
        waited(lambda: not [pid for pid in readers if Path(f"/proc/{pid}").exists()])
