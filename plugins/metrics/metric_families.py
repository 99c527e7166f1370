"""The metrics of a running crawl, gathered when somebody asks: counts of its partitions, and the fields of its status.

xyro_reads_total{result, purpose}      xyro_read_seconds{phase}             xyro_received_bytes_total{encoding}
xyro_errors_total{class}               xyro_challenges_total{kind, vendor}  xyro_pages{state}
xyro_frontier_urls_total{kind}         xyro_orders{priority, state}         xyro_hosts{state}
xyro_order_wait_seconds{priority}      xyro_overdue_importance_ratio        xyro_challenged_hosts{vendor}
xyro_freshness_ratio{kind}             xyro_missed_changes                  xyro_changes_total{source}
xyro_promises_total{kind, result}      xyro_commit_seconds                  xyro_event_loop_lag_seconds
xyro_cash_units{where}                 xyro_sink_behind_changes{sink}       xyro_decoded_bytes_total
xyro_plug_in_faults_total
process_* (prometheus_client's own)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from xyro.opic.cash import UNIT
from xyro.plugins.metrics.read_counts import KEY, PHASES, READ_BOUNDS, WAIT_BOUNDS
from xyro.wire.messages import Priority

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from xyro.reports import Counters
    from xyro.service.node.node import Node

Figures = Sequence[Mapping[str, Any]]


class CrawlMetrics(Collector):
    """Gathers the families of one Node. `status`: the fields of its status; `lag`: seconds by which the event loop was
    late, lately."""

    def __init__(self, node: Node, status: Callable[[], dict[str, Any]], lag: Callable[[], float]) -> None:
        self._node = node
        self._status = status
        self._lag = lag
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def text(self) -> bytes:
        """All of them in Prometheus' text format."""
        return generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        """Nothing: names are those of `collect`, which needs a crawl."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield every family, of one moment between two turns."""
        status = self._status()
        parts = self._node.crawl_views.statuses(self._node.clock.time())
        figures = [part.extensions[KEY] for part in parts if KEY in part.extensions]
        yield from _reads(figures)
        yield from _bytes(figures, self._node.pool.counters)
        yield from _work(status, self._node.pool.in_flight)
        yield from _challenges(status, self._node.pool.counters)
        yield from _states(status)
        yield from _freshness(status)
        yield from _cash(figures, [part.number for part in parts], status["known"])
        faults = self._node.services.plug_in_faults
        yield CounterMetricFamily("xyro_plug_in_faults", "Fields that plug-ins failed at, and values cut.", faults)
        bounds, counts, total = self._node.commit_times()
        yield _histogram("xyro_commit_seconds", "Time until a commit group was on disk.", bounds, counts, total)
        yield _gauge("xyro_event_loop_lag_seconds", "How late the event loop was, at most.", self._lag())


def _reads(figures: Figures) -> Iterator[Metric]:
    reads = CounterMetricFamily("xyro_reads", "Reads, and orders that got no answer.", labels=("result", "purpose"))
    counts: Counter[tuple[str, str]] = Counter()
    for part in figures:
        counts.update({(result, purpose): count for result, purpose, count in part["reads"]})
    for names, count in sorted(counts.items()):
        reads.add_metric(names, count)
    yield reads
    seconds = HistogramMetricFamily(
        "xyro_read_seconds", "From a request to the last byte, and until its commit group takes it.", labels=("phase",)
    )
    for phase in PHASES:
        _add_times(seconds, phase, READ_BOUNDS, [part["phases"][phase] for part in figures])
    yield seconds
    waits = HistogramMetricFamily(
        "xyro_order_wait_seconds", "From when a page was due, or ordered, to its request.", labels=("priority",)
    )
    for name in (priority.name.lower() for priority in Priority):
        _add_times(waits, name, WAIT_BOUNDS, [part["waits"][name] for part in figures])
    yield waits
    if refreshed := sum(part["refreshed"] for part in figures):
        share = min(sum(part["overdue"] for part in figures) / refreshed, 1.0)
        yield _gauge("xyro_overdue_importance_ratio", "Share of importance whose next read is past its time.", share)
    changes = CounterMetricFamily("xyro_changes", "Changes that reads showed, by their priority.", labels=("source",))
    for source, count in sorted(sum((Counter(part["changes"]) for part in figures), Counter[str]()).items()):
        changes.add_metric((source,), count)
    yield changes


def _bytes(figures: Figures, counters: Counters) -> Iterator[Metric]:
    received = CounterMetricFamily(
        "xyro_received_bytes", "Bytes as they came, heads included, by content coding.", labels=("encoding",)
    )
    for coding, count in sorted(counters.received.items()):
        received.add_metric((coding,), count)
    yield received
    decoded = sum(part["decoded"] for part in figures)
    yield CounterMetricFamily("xyro_decoded_bytes", "Bytes of bodies, their codings undone.", value=decoded)


def _work(status: Mapping[str, Any], in_flight: int) -> Iterator[Metric]:
    errors = CounterMetricFamily("xyro_errors", "Failed orders of this process.", labels=("class",))
    for name, count in sorted(status["errors"].items()):
        errors.add_metric((name,), count)
    yield errors
    orders = GaugeMetricFamily("xyro_orders", "Orders that are out.", labels=("priority", "state"))
    for priority, count in status["queue"].items():
        orders.add_metric((priority, "queued"), count)
    orders.add_metric(("all", "reading"), in_flight)
    yield orders
    promises = CounterMetricFamily("xyro_promises", "Deadlines of published and subscribed pages.",
                                   labels=("kind", "result"))  # fmt: skip
    for kind, field, late in (("publication", "published", "late"), ("subscription", "subscribed", "missed")):
        if field in status:
            promises.add_metric((kind, "in_time"), status[field]["in_time"])
            promises.add_metric((kind, "late"), status[field][late])
    yield promises
    behind = GaugeMetricFamily("xyro_sink_behind_changes", "Changes that a sink was not given yet.", labels=("sink",))
    for name, sink in status.get("sinks", {}).items():
        behind.add_metric((name,), sink["behind"])
    yield behind


def _states(status: Mapping[str, Any]) -> Iterator[Metric]:
    pages = GaugeMetricFamily("xyro_pages", "Known pages.", labels=("state",))
    for state, count in status["states"].items():
        pages.add_metric((state,), count)
    yield pages
    urls = CounterMetricFamily("xyro_frontier_urls", "URLs met.", labels=("kind",))
    urls.add_metric(("known",), status["known"])
    urls.add_metric(("out-of-scope",), status["states"]["out-of-scope"])
    yield urls
    hosts = GaugeMetricFamily("xyro_hosts", "Hosts.", labels=("state",))
    held_hosts, challenged = status["held_hosts"], status["challenged_hosts"]
    for state, count in {"known": status["hosts"], "doubted": status["doubted_hosts"], **held_hosts}.items():
        hosts.add_metric((state,), count)
    hosts.add_metric(("challenged",), sum(challenged.values()))
    yield hosts


def _challenges(status: Mapping[str, Any], counters: Counters) -> Iterator[Metric]:
    vendors = GaugeMetricFamily("xyro_challenged_hosts", "Hosts that show a challenge.", labels=("vendor",))
    for vendor, count in status["challenged_hosts"].items():
        vendors.add_metric((vendor,), count)
    yield vendors
    met = CounterMetricFamily(
        "xyro_challenges", "Challenges that answered, and orders that they spared.", labels=("kind", "vendor")
    )
    for labels, count in sorted(counters.challenges.items()):
        met.add_metric(labels, count)
    yield met


def _freshness(status: Mapping[str, Any]) -> Iterator[Metric]:
    fresh = GaugeMetricFamily("xyro_freshness_ratio", "Share of importance that is up to date.", labels=("kind",))
    names = {"expected": "freshness", "low": "freshness_low", "high": "freshness_high", "model": "freshness_model"}
    found = {kind: status[field] for kind, field in names.items()} | {"measured": status["audit"]["freshness"]}
    for kind, value in found.items():
        if value is not None:
            fresh.add_metric((kind,), value)
    yield fresh
    if status["missed_changes"] is not None:
        yield _gauge("xyro_missed_changes", "Changes not seen yet a page, by importance.", status["missed_changes"])


def _cash(figures: Figures, numbers: Sequence[int], known: int) -> Iterator[Metric]:
    """Cash by place; pages, virtual and flight together are what was minted, in all processes of a crawl.

    Flight is what was sent to other partitions and not applied there. What those of other nodes have applied is not
    known here: until they say so, it counts as in flight.
    """
    if not figures:
        return
    cash = GaugeMetricFamily("xyro_cash_units", "Cash, 65,536 units a known page.", labels=("where",))
    applied = {number: part["applied"] for number, part in zip(numbers, figures, strict=True)}
    flight = sum(
        units
        for number, part in zip(numbers, figures, strict=True)
        for target, waiting in part["sent"].items()
        for seq, units in waiting
        if seq > applied.get(target, {}).get(number, 0)
    )
    places = {"pages": sum(part["cash"] for part in figures), "virtual": sum(part["virtual"] for part in figures)}
    for place, units in {**places, "flight": flight, "minted": UNIT * known}.items():
        cash.add_metric((place,), units)
    yield cash


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _add_times(
    family: HistogramMetricFamily, label: str, bounds: Sequence[float], figures: Sequence[tuple[Sequence[int], float]]
) -> None:
    """Add the TimeCounts of all partitions, as one."""
    counts = [sum(column) for column in zip(*(counts for counts, _ in figures), strict=True)]
    if counts:
        family.add_metric((label,), _buckets(bounds, counts), sum(total for _, total in figures))


def _buckets(bounds: Sequence[float], counts: Sequence[int]) -> list[tuple[str, float]]:
    """Cumulative counts, each under the upper end of its bucket."""
    return list(zip([*map(str, bounds), "+Inf"], accumulate(counts), strict=True))


def _histogram(name: str, text: str, bounds: Sequence[float], counts: Sequence[int], total: float) -> Metric:
    return HistogramMetricFamily(name, text, buckets=_buckets(bounds, counts), sum_value=total)
