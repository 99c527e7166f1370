"""A bandwidth that is set is that of the whole cluster, wherever its pages lie, and intervals follow one K."""

import math
import time
from collections import defaultdict
from statistics import median

import pytest

from tests.service.cluster_rig import ServerLog, running_cluster
from xyro.lab.child import running

PER_SECOND, SECONDS, SETTLING = 20, 20.0, 12.0


@pytest.mark.long
def test_three_nodes_read_the_bandwidth_that_is_set_wherever_the_pages_lie(tmp_path):
    logs = tmp_path / "large", tmp_path / "small"
    with (
        running(pages=540, hosts=1, seed=5, rate_median=200.0, log=logs[0]) as large,
        running(pages=120, hosts=10, seed=6, rate_median=200.0, log=logs[1]) as small,
        running_cluster(tmp_path, 0.0) as cluster,
    ):
        bounds = {"BANDWIDTH": f"{PER_SECOND}/s", "LEAST_CHANCE": "0", "MIN_INTERVAL": "0"}
        cluster.settings.update({f"XYRO_REFRESH__{name}": value for name, value in bounds.items()})
        for number in (1, 2, 3):
            cluster.start(number)
        cluster.balanced(5, 5, 6)
        cluster.submit(large.entry, small.entry)
        cluster.until(lambda: (s := cluster.get("/status")) and s["known"] > 200 and not s["states"]["unread"], "read")
        time.sleep(SETTLING)
        began = [ServerLog(log, behind=0.6) for log in logs]
        time.sleep(SECONDS)
        rates = [sum(log.reads().values()) / SECONDS for log in began]
        with cluster.remote() as remote:
            rows = [row for row in remote.lines("/export/pages") if row["state"] == "read" and row["interval_s"]]
        constants = defaultdict(list)
        for row in rows:
            if row["change_rate"] and row["importance"]:
                constants[row["host"]].append(row["interval_s"] * math.sqrt(row["importance"] * row["change_rate"]))
        found = {host: median(values) for host, values in constants.items() if len(values) >= 5}
        assert rates[0] + rates[1] == pytest.approx(PER_SECOND, rel=0.15)
        assert rates[0] > 0.5 * PER_SECOND
        assert len(found) > 3 and max(found.values()) < 2.0 * min(found.values())
