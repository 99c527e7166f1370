"""How `xyro lab intervals` judges exported intervals, and the real graphs that it takes."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from xyro.lab.order.laid_graphs import LinkGraph, breadth_first_part, computed, linked_files, page_rank
from xyro.lab.order.served_intervals import ExportedInterval, judged, main, shown_importance

CIRCLE = LinkGraph(np.arange(5), np.array([1, 2, 3, 0]), np.full(4, 0.25))


def test_importance_is_of_what_was_shown():
    assert shown_importance(CIRCLE, [0, 1, 2, 3, 3]) == pytest.approx(dict.fromkeys(range(4), 1.0))
    some = shown_importance(CIRCLE, [0])  # its one link leads to 1, of which nothing is known: 1 has that of 0 more
    assert some == pytest.approx({0: 2 / 2.85, 1: 2 * 1.85 / 2.85}, abs=1e-6)


def test_coverage_width_and_error_by_hand():
    exported = [ExportedInterval(page, 1.1, low, 1.21, 0.5) for page, low in enumerate((0.9, 0.9, 1.05, 0.9))]
    row = judged(CIRCLE, range(4), exported)
    assert row["covered"] == 75.0 and row["pages"] == 4
    assert row["error"] == pytest.approx(math.log(1.1), abs=1e-4)
    assert row["half_width"] == pytest.approx(math.log(1.21 / 0.9) / 2, abs=1e-4)
    assert (row["off"], row["said"]) == (0.0, 0.25)
    uneven = judged(CIRCLE, range(4), [ExportedInterval(page, 1.0 + page % 2, 0.9, 2.1, 0.5) for page in range(4)])
    assert uneven["off"] == pytest.approx(1 / 6, abs=1e-5)


def test_a_part_of_a_graph_keeps_the_links_within_it():
    part = breadth_first_part(CIRCLE, 2, 3)
    assert part.indptr.tolist() == [0, 1, 2, 2] and part.indices.tolist() == [1, 2]
    assert part.importance == pytest.approx(page_rank(part.indptr, part.indices))


def test_files_that_link_to_each_other_are_a_graph(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "index.html").write_text(
        '<a href="below/a%20b.html#part">x</a><a class=y href=below/c.html>y</a><a href="../away.html">z</a>'
        '<a href="https://example.org/index.html">w</a><a href="none.html">v</a><a href=below/c.html?q>again</a>'
    )
    (tmp_path / "below" / "a b.html").write_text("<A HREF='../index.html'>up</A>")
    (tmp_path / "below" / "c.html").write_text("")
    graph = linked_files(tmp_path / "index.html", 0)
    assert graph.indptr.tolist() == [0, 2, 3, 3] and graph.indices.tolist() == [1, 2, 0]
    assert linked_files(tmp_path / "index.html", 2).pages == 2


@pytest.mark.long
def test_a_crawl_is_stopped_measured_and_gone_on_with(tmp_path, capsys):
    links = [[0, *range(3 * page + 1, min(3 * page + 4, 100))] for page in range(100)]
    np.savez(tmp_path / "graph.npz", indptr=np.cumsum([0, *map(len, links)]), indices=np.concatenate(links))
    assert main(["--graph", str(tmp_path / "graph.npz"), "--reads", "1", "6", "--json"]) == 0
    early, late = json.loads(capsys.readouterr().out)["rows"]
    assert early["pages"] == late["pages"] == 100
    assert late["error"] < early["error"] and late["half_width"] < early["half_width"]
    assert all(row["off"] <= row["said"] for row in (early, late)) and late["said"] < 0.2


@pytest.mark.long
def test_intervals_of_a_crawl_hold_and_are_narrow(tmp_path, capsys):
    """Half widths by the class of a page's importance were 5.1 and 3.9 errors here, and held 99.7 and 98.7 %.
    Three runs of these gave 88 to 98 %, and 2.1 to 2.6 errors: which pages are read when is the machine's."""
    graph = computed(300, 2)
    np.savez(tmp_path / "graph.npz", indptr=graph.indptr, indices=graph.indices)
    assert main(["--graph", str(tmp_path / "graph.npz"), "--reads", "1", "2", "5", "--json"]) == 0
    first, *settled = json.loads(capsys.readouterr().out)["rows"]
    assert first["covered"] > 75.0 and first["ratio"] < 5.0
    assert all(row["covered"] > 80.0 and row["ratio"] < 3.4 for row in settled)


def test_bad_input_is_one_line(capsys, tmp_path):
    assert main(["--graph", str(tmp_path / "none.npz")]) == 2
    assert main(["--files", str(tmp_path / "none.html")]) == 2
    assert capsys.readouterr().err.count("\n") == 2
