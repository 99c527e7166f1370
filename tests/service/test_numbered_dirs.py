"""`--data DIR/node-*`: processes that are alike take a directory each, and find their own again."""

import contextlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.service.face import ENVIRONMENT, LOOPBACK, XYRO, until, xyro
from xyro.service.node.numbered_dirs import claim_directory, is_numbered, running_directory
from xyro.wire.errors import InputError

CLAIM = (
    "import sys; from pathlib import Path; from xyro.service.node.numbered_dirs import claim_directory;"
    "print(claim_directory(Path(sys.argv[1])).name, flush=True); sys.stdin.read()"
)


@contextlib.contextmanager
def claims(pattern, count):
    """Processes that each have taken a directory, all at once; {name: process}."""
    running = [
        subprocess.Popen([sys.executable, "-c", CLAIM, str(pattern)], env=ENVIRONMENT, text=True,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(count)
    ]  # fmt: skip
    try:
        with ThreadPoolExecutor(count) as pool:
            names = [line.strip() for line in pool.map(lambda child: child.stdout.readline(), running)]
        assert len(set(names)) == count
        yield dict(zip(names, running, strict=True))
    finally:
        for child in running:
            child.kill()
            child.communicate()


@contextlib.contextmanager
def serving(pattern):
    """`xyro serve` on a directory of the pattern; ended in order."""
    command = [*XYRO, "serve", *LOOPBACK, "--data", str(pattern)]
    process = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
        process.terminate()
        assert process.wait(timeout=30) == 0
    finally:
        process.kill()


def test_processes_that_start_together_take_one_each_and_a_dead_one_s_is_taken_up(tmp_path):
    pattern = tmp_path / "volume" / "node-*"
    with claims(pattern, 3) as first:
        assert sorted(first) == ["node-1", "node-2", "node-3"]
        first["node-2"].kill()
        first["node-2"].wait()
        with claims(pattern, 2) as second:
            assert sorted(second) == ["node-2", "node-4"]


def test_a_process_keeps_what_it_took(tmp_path):
    assert claim_directory(tmp_path / "a-*") == claim_directory(tmp_path / "a-*") == tmp_path / "a-1"
    assert [is_numbered(Path(text)) for text in ("a-*", "a", "*/a")] == [True, False, False]


def test_a_command_finds_the_one_whose_process_runs_here(tmp_path):
    pattern = tmp_path / "node-*"
    with pytest.raises(InputError, match="no process here"):
        running_directory(pattern)
    with claims(pattern, 2), serving(pattern):  # so that the crawl's is node-3
        until((tmp_path / "node-3" / "run").exists)
        assert running_directory(pattern) == tmp_path / "node-3"
        (tmp_path / "node-x").mkdir()
        shown = xyro("status", "--data", pattern)
        assert shown.returncode == 0 and re.search(r"known +0", shown.stdout)
    answer = xyro("status", "--data", pattern)
    assert (answer.returncode, "name the directory itself" in answer.stderr) == (2, True)
