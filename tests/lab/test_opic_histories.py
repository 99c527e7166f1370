"""History policies on flows whose answer is known: page i receives i cash a turnover, for ever."""

import numpy as np
import pytest

from xyro.lab.opic.histories import FixedWindow, Interpolation, Static, VariableWindow

RATES = np.array([0.5, 1.0, 1.5])
N = RATES.size


def steady(history, turns, start=1.0):
    """Each page starts with `start`, is spent every 1, 2 or 3 turnovers; returns the estimate half a turnover later."""
    since = np.zeros(N)
    cash = np.full(N, start)
    for now in range(1, turns + 1):
        cash += RATES
        due = np.flatnonzero(now - since >= np.arange(1, N + 1))
        history.measure(due, cash[due].copy(), float(now))
        cash[due], since[due] = 0.0, now
    return history.estimate(cash + RATES / 2, turns + 0.5)


POLICIES = {
    "static": lambda: Static(N),
    "variable": lambda: VariableWindow(N, 4),
    "variable, current": lambda: VariableWindow(N, 4, current=True),
    "fixed, edge": lambda: FixedWindow(N, 8, edge=True),
    "improved fixed": lambda: FixedWindow(N, 1, edge=True, least=3),
    "interpolation": lambda: Interpolation(N, 8),
    "interpolation, paper": lambda: Interpolation(N, 8, current=False),
}


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("turns", [12, 60])
def test_a_steady_flow_is_found_without_its_endowment(name, turns):
    tolerance = 0.06 if turns == 12 and "interpolation" in name else 1e-3  # its prior fades, it is never dropped
    np.testing.assert_allclose(steady(POLICIES[name](), turns), RATES, rtol=tolerance)


def test_the_papers_static_formula_keeps_the_endowment():
    found = steady(Static(N, paper=1.0), 99)
    np.testing.assert_allclose(found, (1.0 + 99.5 * RATES) / 100.5)


def test_a_naive_fixed_window_misses_pages_spent_less_than_once_in_it():
    """Page 2 is spent every third turnover: a window of 2 holds its last 4.5 or nothing."""
    some, none = steady(FixedWindow(N, 2), 61), steady(FixedWindow(N, 2), 62)
    assert some[0] == none[0] == pytest.approx(0.5) and some[2] == pytest.approx(2.25) and none[2] == 0.0


def test_windows_follow_a_change_that_static_dilutes():
    for policy, error in (
        (VariableWindow(1, 4), 0.0),
        (FixedWindow(1, 4, edge=True), 0.0),
        (Interpolation(1, 4), 0.05),
    ):
        for now in range(1, 41):
            policy.measure(np.array([0]), np.array([1.0 if now <= 20 else 3.0]), float(now))
        assert policy.estimate(np.zeros(1), 40.0)[0] == pytest.approx(3.0, rel=error + 1e-6)


@pytest.mark.parametrize("name", [n for n in POLICIES if "static" not in n and "paper" not in n])
def test_before_any_spending_every_page_is_alike(name):
    found = POLICIES[name]().estimate(np.ones(N), 0.0)
    assert found.tolist() == [found[0]] * N


def test_memory_of_a_fixed_window_is_bounded_by_its_window():
    policy = FixedWindow(1, 4)
    for now in range(1, 1001):
        policy.measure(np.array([0]), np.ones(1), float(now))
    policy.estimate(np.zeros(1), 1000.0)
    assert sum(entry[0].size for entry in policy.log) == 4
