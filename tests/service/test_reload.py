"""Settings read again while the daemon runs: what changes, what stays, and that a bad file changes nothing."""

import os
import signal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.service.face import started, until
from xyro.configs.schema import (
    BudgetTable,
    CrawlSettings,
    FetchSettings,
    LogSettings,
    OpicSettings,
    PolitenessSettings,
    RefreshSettings,
    Settings,
)
from xyro.lab.child import running
from xyro.service.node.reload import merged


def test_what_can_change_does_and_what_cannot_stays():
    wanted = Settings(
        crawl=CrawlSettings(confirm_dead=5.0, scope="any"),
        refresh=RefreshSettings(gamma=10.0, bandwidth=3.0, policy="freshness", time_unit=7, guide="interest"),
        fetch=FetchSettings(concurrency=3),
        politeness=PolitenessSettings(min_delay=9.0),
        opic=OpicSettings(spend_ratio=3.5, damping=0.5, window=8.0),
        log=LogSettings(level="debug"),
        budgets=(BudgetTable("a.example", 5),),
    )
    now, changed, left = merged(Settings(), wanted)
    assert sorted(changed) == [
        "budgets", "crawl.confirm_dead", "log.level", "opic.spend_ratio", "politeness.min_delay",
        "refresh.bandwidth", "refresh.gamma", "refresh.policy",
    ]  # fmt: skip
    assert sorted(left) == [
        "crawl.scope",
        "fetch.concurrency",
        "opic.damping",
        "opic.window",
        "refresh.guide",
        "refresh.time_unit",
    ]
    assert (
        now.refresh == RefreshSettings(gamma=10.0, bandwidth=3.0, policy="freshness") and now.budgets == wanted.budgets
    )
    assert now.crawl == CrawlSettings(confirm_dead=5.0) and now.fetch == FetchSettings()
    assert now.opic == OpicSettings(spend_ratio=3.5)


def test_nothing_new_changes_nothing():
    assert merged(Settings(), Settings()) == (Settings(), [], [])


@given(gamma=st.floats(0, 100), damping=st.floats(0.1, 0.9), level=st.sampled_from(["debug", "info", "error"]))
def test_a_second_reading_has_only_what_stays_to_tell(gamma, damping, level):
    wanted = Settings(
        refresh=RefreshSettings(gamma=gamma),
        opic=OpicSettings(damping=damping, spend_ratio=3.0),
        log=LogSettings(level=level),
    )
    now, _, left = merged(Settings(), wanted)
    assert merged(now, wanted) == (now, [], left)
    assert now == msgspec.structs.replace(
        wanted, opic=msgspec.structs.replace(wanted.opic, damping=OpicSettings().damping)
    )


@pytest.fixture(scope="module")
def web():
    with running(pages=60, hosts=4, seed=3, rate_median=0.0) as web:
        yield web


def test_a_daemon_reads_its_settings_on_sighup_and_goes_on(web, tmp_path):
    data, config = tmp_path / "data", tmp_path / "mine.toml"
    config.write_text('[log]\nlevel = "warning"\n')
    limits = ("--only-net", "127.0.0.0/8", "--config", config)
    with started("serve", *limits, data=data, start_new_session=True) as daemon:
        assert os.getsid(daemon.pid) == daemon.pid

        def hup(text):
            config.write_text(text)
            daemon.send_signal(signal.SIGHUP)
            return daemon.stderr.readline()

        told = hup('[refresh]\ngamma = 20.0\npolicy = "freshness"\n[log]\nlevel = "warning"\n')
        assert told.endswith("settings read again: refresh.gamma, refresh.policy changed\n")
        told = hup("[refresh]\ngamma = 200.0\n")
        assert "nothing changed" in told and "[refresh] gamma: expected a percentage" in told
        told = hup(
            '[refresh]\ngamma = 20.0\npolicy = "freshness"\n[log]\nlevel = "warning"\n[fetch]\nconcurrency = 3\n'
        )
        assert told.endswith("settings read again: nothing changed\n")
        assert daemon.stderr.readline().endswith("need a restart, and stay as they were: fetch.concurrency\n")
        until(lambda: (data / "run").exists())
        daemon.terminate()
        daemon.communicate(timeout=60)
    assert daemon.returncode == 0
