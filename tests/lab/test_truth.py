"""Importance, graph and columns of the truth."""

import json

import numpy as np
import pytest

from xyro.lab.web.places import Doc
from xyro.lab.web.shape import DAY, ORIGIN
from xyro.lab.web.truth import distinct, truth
from xyro.lab.web.web import Web
from xyro.lab.web.web_graph import NOFOLLOW
from xyro.wire.errors import InputError

T = ORIGIN + 10 * DAY


@pytest.fixture(scope="module")
def web():
    return Web(pages=600, hosts=5, outside=0.05, drift=0.4, rate_median=0.5)


def test_importance_is_the_dense_eigenvector(web):
    """Power iteration against the stationary vector of the Google matrix, written out with its dangling rows."""
    true = truth(web, T)
    size = web.size
    matrix = np.zeros((size, size))
    for page in range(size):
        row = true.graph.children(page)
        matrix[row, page] = 1 / len(row) if len(row) else 0.0
        if not len(row):
            matrix[:, page] = 1 / size
    google = 0.85 * matrix + 0.15 / size
    expected = np.linalg.solve(np.vstack((google - np.eye(size), np.ones(size)))[1:], np.eye(size)[-1])
    assert true.importance == pytest.approx(expected * size, rel=1e-8)
    assert true.importance.mean() == pytest.approx(1.0)
    assert true.importance.min() >= 0.15


def test_rows_are_the_distinct_followed_links_in_order(web):
    true = truth(web, T)
    for page in range(web.shape.pages):
        links = web.links(page, web.version(page, T))
        expected = list(dict.fromkeys(web.url(link.target) for link in links if not link.flags & NOFOLLOW))
        assert list(true.links(page)) == expected


def test_pages_that_are_not_read_to_the_end_dangle_but_are_known(web):
    true = truth(web, T)
    assert len(true.urls) == len(set(true.urls)) == web.size
    dangling = np.isin(true.kinds, (Doc.DTD, Doc.DEAD, Doc.FILE, Doc.PRIVATE, Doc.OUTSIDE))
    assert not true.graph.out_degree[dangling].any()
    assert (true.graph.out_degree[~dangling] > 0).all()
    assert true.graph.out_degree[true.kinds == Doc.REDIRECT].tolist() == [1] * int((true.kinds == Doc.REDIRECT).sum())
    assert set(true.kinds[~true.readable()].tolist()) == {Doc.FILE, Doc.PRIVATE, Doc.OUTSIDE}
    assert set(true.statuses[true.kinds == Doc.OUTSIDE].tolist()) == {0}
    assert {url: true.numbers()[url] for url in true.urls[:5]} == {url: k for k, url in enumerate(true.urls[:5])}


def test_columns_agree_with_the_web(web):
    true = truth(web, T)
    assert true.versions.tolist()[:600] == [web.version(page, T) for page in range(600)]
    assert true.versions.sum() == pytest.approx(web.rates[web.rates > 0].sum() * 10, rel=0.1)
    assert (true.modified[:600] <= T).all()
    assert true.rates is web.rates


def test_drift_moves_links_and_importance():
    web = Web(pages=600, hosts=5, drift=0.4, rate_median=0.5)
    early, late = truth(web, ORIGIN), truth(web, T)
    changed = sum(early.links(page) != late.links(page) for page in range(600))
    assert changed > 100
    assert not np.allclose(early.importance, late.importance, rtol=0.01)


@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_truth_is_saved_whole(web, tmp_path, suffix):
    true, path = truth(web, T), tmp_path / f"truth{suffix}"
    true.save(path)
    saved = json.loads(path.read_text()) if suffix == ".json" else np.load(path)
    assert list(saved["urls"]) == list(true.urls)
    for name in ("kinds", "statuses", "importance", "rates", "versions", "modified"):
        assert np.asarray(saved[name]).tolist() == getattr(true, name).tolist()
    assert np.asarray(saved["targets"]).tolist() == true.graph.indices.tolist()
    assert np.asarray(saved["indptr"]).tolist() == true.graph.indptr.tolist()
    assert float(saved["t"]) == T


def test_another_suffix_is_refused(web, tmp_path):
    with pytest.raises(InputError, match="npz or"):
        truth(web, T).save(tmp_path / "truth.csv")


def test_distinct_keeps_first_appearances():
    graph = distinct(np.array([0, 0, 0, 2, 2]), np.array([2, 1, 2, 2, 2]), 3)
    assert [graph.children(page).tolist() for page in range(3)] == [[2, 1], [], [2]]
