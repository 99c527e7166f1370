"""A node that stands still or was killed, and a broker that has lost its directory: commands answer within seconds."""

import json
import os
import shutil
import signal
import time

import pytest

from tests.service.cluster_rig import running_cluster
from tests.service.face import xyro
from xyro.lab.child import running
from xyro.wire.ids import owner_of
from xyro.wire.urls import authority

SECONDS = 20.0
"""within which a command answers: 6 to 8 s are usual, a node is waited for 5 s"""
AWAY = "node 2 on "


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two nodes that have read a web of 6 hosts."""
    folder = tmp_path_factory.mktemp("away")
    with running(pages=96, hosts=6, seed=5, rate_median=0.0) as web, running_cluster(folder, 0.05) as found:
        found.settings["XYRO_KEEP__TEXT"] = "true"
        found.start(1), found.start(2)
        found.balanced(8, 8)
        found.submit(web.entry)
        found.complete()
        yield found


@pytest.fixture(scope="module")
def pages(cluster):
    """A page of each node that is read and has a text."""
    with cluster.remote() as remote:
        rows = [row for row in remote.lines("/export/pages") if row["state"] == "read" and row["kind"] == "HTML"]
        return {remote.placement.owners[owner_of(row["id"])].node: row["url"] for row in rows}


def asked(cluster, *words):
    began = time.monotonic()
    done = xyro(*words, "--join", cluster.broker.url)
    assert time.monotonic() - began < SECONDS, words
    return done


@pytest.fixture
def still(cluster, pages):
    """The cluster, while its node 2 stands still."""
    child = cluster.children[2]
    os.kill(child.pid, signal.SIGSTOP)
    yield cluster
    os.kill(child.pid, signal.SIGCONT)
    cluster.until(lambda: "missing" not in (cluster.get("/status") or {"missing": 1}), "node 2 is back")


@pytest.mark.long
def test_status_names_the_node_first_whichever_node_is_asked(still):
    for _ in range(5):  # a broker gives each request to either node: half of them reached the one that stands still
        done = asked(still, "status")
        first = done.stdout.splitlines()[0]
        assert (done.returncode, first.startswith("! A node of the cluster does not answer: partitions ")) == (0, True)
        assert AWAY in done.stdout and "Of the others: " in done.stdout
    found = json.loads(asked(still, "status", "--json").stdout)
    assert [row["kind"] for row in found["limits"]["wrong"]][:1] == ["node"]


@pytest.mark.long
def test_a_host_is_held_where_its_owner_lives(still, pages):
    here, away = authority(pages[1]), authority(pages[2])
    for verb, told in (("pause", "paused"), ("resume", "resumed"), ("block", "blocked"), ("resume", "resumed")):
        done = asked(still, verb, here)
        assert (done.returncode, done.stdout) == (0, f"{here}: {told}\n"), done.stderr
        done = asked(still, verb, away)
        assert done.returncode == 3 and AWAY in done.stderr and "partitions " in done.stderr
    codes = {asked(still, "pause", f"unknown-{number}.example").returncode for number in range(3)}
    assert codes <= {2, 3}, "nobody knows them: who would, says so, or is away"


@pytest.mark.long
def test_why_answers_where_the_owner_lives(still, pages):
    done = asked(still, "why", pages[1])
    assert done.returncode == 0 and AWAY in done.stdout and "It was read last at" in done.stdout
    explained = json.loads(asked(still, "why", pages[1], "--json").stdout)
    assert explained["url"] == pages[1] and AWAY in explained["missing"][0]
    done = asked(still, "why", pages[2])
    assert done.returncode == 3 and AWAY in done.stderr and not done.stdout


@pytest.mark.long
def test_what_is_submitted_is_accepted_where_its_node_lives_and_else_named(still, pages):
    here, away = (f"{pages[node].rpartition('/')[0]}/submitted-{node}.html" for node in (1, 2))
    done = asked(still, "submit", here, away, "http://10.0.0.1/")
    told = "1 accepted, 1 refused, 1 not accepted: the nodes of their hosts are away\n"
    assert (done.returncode, done.stdout) == (3, told), done.stderr
    assert f"{away}: not accepted: {AWAY}" in done.stderr and "submit it again when it is back" in done.stderr
    assert f"{here}: " not in done.stderr
    assert json.loads(asked(still, "why", here, "--json").stdout)["state"] != "unknown"


@pytest.mark.long
def test_rows_come_of_those_that_answer_and_sums_fail(still, pages):
    done = asked(still, "hosts", "--json")
    hosts = {row["host"] for row in json.loads(done.stdout)}
    assert done.returncode == 3 and AWAY in done.stderr
    assert authority(pages[1]) in {*hosts} and authority(pages[2]) not in hosts
    done = asked(still, "log", "--errors", "--json")
    assert done.returncode == 3 and AWAY in done.stderr and isinstance(json.loads(done.stdout), list)
    for words in (("plan",), ("top",), ("export", "hosts"), ("xml", "stats")):
        done = asked(still, *words)
        assert done.returncode == 3 and AWAY in done.stderr and not done.stdout, words


@pytest.mark.long
def test_contents_of_a_page_come_of_its_node_if_that_lives(still, pages, tmp_path):
    absence = "! A node of the cluster does not answer: node 2: nobody took the request.\n"
    done = asked(still, "page", "versions", pages[1])
    assert (done.returncode, done.stderr) == (3, absence) and "title" in done.stdout
    done = asked(still, "page", "get", pages[1], "-o", tmp_path / "text")
    assert (done.returncode, done.stderr) == (3, absence) and (tmp_path / "text").read_text()
    for words in (("versions", pages[2]), ("get", pages[2], "-o", tmp_path / "none")):
        done = asked(still, "page", *words)
        assert done.returncode == 3 and done.stderr.startswith("xyro: node 2: ") and not done.stdout, words
    assert not (tmp_path / "none").exists()


@pytest.mark.long
def test_cluster_status_says_which_process_and_directory_a_node_is(cluster):
    nodes = json.loads(asked(cluster, "cluster", "status", "--json").stdout)["nodes"]
    for node in nodes:
        number = node["node"]
        assert (node["pid"], node["directory"]) == (cluster.children[number].pid, str(cluster.data(number)))
    text = asked(cluster, "cluster", "status").stdout
    assert f"(process {nodes[0]['pid']}, {nodes[0]['directory']})" in text


@pytest.mark.long
def test_a_broker_that_lost_its_directory_is_told_from_one_without_a_crawl(cluster, tmp_path):
    cluster.broker.kill()
    shutil.rmtree(cluster.broker.directory)
    cluster.broker.start()
    cluster.until(lambda: "bucket is empty" in cluster.log(1).read_text(), "a node says so")
    for words in (("status",), ("cluster", "status")):
        done = asked(cluster, *words)
        assert done.returncode == 3 and "`xyro cluster adopt`" in done.stderr, done.stderr
    options = ("--only-net", "127.0.0.0/8", "--scope", "any", "--delay", "0.05")
    done = asked(cluster, "serve", *options, "--data", tmp_path / "new")
    assert done.returncode == 3 and "`xyro cluster adopt`" in done.stderr, "it would found a second crawl"
    assert not (tmp_path / "new").exists()
    assert asked(cluster, "cluster", "adopt").returncode == 0
    cluster.until(lambda: asked(cluster, "status").returncode == 0, "the cluster answers again")


@pytest.mark.long
def test_what_was_killed_is_named_as_well(cluster, pages):
    cluster.kill(2)
    first = asked(cluster, "status").stdout.splitlines()[0]
    assert first.startswith("! A node of the cluster does not answer: partitions ")
    assert asked(cluster, "why", pages[1]).returncode == 0
    assert asked(cluster, "pause", authority(pages[1])).returncode == 0
    assert asked(cluster, "pause", authority(pages[2])).returncode == 3
    text = asked(cluster, "cluster", "status").stdout
    assert "away: " in text and str(cluster.data(2)) in text
    assert asked(cluster, "resume", authority(pages[1])).returncode == 0
    cluster.start(2)
    cluster.until(lambda: "missing" not in (cluster.get("/status") or {"missing": 1}), "node 2 is back")
