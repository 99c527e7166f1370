"""The broker is away for long: outboxes are bounded, known pages go on being read, and then nothing is missing."""

from __future__ import annotations

import time

import pytest

from tests.service.cluster_rig import ServerLog, alone, running_cluster
from xyro.lab.child import running

WATCHED = 10.0
"""seconds for which the server's log is watched when the bound is reached"""
PATIENCE, AGAIN = 60.0, 60
"""seconds until the bound is reached; reads of known pages after that"""
SETTINGS = {
    "CLUSTER__OUTBOX": "4096",
    "REFRESH__BANDWIDTH": "20/s",
    "REFRESH__MIN_INTERVAL": "0",
    "REFRESH__LEAST_CHANCE": "0",
}


@pytest.mark.long
def test_without_a_broker_discovery_ends_at_the_bound_and_refresh_goes_on(tmp_path):
    path = tmp_path / "log"
    with running(pages=900, hosts=12, seed=5, rate_median=200.0, log=path) as web:
        pages, links = alone(tmp_path, web.entry)
        readable = sum(state in ("read", "error") for state, *_ in pages.values())
        with running_cluster(tmp_path, 0.2) as cluster:
            cluster.settings = {f"XYRO_{name}": value for name, value in SETTINGS.items()}
            log = ServerLog(path)
            cluster.start(1), cluster.start(2)
            cluster.balanced(8, 8)
            cluster.submit(web.entry)
            cluster.until(lambda: len(log.reads()) >= 40, "40 pages")
            cluster.broker.kill()

            end = time.monotonic() + PATIENCE
            known = -1
            while known < len(log.reads()):
                known = len(log.reads())
                time.sleep(WATCHED)
                assert time.monotonic() < end, "new pages are read for ever"
            before = sum(log.reads().values())
            cluster.until(lambda: sum(log.reads().values()) >= before + AGAIN, "refresh goes on")
            print(f"{known} of {readable} pages when the outboxes were full, then {AGAIN} reads of known ones")
            assert len(log.reads()) == known < 0.8 * readable

            cluster.broker.start()
            cluster.until(lambda: (s := cluster.get("/status")) and s["known"] == len(pages), "all pages are known")
            cluster.until(lambda: len(log.reads()) >= readable, "all pages are read")
            audit = cluster.until(lambda: (a := cluster.get("/audit")) and a["ok"] and a, "an exact audit")
            assert audit["cash_total"] == 65_536 * len(pages)
            cluster.until(lambda: cluster.links() == links, "the links of a document whose parts lie elsewhere")
            assert {url for url, _ in links} <= set(pages)
