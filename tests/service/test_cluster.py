"""Several nodes are one crawl: what they find is what one process finds, each page is asked for once, cash is exact."""

from __future__ import annotations

import asyncio
import json
import re
import time
import urllib.request

import nats
import pytest

from tests.service.cluster_rig import DELAY, ServerLog, alone, running_cluster
from tests.service.face import xyro
from xyro.lab.child import running
from xyro.wire.urls import partition_of

PAGES, HOSTS = 150, 8
TOLERANCE = 0.01
"""seconds by which a server's moments may be closer than ours"""


@pytest.fixture(scope="module")
def log_path(tmp_path_factory):
    return tmp_path_factory.mktemp("web") / "log"


@pytest.fixture(scope="module")
def web(log_path):
    with running(pages=PAGES, hosts=HOSTS, seed=5, rate_median=0.0, log=log_path) as found:
        yield found


@pytest.fixture(scope="module")
def whole(tmp_path_factory, web):
    """What one process finds."""
    return alone(tmp_path_factory.mktemp("alone"), web.entry)


def test_two_nodes_find_what_one_process_finds_while_partitions_move(tmp_path, web, whole, log_path):
    with running_cluster(tmp_path) as cluster:
        log = ServerLog(log_path)
        cluster.start(1)
        assert cluster.submit(web.entry) == {"accepted": 1, "refused": []}
        cluster.start(2)
        cluster.balanced(8, 8)
        audit = cluster.complete(len(whole[0]))
        assert audit["ok"] and audit["cash_total"] == 65_536 * len(whole[0])
        assert cluster.pages() == whole[0]
        assert cluster.links() == whole[1]
        assert set(log.reads().values()) == {1}
        assert log.least_gap() >= DELAY - TOLERANCE
        status = cluster.get("/status")
        assert status["partitions"] == 16 and [node["partitions"] for node in status["nodes"]] == [8, 8]


@pytest.mark.long
def test_a_node_that_is_away_is_named_first_and_missed_no_more_when_it_is_back(tmp_path, web, whole):
    with running_cluster(tmp_path) as cluster:
        cluster.start(1)
        cluster.submit(web.entry)
        cluster.start(2)
        cluster.balanced(8, 8)
        cluster.complete(len(whole[0]))
        cluster.stop(2)
        found = cluster.get("/status")
        assert found["missing"] and "node 2" in found["missing"][0]
        assert next(iter(found)) == "missing"
        cluster.start(2)
        assert cluster.until(lambda: (cluster.get("/audit") or {}).get("ok"), "all answer again")
        cluster.stop(1), cluster.stop(2)


@pytest.mark.long
def test_a_partition_that_its_node_does_not_have_is_named_and_not_waited_for(tmp_path):
    """Every command waited ten seconds for it, as for one that moves."""
    with running_cluster(tmp_path) as cluster:
        cluster.start(1), cluster.start(2)
        cluster.balanced(8, 8)
        cluster.stop(2)
        (cluster.data(2) / "p0011").rename(tmp_path / "elsewhere")
        cluster.start(2)
        assert "partition 11: the cluster has it here at epoch" in cluster.log(2).read_text()
        cluster.until(
            lambda: "closed: 11, as its log" in xyro("cluster", "status", *join(cluster)).stdout, "it says so"
        )
        for words in (("status",), ("top",), ("export", "pages")):
            done = xyro(*words, *join(cluster))
            assert "partitions 11 are closed: their nodes do not have them" in done.stdout + done.stderr, words
            assert done.returncode == (0 if words == ("status",) else 3)
        host = next(each for each in (f"127.1.0.{k}" for k in range(1, 255)) if partition_of(each, 16) == 11)
        done = xyro("submit", f"http://{host}/", *join(cluster))
        assert done.returncode == 3 and "partition 11, which has its host, is open on no node" in done.stderr


def join(cluster):
    return "--join", cluster.broker.url


@pytest.mark.long
def test_the_log_says_when_the_broker_goes_away_and_how_long_it_was_away(tmp_path):
    with running_cluster(tmp_path) as cluster:
        cluster.start(1)
        for times in (1, 2):
            cluster.broker.kill()
            cluster.until(lambda times=times: cluster.log(1).read_text().count(" is away: ") == times, "it says so")
            time.sleep(1.0)
            cluster.broker.start()
            cluster.until(lambda times=times: cluster.log(1).read_text().count(" is back; ") == times, "it says so")
        found = re.findall(r"the broker \S+ is back; it was away for ([\d.]+) s", cluster.log(1).read_text())
        assert len(found) == 2 and min(map(float, found)) >= 1.0
        assert cluster.stop(1).count("the broker ") == 4, "that it leaves by itself is not worth a line"


def test_what_cannot_be_decoded_is_told_once_in_the_log(tmp_path):
    with running_cluster(tmp_path) as cluster:
        cluster.start(1)
        with urllib.request.urlopen(f"http://127.0.0.1:{cluster.broker.monitor}/connz?subs=1") as answer:
            subjects = [name for each in json.load(answer)["connections"] for name in each["subscriptions_list"]]
        (subject,) = [name for name in subjects if ".node." in name]

        async def post(*data):
            client = await nats.connect(cluster.broker.url)
            for each in data:
                await client.publish(subject, each)
            await client.close()

        asyncio.run(post(b"", b"nonsense", b"\xff" * 100))
        deadline = time.monotonic() + 20
        while (line := "dropped a message of an unknown sender") not in cluster.log(1).read_text():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert cluster.get("/status")["partitions"] == 16  # it stopped nothing
        assert cluster.log(1).read_text().count(line) == 1
