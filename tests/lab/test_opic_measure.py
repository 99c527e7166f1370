"""OPIC on any graph: the command's contract, its numbers, and what it says about bad input."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from xyro.lab.opic import measure as opic_measure
from xyro.lab.opic import names, opic_lab, opic_text, simulate
from xyro.lab.opic.history_policies import Cell
from xyro.lab.opic.measure import load, measure, table
from xyro.lab.reference_rank import reference
from xyro.opic.graph import cycle, standard, tiny
from xyro.opic.importance import normalise
from xyro.opic.pagerank import pagerank
from xyro.wire.errors import InputError

pytestmark = pytest.mark.long

CNR = Path(__file__).parents[3] / "shared" / "data" / "cnr-2000.npz"
FIELDS = ["reads_per_page", "error_all", "error_top10", "spearman", "cash_exact", "select", "history"]


def saved(path, graph, **more):
    np.savez(path, indptr=graph.indptr.astype(np.int32), indices=graph.indices.astype(np.int32), **more)
    return path


def said(capsys, *arguments):
    code = opic_lab.main([str(argument) for argument in arguments])
    return code, capsys.readouterr()


def test_the_command_prints_the_promised_json(tmp_path, capsys):
    graph = standard(2000, np.random.default_rng(1))
    path = saved(tmp_path / "g.npz", graph)
    code, out = said(capsys, "--graph", path, "--json")
    rows = json.loads(out.out)
    assert code == 0 and [list(row) for row in rows] == [FIELDS] * 4
    assert [row["reads_per_page"] for row in rows] == [1, 2, 5, 10]
    assert all(row["cash_exact"] is True for row in rows)
    assert {(row["select"], row["history"]) for row in rows} == {("sweep", "static")}
    errors = [row["error_all"] for row in rows]
    assert errors == sorted(errors, reverse=True) and errors[-1] < 2 and rows[-1]["spearman"] > 0.99


@pytest.mark.skipif(not CNR.exists(), reason=f"{CNR} is not there")
def test_a_real_web_graph_is_ranked_as_promised():
    """Issue 3: sweep, endowment-free, 10 N reads: <= 2.5 % on all pages, <= 5 % on the top decile, Spearman >= .999."""
    row = measure(*load(CNR))[-1]
    assert row.cash_exact and row.error_all <= 2.5 and row.error_top10 <= 5 and row.spearman >= 0.999


def test_a_missing_pagerank_is_computed(tmp_path, capsys):
    graph = standard(500, np.random.default_rng(2))
    without = saved(tmp_path / "a.npz", graph)
    given = saved(tmp_path / "b.npz", graph, pagerank085=pagerank(graph).rank)
    found = [json.loads(said(capsys, "--graph", path, "--json", "--reads", 3)[1].out) for path in (without, given)]
    for row, other in zip(*found, strict=True):
        assert [row[name] for name in FIELDS[:4]] == pytest.approx([other[name] for name in FIELDS[:4]], rel=1e-6)
    np.testing.assert_allclose(reference(graph), normalise(pagerank(graph).rank), rtol=1e-9)


@pytest.mark.parametrize(
    ("reads", "points"), [(10, [1, 2, 5, 10]), (1, [1]), (0.5, [0.5]), (3, [1, 2, 3]), (12.5, [1, 2, 5, 10, 12.5])]
)
def test_a_row_at_each_point_up_to_the_end(reads, points):
    assert [row.reads_per_page for row in measure(cycle(64), reads=reads)] == points


@pytest.mark.parametrize("select", names.SELECTORS)
@pytest.mark.parametrize("history", ["static", "window:8", "edge:16", "improved:8", "interpolation:16", "adaptive"])
def test_every_choice_comes_near(select, history):
    rows = measure(standard(400, np.random.default_rng(3)), select=select, history=history, reads=20)
    assert rows[-1].cash_exact and rows[-1].spearman > 0.8 and rows[-1].error_top10 < 25
    assert (rows[-1].select, rows[-1].history) == (select, history)


def test_random_reads_can_be_repeated():
    graph = standard(300, np.random.default_rng(4))
    rows = [measure(graph, select="random", seed=seed, reads=2)[-1].error_all for seed in (1, 1, 2)]
    assert rows[0] == rows[1] != rows[2]


def test_without_numba_the_twin_gives_the_same(monkeypatch):
    graph = standard(200, np.random.default_rng(5))
    fast = measure(graph, reads=2)
    monkeypatch.setattr(opic_measure, "machine", lambda: simulate.advance)
    for row, other in zip(measure(graph, reads=2), fast, strict=True):
        assert row.as_json() == {**other.as_json(), **{k: pytest.approx(getattr(other, k)) for k in FIELDS[1:4]}}


def test_progress_ends_at_the_end():
    heard = []
    measure(tiny(), reads=3, watch=heard.append)
    assert heard == sorted(heard) and heard[-1] == 1.0


def test_people_get_a_table(tmp_path, capsys):
    code, out = said(capsys, "--graph", saved(tmp_path / "g.npz", tiny()))
    assert code == 0 and out.out == table(measure(tiny())) + "\n" and out.out.count("exact") == 4


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        ({"indices": [0]}, "no array 'indptr'"),
        ({"indptr": [0, 1]}, "no array 'indices'"),
        ({"indptr": [0, 1], "indices": [7]}, "pages 0..n-1"),
        ({"indptr": [0, 2], "indices": [0]}, "n \\+ 1 rising offsets"),
        ({"indptr": [0.0, 1.0], "indices": [0]}, "whole numbers"),
        ({"indptr": [[0, 1]], "indices": [0]}, "row of whole numbers"),
        ({"indptr": [0], "indices": np.empty(0, np.int64)}, "without pages"),
        ({"indptr": [0, 1], "indices": [0], "pagerank085": [1.0, 2.0]}, "pagerank085"),
        ({"indptr": [0, 1], "indices": [0], "pagerank085": [0.0]}, "pagerank085"),
        ({"indptr": [0, 1], "indices": [0], "pagerank085": [np.nan]}, "pagerank085"),
    ],
)
def test_a_file_that_is_no_graph_is_refused(tmp_path, arrays, text):
    np.savez(tmp_path / "g.npz", **{name: np.array(values) for name, values in arrays.items()})
    with pytest.raises(InputError, match=text):
        load(tmp_path / "g.npz")


def test_pickles_and_other_files_are_refused(tmp_path):
    np.savez(tmp_path / "pickled.npz", indptr=np.array([{}], dtype=object), indices=np.array([0]))
    (tmp_path / "text.npz").write_text("indptr")
    np.save(tmp_path / "one.npy", np.zeros(3))
    (tmp_path / "cut.npz").write_bytes((saved(tmp_path / "g.npz", tiny())).read_bytes()[:200])
    for name in ("pickled.npz", "text.npz", "one.npy", "cut.npz", "nowhere.npz", "."):
        with pytest.raises(InputError, match="not an"):
            load(tmp_path / name)


@pytest.mark.parametrize(
    "wrong",
    [
        ("--select", "heap"),
        ("--history", "fog"),
        ("--history", "window:0"),
        ("--reads", "0"),
        ("--reads", "nan"),
        ("--reads", "1e9"),
        ("--seed", "-1"),
    ],
)
def test_bad_choices_get_one_line_and_exit_code_2(tmp_path, capsys, wrong):
    code, out = said(capsys, "--graph", saved(tmp_path / "g.npz", tiny()), *wrong)
    assert code == 2 and out.out == "" and out.err.startswith("xyro: --") and out.err.count("\n") == 1


def header(shape):
    text = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({shape},), }}".encode()
    return b"\x93NUMPY\x01\x00" + (len(text) + 1).to_bytes(2, "little") + text + b"\n"


def zipped(path, indptr, name="indptr.npy"):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(name, indptr)
        file.writestr("indices.npy", header(0))
    return path


def marked(path, local, central, value):
    """The zip with this 16-bit field set in all its headers."""
    data = bytearray(path.read_bytes())
    for start, offset in ((b"PK\3\4", local), (b"PK\1\2", central)):
        at = data.find(start)
        while at >= 0:
            data[at + offset : at + offset + 2] = value.to_bytes(2, "little")
            at = data.find(start, at + 4)
    path.write_bytes(data)


BROKEN = {
    "more than there is RAM": lambda path: zipped(path, header(10**15)),
    "more than there are numbers": lambda path: zipped(path, header(10**30)),
    "an open bracket": lambda path: zipped(path, b"\x93NUMPY\x01\x00\x08\x00{{{{{{{{"),
    "a long header": lambda path: zipped(path, b"\x93NUMPY\x02\x00\x00\x00\x10\x00" + b"(" * (1 << 20)),
    "no array": lambda path: zipped(path, b"whatever"),
    "no array, no suffix": lambda path: zipped(path, b"whatever", "indptr"),
    "encrypted": lambda path: marked(zipped(path, header(1) + bytes(8)), 6, 8, 1),
    "packed in an unknown way": lambda path: marked(zipped(path, header(1) + bytes(8)), 8, 10, 99),
}


@pytest.mark.parametrize("make", BROKEN.values(), ids=BROKEN)
def test_a_file_that_is_broken_on_purpose_is_told_in_a_line(tmp_path, capsys, make):
    make(tmp_path / "g.npz")
    code, out = said(capsys, "--graph", tmp_path / "g.npz", "--json")
    assert (
        code == 2 and out.out == "" and out.err.startswith(f"xyro: {tmp_path / 'g.npz'}: ") and out.err.count("\n") == 1
    )


@pytest.mark.parametrize("large", [np.inf, 1e308])
def test_a_known_rank_of_no_finite_sum_is_refused(tmp_path, capsys, large):
    """It made JSON that is none: NaN and Infinity."""
    path = saved(tmp_path / "g.npz", tiny(), pagerank085=np.array([1.0, large, large, 1.0, 1.0]))
    code, out = said(capsys, "--graph", path, "--json")
    assert code == 2 and out.out == "" and "pagerank085" in out.err


def test_what_needs_more_ram_than_there_is_is_told_in_a_line(tmp_path, capsys):
    path = saved(tmp_path / "g.npz", cycle(10**6))
    code, out = said(capsys, "--graph", path, "--history", "window:65536", "--json")
    assert code == 3 and out.out == "" and "more RAM" in out.err and out.err.count("\n") == 1


def test_a_wrong_selector_is_told_by_the_name_of_its_option(tmp_path, capsys):
    code, out = said(capsys, "--graph", saved(tmp_path / "g.npz", tiny()), "--select", "heap")
    assert code == 2 and out.err.startswith("xyro: --select 'heap': one of sweep")


def test_the_table_of_the_changing_graph_names_what_the_mean_does_not_meet():
    cells = [Cell("paper", 0.1, "all", 10.0, found, found - 1.0, found + 1.0) for found in (10.5, 11.5, 20.0)]
    assert [cell.row()["verdict"] for cell in cells] == ["within 10 %", "within a seed", "off"]
    lines = "\n".join(opic_text._table([cell.row() for cell in cells]))
    assert "3 numbers" in lines and "19 to 21" in lines and "10.5 to 12.5" in lines and "9.5 to 11.5" not in lines
