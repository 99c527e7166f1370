"""A node whose disk is lost: its partitions come back from a backup on other nodes, or begin anew; cash is exact."""

from __future__ import annotations

import json

import pytest

from tests.service.cluster_rig import DELAY, ServerLog, alone, running_cluster
from tests.service.face import xyro
from xyro.lab.child import running

PAGES, HOSTS = 300, 12


def restore(cluster, *words) -> list[dict]:
    done = xyro("cluster", "--join", cluster.broker.url, "restore", *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.long
@pytest.mark.parametrize("empty", [False, True])
def test_a_lost_disk_is_restored_on_the_other_nodes(tmp_path, empty):
    log_path = tmp_path / "log"
    with running(pages=PAGES, hosts=HOSTS, seed=5, rate_median=0.0, log=log_path) as web:
        whole = alone(tmp_path, web.entry)
        log = ServerLog(log_path)
        with running_cluster(tmp_path) as cluster:
            for number in (1, 2, 3):
                cluster.start(number)
            cluster.balanced(5, 5, 6)
            cluster.submit(web.entry)
            cluster.until(lambda: sum(log.reads().values()) >= 60, "60 reads")
            backup = tmp_path / "backup"
            if not empty:
                done = xyro("backup", backup, "--data", cluster.data(2))
                assert done.returncode == 0, done.stderr
                checked = xyro("audit", "--data", backup)
                assert checked.returncode == 3 and checked.stdout.startswith("incomplete: partitions "), checked.stderr
                assert "cash, and what partitions sent each other, are not checked" in checked.stdout
            cluster.until(lambda: sum(log.reads().values()) >= 160, "100 more")
            cluster.kill(2)
            cluster.data(2).rename(tmp_path / "lost")
            found = restore(cluster, "--empty" if empty else backup)
            assert len(found) in (5, 6) and {each["node"] for each in found} == {1, 3}
            audits: list[dict] = []
            cluster.until(
                lambda: "missing" not in (audits.append(cluster.get("/audit") or {"missing": True}) or audits[-1]),
                "all nodes",
            )
            assert audits[-1]["ok"], audits[-1]
            audit = cluster.complete(len(whole[0]))
            assert audit["ok"] and audit["cash_total"] == 65_536 * len(whole[0]) + audit.get("excess", 0)
            assert cluster.pages() == whole[0]
            cluster.until(lambda: cluster.links() == whole[1], "links of hosts whose standing was lost, too")
            assert log.least_gap() >= DELAY - 0.01
            if empty:
                assert xyro("cluster", "--join", cluster.broker.url, "forget", "2").returncode == 0
                return
            (tmp_path / "lost").rename(cluster.data(2))
            cluster.start(2)
            cluster.balanced(5, 5, 6)
            audit = cluster.complete(len(whole[0]))
            assert audit["ok"] and cluster.pages() == whole[0]
