"""Bandwidth: how many reads there are, how long a page's interval is, and gamma, which divides reads between discovery
and refresh.

Before: the reports of a turn are counted (`answered`). After: revisit_dates.py dates pages by `interval`, due_queue.py
spends the credit, discovery.py and revisits.py take their parts of the orders.

    Bandwidth    reads a second B, set or measured (refresh/sharing.py Capacity: refresh's part while unread pages
                 wait), less what pages with deadlines take of them (due_queue.py)
    population   all refreshed pages by weight sqrt(r lambda) and change rate (refresh/population.py)
    multiplier   such that the intervals of all of them, bounds included, take B (refresh/policy.py): for P1's law
                 t = K / sqrt(r lambda), K = sqrt(2 mu) (P1 eq. 22)
    Governor     the credit in reads that a bandwidth earns as time passes
    Gamma        how the orders are shared while both unread and due pages wait:
                 fixed ([refresh] gamma), by gamma_schedule, towards target_freshness, or "auto": one index for read and
                 unread pages. Discovery's marginal page has the index nu; pages are refreshed as often as they would be
                 if nu were the multiplier, and discovery gets the rest

The multiplier is found anew when B, S or the number of pages has moved by DRIFT since, or MOST seconds after any
change: 1 to 10 ms each time. Importance is relative to the mean over the refreshed pages; weights hold it as measured.
Partitions tell each other their sums (plugins/totals), and each plans as if it knew all pages: one multiplier and one
gamma, and of the bandwidth the part that its own pages take. The queue, which those of a process share, takes the mean
of their gammas (service/node/node.py).

Invariant: population and S hold every READ page of weight above 0 with the weight and rate of its Refresh-Data row.
The population is stored bin by bin, in the same groups as the rows (rows.PLAN).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from xyro.configs.schema import RefreshSettings
from xyro.frontier.site_intervals import UNBOUNDED, SiteBounds, SiteIntervals
from xyro.metadata import rows
from xyro.metadata.partition import Partition
from xyro.metadata.rows import RefreshRow
from xyro.refresh.policy import SCATTER, Policy, Rules, Spread, weight
from xyro.refresh.population import ChanceWaits, Outlook, Population
from xyro.refresh.rate_belief import PageBelief
from xyro.refresh.sharing import BandwidthMeter, Bursts, Capacity, Controller, GammaSchedule
from xyro.wire.ids import LocalPage

if TYPE_CHECKING:
    from xyro.refresh.other_sums import OtherSums

DAY = 86_400.0
LEAST_FREE = 0.1
"""share of the bandwidth that the multiplier spends, however much is promised: dates stay within ten times"""
DRIFT = 0.05
"""relative change of S, B or the number of pages after which the multiplier is found anew: some 250 times while a crawl
grows to 100,000 pages, 7 us a page"""
CREDIT_LIMIT = 300.0
BURST = 3_600.0
LEAST_BURST = 16.0
"""seconds of bandwidth, or reads, that may be made up for at most"""
LATEST = 0xFFFF_FFFF
"""the last time that the column `due` can tell"""
GOLDEN = 0.618_033_988_749_895
"""Multiples of it, modulo 1, are spread more evenly than chance: intervals of a page keep their mean."""
UNITS = {"s": 1.0, "min": 60.0, "h": 3_600.0, "day": DAY}


class Interval(NamedTuple):
    seconds: float
    """infinite: the page is not read again by this policy"""
    term: str
    """what set it: policy | chance | floor | ceiling | hopeless | importance | site-floor | site-ceiling"""


def parse_bandwidth(bandwidth: float | str) -> float:
    """`[refresh] bandwidth`: a number, or a text as of the schema, "4000/day". 0 = measured."""
    number, _, unit = str(bandwidth).partition("/")
    return float(number) / UNITS[unit.strip() or "s"]


def rules_of(settings: RefreshSettings) -> Rules:
    """The policy within its bounds. The first second is never used: dates are whole seconds."""
    floor = max(1.0, settings.min_interval)
    return Rules(
        Policy(settings.policy, settings.alpha, settings.beta),
        floor=floor / DAY,
        ceiling=max(floor, settings.max_interval) / DAY,
        least=settings.min_importance,
        hopeless=settings.hopeless if settings.min_interval else 0.0,
        hopeless_days=settings.hopeless_interval / DAY,
        least_chance=settings.least_chance,
    )


class Governor:
    """Reads that may be made by now: a credit that grows with the bandwidth; below 0 where promises took more."""

    def __init__(self) -> None:
        self.credit = 0.0
        self._advanced_at: float | None = None

    def advance(self, now: float, reads_per_second: float) -> None:
        passed = 0.0 if self._advanced_at is None else max(now - self._advanced_at, 0.0)
        self._advanced_at = now
        self.credit = min(self.credit + passed * reads_per_second, max(LEAST_BURST, BURST * reads_per_second))

    def load(self, debt: float) -> None:
        """Begin with so many reads to be earned back."""
        self.credit = -debt

    def spend(self, reads: float = 1.0) -> None:
        """Pay for reads."""
        self.credit -= reads

    def forgive(self, debt: float) -> None:
        """Owe at most so many reads."""
        self.credit = max(self.credit, -debt)

    @property
    def debt(self) -> float:
        """Reads to be earned back; kept over a restart."""
        return max(-self.credit, 0.0)

    def when(self, now: float, reads_per_second: float) -> float:
        """Return when the next read may be made."""
        if self.credit >= 1.0:
            return now
        return now + (1.0 - self.credit) / reads_per_second if reads_per_second > 0.0 else math.inf


def drawn(page: LocalPage, reads: int) -> float:
    """Draw a number, 0 <= x < 1, evenly over the pages and over the reads of each."""
    return ((page + reads) * GOLDEN) % 1.0


def second(when: float) -> int:
    """The first full second from `when` on, as the column `due` holds it."""
    return min(max(math.ceil(min(when, LATEST)), 0), LATEST)


def importance_of(row: RefreshRow) -> float:
    """The importance, as measured, by which a page was weighed; times `Bandwidth.scale`: of mean 1."""
    return row.weight * row.weight / row.pace if row.pace else 0.0


class RecountSums:
    """S and population of the pages before `cursor`, while they are counted anew (redating.py)."""

    def __init__(self) -> None:
        self.cursor = 0
        self.spread = Spread()
        self.population = Population()

    def begin(self, spread: Spread, population: Population | None = None) -> None:
        """Go on from a stored S, and a stored population."""
        self.spread, self.population = spread, population or Population()

    def add(self, weight: float, rate: float) -> None:
        self.spread.replace(0.0, weight)
        self.population.add(weight, rate)

    def replace(self, row: RefreshRow | None, weight: float, rate: float) -> None:
        """A page's numbers go from those of its row to these."""
        old = row.weight if row is not None else 0.0
        self.spread.replace(old, weight)
        self.population.replace(old, row.pace if row is not None else 0.0, weight, rate)


class Bandwidth:
    """The bandwidth of one partition; `partitions` share a bandwidth that is set."""

    def __init__(self, settings: RefreshSettings, partitions: int = 1, sites: SiteIntervals | None = None) -> None:
        """sites: other bounds for pages of some hosts; None: there are none."""
        self.partitions = partitions
        self.sites = sites
        self.meter = BandwidthMeter()
        """reads made, of any kind"""
        self.capacity = Capacity()
        self.paid = 0
        """reads of pages with a deadline since `renew`"""
        self.deadline_reads = Bursts()
        self.counts = RecountSums()
        self.counting: RecountSums | None = None
        """while all pages are counted anew"""
        self.measured = True
        """False in a directory from before there was a population, until it is counted"""
        self.multiplier = math.inf
        self.scale = 1.0
        """brings importance to mean 1 over the refreshed pages"""
        self.share = 1.0
        """refresh's part of the bandwidth; of that, audits take 1 - planned"""
        self._others: OtherSums | None = None
        """of the other partitions; None: nothing is known of them, and each has an equal part"""
        self._part = 1.0
        """of the reads of refreshed pages: those of pages here"""
        self._found: tuple[float, ...] | None = None
        """S, B and pages when the multiplier was found, and the S of pages here"""
        self._again = 0.0
        self.follow(settings)

    def follow(self, settings: RefreshSettings) -> None:
        """Other settings."""
        self.rules = rules_of(settings)
        self.fixed = parse_bandwidth(settings.bandwidth) / self.partitions
        self.planned = 1.0 - settings.audit / 100.0
        self.covers_all = settings.bandwidth_covers == "all" and self.fixed > 0.0
        """new pages are read out of the bandwidth that was set, too"""
        self.has_sites = self.sites is not None and self.sites.on
        """[[sites]] bound intervals of some pages"""
        self.bounded = settings.least_chance > 0.0 or settings.min_interval > 0.0 or self.has_sites
        """pages are not read before a time of theirs, whatever bandwidth is free"""
        self._found = None
        found = (self.rules, self.fixed)
        self.law = repr((*found, self.sites) if self.has_sites else found)
        """the settings and sums by which pages are dated"""

    # -- bandwidth -----------------------------------------------------------------------------------------------

    def answered(self, reads: int, now: float, busy: bool) -> None:
        """Reads that came in by now; busy: there was more to read than was read since the last call."""
        if reads:
            self.meter.count(now, reads)
        self.capacity.count(now, reads, busy)

    @property
    def reads_per_second(self) -> float:
        """Reads a second that refresh plans with; 0 = not known yet."""
        return self.share * self.planned * self.whole

    @property
    def whole(self) -> float:
        """Reads a second that there are to share."""
        return self.total * self._part if self._others is not None else self.fixed or self.capacity.rate()

    @property
    def total(self) -> float:
        """Reads a second that all partitions have together, as far as they are known here."""
        if self._others is None:
            return self.whole
        return self.fixed * self.partitions or self.capacity.rate() + self._others.rate

    @property
    def unread_elsewhere(self) -> int:
        """Pages never read that wait in other partitions."""
        return self._others.unread if self._others is not None else 0

    def hear_others(self, others: OtherSums) -> None:
        """Plan with these sums of all other partitions from now on."""
        self._others, self._again = others, -math.inf

    def for_new_pages(self, unread: int) -> float:
        """Return the reads a second that there are to share where `unread` pages wait here, for new pages among them:
        all partitions with such pages have theirs by their numbers."""
        if self._others is None:
            return self.whole
        return self.total * unread / max(unread + self._others.unread, 1)

    # -- pages ---------------------------------------------------------------------------------------------------

    @property
    def spread(self) -> Spread:
        """S."""
        return self.counts.spread

    @property
    def population(self) -> Population:
        return self.counts.population

    def replace(self, page: LocalPage, row: RefreshRow | None, weight: float, rate: float) -> None:
        """A page's numbers go from those of its row to these; weight 0: it is refreshed no more."""
        self.replace_old(row, weight, rate)
        if self.counting is not None and page < self.counting.cursor:
            self.counting.replace(row, weight, rate)

    def replace_old(self, row: RefreshRow | None, weight: float, rate: float | None = None) -> None:
        """Replace a page in the counts that serve now, only."""
        rate = rate if rate is not None else row.pace if row is not None else 0.0
        if self.measured:
            self.counts.replace(row, weight, rate)
        else:
            self.spread.replace(row.weight if row is not None else 0.0, weight)

    def start_counting(self) -> None:
        """Count all pages anew beside the counts that serve now."""
        self.counting = RecountSums()

    def stop_counting(self) -> None:
        """Give a count under way up."""
        self.counting = None

    def share_out(self, share: float) -> None:
        """Leave refresh so large a part of the bandwidth."""
        self.share = share

    @property
    def own(self) -> bool:
        """Tell whether a bandwidth was set that is refresh's alone."""
        return self.fixed > 0.0 and not self.covers_all

    def counted(self) -> None:
        """All pages are counted anew: these counts serve from now on."""
        assert self.counting is not None
        self.counting.population.supersede(self.population)
        self.counts, self.counting, self.measured, self._found = self.counting, None, True, None

    def renew(self, now: float) -> bool:
        """Find the multiplier anew, if what it rests on has moved. True where it was."""
        if not self.measured:
            return False
        if self.paid:
            self.deadline_reads.count(now, self.paid)
            self.paid = 0
        basis = self._basis(now)
        if self._found is not None and now < self._again and not _moved(self._found, basis):
            return False
        if self._found != basis:
            start = self.multiplier if 0.0 < self.multiplier < math.inf else 1.0
            pages = self._pages()
            self.scale = pages.scale()
            self.multiplier = pages.multiplier(basis[1] * DAY, self.rules, start) if basis[1] else math.inf
            if self._others is not None:
                spent = pages.spends(self.multiplier, self.rules) if self.multiplier < math.inf else 0.0
                here = self.population.spends(self.multiplier, self.rules, self.scale) if spent else 0.0
                self._part = here / spent if spent else self.population.pages / max(pages.pages, 1)
        self._found, self._again = basis, now + CREDIT_LIMIT
        return True

    def _pages(self) -> Population:
        """The refreshed pages of all partitions, as far as they are known here."""
        return self.population if self._others is None else self.population.joined(self._others.population)

    def _basis(self, now: float) -> tuple[float, ...]:
        """S, B and pages of all partitions, and the S of pages here."""
        total, pages, others = self.spread.total, self.population.pages, self._others
        if others is None:
            return total, self.free(now), pages
        whole = self.share * self.planned * self.total
        free = max(whole - self.deadline_reads.rate(now) - others.promised, LEAST_FREE * whole)
        return total + others.spread, free, pages + others.population.pages, total

    def free(self, now: float) -> float:
        """Return the bandwidth that promised pages leave: they are read ahead of the plan, and the plan pays for
        them."""
        whole = self.reads_per_second
        return max(whole - self.deadline_reads.rate(now), LEAST_FREE * whole)

    def interval(self, importance: float, rate: float, belief: PageBelief | None = None) -> Interval:
        """Return the interval of a page of this importance (as measured) and change rate (a day, by a `belief`; None:
        it is known)."""
        if not self.measured:  # P1's law needs S alone
            bounds = self.rules.floor * DAY, self.rules.ceiling * DAY
            return Interval(self.spread.interval(weight(importance, rate), self.reads_per_second, *bounds), "policy")
        days, term = self.rules.one_interval(importance * self.scale, rate, self.multiplier, belief)
        return Interval(days * DAY, term)

    def dated(self, interval: Interval, rate: float) -> None:
        """A page of this rate was given this interval: note how much sooner beliefs reach the least chance."""
        if interval.term == "chance":
            self.population.chance_waits.count(interval.seconds / DAY / self.rules.soonest(rate)[0])

    def wait(self, interval: Interval, page: LocalPage, reads: int) -> float:
        """Seconds from a page's read to the next. reads: those before that read.

        A page that waits for its least chance draws how much longer it waits, the same number whenever it is dated
        after that read: half of it for good, or pages that were met together would stay together, for draws that are
        spread evenly over a page's reads add up to the same for all.
        """
        return self._scattered(interval, page, 0.5 * (drawn(page, 0) + drawn(page, reads)))

    def longest_wait(self, interval: Interval, page: LocalPage) -> float:
        """Seconds that `wait` stays below, whatever it draws."""
        return self._scattered(interval, page, 1.0)

    def _scattered(self, interval: Interval, page: LocalPage, draw: float) -> float:
        longer = SCATTER * draw if interval.term == "chance" else 0.0
        scattered = min(interval.seconds * (1.0 + longer), self.rules.ceiling * DAY)
        return self.bounds(page).clamp(scattered) if self.has_sites else scattered

    def bounds(self, page: LocalPage) -> SiteBounds:
        """The bounds that [[sites]] set for a page."""
        return self.sites.bounds(page) if self.sites is not None and self.has_sites else UNBOUNDED

    def at_site(self, page: LocalPage, interval: Interval) -> Interval:
        """Return a page's interval within the bounds of its site."""
        bounds = self.bounds(page)
        if bounds.floor <= interval.seconds <= bounds.ceiling or interval.term == "importance":
            return interval
        return Interval(
            bounds.clamp(interval.seconds), "site-floor" if interval.seconds < bounds.floor else "site-ceiling"
        )

    def of_row(self, page: LocalPage, row: RefreshRow) -> Interval:
        """Return the interval of a page by its row; importance as it was at its last read."""
        return self.at_site(page, self.interval(importance_of(row), row.pace, row.belief))

    def is_early(self, page: LocalPage, row: RefreshRow, now: float) -> bool:
        """Tell whether a page is not to be read yet, whatever bandwidth is free."""
        passed = now - row.last_read
        if not self.bounded or passed < -1.0:  # a clock that was set back makes nobody wait for its old time
            return False
        if passed < self.bounds(page).floor:
            return True
        return not self.rules.reached(row.pace, max(passed, 0.0) / DAY, row.belief)

    def spends_at(self, multiplier: float) -> float:
        """Reads a second that the refreshed pages of all partitions take at this multiplier."""
        return self._pages().spends(multiplier, self.rules) / DAY

    def outlook(self) -> Outlook:
        """Predict what the present bandwidth gives."""
        return self.population.outlook(self.reads_per_second * DAY, self.rules)

    # -- state ---------------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """A count that is under way is begun anew after a restart: until it ends no law is told, or no population."""
        return {
            "spread": self.spread.dump(),
            **({"multiplier": self.multiplier} if self.measured else {}),
            "scale": self.scale,
            "capacity": self.capacity.rate(),
            "law": self.law if self.counting is None else "",
            "promised": self.deadline_reads.dump(),
            **({"chance_waits": waits.dump()} if (waits := self.population.chance_waits).datings else {}),
        }

    def store(self, partition: Partition) -> None:
        """Put what changed of the population into the open commit group."""
        for cell, pages in self.population.changed():
            partition.put(rows.PLAN.key(cell), pages.to_bytes(4, "big"))

    def load(self, state: Mapping[str, Any], partition: Partition) -> bool:
        """Go on from what `dump` gave. False: by another law, or from before there was a population: count all anew."""
        self.counts.begin(Spread.load(state["spread"]))
        self.measured = "multiplier" in state
        if not self.measured:
            return False
        filed = [(rows.PLAN.split(key), int.from_bytes(pages)) for key, pages in partition.scan(rows.PLAN.prefix)]
        waits = ChanceWaits(**state.get("chance_waits", {}))
        self.counts.begin(self.spread, Population.load(tuple(zip(*filed, strict=True)) or ((), ()), waits))
        self.multiplier, self.scale = state["multiplier"], state["scale"]
        self.capacity.resume(state["capacity"])
        self.deadline_reads = Bursts(*state.get("promised", ()))
        return bool(state["law"] == self.law)


def _moved(before: tuple[float, ...], after: tuple[float, ...]) -> bool:
    return len(before) != len(after) or any(
        abs(new - old) > DRIFT * old for old, new in zip(before, after, strict=True)
    )


EVERY = 5.0
"""seconds between two looks of auto"""
CONTROL = 300.0
"""seconds between two steps towards a target"""
LEAST_GAMMA, MOST_GAMMA = 1.0, 99.0
"""bounds of what is adjusted: neither side is shut out, so both go on being measured"""


class Gamma:
    """`renew` once a turn."""

    def __init__(self, settings: RefreshSettings, measured: Callable[[], float | None] = lambda: None) -> None:
        """`measured`: weighted freshness as it is now, None where nobody knows it: then the plan's outlook counts."""
        self.measured = measured
        self.margin = 0.0
        """index of the unread pages that are ordered last, as discovery.py last saw it; 0 = none was seen"""
        self.percent = 50.0
        """as this partition finds it"""
        self._others: OtherSums | None = None
        self._reads = 0
        self.follow(settings)

    def follow(self, settings: RefreshSettings) -> None:
        """Other settings."""
        self.auto = settings.gamma == "auto"
        fixed = self.percent if settings.gamma == "auto" else float(settings.gamma)
        self.schedule = GammaSchedule(settings.gamma_schedule) if settings.gamma_schedule else None
        target = settings.target_freshness
        self.controller = Controller(target, fixed, LEAST_GAMMA, MOST_GAMMA) if target else None
        self.percent = fixed
        self._looked = self._margin_at = -math.inf

    def resume(self, gamma: float) -> None:
        """Go on from where adjusting it had got to."""
        if self.controller is not None:
            self.controller = Controller(self.controller.target, gamma, LEAST_GAMMA, MOST_GAMMA)
            self.percent = self.controller.gamma
        elif self.auto:
            self.percent = gamma

    def hear_others(self, others: OtherSums) -> None:
        """Agree with the other partitions from now on."""
        self._others = others

    @property
    def agreed(self) -> float:
        """The gamma of all partitions: the mean of what each finds, weighed by its reads."""
        if self._others is None or not (self.auto or self.controller is not None):
            return self.percent
        weight, others = 1.0 + self._reads, self._others
        return (weight * self.percent + others.weight * others.gamma) / (weight + others.weight)

    def seeks(self, now: float) -> bool:
        """Tell whether gamma "auto" needs the margin now."""
        return self.auto and _is_over(self._margin_at, EVERY, now)

    def hear(self, margin: float, now: float) -> None:
        """The index of the unread pages that are ordered last; 0 = none wait."""
        self.margin, self._margin_at = margin, now

    def refresh_share(self, contested: bool, own: bool) -> float:
        """Refresh's part of the bandwidth. One that was set is refresh's own, unless gamma is there to divide it."""
        divided = not own or self.auto or self.controller is not None
        return 1.0 - self.agreed / 100.0 if contested and divided else 1.0

    def renew(self, now: float, reads: int, bandwidth: Bandwidth) -> None:
        """gamma as of now; `reads`: of the partition so far."""
        self._reads = reads
        if self.schedule is not None and self.controller is None:
            self.percent = self.schedule.gamma_at(reads + (self._others.reads if self._others is not None else 0))
            return
        if not _is_over(self._looked, CONTROL if self.controller is not None else EVERY, now):
            return
        self._looked = now
        if self.controller is not None:
            if bandwidth.population.pages and bandwidth.reads_per_second > 0.0:
                measured = self.measured()
                self.percent = self.controller.hear(bandwidth.outlook().freshness if measured is None else measured)
        elif self.auto and self.margin > 0.0:
            self.percent = self._competing(bandwidth)

    def _competing(self, bandwidth: Bandwidth) -> float:
        """Return the share of the bandwidth left over when each refreshed page is read once its index reaches the
        margin."""
        whole = bandwidth.total
        if whole <= 0.0 or not math.isfinite(self.margin):
            return self.percent
        return min(max(100.0 * (1.0 - bandwidth.spends_at(self.margin) / whole), LEAST_GAMMA), MOST_GAMMA)


def _is_over(since: float, seconds: float, now: float) -> bool:
    """Have so many seconds passed? A clock that was set back makes nobody wait for its old time."""
    return not since <= now < since + seconds
