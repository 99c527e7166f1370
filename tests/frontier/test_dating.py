"""Evidence of changes in the loop: trust of hosts, claims, priors, habits; kept over a restart."""

from __future__ import annotations

from email.utils import formatdate
from pathlib import Path

import numpy as np
import pytest

from tests.frontier.rig import START, Crawl, report, signature, url
from xyro.configs.schema import RefreshSettings, Settings
from xyro.metadata import rows
from xyro.metadata.rows import RefreshRow
from xyro.metadata.states import HASTENED, HINTED
from xyro.refresh.periodic import unpack
from xyro.refresh.rate_belief import PageBelief, PriorLearner, RatePopulation, codes
from xyro.refresh.rate_sums import RateSums
from xyro.refresh.trust import Source
from xyro.service.views.claim_evidence import count_doubted_hosts
from xyro.service.views.why import why
from xyro.wire.messages import FetchOrder, Kind, LoadReport, LoadState

DAY = 86_400.0
SITEMAP = "http://h0.example/sitemap.xml"


def crawl_of(days: float = 2.0, path: Path | None = None, **refresh: object) -> Crawl:
    """A crawl that refreshes, each page every `days`."""
    bounds = {"least_chance": 1.0 - 1e-9, "max_interval": days * DAY} | refresh
    settings = Settings(refresh=RefreshSettings(**bounds))
    if path is None:
        return Crawl.in_memory(settings=settings, refreshing=True)
    return Crawl.on_disk(path, settings=settings, refreshing=True)


def begun(crawl: Crawl, *targets: str) -> Crawl:
    for target in targets:
        crawl.submit(target)
    crawl.turn()
    return crawl


def row_of(crawl: Crawl, target: str) -> RefreshRow:
    frontier, page = crawl.page(target)
    found = frontier.partition.row(page)
    assert found is not None
    return found


def due_of(crawl: Crawl, target: str) -> int:
    frontier, page = crawl.page(target)
    return int(frontier.columns["due"][page])


def visit(crawl: Crawl, target: str, content: int, **fields: object) -> None:
    """The next order for the page, answered with this content."""
    while not any(order.url == target for order in crawl.orders.values()):
        crawl.now = max(crawl.now + 60.0, due_of(crawl, target), crawl.frontier.scheduler.next_time())
        crawl.turn()
    answer(crawl, crawl.order(target), content, **fields)
    crawl.turn()


def answer(crawl: Crawl, order: FetchOrder, content: int, **fields: object) -> None:
    crawl.give(report(order, crawl.now, **{"signature": signature(order.page << 64 | content), **fields}))


def told_by_sitemap(crawl: Crawl, *modified: tuple[str, float], rates: tuple[tuple[str, float], ...] = ()) -> None:
    """What a load of the sitemap of h0 says, outside any read of it."""
    frontier, page = crawl.page(SITEMAP)
    frontier.partition.begin()
    loaded = LoadReport(page, SITEMAP, 1, LoadState.LOADED, "sitemap", modified=modified, rates=rates)
    frontier.claims.hear(page, loaded, (), crawl.now)
    frontier.partition.write(frontier.partition.seal({"node": frontier.dump()}))


def trust_of(crawl: Crawl, source: Source, host: str = "h0.example") -> float:
    beliefs = crawl.frontier.dating.change_model
    return beliefs.trust(crawl.frontier.partition.hosts.numbers[host]).weight(source)


# --- Last-Modified --------------------------------------------------------------------------------------------------


def test_a_trusted_last_modified_dates_the_change():
    crawl = begun(crawl_of(), url(0))
    visit(crawl, url(0), 1)
    first = row_of(crawl, url(0))
    crawl.now += 2.5 * DAY
    visit(crawl, url(0), 2, last_modified=formatdate(crawl.now - 1.0 * DAY, usegmt=True))
    row = row_of(crawl, url(0))
    tau = (row.last_read - first.last_read) / DAY
    age = (row.last_read - int(crawl.now - 1.0 * DAY)) / DAY
    assert row.belief.sums == pytest.approx(first.belief.sums.after(tau, True, age), rel=1e-3)
    assert row.change_days < 1e-4 and row.rate == pytest.approx(row.belief.rate())


def test_a_host_whose_last_modified_is_always_now_is_doubted_told_and_not_believed():
    targets = [url(0, page) for page in range(12)]
    crawl = begun(crawl_of(), *targets)
    for target in targets:
        visit(crawl, target, 1, last_modified=formatdate(crawl.now + 7200.0, usegmt=True))
    assert count_doubted_hosts(crawl.frontier) == 1
    before = row_of(crawl, url(0))
    visit(crawl, url(0), 2, last_modified=formatdate(crawl.now + 1.0 * DAY, usegmt=True))
    row = row_of(crawl, url(0))
    tau = (row.last_read - before.last_read) / DAY
    assert row.belief.sums == pytest.approx(before.belief.sums.after(tau, True, None), rel=1e-4)
    with crawl.views() as views:
        host = next(iter(views.hosts()))
        said = why(views, url(0), crawl.now)["because"]
    assert host["last_modified"] == "doubted" and host["claims"] >= 12 and "last-modified 0." in host["trust"]
    assert any("Last-Modified is not used" in sentence for sentence in said)


def test_honest_hosts_are_not_doubted_and_cost_no_row():
    crawl = begun(crawl_of(), url(0))
    for content in range(1, 8):
        crawl.now += 3.0 * DAY
        visit(crawl, url(0), content, last_modified=formatdate(crawl.now - 600.0, usegmt=True))
    assert count_doubted_hosts(crawl.frontier) == 0
    assert not crawl.frontier.partition.hosts.trust


# --- claims ---------------------------------------------------------------------------------------------------------


def test_a_date_of_a_page_never_read_shapes_the_belief_that_it_begins_with():
    crawl = begun(crawl_of(), url(0), SITEMAP)
    frontier = crawl.frontier
    crawl.give(report(crawl.order(url(0)), crawl.now, [url(0, 1)]))
    crawl.turn()
    frontier, page = crawl.page(url(0, 1))
    frontier.partition.begin()
    frontier.scheduler.drop(page, crawl.order(url(0, 1)).epoch)
    frontier.partition.write(frontier.partition.seal({"node": frontier.dump()}))
    crawl.orders.clear()
    changed_at = crawl.now - 10 * DAY
    told_by_sitemap(crawl, (url(0, 1), changed_at), rates=((url(0, 1), 4.0),))
    told_by_sitemap(crawl, (url(0, 1), changed_at - 5 * DAY), rates=((url(0, 1), 9.0),))  # the first has said it
    assert frontier.partition.flags[page] & HINTED
    dated, rate = trust_of(crawl, Source.SITEMAP), trust_of(crawl, Source.RATE)
    visit(crawl, url(0, 1), 1)
    row = row_of(crawl, url(0, 1))
    assert row.change_sum == pytest.approx(dated + rate)
    assert row.quiet_days == pytest.approx(dated * (row.last_read - changed_at) / DAY + rate / 4)
    assert [Source(one.source) for one in row.claims] == [Source.RATE], (
        "a rate goes on being tested, the date is used up"
    )


def test_a_claim_draws_the_next_read_nearer_by_its_trust_and_only_once():
    crawl = begun(crawl_of(10.0), url(0), SITEMAP)
    visit(crawl, url(0), 1)
    due = due_of(crawl, url(0))
    crawl.now += DAY
    told_by_sitemap(crawl, (url(0), crawl.now - 60.0))
    moved, trust = due_of(crawl, url(0)), trust_of(crawl, Source.SITEMAP)
    assert moved == pytest.approx(due - trust * (due - crawl.now), abs=2)
    frontier, page = crawl.page(url(0))
    assert frontier.partition.flags[page] & HASTENED
    told_by_sitemap(crawl, (url(0), crawl.now - 30.0))
    assert due_of(crawl, url(0)) == moved, "a claim that waits is not repeated"
    with crawl.views() as views:
        assert any("Said of it (sitemap of h0.example)" in one for one in why(views, url(0), crawl.now)["because"])
    visit(crawl, url(0), 1)
    assert trust_of(crawl, Source.SITEMAP) < trust
    assert row_of(crawl, url(0)).claims == ()


def test_what_is_old_or_of_the_future_moves_nothing():
    crawl = begun(crawl_of(10.0), url(0), SITEMAP)
    visit(crawl, url(0), 1)
    crawl.now += DAY
    due = due_of(crawl, url(0))
    told_by_sitemap(crawl, (url(0), START - 5 * DAY))
    told_by_sitemap(crawl, (url(0), crawl.now + DAY))
    told_by_sitemap(crawl, ("http://h0.example/nobody-knows", crawl.now - 1.0))
    assert due_of(crawl, url(0)) == due and row_of(crawl, url(0)).claims == ()


@pytest.mark.parametrize("lying", [True, False])
def test_a_lying_sitemap_comes_to_move_nothing_and_an_honest_one_brings_reads_at_once(lying):
    crawl = begun(crawl_of(10.0), url(0), SITEMAP)
    content, shares = 1, []
    visit(crawl, url(0), content)
    for _ in range(40):
        visit(crawl, url(0), content)
        visit(crawl, url(0), content)
        crawl.now += DAY
        due = due_of(crawl, url(0))
        told_by_sitemap(crawl, (url(0), crawl.now - 1.0))
        shares.append((due - due_of(crawl, url(0))) / (due - crawl.now))
        content += not lying
        visit(crawl, url(0), content)
    assert shares[0] == pytest.approx(1 / 3, abs=0.01)
    if lying:
        assert max(shares[-10:]) < 0.1
    else:
        assert min(shares[-10:]) > 0.6


def test_caching_headers_are_tested_by_every_read():
    crawl = begun(crawl_of(), url(0))
    for _ in range(30):
        visit(crawl, url(0), 1, fresh_for=600.0)  # it never changes
    assert [Source(one.source) for one in row_of(crawl, url(0)).claims] == [Source.CACHE]
    assert trust_of(crawl, Source.CACHE) < 0.1


# --- priors ---------------------------------------------------------------------------------------------------------


def counted_in_rows(crawl: Crawl) -> tuple[PriorLearner, dict[int, RatePopulation]]:
    """The populations, counted anew from the rows."""
    kinds, hosts = PriorLearner(), {}
    partition = crawl.frontier.partition
    for key, value in partition.scan(rows.REFRESH.prefix):
        row = rows.unpack_refresh(value)
        assert bool(row.counted) is (row.reads > 0)
        assert row.shown is (row.reads > 1)
        if row.counted:
            assert [row.counted] == codes(row.belief.shares()[None, :])
            kinds.recount(row.kind.name, 0, row.counted)
        if row.shown:
            host = int(partition.hosts_of[rows.REFRESH.split(key)])
            hosts.setdefault(host, RatePopulation()).shift(0, row.counted)
    return kinds, hosts


def agree(crawl: Crawl) -> bool:
    kinds, hosts = counted_in_rows(crawl)
    kept = {host: RatePopulation.unpack(data) for host, data in crawl.frontier.partition.hosts.rates.items()}
    ours = crawl.frontier.dating.change_model.kinds.dump()
    filled = {kind: numbers for kind, numbers in ours["keys"].items() if numbers != [0, 0, 0]}
    return kept == hosts and ours["whole"] == kinds.dump()["whole"] and filled == kinds.dump()["keys"]


def test_populations_are_those_of_the_rows_through_kinds_failures_and_restarts(tmp_path):
    targets = [url(host, page) for host in (0, 1) for page in range(3)]
    crawl = begun(crawl_of(path=tmp_path / "data"), *targets)
    rng = np.random.default_rng(4)
    for turn in range(8):
        for target in targets:
            kind = Kind.HTML if (turn + len(target)) % 5 else Kind.XML
            visit(crawl, target, int(rng.integers(3)), kind=kind)
        if turn == 5:
            crawl.close()
            crawl = crawl_of(path=tmp_path / "data")
    visit(crawl, targets[0], 0, status=404, error="http-404", final=True)
    assert agree(crawl)
    kinds, hosts = counted_in_rows(crawl)
    assert sum(population.pages for population in hosts.values()) == kinds.whole.pages == len(targets)
    crawl.close()


def test_new_pages_of_a_host_begin_with_the_prior_of_its_pages():
    crawl = crawl_of()
    crawl.frontier.dating.change_model.enough = crawl.frontier.dating.change_model.kinds.enough = 4
    slow, fast = [url(0, page) for page in range(4)], [url(1, page) for page in range(4)]
    begun(crawl, *slow, *fast)
    for turn in range(6):
        for target in slow:
            visit(crawl, target, 1)
        for target in fast:
            visit(crawl, target, turn)
    crawl.submit(url(0, 9), url(1, 9))
    crawl.turn()
    visit(crawl, url(0, 9), 1)
    visit(crawl, url(1, 9), 1)
    quiet, busy = row_of(crawl, url(0, 9)), row_of(crawl, url(1, 9))
    assert quiet.rate < 0.2 < busy.rate
    beliefs = crawl.frontier.dating.change_model
    hosts = crawl.frontier.partition.hosts
    for host, row in (("h0.example", quiet), ("h1.example", busy)):
        wanted = RatePopulation.unpack(hosts.rates[hosts.numbers[host]]).prior()
        assert row.belief == PageBelief(RateSums(), wanted)
    assert beliefs.prior(hosts.numbers["h0.example"], Kind.HTML) == quiet.belief.prior


# --- habits ----------------------------------------------------------------------------------------------------------


def run_weekly(crawl: Crawl, dated: bool, reads: int) -> list[float]:
    """A page that changes every week, read so often; how long after a change each read came, seconds."""
    change = START + 3 * DAY + 12_345.0
    delays = []
    for _ in range(reads):
        while not any(order.url == url(0) for order in crawl.orders.values()):
            crawl.now = max(crawl.now + 60.0, due_of(crawl, url(0)), crawl.frontier.scheduler.next_time())
            crawl.turn()
        weeks = int((crawl.now - change) // (7 * DAY))
        last = change + weeks * 7 * DAY
        said = {"last_modified": formatdate(last, usegmt=True)} if dated else {}
        answer(crawl, crawl.order(url(0)), 100 + weeks, **said)
        delays.append(crawl.now - last)
        crawl.turn()
    return delays


@pytest.mark.parametrize(("days", "dated"), [(2.5, False), (2.5, True), (7.0, True)])
def test_a_page_that_changes_every_week_is_read_just_after(days, dated):
    crawl = begun(crawl_of(days), url(0))
    run_weekly(crawl, dated, 45)
    delays = run_weekly(crawl, dated, 15)
    row = row_of(crawl, url(0))
    assert str(unpack(row.diary).habit) == "every week"
    assert len(row.diary) <= 40
    just_after = [delay for delay in delays if delay < 0.75 * DAY]
    assert len(just_after) >= 5
    with crawl.views() as views:
        assert any("every week" in sentence for sentence in why(views, url(0), crawl.now)["because"])


def test_regular_false_keeps_no_record():
    crawl = begun(crawl_of(7.0, regular=False), url(0))
    run_weekly(crawl, True, 12)
    assert row_of(crawl, url(0)).diary == b""
