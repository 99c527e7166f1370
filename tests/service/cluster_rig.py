"""A cluster of real processes over a real broker, a web that they crawl, and what can be seen of it from outside."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

from tests.service.broker import Broker, running_brokers
from tests.service.face import ENVIRONMENT, ROOT, XYRO, process, rows
from tests.service.relay import Relay
from xyro.service.cluster.cluster_remote import ClusterRemote
from xyro.wire.errors import MachineError, XyroError

PATIENCE = 240.0
DELAY = 0.15


class Cluster:
    """Nodes by number, each a process with its own directory; number is ours, the cluster gives its own."""

    def __init__(self, folder: Path, brokers: list[Broker], delay: float = DELAY) -> None:
        self.folder = folder
        self.brokers = brokers
        self.delay = delay
        self.children: dict[int, subprocess.Popen] = {}
        self.settings: dict[str, str] = {}
        """of all nodes, as variables of the environment"""
        self.places: dict[int, Path] = {}
        """directories of nodes that are not in the folder"""
        self.relays: dict[int, Relay] = {}
        """nodes that are to join through one"""

    @property
    def broker(self) -> Broker:
        """One that runs, if any does."""
        return next((each for each in self.brokers if each.child is not None), self.brokers[0])

    def data(self, number: int) -> Path:
        return self.places.get(number, self.folder / f"n{number}")

    def start(self, number: int, share: float = 0.0, seed: int = 0, deadly: str = "-") -> None:
        """Start a node, and wait until it answers."""
        (self.data(number) / "run").unlink(missing_ok=True)
        relay = self.relays.get(number)
        url = self.brokers[number % len(self.brokers)].url if relay is None else relay.url
        arguments = [url, self.data(number), self.delay, share, seed, deadly]
        with self.log(number).open("ab") as log:
            self.children[number] = subprocess.Popen(
                [sys.executable, "-m", "tests.service.cluster_node", *map(str, arguments)],
                cwd=ROOT,
                env={**ENVIRONMENT, **self.settings},
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
        child = self.children[number]
        self.until(lambda: (self.data(number) / "run").exists() or child.poll() is not None, f"node {number} starts")
        assert child.poll() is None or deadly != "-", self.log(number).read_text()[-2000:]

    def log(self, number: int) -> Path:
        return self.folder / f"n{number}.log"

    def kill(self, number: int) -> None:
        child = self.children.pop(number)
        child.kill()
        child.wait()

    def stop(self, number: int) -> str:
        """In order; the last lines it wrote."""
        child = self.children.pop(number)
        child.terminate()
        assert child.wait(60) == 0, self.log(number).read_text()[-3000:]
        return self.log(number).read_text()

    def close(self) -> None:
        for number in list(self.children):
            self.kill(number)
        for relay in self.relays.values():
            relay.close()

    def remote(self) -> ClusterRemote:
        return ClusterRemote(self.broker.url)

    def until(self, true, name: str, seconds: float = PATIENCE):
        end = time.monotonic() + seconds
        while not (found := true()):
            logs = {n: self.log(n).read_text()[-1500:] for n in self.children if self.log(n).exists()}
            assert time.monotonic() < end, f"it never came to be: {name}\n" + "\n".join(logs.values())
            time.sleep(0.1)
        return found

    def get(self, path: str, **query):
        """What the cluster answers; None while it cannot."""
        try:
            with self.remote() as remote:
                return remote.get(path, **query)
        except XyroError:
            return None

    def submit(self, *urls: str) -> dict:
        """Hand URLs over, again and again until there is a node that takes them."""
        return self.until(lambda: self._submitted(urls), f"a node that takes {urls}")

    def _submitted(self, urls: tuple[str, ...]) -> dict | None:
        try:
            with self.remote() as remote:
                answer = remote.post("/submit", {"urls": list(urls)})
                return None if answer.get("absent") else answer
        except MachineError:
            return None

    def counts(self) -> list[int]:
        """Partitions of each member, fewest first; moves to come count as not made."""
        with self.remote() as remote:
            return sorted(remote.placement.counts().values())

    def balanced(self, *counts: int) -> None:
        self.until(lambda: self.counts() == sorted(counts), f"partitions {counts}")

    def complete(self, pages: int = 0) -> dict:
        """Wait until nothing is unread, leased or in flight, and no document waits for its parts."""

        def ended():
            status = self.get("/status")
            if not status or status.get("missing") or status["known"] < max(2, pages):
                return None
            if any(status[name] for name in ("leased", "in_flight", "waiting_loads")):
                return None
            if status["states"]["unread"] or any(status["queue"].values()):
                return None
            audit = self.get("/audit")
            return audit if audit and not audit["in_flight"] and audit["pages"] == status["known"] else None

        return self.until(ended, "all is read")

    def pages(self) -> dict[str, tuple]:
        with self.remote() as remote:
            return {row["url"]: (row["state"], row["kind"], row["signature"]) for row in remote.lines("/export/pages")}

    def importances(self) -> dict[str, float]:
        with self.remote() as remote:
            return {row["url"]: row["importance"] for row in remote.lines("/export/pages")}

    def links(self) -> set[tuple[str, str]]:
        with self.remote() as remote:
            return {(row["source_url"], row["target_url"]) for row in remote.lines("/export/links")}


@contextlib.contextmanager
def running_cluster(folder: Path, delay: float = DELAY, brokers: int = 1):
    with running_brokers(folder / "js", brokers) as running:
        cluster = Cluster(folder, running, delay)
        try:
            yield cluster
        finally:
            cluster.close()


def alone(folder: Path, *seeds: str, partitions: int = 16) -> tuple[dict[str, tuple], set[tuple[str, str]]]:
    """Pages and links that one process finds of the same web."""
    data = folder / "alone"
    options = ("--scope", "any", "--only-net", "127.0.0.0/8", "--delay", "0")
    done = process("crawl", *seeds, *options, "--data", data, "--partitions", str(partitions))
    assert done.returncode == 0, done.stderr
    pages = {row["url"]: (row["state"], row["kind"], row["signature"]) for row in rows("pages", data)}
    return pages, {(row["source_url"], row["target_url"]) for row in rows("links", data)}


class ServerLog:
    """The server's own account of the requests from the moment at which it is opened. Those of before do not count,
    although the server may write them later: a crawl without delays left its own there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.opened = time.time()
        self.begin = path.stat().st_size if path.exists() else 0

    def _lines(self) -> list[list[str]]:
        with self.path.open("rb") as file:
            file.seek(self.begin)
            lines = [line.decode().rstrip("\n").split("\t") for line in file if line.endswith(b"\n")]
        return sorted((line for line in lines if float(line[0]) >= self.opened), key=lambda line: float(line[0]))

    def requests(self) -> list[tuple[float, str, str]]:
        """(moment, host, path), in order."""
        return [(float(line[0]), line[1], line[-1]) for line in self._lines()]

    def taken_up_again(self) -> int:
        """Requests on a connection to a host that was left for another one: two were open at once."""
        left, latest, found = set(), {}, 0
        for line in self._lines():
            host, connection = line[1], line[6]
            if latest.get(host, connection) != connection:
                left.add((host, latest[host]))
            found += (host, connection) in left
            latest[host] = connection
        return found

    def reads(self) -> Counter[tuple[str, str]]:
        """Requests by host and path, robots.txt left out."""
        return Counter((host, path) for _, host, path in self.requests() if path != "/robots.txt")

    def least_gap(self) -> float:
        """Seconds between two requests to one host, the fewest."""
        moments = defaultdict(list)
        for moment, host, _ in self.requests():
            moments[host].append(moment)
        return min(b - a for each in moments.values() for a, b in pairwise(each))


def stood_still(log: Path) -> list[float]:
    """Seconds for which each partition that moved stood still, as its node logged."""
    return [float(seconds) for seconds in re.findall(r"it stood still for ([\d.]+) s", log.read_text())]


__all__ = ["XYRO", "Cluster", "ServerLog", "alone", "running_cluster", "stood_still"]
