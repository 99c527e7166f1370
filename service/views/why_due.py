"""Explains for `xyro why` when a page is read next: its rate, its interval and the rule that set them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from xyro.frontier.bandwidth import importance_of
from xyro.metadata.rows import RefreshRow
from xyro.metadata.states import HASTENED, State
from xyro.refresh.rate_belief import quantile
from xyro.service.views.staleness import staleness
from xyro.service.views.views import View
from xyro.wire.durations import duration_text
from xyro.wire.ids import LocalPage
from xyro.wire.messages import EMPTY
from xyro.wire.text import counted, figure, stamp
from xyro.wire.urls import authority

ROUNDED = 2.0
"""seconds by which the wait between two stored dates may be off: they are whole seconds, a read ends within one"""
UNKNOWN = 30.0
"""times by which the ends of a rate's interval differ at least where it is said not to be known yet"""


def rate_sentence(row: RefreshRow) -> str:
    """Say how often it changes, and how surely."""
    seen = "once" if row.changes == 1 else f"{row.changes:,} times"
    reads = "once" if row.reads == 1 else f"{row.reads:,} times"
    low, high = (float(quantile(row.belief.shares(), share)) for share in (0.05, 0.95))
    read_by = f" Its reads are planned for {figure(row.capped)} changes a day (rate_cap)." if row.capped else ""
    ends = f"between {_often(low)} and {_often(high)} (90 % interval)"
    if not row.shown:
        rate = (
            f". No read has shown yet how often it changes. Until one does, {_often(row.rate)} is assumed, as of pages "
            f"like it: {ends}."
        )
    elif high > UNKNOWN * low:
        rate = (
            f". How often it changes is hardly known yet: {ends}. Until reads tell more, {_often(row.rate)} is assumed."
        )
    else:
        rate = f": about {figure(row.rate)} changes a day (90 % interval: {figure(low, 2)} to {figure(high, 2)})."
    return f"It was read {reads} and changed {seen}{rate}{read_by}"


def _often(rate: float) -> str:
    """Changes a day in words."""
    if rate >= 1.5:
        return f"{figure(rate, 2)} times a day"
    return "once a day" if rate > 1 / 1.5 else f"once in {figure(1.0 / max(rate, 1e-9), 2)} days"


def stale_sentences(row: RefreshRow, now: float) -> Iterator[str]:
    """Say whether it has probably changed since it was read. now: 0 where nobody asks."""
    if now and row.last_read:
        stale = 100.0 * staleness(row.belief, row.last_read, now)
        chance = "below 0.01" if stale < 0.01 else figure(stale, 2)
        yield f"The probability that it has changed since then is {chance} %."


def interval_sentences(view: View, page: LocalPage, row: RefreshRow, now: float) -> Iterator[str]:
    """Explain its interval, the term that set it, and its next read."""
    scheduler, due = view.frontier.scheduler, int(view.due[page])
    if not scheduler.schedule.refreshing:
        state = "This crawl does not refresh" if view.frontier.now else "Nothing runs now"
        yield f"{state}, so it has no next read; `xyro serve` or `xyro crawl --refresh` plans one."
        return
    bandwidth = scheduler.bandwidth
    if not row.weight and bandwidth.rules.least:
        yield (
            f"Its importance is below min_importance ({bandwidth.rules.least:g}), so it is not read again. This is "
            f"checked again at {stamp(due)}."
        )
        return
    interval = bandwidth.of_row(page, row)
    longest = bandwidth.longest_wait(interval, page)
    between = duration_text(interval.seconds)
    if duration_text(longest) != between:
        between += f" to {duration_text(longest)} (drawn, so that pages do not stay in step)"
    yield f"{_TERMS[interval.term](view, row)} It is read every {between}."
    if due:
        yield f"Its next read is due at {stamp(due)}{_after_last(view, page, row, interval.seconds, longest)}."


def _after_last(view: View, page: LocalPage, row: RefreshRow, shortest: float, longest: float) -> str:
    """How long after its last read a page is due, and why that is not its interval, where it is not."""
    wait = int(view.due[page]) - row.last_read
    after = f", {duration_text(max(wait, 0))} after its last"
    if view.flags[page] & HASTENED:
        return f"{after}: a claim of its site, a regular change or a cluster sets it"
    if shortest - ROUNDED <= wait <= longest + ROUNDED:
        return after
    return f"{after}: it was dated when its interval was another. If that is longer by then, it waits on"


def _policy(view: View, row: RefreshRow) -> str:
    bandwidth, refresh = view.frontier.scheduler.bandwidth, view.frontier.settings.refresh
    how = f"Policy {bandwidth.rules.policy.name}"
    if bandwidth.rules.policy.name == "obsolescence":
        k, importance = math.sqrt(2.0 * bandwidth.multiplier), importance_of(row) * bandwidth.scale
        how += (
            f": t = K / sqrt(importance x change rate) = {figure(k)} days / sqrt({figure(importance)} x "
            f"{figure(row.pace)}), of an importance of mean 1 over the refreshed pages, as of its last read; K is such"
        )
    else:
        how += ", such"
    reads = bandwidth.free(view.frontier.now) * 86_400
    spread = f"that {counted(bandwidth.population.pages, 'page')} take {figure(reads)} reads a day"
    whose = "as set" if refresh.bandwidth else "as many as could be read lately"
    return f"{how} {spread} ({whose})."


def _floor(view: View, row: RefreshRow) -> str:
    if view.frontier.settings.refresh.min_interval:
        return "Without [refresh] min_interval it would be read more often."
    return "It would be read more often if dates were not whole seconds."


_TERMS: dict[str, Callable[[View, RefreshRow], str]] = {
    "policy": _policy,
    "floor": _floor,
    "chance": lambda view, row: (
        f"It is read when a change has become likely: least_chance is {view.frontier.settings.refresh.least_chance:g}."
    ),
    "ceiling": lambda view, row: "Without [refresh] max_interval it would be read less often, or never.",
    "hopeless": lambda view, row: "It changes too fast to be kept fresh (hopeless).",
    "site-floor": lambda view, row: "Without min_interval of its [[sites]] entry it would be read more often.",
    "site-ceiling": lambda view, row: (
        "Without max_interval of its [[sites]] entry it would be read less often, or never."
    ),
    "importance": lambda view, row: "Its importance is below min_importance.",
}


def host_sentences(view: View, page: LocalPage, now: float) -> Iterator[str]:
    """Explain why its host's pages wait: people, blackouts, budgets, politeness."""
    number, host = int(view.host[page]), authority(view.url(page))
    scheduler = view.frontier.scheduler
    clock = view.partition.hosts.clocks.get(number)
    if clock is not None and clock.hold:
        yield f"Somebody has {clock.hold} host {host}: `xyro resume {host}` lifts it."
    elif clock is not None and clock.next_at > now:
        yield f"Host {host} is left alone until {stamp(clock.next_at)} ({counted(clock.failures, 'failure')} in a row)."
    if not view.frontier.now:  # a stopped crawl: nobody has asked the calendar yet
        scheduler.host_limits.renew(now)
    shut = scheduler.host_limits.until.get(number)
    if shut is not None and shut[1] == "blackout":
        yield f"Host {host} is in a blackout until {stamp(shut[0])}: none of its pages is read, ordered or not."
    elif shut is not None and shut[1] == "budget":
        yield f"The budget of host {host} ([[budgets]]) is used up until {stamp(shut[0])}."
    mask = view.partition.hosts.masks.get(number)
    if mask is not None and mask.vendor:
        shows = "empty answers" if mask.vendor == EMPTY else f"a challenge ({mask.vendor})"
        yield (
            f"Host {host} shows {shows} in place of its pages, {mask.times} in a row since "
            f"{stamp(mask.since)}: none of its pages is read until {stamp(mask.until)}, what is known stays."
        )
    used = scheduler.host_limits.used(number)
    if used is not None:
        yield f"Of the {used[1]:,} pages a day of host {host}, {used[0]:,} were ordered today."


def retry_sentences(view: View, page: LocalPage) -> Iterator[str]:
    """Say when a page that no policy refreshes is tried again."""
    state, due = State(int(view.state[page])), int(view.due[page])
    if state in (State.FAILED, State.DISALLOWED) and due and view.frontier.scheduler.schedule.refreshing:
        yield f"It is tried again at {stamp(due)}."
    if state is State.UNREAD and view.frontier.scheduler.gamma.auto:
        yield f"Discovery gets {view.frontier.scheduler.gamma.percent:.0f} % of the orders now (gamma = auto)."
