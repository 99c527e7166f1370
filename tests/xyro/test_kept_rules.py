"""Rules of robots.txt that go to another process say there what they said here."""

from __future__ import annotations

import pytest

from tests.xyro.test_robots import GROUPS, ORIGIN
from xyro.answer import Answer
from xyro.failures import DAY
from xyro.kept_rules import NAME, KeptRules, RulesFile
from xyro.robots import Robots, RobotsState, judge
from xyro.wire.uses import SEARCH, bits

AHEAD = 1e9
"""wall clock less the monotonic one, here; there it is another"""
THERE = 5e8
WILD = b"User-agent: *\nDisallow: /*?\nAllow: /a/*.html$\nDisallow: /a\nCrawl-delay: 7\nSitemap: http://h/s.xml\n"


def carried(tmp_path, state: RobotsState, purposes: int = SEARCH, wall: float = AHEAD) -> RobotsState:
    RulesFile("xyro", [KeptRules.of_state(ORIGIN, state, 3.0, AHEAD)]).write(tmp_path)
    (kept,) = RulesFile.take(tmp_path, "xyro")
    assert (kept.origin, kept.ready_at) == (ORIGIN, AHEAD + 3.0)
    return kept.state(THERE, wall, purposes)


@pytest.mark.parametrize(("text", "free", "why"), GROUPS)
def test_the_same_rules(tmp_path, text, free, why):
    before = Robots.parse(text if isinstance(text, bytes) else text.encode(), "xyro")
    after = carried(tmp_path, RobotsState(before, DAY)).rules
    assert after.allows(f"{ORIGIN}/x/") is before.allows(f"{ORIGIN}/x/") is free, why


def test_wildcards_delay_sitemaps_and_the_day_for_which_they_hold(tmp_path):
    before = judge(Answer(0.0, status=200, body=WILD), None, 100.0, "xyro")
    after = carried(tmp_path, before, wall=AHEAD + 100.0)
    paths = ("/", "/a", "/a/x.html", "/a/x.htm", "/b?c", "/b")
    assert [after.rules.allows(ORIGIN + path) for path in paths] == [True, False, True, False, False, True]
    assert (after.rules.crawl_delay, after.rules.sitemaps) == (7.0, ("http://h/s.xml",))
    assert after.fresh_until + THERE == before.fresh_until + AHEAD
    late = KeptRules.of_state(ORIGIN, before, 0.0, AHEAD).state(THERE, AHEAD - 9 * DAY, SEARCH)
    assert late.fresh_until + THERE == AHEAD - 8 * DAY, "the clock was set back"


def test_what_is_refused_by_use_and_what_was_unreachable(tmp_path):
    signals = Robots.parse(b"User-agent: *\nContent-Signal: ai-train=no\nDisallow: /x", "xyro")
    train = bits(["ai-train"])
    assert not carried(tmp_path, RobotsState(signals, DAY)).rules.is_unwanted
    assert carried(tmp_path, RobotsState(signals, DAY), train).rules.is_unwanted
    away = judge(Answer(0.0, error="first-byte-timeout", detail="silent"), None, 50.0, "xyro")
    after = carried(tmp_path, away, wall=AHEAD + 50.0)
    assert (after.kind, after.failures, after.detail) == ("robots-unreachable", 1, "silent")
    assert after.since + THERE == away.since + AHEAD


def test_a_file_is_taken_once_and_only_by_the_agent_that_it_is_for(tmp_path):
    state = RobotsState(Robots.parse(WILD, "xyro"), DAY)
    for token in ("other", "xyro"):
        RulesFile("xyro", [KeptRules.of_state(ORIGIN, state, 0.0, AHEAD)]).write(tmp_path)
        assert len(RulesFile.take(tmp_path, token)) == (token == "xyro")
        assert not (tmp_path / NAME).exists() and RulesFile.take(tmp_path, "xyro") == []
    (tmp_path / NAME).write_bytes(b"\x93\x01")
    assert RulesFile.take(tmp_path, "xyro") == []
    RulesFile("xyro", []).write(tmp_path / "missing")
