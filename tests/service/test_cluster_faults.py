"""What a cluster survives: faults of many kinds (cluster_faults.py has all of them), and a move killed at each step."""

from __future__ import annotations

import time
from collections import Counter
from itertools import cycle

import pytest

from tests.service.cluster_faults import judged, web_of_faults
from tests.service.cluster_rig import DELAY, ServerLog, alone, running_cluster
from xyro.lab.child import running

PAGES, HOSTS = 300, 10
TOLERANCE = 0.01
SLOW = 0.5
"""seconds between two reads of a host in a crawl that is to last while partitions move"""
OUT = 288
"""reads that the death of a node may cost (node.py: those under way and not yet on disk)"""
STEPS = ("copy", "stop", "tail", "name", "change", "delete")


@pytest.fixture(scope="module")
def log_path(tmp_path_factory):
    return tmp_path_factory.mktemp("web") / "log"


@pytest.fixture(scope="module")
def web(log_path):
    with running(pages=PAGES, hosts=HOSTS, seed=5, rate_median=0.0, log=log_path) as found:
        yield found


@pytest.fixture(scope="module")
def whole(tmp_path_factory, web):
    return alone(tmp_path_factory.mktemp("alone"), web.entry)


def holds(cluster, whole, log, deaths: int = 0) -> None:
    """Cash, pages and links are those of one undisturbed process; requests and their gaps by the server's own log."""
    audit = cluster.complete(len(whole[0]))
    assert audit["ok"] and audit["cash_total"] == 65_536 * len(whole[0])
    assert cluster.pages() == whole[0]
    assert cluster.links() == whole[1]
    reads = log.reads()
    assert sum((reads - Counter(dict.fromkeys(reads, 1))).values()) <= OUT * deaths
    assert log.least_gap() >= DELAY - TOLERANCE


def reading(cluster, reads: int) -> None:
    """Wait until so many pages were read."""
    cluster.until(lambda: ((cluster.get("/status") or {}).get("reads") or 0) >= reads, f"{reads} reads")


@pytest.mark.long
def test_one_crawl_survives_faults_of_many_kinds(tmp_path):
    """Some of `python -m tests.service.cluster_faults`, one after the other in one cluster of four nodes."""
    rows = [("paused node", 12), ("woken twin", 25), ("full disk", 38), ("stalled link", 51), ("killed broker", 80)]
    with web_of_faults(tmp_path) as rig:
        found = judged(tmp_path / "run", rig, [("lossy transport", 0), *rows], seconds=4.0)
    assert found.holds, found


@pytest.mark.long
@pytest.mark.parametrize(("step", "end"), [*zip(STEPS, cycle(["source", "target"]))])
def test_a_move_that_is_killed_leaves_one_owner(tmp_path, web, whole, log_path, step, end):
    with running_cluster(tmp_path, delay=SLOW) as cluster:
        log = ServerLog(log_path)
        cluster.start(1, deadly=step if end == "source" else "-")
        cluster.submit(web.entry)
        reading(cluster, 20)
        cluster.start(2)
        if end == "source":
            cluster.children.pop(1).wait(60)
            cluster.start(1)
        else:
            cluster.until(lambda: f"stage {step}" in cluster.log(1).read_text(), f"the step {step}")
            cluster.kill(2)
            time.sleep(0.5)
            cluster.start(2)
        cluster.balanced(8, 8)
        holds(cluster, whole, log, deaths=1)
