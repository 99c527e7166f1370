"""Child processes, each a module of ours in a fresh interpreter: readers (readers.py), and the plug-ins of a process
that reads (plug_in_process.py).

A child is started by exec, so that an event loop and threads do it no harm, and is tied to this process by a socket: it
ends when the other end closes, whatever this process died of.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOM: Final = 2 << 30
"""bytes of memory beside what a child takes at rest"""
_ROOT = str(Path(__file__).resolve().parents[1])


def start_child(module: str, *descriptors: int) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start `module`, whose arguments are the descriptors that it inherits: its end of a socket pair, then these. (the
    process, our end)"""
    ours, theirs = socket.socketpair()
    with theirs:
        inherited = (theirs.fileno(), *descriptors)
        paths = [_ROOT, *filter(None, [os.environ.get("PYTHONPATH")])]
        process = subprocess.Popen(  # noqa: S603  nothing of it comes from outside
            [sys.executable, "-P", "-m", module, *map(str, inherited)],
            stdin=subprocess.DEVNULL,
            pass_fds=inherited,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )
    return process, ours


def end_child(process: subprocess.Popen[bytes]) -> int:
    """Kill it, unless it has ended, with all that it started if it leads a group of its own; return its exit code."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
    return process.wait()


# In the child


def ignore_signals() -> None:
    """Ignore signals that are meant for the parent, which ends its children itself."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def confine() -> None:
    """From here on: no more memory than ROOM, nor than the parent may have, and no core file."""
    at_rest = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    ceiling = resource.getrlimit(resource.RLIMIT_AS)[1]
    limit = at_rest + ROOM if ceiling == resource.RLIM_INFINITY else min(at_rest + ROOM, ceiling)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
