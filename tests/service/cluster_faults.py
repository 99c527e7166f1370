"""Faults of a cluster, each begun when so many pages were read, judged by the server's log and one undisturbed process.

    python -m tests.service.cluster_faults [--fault NAME ...] [--moments 5] [--seconds 6]

A run is a fresh cluster of four nodes, each behind a relay of its own, that crawls a web of 12 hosts with XML documents
while URLs are submitted that no page links to; a fault hits one node, another one at each moment. Prints a row a run;
exit code 1 where one does not hold.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.service.cluster_rig import DELAY, Cluster, ServerLog, alone, running_cluster
from tests.service.relay import Relay
from xyro.lab.child import running

PAGES, HOSTS, NODES = 300, 12, 4
TOLERANCE = 0.01
"""seconds by which a server's moments may be closer than ours"""
OUT = 288
"""reads that the death of a node may cost (node.py: those under way and not yet on disk)"""
LOADS = 15.0
"""seconds in which the links of an XML document follow its read: no count of what is under way has them"""
MINTED = 65_536
FULL_DISK = 1 << 12
"""bytes that a file may have on a disk that is full"""


@dataclass(frozen=True)
class Fault:
    """What happens to a node, for so many seconds."""

    begin: Callable[[Cluster, int, float], None]
    deaths: int = 0
    """of processes that read: each may cost OUT reads"""
    brokers: int = 1


def _kill(cluster: Cluster, node: int, seconds: float) -> None:
    cluster.kill(node)
    assert cluster.until(lambda: cluster.get("/status"), "the others answer")["missing"]
    time.sleep(seconds / 4)
    cluster.start(node)


def _pause(cluster: Cluster, node: int, seconds: float) -> None:
    """SIGSTOP; the others say so while it lasts."""
    cluster.children[node].send_signal(signal.SIGSTOP)
    began = time.monotonic()
    assert cluster.until(lambda: cluster.get("/status"), "the others answer")["missing"]
    time.sleep(max(began + seconds - time.monotonic(), 0.0))
    cluster.children[node].send_signal(signal.SIGCONT)


def _twin(cluster: Cluster, node: int, seconds: float) -> None:
    """A node that stands still is taken for dead, and its directory started elsewhere; then it wakes up."""
    sleeper = cluster.children.pop(node)
    sleeper.send_signal(signal.SIGSTOP)
    time.sleep(0.2)
    shutil.copytree(cluster.data(node), cluster.data(node + NODES), ignore=shutil.ignore_patterns("run"))
    cluster.relays[node + NODES] = Relay(cluster.broker.url)
    cluster.start(node + NODES)
    time.sleep(seconds / 2)
    sleeper.send_signal(signal.SIGCONT)
    assert sleeper.wait(30), "the sleeper learns that another process runs as its node, and ends"
    assert "another process runs as node" in cluster.log(node).read_text()


def _slow(cluster: Cluster, node: int, seconds: float) -> None:
    """From now on its link takes 300 ms either way."""
    cluster.relays[node].delay = 0.3


def _stall(cluster: Cluster, node: int, seconds: float) -> None:
    cluster.relays[node].stall()
    time.sleep(seconds)
    cluster.relays[node].mend()


def _cut(cluster: Cluster, node: int, seconds: float) -> None:
    cluster.relays[node].cut()
    time.sleep(seconds)
    cluster.relays[node].mend()


def _flap(cluster: Cluster, node: int, seconds: float) -> None:
    """Its connection breaks again and again."""
    for _ in range(int(seconds)):
        cluster.relays[node].cut()
        time.sleep(0.2)
        cluster.relays[node].mend()
        time.sleep(0.8)


def _broker(cluster: Cluster, node: int, seconds: float) -> None:
    """All nodes lose the broker, and go on reading."""
    cluster.broker.kill()
    time.sleep(seconds)
    cluster.brokers[0].start()


def _one_of_three(cluster: Cluster, node: int, seconds: float) -> None:
    """One of three servers is lost for good."""
    cluster.brokers[node % len(cluster.brokers)].kill()


def _full(cluster: Cluster, node: int, seconds: float) -> None:
    """Its disk takes nothing more: it ends, and says so; started again when there is room, it goes on."""
    child = cluster.children.pop(node)
    resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (FULL_DISK, resource.RLIM_INFINITY))
    assert child.wait(60), "a full disk ends the node"
    time.sleep(seconds / 4)
    cluster.start(node)


def _rolling(cluster: Cluster, node: int, seconds: float) -> None:
    """Every node is stopped in order and started again, one after the other."""
    for each in sorted(cluster.children):
        cluster.stop(each)
        cluster.start(each)


def _loss(cluster: Cluster, node: int, seconds: float) -> None:
    """Nothing more: 5 % of all messages are lost, doubled and late, each, from the start."""


FAULTS = {
    "killed node": Fault(_kill, deaths=1),
    "paused node": Fault(_pause),
    "woken twin": Fault(_twin, deaths=1),
    "slow link": Fault(_slow),
    "stalled link": Fault(_stall),
    "cut link": Fault(_cut),
    "flapping link": Fault(_flap),
    "killed broker": Fault(_broker),
    "one of three brokers": Fault(_one_of_three, brokers=3),
    "full disk": Fault(_full, deaths=1),
    "rolling restart": Fault(_rolling),
    "lossy transport": Fault(_loss),
}


@dataclass(frozen=True)
class Rig:
    """A web, its server's log, and what one undisturbed process finds of it."""

    seeds: tuple[str, ...]
    pages: dict[str, tuple]
    links: set[tuple[str, str]]
    log: Path


@contextlib.contextmanager
def web_of_faults(folder: Path) -> Iterator[Rig]:
    log = folder / "log"
    with running(pages=PAGES, hosts=HOSTS, seed=5, rate_median=0.0, log=log) as web:
        seeds = (web.entry, *(f"{web.entry}unlinked-{number}" for number in range(4)))
        pages, links = alone(folder, *seeds)
        yield Rig(seeds, pages, links, log)


@dataclass(frozen=True)
class Verdict:
    """What was seen of a run from outside."""

    cash: bool
    pages: bool
    links: bool
    repeated: int
    """requests for a page that was asked for before"""
    allowed: int
    gap: float
    """seconds, the least between two requests to one host"""
    taken_up: int
    seconds: float

    @property
    def holds(self) -> bool:
        polite = self.gap >= DELAY - TOLERANCE and not self.taken_up
        return self.cash and self.pages and self.links and self.repeated <= self.allowed and polite


def judged(folder: Path, rig: Rig, faults: Sequence[tuple[str, int]], seconds: float) -> Verdict:
    """Run a cluster through faults, each (name, reads after which it begins)."""
    began, chosen = time.monotonic(), [FAULTS[name] for name, _ in faults]
    lossy = 0.05 if any(name == "lossy transport" for name, _ in faults) else 0.0
    folder.mkdir()
    with running_cluster(folder, brokers=max(fault.brokers for fault in chosen)) as cluster:
        log = ServerLog(rig.log)
        for number in range(1, NODES + 1):
            cluster.relays[number] = Relay(cluster.brokers[number % len(cluster.brokers)].url)
            cluster.start(number, share=lossy, seed=number)
        cluster.balanced(*[16 // NODES] * NODES)
        cluster.submit(rig.seeds[0])
        later = iter(rig.seeds[1:])
        for (_, moment), fault in zip(faults, chosen, strict=True):
            cluster.until(lambda moment=moment: sum(log.reads().values()) >= moment, f"{moment} reads")
            fault.begin(cluster, 1 + moment % NODES, seconds)
            if url := next(later, ""):
                cluster.submit(url)
        for url in later:
            cluster.submit(url)
        audit = cluster.complete(len(rig.pages))
        cash = audit["ok"] and audit["cash_total"] == MINTED * len(rig.pages)
        pages, links = cluster.pages() == rig.pages, cluster.links() == rig.links
        end = time.monotonic() + LOADS
        while not links and time.monotonic() < end:
            time.sleep(0.5)
            links = cluster.links() == rig.links
        if not links:
            sys.stderr.write(f"{list(cluster.links() ^ rig.links)[:5]} {len(cluster.links())} {len(rig.links)}\n")
    time.sleep(1.1)  # the log's last lines
    reads = log.reads()
    repeated = sum((reads - Counter(dict.fromkeys(reads, 1))).values())
    allowed = HOSTS + sum(OUT * fault.deaths for fault in chosen)
    spent = time.monotonic() - began
    return Verdict(cash, pages, links, repeated, allowed, log.least_gap(), log.taken_up_again(), spent)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="cluster_faults", description=__doc__.partition("\n")[0])
    parser.add_argument("--fault", action="append", choices=FAULTS, metavar="NAME", help="one of them; repeatable")
    parser.add_argument("--moments", type=int, default=5, help="runs of each fault, evenly over the crawl")
    parser.add_argument("--seconds", type=float, default=6.0, help="that a fault lasts")
    asked = parser.parse_args(arguments)
    moments = [5 + number * (PAGES * 3 // 4) // max(asked.moments - 1, 1) for number in range(asked.moments)]
    failed = 0
    print(f"{'fault':21} {'reads':>5} holds  cash pages links repeated gap/ms reopened seconds")
    with tempfile.TemporaryDirectory(prefix="xyro-faults-") as folder, web_of_faults(Path(folder)) as rig:
        for name in asked.fault or FAULTS:
            for moment in moments:
                place = Path(folder, f"{name.replace(' ', '-')}-{moment}")
                try:
                    found = judged(place, rig, [(name, moment)], asked.seconds)
                except AssertionError as error:
                    print(f"{name:21} {moment:5} NO     {str(error)[-3000:]}", flush=True)
                    failed += 1
                    continue
                marks = "  ".join(f"{mark!s:5}" for mark in (found.holds, found.cash, found.pages, found.links))
                figures = f"{found.repeated:3}/{found.allowed:<4} {found.gap * 1e3:6.0f} {found.taken_up:8} "
                print(f"{name:21} {moment:5} {marks} {figures}{found.seconds:7.1f}", flush=True)
                failed += not found.holds
                if found.holds:
                    shutil.rmtree(place)
        print(f"{failed} do not hold; least gap allowed {(DELAY - TOLERANCE) * 1e3:.0f} ms", flush=True)
        if failed and "KEEP_FAULTS" in os.environ:
            shutil.copytree(folder, os.environ["KEEP_FAULTS"], dirs_exist_ok=True)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
