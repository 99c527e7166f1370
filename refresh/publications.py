"""Publications: what sites say of their own pages, from the claim to the read that keeps or breaks its deadline.

A publication is in one of these states, and at most one is kept a page (a later claim joins an earlier one):

    waiting   accepted, its publisher has `share` orders out already       release -> out
    out       ordered                                                      settled  -> kept, waiting, or gone
    kept      the order failed temporarily: its own law tries it again     settled  -> kept, or gone

A read that had begun before the page was published does not show what was published: then it waits once more. One
that had begun between two claims settles the first and leaves the second waiting: who claims without an end is found
out all the same.

A publisher whose claims proved true is worth an order at once (ORDERED, with a deadline); one that is not trusted
only hastens the next read, the more the less it was wrong (`hastened`). Each read tells whether the claim was true.

Cost (lateness.py): a page past its deadline comes before all others, then the earliest deadline first; each late read
adds its lateness in seconds to `lateness`.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from xyro.refresh.lags import Lags
from xyro.refresh.lateness import Late, late
from xyro.wire.ids import LocalPage

TRUSTED = 0.5
"""least trust of a host whose claims become orders: its claims were true as often as not"""
SHARE = 64
"""orders of one publisher that are out at once: as many as a host has leased"""
MOST_WAITING = 20_000
"""publications of one publisher that are kept at once"""
MOST_ALL = 200_000
FEW = 64
"""stale entries of a publisher's heap, beside as many as it has publications"""
TELLING = 3_600.0
"""seconds that a site may take to tell of a change: one that the crawler saw by itself meanwhile bears it out"""
CLAIMS = ("changed", "new")


class Publication(Struct, frozen=True):
    """A claim of one page. Times are seconds since 1970."""

    page: LocalPage
    publisher: str
    claim: str
    """changed | new"""
    time: float
    deadline: float
    learn: bool = True
    """the read teaches how far the host is to be trusted (not where the owner of the crawl ordered)"""
    ordered: bool = True
    """it became an order; else the page is read by the plan, and only then shows whether the claim was true"""
    latest: float = 0.0
    """when it was said last, where it was said again; not stored: no read that had begun outlives the process"""


class PublicationOutcome(Struct, frozen=True):
    """The end of one publication: seconds from claim to read, and seconds past the deadline."""

    publication: Publication
    delay: float
    late: float


class PublicationCounts(Struct):
    """Since the crawl began."""

    published: int = 0
    joined: int = 0
    """claims of pages that were published already and not read yet"""
    hastened: int = 0
    """claims of publishers that are not trusted"""
    in_time: int = 0
    late: int = 0
    lost: int = 0
    """pages that cannot be read: robots.txt, gone for good, out of scope"""
    true: int = 0
    false: int = 0
    lateness: float = 0.0
    """seconds past deadlines, summed: what late reads cost"""
    delays: Lags = field(default_factory=Lags)


PUBLICATION_NUMBERS = tuple(name for name in PublicationCounts.__struct_fields__ if name != "delays")
"""fields of PublicationCounts"""


class _Publisher(Struct):
    """Its publications that wait: a heap by deadline."""

    waiting: list[tuple[float, LocalPage]] = field(default_factory=list)
    out: int = 0
    count: int = 0
    """publications in any state"""


class Publications:
    """Fed by `accept`, emptied by `settled`; `release` gives what may be ordered. Bounded by MOST_WAITING, MOST_ALL."""

    def __init__(self, share: int = SHARE) -> None:
        self.counts = PublicationCounts()
        self.pages: dict[LocalPage, Publication] = {}
        self._share = share
        self._out: set[LocalPage] = set()
        self._publishers: dict[str, _Publisher] = {}
        self._turns: deque[str] = deque()
        """publishers with something waiting, in the order of their turns"""

    def __len__(self) -> int:
        return len(self.pages)

    def room(self, publisher: str) -> int:
        """Publications that may still be accepted of a publisher."""
        entry = self._publishers.get(publisher)
        return max(0, min(MOST_WAITING - (entry.count if entry else 0), MOST_ALL - len(self.pages)))

    def accept(self, publication: Publication, again: bool = False) -> Publication:
        """Keep a claim; what is to be stored. `again`: it was stored before (recovery). Ask `room` first."""
        self.counts.published += not again
        old = self.pages.get(publication.page)
        if old is not None:
            self.counts.joined += 1
            publication = _joined(old, publication)
        else:
            self.counts.hastened += not again and not publication.ordered
        self.pages[publication.page] = publication
        publisher = self._publishers.setdefault(publication.publisher, _Publisher())
        publisher.count += old is None
        fresh = old is None or not old.ordered or publication.deadline < old.deadline
        if publication.ordered and publication.page not in self._out and fresh:
            self._wait(publication, publisher)
        return publication

    def _wait(self, publication: Publication, publisher: _Publisher) -> None:
        if not publisher.waiting:
            self._turns.append(publication.publisher)
        if len(publisher.waiting) >= 2 * publisher.count + FEW:
            publisher.waiting = sorted(set(filter(self._waits, publisher.waiting)))  # which is a heap, too
        heapq.heappush(publisher.waiting, (publication.deadline, publication.page))

    def _waits(self, entry: tuple[float, LocalPage]) -> bool:
        """Tell whether the page is still to be ordered, not read meanwhile or published again with less time."""
        publication = self.pages.get(entry[1])
        return publication is not None and entry[1] not in self._out and publication.deadline == entry[0]

    def release(self, limit: int) -> list[LocalPage]:
        """Pages to order now: publishers take turns, each with at most `share` out, its earliest deadline first."""
        found: list[LocalPage] = []
        idle = 0
        while self._turns and idle < len(self._turns) and len(found) < limit:
            name = self._turns.popleft()
            publisher = self._publishers[name]
            page = self._next(publisher)
            idle = 0 if page is not None else idle + bool(publisher.waiting)  # who leaves takes no turn of another
            if page is not None:
                found.append(page)
            if publisher.waiting:
                self._turns.append(name)
            elif not publisher.count:  # what waited had been read by the plan
                del self._publishers[name]
        return found

    def _next(self, publisher: _Publisher) -> LocalPage | None:
        """Its most urgent page, which is out from here on; None while its share is used up. Stale entries go."""
        while publisher.waiting and publisher.out < self._share:
            entry = heapq.heappop(publisher.waiting)
            if not self._waits(entry):
                continue
            page = entry[1]
            self._out.add(page)
            publisher.out += 1
            return page
        return None

    @property
    def waiting(self) -> bool:
        """Tell whether something is to be released: never while every publisher has its share out."""
        return any(self._publishers[name].out < self._share for name in self._turns)

    def settled(
        self, page: LocalPage, now: float, read: bool, true: bool | None, final: bool, begun: float = math.inf
    ) -> PublicationOutcome | None:
        """An order for the page ended. read: the web answered with it; final: it will not be tried again.

        true: whether the read bore the claim out, None where it says nothing; begun: when the read began. None: nothing
        was published of it, or it is kept because the page will be read again. With an outcome it is kept, too (in
        `pages`), where it was claimed once more while it was read.
        """
        publication = self.pages.get(page)
        if publication is None:
            return None
        publisher = self._publishers[publication.publisher]
        if page in self._out:
            self._out.discard(page)
            publisher.out -= 1
        if not read and not final:
            return None
        if read and begun < max(publication.time, publication.latest):
            self._repeat(publication, publisher)
            if begun < publication.time:
                return None
        else:
            self._forget(publication, publisher)
        delay, late = max(now - publication.time, 0.0), max(now - publication.deadline, 0.0)
        outcome = PublicationOutcome(publication, delay, late)
        self._count(outcome, read, true)
        return outcome

    def _repeat(self, publication: Publication, publisher: _Publisher) -> None:
        """Publish again the last claim, which is yet to be read, within the time that it had."""
        latest = max(publication.time, publication.latest)
        self.pages[publication.page] = again = replace(
            publication, time=latest, deadline=publication.deadline + latest - publication.time
        )
        if again.ordered:
            self._wait(again, publisher)

    def _forget(self, publication: Publication, publisher: _Publisher) -> None:
        del self.pages[publication.page]
        publisher.count -= 1
        if not publisher.count and not publisher.waiting:
            del self._publishers[publication.publisher]

    def _count(self, outcome: PublicationOutcome, read: bool, true: bool | None) -> None:
        counts = self.counts
        if not read:
            counts.lost += 1
            return
        if outcome.publication.ordered:
            counts.late += outcome.late > 0.0
            counts.in_time += outcome.late <= 0.0
            counts.lateness += outcome.late
            counts.delays.add(outcome.delay)
        counts.true += outcome.publication.learn and true is True
        counts.false += outcome.publication.learn and true is False

    def overdue(self, now: float) -> Late:
        """Pages past their deadline and not read: the cost that runs up now."""
        return late((each.deadline for each in self.pages.values() if each.ordered), now)

    def deadline(self, page: LocalPage) -> float:
        """By when an order of this page is to be read; 0 = none is out, or to go out, for what was published."""
        publication = self.pages.get(page)
        return publication.deadline if publication is not None and publication.ordered else 0.0

    # -- state ---------------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """The counters; publications themselves are rows."""
        counts = self.counts
        numbers = {name: getattr(counts, name) for name in PUBLICATION_NUMBERS}
        return {**numbers, "delays": counts.delays.dump()}

    def load(self, state: Mapping[str, Any]) -> None:
        stored = {name: state[name] for name in PUBLICATION_NUMBERS if name in state}
        self.counts = PublicationCounts(**stored, delays=Lags.load(state.get("delays", ())))


def hastened(due: float, now: float, trust: float) -> float:
    """Return when a page is read whose publisher is not (quite) trusted: its wait is shorter by the trust, never
    longer."""
    latest = max(due, now)
    return min(now + (latest - now) * (1.0 - min(max(trust, 0.0), 1.0)), latest)


def _joined(old: Publication, new: Publication) -> Publication:
    """Two claims of one page: people have waited since the first, and the stricter deadline holds."""
    deadline = min((each.deadline for each in (old, new) if each.ordered), default=new.deadline)
    time = old.time if old.ordered else new.time
    learn, ordered = old.learn and new.learn, old.ordered or new.ordered
    return replace(old, time=time, deadline=deadline, learn=learn, ordered=ordered, latest=new.time)


def borne_out(
    claim: str, seen_before: bool, changed: bool | None, status: int, was_there: bool, news: bool = False
) -> bool | None:
    """Tell whether the read bore the claim out; None where it says nothing.

    `seen_before`: the page had been read; `was_there`: the last read before had found it; `news`: that read, of the
    time in which the site would tell, showed something new itself. A page that is gone now did change (IndexNow
    announces removals, too), a "new" one has to be there.
    """
    gone = status in (404, 410)
    if not seen_before:
        return not gone if claim == "new" or gone else None
    if gone or not was_there:
        return gone == was_there
    return None if news and not changed else changed
