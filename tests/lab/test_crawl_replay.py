"""`xyro plan --replay` against a web whose every change is known: what it says of a crawl that sees it in part."""

import json
import math

import numpy as np
import pytest

from tests.plugins.test_histories import changed_pages
from tests.service.face import xyro
from xyro.lab.refresh.crawl_replay import CrawlLine, crawl_rows, read_history
from xyro.lab.refresh.page_arrays import TICK
from xyro.lab.refresh.rates import Estimator
from xyro.lab.refresh.rules import rule
from xyro.lab.refresh.sim import simulate
from xyro.lab.refresh.world import BURN_SHARE, PageHistory, of_histories
from xyro.wire.errors import InputError

DAY, DAYS, START = 86_400.0, 120.0, 1.7e9
END = START + DAYS * DAY


def seen(truth, every, dated, importance, path):
    """What a crawl that reads a page every so many days has of it. Its belief of the rate is fitted to what it saw."""
    events, between, last, busy = [(START, "A")], [(START, START)], START, 0
    reads = 1
    while last + every * DAY <= END:
        now = last + every * DAY
        changes = [time for time in truth if last < time <= now]
        reads += 1
        if changes:
            busy += 1
            events.append((float(int(changes[-1])) if dated else now, "M"))
            between.append((last, now))
        last = now
    rate = -math.log(1.0 - (busy + 0.3) / (reads + 0.3)) / every
    return CrawlLine(path, events, between, importance, rate, reads, last)


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """(Truth of each page, importance, days between its reads, the export of the crawl that read it so)."""
    draws = np.random.default_rng(7)
    pages, weight = 400, draws.pareto(1.5, 400).clip(max=30.0) + 0.2  # no page is so much that its phase decides
    rates = np.exp(draws.normal(-1.6, 1.1, pages))
    truth = [np.sort(START + DAYS * DAY * draws.random(draws.poisson(rate * DAYS))).tolist() for rate in rates]
    every = np.exp(draws.normal(math.log(3.0), 0.5, pages))
    lines = [seen(truth[page], every[page], page % 4 == 0, float(weight[page]), f"/{page}") for page in range(pages)]
    file = tmp_path_factory.mktemp("replay") / "h.jsonl"
    fields = CrawlLine.__struct_fields__
    file.write_text("".join(json.dumps({name: getattr(line, name) for name in fields}) + "\n" for line in lines))
    return truth, weight, every, file


def true_freshness(truth, weight, every):
    """(Freshness, changes missed) of the crawl that reads so, by the truth alone, after the burn-in."""
    begin, stale, missed = START + BURN_SHARE * DAYS * DAY, 0.0, 0.0
    for times, importance, gap in zip(truth, weight, every, strict=True):
        until = 0.0
        for time in times:
            shown = START + math.ceil((time - START) / (gap * DAY)) * gap * DAY
            shown = min(shown, END)
            missed += importance * max(shown - max(time, begin), 0.0)
            stale += importance * max(shown - max(time, begin, until), 0.0)
            until = max(until, shown)
    whole = weight.sum() * (END - begin)
    return 1.0 - stale / whole, missed / whole


def test_what_was_is_told_though_reads_hid_changes(known):
    truth, weight, every, file = known
    history = read_history(file)
    counts = history.counts()
    real = sum(map(len, truth))
    assert counts["seen"] < 0.85 * real, "reads hid some"
    assert 0.8 < counts["expected"] / real < 1.05, "the rates say how many, but of pages that always had changed"
    assert counts["always_changed"] > 10
    (was,) = crawl_rows(history, [], [])
    fresh, missed = true_freshness(truth, weight, every)
    assert was.policy == "as it was" and abs(was.freshness - fresh) < 0.02
    assert 0.8 < was.obsolescence / missed < 1.1


@pytest.mark.long
@pytest.mark.parametrize("policy", ["obsolescence", "freshness", "uniform"])
def test_another_policy_or_bandwidth_gives_what_it_would_have_given(known, policy):
    """Beside the same rule on the true changes, which the replay has never seen. Policy freshness gives up the pages
    that change fastest, whose rates no history bounds: of the changes that it misses the replay has a lower bound."""
    truth, weight, _, file = known
    history = read_history(file)
    pages = [PageHistory(f"/{page}", START, times) for page, times in enumerate(truth)]
    world = of_histories(pages, weight)
    for share in (0.5, 1.0):
        bandwidth = history.bandwidth * share
        _, row = crawl_rows(history, [policy], [bandwidth])
        name = {"obsolescence": "p1"}.get(policy, policy)
        rules = rule(name, world.born, 1, TICK // 2, world.days)
        score = simulate(world, rules, Estimator().rates_for(world), bandwidth, tick=TICK // 2)
        assert abs(row.freshness - score.freshness) < 0.02
        assert (0.0 if policy == "freshness" else 0.8) < row.obsolescence / score.obsolescence < 1.1


def test_a_history_that_tells_nothing_is_refused(tmp_path):
    file = tmp_path / "h.jsonl"
    file.write_text('{"path": "/"}\n')
    with pytest.raises(InputError, match=r"h.jsonl:1: no line of `xyro export histories`"):
        read_history(file)
    file.write_text("")
    with pytest.raises(InputError, match="nothing to replay"):
        read_history(file)


@pytest.mark.long
def test_plan_replays_what_the_crawl_has_seen(tmp_path):
    changed_pages(tmp_path / "d")
    done = xyro("plan", "--replay", "--json", "--data", tmp_path / "d")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    was, *others = answer["rows"]
    assert was["policy"] == "as it was" and [row["policy"] for row in others] == 3 * [
        "obsolescence",
        "freshness",
        "uniform",
    ]
    fresh = {(row["policy"], round(row["reads_per_day"] / was["reads_per_day"], 2)): row["freshness"] for row in others}
    assert all(fresh[name, 0.5] < fresh[name, 1.0] < fresh[name, 2.0] for name, _ in fresh)
    assert answer["history"]["pages"] == 12 and answer["history"]["dated"] > 10
    text = xyro("plan", "--replay", "--bandwidth", "3/day", "--policy", "freshness", "--data", tmp_path / "d").stdout
    assert (
        "as it was" in text
        and "What the history cannot tell" in text
        and len(text.splitlines()) == 10
        and "learns them" in text
    )
    refused = xyro("plan", "--replay", "--target", "0.9", "--data", tmp_path / "d")
    assert refused.returncode == 2 and "--target" in refused.stderr


def test_plan_replay_of_a_crawl_that_read_nothing_is_refused_as_commands_refuse(tmp_path):
    xyro("crawl", "http://127.0.0.1:9/", "--only-net", "127.0.0.0/8", "--max-seconds", "2", "--data", tmp_path / "d")
    refused = xyro("plan", "--replay", "--data", tmp_path / "d")
    assert refused.returncode == 2 and refused.stderr.startswith("xyro: nothing to replay")
