"""What a cluster costs: CPU seconds of all processes and the broker a page, and what crosses the bus.

    python -m tests.service.cluster_costs [--pages 3000] [--rounds 3] [--url URL --log FILE]

The web is a computed one, or, with --url, one that a server shows already which writes its log to FILE, as the rig of
real sites does (time first, host second, path last, with tabs between them). Three crawls of it, in turn: one process
alone with 16 partitions, the same with a broker, four nodes. CPU is counted from the first URL until the server has
been asked for every page; starts, moves and looks are left out.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from tests.service.cluster_rig import Cluster, ServerLog, running_cluster
from tests.service.face import ENVIRONMENT, ROOT, XYRO, process
from xyro.lab.child import running

PARTITIONS = 16
TICKS = os.sysconf("SC_CLK_TCK")


def cpu(pids: Sequence[int]) -> float:
    """CPU seconds of processes so far, their ended children included."""
    fields = (Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids)
    return sum(sum(map(int, each[11:15])) for each in fields) / TICKS


def asked_for(log: ServerLog, pages: int) -> None:
    """Wait until the server was asked for so many pages."""
    while len(log.reads()) < pages:
        time.sleep(0.5)


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    options = ("--scope", "any", "--only-net", "127.0.0.0/8", "--delay", "0", "--partitions", str(PARTITIONS))
    data = folder / "alone"
    with (folder / "alone.log").open("wb") as log:
        child = subprocess.Popen([*XYRO, "serve", "--data", str(data), *options], cwd=ROOT, env=ENVIRONMENT, stderr=log)
    try:
        while not (data / "run").exists():
            time.sleep(0.1)
        yield child
    finally:
        child.kill()
        child.wait()


def alone(folder: Path, entry: str, log: Path, pages: int) -> dict[str, float]:
    """CPU of one process without a broker."""
    with _alone(folder) as child:
        time.sleep(2.0)
        seen, before, began = ServerLog(log), cpu([child.pid]), time.monotonic()
        process("submit", entry, "--data", folder / "alone")
        asked_for(seen, pages)
        return {"cpu": cpu([child.pid]) - before, "seconds": time.monotonic() - began}


def joined(folder: Path, entry: str, log: Path, pages: int, nodes: int) -> dict[str, float]:
    """CPU of nodes and their broker, and what the broker took."""
    with running_cluster(folder, delay=0.0) as cluster:
        for number in range(1, nodes + 1):
            cluster.start(number)
        cluster.balanced(*[PARTITIONS // nodes] * nodes)
        time.sleep(2.0)
        pids = [*(child.pid for child in cluster.children.values()), cluster.broker.child.pid]
        seen, before, bus, began = ServerLog(log), cpu(pids), _bus(cluster), time.monotonic()
        brokers = cpu(pids[-1:])
        cluster.submit(entry)
        asked_for(seen, pages)
        spent, seconds, after = cpu(pids) - before, time.monotonic() - began, _bus(cluster)
        of_broker = cpu(pids[-1:]) - brokers
        return {
            "cpu": spent,
            "seconds": seconds,
            "broker": of_broker,
            "messages": after[0] - bus[0],
            "bytes": after[1] - bus[1],
        }


def _bus(cluster: Cluster) -> tuple[int, int]:
    """(messages, bytes) that the broker took so far."""
    with urllib.request.urlopen(f"http://127.0.0.1:{cluster.broker.monitor}/varz") as answer:
        found = json.load(answer)
    return found["in_msgs"], found["in_bytes"]


@contextlib.contextmanager
def _web(log: Path, asked: argparse.Namespace) -> Iterator[tuple[str, Path]]:
    """The first URL of a web, and its server's log."""
    if asked.url is not None:
        yield asked.url, asked.log
        return
    with running(pages=asked.pages, hosts=asked.pages // 50, seed=5, rate_median=0.0, log=log) as web:
        yield web.entry, log


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="cluster_costs", description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--url", help="of a web that is served already, on 127.0.0.0/8")
    parser.add_argument("--log", type=Path, help="that its server writes")
    asked = parser.parse_args(arguments)
    if (asked.url is None) != (asked.log is None):
        parser.error("--url and --log go together")
    found: dict[str, list[dict[str, float]]] = {"alone": [], "1 node": [], "4 nodes": []}
    with tempfile.TemporaryDirectory(prefix="xyro-costs-") as name, _web(Path(name, "log"), asked) as (entry, log):
        seen = ServerLog(log)
        process("crawl", entry, "--scope", "any", "--only-net", "127.0.0.0/8", "--delay", "0", "--data",
                Path(name, "first"))  # fmt: skip
        time.sleep(1.5)
        pages = len(seen.reads())
        for number in range(asked.rounds):
            for kind, results in found.items():
                folder = Path(name, f"{kind.replace(' ', '-')}-{number}")
                folder.mkdir()
                if kind == "alone":
                    results.append(alone(folder, entry, log, pages))
                else:
                    results.append(joined(folder, entry, log, pages, int(kind[0])))
                shutil.rmtree(folder, ignore_errors=True)
                print(kind, {key: round(value, 2) for key, value in results[-1].items()}, flush=True)
    print(f"{pages} pages, medians of {asked.rounds} rounds; ratios of the same round")
    for kind, results in found.items():
        each = {key: median(result[key] for result in results) / pages for key in results[0] if key != "seconds"}
        ratio = [result["cpu"] / first["cpu"] for result, first in zip(results, found["alone"], strict=True)]
        figures = ", ".join(f"{1e3 * each[key]:.2f} ms {key}" for key in ("cpu", "broker") if key in each)
        bus = ", ".join(f"{each[key]:.2f} {key}" for key in ("messages", "bytes") if key in each)
        print(f"{kind:8} {figures}; {bus or 'no bus'} a page; {median(ratio):.2f} x alone, "
              f"{min(ratio):.2f} to {max(ratio):.2f}")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
