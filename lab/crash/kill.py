"""The victims and their killer: processes of the real command that are ended at a chosen moment.

What comes in: the entry of a computed web, options, a Moment. What goes out: a data directory that was left as it was
at that moment, and what `audit` and `export` say of it. Every life says its number in its User-Agent (`--contact`).
"""

from __future__ import annotations

import enum
import json
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from xyro.lab.child import environment
from xyro.lab.crash.check import contact, life
from xyro.wire.clock import SystemClock
from xyro.wire.errors import MachineError

PATIENCE = 120.0
"""seconds until a process must have got where it is to be killed; an undisturbed crawl may take ten times that"""
LOOK = 0.002
"""seconds between two checks whether it is there"""
LEAST_SNAPSHOT = 65_536
"""bytes of journal after which a snapshot is written: the least that the settings allow"""
RECOVERY = 0.1
"""seconds after a store was opened in which recovery goes on"""


File = tuple[int, int]
"""inode and time of its last change: another file under the same name is another File"""


class KillMoment(enum.Enum):
    """The activity of a process at the moment when it is killed."""

    WORK = "at work"
    RECOVERY = "recovering"
    SNAPSHOT = "writing a snapshot"
    INTERRUPT = "interrupted"
    """not killed: Ctrl-C, after which nothing at all may be lost"""


class KilledCrawl:
    """One data directory and the command that works on it, one process after the other."""

    def __init__(self, name: str, directory: Path, entry: str, options: Sequence[str]) -> None:
        self.name = name
        self.data = directory / name
        self.entry = entry
        self.options = options
        self.disk = 0.0
        """seconds that each write takes longer in a process that is to be killed"""
        self.settings: dict[str, str] = {}
        """in the environment"""
        self.lives = 0
        self._begun = False
        self._log = directory / f"{name}.log"

    def start(self, snapshot_bytes: int | None = None, disk: float = 0.0) -> subprocess.Popen[bytes]:
        """Start a new process, which resumes the crawl if it has pages. disk: seconds each write takes longer."""
        self.lives += 1
        if not self._begun and self.data.exists():
            self.audit()
        more = dict(self.settings)
        if snapshot_bytes is not None:
            more["XYRO_STORE__SNAPSHOT_BYTES"] = str(snapshot_bytes)
        named = ("--contact", contact(life(self.name, self.lives)))
        with self._log.open("ab") as log:
            return subprocess.Popen(  # noqa: S603  # our own interpreter, our own module
                [
                    *(_slowed(disk) if disk else _COMMAND),
                    "crawl",
                    *([] if self._begun else [self.entry]),
                    "--data",
                    self.data,
                    *named,
                    *self.options,
                ],
                stdout=log,
                stderr=log,
                env=_environment() | more,
            )

    def finish(self, child: subprocess.Popen[bytes]) -> None:
        """Let the crawl run to its end. MachineError: it failed."""
        if child.wait(10 * PATIENCE):
            tail = self._log.read_text(errors="replace")[-2000:]
            raise MachineError(f"{self.name}, life {self.lives}: exit code {child.returncode}: {tail}")

    def audit(self) -> dict[str, Any]:
        """Return the report of `audit --json`."""
        report: dict[str, Any] = json.loads(self._ask("audit", "--json"))
        self._begun = report["pages"] > 0
        return report

    def pages(self) -> list[dict[str, Any]]:
        """Return the rows of `export pages`."""
        return [json.loads(line) for line in self._ask("export", "pages").splitlines()]

    def documents(self) -> list[dict[str, Any]]:
        """Return the rows of `export documents`."""
        return [json.loads(line) for line in self._ask("export", "documents").splitlines()]

    def waiting(self) -> int:
        """Return the number of loads that wait for parts."""
        count: int = json.loads(self._ask("status", "--json"))["waiting_loads"]
        return count

    def _ask(self, *words: str) -> str:
        command = [*_COMMAND, *words, "--data", str(self.data)]
        asked = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, env=_environment(), timeout=PATIENCE, check=False
        )
        if asked.returncode not in (0, 1) or (asked.returncode and not asked.stdout):
            raise MachineError(f"{self.name}: {' '.join(words)}: exit code {asked.returncode}: {asked.stderr}")
        return asked.stdout


_COMMAND = (sys.executable, "-m", "xyro")


def _slowed(seconds: float) -> tuple[str, ...]:
    return (sys.executable, "-m", "xyro.lab.crash.disk", str(seconds))


def _environment() -> dict[str, str]:
    return {**environment(), "XYRO_LOG__LEVEL": "warning"}


class Killer:
    """Ends processes of one crawl at the moments asked for."""

    def __init__(self, crawl: KilledCrawl, window: float, seed: int) -> None:
        self.crawl = crawl
        self.window = window
        self.chance = random.Random(seed)
        self.clock = SystemClock()
        self.torn = 0
        """kills that left half a snapshot behind"""

    def end(self, moment: KillMoment) -> bool:
        """Start a process and end it at `moment`; False if the crawl was over before."""
        often = moment is KillMoment.SNAPSHOT or self.chance.random() < 0.5
        child = self.crawl.start(LEAST_SNAPSHOT if often else None, self.crawl.disk)
        opened, halves = self._opened(), self._halves()  # as they were: Python itself needs longer to start than this
        try:
            there = self._reach(child, moment, opened, halves)
            if there and moment is KillMoment.INTERRUPT:
                child.send_signal(signal.SIGINT)
            if not there or moment is KillMoment.INTERRUPT:
                self.crawl.finish(child)
        finally:
            child.kill()
            child.wait()
        self.torn += bool(self._halves() - halves)
        return there

    def _reach(self, child: subprocess.Popen[bytes], moment: KillMoment, opened: set[File], halves: set[File]) -> bool:
        """Wait for the moment; False if the process ended before."""
        match moment:
            case KillMoment.RECOVERY:
                there = self._wait(child, lambda: self._opened() != opened)
                return there and self._pass(child, self.chance.uniform(0.0, RECOVERY))
            case KillMoment.SNAPSHOT:
                return self._wait(child, lambda: bool(self._halves() - halves))
        there = self._wait(child, lambda: self._listens(child.pid))
        return there and self._pass(child, self.chance.uniform(0.0, self.window))

    def _wait(self, child: subprocess.Popen[bytes], there: Callable[[], bool]) -> bool:
        """Wait until the process is there; False if it ended before."""
        deadline = self.clock.monotonic() + PATIENCE
        while not there():
            if not self._pass(child, LOOK):
                return False
            if self.clock.monotonic() > deadline:
                raise MachineError(f"life {self.crawl.lives} did not get there within {PATIENCE:.0f} s")
        return True

    def _pass(self, child: subprocess.Popen[bytes], seconds: float) -> bool:
        """Let seconds pass; False if the process ended."""
        try:
            child.wait(seconds)
        except subprocess.TimeoutExpired:
            return True
        return False

    def _listens(self, pid: int) -> bool:
        try:
            return bool(json.loads((self.crawl.data / "run").read_text())["pid"] == pid)
        except (OSError, ValueError):
            return False

    def _opened(self) -> set[File]:
        """Return the stores' LOG files: opening a store changes them, because LevelDB begins another LOG."""
        return _files(self.crawl.data, "p*/store/LOG")

    def _halves(self) -> set[File]:
        """Return unfinished snapshots: being written now, or cut short by a kill."""
        return _files(self.crawl.data, "p*/snapshot-*.tmp")


def _files(directory: Path, pattern: str) -> set[File]:
    found = set()
    for path in directory.glob(pattern):
        with suppress(FileNotFoundError):  # it was renamed meanwhile
            stat = path.stat()
            found.add((stat.st_ino, stat.st_ctime_ns))
    return found
