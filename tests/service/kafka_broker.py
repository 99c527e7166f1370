"""A broker that speaks Kafka's protocol on a free loopback port, for tests: librdkafka's own, in a process of its own.

It shares no code with the client that is tested (aiokafka), makes topics when they are asked for, and forgets them when
it ends.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from pathlib import Path


class KafkaBroker:
    """One broker; `address` is host:port."""

    def __init__(self, log: Path) -> None:
        with log.open("ab") as errors:
            self.child = subprocess.Popen(
                [sys.executable, "-m", "tests.service.kafka_broker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        assert self.child.stdout is not None
        self.address = self.child.stdout.readline().decode().strip()
        assert self.address, log.read_text()

    def stall(self) -> None:
        """Answer nothing, with every connection open, until `wake`."""
        self.child.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        self.child.send_signal(signal.SIGCONT)


@contextlib.contextmanager
def running_kafka(log: Path):
    broker = KafkaBroker(log)
    try:
        yield broker
    finally:
        broker.child.kill()
        broker.child.communicate()


def serve() -> None:
    """Print the address; serve until standard input ends."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": "127.0.0.1:1", "test.mock.num.brokers": 1})
    [broker] = producer.list_topics(timeout=10).brokers.values()
    print(f"{broker.host}:{broker.port}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    serve()
