"""The judge's process (judge_child.py): started when first asked, ended by the kernel when it takes too much, and
started again at once. It ends by itself with the process that asks.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SECONDS = 0.35
"""CPU for one document, all its grammars together; a new process adds 0.06 s where that was exceeded. To compile, of
DocBook 5: RELAX NG 0.025 s, XML Schema 0.09 s, of DocBook 4: DTD 0.06 s; a document of 20 kB takes 0.001 to 0.01 s"""
_PATIENCE = 10.0
"""seconds by any clock until a process that says nothing is ended"""
_ROOT = str(Path(__file__).resolve().parents[1])


class Died(Exception):
    """The process ended instead of answering; the text says of what."""


class JudgeProcess:
    """Ask from one thread at a time."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        """CPU of an answer, where `ask` is not told less"""
        self._process: subprocess.Popen[bytes] | None = None
        self._end: weakref.finalize[..., Any] | None = None
        self.deaths = 0
        self.spent = 0.0
        """seconds of CPU that all answers took"""

    def ask(self, request: dict[str, Any], bodies: Sequence[bytes], seconds: float | None = None) -> dict[str, Any]:
        """The answer, within `seconds` of CPU. Died: there is none."""
        process, allowed = self._process or self._start(), self.seconds if seconds is None else seconds
        message = {**request, "seconds": allowed, "sizes": [len(body) for body in bodies]}
        reply = self._exchange(process, [json.dumps(message).encode() + b"\n", *bodies])
        if not reply.endswith(b"\n"):
            self.spent += allowed
            raise Died(self._cause())
        answer: dict[str, Any] = json.loads(reply)
        self.spent += answer.pop("cpu")
        return answer

    def close(self) -> None:
        """End it; another question starts it again."""
        self._process = None
        if self._end is not None:
            self._end()

    def _start(self) -> subprocess.Popen[bytes]:
        paths = [_ROOT, *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {name: os.environ[name] for name in ("PATH", "HOME", "VIRTUAL_ENV") if name in os.environ}
        self._process = process = subprocess.Popen(  # nothing of it comes from outside
            [sys.executable, "-P", "-m", "xyro.loader.judge_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**environment, "PYTHONPATH": os.pathsep.join(paths)},
        )
        self._end = weakref.finalize(self, _ended, process)
        return process

    def _exchange(self, process: subprocess.Popen[bytes], sent: Sequence[bytes]) -> bytes:
        """Send a request and return the reply, one line; a line cut short says that the process is gone."""
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(b"".join(sent))
            process.stdin.flush()
        except BrokenPipeError:
            return b""
        if not select.select([process.stdout], [], [], _PATIENCE)[0]:
            process.kill()
        return process.stdout.readline()

    def _cause(self) -> str:
        """Say what the process died of."""
        assert self._process is not None and self._end is not None
        process, self._process = self._process, None
        self.deaths += 1
        try:
            code = process.wait(1.0)
        except subprocess.TimeoutExpired:
            code = 0
        self._end()
        self._start()  # it imports lxml while we go on: the next question need not wait for that
        if code == -signal.SIGPROF:
            return f"takes more than {self.seconds:g} s of CPU"
        return (
            "takes too much memory, or too deep a recursion"
            if code < 0
            else f"the judge's process failed (code {code})"
        )


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()
