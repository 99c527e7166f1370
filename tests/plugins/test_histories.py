"""`export histories`: what the stream knows of each page, as the laboratory's replay reads it."""

import json
from email.utils import formatdate

from tests.frontier.rig import Crawl, signature, url
from tests.plugins.test_changes import visit
from tests.service.face import xyro
from xyro.configs.load import load
from xyro.lab.refresh import history
from xyro.lab.refresh.refresh_lab import main

DAY = 86_400.0


def changed_pages(path):
    """A crawl of 12 pages on 40 days; -> the truth, kept by hand: URL -> [(time, letter)]."""
    c = Crawl.on_disk(path, settings=load(overrides={"crawl.scope": "any", "changes.record": True}), refreshing=True)
    truth: dict[str, list[tuple[float, str]]] = {}
    number = 0
    for day in range(40):
        for page in range(12):
            if day % (page + 1):
                continue
            number += 1
            target, begun = url(page), c.now
            gone = page == 5 and day == 30
            modified = c.now - 1000.0
            if gone:
                visit(c, target, error="http-404", status=404)
            elif page % 2:
                visit(c, target, signature=signature(number), last_modified=formatdate(modified, usegmt=True))
            else:
                visit(c, target, signature=signature(number))
            letter = "D" if gone else "A" if target not in truth or truth[target][-1][1] == "D" else "M"
            born = target not in truth
            when = float(int(modified)) if page % 2 and not gone and not born else begun
            truth.setdefault(target, []).append((when, letter))
            c.now += 30.0
        c.now = 1.7e9 + (day + 1) * DAY
    c.close()
    return truth


def test_histories_are_what_happened_and_the_laboratory_replays_them(tmp_path, capsys):
    truth = changed_pages(tmp_path / "d")
    out = tmp_path / "h.jsonl"
    assert xyro("export", "histories", "--data", tmp_path / "d", "-o", out).returncode == 0
    found = {row["path"]: row["events"] for row in map(json.loads, out.read_text().splitlines())}
    assert found.keys() == truth.keys()
    for target, events in truth.items():
        assert [letter for _, letter in found[target]] == [letter for _, letter in events]
        assert all(abs(a - b) <= 61.0 for (a, _), (b, _) in zip(found[target], events, strict=True)), target
    pages = {page.path: page for page in history.read([out])}
    assert sum(len(page.changes) for page in pages.values()) == sum(map(len, truth.values())) - len(truth)
    capsys.readouterr()
    assert main(["--changes", str(out), "--bandwidth", "0.3", "--policy", "freshness", "--json"]) == 0
    replay = json.loads(capsys.readouterr().out)
    assert "freshness" in json.dumps(replay) and replay


def test_a_page_that_the_stream_has_not_from_its_beginning_is_born_at_its_first_read(tmp_path):
    for recording in (False, True):
        chosen = load(overrides={"crawl.scope": "any", "changes.record": recording})
        c = Crawl.on_disk(tmp_path / "d", settings=chosen, refreshing=True, now=1.7e9 + recording * DAY)
        for page in range(2):
            visit(c, url(page), signature=signature(1 + recording * (page + 1)))
        visit(c, url(2 + recording))
        c.close()
    lines = xyro("export", "histories", "--data", tmp_path / "d").stdout.splitlines()
    found = {row["path"]: row["events"] for row in map(json.loads, lines)}
    assert [letter for _, letter in found[url(0)]] == ["A", "M"] and found[url(0)][1][0] - found[url(0)][0][0] > DAY / 2
    assert [letter for _, letter in found[url(2)]] == ["A"] and [letter for _, letter in found[url(3)]] == ["A"]


def test_other_forms_are_refused(tmp_path):
    done = xyro("export", "histories", "--data", tmp_path / "d", "--format", "csv")
    assert done.returncode == 2 and "jsonl" in done.stderr
