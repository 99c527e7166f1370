"""A crawl asks for the open files it may need, or says that it cannot have them. In processes of their own: a limit
that was lowered cannot be raised again."""

from __future__ import annotations

import resource
import subprocess
import sys

from xyro.service.node.open_files import PLENTY, idle_connections

SCRIPT = """
import resource, sys
from xyro.configs.load import load
from xyro.service.node.open_files import make_room
from xyro.wire.errors import InputError
soft, hard, concurrency = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
try:
    make_room(load(overrides={"fetch.concurrency": concurrency}), 1)
except InputError as error:
    print(error)
print(resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def said(soft: int, hard: int, concurrency: int) -> str:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(soft), str(hard), str(concurrency)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout


def test_the_limit_is_raised_as_far_as_it_may_be() -> None:
    assert said(256, 4_000, 256) == "(4000, 4000)\n"
    assert said(1_024, 1_024, 256) == "(1024, 1024)\n"


def test_idle_connections_leave_half_of_the_files_to_others() -> None:
    hard = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], PLENTY)
    assert idle_connections(10) == 40 and idle_connections(10, processes=4) == 10
    assert idle_connections(hard) == hard and idle_connections(hard // 4) == hard // 2


def test_connections_that_cannot_be_had_are_refused_with_a_sentence() -> None:
    out = said(1_024, 1_024, 512)
    assert "lower [fetch] concurrency, or raise the limit" in out and "may open 1024" in out
