"""Ranks of a whole crawl against dense linear algebra over the web it read, whatever its partitions and the way."""

from __future__ import annotations

import os
import tracemalloc
from itertools import pairwise

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.frontier.rig import Crawl, failed, report, url
from xyro.configs.schema import CrawlSettings as CrawlSettings
from xyro.configs.schema import Settings, StoreSettings
from xyro.metadata.states import State
from xyro.opic import matrix as opic_matrix
from xyro.opic import rank_both
from xyro.plugins.rank import rank_files, rank_report
from xyro.plugins.rank import rank_input as rank_data
from xyro.plugins.rank.rank_comparison import compare, spearman
from xyro.plugins.rank.rank_files import RankFiles
from xyro.plugins.rank.rank_input import pieces, unpacked
from xyro.plugins.rank.rank_report import rows, sentences, summary, table
from xyro.plugins.rank.ranking import RankRequest, rank
from xyro.service.views.views import Views
from xyro.wire.errors import InputError, MachineError
from xyro.wire.messages import Kind

ANY = Settings(crawl=CrawlSettings(scope="any"))
SIZE, HOSTS = 40, 7
URLS = [url(number % HOSTS, number) for number in range(SIZE)]
rng = np.random.default_rng(7)
LINKS = [sorted({(page + 1) % SIZE, *rng.integers(SIZE, size=rng.integers(1, 6)).tolist()}) for page in range(SIZE)]
LINKS[11] = []
XML = np.array([page % 5 == 2 for page in range(SIZE)])
GONE = 18
"""answers 404: it links nowhere"""
C = 0.85


def dense(links=LINKS):
    full = np.zeros((SIZE, SIZE))
    for page, children in enumerate(links):
        full[page, children] = 1.0
    full[GONE] = 0.0
    return full


def page_of(order):
    page = URLS.index(order.url)
    if page == GONE:
        return failed(order, 0.0, "http-404", status=404)
    return report(order, order_time(order), [URLS[child] for child in LINKS[page]], kind=kind_of(page))


def order_time(order):
    return 1_700_000_000.0


def kind_of(page):
    return Kind.XML if XML[page] else Kind.HTML


@pytest.fixture(scope="module", params=[1, 4], ids=["1 partition", "4 partitions"])
def crawl(request):
    crawl = Crawl.in_memory(request.param, settings=ANY)
    crawl.submit(URLS[0], URLS[12])
    crawl.run(page_of)
    return crawl


def files_of(crawl, folder, links=True):
    with crawl.views() as views:
        files = RankFiles(folder)
        files.take(unpacked(pieces(views, links)))
        return files


def ranked(crawl, folder, **asked):
    request = RankRequest(**{"epsilon": 1e-13, **asked})
    return rank(request, files_of(crawl, folder / "crawl", request.links), folder / "work")


def in_order(found, values=None):
    """float64[SIZE], by the number of the page in URLS."""
    values = found.rank if values is None else values
    by_url = dict(zip(found.files.urls, values.tolist(), strict=True))
    assert sorted(by_url) == sorted(URLS)
    return np.array([by_url[one] for one in URLS])


def stochastic(full):
    sums = full.sum(axis=1, keepdims=True)
    return np.divide(full, sums, out=np.zeros_like(full), where=sums > 0)


def true_rank(full, jump=None, damping=C):
    """PageRank of mean 1 with uniform dangling redistribution, by numpy's solver."""
    jump = np.full(SIZE, 1 / SIZE) if jump is None else jump / jump.sum()
    step = stochastic(full)
    step[full.sum(axis=1) == 0] = 1 / SIZE
    found = np.linalg.solve(np.eye(SIZE) - damping * step.T, (1 - damping) * jump)
    return found / found.mean()


def true_interest(full, targets, reading):
    """P1 5.2: (a) of the reversed graph, scaled by in-degree; (b) mean over children."""
    step = stochastic(full.T).T if reading == "reversed" else stochastic(full)
    found = np.linalg.solve(np.eye(SIZE) - C * step, (1 - C) * targets.astype(float))
    html = ~XML & (np.arange(SIZE) != GONE)
    return found / found[html].mean()


@pytest.mark.parametrize(
    ("asked", "full"),
    [
        ({}, dense()),
        ({"edges": "out"}, dense().T),
        ({"edges": "both"}, dense() + dense().T),
        ({"memory": 100}, dense()),
        ({"workers": 3}, dense()),
        ({"workers": 3, "asynchronous": True}, dense()),
    ],
    ids=str,
)
def test_pagerank_is_that_of_the_web(crawl, tmp_path, asked, full):
    """Gauss-Seidel, on mapped files, and by workers in step and out of step."""
    found = ranked(crawl, tmp_path, method="pagerank", **asked)
    np.testing.assert_allclose(in_order(found), true_rank(full), atol=1e-6)
    assert found.rank.mean() == pytest.approx(1) and found.steps[-1].residual <= 1e-13
    if "workers" in asked:
        assert found.exchanged["bytes"] > 1000 and found.exchanged["rounds"] > 10


def test_focus_is_where_jumps_go(crawl, tmp_path):
    found = ranked(crawl, tmp_path, method="pagerank", focus=("*/p1*", "http://h3.*"), damping=0.5)
    jump = np.array([float("/p1" in one or "//h3." in one) for one in URLS])
    np.testing.assert_allclose(in_order(found), true_rank(dense(), jump, 0.5), atol=1e-6)
    assert found.compared is None


@pytest.mark.parametrize("reading", ["reversed", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
def test_interest_leads_to_xml(crawl, tmp_path, reading, weighted):
    found = ranked(crawl, tmp_path, method="interest", reading=reading, weighted=weighted)
    targets = XML * (true_rank(dense()) if weighted else 1.0)
    np.testing.assert_allclose(in_order(found), true_interest(dense(), targets, reading), atol=1e-6)
    assert {row["kind"] for row in rows(found)} == {"HTML"}


@pytest.mark.parametrize("reading", ["reversed", "mean"])
def test_both_in_one_scan(crawl, tmp_path, reading):
    found = ranked(crawl, tmp_path, method="both", reading=reading)
    np.testing.assert_allclose(in_order(found), true_rank(dense()), atol=1e-6)
    np.testing.assert_allclose(in_order(found, found.interest), true_interest(dense(), XML, reading), atol=1e-6)


def test_interest_in_a_focus_is_of_all_pages(crawl, tmp_path):
    found = ranked(crawl, tmp_path, method="interest", reading="mean", focus=(URLS[5],))
    wanted = true_interest(dense(), np.eye(SIZE)[5], "mean")
    np.testing.assert_allclose(in_order(found), wanted / wanted.mean(), atol=1e-6)
    assert len(list(rows(found))) == SIZE


def test_opic_is_the_importance_of_now(crawl, tmp_path):
    found = ranked(crawl, tmp_path, method="opic")
    with crawl.views() as views:
        wanted = {row["url"]: row["importance"] for row in views.pages()}
    np.testing.assert_allclose(in_order(found), [wanted[one] for one in URLS], atol=1e-5)
    rank_report = [row["rank"] for row in rows(found)]
    assert rank_report == sorted(rank_report, reverse=True) and len(rank_report) == SIZE


def test_the_summary_says_how_near_the_crawl_came(crawl, tmp_path):
    found = ranked(crawl, tmp_path, method="pagerank")
    said = summary(RankRequest(method="pagerank", epsilon=1e-13), found)
    truth, ours = in_order(found), in_order(found, np.asarray(found.files.importance))
    assert said["online_error"] == pytest.approx(100 * np.mean(np.abs(ours / ours.mean() - truth) / truth), abs=1e-3)
    assert (said["pages"], said["links"], said["converged"]) == (SIZE, int(dense().sum()), True)
    assert "rank correlation" in sentences(said)[-1]
    best = list(rows(found, 3))
    assert table(best).count("\n") == 3 and best[0]["url"] == URLS[int(np.argmax(truth))]
    assert [row["rank"] for row in best] == sorted(truth, reverse=True)[:3] or np.allclose(
        [row["rank"] for row in best], sorted(truth, reverse=True)[:3]
    )


def test_few_iterations_are_said_not_to_converge(crawl, tmp_path):
    found = ranked(crawl, tmp_path, method="pagerank", iterations=2)
    said = summary(RankRequest(method="pagerank", epsilon=1e-13, iterations=2), found)
    assert said["iterations"] == 2 and not said["converged"] and "NOT converged" in sentences(said)[0]


def test_pages_that_their_owner_has_not_heard_of_count_all_the_same(tmp_path):
    """Transfers on their way: four partitions rank as one does."""
    found = []
    for partitions in (1, 4):
        crawl = Crawl.in_memory(partitions, settings=ANY)
        crawl.submit(URLS[0])
        crawl.turn()
        crawl.answer(crawl.order(URLS[0]), [*URLS[1:9], *URLS[1:4]])
        crawl.turn()
        assert partitions == 1 or crawl.wire
        one = ranked(crawl, tmp_path / str(partitions), method="pagerank")
        found.append(dict(zip(one.files.urls, one.rank.tolist(), strict=True)))
    assert found[0] == pytest.approx(found[1]) and set(found[0]) == set(URLS[:9])


def test_a_url_whose_fingerprint_is_another_s_is_still_found(tmp_path, monkeypatch):
    monkeypatch.setattr(rank_files, "xxh3_64_intdigest", lambda data: len(data) % 2)
    crawl = Crawl.in_memory(4, settings=ANY)
    crawl.submit(URLS[0], URLS[12])
    crawl.run(page_of)
    found = ranked(crawl, tmp_path, method="pagerank")
    np.testing.assert_allclose(in_order(found), true_rank(dense()), atol=1e-6)


def test_blocks_of_links_are_cut_where_they_are_many(crawl, tmp_path, monkeypatch):
    monkeypatch.setattr(rank_files, "LINKS_AT_ONCE", 10)
    monkeypatch.setattr(rank_data, "PAGES", 7)
    monkeypatch.setattr(rank_data, "ROWS", 3)
    found = ranked(crawl, tmp_path, method="pagerank")
    assert len(list(found.files.rows())) > 3
    np.testing.assert_allclose(in_order(found), true_rank(dense()), atol=1e-6)


@pytest.mark.parametrize(
    "asked",
    [
        {"focus": ("*",)},
        {"method": "interest", "edges": "both"},
        {"method": "pagerank", "reading": "mean"},
        {"method": "both", "weighted": True},
        {"method": "interest", "workers": 2},
        {"method": "pagerank", "workers": 2, "memory": 5},
        {"method": "pagerank", "asynchronous": True},
    ],
)
def test_options_that_do_not_go_together_are_refused(asked):
    with pytest.raises(InputError, match="--"):
        RankRequest(**asked)


def test_what_cannot_be_ranked_says_what_to_do(crawl, tmp_path):
    with pytest.raises(InputError, match="no known URL fits"):
        ranked(crawl, tmp_path / "a", method="pagerank", focus=("news",))
    empty = Crawl.in_memory(settings=ANY)
    with pytest.raises(InputError, match="no page is known"):
        ranked(empty, tmp_path / "b", method="pagerank")
    empty.submit(URLS[0])
    empty.turn()
    with pytest.raises(InputError, match="no XML page was read"):
        ranked(empty, tmp_path / "c", method="interest")
    assert ranked(empty, tmp_path / "d", method="pagerank").rank.tolist() == [1.0]


def test_a_crawl_without_links_has_only_its_own_importance(tmp_path):
    crawl = Crawl.in_memory(settings=Settings(crawl=CrawlSettings(scope="any"), store=StoreSettings(links=False)))
    crawl.submit(URLS[0])
    crawl.turn()
    assert ranked(crawl, tmp_path / "a", method="opic").rank.size == 1
    with pytest.raises(InputError, match="set it to true"):
        ranked(crawl, tmp_path / "b", method="pagerank")


# Streams


def stream(crawl):
    with crawl.views() as views:
        return b"".join(pieces(views, True))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 5000), max_size=6))
def test_a_stream_may_be_cut_anywhere_on_its_way(crawl, cuts):
    data = stream(crawl)
    ends = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    assert list(unpacked(data[a:b] for a, b in pairwise(ends))) == list(unpacked([data]))


@pytest.mark.parametrize("keep", [0, 1, 100, -1, -5])
def test_a_stream_that_ends_too_soon_is_refused(crawl, keep):
    with pytest.raises(MachineError, match="ask again"):
        list(unpacked([stream(crawl)[:keep]]))


def test_pieces_that_do_not_fit_are_refused(crawl, tmp_path):
    parts = list(unpacked([stream(crawl)]))
    without = [part for part in parts if part[0] != "pages"]
    wild = [*parts, ["links", 0, np.array([0], "<u4").tobytes(), np.array([1], "<u4").tobytes(), b"\xff\xff\xff\x00"]]
    for number, given_parts in enumerate((without, wild)):
        with pytest.raises(MachineError):
            RankFiles(tmp_path / str(number)).take(given_parts)
    with pytest.raises(MachineError, match="cannot be read"):
        list(unpacked([b"\xc1" + msgpack.packb(["end"])]))


def node_streams(crawl, *nodes):
    """The streams of nodes that have these partitions each, one after the other."""
    with crawl.views() as views:
        return b"".join(part for own in nodes for part in pieces(Views([views.views[q] for q in own]), True, 1.0))


@pytest.mark.parametrize("nodes", [[(0, 1), (2, 3)], [(3, 1), (0,), (2,)]])
def test_the_streams_of_nodes_are_ranked_as_that_of_one_process(tmp_path, nodes):
    crawl = Crawl.in_memory(4, settings=ANY)
    crawl.submit(URLS[0], URLS[12])
    crawl.run(page_of)
    files = RankFiles(tmp_path)
    files.take(unpacked([node_streams(crawl, *nodes)]))
    np.testing.assert_allclose(in_order(rank(RankRequest("pagerank"), files, tmp_path)), true_rank(dense()), atol=1e-6)


@pytest.mark.parametrize("nodes", [[(0, 1)], [(0, 1), (1, 2, 3, 4)], [(0, 1, 2, 3)]])
def test_nodes_that_have_not_all_partitions_are_refused(tmp_path, nodes):
    crawl = Crawl.in_memory(5, settings=ANY)
    crawl.submit(URLS[0], URLS[12])
    crawl.run(page_of)
    with pytest.raises(MachineError, match="ask again"):
        RankFiles(tmp_path).take(unpacked([node_streams(crawl, *nodes)]))


def test_a_node_that_goes_away_in_the_middle_is_named(crawl):
    fault = msgpack.packb(["fault", "node 2: it went away"])
    with pytest.raises(MachineError, match="node 2: it went away"):
        list(unpacked([stream(crawl)[: -len(msgpack.packb(["end"]))], fault]))


# Comparisons


def test_spearman_has_ties_at_the_mean_of_their_places():
    assert spearman(np.array([1.0, 2, 2, 3]), np.array([10.0, 20, 30, 40])) == pytest.approx(0.948683, abs=1e-6)
    assert spearman(np.arange(9.0), -np.arange(9.0)) == -1
    assert spearman(np.ones(3), np.arange(3.0)) is None and spearman(np.ones(1), np.ones(1)) is None


def test_errors_are_relative_to_the_truth_whatever_the_scale():
    said = compare(np.array([3.0, 1, 1, 1]), np.array([2.0, 2, 2, 2]))
    assert said == {"error": 50.0, "error_top10": 100.0, "spearman": None}
    assert compare(np.zeros(2), np.zeros(2))["error"] is None


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="this system promises no room on disk")
def test_a_work_file_has_its_place_on_the_disk_before_it_is_written(tmp_path):
    """`xyro rank` on a disk that filled up was killed (SIGBUS) without a word; now it says so before it writes."""
    array = rank_files.on_files(tmp_path)("a", (1000, 500), np.float64)
    assert (tmp_path / "a").stat().st_blocks * 512 >= array.nbytes == 4_000_000 and not array.any()


@pytest.mark.long
@pytest.mark.parametrize(
    ("asked", "most"),
    [
        ({"method": "pagerank"}, 12),
        ({"method": "pagerank", "focus": ("*7*",)}, 20),
        ({"method": "interest"}, 13),
        ({"method": "interest", "weighted": True}, 20),
        ({"method": "interest", "reading": "mean"}, 13),
        ({"method": "both"}, 20),
    ],
    ids=lambda asked: " ".join(map(str, asked.values())) if isinstance(asked, dict) else "",
)
def test_a_cap_on_memory_is_kept_but_for_the_result(tmp_path, monkeypatch, asked, most):
    """Traced bytes a page at the worst moment: there were 30 to 40, temporary arrays, whatever the cap."""
    size, step = 50_000, 10_000
    for module, name in (
        (rank_files, "LINKS_AT_ONCE"),
        (opic_matrix, "BATCH"),
        (rank_both, "CHUNK"),
        (rank_report, "CHUNK"),
    ):
        monkeypatch.setattr(module, name, 1 << 10)
    files, random = RankFiles(tmp_path / "crawl"), np.random.default_rng(1)

    def stream():
        head = {"partitions": 1, "sizes": [(0, size)], "damping": C, "mean": 1.0, "links": True, "plain": True}
        yield ["head", head]
        for low in range(0, size, step):
            kind = np.where(random.random(step) < 0.1, int(Kind.XML), int(Kind.HTML)).astype(np.uint8)
            urls = [f"http://a/{page}" for page in range(low, low + step)]
            stale = np.zeros(step, "<f4").tobytes()
            yield ["pages", 0, bytes([int(State.READ)]) * step, kind.tobytes(), np.ones(step).tobytes(), stale, urls]
        for low in range(0, size, 100):
            children = random.integers(size, size=200).astype("<u4")
            sources = np.arange(low, low + 100, dtype="<u4")
            yield ["links", 0, sources.tobytes(), np.full(100, 2, "<u4").tobytes(), children.tobytes()]

    files.take(stream())
    rank(RankRequest(iterations=1, **asked), files, tmp_path)  # loads what is compiled
    tracemalloc.start()
    try:
        found = rank(RankRequest(memory=0, iterations=3, **asked), files, tmp_path)
        shown = list(rows(found, 20))
        peak = tracemalloc.get_traced_memory()[1] / size
    finally:
        tracemalloc.stop()
    assert len(shown) == 20 and peak < most, f"{peak:.1f} bytes a page"
