"""`xyro lab beliefs`: its verdicts against a minute grid of their own, and what a still site teaches."""

from __future__ import annotations

import numpy as np
import pytest

from xyro.lab.crawls.belief_lab import WARM_UP, main, run
from xyro.lab.crawls.belief_worlds import HELD_OUT, WORLDS, BeliefWorld
from xyro.lab.web.scripted import ScriptedPage
from xyro.lab.web.shape import DAY, ORIGIN

DAYS = 4


def site(changes: list[list[float]], importance: list[float]) -> BeliefWorld:
    pages = {f"/{number}.html": ScriptedPage(changes=[ORIGIN + day * DAY for day in days])
             for number, days in enumerate(changes)}  # fmt: skip
    return BeliefWorld(pages, np.array(importance))


def test_what_was_fresh_and_missed_is_counted_as_on_a_grid_of_minutes():
    rng = np.random.default_rng(4)
    changes = [np.sort(rng.uniform(0.0, DAYS, count)).tolist() for count in (0, 1, 4, 30) for _ in range(5)]
    world = site(changes, np.linspace(0.5, 1.5, 20).tolist())
    verdict, crawl = run(world, 0.5, DAYS)
    grid = ORIGIN + WARM_UP * DAY + np.arange(0.5, (DAYS - WARM_UP) * 1440.0) * 60.0
    fresh, missed = np.zeros(len(world.pages)), np.zeros(len(world.pages))
    for number, page in enumerate(world.pages.values()):
        reads = np.array([time for place, time in crawl.reads if place == number])
        behind = (
            np.searchsorted(page.changes, grid) - np.searchsorted(page.changes, reads)[np.searchsorted(reads, grid) - 1]
        )
        fresh[number], missed[number] = (behind == 0).mean(), behind.mean()
    assert verdict.fresh == pytest.approx(np.average(fresh, weights=world.importance), abs=0.002)
    assert verdict.missed == pytest.approx(np.average(missed, weights=world.importance), abs=0.01)
    assert 0.0 < verdict.fresh < 1.0 < len(crawl.reads) / 20
    assert abs(verdict.bias) <= verdict.error


def test_a_plan_is_held_against_the_day_after_it():
    rng = np.random.default_rng(5)
    world = site([np.sort(rng.uniform(0.0, DAYS, 12)).tolist() for _ in range(20)], [1.0] * 20)
    verdict, crawl = run(world, 1.0, DAYS)
    assert len(crawl.plans) == DAYS
    off, reads = [], []
    for day in range(WARM_UP, DAYS):
        grid = ORIGIN + day * DAY + np.arange(0.5, 1440.0) * 60.0
        fresh = []
        for number, page in enumerate(world.pages.values()):
            times = np.array([time for place, time in crawl.reads if place == number])
            read = times[np.searchsorted(times, grid) - 1]
            fresh.append((np.searchsorted(page.changes, grid) == np.searchsorted(page.changes, read)).mean())
        foretold, spent = crawl.plans[day - 1]
        off.append(foretold / np.mean(fresh) - 1.0)
        came = sum(0.0 < time - ORIGIN - day * DAY <= DAY for _, time in crawl.reads)
        reads.append(spent / came - 1.0)
    assert (verdict.plan_bias, verdict.plan) == pytest.approx((np.mean(off), np.mean(np.abs(off))), abs=0.003)
    assert verdict.spends == pytest.approx(np.mean(reads), abs=1e-9)


def test_a_still_site_is_fresh_and_believed_to_be():
    verdict, _ = run(site([[] for _ in range(30)], [1.0] * 30), 0.5, DAYS)
    assert (verdict.fresh, verdict.missed) == (1.0, 0.0)
    assert -0.2 < verdict.bias < 0.0


def test_worlds_change_as_they_say():
    worlds = {name: (WORLDS | HELD_OUT)[name](14.0, 1) for name in ("shop", "forum", "night", "wiki", "board", "hot")}
    for world in worlds.values():
        assert world.importance.mean() == pytest.approx(1.0) and len(world.importance) == len(world.pages)
        times = [time for page in world.pages.values() for time in page.changes]
        assert min(times) > ORIGIN and max(times) < ORIGIN + 14.0 * DAY
        assert all((np.diff(page.changes) >= 0.0).all() for page in world.pages.values() if len(page.changes) > 1)
    nightly = [page for path, page in worlds["night"].pages.items() if path.startswith("/daily/")]
    assert {len(page.changes) for page in nightly} == {14}
    help_pages = [len(page.changes) for path, page in worlds["shop"].pages.items() if path.startswith("/help/")]
    assert sum(help_pages) == pytest.approx(400 * 14 / 365, rel=0.8)


def test_the_table_has_a_line_a_world(tmp_path, capsys):
    file = tmp_path / "some.jsonl"
    file.write_text("".join(f'{{"path": "{k}", "events": [[0, "A"], [{(k + 3) * 86_400}, "M"]]}}\n' for k in range(6)))
    assert main([str(file), "--days", "3", "--shares", "1"]) == 0
    head, line = capsys.readouterr().out.splitlines()
    assert head.split()[:4] == ["world", "share", "fresh", "missed"]
    name, share, fresh, *_ = line.split()
    assert (name, float(share)) == ("some", 1.0) and 0.0 < float(fresh) <= 1.0
