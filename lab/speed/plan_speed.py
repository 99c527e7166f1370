"""`xyro lab speed plan`: what it costs to choose what is read next, and to remember it, for 10 million known pages.

    scan      refresh/scan.py over the columns of all pages, as at each look of a crawl by scan (hosts that are shut
              passed over, bounds kept): the pages with the greatest index by each policy
    folders   the crawl's own DueQueue: pages whose time unit has begun are popped, and each is asked again by its
              Refresh-Data row, out of LevelDB, whether it is due by the multiplier of now. That row is read for the
              order that is made of the page (validators, signature), under a scan, too: shown apart
    floor     one np.partition over one column, and one sum over each of the columns a scan reads: what memory and a
              selection cost at least

Then the bytes that a page costs because it is refreshed: columns, folders, queues, and the sketches of all pages
(population, what is expected, audits), measured as they are.
"""

from __future__ import annotations

import math
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

from xyro import process_memory
from xyro.configs.schema import RefreshSettings
from xyro.frontier.bandwidth import DAY, LATEST, Bandwidth
from xyro.frontier.due_queue import DueQueue, Pages
from xyro.frontier.ledger import Ledger
from xyro.lab.refresh.compared_policies import Compared
from xyro.lab.refresh.scan_execution import Ids, Scan, Seconds, Shut
from xyro.lab.speed.measures import cpu_seconds, say, spread
from xyro.metadata import rows
from xyro.metadata.partition import Partition
from xyro.metadata.rows import RefreshRow
from xyro.metadata.states import COLUMNS, LAST_READ, RATE, State
from xyro.refresh.dated_pages import DatedPage, PageSample
from xyro.refresh.due import DueFolders
from xyro.refresh.meter import BLOCK, Blocks
from xyro.refresh.policy import Policy, Reals, weight
from xyro.refresh.population import Population
from xyro.refresh.rate_belief import START, PageBelief
from xyro.refresh.rate_sums import RateSums
from xyro.service.node.data_dir import DataDir
from xyro.wire.ids import LocalPage, page_range

GOAL_LAW, GOAL_INDEX, GOAL_BYTES = 0.050, 0.250, 16.0
NOW = 1_700_000_000
UNIT = 60
HOSTS = 10_000
POLICIES = (
    Policy("obsolescence"),
    Policy("mixed", 0.3, 1.0),
    Policy("freshness"),
    Compared("kolobov"),
    Compared("proportional"),
    Policy("uniform"),
)
LAW = ("obsolescence",)
"""P1's; the others are index policies"""
YEAR = 365.0
DATED = 0.1
"""share of the pages that a scan leaves to folders, as assumed: claims, habits, clusters, failures"""


class PlannedPages:
    """The columns of pages to plan: importance of a power law, rates lognormal, all read within the last 30 days."""

    def __init__(self, pages: int) -> None:
        chance = np.random.default_rng(1)
        self.pages = pages
        self.importance = (chance.pareto(1.2, pages) + 0.1).astype(np.float32)
        self.rate = chance.lognormal(-3.4, 2.0, pages).astype(np.float32)
        self.read_at = (NOW - chance.integers(60, 30 * 86_400, pages)).astype(np.uint32)
        self.host_of = chance.integers(0, HOSTS, pages).astype(np.uint32)


def plan(pages: int, orders: int, runs: int) -> int:
    """Measure and print all; exit code 0 where every limit holds."""
    orders = min(orders, pages)
    planned = PlannedPages(pages)
    say(f"choosing {orders:,} orders out of {pages:,} known pages: ms of one core")
    _floor(planned, orders, runs)
    holds = _scans(planned, orders, runs)
    with tempfile.TemporaryDirectory(prefix="xyro-speed-") as directory:
        data = DataDir.open(Path(directory) / "data", make=True)
        try:
            holds &= _folders(data.partitions[0], planned, orders, runs)
        finally:
            data.close()
    holds &= _memory(planned)
    say("all limits hold" if holds else "A LIMIT DOES NOT HOLD")
    return 0 if holds else 1


def _timed(work: Callable[[], object], runs: int) -> list[float]:
    """Return the CPU seconds of each run."""
    found = []
    for _ in range(runs):
        begun = cpu_seconds()
        work()
        found.append(cpu_seconds() - begun)
    return found


def _report(name: str, seconds: list[float], goal: float = math.inf) -> bool:
    """Print one line; return whether the median run keeps the limit."""
    middle = median(seconds)
    limit = f"    at most {goal * 1e3:.0f}: {'holds' if middle <= goal else 'MISSED'}" if goal < math.inf else ""
    say(f"  {name:<52} {spread([second * 1e3 for second in seconds], 1):<24}{limit}")
    return middle <= goal


def _floor(planned: PlannedPages, orders: int, runs: int) -> None:
    kth = max(planned.pages - orders, 0)
    _report("floor: np.partition of one float32 column", _timed(lambda: np.partition(planned.importance, kth), runs))
    columns = (planned.importance, planned.rate, planned.read_at)
    _report("floor: one sum over each of three columns", _timed(lambda: [column.sum() for column in columns], runs))


def _scans(planned: PlannedPages, orders: int, runs: int) -> bool:
    holds = True
    columns = planned.importance, planned.rate, planned.read_at
    for policy in POLICIES:
        scan = Scan(policy, ceiling=YEAR)

        def work(scan: Scan = scan) -> None:
            assert len(scan.choose(*columns, NOW, orders)) == min(orders, planned.pages)

        holds &= _report(f"scan: {policy.name}", _timed(work, runs), GOAL_LAW if policy.name in LAW else GOAL_INDEX)
    scan = Scan(Policy(), floor=1.0, ceiling=YEAR)
    shut = Shut(np.arange(HOSTS) % 10 == 0, planned.host_of)
    seconds = _timed(lambda: scan.choose(*columns, NOW, orders, 0.0, shut), runs)
    return _report("scan: obsolescence, a floor, a tenth of hosts shut", seconds, GOAL_LAW) and holds


# Folders


def _folders(partition: Partition, planned: PlannedPages, orders: int, runs: int) -> bool:
    """All pages filed by the date that P1's law gives them; those that are due now have their rows on disk."""
    due, filed, first = _filed(partition, planned, orders)
    process_memory.tune()

    def asked() -> None:
        found: list[int] = []
        while len(found) < len(first):  # as turn after turn does
            found += [page for page, _ in due.ready(float(NOW), orders - len(found))]
        due.recover(first, filed[first])

    def popped() -> None:
        pages = due.folders.pop(NOW, orders)
        assert (partition.columns["due"][pages] <= NOW).all()
        due.recover(first, filed[first])

    _report("folders: pop, the due column asked, filed again", _timed(popped, runs))
    whole = _timed(asked, runs)
    needed = _timed(lambda: [partition.row(page) for page in first.tolist()], runs)
    _report("folders: the same, and rows asked by the law of now", whole)
    _report("  of that: rows read, which their orders need anyway", needed)
    chosen = [max(both - median(needed), 0.0) for both in whole]
    return _report("folders: obsolescence, without these rows", chosen, GOAL_LAW)


def _filed(partition: Partition, planned: PlannedPages, orders: int) -> tuple[DueQueue, Seconds, Pages]:
    """Return the crawl's own folders with every page in, their due times, and the `orders` pages due now."""
    n, bandwidth = planned.pages, _pace(planned, orders)
    days = bandwidth.rules.intervals(planned.importance * bandwidth.scale, planned.rate, bandwidth.multiplier)
    first = np.random.default_rng(2).choice(n, min(orders, n), replace=False)
    _store_rows(partition, planned, first, days[first])
    columns = partition.columns  # they grow after the only commit: it would hold all of them
    columns.grow(n)
    columns["state"][:n] = int(State.READ)
    due = DueQueue(partition, bandwidth, Ledger(columns, 0, 0.15, 16.0, 0.1), UNIT)
    filed = (planned.read_at + days * DAY).clip(NOW + UNIT, LATEST).astype(np.uint32)
    filed[first] = NOW - 2 * UNIT
    columns["due"][:n] = filed
    due.recover(np.arange(n, dtype=np.uint32), filed)
    return due, filed, first.astype(np.uint32)


def _pace(planned: PlannedPages, orders: int) -> Bandwidth:
    """P1's law, at a bandwidth that reads `orders` pages a time unit."""
    bandwidth = Bandwidth(RefreshSettings(audit=0.0))
    heavy = np.sqrt(planned.importance[:: planned.pages // 10_000 or 1].astype(np.float64))
    rates = planned.rate[:: planned.pages // 10_000 or 1].astype(np.float64)
    for heaviness, rate in zip(heavy.tolist(), rates.tolist(), strict=True):
        bandwidth.replace(LocalPage(0), None, heaviness * math.sqrt(rate), rate)
    bandwidth.capacity.fallback = orders / UNIT * len(heavy) / planned.pages
    bandwidth.renew(float(NOW))
    return bandwidth


def _store_rows(partition: Partition, planned: PlannedPages, pages: Ids, days: Reals) -> None:
    """Refresh-Data of these pages, as a crawl writes it: read so long ago that they are due now."""
    partition.begin()
    for page, interval in zip(pages.tolist(), days.tolist(), strict=True):
        importance, rate = float(planned.importance[page]), float(planned.rate[page])
        row = RefreshRow(
            first_read=NOW - 10**7,
            last_read=max(1, NOW - 2 * UNIT - int(interval * DAY)),
            last_change=NOW - 10**6,
            signature=page.to_bytes(16, "big"),
            reads=9,
            changes=3,
            etag=f'"{page:x}-5f3c"',
            last_modified="Tue, 04 Nov 2025 08:00:00 GMT",
            quiet_days=2.5 / rate,
            change_sum=3.0,
            change_days=1.0 / rate,
            rate=rate,
            weight=weight(importance, rate),
            status=200,
            mime="text/html",
            size=28_000,
        )
        partition.put(rows.REFRESH.key(page), rows.pack(row))
    commit = partition.seal({})
    partition.write(commit)
    partition.written(commit)


# Memory


def _memory(planned: PlannedPages) -> bool:
    """Bytes that exist because pages are refreshed, by execution."""
    shared = _traced(lambda: _sketches(planned)) / planned.pages
    folders = _traced(lambda: _all_filed(planned)) / planned.pages
    due, ranked = COLUMNS["due"].itemsize, np.dtype(np.float32).itemsize + np.dtype(np.uint32).itemsize
    found = {"folders": due + folders + shared, "scan": due + ranked + DATED * folders + shared}
    say("refresh_bytes_per_page: what is in RAM because pages are refreshed, where all known pages are")
    say(f"  column due {due}; an entry in a folder {folders:.2f}; columns {RATE} and {LAST_READ} {ranked} (scan)")
    say(f"  population of two counts, expected freshness, audits: {shared:.2f}")
    for name, size in found.items():
        limit = f"at most {GOAL_BYTES:g}: {'holds' if size <= GOAL_BYTES else 'MISSED'}"
        dated = f"    {DATED:.0%} of the pages by date, in folders" if name == "scan" else ""
        say(f"  refresh_bytes_per_page {name:<10} {size:6.2f}    {limit}{dated}")
    return max(found.values()) <= GOAL_BYTES


def _traced(build: Callable[[], object]) -> int:
    """Return the bytes of the object that `build` makes."""
    tracemalloc.start()
    try:
        built = build()
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    del built
    return size


def _sketches(planned: PlannedPages) -> object:
    """Make the sketches of all pages; the population twice, as while it is counted anew."""
    some = slice(None, None, max(1, planned.pages // 10_000))
    importance, rate = planned.importance[some].astype(np.float64), planned.rate[some].astype(np.float64)
    heavy = np.sqrt(importance * rate)
    populations = [Population.from_pages(heavy, rate) for _ in range(2)]
    read = planned.read_at[some].astype(np.float64).tolist()
    sample = PageSample(1)
    for page, (weighing, changes, seconds) in enumerate(zip(heavy.tolist(), rate.tolist(), read, strict=True)):
        belief = PageBelief(RateSums(2.5 / changes, 3.0, 1.0 / changes), START)
        sample.put(LocalPage(page), DatedPage(weighing, changes, belief, seconds), 0)
    blocks = Blocks()
    for block in range(math.ceil(planned.pages / BLOCK)):
        blocks.look(block, importance[:1])
    return [population.bins for population in populations], populations, sample, blocks


def _all_filed(planned: PlannedPages) -> object:
    """Every page in its folder, put there one by one, as reads do."""
    folders = DueFolders(UNIT)
    put = folders.put
    for page, read_at in zip(page_range(LocalPage(0), planned.pages), planned.read_at.tolist(), strict=True):
        put(page, read_at)
    return folders
