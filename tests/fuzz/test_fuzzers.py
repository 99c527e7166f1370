"""Some cases of each fuzzer; and a fuzzer that finds something says how to find it again."""

from __future__ import annotations

from random import Random

import pytest

from tests.fuzz.__main__ import fuzz, run
from tests.fuzz.fuzzers import ENDS, FUZZERS

CASES = {"interface": 20}
"""those of a daemon, each of several requests"""


@pytest.mark.parametrize("name", FUZZERS)
def test_some_cases(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        assert all(run(name, 1, number) for number in range(CASES.get(name, 150))), capsys.readouterr().out
    finally:
        ENDS.get(name, lambda: None)()


def test_a_case_that_fails_is_told_and_replayed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fussy(random: Random) -> None:
        assert random.random() < 0.9

    monkeypatch.setitem(FUZZERS, "fussy", fussy)
    assert fuzz("fussy", 5, 60.0) == 3
    replays = [line.rpartition(" ")[2] for line in capsys.readouterr().out.splitlines() if "--replay" in line]
    assert len(replays) == 3
    for replay in replays:
        name, seed, number = replay.split(":")
        assert not run(name, int(seed), int(number))
