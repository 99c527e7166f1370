"""A graph from a file: the tables of `xyro lab opic real`."""

import json

import numpy as np
import pytest

from xyro.lab.opic import opic_lab, real
from xyro.lab.reference_rank import reference
from xyro.opic.graph import cycle, path, standard


@pytest.mark.long
def test_real_by_command(tmp_path, capsys):
    graph = standard(400, np.random.default_rng(1))
    np.savez(tmp_path / "web.npz", indptr=graph.indptr, indices=graph.indices)
    out = tmp_path / "out"
    assert opic_lab.main(["real", "--graph", str(tmp_path / "web.npz"), "-o", str(out)]) == 0
    assert "gauss-seidel" in capsys.readouterr().out
    assert {path.name for path in out.iterdir()} == {"parts", "real.json", "real.txt", "real.png"}
    report = json.loads((out / "real.json").read_text())
    assert report["pages"] == 400 and set(report["online"]) == set(real.SELECTORS)
    assert [row["reads_per_page"] for row in report["online"]["sweep"]] == [1, 2, 5, 10]
    for counts in report["iterations"].values():
        assert counts == sorted(counts) and counts[0] >= 1
    assert report["iterations"]["gauss-seidel"][-1] <= report["iterations"]["jacobi"][-1]


def test_iterations_are_the_fewest_that_get_there():
    graph = standard(300, np.random.default_rng(2))
    truth = reference(graph)
    found = real.iterations(graph, truth, lambda share: None)["jacobi"]
    share = np.zeros(graph.n)
    rank, counts = np.full(graph.n, 1 / graph.n), []
    for count in range(1, 60):
        share = rank * 0.85 / np.maximum(graph.out_degree, 1)
        into = np.bincount(graph.indices, weights=np.repeat(share, graph.out_degree), minlength=graph.n)
        rank = into + (0.15 + 0.85 * rank[graph.dangling].sum()) / graph.n
        counts.append((count, np.abs(rank - truth / truth.sum()).sum()))
    assert found == [next(count for count, far in counts if far <= epsilon) for epsilon in real.EPSILONS]


def test_a_graph_known_from_the_start_takes_one_iteration_and_none_is_promised_that_do_not_come():
    assert real.iterations(cycle(50), np.ones(50), lambda share: None)["jacobi"] == [1, 1, 1]
    wrong = np.ones(50) / 50
    assert real.iterations(path(50), wrong, lambda share: None)["jacobi"] == [None, None, None]


def test_real_needs_a_graph(tmp_path, capsys):
    assert opic_lab.main(["real", "-o", str(tmp_path)]) == 2 and "--graph" in capsys.readouterr().err
