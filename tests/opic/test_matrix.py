"""Matrices from rows of links: as from the graph, weighted, both ways, on files; cut into blocks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xyro.opic import matrix
from xyro.opic.graph import from_links, standard, tiny
from xyro.opic.matrix import Matrix, from_rows, mean_of_children, of_graph, reversed_graph
from xyro.opic.offline import Effort, interest, pageranks
from xyro.opic.pagerank import pagerank

links = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=60)
ENGINES = ["numba", "numpy"]


def rows_of(graph, weights=None):
    def scan():
        for page in np.flatnonzero(graph.out_degree)[::-1]:
            span = slice(graph.indptr[page], graph.indptr[page + 1])
            yield int(page), graph.indices[span], None if weights is None else weights[span]

    return scan


def rank(m, **more):
    return pageranks(m, effort=Effort(1e-14, **more))[0][0]


def dense(m):
    """The matrix as numpy would hold it."""
    full = np.zeros((m.n, m.n))
    for i in range(m.n):
        span = slice(int(m.indptr[i]), int(m.indptr[i + 1]))
        weights = m.weights[span] if m.weights.size > 1 else np.repeat(m.weights, span.stop - span.start)
        np.add.at(full[i], m.sources[span], weights * m.share[m.sources[span]])
    return full


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("batch", [1, 7, 1 << 20])
def test_rows_give_the_matrix_of_their_graph(engine, batch, monkeypatch):
    monkeypatch.setattr(matrix, "BATCH", batch)
    graph = standard(60, np.random.default_rng(1))
    built = from_rows(60, rows_of(graph), engine=engine, dtype=np.float64)
    np.testing.assert_allclose(dense(built), dense(of_graph(graph)))


@settings(max_examples=40, deadline=None)
@given(links)
def test_any_rows_rank_as_their_graph(pairs):
    graph = from_links(10, *np.array(pairs, np.int64).reshape(-1, 2).T)
    built = from_rows(10, rows_of(graph), dtype=np.float64)
    np.testing.assert_allclose(rank(built), pagerank(graph).rank, atol=1e-10)


@settings(max_examples=40, deadline=None)
@given(links, st.randoms(use_true_random=False))
def test_weights_share_a_pages_rank_out_in_proportion(pairs, random):
    """A link of whole weight w is w links."""
    weights = np.array([random.randint(1, 4) for _ in pairs], np.float64)
    sources, targets = np.array(pairs, np.int64).reshape(-1, 2).T
    order = np.argsort(sources, kind="stable")
    graph = from_links(10, sources, targets)
    many = from_links(10, np.repeat(sources, weights.astype(int)), np.repeat(targets, weights.astype(int)))
    built = from_rows(10, rows_of(graph, weights[order]), weighted=True, dtype=np.float64)
    np.testing.assert_allclose(rank(built), pagerank(many).rank, atol=1e-10)


@settings(max_examples=40, deadline=None)
@given(links)
def test_both_directions_are_the_undirected_graph(pairs):
    """Whose PageRank without jumps would be the degree; with them it is that of the doubled graph."""
    sources, targets = np.array(pairs, np.int64).reshape(-1, 2).T
    graph = from_links(10, sources, targets)
    doubled = from_links(10, np.concatenate((sources, targets)), np.concatenate((targets, sources)))
    built = from_rows(10, rows_of(graph), both=True, dtype=np.float64)
    np.testing.assert_allclose(rank(built), pagerank(doubled).rank, atol=1e-10)


@pytest.mark.parametrize(("reading", "of"), [("reversed", reversed_graph), ("mean", mean_of_children)])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_give_the_matrices_of_interest_too(reading, of, weighted):
    graph = standard(60, np.random.default_rng(4))
    ones = np.full(graph.m, 2.0) if weighted else None
    built = from_rows(60, rows_of(graph, ones), reading=reading, weighted=weighted, dtype=np.float64)
    targets = np.eye(60)[7]
    found, wanted = (interest(m, targets, effort=Effort(1e-14))[0] for m in (built, of(graph)))
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_the_interest_of_one_page_alone():
    for links, chance in (([], 0.15 * 3), ([0], 3.0)):
        rows = [(0, np.array(links, np.int64), None)]
        found, _ = interest(from_rows(1, lambda rows=rows: rows, reading="mean"), np.array([3.0]), effort=Effort(1e-7))
        assert found[0] == pytest.approx(chance, rel=1e-4)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_matrix_may_lie_on_files(tmp_path, engine):
    graph = standard(300, np.random.default_rng(2))

    def on_disk(name, shape, dtype):
        return np.memmap(tmp_path / name, dtype, "w+", shape=shape)

    from_rows(300, rows_of(graph), allocate=on_disk, dtype=np.float64, engine=engine)
    again = {
        name: np.memmap(tmp_path / name, dtype, "r")
        for name, dtype in (("indptr", np.int32), ("sources", np.int32), ("share", np.float64))
    }
    mapped = Matrix(**again, weights=np.ones(1, np.float32), row=np.ones(1))
    np.testing.assert_allclose(rank(mapped, engine=engine), pagerank(graph).rank, atol=1e-11)


def test_blocks_cover_all_rows_with_about_as_many_links():
    built = of_graph(standard(1000, np.random.default_rng(3)))
    for count in (1, 2, 7):
        bounds = built.blocks(count)
        assert bounds[0] == 0 and bounds[-1] == 1000 and (np.diff(bounds) >= 0).all()
        each = np.diff(built.indptr[bounds])
        assert each.sum() == built.m and abs(each - built.m / count).max() <= np.diff(built.indptr).max()
    assert of_graph(tiny()).blocks(9)[-1] == 5


@pytest.mark.parametrize(
    "row",
    [
        (0, np.array([5]), None),
        (-1, np.array([1]), None),
        (0, np.array([1]), np.array([0.0])),
        (0, np.array([1]), np.array([np.inf])),
        (0, np.array([1]), np.array([1.0, 1.0])),
    ],
)
def test_rows_that_do_not_fit_are_refused(row):
    with pytest.raises(ValueError, match="from_rows"):
        from_rows(5, lambda: [row], weighted=True)


def test_scans_that_differ_are_found():
    scans = iter([[(0, np.array([1, 2]), None)], [(0, np.array([1]), None)]])
    with pytest.raises(ValueError, match="second scan"):
        from_rows(3, lambda: next(scans))


def test_columns_that_do_not_fit_are_refused():
    good = of_graph(tiny())
    for wrong in ({"share": good.share[1:]}, {"weights": np.ones(2, np.float32)}, {"row": np.ones(3)}):
        columns = {name: getattr(good, name) for name in ("indptr", "sources", "share", "weights", "row")}
        with pytest.raises(ValueError, match="Matrix"):
            Matrix(**{**columns, **wrong})


@pytest.mark.parametrize("cut", [1, 3, 1000])
def test_links_may_come_many_at_a_time(cut):
    """Blocks of links, each with its page, mixed with rows of one page."""
    graph = standard(60, np.random.default_rng(6))
    blocks = [(graph.sources[low : low + cut], graph.indices[low : low + cut], None) for low in range(0, graph.m, cut)]
    built = from_rows(60, lambda: blocks, dtype=np.float64)
    np.testing.assert_allclose(dense(built), dense(of_graph(graph)))
    mixed = from_rows(61, lambda: [*blocks, (60, np.array([0, 1]), None)], dtype=np.float64)
    np.testing.assert_allclose(dense(mixed)[:2, 60], 0.5)
