"""The figures: small runs of every part, what is kept between runs, texts and plots."""

import json
from collections import Counter

import numpy as np
import pytest

from xyro.lab import work_parts
from xyro.lab.opic import changing_graphs, names, opic_figures, opic_lab, paper_claims, strategies
from xyro.lab.opic import history_policies as opic_policies
from xyro.lab.opic import opic_text as opic_text
from xyro.lab.opic.histories import Adaptive, Interpolation, Static
from xyro.lab.opic.residual import residual, residuals
from xyro.lab.opic.selectors import SweepSelector
from xyro.lab.reference_rank import reference
from xyro.opic.contest import LADDER
from xyro.opic.graph import cycle, from_links, standard
from xyro.opic.pagerank import pagerank

pytestmark = pytest.mark.long

TINY = opic_figures.Scale(1000, (1,), 600, (1, 2), 600, (0.0, 0.1))


def deaf(share):
    """Nobody watches."""


# Parts


def test_a_part_is_computed_once(tmp_path):
    calls = Counter()

    def part(watch):
        calls["part"] += 1
        watch(0.5)
        return {"found": [1.5, None]}

    for _ in range(3):
        assert work_parts.compute({"a part": part}, {"n": (1, 2)}, tmp_path, show=False) == {
            "a part": {"found": [1.5, None]}
        }
    assert calls["part"] == 1 and [path.name for path in (tmp_path / "parts").iterdir()] == ["a-part.json"]


def test_other_settings_and_damaged_files_are_computed_anew(tmp_path):
    values = iter(range(9))
    work = {"x": lambda watch: next(values)}
    assert work_parts.compute(work, {"n": 1}, tmp_path, show=False) == {"x": 0}
    assert work_parts.compute(work, {"n": 2}, tmp_path, show=False) == {"x": 1}
    for damage in ("", "{", "[]", '{"key": {}}'):
        (tmp_path / "parts" / "x.json").write_text(damage)
        found = work_parts.compute(work, {"n": 2}, tmp_path, show=False)
        assert found == work_parts.compute(work, {"n": 2}, tmp_path, show=False)
    assert found == {"x": 5}


def test_an_interrupted_run_goes_on_where_it_was(tmp_path):
    done = []

    def stops(watch):
        raise KeyboardInterrupt

    first = {"a": lambda watch: done.append("a"), "b": stops}
    with pytest.raises(KeyboardInterrupt):
        work_parts.compute(first, {}, tmp_path, show=False)
    work_parts.compute({**first, "b": lambda watch: done.append("b")}, {}, tmp_path, show=False)
    assert done == ["a", "b"]


def test_a_part_keeps_its_result_when_settings_of_others_change(tmp_path, monkeypatch):
    values = iter(range(9))
    work = {"x": work_parts.KeyedPart({"seed": 1}, lambda watch: next(values))}
    assert work_parts.compute(work, {"n": 1}, tmp_path, show=False) == {"x": 0}
    assert work_parts.compute(work, {"n": 2}, tmp_path, show=False) == {"x": 0}
    monkeypatch.setattr(work_parts, "VERSION", work_parts.VERSION + 1)
    assert work_parts.compute(work, {"n": 2}, tmp_path, show=False) == {"x": 1}


def test_a_place_that_cannot_be_written_is_refused_in_one_line(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert opic_lab.main(["patterns", "-o", str(tmp_path / "file" / "out")]) == 2
    assert "no directory for results" in capsys.readouterr().err


def test_a_stopped_command_says_how_to_go_on(monkeypatch, capsys):
    def stops(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(opic_figures, "figures", stops)
    assert opic_lab.main(["--quick"]) == 130 and "goes on" in capsys.readouterr().err


def test_progress_is_shown_on_standard_error(tmp_path, capsys):
    work_parts.compute({"the part": lambda watch: 1}, {}, tmp_path, show=True)
    out = capsys.readouterr()
    assert out.out == "" and "the part" in out.err


# Graphs that change


def test_a_change_halves_or_doubles_the_in_links_of_its_page_only():
    graph, rng = standard(2000, np.random.default_rng(1)), np.random.default_rng(2)
    pages = np.argsort(graph.in_degree)[-60:]
    ratio = changing_graphs.change(graph, pages, rng).in_degree / graph.in_degree
    others = np.setdiff1d(np.arange(2000), pages)
    assert (ratio[others] == 1).all()
    doubled = ratio[pages] == 2
    before, after = graph.in_degree[pages], np.rint(ratio * graph.in_degree)[pages]
    assert 8 < doubled.sum() < 35 and (after[~doubled] == before[~doubled] - before[~doubled] // 2).all()


def test_halved_often_enough_a_page_has_no_links():
    left = {d: set() for d in (1, 2, 3)}
    for d, seed in ((d, seed) for d in left for seed in range(20)):
        graph = from_links(4, np.arange(1, d + 1), np.zeros(d, np.int64))
        left[d].add(int(changing_graphs.change(graph, np.array([0]), np.random.default_rng(seed)).in_degree[0]))
    assert left == {1: {0, 2}, 2: {1, 4}, 3: {2, 6}}


@pytest.mark.parametrize(("n", "rate"), [(1000, 0.1), (1000, 1.0), (37, 0.5), (600, 0.001), (50, 0.0)])
def test_pages_that_change_are_spread_evenly_and_no_page_twice_per_n_reads(n, rate):
    steps = changing_graphs.drawn(n, rate, np.random.default_rng(1))
    rounds = [[next(steps) for _ in range(changing_graphs.STEPS)] for _ in range(3)]
    for parts in rounds:
        pages, sizes = np.concatenate(parts), {part.size for part in parts}
        assert pages.size == np.unique(pages).size == round(rate * n)
        assert max(sizes) - min(sizes) <= 1
    assert n * rate < 10 or not np.array_equal(*(np.concatenate(parts) for parts in rounds[:2]))


def test_the_links_that_a_halved_page_keeps_are_drawn_evenly():
    star, kept = star_into_one(40), np.zeros(40)
    for seed in range(300):
        after = changing_graphs.change(star, np.array([0]), np.random.default_rng(seed))
        if after.in_degree[0] == 20:
            kept[np.flatnonzero(after.out_degree)] += 1
    assert kept.sum() > 20 * 150 and kept.min() > 0.7 * kept.mean()


def star_into_one(n):
    """Every page links to page 0."""
    return from_links(n, np.arange(n), np.zeros(n, np.int64))


def test_short_windows_follow_a_web_that_changes_and_the_static_history_one_that_does_not():
    graph = standard(2000, np.random.default_rng(1))
    scores = {}
    for rate in (0.0, 0.3):
        policies = [Static(graph.n), Interpolation(graph.n, 4.0)]
        scores[rate] = changing_graphs.follow(graph, SweepSelector(), policies, rate, np.random.default_rng(3))
    assert scores[0.0][0].all < scores[0.0][1].all and scores[0.3][1].all < 0.5 * scores[0.3][0].all


@pytest.mark.parametrize("rate", [0.0, 0.01, 0.1])
def test_adaptive_t_is_nearly_the_best_fixed_t_at_every_rate_of_change(rate):
    """Issue 3: no worse than 1.25 times the best."""
    graph = standard(10_000, np.random.default_rng(1))
    policies = [Adaptive(graph.n), *(names.history(f"interpolation:{window}", graph.n) for window in LADDER)]
    adaptive, *fixed = changing_graphs.follow(graph, SweepSelector(), policies, rate, np.random.default_rng(3))
    assert adaptive.all <= 1.25 * min(score.all for score in fixed)


# The prototype's table of changing graphs


def test_the_table_has_every_cell_of_section_b():
    assert len(opic_policies.TABLE) == 15 * 7 + 3 and opic_policies.TABLE["window 8", 0.1] == (35.0, 18.0)
    assert {policy for policy, _ in opic_policies.TABLE} <= opic_policies.POLICIES.keys()


@pytest.mark.parametrize(
    ("seeds", "verdict"),
    [((10.0,), "within 10 %"), ((9.1, 10.9), "within 10 %"), ((8.5, 8.9), "off"), ((9.2, 15.0), "within a seed"),
     ((7.0, 8.0, 20.0), "within a seed"), ((12.0, 15.0), "off")],
)  # fmt: skip
def test_a_cell_is_judged_by_the_mean_and_then_by_its_seeds(seeds, verdict):
    cell = opic_policies.Cell("p", 0.1, "all", 10.0, float(np.mean(seeds)), min(seeds), max(seeds))
    assert cell.verdict == verdict


def test_cells_are_compared_where_there_is_a_run():
    cells = opic_policies.compare({"0.01": {"window 8": {"all": [6.0, 7.0], "top": [4.5]}}})
    assert [(cell.pages, cell.wanted, cell.found, cell.least, cell.limit) for cell in cells] == [
        ("all", 6.8, 6.5, 6.0, 7.0),
        ("top", 4.5, 4.5, 4.5, 4.5),
    ]


def test_naive_windows_are_divided_by_their_length_from_the_start():
    naive = opic_policies.NaiveWindow(2, 8.0, endowment=0.0)
    naive.measure(np.array([0, 1]), np.array([1.0, 3.0]), 2.0)
    assert naive.estimate(np.zeros(2), 4.0) == pytest.approx([1 / 8, 3 / 8])


@pytest.mark.parametrize("policy", ["interpolation 1", "interpolation 2", "interpolation 4"])
def test_section_b_is_met_by_a_graph_a_fifth_as_large(moving, policy):
    assert moving[policy][0] == pytest.approx(opic_policies.TABLE[policy, 0.03][0], rel=0.15)


@pytest.fixture(scope="module")
def moving():
    """3 % of 20,000 pages change per N reads: the errors of short windows hardly depend on N."""
    return opic_figures.changing(20_000, 0.03, "greedy", 1, deaf)


# Residuals


def test_the_residual_of_the_truth_is_nothing_and_sums_bound_sums():
    graph = standard(300, np.random.default_rng(1))
    truth = reference(graph)
    assert np.abs(residual(graph, truth)).max() < 1e-8
    wrong = truth + np.random.default_rng(2).normal(0, 0.1, graph.n)
    assert np.abs(wrong - truth).sum() <= np.abs(residual(graph, wrong)).sum() / 0.15
    assert residual(cycle(5), np.full(5, 2.0)) == pytest.approx(np.full(5, -0.15))
    assert reference(graph) == pytest.approx(pagerank(graph).rank * graph.n, rel=1e-8)


def test_residuals_are_no_errors():
    found = residuals(500, 1, deaf)
    assert found["residual x G"] <= 2
    assert all(row["above"] > 0.1 and row["of bound"] <= 1 for row in found["estimators"].values())


# The whole


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("opic")
    return out, opic_figures.figures(out, TINY, show=False)


def test_everything_is_written(whole):
    out, results = whole
    files = {path.name for path in out.iterdir()}
    assert files == {"parts", "figures.json", "claims.txt", *(f"figure{k}.png" for k in range(2, 7))}
    assert all((out / f"figure{k}.png").read_bytes().startswith(b"\x89PNG") for k in range(2, 7))
    assert json.loads((out / "figures.json").read_text()) == json.loads(json.dumps(results))


def test_each_claim_is_judged_in_words_and_numbers(whole):
    out, results = whole
    text = (out / "claims.txt").read_text()
    assert len(results["claims"]) == 27
    for claim in results["claims"]:
        assert claim["says"] in text and claim["source"] and any(digit in claim["found"] for digit in "0123456789")
    ours = [claim for claim in results["claims"] if claim["source"] == paper_claims.OURS]
    assert len(ours) == 5 and not any(claim["quote"] for claim in ours)
    assert all(claim["quote"] for claim in results["claims"] if claim not in ours)
    assert {claim["says"] for claim in results["claims"]} >= paper_claims.QUOTES.keys() | paper_claims.CHECKED.keys()
    counts = [sum(claim["holds"] for claim in part) for part in (ours, results["claims"])]
    told = "(1 by a sentence that was checked, 8 second hand, 13 ours to read)"
    assert (
        f"{counts[1] - counts[0]} of 22 claims of the papers hold {told}; {counts[0]} of 5 claims of ours hold" in text
    )
    holds = {claim["says"]: claim["holds"] for claim in results["claims"]}
    assert holds["Random is clearly the worst strategy"]
    assert not holds["offline converges almost like Cycle and Greedy"]
    assert holds["small windows adapt, big ones are precise"]
    assert not holds["the first cash C_0 does not matter for the error on the way"]
    assert holds["wherever the first cash C_0 lay, the same limit is reached, as 1/G"]
    assert holds["the residual is, strictly speaking, not the error"]


def test_verdicts_follow_the_numbers(whole):
    """Every claim but those of mathematics can come out the other way."""
    _, results = whole
    turned = {**results, "strategies": turn_over(results["strategies"])}
    turned |= {
        name: turn_over(results[name])
        for name in ("other graphs", "first cash", "cash gathers", "never read", "residual")
    }
    turned["changes"] = {
        select: {rate: turn_over(row) for rate, row in rates.items()} for select, rates in results["changes"].items()
    }
    before = {claim.says: claim.holds for claim in paper_claims.claims(results)}
    changed = {claim.says for claim in paper_claims.claims(turned) if claim.holds != before[claim.says]}
    assert len(changed) >= 15


def turn_over(tree):
    """Every measured number x as 1 / x, so that what was best is worst."""
    if isinstance(tree, dict):
        kept = ("n", "seeds", "reads", "iterations to 1e-4")
        return {key: value if key in kept else turn_over(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [turn_over(value) for value in tree]
    return 1 / tree if tree else tree


def test_a_second_run_computes_nothing(whole, monkeypatch):
    out, results = whole

    def never(part, watch):
        raise AssertionError("computed again")

    monkeypatch.setattr(work_parts.KeyedPart, "__call__", never)
    again = opic_figures.figures(out, TINY, show=False)
    assert again == results


def test_the_acceptance_table_is_met_at_ten_thousand_pages():
    """Algorithms.md H on one seed; the laboratory's command runs several, and 100,000 pages."""
    rows = strategies.acceptance(strategies.strategies(10_000, [1], deaf))
    assert len(rows) == 16 and all(row["met"] for row in rows)
    assert strategies.acceptance({"n": 77}) == []


def test_acceptance_tells_better_from_worse():
    results = {"strategies": {"n": 1}, "claims": [], "table B": [], "acceptance": [
        {"what": "a", "wanted": 10.0, "found": found, "better": found < 9, "met": found <= 11} for found in (8, 10, 12)
    ]}  # fmt: skip
    text = opic_text.page(results)
    assert "2 of 3 met" in text and text.count("better") == 1 and text.count("NOT MET") == 1


@pytest.mark.parametrize(
    "wrong",
    [
        ["patterns", "--pages", "3"],
        ["confidence", "--pages", "3"],
        ["rank", "--pages", "9"],
        ["rank", "--memory", "-1"],
    ],
)
def test_sizes_out_of_range_are_refused(wrong, capsys):
    assert opic_lab.main(wrong) == 2 and capsys.readouterr().err.startswith("xyro: --")


def test_the_confidence_of_the_crawl_is_a_command(capsys):
    assert opic_lab.main(["confidence", "--pages", "500"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["laws"].keys() >= {"static", "interpolation"} and len(said["test"]) == 5
    assert opic_lab.main(["confidence", "--graph", "/nowhere.npz"]) == 2 and "/nowhere.npz" in capsys.readouterr().err


def test_without_the_extra_a_line_says_what_to_install(monkeypatch, capsys):
    def missing(*arguments, **options):
        raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")

    monkeypatch.setattr(opic_figures, "pattern_files", missing)
    assert (
        opic_lab.main(["patterns"]) == 2
        and "matplotlib: not installed; `pip install 'xyro[lab]'`" in capsys.readouterr().err
    )
