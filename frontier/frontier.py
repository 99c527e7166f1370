"""Runs the loop of one partition: reports come in; rows, cash, dates and orders go out, in one commit group.

The steps of `Frontier.turn`, in their order:

    open               a commit group begins; pages follow a scope that has changed     metadata/partition.py, pages.py
    exchange           cash and acknowledgements of other partitions                    outbox.py
    obey               what people and publishers want                                  requests.py, command_handlers.py
    visit_all          what reports and loads mean: states, leases, who spends          leases.py, loads.py
    resolve_links      URLs become pages, links become rows                             pages.py, scope.py
    hear_claims        what sitemaps and feeds say of other pages                       claims.py
    spend              pages spend their cash over what they showed                     ledger.py
    date               change rate, interval, next read                                 revisit_dates.py
    collect_transfers  cash for pages of other partitions leaves                        outbox.py
    orders             what is wanted, due, or rich becomes orders                      scheduler.py
    close, seal        freshness is metered, all of it becomes one write batch          freshness.py

Extensions take part by hooks (hooks.py). Single-threaded and synchronous: the time comes in, Effects go out;
service/node/partition_loop.py awaits, writes and posts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xyro.configs.schema import Settings
from xyro.frontier.bandwidth import Bandwidth
from xyro.frontier.batch import Effects, MessageBatch, Settled
from xyro.frontier.claims import Claims
from xyro.frontier.command_handlers import CommandHandlers
from xyro.frontier.freshness import Freshness
from xyro.frontier.hooks import Hooks
from xyro.frontier.host_inflow import HostInflow
from xyro.frontier.importance_error import ImportanceError
from xyro.frontier.impostors import Impostors
from xyro.frontier.ledger import NO_CHILDREN, Ledger, Spending, followed
from xyro.frontier.loads import Loads
from xyro.frontier.outbox import Outbox
from xyro.frontier.page_answers import answer_questions
from xyro.frontier.pages import Pages
from xyro.frontier.revisit_dates import Dating
from xyro.frontier.scheduler import Scheduler
from xyro.frontier.scope import BESIDE, SEED, Scope
from xyro.frontier.scope_change import ScopeChange
from xyro.frontier.site_intervals import SiteIntervals
from xyro.frontier.terms import terms_of
from xyro.frontier.vouchers import Vouchers
from xyro.loader.library import Resumed
from xyro.metadata.documents import Documents
from xyro.metadata.hosts import QUERIES
from xyro.metadata.partition import Partition
from xyro.metadata.states import FOLDER, NAMED, WANTED, State
from xyro.metadata.visits import Spend, judge
from xyro.opic.snapshots import SMALLEST
from xyro.wire.commands import CommandAnswer, HoldHost, ReturnOrders, answer
from xyro.wire.ids import LocalPage, PageId, local_page, local_pages
from xyro.wire.messages import Ack, CashTransfer, PageReport, Priority, Submit
from xyro.wire.urls import form_of, host_of, partition_of, site_of

_FOREIGN = int(State.FOREIGN)
Extension = Callable[["Frontier"], object]
"""Registers with the hooks of a complete frontier, and returns the object it made (frontier/hooks.py)."""


class Frontier:
    """One partition: `turn` is the loop. Counters are since the process began, `reads` since the crawl began."""

    def __init__(
        self,
        partition: Partition,
        scope: Scope,
        settings: Settings,
        refreshing: bool,
        extensions: Iterable[Extension] = (),
        ahead: bool = False,
    ) -> None:
        """Build the frontier of an open partition; `extensions` register with `hooks`.

        refreshing: pages are read again when due. ahead: the page due next is read rather than nothing.
        """
        self.partition, self.columns = partition, partition.columns
        self.scope = scope
        self.settings = settings
        self.partitions: int = partition.facts["partitions"]
        self.hooks = Hooks()
        self.hooks.load(partition.scalars.get("node", {}))
        opic = settings.opic
        self.ledger = Ledger(
            self.columns,
            partition.base,
            opic.damping,
            opic.window,
            opic.sweep_target,
            terms_of(settings),
            HostInflow(partition) if opic.sites or opic.site_weight else None,
        )
        documents = Documents(partition, settings.store.versions, settings.store.version_days)
        bandwidth = Bandwidth(settings.refresh, self.partitions, SiteIntervals(partition, settings.sites))
        self.freshness = Freshness(partition, self.ledger, bandwidth, settings.refresh, self.hooks)
        scope_change = ScopeChange(partition, scope, lambda page: self.pages.judge(page))
        self.scheduler = Scheduler(
            partition, self.ledger, bandwidth, self.freshness, settings, refreshing, self.hooks, scope_change, ahead
        )
        schedule, self.requests = self.scheduler.schedule, self.scheduler.requests
        self.pages = Pages(
            partition, scope, scope_change, settings.fetch, self.ledger, self.hooks, schedule, settings.standing
        )
        self.outbox = Outbox(partition, self.ledger, self.pages, self.partitions)
        self.loads = Loads(partition, self.scheduler.leases, self.pages, self.requests, documents)
        self.dating = Dating(partition, self.ledger, schedule, self.freshness, settings.refresh, self.hooks)
        self.impostors = Impostors(partition, self.scheduler, settings.crawl)
        self.vouchers = Vouchers(partition)
        self.importance_error = ImportanceError(partition, self.ledger)
        self.claims = Claims(partition, schedule, self.dating.change_model)
        self.commands = CommandHandlers()
        self.commands.handle(HoldHost, self._hold_host)
        self.commands.handle(ReturnOrders, self._take_back)
        answer_questions(partition, self.commands)
        self.reads = 0
        self.read_pages = 0
        """pages that were read at least once"""
        self.stale = 0
        self.errors: dict[str, int] = {}
        self._holds_to_store: list[int] = []
        self._now = 0.0
        for extend in extensions:
            self.hooks.add(extend(self))

    # -- recovery ------------------------------------------------------------------------------------------------

    def recover(self, now: float) -> tuple[list[CashTransfer], list[Resumed]]:
        """After `Partition.open`: transfers to send again, and documents whose load waited, for the loader."""
        state = self.partition.scalars.get("node")
        if state:
            self.ledger.load(state["purse"])
            if "post" in state:
                self.outbox.load(state["post"])
            self.scheduler.load(state["planner"])
            self.dating.change_model.load(state.get("beliefs"))
            self.reads, self.read_pages = state["reads"], state["read_pages"]
            self.pages.recover(state["scope"])
            self.freshness.recover(state.get("meter"), now)
            self.importance_error.recover()
        self.partition.hosts.rewind(now)
        self.scheduler.recover()
        self.impostors.recover(now)
        for recover in self.hooks.recover:
            recover()
        return self.outbox.recover(), self.loads.recover()

    def dump(self) -> dict[str, Any]:
        return {
            "purse": self.ledger.dump(),
            **({"post": self.outbox.dump()} if self.partitions > 1 else {}),
            "planner": self.scheduler.dump(),
            "meter": self.freshness.dump(),
            "beliefs": self.dating.change_model.dump(),
            "reads": self.reads,
            "read_pages": self.read_pages,
            "scope": self.pages.rules,
            "extensions": self.hooks.dump() if self.hooks.dumps else self.hooks.stored,
        }

    def follow(self, settings: Settings) -> None:
        """Other settings (SIGHUP), between two turns."""
        self.settings = settings
        self.impostors.follow(settings.crawl)
        self.dating.follow(settings.refresh)
        self.scheduler.reconfigure(settings)

    @property
    def now(self) -> float:
        """Wall clock of the last turn; 0 before the first one."""
        return self._now

    def relieve(self, now: float) -> bool:
        """The whole crawl has nothing to read: let a waiting link in, though nobody earned it. False: it is not time,
        or there is something to read here."""
        waiting = self.pages.waiting_links
        if not waiting or self.scheduler.leases or self.scheduler.unread:
            return False
        return waiting.relieve(now)

    def room(self, room: int, now: float) -> int:
        """Return how many reads may be ordered now, of so many that the node allows."""
        return min(room, *(limit(now) for limit in self.hooks.limits)) if self.hooks.limits else room

    def next_time(self) -> float:
        """Return when a turn is wanted whatever is due (wall clock, seconds): something is to be sent again."""
        sliced = self.pages.waiting_links.next_time()
        return min(self.outbox.next_time(), sliced, *(alarm() for alarm in self.hooks.alarms))

    def exhausted(self, soon: float, refreshing: bool) -> bool:
        """Tell whether nothing in scope is unread, no retry is due before `soon`, no load waits and no transfer is on
        its way. refreshing: nor will any page be read again."""
        scheduler = self.scheduler
        if scheduler.unread_before(soon) or scheduler.shut_out or scheduler.requests or self.outbox.busy:
            return False
        if self.pages.waiting_links or scheduler.schedule.next_retry <= soon:
            return False
        return not refreshing or scheduler.next_time() == math.inf

    # -- the turn ------------------------------------------------------------------------------------------------

    def turn(
        self,
        work: MessageBatch,
        now: float,
        room: int,
        free: int = 0,
        more: Callable[[], bool] | None = None,
        others: bool = False,
    ) -> Effects:
        """One commit group. `now`: wall clock; `room`: reads that may still be ordered (--max-pages).

        free: spends without a fetch beyond those that the reports of this turn pay for; and again so many, which build
        on the ones before, while there are to be `more`. others: pages of other partitions of the process are being
        read.
        """
        born = self._open(now)
        acks = self._exchange(work)
        answers = self._obey(work)
        settled, spending = self._visit_all(work, free)
        self._resolve_links(spending)
        self._hear_claims(settled, spending, now)
        self._spend(spending, born)
        paid_over, stored = [*spending.children], cache(self.partition.children)
        while more is not None and more():
            if self.partitions == 1:
                self.ledger.pay()
            again = self._free_spends((), free, stored)
            self._spend(again, self.columns.n)
            self._follow_importance()
            paid_over += again.children
        self._date(settled, now)
        self._follow_importance()
        transfers = self._collect_transfers(paid_over, born)
        orders = self.scheduler.orders(now, self.room(room, now), self.outbox.is_full, others)
        if self.impostors.probes:
            orders += self.impostors.take_orders()
        self.freshness.close(sum(order.visit.answered for order in settled), now)
        submits = self.requests.take_elsewhere() if self.requests.elsewhere else []
        posts = self.hooks.take_posts() if self.hooks.posts else []
        challenged = self.impostors.take_challenged() if self.impostors.challenged else []
        commit = self.partition.seal({"node": self.dump()})
        return Effects(commit, orders, transfers, acks, submits, answers, posts, challenged)

    def settled_group(self, store: Callable[[], None], now: float) -> Effects:
        """A commit group in which no page spends: `store` puts in what came out of a joint settling."""
        self._open(now)
        store()
        self._follow_importance()
        transfers = self._collect_transfers((), self.columns.n)
        return Effects(self.partition.seal({"node": self.dump()}), [], transfers, [], [], [])

    def _open(self, now: float) -> int:
        """Begin a commit group; the number that the first page minted in it will have."""
        if now < self._now:
            self.partition.hosts.rewind(now)
        self._now = now
        self.partition.begin()
        born = self.columns.n
        while self.hooks.renew:
            self.hooks.renew.pop()()
        self.pages.begin(now)
        self._store_holds()
        return born

    def _exchange(self, work: MessageBatch) -> list[Ack]:
        """Take the messages of other partitions: trim the outbox, receive their cash."""
        for ack in work.acks:
            self.outbox.acknowledge(ack, self._now)
        acks = self.outbox.apply(work.transfers) if work.transfers else []
        return acks + self.outbox.freed() if self.partitions > 1 else acks

    def _obey(self, work: MessageBatch) -> list[CommandAnswer]:
        """Apply what people, publishers and loads of other partitions want; the answers leave with the group."""
        done = [self.commands.once(submit.request, partial(self._submit, submit)) for submit in work.submits]
        answers = [each for each in done if each is not None]
        return answers + self.commands.apply(work.commands) if work.commands else answers

    def _visit_all(self, work: MessageBatch, free: int) -> tuple[list[Settled], Spending]:
        """Apply reports and loads: states, leases, and over what each page is to spend."""
        reports = self._live(work.visits)
        spending = self._free_spends([local_page(report.page) for report in reports], free)
        if work.loads or work.bodies or work.documents:
            self.loads.gather(work.loads.values(), work.bodies, work.documents)
        settled = [order for report in reports if (order := self._visit(report, spending)) is not None]
        for visited in self.hooks.visited:
            visited(settled, work.loads.values())
        if self.loads.early:
            self.loads.late(spending)
        return settled, spending

    def _spend(self, spending: Spending, born: int) -> None:
        """Move the cash of all pages that spend in this turn at once."""
        self.ledger.spend(spending.pages, spending.children, born, self.partition.next_number, spending.dangling)
        self.ledger.window.grew(self.ledger.known_pages + self.read_pages, self.ledger.clock.ticks)

    def _date(self, settled: list[Settled], now: float) -> None:
        """Learn how often the pages change, and say when they are read next."""
        if settled:
            self.scheduler.answered(sum(order.visit.answered for order in settled), now)
        self.dating.date(settled, now)
        for ended in self.hooks.settled:  # before `orders`: what was published or is due together is ordered now
            ended(settled, now)

    def _follow_importance(self) -> None:
        if self.columns.n >= SMALLEST:
            self.importance_error.follow()

    def _collect_transfers(self, paid_over: Sequence[NDArray[Any]], born: int) -> list[CashTransfer]:
        """Let the virtual page pay, and take the cash of other partitions' pages out of the columns; `paid_over`: the
        links over which pages spent."""
        if self.partitions == 1:
            self.ledger.pay()
            return []
        limit, touched = self.settings.cluster.outbox, [*self.pages.touched, *paid_over]
        return self.outbox.collect(touched, self.pages.nearer, born, self._now, limit)

    def _live(self, reports: Sequence[PageReport]) -> list[PageReport]:
        """The reports whose order is out; those of an older lease, and repeated ones, change nothing."""
        leases = self.scheduler.leases
        live: dict[PageId, PageReport] = {}
        for report in reports:
            if leases.is_out(local_page(report.page), report.epoch):
                live.setdefault(report.page, report)
            elif self.impostors.probes and self.impostors.answered(report):
                self.stale -= 1
        self.stale += len(reports) - len(live)
        return list(live.values())

    # -- people --------------------------------------------------------------------------------------------------

    def _submit(self, submit: Submit) -> CommandAnswer | None:
        urls = [url for url in submit.urls if partition_of(host_of(url), self.partitions) == self.partition.number]
        if submit.seed:
            for url in submit.urls:  # those of other partitions widen the scope here, and no more
                self.scope.add_seed(url)
            for url in urls:
                self.partition.introductions.found(site_of(host_of(url)))
            self.pages.follow_scope()
        if not urls:
            return answer(submit.request, None) if submit.request else None
        blocking = submit.priority is Priority.BLOCKING
        depth = SEED if submit.seed else BESIDE
        pages = self.pages.resolve(urls, [depth] * len(urls), exempt=blocking)
        if self.pages.scope_change.pending:
            self.pages.scope_change.settle(local_pages(pages))
        if blocking:
            self.loads.order_parts(local_pages(pages), self._now - self.settings.loader.part_age)
        else:
            self.pages.shorten(pages, np.full(len(pages), depth, np.int64))
            self.requests.order(local_pages(pages), submit.priority)
        return answer(submit.request, None) if submit.request else None

    def hold(self, host: int, state: str) -> None:
        """A person pauses, blocks or resumes a host; stored with the next group."""
        self.partition.hosts.hold(host, state)
        self._holds_to_store.append(host)
        if not state:
            self.scheduler.resume(host)

    def _hold_host(self, command: HoldHost) -> bool:
        """Apply a person's word on a host; False where no page of it is known."""
        hosts = self.partition.hosts
        number = hosts.numbers.get(command.host)
        if number is None:
            return False
        self.hold(number, command.state)
        self._store_holds()
        return True

    def _store_holds(self) -> None:
        while self._holds_to_store:
            self.partition.put(*self.partition.hosts.stored(self._holds_to_store.pop()))

    def _take_back(self, command: ReturnOrders) -> None:
        for page, epoch in zip(command.pages, command.epochs, strict=True):
            self.scheduler.drop(page, epoch)

    # -- reports -------------------------------------------------------------------------------------------------

    def _free_spends(
        self,
        visited: Sequence[LocalPage],
        more: int,
        stored: Callable[[LocalPage], NDArray[np.uint32] | None] | None = None,
    ) -> Spending:
        """Read pages rich in cash spend over stored links without a fetch; dangling ones pay the virtual page."""
        spending, stored = Spending(), stored or self.partition.children
        free = int(self.settings.opic.spend_ratio * len(visited) + 0.5) + more
        if not visited and not more:
            return spending
        read, dangling = self.ledger.rich(free, np.array(visited, np.int64))
        for page in local_pages(read):
            if (children := stored(page)) is not None:
                spending.over(page, children)
        spending.dangling = dangling
        return spending

    def _visit(self, report: PageReport, spending: Spending) -> Settled | None:
        """Apply one report whose order is out. None: it is none of the page's, which stays as it was."""
        page, impostors = local_page(report.page), self.impostors
        lease, row = self.scheduler.leases.settle(page)
        visit = judge(report, row, self.settings.crawl.confirm_dead)
        self._remember_host(page, report)
        host = self.partition.hosts_of[page]
        if report.status or report.ended > report.started:
            self.partition.costs.add(host, report.received, report.ended - report.started)
        before = impostors.sightings.strange(host, page, report, visit, row)
        if before is not None or report.error == "challenge" or host in impostors.groups or host in impostors.masks:
            judged = impostors.settle(page, report, visit, row, before)
            if judged is None:
                self.reads += report.status > 0
                if report.status and report.error:
                    self._count_error(report)
                for count in self.hooks.set_aside:
                    count(Settled(page, report, visit, lease, row, None), self._now)
                return None
            report, visit = judged
        if self.partition.flags[page] & WANTED:
            self.requests.release(page)
        self.partition.set_state(page, visit.state)
        if visit.answered:
            self.reads += 1
            if row is None or not row.reads:
                self.read_pages += 1
                spending.first_reads.add(page)
                if visit.spend is Spend.LINKS and not report.location:
                    self.partition.introductions.count_read(self.pages.waiting_links.domain_of(page))
        if row is not None and row.location and visit.spend is Spend.LINKS and not report.location:
            self.columns[FOLDER][page] = self.partition.folder_slot(report.url)
            self.columns.touch(FOLDER, page)
        if report.error:
            self._count_error(report)
        if report.sitemaps:
            self._name_sitemaps(report.sitemaps, int(self.columns["depth"][page]) + 1)
        return Settled(page, report, visit, lease, row, self._share(page, report, visit.spend, spending))

    def _count_error(self, report: PageReport) -> None:
        """By class."""
        self.errors[report.failure] = self.errors.get(report.failure, 0) + 1

    def _share(self, page: LocalPage, report: PageReport, spend: Spend, spending: Spending) -> str | None:
        """Let the page spend over what the read showed, now or when its load has ended. -> `Settled.fault`"""
        if self.loads.early and (load := self.loads.take_early(report.page, report.epoch)) is not None:
            return self.loads.apply(page, load, spending)
        if spend is Spend.STORED:
            children = self.partition.children(page)
            spending.over(page, NO_CHILDREN if children is None else children)
        elif spend is Spend.LINKS or (report.loading and not report.error):
            if page in self.loads.loading:
                self.loads.forget(page)
            if spend is Spend.LINKS:
                self._spend_report(page, report, spending)
            else:
                self.loads.loading[page] = report.epoch
                self.requests.keep(page, Priority.ORDERED)  # a crash before its LoadReport: read it again
        return None

    def _name_sitemaps(self, urls: tuple[str, ...], depth: int) -> None:
        """Sitemaps that the host's robots.txt names: read whatever the scope is, and free to list any URL."""
        pages = self.pages.resolve(list(urls), [depth] * len(urls), exempt=True)
        pages = pages[self.columns["state"][pages] != _FOREIGN]
        self.columns["flags"][pages] |= NAMED
        self.columns.touch("flags", pages)

    def _spend_report(self, page: LocalPage, report: PageReport, spending: Spending) -> None:
        if report.location:
            spending.redirects.add(page)
            spending.over_urls(page, (report.location,))
        elif report.nofollow:
            spending.over_urls(page, ())
        else:
            spending.over_urls(page, followed(report.links.urls, report.links.flags))

    def _resolve_links(self, spending: Spending) -> None:
        """Turn the URL runs of this turn's pages into children, store them, lower depths where a way got shorter."""
        before = self.columns.n
        if spending.open:
            self.pages.resolve_links(spending, self.settings.store.links)
        if self.pages.waiting_links:
            self.pages.admit(self.settings.store.links)
        self._note_births(spending, before)
        if self.partition.standing.any_doubt:
            self.vouchers.hear(spending, before)
        for page in spending.redirects:
            self._follow_redirect(page, spending)
        for linked in self.hooks.linked:
            linked(spending, before)

    def _note_births(self, spending: Spending, before: int) -> None:
        """Count the new pages of patterns by where they were met, those that had to wait when they come in."""
        if self.columns.n <= before:
            return
        now = [(spending.pages[index], spending.children[index]) for index, _, _ in spending.open]
        births = [(*each, each[0] in spending.redirects, each[0] not in spending.first_reads) for each in now]
        for page, children in self.pages.admitted:
            row = self.partition.row(page)
            births.append((page, children, row is not None and bool(row.location), row is not None and row.reads > 1))
        births = [(page, new, hop, again) for page, met, hop, again in births if len(new := met[met >= before])]
        if not births:
            return
        owners, born, redirected, again = zip(*births, strict=True)
        counts = [len(new) for new in born]
        breeders = self.partition.standing.note_births(
            np.concatenate(born).astype(np.int64),
            np.repeat(np.array(owners, np.int64), counts),
            np.repeat(np.array(redirected), counts),
            np.repeat(np.array(again), counts),
            self._form,
        )
        for page in breeders:
            self.impostors.suspect(page)

    def _follow_redirect(self, page: LocalPage, spending: Spending) -> None:
        """A page that redirects to a path with a query belongs to its pattern: it is worth what it leads to."""
        children, folders = spending.children[spending.pages.index(page)], self.columns[FOLDER]
        if len(children) and folders[children[0]] >= QUERIES and folders[page] != folders[children[0]]:
            folders[page] = folders[children[0]]
            self.columns.touch(FOLDER, page)

    def _form(self, page: LocalPage) -> str:
        return form_of(self.partition.url(page))

    def _hear_claims(self, settled: Sequence[Settled], spending: Spending, now: float) -> None:
        """Keep what sitemaps and feeds that were loaded in this turn say of other pages."""
        if not spending.loaded and not self.claims.long_documents:
            return
        written = {order.page for order in settled}
        rests = {spending.pages[spending.open[run][0]]: urls for run, urls in spending.rest.items()}
        self.claims.hear_slices(self.pages.slices, written, now)
        for page, report in spending.loaded:
            self.claims.hear(page, report, written, now, rests.get(page, ()))
        self.claims.forget(self.pages.waiting_links.has_unseen)

    def _remember_host(self, page: LocalPage, report: PageReport) -> None:
        """Politeness to keep over a restart: only where a host must be left alone for longer than a moment."""
        host = self.partition.hosts_of[page]
        if report.status and not report.host_failures:  # else it is left alone for its failures, or was not asked
            self.partition.hosts.note_gap(host, report.host_next - report.ended)
        later = report.host_next if report.host_next > report.ended + 1.0 or report.host_failures else 0.0
        if (later or host in self.partition.hosts.clocks) and self.partition.hosts.remember(
            host, later, report.host_failures, report.ended
        ):
            self.partition.put(*self.partition.hosts.stored(host))
