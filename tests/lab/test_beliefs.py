"""`xyro lab beliefs`: its verdicts against a minute grid of their own, and what a still site teaches."""

from __future__ import annotations

import numpy as np
import pytest

from xyro.lab.crawls.belief_lab import WARM_UP, knowing, main, run
from xyro.lab.crawls.belief_worlds import HELD_OUT, WORLDS, BeliefWorld
from xyro.lab.crawls.script_referee import ScriptReferee, day_of
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


def test_plans_are_held_against_the_days_after_them():
    rng, days = np.random.default_rng(5), 12
    world = site([np.sort(rng.uniform(0.0, days, 3 * days)).tolist() for _ in range(20)], [1.0] * 20)
    verdict, crawl = run(world, 1.0, days)
    assert len(crawl.plans) == days
    came, made = [], []
    for day in range(days):
        grid = ORIGIN + day * DAY + np.arange(0.5, 1440.0) * 60.0
        fresh = []
        for number, page in enumerate(world.pages.values()):
            times = np.array([time for place, time in crawl.reads if place == number])
            read = times[np.searchsorted(times, grid) - 1]
            fresh.append((np.searchsorted(page.changes, grid) == np.searchsorted(page.changes, read)).mean())
        came.append(np.mean(fresh))
        made.append(sum(0.0 < time - ORIGIN - day * DAY <= DAY for _, time in crawl.reads))
    evenings = range(WARM_UP - 1, days - 1)
    next_day = [crawl.plans[day].next_day / came[day + 1] - 1.0 for day in evenings]
    next_week = [crawl.plans[day].next_week / np.mean(came[day + 1 : day + 8]) - 1.0 for day in evenings if day < 5]
    long_run = [crawl.plans[day].long_run / np.mean(came[8:]) - 1.0 for day in range(7, 11)]
    spends = [crawl.plans[day].reads / made[day + 1] - 1.0 for day in evenings]
    assert verdict.day == pytest.approx(np.mean(np.abs(next_day)), abs=0.003)
    assert verdict.week == pytest.approx(np.mean(np.abs(next_week)), abs=0.003)
    assert verdict.plan == pytest.approx(np.mean(np.abs(long_run)), abs=0.003)
    assert verdict.plan_bias == pytest.approx(np.mean(long_run), abs=0.003)
    assert verdict.spends == pytest.approx(np.mean(spends), abs=1e-9)


def test_the_floor_is_the_error_of_who_knows_the_rates():
    """Chance makes the freshness of few pages, and hardly that of many."""
    floors = []
    for count in (20, 2_000):
        rng = np.random.default_rng(6)
        world = site([np.sort(rng.uniform(0.0, DAYS, 4 * DAYS)).tolist() for _ in range(count)], [1.0] * count)
        pages = np.tile(np.arange(count), DAYS + 1)
        times = ORIGIN + DAY * np.repeat(np.arange(DAYS + 1), count) + DAY * (pages / count - 1.0)
        truth = ScriptReferee(world.pages, world.importance).judge(pages, times, ORIGIN + DAYS * DAY)
        came = [truth.freshness(*day_of(day)) for day in range(WARM_UP + 1, DAYS + 1)]
        found = knowing(world, pages, times, DAYS)
        assert found.tolist() == pytest.approx([(1.0 - np.exp(-4.0)) / 4.0] * len(came), abs=0.03)
        floors.append(np.mean(np.abs(found - came)))
    assert 0.0 < floors[1] < 0.01 < 0.02 < floors[0] < 0.2
    still = run(site([[] for _ in range(30)], [1.0] * 30), 0.5, DAYS)[0]
    assert still.floor == 0.0 < still.error


def test_a_still_site_is_fresh_and_believed_to_be():
    verdict, _ = run(site([[] for _ in range(30)], [1.0] * 30), 0.5, DAYS)
    assert (verdict.fresh, verdict.missed) == (1.0, 0.0)
    assert -0.2 < verdict.bias < 0.0


def test_worlds_are_drawn_again_by_their_law():
    for name, make in (WORLDS | HELD_OUT).items():
        world = make(14.0, 1)
        assert (world.again is None) == (name == "ephemeral")
        if world.again is None:
            continue
        drawn = [world.again(np.random.default_rng(seed)) for seed in range(4)]
        counts = [len(page.changes) for page in world.pages.values()]
        assert all(len(other) == len(world.pages) for other in drawn)
        mean = np.mean([[len(times) for times in other] for other in drawn], axis=0)
        assert mean.sum() == pytest.approx(sum(counts), rel=0.15), name
        assert np.corrcoef(mean, counts)[0, 1] > 0.6, name
        assert [list(page.changes) for page in world.pages.values()] != [list(times) for times in drawn[0]]


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
