"""`xyro lab speed plan`, small: each line is there, its figures are possible, and a missed limit is told."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from xyro.lab.speed.plan_speed import GOAL_BYTES, PlannedPages, _all_filed, _sketches, _traced
from xyro.refresh.due import DueFolders

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def said():
    command = [
        sys.executable,
        "-m",
        "xyro.lab.speed.speed_lab",
        "plan",
        "--pages",
        "20000",
        "--orders",
        "400",
        "--runs",
        "1",
    ]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)


def test_it_tells_every_execution_beside_the_floor(said):
    assert said.returncode in (0, 1) and not said.stderr
    told = dict(re.findall(r"^  +(\S.*?\S)  +([\d.]+)", said.stdout, re.MULTILINE))
    named = ("floor: np.partition of one float32 column", "scan: obsolescence", "scan: freshness", "scan: mixed")
    for name in (*named, "folders: the same, and rows asked by the law of now"):
        assert float(told[name]) >= 0.0
    assert float(told["scan: freshness"]) > 0.0
    assert len(re.findall(r"at most 250: (?:holds|MISSED)", said.stdout)) == 5


def test_a_missed_limit_fails(said):
    """300 bytes a folder, and two counts of 550 kB, are much for 20,000 pages."""
    sizes = dict(re.findall(r"refresh_bytes_per_page (\w+) +([\d.]+)", said.stdout))
    assert set(sizes) == {"folders", "scan"} and float(sizes["folders"]) > GOAL_BYTES
    assert said.returncode == 1 and said.stdout.endswith("A LIMIT DOES NOT HOLD\n")


def test_memory_is_what_is_kept():
    assert 8_000 <= _traced(lambda: np.zeros(1000)) <= 9_000
    known = PlannedPages(30_000)
    folders = _all_filed(known)
    assert isinstance(folders, DueFolders) and len(folders) == 30_000
    populations = _sketches(known)[1]
    assert populations[0] == populations[1] and populations[0].pages == 10_000


@pytest.mark.parametrize("pages", ["0", "-3"])
def test_no_pages_are_bad_input(pages):
    command = [sys.executable, "-m", "xyro.lab.speed.speed_lab", "plan", "--pages", pages]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60).returncode == 2
