"""The rules that decide what is read next: our policies by scan, and what others publish or ship.

Ours are the indices of refresh/policy.py, executed by scan_execution.py: uniform, proportional, p1, freshness,
mixed:A (alpha = A, beta = 1), kolobov, azar. NAME:filed is the same policy executed by dates, as P1 6.6's folders are;
freshness takes the index's mean over what is believed of a rate, freshness:mean the index of the mean rate;
NAME:signals listens to signals of changes as the crawler does. The baselines are written down from their sources'
rules, not their code:

nutch         Apache Nutch's AdaptiveFetchSchedule (org.apache.nutch.crawl, read at commit 0abf975). Interval x 0.8
              after a change, x 1.4 without (db.fetch.schedule.adaptive.dec_rate / inc_rate of nutch-default.xml), 365
              days at most. It knows neither rates nor importance, and says nothing of scarce bandwidth; so, as in
              the prototype, the page that is latest relative to its interval comes first, due or not, and all of the
              bandwidth is spent; at first 7 days, a tick at least, no sync_delta. The kindest reading of it.
nutch-shipped the same as shipped: 30 days at first, 60 s at least; only what is due is read; sync_delta is on: after a
              read without change the interval is at least the age of the last change found, and the next fetch comes
              0.3 of that age earlier (sync_delta_rate of nutch-default.xml).
stormcrawler  StormCrawler's AdaptiveScheduler (com.digitalpebble.stormcrawler.persistence), all defaults: interval
              x 1.5 without a change, at most 14 days; after a change halfway to the least, 60 minutes; at first 1 day.
azar-random   Azar, Horvitz, Lubetzky, Peres, Shahaf: Tractable near-optimal policies for crawling, PNAS 115 (2018):
              Poisson reads at rates max(0, sqrt(r lambda / mu) - lambda), which maximise freshness among them. Their
              deterministic schedule of the same rates is `azar`.
lambdacrawl   Kolobov, Peres, Lu, Horvitz: Staying up to Date with Online Content Changes, NeurIPS 2019 (LambdaCrawl):
              Poisson reads at rates (sqrt(lambda^2 + 4 r lambda / mu) - lambda) / 2, which minimise the harmonic
              penalty. The same rates evenly spaced are `kolobov`.

mirror-sync    mirror_sync.py          learning-to-crawl   learning_to_crawl.py
greedy-ncis    greedy_ncis.py          whittle             compared_policies.py

As shipped, the schedules read what is due, most overdue first, and do not spend what they leave of the bandwidth. The
rates of Azar and LambdaCrawl are solved anew each day from the estimates of that day (sum of rates = bandwidth).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from xyro.lab.refresh.adaptive_schedules import Scheduled, nutch, nutch_shipped, stormcrawler
from xyro.lab.refresh.compared_policies import policy_of
from xyro.lab.refresh.greedy_ncis import GreedyNcis
from xyro.lab.refresh.index_rules import Doubting, Filed, Heeding, Indexed, RandomRule
from xyro.lab.refresh.learning_to_crawl import LearningToCrawl
from xyro.lab.refresh.mirror_sync import MirrorSync
from xyro.lab.refresh.page_arrays import DAY, TICK, Rule
from xyro.lab.refresh.world import DAYS, Reals
from xyro.refresh.policy import Policy
from xyro.wire.plug_ins import POLICIES as PLUG_INS
from xyro.wire.plug_ins import is_offered, plug_in

MOST_ALPHA = 10_000.0
"""as in the settings"""

POLICIES: Mapping[str, Policy] = {
    "uniform": policy_of("uniform"),
    "proportional": policy_of("proportional"),
    "p1": policy_of("obsolescence"),
    "freshness": policy_of("freshness"),
    "mixed:0.1": Policy("mixed", 0.1, 1.0),
    "mixed:0.3": Policy("mixed", 0.3, 1.0),
    "mixed:1": Policy("mixed", 1.0, 1.0),
    "kolobov": policy_of("kolobov"),
    "azar": policy_of("azar"),
    "whittle": policy_of("whittle"),
}
OTHERWISE = ("freshness:mean", "proportional:filed", "p1:filed")
"""of those, executed in another way"""
BASELINES = (
    "nutch", "nutch-shipped", "stormcrawler", "azar-random", "lambdacrawl", "mirror-sync", "learning-to-crawl",
)  # fmt: skip
SIGNALLED = ("greedy-ncis", "p1:signals", "mixed:0.3:signals")
"""rules that listen to signals of changes"""
ALIASES = {"freshness:doubt": "freshness"}
"""other names that a rule had"""
NAMES = (*POLICIES, *OTHERWISE, *BASELINES)
LEARNING = ("mirror-sync", "learning-to-crawl")
"""rules that learn what they need by themselves"""
BLIND = ("uniform", "nutch", "nutch-shipped", "stormcrawler", *LEARNING)
"""rules that use no rates: the same whether rates are known or not"""


def _mixed(name: str) -> Policy:
    """Make a mixed policy of its name. ValueError: alpha is no number, or larger than single precision allows."""
    try:
        alpha = float(name.removeprefix("mixed:"))
    except ValueError:
        alpha = math.nan
    if not 0.0 <= alpha <= MOST_ALPHA:
        raise ValueError(f"policy {name!r}: mixed:ALPHA, ALPHA a number from 0 to {MOST_ALPHA:,.0f}")
    return Policy("mixed", alpha, 1.0)


def rule(name: str, born: Reals, seed: int, tick: int = TICK, days: float = DAYS) -> Rule:
    """Make the rule of this name. ValueError: no such rule.

    born: when each page was born, days; tick: seconds; days: that the world lasts. So a plug-in of `xyro.policies` is
    called, which returns a Rule (page_arrays.py), where its name is none of ours.
    """
    name = ALIASES.get(name, name)
    if name == "freshness":
        return Doubting()
    if name in POLICIES:
        return Indexed(POLICIES[name])
    policy, _, execution = name.rpartition(":")
    if execution == "filed" and policy in POLICIES:
        return Filed(POLICIES[policy], born, tick)
    if execution == "signals" and policy in POLICIES:
        return Heeding(POLICIES[policy], len(born))
    if name.startswith("mixed:"):
        return Indexed(_mixed(name))
    rng = np.random.default_rng((seed, 6))
    makers: Mapping[str, Callable[[], Rule]] = {
        "freshness:mean": lambda: Indexed(POLICIES["freshness"]),
        "nutch": lambda: Scheduled(born, 7.0, partial(nutch, shortest=tick / DAY), relative=True),
        "nutch-shipped": lambda: Scheduled(born, 30.0, nutch_shipped),
        "stormcrawler": lambda: Scheduled(born, 1.0, stormcrawler),
        "azar-random": lambda: RandomRule(POLICIES["azar"], rng),
        "lambdacrawl": lambda: RandomRule(POLICIES["kolobov"], rng),
        "mirror-sync": lambda: MirrorSync(born, rng),
        "learning-to-crawl": lambda: LearningToCrawl(born, days, RandomRule(POLICIES["azar"], rng)),
        "greedy-ncis": lambda: GreedyNcis(len(born)),
    }
    if name not in makers and is_offered(PLUG_INS, name):
        made: Rule = plug_in(PLUG_INS, name)(born, seed, tick, days)
        return made
    if name not in makers:
        raise ValueError(f"policy {name!r}: one of {', '.join((*NAMES, *SIGNALLED))}, or mixed:ALPHA")
    return makers[name]()
