"""Computes `xyro plan`: how fresh a bandwidth keeps the collection, or what bandwidth a freshness takes.

It works on the sketch of all refreshed pages (frontier/bandwidth.py): they change as the beliefs behind their rates say
(refresh/expected.py), the bounds of [refresh] hold, and audit reads are paid for from the bandwidth. The freshness is
put right by how often changes came beside what was believed of the reads made so far (refresh/calibration.py). No more
is read than politeness allows of the hosts of these pages, all together.

A row tells the long run, once copies are as old as this bandwidth lets them grow, and the means of the day and of the
week from now, which begin with the copies as they are: at .05 reads a page and day a cycle of reads takes 20 days.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from xyro.configs.schema import RefreshSettings
from xyro.frontier.bandwidth import DAY, UNITS, rules_of
from xyro.refresh.calibration import corrected
from xyro.refresh.plan_part import PlanPart
from xyro.refresh.policy import NAMES, Rules
from xyro.wire.errors import InputError

USUAL = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""bandwidths shown where none is asked for: shares of the refreshed pages, a day"""
LEAST_SHARE, MOST_SHARE = 1 / 128, 32_768.0
"""bounds of the bandwidth that is proposed, in shares of the refreshed pages, a day"""
ENOUGH = 0.01
"""of freshness: twice the bandwidth for less gain is not worth it"""
SLOW_START = 0.5
"""freshness below which little gain says nothing: where pages change faster than they are read, all gains are small"""

SOON = {"next_day": 1.0, "next_week": 7.0}
"""days from now, by the name of their freshness"""
LEAST_TARGET = 1e-6
"""freshness by the model at which pages that change less than it believes are as fresh as asked: any bandwidth does"""


class PlanQuestion(Struct, frozen=True):
    """InputError: what is asked makes no sense."""

    target: float | None = None
    bandwidth: str | None = None
    policies: tuple[str, ...] = ()
    """names; `all`; empty: the policy of the settings"""

    def __post_init__(self) -> None:
        if self.target is not None and self.bandwidth is not None:
            raise InputError("plan: a target says what bandwidth it takes, a bandwidth what it gives: ask for one")
        if self.target is not None and not 0.0 < self.target < 1.0:
            raise InputError(f"plan: target {self.target:g}: a freshness above 0 and below 1, such as 0.9")
        if self.bandwidth is not None:
            per_day(self.bandwidth)
        for name in self.policies:
            if name != "all" and name not in NAMES:
                raise InputError(f"plan: policy {name!r}: one of {', '.join(NAMES)}, or all")


def per_day(bandwidth: str) -> float:
    """Reads a day: "2", "2/s", "4000/day". InputError: it is none of these."""
    number, slash, unit = bandwidth.partition("/")
    try:
        reads = float(number) * DAY / UNITS[unit.strip() if slash else "s"]
    except (ValueError, KeyError):
        reads = -1.0
    if not 0.0 < reads < math.inf:
        raise InputError(f"plan: bandwidth {bandwidth!r}: reads a second, or such as 4000/day (/s, /min, /h)")
    return reads


def forecast(
    part: PlanPart, settings: RefreshSettings, question: PlanQuestion, now: float | None = None
) -> list[dict[str, Any]]:
    """Compute the rows of `xyro plan`: 4 to 30 ms each, some .3 s for a target. now: None: of the long run alone."""
    rows: list[dict[str, Any]] = []
    pages, believed, kappa = part.pages, part.expected.believed, part.calibration.kappa
    planned = 1.0 - settings.audit / 100.0
    allowed = part.most_reads * planned
    for name in _policies(question, settings):
        rules = rules_of(msgspec.structs.replace(settings, policy=name))
        if question.target is not None:
            wanted = [pages.needed(max(1.0 - (1.0 - question.target) / kappa, LEAST_TARGET), rules, believed)]
        elif question.bandwidth is not None:
            wanted = [per_day(question.bandwidth) * planned]
        else:
            wanted = [share * pages.pages * planned for share in USUAL]
        for asked in wanted:
            reached = math.isfinite(asked) and (question.target is None or asked <= allowed)
            reads = asked
            bandwidth = min(asked if math.isfinite(asked) else 1e6 * pages.pages, allowed)
            seen = pages.outlook(bandwidth, rules, believed)
            if seen.reads_per_day > 1.01 * allowed:  # max_interval cannot be kept
                rules = msgspec.structs.replace(rules, ceiling=math.inf)
                seen = pages.outlook(bandwidth, rules, believed)
            if seen.reads_per_day > 1.01 * reads:  # less keeps no page within its max_interval
                reads = seen.reads_per_day
            rows.append(
                {
                    "policy": name,
                    "reads_per_day": round(reads / planned, 1) if reached else None,
                    "reads_per_second": round(reads / planned / DAY, 6) if reached else None,
                    "share_per_day": round(reads / planned / pages.pages, 6) if reached and pages.pages else None,
                    "used_per_day": round(seen.reads_per_day, 1),
                    "freshness": round(corrected(seen.freshness, kappa), 4),
                    **_soon(part, bandwidth, rules, now),
                    "obsolescence": round(seen.obsolescence, 4) if math.isfinite(seen.obsolescence) else None,
                    "never_read": round(seen.never, 4),
                }
            )
    return rows


def _soon(part: PlanPart, reads: float, rules: Rules, now: float | None) -> dict[str, float | None]:
    """Return the freshness of the next day and week; None: nothing is known of the copies."""
    whole = part.expected.importance
    if now is None or not whole:
        return dict.fromkeys(SOON)
    long_run = part.pages.long_run(reads, rules)
    found = {name: part.expected.coming(long_run, now, days) for name, days in SOON.items()}
    return {name: round(part.calibration.headline(stale, whole).freshness, 4) for name, stale in found.items()}


def _policies(question: PlanQuestion, settings: RefreshSettings) -> Sequence[str]:
    if "all" in question.policies:
        return NAMES
    return question.policies or (settings.policy,)


def proposal(part: PlanPart, settings: RefreshSettings) -> dict[str, Any]:
    """The row of the bandwidth that `plan` proposes: twice as much would gain less than ENOUGH of freshness."""
    share = LEAST_SHARE
    enough = before = _row_of(part, settings, share)
    while share < MOST_SHARE:
        share *= 2.0
        row = _row_of(part, settings, share)
        gain = row["freshness"] - before["freshness"]
        if gain >= ENOUGH:
            enough = row
        elif enough["freshness"] > SLOW_START:
            break
        before = row
    return enough


def _row_of(part: PlanPart, settings: RefreshSettings, share: float) -> dict[str, Any]:
    return forecast(part, settings, PlanQuestion(bandwidth=f"{share * part.pages.pages}/day"))[0]


def report(part: PlanPart, settings: RefreshSettings, question: PlanQuestion, now: float) -> dict[str, Any]:
    """Combine the rows with the number of pages that they are over. InputError: no page was read yet."""
    if not part.pages.pages:
        raise InputError("plan: no page is refreshed yet: let the crawl read some first")
    rows = forecast(part, settings, question, now)
    proposed: dict[str, Any] | None
    if question.target is None:
        proposed = proposal(part, settings)
    else:  # who wants a freshness that no bandwidth gives is not helped by the bandwidth of another
        reaching = [row for row in rows if row["reads_per_day"] is not None]
        proposed = min(reaching, key=lambda row: float(row["reads_per_day"])) if reaching else None
    return {
        "pages": part.pages.pages,
        "target": question.target,
        "changes_over_believed": round(part.calibration.kappa, 4),
        "hosts_allow_per_day": round(part.most_reads, 1) if math.isfinite(part.most_reads) else None,
        "rows": rows,
        "proposed": proposed,
    }
