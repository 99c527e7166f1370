"""The command as a person runs it: real processes, small webs on loopback."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from xyro.wire.clock import SystemClock

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("XYRO_")},
    "PYTHONPATH": str(ROOT),
    "TERM": "dumb",
}
KILLS = int(os.environ.get("XYRO_TEST_KILLS", "8"))
"""SIGKILLs of each long test that kills again and again; `XYRO_TEST_KILLS=25 make test-long` is their long form"""
XYRO = [sys.executable, "-m", "xyro"]
LOOPBACK = ("--only-net", "127.0.0.0/8", "--delay", "0", "--scope", "any")


def process(*arguments, cwd=ROOT, given="", **environment):
    """Run `xyro ARGUMENTS` to its end in a process of its own; `given`: its standard input."""
    return subprocess.run(
        [*XYRO, *map(str, arguments)],
        cwd=cwd,
        env={**ENVIRONMENT, **environment},
        input=given,
        capture_output=True,
        text=True,
        timeout=60,
    )


def xyro(*arguments, cwd=ROOT, given="", **environment):
    """The same in this process, which saves half a second: for whatever does not crawl."""
    from xyro.service.cli.main import main

    words = [str(word) for word in arguments]
    standard_input = io.TextIOWrapper(io.BytesIO(given.encode()))
    with (
        mock.patch.dict(os.environ, {**ENVIRONMENT, **environment}, clear=True),
        mock.patch.object(sys, "stdin", standard_input),
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(io.StringIO()) as err,
    ):
        try:
            code = main(words)
        except SystemExit as end:
            code = end.code
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def said(*arguments, **options):
    """The one JSON value that `xyro ARGUMENTS --json` prints."""
    done = (process if arguments[0] == "crawl" else xyro)(*arguments, "--json", **options)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def rows(table, data):
    """The rows of an export, but for how stale their pages are: that grows with time."""
    done = xyro("export", table, "--data", data)
    assert done.returncode == 0, done.stderr
    return [
        {key: value for key, value in json.loads(line).items() if key != "stale"} for line in done.stdout.splitlines()
    ]


@contextmanager
def started(*arguments, data, environment=(), **popen) -> Iterator[subprocess.Popen[str]]:
    """`xyro ARGUMENTS --data DATA` once it can be asked; killed at the end if it still runs."""
    popen.setdefault("stdout", subprocess.PIPE)
    popen.setdefault("stderr", subprocess.PIPE)
    stale = data / "run"
    stale.unlink(missing_ok=True)
    env = {**ENVIRONMENT, **dict(environment)}
    process = subprocess.Popen(
        [*XYRO, *map(str, arguments), "--data", str(data)], cwd=ROOT, env=env, text=True, **popen
    )
    try:
        until(lambda: stale.exists() or process.poll() is not None)
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def until(true, seconds=60.0):
    """Wait for it; an error after `seconds`, which a slow machine never needs."""
    clock = SystemClock()
    deadline = clock.monotonic() + seconds
    while not (found := true()):
        assert clock.monotonic() < deadline, "it never came to be"
        subprocess.run(["sleep", "0.02"], check=True)
    return found
