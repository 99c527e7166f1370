"""Answers that are not the page: challenges, blocks, soft 404s. What they show never enters what is known of a page.

Before: frontier.py has judged a report (metadata/visits.py), and met one that is strange or of a host that is watched.
After: the report goes on as it is, or as a 404, or it is set aside: the page stays as it was, and is asked again.

    challenge    the reader recognised it (xyro/challenges.py), or evidence does: one body, or skeleton, at CROWD URLs
                 of a host in a row, of which pages that used to show something else, of another size or with other
                 links. The host is left alone as a whole: an hour, two, four, up to a day, until it shows anything
                 else (metadata/hosts.py, HostMask)
    suspicion    a page that was read shows next to nothing of what it had, is refused, or sends elsewhere for the time
                 being: it is asked once more before that is believed, and others of its host may tell meanwhile
    soft 404     CROWD URLs show one body, with status 200: one URL that cannot exist is asked, once a host and folder,
                 in the line of its host. It is no page and counts as no read. What it shows is the host's 404
    invention    a folder breeds: its pages are met on each other, hardly elsewhere. Or patterns of a host, in a circle:
                 sessions in paths and in queries. It is asked for such a URL, too. If that leads on to pages of the
                 folder that nobody knows, it makes pages for any name: they get the small share of reads that patterns
                 of poor standing get (discovery.py)
    duplicate    the same as a soft 404, and that URL is not found: their folder's standing pays for it, and is poor
                 where there is hardly anything else (metadata/hosts.py, Standing)

Evidence lies in memory, in bounded tables; what was concluded lies in the host's row. An ordinary page costs one look
into a table (metadata/visits.py, Sightings).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from xyro.metadata.hosts import LONGEST
from xyro.metadata.partition import Partition
from xyro.metadata.rows import HostMask, RefreshRow
from xyro.metadata.states import FOLDER, WANTED, State
from xyro.metadata.visits import REFUSED, Sightings, Visit, judge, showings
from xyro.wire.ids import LocalPage
from xyro.wire.messages import EMPTY, NO_LINKS, FetchOrder, HostChallenged, PageReport, Priority
from xyro.wire.urls import authority

if TYPE_CHECKING:
    from xyro.configs.schema import CrawlSettings
    from xyro.frontier.scheduler import Scheduler

CROWD = 3
"""URLs that show one body before that is held against it"""
FIRST_WAIT = 3_600.0
"""seconds for which a host is left alone that evidence says challenges us; doubles"""
SECOND_LOOK = 60.0
"""seconds after which a suspicious page is asked once more"""
FALLEN = 4
"""a page that shows less than this part of its bytes, or of its links, is suspicious"""
ALIKE = 8
"""a page whose bytes and links are within this part of what they were is of the make that it was"""
MEMORY = 900.0
"""seconds for which a body that was shown twice is watched while its host shows others"""
MOST_GROUPS = 8
"""bodies of a host that are watched at once"""
MOST_PAGES = 32
"""pages of a group that are remembered"""
MOST_HOSTS = 4_096
MOST_NOT_FOUND = 16
"""signatures and skeletons of a host's 404 that are stored"""
INVENTED = 512
"""links of the answer to a probe that are looked at: a page that makes pages for any name shows them from the first"""
MOST_PROBED = 16
"""folders of a small host that are ever asked for a URL that cannot exist"""
PER_PROBE = 1_024
"""orders of a host for one more such folder"""
_NO_MASK = HostMask()
_READ = int(State.READ)


class Group(Struct):
    """Pages of a host that showed one body."""

    keys: set[bytes]
    """signatures and skeletons of it"""
    pages: list[LocalPage] = field(default_factory=list)
    streak: dict[LocalPage, bool] = field(default_factory=dict)
    """those that showed it since the host showed anything else -> had they shown something else before?"""
    doubts: dict[LocalPage, float] = field(default_factory=dict)
    """when those that were set aside showed it first"""
    seen: float = 0.0
    """when it was shown last"""
    honest: bool = False
    """the host knows what a 404 is: these are pages"""
    repeats: bool = False
    """the page that showed it last has a body that another one showed before, not the skeleton alone"""

    def believe(self) -> None:
        """Take what it shows for pages from now on."""
        self.honest = True


class Probe(Struct, frozen=True):
    """A question for a URL that cannot exist, under way."""

    host: int
    page: LocalPage
    """one of the folder"""
    slot: int
    """of the folder"""
    group: Group


class Impostors:
    """`settle` the strange reports of a turn; `take_orders` and `take_challenged` leave with its commit group."""

    def __init__(self, partition: Partition, scheduler: Scheduler, settings: CrawlSettings) -> None:
        self.partition = partition
        self.scheduler = scheduler
        self._settings = settings
        self.sightings = Sightings()
        self.masks = partition.hosts.masks
        self.groups: dict[int, list[Group]] = {}
        """by host: watched ones"""
        self.probes: dict[int, Probe] = {}
        """by the epoch of their order"""
        self._orders: list[FetchOrder] = []
        self.challenged: list[HostChallenged] = []
        self._now = 0.0

    def follow(self, settings: CrawlSettings) -> None:
        """Go on with other settings."""
        self._settings = settings

    def recover(self, now: float) -> None:
        """Leave hosts alone that were to be left alone when the process ended."""
        for host, mask in self.masks.items():
            if mask.until > now:
                self.scheduler.host_limits.challenge(host, min(mask.until, now + LONGEST))

    def take_orders(self) -> list[FetchOrder]:
        """Take the questions for URLs that cannot exist."""
        orders, self._orders = self._orders, []
        return orders

    def take_challenged(self) -> list[HostChallenged]:
        """Take the hosts that the fetch pool has to leave alone by evidence."""
        challenged, self.challenged = self.challenged, []
        return challenged

    # -- reports -------------------------------------------------------------------------------------------------

    def settle(
        self, page: LocalPage, report: PageReport, visit: Visit, row: RefreshRow | None, before: LocalPage | None
    ) -> tuple[PageReport, Visit] | None:
        """The report and its meaning as they count; None: it was set aside, and the page is as if never asked.

        before: the page that showed the same before, the page itself if it is suspicious alone, None if neither.
        """
        host = self.partition.hosts_of[page]
        self._now = report.ended
        if report.error == "challenge" and report.vendor != EMPTY:
            if report.status:
                self._block(host, report.vendor, report.host_next)
            self.scheduler.put_aside(page)
            return None
        shown = showings(report, row)
        mask = self.masks.get(host, _NO_MASK)
        if mask.signature and mask.signature in shown:
            self._block(host, mask.vendor or "unnamed")
            self.scheduler.put_aside(page)
            return None
        if not shown.isdisjoint(mask.not_found) and not _is_root(report.url):
            return self._as_not_found(report, row)
        if report.error and report.error not in REFUSED and report.error != "challenge":
            if report.status and report.error != "http-5xx":
                self._lift(host, mask)
            return report, visit
        group = self._group(host, shown, report.signature)
        if report.error == "challenge":
            before = page
        if group is None and (before is None or (before == page and not self._is_suspicious(page, report, row))):
            self._lift(host, mask)
            self._answers_well(host)
            return report, visit
        return self._weigh(page, report, visit, row, group or self._new_group(host, shown), before)

    def _weigh(
        self,
        page: LocalPage,
        report: PageReport,
        visit: Visit,
        row: RefreshRow | None,
        group: Group,
        before: LocalPage | None,
    ) -> tuple[PageReport, Visit] | None:
        """One more page shows what a group shows."""
        host, group.seen = self.partition.hosts_of[page], self._now
        differed = row is not None and bool(row.signature) and row.signature not in group.keys
        if differed and row is not None and not group.repeats:
            differed = not self._is_of_one_make(page, report, row)
        if not differed and report.error != "challenge" and visit.changed is False:
            return report, visit
        for member in (page,) if before is None or before == page else (before, page):
            if member not in group.pages and len(group.pages) < MOST_PAGES:
                group.pages.append(member)
        group.streak[page] = group.streak.get(page, False) or differed
        if len(group.streak) >= CROWD and (report.vendor == EMPTY or sum(group.streak.values()) >= CROWD - 1):
            self._block(host, report.vendor or "unnamed", signature=report.signature)
            self.scheduler.put_aside(page)
            return None
        if len(group.pages) >= CROWD and not report.error and not report.location:
            self._probe(page, report.url, group)
        if group.honest:
            if group.repeats and (row is None or not row.signature):
                self.partition.standing.note_copy(page)
            elif page in group.pages and not differed:
                self.partition.standing.count(page)
            return report, visit
        if not differed:
            return report, visit
        if len(group.pages) == 1 and not self._is_suspicious(page, report, row):
            return report, visit
        first = group.doubts.setdefault(page, self._now)
        if report.vendor != EMPTY and self._now - first >= 0.9 * SECOND_LOOK:
            del group.doubts[page]
            return report, visit
        self._look_again(page, FIRST_WAIT if report.vendor == EMPTY else SECOND_LOOK)
        return None

    def _is_of_one_make(self, page: LocalPage, report: PageReport, row: RefreshRow) -> bool:
        """Tell whether a page is nearly as large as at its last read, with as many links: one whose numbers have
        changed (prices, scores), whose skeleton its like on the host have, too. Its old skeleton is not stored."""
        if report.error or report.location:
            return False
        children = self.partition.children(page)
        links = 0 if children is None else len(children)
        grown, more = abs(report.size - row.size), abs(len(report.links.urls) - links)
        return ALIKE * grown <= row.size and ALIKE * more <= links

    def _is_suspicious(self, page: LocalPage, report: PageReport, row: RefreshRow | None) -> bool:
        """Tell whether a page that used to show something else lost most of it."""
        if report.error or report.location:
            return True
        if row is not None and FALLEN * report.size < row.size:
            return True
        children = self.partition.children(page)
        return children is not None and len(children) >= FALLEN and FALLEN * len(report.links.urls) <= len(children)

    # -- groups --------------------------------------------------------------------------------------------------

    def _group(self, host: int, shown: Iterable[bytes], signature: bytes) -> Group | None:
        """The watched group that one of these belongs to."""
        found = next((group for group in self.groups.get(host, ()) if not group.keys.isdisjoint(shown)), None)
        if found is not None:
            found.repeats = signature in found.keys
            found.keys.update(shown)
        return found

    def _new_group(self, host: int, shown: set[bytes]) -> Group:
        if host not in self.groups and len(self.groups) >= MOST_HOSTS:
            del self.groups[next(iter(self.groups))]
        groups = self.groups.setdefault(host, [])
        if len(groups) >= MOST_GROUPS:
            del groups[0]
        groups.append(Group(set(shown)))
        return groups[-1]

    def _answers_well(self, host: int) -> None:
        """The host showed a page: no group has the run of it, and old ones are forgotten."""
        groups = self.groups.get(host)
        if groups is None:
            return
        for group in groups:
            group.streak.clear()
        groups[:] = [group for group in groups if self._now - group.seen < MEMORY]
        if not groups:
            del self.groups[host]

    # -- what becomes of the page --------------------------------------------------------------------------------

    def _look_again(self, page: LocalPage, wait: float) -> None:
        """The page stays as it was, and is asked once more after so many seconds."""
        if self.partition.flags[page] & WANTED:
            self.scheduler.requests.release(page)
        self.scheduler.put_aside(page, self._now + wait)

    def _as_not_found(self, report: PageReport, row: RefreshRow | None) -> tuple[PageReport, Visit]:
        not_found = replace(
            report,
            error="soft-404",
            final=True,
            links=NO_LINKS,
            signature=b"",
            skeleton=b"",
            etag="",
            last_modified="",
            loading=False,
            hubs=(),
            topic="",
        )
        return not_found, judge(not_found, row, self._settings.confirm_dead)

    # -- hosts ---------------------------------------------------------------------------------------------------

    def _block(self, host: int, vendor: str, until: float = 0.0, signature: bytes = b"") -> None:
        """Leave the host alone. until: what the pool does already; 0: it has to be told."""
        hosts = self.partition.hosts
        mask = hosts.masks.get(host, _NO_MASK)
        if mask.until > self._now and not until:
            return  # an order that was under way
        times = mask.times + 1
        end = until or self._now + min(FIRST_WAIT * 2.0 ** min(times - 1, 16), LONGEST)
        hosts.masks[host] = msgspec.structs.replace(
            mask,
            vendor=vendor,
            times=times,
            since=mask.since if mask.vendor else self._now,
            until=end,
            signature=signature or mask.signature,
        )
        hosts.remember(host, end, times, self._now)
        self.partition.put(*hosts.stored(host))
        self.scheduler.host_limits.challenge(host, end)
        self.groups.pop(host, None)
        if not until:
            self.challenged.append(HostChallenged(hosts.names[host], end, times, vendor))

    def _lift(self, host: int, mask: HostMask) -> None:
        """The host answers in earnest again."""
        if not mask.vendor:
            return
        hosts = self.partition.hosts
        hosts.masks[host] = msgspec.structs.replace(mask, vendor="", times=0, since=0.0, until=0.0)
        self.partition.put(*hosts.stored(host))
        if self.scheduler.host_limits.end_challenge(host):
            self.scheduler.resume(host)

    # -- soft 404 ------------------------------------------------------------------------------------------------

    def _probe(self, page: LocalPage, url: str, group: Group) -> None:
        """Ask the page's folder for a URL that cannot exist, if that was never done."""
        host, slot = self.partition.hosts_of[page], int(self.partition.columns[FOLDER][page])
        probed = self.masks.get(host, _NO_MASK).probed
        most = MOST_PROBED + self.partition.standing.of_host(host) // PER_PROBE
        if group.honest or slot in probed or len(probed) >= most:
            return
        if any(probe.host == host for probe in self.probes.values()):
            return
        epoch = self.scheduler.leases.next_epoch()
        self.probes[epoch] = Probe(host, page, slot, group)
        question = impossible(url, self.partition.facts["seed"])
        self._orders.append(FetchOrder(self.partition.id_of(page), question, Priority.ORDERED, epoch, probe=True))

    def suspect(self, page: LocalPage) -> None:
        """The page's folder breeds: ask it for a URL that cannot exist. One that shows pages of its own there makes
        pages for any name."""
        self._probe(page, self.partition.url(page), Group(set()))

    def _invents(self, probe: Probe, report: PageReport) -> bool:
        """Tell whether the URL that cannot exist leads on to URLs of its folder that nobody knows, either."""
        if report.error or report.location:
            return False
        name, slot_of = self.partition.hosts.names[probe.host], self.partition.folder_slot
        urls = (url for url in report.links.urls if authority(url) == name and slot_of(url) == probe.slot)
        return any(page < 0 for page in self.partition.url_index.find(list(islice(urls, INVENTED))))

    def answered(self, report: PageReport) -> bool:
        """Take the answer to a probe; False: the report is of no probe."""
        probe = self.probes.pop(report.epoch, None)
        if probe is None:
            return False
        self._now = report.ended
        host, hosts = probe.host, self.partition.hosts
        if report.error == "challenge":
            if report.status and report.vendor != EMPTY:
                self._block(host, report.vendor, report.host_next)
            return True
        if report.error and not report.final:
            return True  # another page of the folder will ask again
        mask = hosts.masks.get(host, _NO_MASK)
        if self._invents(probe, report):
            self.partition.standing.prove(probe.page)
        shown = set() if report.error or report.location or not probe.group.keys else showings(report, None)
        if shown.isdisjoint(probe.group.keys):
            probe.group.believe()
        else:
            shown |= probe.group.keys
            again = [page for page in probe.group.pages if self.partition.states[page] == _READ]
            self.scheduler.requests.order(again, Priority.ORDERED)
        not_found = tuple(dict.fromkeys([*mask.not_found, *sorted(shown)]))[-MOST_NOT_FOUND:]
        hosts.masks[host] = msgspec.structs.replace(mask, not_found=not_found, probed=(*mask.probed, probe.slot))
        self.partition.put(*hosts.stored(host))
        return True


def impossible(url: str, seed: int) -> str:
    """A URL in the folder of `url` (of its script and first key, if it has a query) that nobody can have made."""
    parts = urlsplit(url)
    name = "xyro-" + hashlib.blake2b(f"{seed} {url}".encode("utf-8", "replace"), digest_size=8).hexdigest()
    root = f"{parts.scheme}://{parts.netloc}"
    if parts.query:
        return f"{root}{parts.path}?{parts.query.split('&')[0].split('=')[0]}={name}"
    folder, _, last = parts.path.rpartition("/")
    suffix = last[last.rfind(".") :] if "." in last else ""
    return f"{root}{folder}/{name}{suffix}"


def _is_root(url: str) -> bool:
    """Tell whether this is the front page, which a host that shows one body at all URLs has, too."""
    parts = urlsplit(url)
    return parts.path in ("", "/") and not parts.query
