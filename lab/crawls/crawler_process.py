"""`xyro serve` or `xyro crawl` as a process of its own, from the code of this one.

    with crawling("serve", data, config) as crawler:
        crawler.remote.get("/status"), crawler.rest(2.0)

It is asked to end (SIGTERM) when the block does, and killed where it does not within PATIENCE.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from xyro.lab.child import environment
from xyro.service.node.run_file import Remote
from xyro.wire.clock import SystemClock
from xyro.wire.errors import MachineError

PATIENCE = 60.0
"""seconds until it answers, and until it has ended"""


@dataclass(frozen=True, slots=True)
class CrawlerProcess:
    """One that answers."""

    process: subprocess.Popen[bytes]
    remote: Remote

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    def rest(self, seconds: float) -> None:
        """Wait for these seconds, but not longer than it lives."""
        _rest(self.process, seconds)

    def stop(self) -> float:
        """End it in order; return the seconds until it had ended."""
        clock = SystemClock()
        began = clock.monotonic()
        if not self.ended:
            self.process.send_signal(signal.SIGTERM)
        self.rest(PATIENCE)
        return clock.monotonic() - began


@contextlib.contextmanager
def crawling(
    command: str, data: Path, config: Path, *arguments: str, output: IO[bytes] | None = None
) -> Iterator[CrawlerProcess]:
    """Run it until the block ends. output: where it writes, by default where this process does. MachineError: it does
    not answer."""
    process = subprocess.Popen(  # noqa: S603  # our own interpreter, our own module
        [sys.executable, "-m", "xyro", command, "--data", str(data), "--config", str(config), *arguments],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
    )
    try:
        crawler = CrawlerProcess(process, _answering(data, process))
        yield crawler
        crawler.stop()
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def _answering(data: Path, process: subprocess.Popen[bytes]) -> Remote:
    clock = SystemClock()
    deadline = clock.monotonic() + PATIENCE
    while clock.monotonic() < deadline and process.poll() is None:
        if remote := Remote.find(data):
            return remote
        _rest(process, 0.1)
    raise MachineError(f"{' '.join(map(str, process.args))}: no answer within {PATIENCE:g} s")  # type: ignore[arg-type]


def _rest(process: subprocess.Popen[bytes], seconds: float) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
