"""Runs a command of the machine's owner with some bytes on its input: notices and changes that are told to a program.

It is run without a shell, in a process group of its own, for SECONDS at most; what it prints is dropped. Its input is a
file without a name: a pipe breaks when it is not read, which uvloop tells by a RuntimeError, if at all.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
from collections.abc import Sequence

SECONDS = 60.0
"""that a command may take"""


async def feed(command: Sequence[str], data: bytes, seconds: float = SECONDS) -> str:
    """Empty if it ended with 0, else why not."""
    try:
        with tempfile.TemporaryFile() as standard_input:
            standard_input.write(data)
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
