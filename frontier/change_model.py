"""The change model of a partition: its pages' change rates, the priors behind them, habits, and trust in claims.

After each report `learn` brings up to date what the page's row keeps of it (refresh/rate_sums.py, evidence.py,
periodic.py) and settles the claims that its host and others made of it (refresh/trust.py); `rates` then tells the rates
of all pages of a turn at once, and `count` counts them among those that priors are learned from. What is learned of
hosts lies in their rows, in the same commit group as the page's; what is learned of kinds of pages in the frontier's
dump.

    last_modified   of the report: believed if it is plausible in itself and its host is not doubted
    claims          claims of a page that wait for its next read: dates and rates of sitemaps and feeds, caching
                    headers, rates that its publisher told (`claim_rate`)
    published       what a host itself told of a page came out true or false
    counted         how the page counts in the populations: with this number it was put in, and is taken out again
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgpack
import msgspec
from msgspec import Struct

from xyro.configs.schema import RefreshSettings
from xyro.metadata import rows
from xyro.metadata.partition import Partition
from xyro.metadata.rows import PageClaim, RefreshRow
from xyro.metadata.visits import Visit, http_date
from xyro.refresh import periodic
from xyro.refresh.change import YOUNGEST, usable_last_modified
from xyro.refresh.evidence import bounded, claimed_outcome, outcome, weigh_age, weigh_rate
from xyro.refresh.periodic import Habit
from xyro.refresh.rate_belief import (
    PageBelief,
    PriorLearner,
    RatePopulation,
    RatePrior,
    codes,
    rate,
    rates_of_pages,
    shares_of_pages,
    unread,
)
from xyro.refresh.rate_sums import DAY, RateSums
from xyro.refresh.trust import Source, Trust, plausible
from xyro.wire.ids import LocalPage
from xyro.wire.messages import Kind, PageReport

NUANCE = 0.02
"""of a rate: one that other priors move by less is left as it is"""
_NEVER = RefreshRow()
_PUBLISHERS = rows.META.key("publisher ")
"""rows of an older version: what publishers' claims were worth, by name"""


class ChangeRecord(NamedTuple):
    """The fields of a page's row that tell of its changes, after a report."""

    belief: PageBelief
    habit: Habit | None
    claims: tuple[PageClaim, ...]
    diary: bytes


class RateEstimate(NamedTuple):
    """The rate of a page as it is believed after a report."""

    rate: float
    """changes a day"""
    code: int
    """as it counts in the populations"""


class Observation(Struct):
    """One report, as far as changes go."""

    page: LocalPage
    host: int
    report: PageReport
    visit: Visit
    row: RefreshRow
    tau: float
    """days since the read before; 0 at the first one, or where the visit shows nothing"""
    modified: float | None
    """Last-Modified, seconds since 1970"""

    @property
    def shown(self) -> bool:
        """The visit says whether the page changed since the read before."""
        return self.tau > 0.0


class ChangeModel:
    """`learn` for each settled order of a turn, `claim_rate` and `published` of what sites say; `keep` after these."""

    def __init__(self, partition: Partition, settings: RefreshSettings, enough: int = 50) -> None:
        self.partition = partition
        self.settings = settings
        self.enough = enough
        self.kinds = PriorLearner(enough=enough)
        """by kind of body, and all pages together"""
        self._trust: dict[int, Trust] = {}
        """of the hosts of this turn"""
        self._rates: dict[int, RatePopulation] = {}
        self._moved: set[int] = set()
        """hosts of this turn whose row has to be stored"""
        self._priors: dict[tuple[int, Kind], RatePrior] = {}
        self._adopted: list[bytes] = []
        """rows of an older version that are to go with the next group"""

    # -- state ---------------------------------------------------------------------------------------------------

    def follow(self, settings: RefreshSettings) -> None:
        """Go on with other settings: a page learns by them at its next read."""
        self.settings = settings

    def dump(self) -> dict[str, Any]:
        return {"priors": self.kinds.dump()}

    def load(self, state: Mapping[str, Any] | None) -> None:
        """Go on from what `dump` gave; of an older version it holds no priors, which are learned anew."""
        if state is not None and "priors" in state:
            self.kinds.load(state["priors"])
        self._adopt()

    def _adopt(self) -> None:
        """Trust in publishers lay in rows of its own; it is their host's."""
        for key, packed in self.partition.scan(_PUBLISHERS):
            host = self.partition.hosts.numbers.get(rows.META.split(key).removeprefix("publisher "))
            if host is not None:
                self._settled(host).adopt(Trust.load(msgpack.unpackb(packed)), Source.PUBLISHED)
            self._adopted.append(key)

    def keep(self) -> None:
        """Rows of the hosts about which something was learned."""
        hosts = self.partition.hosts
        while self._adopted:
            self.partition.delete(self._adopted.pop())
        for host in self._moved:
            for key_of, data in ((hosts.trust, self.trust(host).dump()), (hosts.rates, self._population(host).pack())):
                if data:
                    key_of[host] = data
                else:
                    key_of.pop(host, None)
            self.partition.put(*hosts.stored(host))
        self._trust, self._rates, self._moved, self._priors = {}, {}, set(), {}

    # -- hosts ---------------------------------------------------------------------------------------------------

    def trust(self, host: int) -> Trust:
        """Return the trust in a host's claims, by its number."""
        found = self._trust.get(host)
        if found is None:
            found = self._trust[host] = Trust.load(self.partition.hosts.trust.get(host, b""))
        return found

    def published(self, host: int, true: bool, chance: float) -> None:
        """A host said that a page of its had changed, or was new; `chance`: that this was so anyway."""
        self._settled(host).changed(Source.PUBLISHED, true, chance)

    def _settled(self, host: int) -> Trust:
        self._moved.add(host)
        return self.trust(host)

    def _population(self, host: int) -> RatePopulation:
        found = self._rates.get(host)
        if found is None:
            found = self._rates[host] = RatePopulation.unpack(self.partition.hosts.rates.get(host, b""))
        return found

    def prior(self, host: int, kind: Kind) -> RatePrior:
        """Return the prior of the host's pages once enough of them were read again, else of pages of this kind, else
        of all."""
        key = host, kind
        found = self._priors.get(key)
        if found is None:
            if host in self.partition.hosts.rates and self._population(host).pages >= self.enough:
                found = self._population(host).prior()
            else:
                found = self.kinds.prior(kind.name)
            self._priors[key] = found
        return found

    @property
    def prior_rate(self) -> float:
        """Changes a day of a page of which nothing is known, by what is known of all pages together."""
        return _unread(self.kinds.common).rate

    # -- pages ---------------------------------------------------------------------------------------------------

    def learn(self, page: LocalPage, report: PageReport, visit: Visit, row: RefreshRow | None) -> ChangeRecord:
        """Belief, habit and pending claims of the page after this report."""
        if row is None and not report.last_modified and not report.fresh_for:  # the common first read
            return ChangeRecord(
                PageBelief(RateSums(), self.prior(self.partition.hosts_of[page], report.kind)), None, (), b""
            )
        observation = self._observation(page, report, visit, row or _NEVER)
        old = observation.row
        prior = self.prior(observation.host, old.kind if old.reads else report.kind)
        age = self._age(observation)
        claims = old.claims
        if claims and observation.shown:
            claims = self._settle(observation, prior)
        elif visit.answered and not old.reads:
            claims = tuple(claim for claim in claims if claim.rate)  # dates of before: they are part of the belief now
        diary, habit = old.diary, None
        if self.settings.regular and observation.shown:
            dated = report.ended - age * DAY if age is not None and visit.changed else None
            diary, habit = periodic.visited(diary, old.last_read, report.ended, visit.changed is True, dated)
        elif self.settings.regular and diary:
            habit = periodic.unpack(diary).habit
        belief = self._belief(observation, prior, age)
        if report.fresh_for and visit.answered:
            claims = having(
                claims, PageClaim(Source.CACHE, observation.host, int(report.ended), DAY / report.fresh_for)
            )
        return ChangeRecord(belief, habit, claims, diary)

    def _observation(self, page: LocalPage, report: PageReport, visit: Visit, row: RefreshRow) -> Observation:
        shown = visit.changed is not None and row.last_read > 0
        tau = max((report.ended - row.last_read) / DAY, 1e-9) if shown else 0.0
        modified = http_date(report.last_modified) if report.last_modified else None
        return Observation(page, self.partition.hosts_of[page], report, visit, row, tau, modified)

    def _age(self, observation: Observation) -> float | None:
        """Days since the last change as the answer's Last-Modified proves it; None where it is not to be trusted."""
        if observation.modified is None or not observation.visit.answered:
            return None
        changed = observation.visit.changed if observation.shown else None
        last_read = float(observation.row.last_read)
        likely = plausible(observation.modified, observation.report.ended, changed, last_read, YOUNGEST * DAY)
        host = observation.host
        if likely is not None and (not likely or host in self.partition.hosts.trust or host in self._moved):
            self._settled(host).dated(likely)
        if self.trust(host).doubted:
            return None
        return usable_last_modified(observation.modified, observation.report.ended, last_read if changed else None)

    def _settle(self, observation: Observation, prior: RatePrior) -> tuple[PageClaim, ...]:
        """This visit shows how the claims about the page came out; dates are done with, rates go on being tested."""
        changed = observation.visit.changed is True
        for claim in observation.row.claims:
            host = self._settled(claim.host)
            if claim.rate:
                alone = outcome(PageBelief(RateSums(), prior), observation.tau, changed)
                host.settle(Source(claim.source), claimed_outcome(claim.rate, observation.tau, changed), alone)
            else:
                before = observation.row.belief._replace(prior=prior)
                host.changed(Source(claim.source), changed, outcome(before, observation.tau, True))
        return tuple(claim for claim in observation.row.claims if claim.rate)

    def _belief(self, observation: Observation, prior: RatePrior, age: float | None) -> PageBelief:
        """The belief after this report."""
        row = observation.row
        belief = row.belief._replace(prior=prior)
        if observation.shown:
            return belief.after(observation.tau, observation.visit.changed is True, age, self.settings.memory)
        if row.reads:
            return belief
        sums = belief.sums if age is None else belief.sums.dated(age)
        for claim in row.claims:
            weight = self.trust(claim.host).weight(Source(claim.source))
            if claim.rate:
                sums = weigh_rate(sums, claim.rate, weight)
            elif age is None:
                modified = usable_last_modified(float(claim.time), observation.report.ended)
                sums = sums if modified is None else weigh_age(sums, modified, weight)
        return PageBelief(sums, prior)

    def rates(self, beliefs: Sequence[PageBelief]) -> list[RateEstimate]:
        """The rates of pages just read, all at once. A page of which nothing was shown yet has its prior's."""
        found = [_unread(belief.prior) for belief in beliefs]
        shown = [index for index, belief in enumerate(beliefs) if any(belief.sums)]
        if shown:
            believed = [beliefs[index] for index in shown]
            shares = shares_of_pages(believed)
            for index, pace, code in zip(shown, rates_of_pages(believed, shares), codes(shares), strict=True):
                found[index] = RateEstimate(pace, code)
        return found

    def claim_rate(self, page: LocalPage, row: RefreshRow, rate: float, sure: bool) -> RefreshRow:
        """The page's row when its publisher says that it changes `rate` times a day, evidence of at most one change.

        Of a page never read it shapes the belief that its first read begins with; sure: the word of the crawl's owner,
        which is not put to the test.
        """
        host = self.partition.hosts_of[page]
        claims = row.claims if sure else having(row.claims, PageClaim(Source.PUBLISHED, host, 0, bounded(rate)))
        if not row.reads or not row.rate:
            return msgspec.structs.replace(row, claims=claims)
        weight = 1.0 if sure else self.trust(host).weight(Source.PUBLISHED)
        sums = weigh_rate(row.belief.sums, rate, weight)
        belief = row.belief._replace(sums=sums, prior=self.prior(host, row.kind))
        (estimate,) = self.rates([belief])
        return self.rewritten(page, msgspec.structs.replace(row, claims=claims), belief, estimate)

    def rewritten(self, page: LocalPage, row: RefreshRow, belief: PageBelief, estimate: RateEstimate) -> RefreshRow:
        """The row of a page that is believed to change at another rate; the importance behind its weight stays."""
        capped = self.capped(belief, estimate.rate)
        new = msgspec.structs.replace(
            row,
            quiet_days=belief.sums.quiet_days,
            change_days=belief.sums.change_days,
            change_sum=belief.sums.changes,
            rate=estimate.rate,
            prior=belief.prior.code,
            capped=capped,
            weight=row.weight * math.sqrt((capped or estimate.rate) / row.pace),
        )
        return msgspec.structs.replace(new, counted=self.count(page, row, new, estimate.code))

    def believed_anew(self, pages: Sequence[tuple[LocalPage, RefreshRow]]) -> dict[LocalPage, RefreshRow]:
        """The rows of pages read before whose rates are others by the priors of now: by more than a NUANCE."""
        moved, beliefs = [], []
        for page, row in pages:
            belief = row.belief
            prior = self.prior(self.partition.hosts_of[page], row.kind)
            if prior != belief.prior:
                moved.append((page, row))
                beliefs.append(belief._replace(prior=prior))
        found = {}
        for (page, row), belief, estimate in zip(moved, beliefs, self.rates(beliefs), strict=True):
            if abs(estimate.rate - row.rate) > NUANCE * row.rate:
                found[page] = self.rewritten(page, row, belief, estimate)
        return found

    def capped(self, belief: PageBelief, rate: float) -> float:
        """The rate that a page is read by where `rate_cap` makes it less, else 0."""
        if not self.settings.rate_cap:
            return 0.0
        pace = belief.sums.capped(rate, self.settings.rate_cap)
        return pace if pace < rate else 0.0

    def count(self, page: LocalPage, old: RefreshRow | None, row: RefreshRow, code: int) -> int:
        """The page's belief goes into the populations that priors are learned from, in place of the one it had there.

        Each page that was read counts, those too of which nothing was shown yet: pages that are read again first are
        the fast ones, and would teach a prior of their own. Its host counts it from then on: a row a host is enough.
        code: of its rate (RateEstimate). -> the code that belongs into `row`, the page's new one.
        """
        code = code if row.reads else 0
        before, kind = (old.counted, old.kind) if old is not None else (0, row.kind)
        shown, shows = before if old is not None and old.shown else 0, code if row.shown else 0
        if code != before or kind is not row.kind:
            self.kinds.recount(kind.name, before, 0)
            self.kinds.recount(row.kind.name, 0, code)
        if shows != shown:
            host = self.partition.hosts_of[page]
            self._population(host).shift(shown, shows)
            self._moved.add(host)
        return code


@lru_cache(maxsize=4096)
def _unread(prior: RatePrior) -> RateEstimate:
    shares = unread(prior)[None, :]
    return RateEstimate(float(rate(shares)[0]), codes(shares)[0])


def having(claims: tuple[PageClaim, ...], claim: PageClaim) -> tuple[PageClaim, ...]:
    """The claims with this one, the only one of its kind."""
    return (*(other for other in claims if other.source != claim.source), claim)
