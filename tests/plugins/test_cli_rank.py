"""`xyro rank` as a person types it: of a stopped directory and of a running crawl; nothing is left behind."""

from __future__ import annotations

import csv
import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.frontier.rig import Crawl
from tests.plugins.test_rank import SIZE, URLS, XML, dense, page_of, true_interest, true_rank
from tests.service.face import LOOPBACK, said, started, until, xyro
from xyro.configs.schema import CrawlSettings as CrawlSettings
from xyro.configs.schema import Settings
from xyro.lab.child import running
from xyro.plugins.rank.guide import NAME, read

TRUTH = dict(zip(URLS, true_rank(dense()).tolist(), strict=True))


@pytest.fixture(scope="module", params=[1, 3], ids=["1 partition", "3 partitions"])
def data(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("rank") / "data"
    crawl = Crawl.on_disk(path, request.param, settings=Settings(crawl=CrawlSettings(scope="any")))
    crawl.submit(URLS[0], URLS[12])
    crawl.run(page_of)
    crawl.close()
    return path


@pytest.fixture(autouse=True)
def no_work_files_are_left(data):
    yield
    assert not list(data.glob(".rank-*"))


def test_the_best_pages_and_how_the_crawl_compares(data):
    done = xyro("rank", "--data", data, "--method", "pagerank", "-n", "3")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[-1] for line in lines[1:]] == sorted(TRUTH, key=lambda one: -TRUTH[one])[:3]
    assert f"{SIZE} of {SIZE} pages" in done.stderr and "rank correlation" in done.stderr


@pytest.mark.parametrize(
    "way",
    [[], ["--memory", "1k"], ["--workers", "2"], ["--workers", "2", "--asynchronous"], ["--epsilon", "1e-5"]],
    ids=str,
)
def test_json_has_rows_and_residuals(data, way):
    found = said("rank", "--data", data, "--method", "pagerank", "-n", "100", *way)
    assert {row["url"]: row["rank"] for row in found["top"]} == pytest.approx(
        TRUTH, abs=1e-3 if "1e-5" in way else 1e-6
    )
    assert len(found["residuals"]) == found["iterations"] and found["residual"] == found["residuals"][-1]
    assert found["converged"] and (found.get("bytes", 0) > 0) == ("--workers" in way)


def test_files_of_all_rows(data, tmp_path):
    for form in ("csv", "parquet", "jsonl"):
        out = tmp_path / f"rank.{form}"
        done = xyro("rank", "--data", data, "--method", "both", "--format", form, "-o", out)
        assert done.returncode == 0 and not done.stdout, done.stderr
    with (tmp_path / "rank.csv").open(newline="") as file:
        by_csv = [(row["url"], float(row["rank"]), float(row["interest"])) for row in csv.DictReader(file)]
    lines = map(json.loads, (tmp_path / "rank.jsonl").read_text().splitlines())
    by_line = [(row["url"], row["rank"], row["interest"]) for row in lines]
    columns = pq.read_table(tmp_path / "rank.parquet").to_pylist()
    assert by_csv == by_line == [(row["url"], row["rank"], row["interest"]) for row in columns]
    assert {one: rank for one, rank, _ in by_csv} == pytest.approx(TRUTH, abs=1e-6)
    wanted = dict(zip(URLS, true_interest(dense(), XML, "reversed").tolist(), strict=True))
    assert {one: interest for one, _, interest in by_csv} == pytest.approx(wanted, abs=1e-6)


def test_rows_may_be_piped(data):
    done = xyro("rank", "--data", data, "--format", "jsonl")
    assert len([json.loads(line) for line in done.stdout.splitlines()]) == SIZE


def test_interest_is_kept_beside_each_store(data):
    done = xyro("rank", "--data", data, "--method", "interest", "--keep", "--epsilon", "1e-12")
    assert done.returncode == 0, done.stderr
    kept = np.concatenate([read(path / NAME, n) for n, path in enumerate(sorted(data.glob("p0*")))])
    assert np.isfinite(kept).sum() == (~XML).sum() - 1  # all HTML pages but the one that is gone
    pages = [json.loads(line) for line in xyro("export", "pages", "--data", data).stdout.splitlines()]
    by_number = {(row["id"] >> 32, row["id"] & 0xFFFF_FFFF): row for row in pages if row["kind"] == "HTML"}
    interest = dict(zip(URLS, true_interest(dense(), XML, "reversed").tolist(), strict=True))
    files = [read(path / NAME, n) for n, path in enumerate(sorted(data.glob("p0*")))]
    given = {row["url"]: float(files[p][n]) for (p, n), row in by_number.items()}
    scale = sum(given.values()) / len(given)
    assert {one: max(interest[one], 0.01) for one in given} == pytest.approx(
        {one: value / scale for one, value in given.items()}, rel=0.01, abs=1e-3
    )
    for path in data.glob(f"p0*/{NAME}"):
        path.unlink()


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["--method", "pagerank", "--memory", "lots"], "is not a size"),
        (["--method", "pagerank", "--damping", "1"], "damping"),
        (["--keep"], "--keep: of --method interest"),
        (["--method", "both", "--focus", "*", "--keep"], "--keep: with --focus"),
        (["--edges", "out"], "--edges: of --method pagerank"),
        (["--method", "pagerank", "--focus", "*nowhere*"], "no known URL fits"),
        (["--format", "parquet"], "name it with -o"),
        (["--format", "csv", "--json"], "name a file with -o"),
    ],
)
def test_bad_input_is_one_line(data, typed, told):
    done = xyro("rank", "--data", data, *typed)
    assert done.returncode == 2 and told in done.stderr and done.stderr.count("\n") == 1


def test_no_directory_no_rank(tmp_path, data):
    assert "no such data directory" in xyro("rank", "--data", tmp_path / "nowhere").stderr


def test_what_a_killed_process_left_is_removed(data):
    left = data / ".rank-4194999-x"  # above the greatest number that a process can have
    left.mkdir()
    (left / "links").write_bytes(b"x")
    assert xyro("rank", "--data", data).returncode == 0


@pytest.mark.long
def test_a_running_crawl_is_ranked_too(tmp_path):
    """Through the process that has the directory, and again when it has stopped: the same vector."""
    place = tmp_path / "data"
    with (
        running(pages=200, hosts=3, seed=4) as web,
        started("crawl", web.entry, *LOOPBACK, "--refresh", data=place) as process,
    ):
        until(lambda: said("status", "--data", place)["states"]["read"] >= 150)
        found = said("rank", "--data", place, "--method", "pagerank", "-n", "1000")
        assert found["converged"] and found["pages"] >= 150 and found["links"] > 300
        assert sum(row["rank"] for row in found["top"]) == pytest.approx(found["pages"])
        assert xyro("rank", "--data", place, "--method", "interest", "--keep").returncode == 0
        assert read(place / "p0000" / NAME, 0).size >= 150
        process.terminate()
        assert process.wait(30) == 0
    after = said("rank", "--data", place, "--method", "pagerank", "-n", "1000")
    assert after["pages"] >= found["pages"] and after["online_spearman"] > 0.5
