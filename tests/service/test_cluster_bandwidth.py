"""A bandwidth that is set is that of the whole crawl, wherever its pages lie, and intervals follow one K."""

import math
import time
from collections import defaultdict
from statistics import median

import pytest

from tests.service.cluster_rig import ServerLog, running_cluster
from tests.service.face import LOOPBACK, rows, said, started, until, xyro
from xyro.lab.child import running

PER_SECOND, SECONDS, SETTLING, WRITTEN, WINDOWS = 20, 20.0, 12.0, 1.2, 5
SETTINGS = {"BANDWIDTH": f"{PER_SECOND}/s", "LEAST_CHANCE": "0", "MIN_INTERVAL": "0"}


def rates_of(logs):
    """Reads a second that each of these servers tells, over a window from now on."""
    start, began = time.time(), [ServerLog(log) for log in logs]
    time.sleep(SECONDS + WRITTEN)
    found = []
    for log in began:
        read = [moment for moment, _, path in log.requests() if path != "/robots.txt"]
        found.append(sum(start <= moment < start + SECONDS for moment in read) / SECONDS)
    return found


def constants(rows):
    """The median K of each host that has some pages."""
    found = defaultdict(list)
    for row in rows:
        if row["state"] == "read" and row["interval_s"] and row["change_rate"] and row["importance"]:
            found[row["host"]].append(row["interval_s"] * math.sqrt(row["importance"] * row["change_rate"]))
    return [median(values) for values in found.values() if len(values) >= 5]


def judge(logs, pages):
    """The bandwidth is used, half of it at least by the host with four fifths of the pages; all hosts have one K.

    It is never exceeded. That a busy machine cannot use it for a while, or has not learned the rates, is waited for.
    """
    time.sleep(SETTLING)
    seen = []
    for _ in range(WINDOWS):
        rates, found = rates_of(logs), constants(pages())
        seen.append((rates, found))
        assert sum(rates) < 1.15 * PER_SECOND, seen
        is_used = sum(rates) > 0.85 * PER_SECOND and rates[0] > 0.5 * PER_SECOND
        if is_used and len(found) > 3 and max(found) < 2.0 * min(found):
            return
    pytest.fail(f"in no window: {seen}")


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
        judge(logs, lambda: rows("pages", data))


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
        with cluster.remote() as remote:
            judge(logs, lambda: list(remote.lines("/export/pages")))
