"""SIGKILL, at work, while recovering, in the middle of a snapshot; Ctrl-C: nothing is lost, nothing is read in excess.

The real command over a computed web, both in processes of their own, judged by the server's log (lab/crash/check.py).
The long form of it: `xyro lab crash --kills 50 --seconds 40 --partitions 4`.
"""

import contextlib
import subprocess
from collections import Counter
from types import SimpleNamespace

import pytest

from xyro.lab.child import running
from xyro.lab.crash.check import AT_RISK, JITTER, ROBOTS, Left, losses, requests_of, shortest_gap
from xyro.lab.crash.crash_lab import Plan, ordeal
from xyro.lab.crash.kill import KilledCrawl, Killer, KillMoment


@pytest.mark.long
@pytest.mark.parametrize(
    ("partitions", "moments"),
    [
        (1, (KillMoment.WORK, KillMoment.RECOVERY, KillMoment.SNAPSHOT)),
        (4, (KillMoment.SNAPSHOT, KillMoment.WORK)),
    ],
    ids=["one partition", "four partitions"],
)
def test_a_crawl_that_is_killed_again_and_again_ends_like_one_that_was_not(tmp_path, partitions, moments):
    plan = Plan(moments, seconds=3.0, window=0.8, partitions=partitions, pages=480, hosts=8, seed=partitions)
    outcome = ordeal(plan, tmp_path)
    assert outcome.violations == []
    assert not outcome.over
    assert outcome.kills == len(moments)
    assert outcome.torn >= 1
    assert outcome.pages > 200
    assert outcome.requests >= outcome.reads >= outcome.pages


@pytest.mark.long
def test_a_crawl_that_runs_as_fast_as_it_can_loses_no_more_than_it_may(tmp_path):
    plan = Plan((KillMoment.SNAPSHOT,), seconds=0.0, window=0.0, pages=800, hosts=8, seed=5)
    outcome = ordeal(plan, tmp_path)
    assert outcome.violations == []
    assert outcome.kills == 1


@pytest.mark.long
def test_reads_wait_for_a_slow_disk(tmp_path):
    """Killed while its second group waits for the disk, it has lost what may be at risk, however fast pages come.

    `xyro lab crash --kills 10 --seconds 0 --pages 6000 --hosts 100 --disk 1 --concurrency 32` is
    the long form.
    """
    loopback, concurrency = ("--only-net", "127.0.0.0/8", "--scope", "any", "--delay", "0"), 8
    with running(pages=1600, hosts=40, seed=3, rate_median=0.0, log=tmp_path / "log") as web:
        crawl = KilledCrawl("life", tmp_path, web.entry, [*loopback, "--max-pages", "100"])
        crawl.finish(crawl.start())
        before = {page["url"]: page["reads"] for page in crawl.pages()}
        crawl.options, crawl.disk = loopback, 2.0
        crawl.settings["XYRO_FETCH__CONCURRENCY"] = str(concurrency)
        killer = Killer(crawl, window=3.2, seed=1)
        killer.chance = SimpleNamespace(random=lambda: 1.0, uniform=lambda _, last: last)
        assert killer.end(KillMoment.WORK)
        left = [Left(1, before, 0), Left(2, {page["url"]: page["reads"] for page in crawl.pages()}, 0)]
    answered = [each for each in requests_of((tmp_path / "log").read_text(), web.port) if each.uri != ROBOTS]
    first, second = losses(left, answered)
    assert first == 0
    assert 0 < second <= AT_RISK + concurrency


@pytest.mark.long
def test_documents_that_wait_survive_kills(tmp_path):
    """Small; `xyro lab crash --xml --kills 200` is the long form."""
    shape = {"pages": 480, "hosts": 20, "seed": 1, "xml": True, "slow": 1.5}
    plan = Plan((KillMoment.WORK, KillMoment.SNAPSHOT), seconds=4.0, window=2.0, partitions=2, **shape)
    outcome = ordeal(plan, tmp_path)
    assert outcome.violations == []
    assert not outcome.over
    assert outcome.waiting > 0


@pytest.fixture
def crawl(tmp_path):
    """crawl(*options) -> a crawl of a small web; `.requests()` ends the web and tells who asked it for what."""
    with contextlib.ExitStack() as stack:
        web = stack.enter_context(running(pages=240, hosts=4, seed=2, rate_median=0.0, log=tmp_path / "log"))

        def make(*options):
            made = KilledCrawl("life", tmp_path, web.entry, ["--only-net", "127.0.0.0/8", "--scope", "any", *options])
            made.requests = requests
            return made

        def requests():
            stack.close()
            return requests_of((tmp_path / "log").read_text(), web.port)

        yield make


@pytest.mark.long
def test_ctrl_c_loses_nothing_at_all(crawl):
    crawl = crawl("--delay", "0.03")
    killer = Killer(crawl, window=0.5, seed=4)
    assert killer.end(KillMoment.INTERRUPT)
    assert crawl.audit()["violations"] == []
    crawl.finish(crawl.start())
    answered = Counter(request.url for request in crawl.requests() if request.uri != ROBOTS)
    assert {page["url"]: page["reads"] for page in crawl.pages() if page["reads"]} == answered


@pytest.mark.long
def test_a_host_is_left_alone_for_its_delay_after_a_crash_too(crawl):
    crawl = crawl("--delay", "1.5")
    assert Killer(crawl, window=0.5, seed=1).end(KillMoment.WORK)
    crawl.options += ["--max-seconds", "3"]
    crawl.finish(crawl.start())
    requests = crawl.requests()
    assert {request.life for request in requests} == {"life-1", "life-2"}
    assert shortest_gap(requests) >= 1.5 - JITTER


@pytest.mark.long
def test_what_is_killed_before_it_begins_has_nothing_to_lose(crawl):
    crawl = crawl("--delay", "0")
    for _ in range(2):
        child = crawl.start()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(0.1)
        child.kill()
        child.wait()
    crawl.finish(crawl.start())
    assert crawl.audit()["ok"]
    assert sum(page["reads"] for page in crawl.pages()) == sum(request.uri != ROBOTS for request in crawl.requests())
