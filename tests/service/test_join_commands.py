"""Commands with `--join`: asked of two nodes over a real broker, answered for both; what a node misses is said."""

import json
import time
from contextlib import contextmanager
from urllib.request import urlopen

import pytest

from tests.service.cluster_rig import alone, running_cluster
from tests.service.face import process, said, xyro
from xyro.lab.child import running
from xyro.wire.ids import owner_of
from xyro.wire.urls import host_of

PAGES = 120


@contextmanager
def crawled(folder):
    """(cluster of two nodes that has read a web of 6 hosts, its entry)."""
    with running(pages=PAGES, hosts=6, seed=5, rate_median=0.0) as web, running_cluster(folder, 0.05) as cluster:
        cluster.settings.update(XYRO_CHANGES__RECORD="true", XYRO_KEEP__TEXT="true", XYRO_KEEP__WARC="true")
        cluster.start(1), cluster.start(2)
        cluster.balanced(8, 8)
        done = xyro("submit", web.entry, "--join", cluster.broker.url)
        assert (done.returncode, done.stdout) == (0, "1 accepted, 0 refused\n")
        cluster.complete()
        yield cluster, web.entry


@pytest.mark.long
def test_every_command_answers_for_all_nodes_and_says_so_where_one_is_away(tmp_path):
    with crawled(tmp_path) as (cluster, entry):
        join = ("--join", cluster.broker.url)

        def asked(*words):
            done = xyro(*words, *join, "--json")
            assert done.returncode == 0, done.stderr
            return json.loads(done.stdout)

        status = asked("status")
        known = status["known"]
        assert len(status["nodes"]) == 2 and sum(node["known"] for node in status["nodes"]) == known >= PAGES / 2
        assert min(node["known"] for node in status["nodes"]) > 0, "both have hosts, or this shows nothing"
        assert asked("audit")["pages"] == known
        pages = [json.loads(line) for line in xyro("export", "pages", *join).stdout.splitlines()]
        assert len({page["url"] for page in pages}) == len(pages) == known
        best = sorted((page["importance"] for page in pages), reverse=True)[:5]
        # Importance moves a little between two commands: the daemon goes on.
        assert [row["importance"] for row in asked("top", "-n", "5")] == pytest.approx(best, rel=0.01)
        for page in pages:
            if page["state"] == "read":
                assert asked("why", page["url"])["url"] == page["url"]
        hosts = {page["host"] for page in pages}
        assert {row["host"] for row in asked("hosts")} == hosts
        for host in hosts:
            for verb in ("pause", "resume"):
                done = xyro(verb, host, *join)
                assert (done.returncode, done.stdout) == (0, f"{host}: {verb}d\n"), done.stderr
        assert xyro("publish", entry, *join).stdout == "1 published, 0 refused\n"
        _rested(join)
        _plan_changes_and_documents(pages, asked, join)
        _links_name_pages(pages, join)
        _contents(pages, join, tmp_path)
        _contents_after_a_move(cluster, join, tmp_path)
        alone(tmp_path, entry)
        _sites_and_grammars_are_those_of_one_process(hosts, asked, join, ("--data", tmp_path / "alone"))

        cluster.kill(2)
        short = asked("status")
        assert next(iter(short)) == "missing" and "node 2" in short["missing"][0] and short["known"] < known
        for words in (
            ("audit",),
            ("top",),
            ("export", "pages"),
            ("plan",),
            ("top", "--by", "site"),
            ("xml", "stats"),
            ("xml", "dtds"),
            ("export", "texts"),
            ("page", "versions", entry),
            ("rank", "--method", "pagerank"),
        ):
            done = xyro(*words, *join)
            assert done.returncode == 3 and "node 2" in done.stdout + done.stderr, words
        done = xyro("changes", *join)
        assert done.returncode == 3 and "did not answer in 15 s" in done.stderr, "it waited for ever"
        audit = xyro("audit", *join).stdout
        assert audit.startswith("incomplete: partitions ") and f"Of the others: {short['known']:,} pages" in audit
        own = xyro("status", "--check", "--data", cluster.data(1))
        assert (own.returncode, "missing" in own.stdout) == (0, False), "the node itself, not the cluster"
        assert xyro("status", "--check", *join).returncode == 2


@pytest.mark.long
def test_three_nodes_rank_their_pages_as_one_process_does(tmp_path):
    with running(pages=180, hosts=12, seed=5, rate_median=0.0) as web, running_cluster(tmp_path, 0.0) as cluster:
        for number in (1, 2, 3):
            cluster.start(number)
        cluster.balanced(5, 5, 6)
        cluster.submit(web.entry)
        cluster.complete()
        alone(tmp_path, web.entry)
        join = ("--join", cluster.broker.url)
        nodes = said("status", *join)["nodes"]
        assert len(nodes) == 3 and min(node["known"] for node in nodes) > 0, "each has hosts, or this shows nothing"
        for method in ("pagerank", "interest", "both"):
            found, again, wanted = (
                _ranks(method, place) for place in (join, ("--data", cluster.data(1)), ("--data", tmp_path / "alone"))
            )
            assert found == again and len(found) > 100
            assert found.keys() == wanted.keys()
            assert [found[url] for url in wanted] == pytest.approx(list(wanted.values()), rel=1e-8), method
        importance = cluster.importances()
        found = _ranks("opic", join)
        assert found.keys() == importance.keys()
        assert [found[url] for url in importance] == pytest.approx(list(importance.values()), abs=1e-4)
        refused = xyro("rank", "--method", "interest", "--keep", *join)
        assert (refused.returncode, "of one process" in refused.stderr) == (2, True)


def _ranks(method, place):
    """Rank of each page by URL."""
    done = xyro("rank", "--method", method, "--epsilon", "1e-12", "--format", "jsonl", *place)
    assert done.returncode == 0, done.stderr
    return {row["url"]: row["rank"] for row in map(json.loads, done.stdout.splitlines())}


def _rested(join):
    """Wait until the importance of a page that was just read hardly moves: nodes keep cash for up to a second.

    It may never rest wholly, for the daemon goes on reading: what is asked for next allows for that.
    """
    before = {}
    for _ in range(10):
        now = {row["url"]: row["importance"] for row in json.loads(xyro("top", "--json", *join).stdout)}
        if now == pytest.approx(before, rel=0.001):
            return
        before = now
        time.sleep(2.5)


def _plan_changes_and_documents(pages, asked, join):
    """They are of all nodes, whichever is asked."""
    read = {page["url"] for page in pages if page["state"] == "read"}
    plan = asked("plan")
    assert len(read) / 2 < plan["pages"] <= len(pages) and plan["rows"]
    lines = [json.loads(line) for line in xyro("changes", *join).stdout.splitlines()]
    changed = {line["url"] for line in lines if line["change"] == "new"}
    assert changed <= read and {host_of(url) for url in changed} == {host_of(url) for url in read}
    half = lines[len(lines) // 2]["cursor"]
    assert len(xyro("changes", "--since", half, *join).stdout.splitlines()) == len(lines) - len(lines) // 2 - 1
    documents = [json.loads(line) for line in xyro("export", "documents", *join).stdout.splitlines()]
    assert documents
    for document in documents[:3]:
        versions = asked("xml", "versions", document["url"])
        assert versions == asked("xml", "versions", str(document["id"])) and versions[-1]["version"] == 1
        assert versions[-1]["size"] == len(process("xml", "get", document["url"], *join).stdout.encode())
    assert "no document" in xyro("xml", "get", next(iter(read - {each["url"] for each in documents})), *join).stderr
    done = xyro("xml", "query", "/*", *join)
    stored = {each["url"]: each["importance"] for each in documents if each["kind"] == "XML"}
    roots = [line.partition("\t")[0] for line in done.stdout.splitlines()]
    assert sorted(roots) == sorted(stored) and len({host_of(url) for url in roots}) > 1
    assert [stored[url] for url in roots] == pytest.approx(sorted(stored.values(), reverse=True))
    failed = [page for page in pages if page["state"] in ("error", "dead", "disallowed")]
    failures = asked("log", "--errors")
    assert failed and sum(row["pages"] for row in failures) == len(failed)
    named = {each["url"] for row in failures for each in row["samples"]}
    assert named <= {page["url"] for page in failed} and len({host_of(url) for url in named}) > 1


def _contents(pages, join, folder):
    """Of all nodes, whichever is asked; of each page what its own node keeps."""
    rows = [json.loads(line) for line in xyro("export", "texts", *join).stdout.splitlines()]
    urls = [row["url"] for row in rows]
    assert urls == sorted(set(urls)) and len({host_of(url) for url in urls}) > 2
    read = {page["url"] for page in pages if page["state"] == "read" and page["kind"] == "HTML"}
    assert set(urls) == read
    _weighed(join, len(rows))
    files = [json.loads(line) for line in xyro("export", "warc", *join).stdout.splitlines()]
    assert {row["node"] for row in files} == {1, 2} and sum(row["records"] for row in files) >= len(read)
    done = xyro("export", "texts", "--to", folder / "texts", *join)
    assert done.stdout.startswith(f"{len(rows)} new, 0 changed"), done.stderr
    for row in (rows[0], rows[-1]):
        assert process("page", "get", row["url"], *join).stdout == row["markdown"] + "\n"
        (version,) = said("page", "versions", row["url"], *join)
        assert version["version"] == 1 and version["html"] and version["read_at"] == row["read_at"]
        with urlopen(row["url"]) as answer:
            assert process("page", "get", row["url"], "--as", "html", *join).stdout.encode() == answer.read()
    refused = xyro("page", "diff", urls[0], *join)
    assert (refused.returncode, "is the first that is kept" in refused.stderr) == (2, True)
    unknown = xyro("page", "get", "http://127.1.0.1:1/", *join)
    assert (unknown.returncode, "no node keeps anything of it" in unknown.stderr) == (2, True)


def _weighed(join, count, place=()):
    """Importance is that of now, whichever node keeps a text, in what is said, in its order and in what is chosen.
    place: of the commands about contents, of all nodes where it is empty. Importance moves a little between two."""
    now = {row["url"]: row["importance"] for row in map(json.loads, xyro("export", "pages", *join).stdout.splitlines())}
    done = xyro("export", "texts", "--by", "importance", *(place or join))
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert not done.stderr and len(rows) == count
    found = {row["url"]: row["importance"] for row in rows}
    assert found == pytest.approx({url: now[url] for url in found}, rel=0.01)
    best = [*found.values()]
    assert best == sorted(best, reverse=True)
    least = sum(best[len(best) // 3 : len(best) // 3 + 2]) / 2
    if best[len(best) // 3] > 1.05 * best[len(best) // 3 + 1]:
        chosen = xyro("export", "texts", "--min-importance", str(least), *(place or join)).stdout.splitlines()
        assert len(chosen) == len(best) // 3 + 1
    files = [json.loads(line) for line in xyro("export", "warc", *(place or join)).stdout.splitlines()]
    assert max(row["importance"] for row in files) >= 0.99 * best[0]


def _without_importance(lines):
    """Rows; importance moves."""
    return [{name: value for name, value in json.loads(line).items() if name != "importance"} for line in lines]


def _contents_after_a_move(cluster, join, folder):
    """The node that had the partition still has what it kept, and asks the other one for its importance."""
    before = xyro("export", "texts", *join).stdout
    first = json.loads(before.partition("\n")[0])
    partition = owner_of(first["id"])
    before_move = _owner(cluster, partition)
    assert xyro("cluster", "move", partition, 3 - before_move.node, *join).returncode == 0
    cluster.until(lambda: _owner(cluster, partition).epoch > before_move.epoch, "the partition has moved", 30)
    assert _without_importance(xyro("export", "texts", *join).stdout.splitlines()) == _without_importance(
        before.splitlines()
    )
    _weighed(join, before.count("\n"))
    for number in (1, 2):
        place = ("--data", cluster.data(number))
        _weighed(join, len(xyro("export", "texts", *place).stdout.splitlines()), place)
    assert process("page", "get", first["url"], *join).stdout == first["markdown"] + "\n"
    done = xyro("export", "texts", "--to", folder / "texts", *join)
    assert done.stdout.startswith(f"0 new, 0 changed, {before.count(chr(10))} unchanged, 0 gone"), done.stdout


def _links_name_pages(pages, join):
    ids = {page["url"]: page["id"] for page in pages}
    links = [json.loads(line) for line in xyro("export", "links", *join).stdout.splitlines()]
    assert sum(host_of(link["source_url"]) != host_of(link["target_url"]) for link in links) > 20
    for link in links:
        assert (link["source"], link["target"]) == (ids[link["source_url"]], ids[link["target_url"]])


def _owner(cluster, partition):
    with cluster.remote() as remote:
        return remote.placement.owners[partition]


def _sites_and_grammars_are_those_of_one_process(hosts, asked, join, one):
    """The counts of links, documents and grammars; importance depends on the order of reads."""
    sites, others = ({row["site"]: row for row in said("top", "--by", "site", *place)} for place in (join, one))
    assert sites.keys() == others.keys() == hosts
    for site, row in sites.items():
        assert row["pages"] == others[site]["pages"]
        assert row["site_rank"] == pytest.approx(others[site]["site_rank"], abs=1e-5)
    assert sum(row["importance"] for row in sites.values()) == pytest.approx(
        sum(row["pages"] for row in sites.values()), rel=1e-3
    )
    assert min(row["external_inflow"] for row in sites.values()) > 0
    assert len(asked("top", "--by", "site", "--level", "domain")) <= len(hosts)
    exported, alone_hosts = (
        {row["host"]: row for row in map(json.loads, xyro("export", "hosts", *place).stdout.splitlines())}
        for place in (join, one)
    )
    assert exported.keys() == hosts
    for host, row in exported.items():
        assert row["site_rank"] == pytest.approx(alone_hosts[host]["site_rank"], abs=1e-5)
        assert row["external_inflow"] == sites[host]["external_inflow"]
    found, wanted = (said("xml", "stats", *place) for place in (join, one))
    assert found["documents"] == wanted["documents"] and found["documents"]["count"] > 0
    assert found["dtds"] == wanted["dtds"] and found["dtds"]["most_used"]
    assert {kind: fields["size"] for kind, fields in found["pages"].items()} == {
        kind: fields["size"] for kind, fields in wanted["pages"].items()
    }
    for limit in ("0", "1"):
        grammars, those = (_grammars(place, limit) for place in (join, one))
        assert [{**row, "id": 0, "used_by": len(row["used_by"])} for row in grammars] == [
            {**row, "id": 0, "used_by": len(row["used_by"])} for row in those
        ]
        if limit == "0":
            assert [set(row["used_by"]) for row in grammars] == [set(row["used_by"]) for row in those]
            assert any(len({host_of(url) for url in row["used_by"]}) > 1 for row in grammars)


def _grammars(place, limit):
    return [json.loads(line) for line in xyro("xml", "dtds", "--json", "-n", limit, *place).stdout.splitlines()]


def test_commands_of_one_directory_say_what_to_do_instead():
    for words in (("backup", "there"), ("stop",), ("repair",), ("dashboard",)):
        done = xyro(*words, "--join", "nats://127.0.0.1:1")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1) and "with --data" in done.stderr, done.stderr


def test_one_crawl_is_named_by_an_option_or_by_the_environment(tmp_path):
    both = xyro("status", "--data", tmp_path, "--join", "nats://127.0.0.1:1")
    assert (both.returncode, "name two crawls" in both.stderr) == (2, True)
    away = xyro("status", XYRO_CLUSTER__JOIN="nats://127.0.0.1:1")
    assert (away.returncode, "no broker answers" in away.stderr) == (3, True)
    own = xyro("status", "--data", tmp_path / "none", XYRO_CLUSTER__JOIN="nats://127.0.0.1:1")
    assert (own.returncode, "no such data directory" in own.stderr) == (2, True)
    unsafe = xyro("submit", "http://a.test/", "--join", "nats://hub.test:4222")
    assert (unsafe.returncode, "needs TLS and a token" in unsafe.stderr) == (2, True)
