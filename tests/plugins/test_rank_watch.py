"""What is seen of a ranking under way."""

import io
import sys

import pytest

from xyro.opic.offline import IterationStep
from xyro.plugins.rank import rank_progress as rank_watch
from xyro.plugins.rank.rank_progress import line, share, watched

STEPS = [IterationStep(1, 0.5, None), IterationStep(2, 0.05, 2), IterationStep(3, 1e-4, 0)]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_line_a_step():
    assert [line(step) for step in STEPS] == [
        "iteration 1: residual 0.5",
        "iteration 2: residual 0.05, about 2 to go",
        "iteration 3: residual 0.0001, about 0 to go",
    ]


@pytest.mark.parametrize(
    ("step", "done"),
    [
        (IterationStep(5, 1e-2, 3), 0.25),
        (IterationStep(5, 1e-9, 0), 1.0),
        (IterationStep(90, 0.9, None), 0.9),
        (IterationStep(1, 7.0, 1), 0.01),
    ],
)
def test_how_much_is_done(step, done):
    assert share(step, 1e-8, 100) == pytest.approx(done)


def test_lines_where_there_is_no_terminal(monkeypatch, capsys):
    monkeypatch.setattr(rank_watch, "EVERY", 0.0)
    with watched(1e-4, 100) as tell:
        for step in STEPS:
            tell(step)
    assert capsys.readouterr().err.splitlines() == [line(step) for step in STEPS]


def test_a_bar_on_a_terminal(monkeypatch):
    err = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", err)
    with watched(1e-4, 100) as tell:
        for step in STEPS:
            tell(step)
    assert "residual" in err.getvalue()
