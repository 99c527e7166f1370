"""Delivers a notice to its subscriber: a POST of JSON through the guarded client, or a command with the JSON on its
input.

A POST goes where a person asked for it, so robots.txt, which speaks to crawlers that read, is not asked; one goes to a
host at a time (notice_outbox.py), and Retry-After is obeyed.

Commands come from the command line of the machine's owner only, are run without a shell, in a process group of their
own, for SECONDS at most; what they print is dropped. Their input is a file without a name: a pipe breaks when they do
not read it, which uvloop tells by a RuntimeError, if at all.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from xyro.wire.errors import TheirError

if TYPE_CHECKING:
    from xyro.fetcher import Posted

SECONDS = 60.0
_JSON = {"Content-Type": "application/json"}
Post = Callable[[str, bytes, Mapping[str, str]], Awaitable["Posted"]]


async def post(send: Post, url: str, notice: bytes) -> tuple[str, float]:
    """(empty if it was taken (2xx), else why not; seconds for which the host wants to be left alone)"""
    try:
        async with asyncio.timeout(SECONDS):
            status, again = await send(url, notice, _JSON)
    except TimeoutError:
        return "timeout", 0.0
    except TheirError as error:
        return error.kind, 0.0
    return ("", 0.0) if 200 <= status < 300 else (f"http-{status}", again)


async def run(command: Sequence[str], notice: bytes, seconds: float = SECONDS) -> str:
    """Empty if it ended with 0, else why not."""
    try:
        with tempfile.TemporaryFile() as standard_input:
            standard_input.write(notice)
            standard_input.seek(0)
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=standard_input,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
    except (OSError, ValueError) as error:
        return f"cannot be run: {getattr(error, 'strerror', None) or error}"
    try:
        async with asyncio.timeout(seconds):
            await process.wait()
    except TimeoutError:
        return "timeout"
    finally:
        await _end(process)
    return f"exit code {process.returncode}" if process.returncode else ""


async def _end(process: asyncio.subprocess.Process) -> None:
    """Nothing of its group is left running."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
