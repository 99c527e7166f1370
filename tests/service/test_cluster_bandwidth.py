"""A bandwidth that is set is that of the whole crawl, wherever its pages lie, and intervals follow one K."""

import math
import time
from collections import defaultdict
from statistics import median

import pytest

from tests.service.cluster_rig import ServerLog, running_cluster
from tests.service.face import LOOPBACK, rows, said, started, until, xyro
from xyro.lab.child import running

PER_SECOND, SECONDS, SETTLING = 20, 20.0, 12.0
SETTINGS = {"BANDWIDTH": f"{PER_SECOND}/s", "LEAST_CHANCE": "0", "MIN_INTERVAL": "0"}


def settled_rates(logs):
    """Reads a second that each of these servers tells."""
    time.sleep(SETTLING)
    began = [ServerLog(log, behind=0.6) for log in logs]
    time.sleep(SECONDS)
    return [sum(log.reads().values()) / SECONDS for log in began]


def judge(rates, rows):
    """The bandwidth is used, half of it at least by the host with four fifths of the pages; all hosts have one K."""
    constants = defaultdict(list)
    for row in rows:
        if row["state"] == "read" and row["interval_s"] and row["change_rate"] and row["importance"]:
            constants[row["host"]].append(row["interval_s"] * math.sqrt(row["importance"] * row["change_rate"]))
    found = {host: median(values) for host, values in constants.items() if len(values) >= 5}
    assert rates[0] + rates[1] == pytest.approx(PER_SECOND, rel=0.15)
    assert rates[0] > 0.5 * PER_SECOND
    assert len(found) > 3 and max(found.values()) < 2.0 * min(found.values())


@pytest.mark.long
def test_five_partitions_of_a_process_read_the_bandwidth_that_is_set_wherever_the_pages_lie(tmp_path):
    logs, data, settings = (tmp_path / "large", tmp_path / "small"), tmp_path / "data", tmp_path / "settings.toml"
    chosen = (f'bandwidth = "{PER_SECOND}/s"', "least_chance = 0", "min_interval = 0")
    settings.write_text("\n".join(("[refresh]", *chosen)))
    with (
        running(pages=540, hosts=1, seed=5, rate_median=200.0, log=logs[0]) as large,
        running(pages=120, hosts=10, seed=6, rate_median=200.0, log=logs[1]) as small,
        started("serve", "--config", settings, *LOOPBACK, "--partitions", "5", data=data),
    ):
        assert xyro("submit", large.entry, small.entry, "--data", data).returncode == 0
        until(lambda: (s := said("status", "--data", data)) and s["known"] > 200 and not s["states"]["unread"])
        judge(settled_rates(logs), rows("pages", data))


@pytest.mark.long
def test_three_nodes_read_the_bandwidth_that_is_set_wherever_the_pages_lie(tmp_path):
    logs = tmp_path / "large", tmp_path / "small"
    with (
        running(pages=540, hosts=1, seed=5, rate_median=200.0, log=logs[0]) as large,
        running(pages=120, hosts=10, seed=6, rate_median=200.0, log=logs[1]) as small,
        running_cluster(tmp_path, 0.0) as cluster,
    ):
        cluster.settings.update({f"XYRO_REFRESH__{name}": value for name, value in SETTINGS.items()})
        for number in (1, 2, 3):
            cluster.start(number)
        cluster.balanced(5, 5, 6)
        cluster.submit(large.entry, small.entry)
        cluster.until(lambda: (s := cluster.get("/status")) and s["known"] > 200 and not s["states"]["unread"], "read")
        rates = settled_rates(logs)
        with cluster.remote() as remote:
            judge(rates, list(remote.lines("/export/pages")))
