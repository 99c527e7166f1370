"""The laboratory of the virtual page: the crawl in it keeps every unit, a focus comes sooner, the command works."""

from __future__ import annotations

import json

import numpy as np
import pytest

from xyro.lab.opic.focus_lab import MARKS, Field, FocusCrawl, first_reads, focus_files, sentences
from xyro.lab.opic.opic_lab import main
from xyro.lab.web.shape import ORIGIN
from xyro.lab.web.truth import truth
from xyro.lab.web.web import Web
from xyro.opic.focus import Terms, weights_of

pytestmark = pytest.mark.long

PAGES = 600


@pytest.fixture(scope="module")
def field() -> Field:
    return Field.from_truth(truth(Web(seed=3, pages=PAGES, hosts=6), ORIGIN))


def test_the_field_is_the_web(field: Field) -> None:
    assert field.graph.n == PAGES and field.hosts.max() == 5
    assert 0 < field.focus.sum() < PAGES / 10 and field.readable[field.focus].all()


@pytest.mark.parametrize("weights", [weights_of([1.0], 1.0), weights_of([1.0, 9.0], 0.5), weights_of([0.0, 1.0], 1.0)])
def test_a_crawl_of_it_keeps_every_unit_at_every_step(field: Field, weights: tuple[int, ...]) -> None:
    crawl, seen = FocusCrawl(field, Terms(weights=weights)), 0
    while (batch := crawl.reads(17)).size:
        seen += batch.size
        assert crawl.exact and (crawl.cash >= 0).all()
        assert crawl.virtual.counts[1:] == np.bincount(crawl.classes[crawl.found], minlength=16)[1:].tolist()
    assert seen == int((crawl.found & field.readable).sum()) > PAGES / 2


def test_a_focus_is_read_sooner(field: Field) -> None:
    runs = [first_reads(field, Terms(weights=weights_of([1.0, w], 1.0)), lambda share: None) for w in (1.0, 25.0)]
    at = MARKS.index(0.2)
    assert runs[1]["focus"][at] > 1.5 * runs[0]["focus"][at] and all(run["cash_exact"] for run in runs)
    assert runs[0]["focus"] == sorted(runs[0]["focus"]) and runs[0]["importance"] == sorted(runs[0]["importance"])


def test_the_command_says_what_it_measured_and_measures_once(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["focus", "--pages", str(PAGES), "-o", str(tmp_path), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["cash_exact"] and said["pages"] == PAGES and len(said["sentences"]) == 6
    shift, links = said["shift"]["runs"], said["links"]["runs"]
    assert shift["1"]["focus"] < shift["5"]["focus"] < shift["25"]["focus"] < 1
    assert max(run["error"] for run in shift.values()) < 0.1, "per cent beside personalised PageRank"
    assert links["1"]["elsewhere"] < links["0.5"]["elsewhere"] < links["0.05"]["elsewhere"]
    assert links["1"]["spearman"] > 0.999
    queries = said["queries"]["runs"]
    assert queries["1"]["told"] > queries["0.5"]["told"] > queries["0.05"]["told"]
    stamps = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "parts").iterdir()}
    assert focus_files(tmp_path, PAGES, show=False) == said
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "parts").iterdir()} == stamps
    assert (tmp_path / "focus.txt").read_text().splitlines() == said["sentences"]
    assert said["sentences"][:-1] == sentences(said)


def test_sizes_of_no_sense_are_refused(capsys: pytest.CaptureFixture[str], tmp_path) -> None:
    assert main(["focus", "--pages", "20", "-o", str(tmp_path)]) == 2
    assert "--pages 20: 500 to" in capsys.readouterr().err
