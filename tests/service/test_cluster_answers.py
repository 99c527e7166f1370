"""What a cluster answers while partitions move between its nodes: each partition once, or a reason why not."""

from __future__ import annotations

import json
import threading
from collections import Counter

import pytest

from tests.plugins.changing_site import ChangingSite
from tests.service.cluster_rig import running_cluster
from tests.service.face import xyro
from tests.service.test_metrics import PLACES, get, values
from xyro.service.cluster.bucket import set_epoch
from xyro.wire.errors import MachineError

URLS, HOSTS = 4000, 40
MOVES, PAUSE = 8, 1.0
"""of a partition, one after the other; seconds between two"""


@pytest.mark.long
def test_all_tables_and_the_status_have_each_partition_once_while_partitions_move(tmp_path):
    """They had a partition that moved not at all, or twice, and said nothing; a node ended by a segmentation fault.
    On a busy machine a move may take longer than an answer waits for it: then that is said, and no table is given."""
    urls = [f"http://127.1.{number % HOSTS}.9:8999/{number}" for number in range(URLS)]
    with running_cluster(tmp_path, delay=60.0) as cluster:
        for number in (1, 2, 3):
            cluster.start(number)
        cluster.balanced(5, 5, 6)
        assert cluster.submit(*urls)["accepted"] == URLS
        done = threading.Event()
        moving = threading.Thread(target=move, args=(cluster, done))
        moving.start()
        try:
            failures, answers = ask(cluster, done, set(urls))
        finally:
            done.set()
            moving.join()
        assert answers >= 4 and all(reason.endswith("ask again") for reason in failures), (answers, failures)
        for number in (1, 2, 3):
            cluster.stop(number)


def test_a_partition_that_is_open_on_no_node_is_named_and_no_table_is_given_out_without_it(tmp_path):
    with running_cluster(tmp_path) as cluster:
        cluster.start(1)
        assert cluster.submit("http://127.1.0.9:8999/")["accepted"] == 1
        cluster.stop(1)
        set_epoch(cluster.data(1) / "p0007", 99)
        cluster.start(1)
        status = cluster.until(lambda: cluster.get("/status"), "the node answers")
        assert len(status["missing"]) == 1 and status["missing"][0].startswith("partitions 7 are closed: their nodes")
        done = xyro("export", "pages", "--join", cluster.broker.url)
        assert done.returncode == 3 and "partitions 7 are closed" in done.stderr, done


@pytest.mark.long
def test_each_node_has_its_metrics_while_cash_is_under_way_and_all_of_them_what_was_minted(tmp_path):
    """A node answered with an error while it had sent cash to the other one."""
    with running_cluster(tmp_path, delay=0.0) as cluster, ChangingSite(6, 40, 1).serving() as site:
        cluster.settings = {"XYRO_METRICS__SERVE": "true"}
        for number in (1, 2):
            cluster.start(number)
        cluster.balanced(8, 8)
        cluster.submit(site.entry)
        flights = []

        def read():
            found = [cash_of_node(cluster.data(number)) for number in (1, 2)]
            flights.append(sum(cash["flight"] for cash in found))
            return site.reads >= 6 * 41 and not flights[-1]

        cluster.until(read, "all is read")
        cluster.complete(6 * 41)
        assert max(flights) > 0, "it was never seen on its way"
        cluster.until(lambda: missing_cash(cluster) == 0, "no unit is missing, nor one too many")


def cash_of_node(data) -> dict[str, float]:
    """Units by place, as the node's own metrics have them."""
    run = json.loads((data / "run").read_text())
    status, text, _ = get(run["port"], "/metrics", Authorization=f"Bearer {run['token']}")
    assert status == 200, text
    return {place: values(text).get(f'xyro_cash_units{{where="{place}"}}', 0.0) for place in PLACES}


def missing_cash(cluster) -> float:
    found = [cash_of_node(cluster.data(number)) for number in (1, 2)]
    assert all(cash["pages"] > 0 for cash in found)
    return sum(cash["minted"] - cash["pages"] - cash["virtual"] - cash["flight"] for cash in found)


def move(cluster, done: threading.Event) -> None:
    """Move partitions from node to node, one after the other."""
    with cluster.remote() as remote:
        owners = [owner.node for owner in remote.placement.owners]
    for count in range(MOVES):
        partition = count % 4
        target = owners[partition] = owners[partition] % 3 + 1
        assert xyro("cluster", "--join", cluster.broker.url, "move", str(partition), str(target)).returncode == 0

        def moved(partition: int = partition, target: int = target) -> bool:
            with cluster.remote() as remote:
                return remote.placement.owners[partition].node == target

        cluster.until(moved, f"partition {partition} is on node {target}")
        if done.wait(PAUSE):
            return
    done.set()


def ask(cluster, done: threading.Event, urls: set[str]) -> tuple[Counter[str], int]:
    """Ask until the moves are over. -> (reasons of answers that did not come, answers)"""
    failures, answers = Counter[str](), 0
    with cluster.remote() as remote:
        while not done.is_set():
            try:
                found = [row["url"] for row in remote.lines("/export/pages")]
                assert len(found) == len(urls) and set(found) == urls, (len(found), len(set(found)))
                hosts = [row["host"] for row in remote.lines("/export/hosts")]
                assert len(hosts) == len(set(hosts)) == HOSTS
                status = remote.get("/status")
                assert (status["known"], status.get("missing")) == (len(urls), None)
                assert len(remote.get("/top", n=len(urls))) == len(urls)
                answers += 4
            except MachineError as error:
                failures[str(error)] += 1
    return failures, answers
