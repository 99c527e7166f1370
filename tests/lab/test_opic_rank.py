"""Table 1 of P1 and the speed of OPIC, on small graphs: every way runs, and says what it measured."""

import json
import os
import resource

import numpy as np
import pytest

from xyro.lab.opic import matrix_builds as opic_matrix
from xyro.lab.opic import opic_lab, speed
from xyro.lab.opic import rank as opic_rank
from xyro.opic.graph import from_links
from xyro.opic.offline import pageranks
from xyro.opic.pagerank import pagerank


@pytest.mark.long
@pytest.mark.parametrize("memory", [None, 0])
def test_table_one_times_every_way(tmp_path, memory):
    report = opic_rank.table_one(tmp_path, [3000], memory, show=False)
    found = report["sizes"]["3000"]
    assert found["pages"] == 3000 and found["links"] > 6000
    assert all(way["seconds"] > 0 for way in found["ways"].values())
    assert {"direct", "inverse, cold", "both in one scan, one thread", "direct, 12,000 bytes"} <= found["ways"].keys()
    spilled = {path.name for path in (tmp_path / "matrix-3000" / "vectors").iterdir()}
    assert spilled == ({"y"} if memory is None else {"y", "z"})
    text = (tmp_path / "rank.txt").read_text()
    assert "both in one scan" in text and "P1's machine" in text


@pytest.mark.long
def test_time_against_size_is_drawn(tmp_path):
    report = opic_rank.table_one(tmp_path, [1000, 2000], None, show=False)
    assert list(report["sizes"]) == ["1000", "2000"] and (tmp_path / "rank.png").stat().st_size > 1000
    assert "A link costs" in (tmp_path / "rank.txt").read_text()
    assert opic_rank.table_one(tmp_path, [1000, 2000], None, show=False) == report  # kept, not timed again


def test_the_matrix_on_files_is_a_graph_that_can_be_ranked(tmp_path):
    matrix = opic_matrix.random_matrix(tmp_path, 2000)
    again = opic_matrix.random_matrix(tmp_path, 2000)
    assert matrix.sources.tolist() == again.sources.tolist() and np.diff(matrix.indptr).min() >= 2
    targets = np.repeat(np.arange(2000), np.diff(matrix.indptr))
    graph = from_links(2000, np.asarray(matrix.sources), targets)
    (rank,), _ = pageranks(matrix)
    assert np.abs(rank - pagerank(graph).rank).sum() < 1e-3


def test_turned_round_it_is_the_transposed_graph(tmp_path, monkeypatch):
    monkeypatch.setattr(opic_matrix, "CHUNK", 1000)  # many chunks
    matrix = opic_matrix.random_matrix(tmp_path, 2000)
    turned = opic_matrix.reversed_matrix(tmp_path / "reversed", matrix)
    targets = np.repeat(np.arange(2000), np.diff(matrix.indptr))
    links = sorted(zip(matrix.sources.tolist(), targets.tolist(), strict=True))
    parents = np.repeat(np.arange(2000), np.diff(turned.indptr))
    assert sorted(zip(parents.tolist(), turned.sources.tolist(), strict=True)) == links
    assert turned.share == pytest.approx(1 / np.diff(matrix.indptr))


def test_a_forgotten_matrix_is_read_again(tmp_path):
    matrix = opic_matrix.random_matrix(tmp_path, 2000)
    before = matrix.sources.sum()
    assert opic_matrix.forget(matrix) and matrix.sources.sum() == before


def test_speed_says_what_a_link_and_a_selection_cost(tmp_path, capsys):
    assert opic_lab.main(["speed", "--pages", "5000", "-o", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["5000"]
    for form in ("kernels", "groups"):
        assert found[form]["link_ns"] > 0 and found[form]["floor_link_ns"] > 0 and found[form]["selection_ns"] >= 0
    assert "ns / selection" in (tmp_path / "speed.txt").read_text()


def test_the_graph_of_the_speed_lab_has_ten_links_a_page():
    graph = speed.random_graph(20_000, np.random.default_rng(2))
    assert 8 < graph.m / graph.n < 12 and graph.in_degree.min() >= 2 and graph.in_degree.max() > 200


def test_bad_sizes_are_refused(capsys):
    for what in ("rank", "speed"):
        assert opic_lab.main([what, "--pages", "10"]) == 2
        assert "--pages 10" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="this system promises no room on disk")
def test_a_file_has_its_place_on_the_disk_before_it_is_written(tmp_path):
    """What writes to a map of which the disk is full is killed (SIGBUS) and cannot say why."""
    array = opic_matrix.on_files(tmp_path)("a", (1000, 500), np.float64)
    assert (tmp_path / "a").stat().st_blocks * 512 >= array.nbytes == 4_000_000 and not array.any()


def test_a_full_disk_is_told_in_a_line(tmp_path, capsys):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        code = opic_lab.main(["rank", "--pages", "100000", "-o", str(tmp_path)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    said = capsys.readouterr().err
    assert code == 3 and "free or mend the disk" in said and said.count("\n") == 1


def test_a_directory_that_cannot_be_is_told_in_a_line(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert opic_lab.main(["rank", "--pages", "1000", "-o", str(tmp_path / "file")]) == 2
    assert "no directory for results" in capsys.readouterr().err
