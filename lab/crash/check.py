"""Compare a crawl that was killed again and again with one that nobody disturbed.

The witness is the server's access log, written by another process: what the crawler says of itself (its export) is
held against it. Pure: rows and lines in, violations out.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from xyro.lab.web.places import disallows, host_at

Row = Mapping[str, Any]
ROBOTS = "/robots.txt"
AT_RISK = 256
"""reads that a crash may cost beside the requests under way: those that wait to be on disk (service/node/node.py)"""
CONCURRENCY = 256
"""fetch.concurrency: most requests under way"""
LOST_PER_KILL = AT_RISK + CONCURRENCY
JITTER = 0.010
"""seconds by which two times of the log may be wrong: threads of the server wait for the lock"""
_SAME = ("state", "error", "http_status", "kind", "out_links", "signature")
"""columns of the export that do not depend on when and how often a page was read"""
_CONTACT = re.compile(r"mailto:([a-z]+-\d+)@")


class LoggedRequest(NamedTuple):
    """One line of the access log."""

    time: float
    life: str
    """which process asked: it says so in its User-Agent"""
    host: str
    """host and port, as the export writes it"""
    uri: str

    @property
    def url(self) -> str:
        return f"http://{self.host}{self.uri}"


def requests_of(log: str, port: int) -> list[LoggedRequest]:
    """The requests in an access log (lab/web/access_log.py) of crawlers whose --contact was contact()."""
    found = []
    for line in log.splitlines():
        time, host, *_, agent, uri = line.split("\t")
        if contact := _CONTACT.search(agent):
            found.append(LoggedRequest(float(time), contact[1], f"{host}:{port}", uri))
    return found


class Left(NamedTuple):
    """The contents of the store after the end of a process."""

    life: int
    reads: Mapping[str, int]
    """by URL"""
    allowance: int
    """reads that this end may cost"""


def life(name: str, number: int) -> str:
    """Return the name of the number-th process of a crawl."""
    return f"{name}-{number}"


def number(life: str) -> int:
    """Return the number of a process within its crawl, as `life` counts."""
    return int(life.rpartition("-")[2])


def contact(life: str) -> str:
    """Return the value of --contact by which the server knows this process."""
    return f"{life}@crash.example"


def violations(
    calm: Sequence[Row], rough: Sequence[Row], requests: Sequence[LoggedRequest], left: Sequence[Left], delay: float
) -> list[str]:
    """Return every difference and every broken promise of the killed crawl, as sentences; none where all holds.

    calm, rough: export rows of the undisturbed and the killed crawl; requests: those of the killed one, in order; left:
    the contents of its store after each end.
    """
    pages = [request for request in requests if request.uri != ROBOTS]
    return [
        *_same_pages(calm, rough),
        *_bounded(sum(row["reads"] > 0 for row in calm), len(pages), sum(life.allowance for life in left)),
        *_lost(left, pages),
        *_justified({row["url"]: row["reads"] for row in rough}, pages),
        *_obedient(requests),
        *_one_at_a_time(requests, delay),
    ]


def _same_pages(calm: Sequence[Row], rough: Sequence[Row]) -> Iterator[str]:
    """Report every URL that only one crawl knows, and every difference in what the two read of a URL."""
    wanted, found = ({row["url"]: row for row in rows} for rows in (calm, rough))
    for url in sorted(wanted.keys() ^ found.keys()):
        yield f"{url} is known to the {'undisturbed' if url in wanted else 'killed'} crawl only"
    for url in sorted(wanted.keys() & found.keys()):
        for name in _SAME:
            if wanted[url][name] != found[url][name]:
                yield f"{url}: {name} is {found[url][name]}, undisturbed {wanted[url][name]}"
        if bool(wanted[url]["reads"]) != bool(found[url]["reads"]):
            yield f"{url}: {found[url]['reads']} reads, undisturbed {wanted[url]['reads']}"


def _bounded(pages: int, requests: int, lost: int) -> Iterator[str]:
    if requests > pages + lost:
        yield f"{requests} page requests, {pages + lost} are allowed ({pages} pages, {lost} that may be lost)"


def losses(left: Sequence[Left], pages: Sequence[LoggedRequest]) -> list[int]:
    """Count the reads that each end cost: the server answered them and the store does not know them."""
    answered = Counter(number(request.life) for request in pages)
    missing = [
        sum(count for number, count in answered.items() if number <= life.life) - sum(life.reads.values())
        for life in left
    ]
    return [after - before for before, after in pairwise([0, *missing])]


def _lost(left: Sequence[Left], pages: Sequence[LoggedRequest]) -> Iterator[str]:
    """Report each end that cost more reads than it may, or left reads in the store that no server knows of."""
    for life, lost in zip(left, losses(left, pages), strict=True):
        if lost > life.allowance:
            yield f"life {life.life}: its end cost {lost} reads, {life.allowance} are allowed"
        so_far = [request for request in pages if number(request.life) <= life.life]
        yield from (f"life {life.life}: {excess}" for excess in _justified(life.reads, so_far))


def _justified(reads: Mapping[str, int], pages: Sequence[LoggedRequest]) -> Iterator[str]:
    """Report each read that the store claims and the server never answered."""
    answered = Counter(request.url for request in pages)
    for url, count in reads.items():
        if count > answered[url]:
            yield f"{url}: {count} reads, the server answered {answered[url]} times"


def _obedient(requests: Iterable[LoggedRequest]) -> Iterator[str]:
    """Report each process that did not ask a host for robots.txt first, or asked for a page that it disallows."""
    met: set[tuple[str, str]] = set()
    for request in requests:
        if request.uri != ROBOTS and (request.life, request.host) not in met:
            yield f"{request.life} read {request.url} before robots.txt"
        met.add((request.life, request.host))
        if request.uri.startswith("/private/") and disallows(host_at(request.host.partition(":")[0])):
            yield f"{request.life} read {request.url}, which robots.txt disallows"


def _one_at_a_time(requests: Sequence[LoggedRequest], delay: float) -> Iterator[str]:
    """Report reads of a host less than `delay` seconds apart, whether one process made them or two."""
    last: dict[str, LoggedRequest] = {}
    for request in requests:
        before = last.get(request.host)
        if before is not None and request.time - before.time < delay - JITTER:
            gap = f"{request.time - before.time:.3f} s after {before.life} read its host, the delay is {delay} s"
            yield f"{request.life} read {request.url} {gap}"
        last[request.host] = request


def shortest_gap(requests: Iterable[LoggedRequest]) -> float:
    """Seconds between the two closest requests to one host."""
    times: dict[str, list[float]] = defaultdict(list)
    for request in requests:
        times[request.host].append(request.time)
    return min((after - before for own in times.values() for before, after in pairwise(own)), default=float("inf"))
