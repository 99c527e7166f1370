"""The offline reference at scale: engines, methods and formulations that must agree, and answers known beforehand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xyro.opic.graph import cycle, from_links, from_lists, standard, star, tiny
from xyro.opic.matrix import mean_of_children, of_graph, reversed_graph
from xyro.opic.offline import Effort, interest, pageranks, solve
from xyro.opic.pagerank import pagerank

links = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=60)
ENGINES = [(engine, method) for engine in ("numba", "numpy") for method in ("jacobi", "gauss-seidel")]
GRAPHS = {
    "tiny": tiny(),
    "cycle": cycle(11),
    "star": star(6),
    "self and repeated links": from_lists([[0, 1, 1], [1], [0, 2, 2], []]),
    "all dangling": from_lists([[], [], []]),
    "standard": standard(500, np.random.default_rng(1)),
}


def exact(method="gauss-seidel", engine="auto", **more):
    return Effort(1e-14, method=method, engine=engine, **more)


@pytest.mark.long
@pytest.mark.parametrize(("engine", "method"), ENGINES)
@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_all_engines_and_methods_agree_with_power_iteration(graph, engine, method):
    """One ranking alone, and three in one pass, the personal ones with dangling mass spread uniformly."""
    weights = [None, np.arange(graph.n) + 0.0, np.eye(graph.n)[0]]
    effort = exact(method, engine)
    (alone,), _ = pageranks(of_graph(graph), effort=effort)
    together, _ = pageranks(of_graph(graph), weights, effort=effort)
    reference = [pagerank(graph, personalization=w, tolerance=1e-14).rank for w in weights]
    np.testing.assert_allclose(alone, reference[0], atol=1e-12)
    for found, wanted in zip(together, reference, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(links, st.sampled_from([0.0, 0.5, 0.85, 0.95]))
def test_any_graph_any_damping(pairs, damping):
    graph = from_links(10, *np.array(pairs, np.int64).reshape(-1, 2).T)
    (found,), _ = pageranks(of_graph(graph), damping=damping, effort=exact())
    np.testing.assert_allclose(found, pagerank(graph, damping).rank, atol=1e-10)


def test_the_tiny_graph_is_as_tabled_in_float32_too():
    for dtype, tolerance in ((np.float64, 1e-8), (np.float32, 1e-6)):
        (found,), _ = pageranks(of_graph(tiny(), dtype), effort=Effort(1e-7 if dtype == np.float32 else 1e-12))
        assert found.dtype == dtype
        np.testing.assert_allclose(found, [0.35906203, 0.18874594, 0.37990288, 0.03614458, 0.03614458], atol=tolerance)


@pytest.mark.parametrize(("engine", "method"), ENGINES)
def test_the_residual_bounds_the_error_and_is_told_step_by_step(engine, method):
    graph, told = GRAPHS["standard"], []
    truth = pagerank(graph, tolerance=1e-14).rank
    (found,), steps = pageranks(of_graph(graph), effort=Effort(1e-4, method=method, engine=engine), watch=told.append)
    assert np.abs(found - truth).sum() <= steps[-1].residual * 0.85 / 0.15
    assert told == list(steps) and [s.iteration for s in steps] == list(range(1, len(steps) + 1))
    assert steps[-1].residual <= 1e-4 < steps[-2].residual and steps[-1].left == 0


def test_the_end_is_foreseen():
    _, steps = pageranks(of_graph(star(6)), effort=Effort(1e-9, method="jacobi"))
    assert steps[len(steps) // 2].left == pytest.approx(len(steps) - steps[len(steps) // 2].iteration, abs=2)


def test_in_place_needs_fewer_sweeps():
    graph = GRAPHS["standard"]
    count = [
        len(pageranks(of_graph(graph), effort=Effort(1e-3, method=m, threads=1))[1]) for m in ("jacobi", "gauss-seidel")
    ]
    assert count[1] < count[0]


def test_threads_lead_to_the_same_vector():
    graph = GRAPHS["standard"]
    one, two = (pageranks(of_graph(graph), effort=exact(threads=k))[0][0] for k in (1, 2))
    np.testing.assert_allclose(one, two, atol=1e-13)


def test_a_number_of_iterations_may_be_given():
    _, steps = pageranks(of_graph(GRAPHS["standard"]), effort=Effort(1e-12, max_steps=3))
    assert len(steps) == 3


@pytest.mark.parametrize(("engine", "method"), ENGINES)
def test_an_iteration_of_jacobi_is_one_of_power_iteration(engine, method):
    graph = GRAPHS["standard"]
    rough = pageranks(of_graph(graph), effort=Effort(1e-12, max_steps=4, method=method, engine=engine))[0][0]
    if method == "jacobi" or engine == "numpy":
        np.testing.assert_allclose(rough, pagerank(graph, max_steps=4).rank, atol=1e-12)
    else:
        assert np.abs(rough - pagerank(graph, max_steps=4).rank).max() > 1e-6


@pytest.mark.parametrize("engine", ["numba", "numpy"])
def test_interest_by_the_reversed_graph_is_its_pagerank(engine):
    """Reading (a): a true PageRank of the turned graph, jumps to the targets, where dangling mass goes too."""
    graph = from_lists([[1, 2], [3], [3], [4], [], [0]])
    targets = np.array([0, 0, 0, 1.0, 0, 0])
    found, _ = interest(reversed_graph(graph), targets, effort=exact(engine=engine))
    turned = graph.transpose()
    again = from_links(6, np.append(turned.sources, 5), np.append(turned.indices, 3))  # 5 is dangling: back to target
    np.testing.assert_allclose(found, pagerank(again, personalization=targets).rank, atol=1e-10)
    assert found[4] == 0 and found.sum() == pytest.approx(1)  # page 4 leads nowhere


@pytest.mark.parametrize("engine", ["numba", "numpy"])
def test_interest_by_the_mean_of_children_is_a_discounted_chance(engine):
    """Reading (b): (1-c) times the sum over k of c^k times the chance to be on a target after k clicks."""
    graph = from_lists([[1, 2], [3], [4], [], []])
    found, _ = interest(mean_of_children(graph), np.array([0, 0, 0, 1.0, 0]), effort=exact(engine=engine))
    c = 0.85
    np.testing.assert_allclose(found, [(1 - c) * c * c / 2, (1 - c) * c, 0, 1 - c, 0], atol=1e-12)
    everywhere, _ = interest(mean_of_children(cycle(5)), np.ones(5), effort=exact(engine=engine))
    np.testing.assert_allclose(everywhere, 1.0, atol=1e-12)


def test_interest_can_be_weighted_by_rank():
    graph = GRAPHS["standard"]
    (rank,), _ = pageranks(of_graph(graph), effort=exact())
    xml = np.where(np.arange(graph.n) % 7 == 0, rank, 0.0)
    found, _ = interest(mean_of_children(graph), xml, effort=exact())
    assert 0 < found.max() <= xml.max() and not np.allclose(
        found, interest(mean_of_children(graph), (xml > 0) + 0.0)[0]
    )


# Memory


class Spill:
    def __init__(self):
        self.names = []

    def __call__(self, name, shape, dtype):
        self.names.append(name)
        return np.zeros(shape, dtype)


@pytest.mark.parametrize(
    ("memory", "spilled"), [(None, []), (8000, []), (7999, ["y"]), (3999, ["y", "z"]), (0, ["y", "z"])]
)
def test_a_cap_sends_to_files_what_is_read_in_order_first(memory, spilled):
    """500 pages in float64: 4,000 bytes a vector; z is read at random and stays longest."""
    graph, spill = GRAPHS["standard"], Spill()
    (found,), _ = pageranks(of_graph(graph), effort=exact(memory=memory, spill=spill))
    assert sorted(spill.names) == spilled
    np.testing.assert_allclose(found, pagerank(graph).rank, atol=1e-11)


def test_a_cap_without_files_is_refused():
    with pytest.raises(ValueError, match="3999 bytes of memory: 8000 are needed"):
        pageranks(of_graph(GRAPHS["standard"]), effort=exact(memory=3999))


def test_files_may_hold_the_vectors(tmp_path):
    def on_disk(name, shape, dtype):
        return np.memmap(tmp_path / name, dtype, "w+", shape=shape)

    graph = GRAPHS["standard"]
    (found,), _ = pageranks(of_graph(graph, np.float32), effort=Effort(1e-6, memory=0, spill=on_disk))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["y", "z"]
    np.testing.assert_allclose(found, pagerank(graph).rank, atol=1e-6)


@pytest.mark.parametrize(
    "call",
    [
        lambda m: pageranks(m, [-np.ones(5)]),
        lambda m: pageranks(m, [np.zeros(5)]),
        lambda m: pageranks(m, [np.ones(4)]),
        lambda m: pageranks(m, [np.full(5, np.nan)]),
        lambda m: pageranks(m, damping=1.0),
        lambda m: pageranks(of_graph(from_lists([]))),
        lambda m: solve(m, []),
        lambda m: solve(m, [np.ones(4)]),
        lambda m: solve(m, [np.array([math.inf])]),
        lambda m: interest(m, np.zeros(5)),
        lambda m: Effort(0.0),
        lambda m: Effort(threads=0),
        lambda m: Effort(method="sor"),
    ],
)
def test_bad_input_is_refused(call):
    with pytest.raises(ValueError):
        call(of_graph(tiny()))
