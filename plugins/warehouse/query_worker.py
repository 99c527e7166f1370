"""Starts a process of its own for strangers' documents and people's expressions (query_child.py runs there).

The process is bounded in CPU and memory, dies in the middle of whatever exceeds that, and is started again for the next
document.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from xyro.wire.errors import InputError, MachineError

_ROOT = str(Path(__file__).resolve().parents[2])
MEMORY = 1 << 30
"""bytes of address space; the interpreter with lxml takes some 100 MB of it"""


class QueryWorker:
    """Use it as a context; `ask` as often as wanted. `seconds`: CPU that one answer may take; `memory`: bytes."""

    def __init__(self, job: dict[str, Any], seconds: float, memory: int = MEMORY) -> None:
        self._job = {**job, "seconds": seconds, "memory": memory}
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None
        self.died = 0
        """answers that took more than they may"""

    def __enter__(self) -> QueryWorker:
        self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def ask(self, bodies: list[bytes], **request: Any) -> dict[str, Any]:
        """The answer; {"error": why} where there is none."""
        if self._process is None:
            self._start()
        answer = self._exchange({**request, "sizes": [len(body) for body in bodies]}, bodies)
        if answer is None:
            self.died += 1
            return {"error": self._cause()}
        return answer

    def _start(self) -> None:
        """InputError: the job itself is wrong (an XPath that is none)."""
        paths = [_ROOT, *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "xyro.plugins.warehouse.query_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )
        answer = self._exchange(self._job, [])
        if answer is None:
            raise InputError(f"XPATH {self._job.get('xpath', '')}: {self._cause()}")
        if "error" in answer:
            self._end()
            raise InputError(f"XPATH {self._job.get('xpath', '')}: {answer['error']}")

    def _exchange(self, request: dict[str, Any], bodies: list[bytes]) -> dict[str, Any] | None:
        """None: the process is gone."""
        assert self._process is not None and self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            for body in bodies:
                self._process.stdin.write(body)
            self._process.stdin.flush()
        except BrokenPipeError:
            return None
        line = self._process.stdout.readline()
        if not line.endswith(b"\n"):
            return None
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _cause(self) -> str:
        """Say what the process died of, once it has ended."""
        process, self._process = self._process, None
        assert process is not None
        process.communicate()
        code = process.returncode
        if code == -signal.SIGPROF:
            return f"takes more than {self._seconds:g} s of CPU"
        if code < 0:
            return f"ended by signal {-code}: too much memory, or too deep a recursion"
        raise MachineError(f"the process that reads documents failed (code {code}): look at the machine's memory")

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()
