"""What a person does to a cluster: nodes leave, partitions go where they are sent, a lost bucket is made anew."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time

import pytest

from tests.service.cluster_rig import ServerLog, alone, running_cluster
from tests.service.face import started, xyro
from xyro.lab.child import running


def run(cluster, *words: str):
    return xyro("cluster", "--join", cluster.broker.url, *words)


def status(cluster) -> dict:
    return json.loads(run(cluster, "status", "--json").stdout)


def partitions(cluster) -> list[list[int]]:
    return [node["partitions"] for node in status(cluster)["nodes"]]


def test_the_cluster_is_named_before_or_behind_a_command_and_help_needs_none():
    url = "nats://127.0.0.1:9"
    for words in (("--join", url, "status"), ("status", "--join", url), ("drain", "2", "--join", url)):
        done = xyro("cluster", *words)
        assert done.returncode == 3 and f"{url}: no broker answers there" in done.stderr, words
    assert xyro("cluster", "move", "--help").returncode == 0
    done = xyro("cluster", "status")
    assert done.returncode == 2 and "--join URL" in done.stderr


@pytest.mark.long
def test_seeds_of_all_nodes_widen_the_scope_of_the_node_that_is_asked(tmp_path):
    """Each host is a place of its own: what was submitted to another node's host was called out of scope."""
    with running(pages=96, hosts=6, seed=5, rate_median=0.0) as web, running_cluster(tmp_path, delay=0.05) as cluster:
        cluster.settings["XYRO_CRAWL__SCOPE"] = "host"
        cluster.start(1), cluster.start(2)
        cluster.balanced(8, 8)
        port = web.entry.rstrip("/").rpartition(":")[2]
        seeds = [f"http://127.1.0.{host}:{port}/" for host in range(1, 7)]
        done = xyro("submit", *seeds, "--join", cluster.broker.url)
        assert (done.returncode, done.stdout) == (0, "6 accepted, 0 refused\n"), done.stderr
        cluster.complete(6)
        states = {url: state for url, (state, *_) in cluster.pages().items()}
        assert {states[seed] for seed in seeds} == {"read"}


@pytest.mark.long
def test_a_domain_is_in_scope_on_all_nodes(tmp_path):
    """Its hosts belong to partitions of both; those of the node without the seed's own were out of scope for ever."""
    with running_cluster(tmp_path, delay=0.05) as cluster:
        cluster.settings |= {"XYRO_CRAWL__SCOPE": "domain", "XYRO_FETCH__NAME_SERVERS": "127.2.255.53:9"}
        cluster.start(1), cluster.start(2)
        cluster.balanced(8, 8)
        done = xyro("submit", "http://h0.example.org/", "--join", cluster.broker.url)
        assert (done.returncode, done.stdout) == (0, "1 accepted, 0 refused\n"), done.stderr
        hosts = [f"http://h{number}.example.org/" for number in range(12)]

        def outside() -> list[str]:
            answers = {url: cluster.get("/why", url=url) for url in hosts}
            return [
                url for url, answer in answers.items() if answer is None or "(scope)" in " ".join(answer["because"])
            ]

        cluster.until(lambda: not outside(), "all hosts of the domain are in scope", 20)


@pytest.mark.long
def test_a_node_drains_and_is_forgotten_a_partition_is_sent_and_a_bucket_adopted(tmp_path):
    log_path = tmp_path / "log"
    with running(pages=200, hosts=8, seed=5, rate_median=0.0, log=log_path) as web:
        whole = alone(tmp_path, web.entry)
        log = ServerLog(log_path)
        with running_cluster(tmp_path, delay=0.4) as cluster:
            cluster.start(1)
            cluster.start(2)
            cluster.balanced(8, 8)
            cluster.submit(web.entry)
            refused = run(cluster, "forget", "2")
            assert refused.returncode == 2 and "has 8 partitions" in refused.stderr
            assert run(cluster, "move", "0", "2").returncode == 0
            cluster.until(lambda: 0 in partitions(cluster)[1], "partition 0 is on node 2")
            drained = run(cluster, "drain", "2")
            assert drained.returncode == 0, drained.stderr
            first, *rest, last = drained.stdout.splitlines()
            assert first.startswith("node 2 hands over ") and ": 0" in first
            assert len(rest) == int(first.split()[4]) and rest[-1].endswith("is on node 1 now; 0 to go")
            assert last == "node 2 has no partition: stop it, then `xyro cluster forget 2`"
            assert partitions(cluster) == [list(range(16)), []]
            cluster.stop(2)
            assert run(cluster, "forget", "2").returncode == 0
            assert [node["node"] for node in status(cluster)["nodes"]] == [1]
            cluster.start(3)
            cluster.balanced(8, 8)
            cluster.broker.kill()
            shutil.rmtree(cluster.broker.directory)
            cluster.broker.start()
            cluster.until(lambda: "bucket is empty" in cluster.log(1).read_text(), "a node says so")
            assert run(cluster, "adopt").returncode == 0
            assert sorted(map(len, partitions(cluster))) == [8, 8]
            audit = cluster.complete(len(whole[0]))
            assert audit["ok"] and audit["cash_total"] == 65_536 * len(whole[0])
            assert (cluster.pages(), cluster.links()) == whole
            assert set(log.reads().values()) == {1}
            assert log.least_gap() >= 0.39


@pytest.mark.long
def test_a_drain_says_what_holds_it(tmp_path):
    with running_cluster(tmp_path) as cluster:
        cluster.start(1), cluster.start(2)
        cluster.balanced(8, 8)
        cluster.kill(2)
        away = run(cluster, "drain", "2")
        assert away.returncode == 3 and "does not answer, and has 8 partitions (8-15): start it, and" in away.stderr
        assert away.stdout == "node 2 hands over 8 partitions: 8-15\n"
        alone = run(cluster, "drain", "1")
        assert alone.returncode == 2 and "no other node that could take its partitions" in alone.stderr
        cluster.start(2)
        os.kill(cluster.children[1].pid, signal.SIGSTOP)  # who is to take them does not
        late = run(cluster, "drain", "2", "--timeout", "3")
        assert late.returncode == 3 and "8 partitions (8-15) yet, and none has gone for 3 s; it goes on" in late.stderr
        os.kill(cluster.children[1].pid, signal.SIGCONT)
        told = run(cluster, "drain", "2", "--no-wait")
        assert told.returncode == 0 and told.stdout.splitlines()[-1].startswith("`xyro cluster status` shows")
        cluster.until(lambda: partitions(cluster)[1] == [], "node 2 is empty")
        assert "node 2 has no partition: stop it" in run(cluster, "drain", "2").stdout


@pytest.mark.long
def test_a_copied_directory_another_crawl_and_other_settings_are_refused_in_one_line(tmp_path):
    with running_cluster(tmp_path) as cluster:
        cluster.start(1)
        shutil.copytree(cluster.data(1), tmp_path / "n2")
        (tmp_path / "n2" / "run").unlink()
        options = ("--only-net", "127.0.0.0/8", "--scope", "any", "--delay", "0.15")
        join = ("serve", "--join", cluster.broker.url)
        twin = xyro(*join, *options, "--data", tmp_path / "n2")
        assert twin.returncode == 2 and "a process runs as node 1" in twin.stderr
        other = xyro(*join, "--only-net", "127.0.0.0/16", *options[2:], "--data", tmp_path / "n3")
        assert (
            other.returncode == 2
            and "fetch.only_net is" in other.stderr
            and "`xyro cluster set fetch.only_net=VALUE`" in other.stderr
        )
        assert not (tmp_path / "n3").exists()
        with running(pages=20, hosts=1, seed=5) as web:
            alone(tmp_path, web.entry, partitions=1)
        crawl = xyro(*join, *options, "--data", tmp_path / "alone")
        assert crawl.returncode == 2 and "holds a crawl of its own" in crawl.stderr
        assert not (tmp_path / "alone" / "node.json").exists()
        here = xyro("status", "--data", tmp_path / "n2")
        assert here.returncode == 2 and "--join" in here.stderr


@pytest.mark.long
def test_settings_that_all_nodes_share_change_on_all_of_them_at_once(tmp_path):
    log_path = tmp_path / "log"
    with (
        running(pages=120, hosts=4, seed=5, rate_median=0.0, log=log_path) as web,
        running_cluster(tmp_path, delay=0.1) as cluster,
    ):
        cluster.start(1)
        cluster.start(2)
        cluster.balanced(8, 8)
        cluster.submit(web.entry)
        cluster.until(lambda: (cluster.get("/status") or {}).get("reads", 0) >= 10, "10 reads")
        refused = run(cluster, "set", "fetch.concurrency=5")
        assert refused.returncode == 2 and "no setting that nodes share" in refused.stderr
        assert run(cluster, "set", "politeness.delay=-1").returncode == 2
        changed = run(cluster, "set", "politeness.delay=0.4", "crawl.max_depth=50")
        assert changed.stdout == "changed: crawl.max_depth, politeness.delay\n", changed.stderr
        for node in (1, 2):
            cluster.until(lambda node=node: "politeness.delay changed" in cluster.log(node).read_text(), "it says so")
            assert "need a restart, and stay as they were: crawl.max_depth" in cluster.log(node).read_text()
        time.sleep(1.0)  # what was read before it has its next read by the old delay
        log = ServerLog(log_path)
        cluster.complete()
        assert len(log.requests()) > 20 and log.least_gap() >= 0.39
        options = ("--only-net", "127.0.0.0/8", "--scope", "any", "--delay", "0.1")
        again = xyro("serve", "--join", cluster.broker.url, "--data", tmp_path / "n3", *options)
        assert again.returncode == 2 and "politeness.delay is 0.1 here and 0.4 there" in again.stderr
        assert "max_depth = 50" in (cluster.data(1) / "crawl.toml").read_text()
        new = ("serve", "--join", cluster.broker.url, *options[:4], "--delay", "0.4")  # of the depth it says nothing
        with started(*new, data=tmp_path / "n4"):
            cluster.until(lambda: len(status(cluster)["nodes"]) == 3, "a third node joins")
        assert "max_depth = 50" in (tmp_path / "n4" / "crawl.toml").read_text()
