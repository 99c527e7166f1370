"""Patterns: formulas against a solver that knows nothing of them, and what becomes of a link farm."""

import json

import numpy as np
import pytest

from xyro.lab.opic import opic_lab, patterns
from xyro.opic.cash import DAMPING
from xyro.opic.importance import normalise
from xyro.opic.pagerank import pagerank


@pytest.mark.parametrize("name", patterns.PATTERNS)
@pytest.mark.parametrize("n", [10, 31, 200])
def test_formulas_are_the_offline_reference(name, n):
    shape = patterns.pattern(name, n)
    truth = normalise(pagerank(shape.graph, tolerance=1e-14, max_steps=5000).rank)
    known = shape.formula(truth)
    assert len(known) >= 2
    for page, value in known.items():
        assert truth[page] == pytest.approx(value, rel=1e-9)


@pytest.mark.long
def test_opic_comes_to_the_formulas():
    found = patterns.patterns(300, lambda share: None)
    assert set(found) == set(patterns.PATTERNS)
    assert all(row["OPIC off"] < 5 and row["all"] < 2 and row["offline off"] < 1e-6 for row in found.values())


def test_shapes_of_patterns():
    tree = patterns.tree(3)
    assert tree.n == 15 and tree.children(0).tolist() == [1, 2] and sorted(tree.children(1).tolist()) == [0, 3, 4]
    bow = patterns.bow_tie(5)
    assert bow.dangling.tolist() == [False] * 10 + [True] * 5 and (bow.in_degree[:5] == 0).all()
    assert sorted(bow.children(9).tolist()) == [5, 14]


def test_a_link_farm_moves_importance_and_hardly_makes_any():
    farm = patterns.farm(1000)
    assert farm["pages"] == pytest.approx(1 / 11)
    # nothing leads in: the farm as a whole has what it is given, but for dangling pages elsewhere
    assert farm["importance, no link leads in"] == pytest.approx(farm["pages"], rel=0.06)
    assert farm["importance"] == pytest.approx(farm["pages"], rel=0.1)
    # the boss of k minions: (1 + c k) / (1 + c) where nobody dangles
    assert farm["boss, no link leads in"] == pytest.approx((1 + DAMPING * 99) / (1 + DAMPING), rel=0.06)
    assert farm["boss by OPIC"] == pytest.approx(farm["boss"], rel=0.05) and farm["boss's rank"] <= 3
    assert farm["boss, honest jumps"] < 0.1 * farm["boss"]


@pytest.mark.long
def test_patterns_by_command(tmp_path, capsys):
    assert opic_lab.main(["patterns", "--pages", "60", "-o", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in patterns.PATTERNS) and "personalisation" in text
    assert {path.name for path in tmp_path.iterdir()} == {"parts", "patterns.json", "patterns.txt", "patterns.png"}
    found = json.loads((tmp_path / "patterns.json").read_text())
    assert np.sum(found["ring"]["curve"]) == pytest.approx(60)
