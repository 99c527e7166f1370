"""What a crawl that was killed again and again must have in common with one that nobody disturbed.

The witness is the server's access log, written by another process: what the crawler says of itself (its export) is
held against it. Pure: rows and lines in, violations out.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from lab.places import disallows, host_at

Row = Mapping[str, Any]
ROBOTS = "/robots.txt"
LOST_PER_KILL = 512
"""reports that a crash may cost: two commit groups of 256, one being written while the other is filled"""
JITTER = 0.010
"""seconds by which two times of the log may be wrong (reliability.md I4)"""
_SAME = ("state", "error", "http_status", "kind", "out_links", "signature")
"""columns of the export that do not depend on when and how often a page was read"""
_CONTACT = re.compile(r"mailto:([a-z]+-\d+)@")


class Request(NamedTuple):
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


def requests_of(log: str, port: int) -> list[Request]:
    """The requests in an access log (lab/access_log.py) of crawlers whose --contact was contact()."""
    found = []
    for line in log.splitlines():
        time, host, *_, agent, uri = line.split("\t")
        if contact := _CONTACT.search(agent):
            found.append(Request(float(time), contact[1], f"{host}:{port}", uri))
    return found


def life(name: str, number: int) -> str:
    """The number-th process of a crawl."""
    return f"{name}-{number}"


def contact(life: str) -> str:
    """Its --contact."""
    return f"{life}@crash.example"


def violations(
    calm: Sequence[Row], rough: Sequence[Row], requests: Sequence[Request], kills: int, delay: float
) -> list[str]:
    """calm, rough: export rows of the undisturbed and the killed crawl; requests: those of the killed one, in order."""
    pages = [request for request in requests if request.uri != ROBOTS]
    return [
        *_same_pages(calm, rough),
        *_bounded(sum(row["reads"] > 0 for row in calm), len(pages), kills),
        *_justified(rough, pages, kills),
        *_obedient(requests),
        *_one_at_a_time(requests, delay),
    ]


def _same_pages(calm: Sequence[Row], rough: Sequence[Row]) -> Iterator[str]:
    """The same URLs are known, and what was read of them is the same."""
    wanted, found = ({row["url"]: row for row in rows} for rows in (calm, rough))
    for url in sorted(wanted.keys() ^ found.keys()):
        yield f"{url} is known to the {'undisturbed' if url in wanted else 'killed'} crawl only"
    for url in sorted(wanted.keys() & found.keys()):
        for name in _SAME:
            if wanted[url][name] != found[url][name]:
                yield f"{url}: {name} is {found[url][name]}, undisturbed {wanted[url][name]}"
        if bool(wanted[url]["reads"]) != bool(found[url]["reads"]):
            yield f"{url}: {found[url]['reads']} reads, undisturbed {wanted[url]['reads']}"


def _bounded(pages: int, requests: int, kills: int) -> Iterator[str]:
    most = pages + kills * LOST_PER_KILL
    if requests > most:
        yield f"{requests} page requests, {most} are allowed ({pages} pages, {kills} kills)"


def _justified(rows: Sequence[Row], pages: Sequence[Request], kills: int) -> Iterator[str]:
    """Whatever the export claims to have read, the server answered; what it forgot was lost in a kill."""
    answered = Counter(request.url for request in pages)
    for row in rows:
        if row["reads"] > answered[row["url"]]:
            yield f"{row['url']}: {row['reads']} reads, the server answered {answered[row['url']]} times"
    lost = len(pages) - sum(row["reads"] for row in rows)
    if lost > kills * LOST_PER_KILL:
        yield f"{lost} reads were lost in {kills} kills"


def _obedient(requests: Iterable[Request]) -> Iterator[str]:
    """Each process asks each host for robots.txt first, and never for what that disallows."""
    met: set[tuple[str, str]] = set()
    for request in requests:
        if request.uri != ROBOTS and (request.life, request.host) not in met:
            yield f"{request.life} read {request.url} before robots.txt"
        met.add((request.life, request.host))
        if request.uri.startswith("/private/") and disallows(host_at(request.host.partition(":")[0])):
            yield f"{request.life} read {request.url}, which robots.txt disallows"


def _one_at_a_time(requests: Sequence[Request], delay: float) -> Iterator[str]:
    """Two reads of a host are `delay` apart, whether one process made them or two."""
    last: dict[str, Request] = {}
    for request in requests:
        before = last.get(request.host)
        if before is not None and request.time - before.time < delay - JITTER:
            gap = f"{request.time - before.time:.3f} s after {before.life} read its host, the delay is {delay} s"
            yield f"{request.life} read {request.url} {gap}"
        last[request.host] = request


def shortest_gap(requests: Iterable[Request]) -> float:
    """Seconds between the two closest requests to one host."""
    times: dict[str, list[float]] = defaultdict(list)
    for request in requests:
        times[request.host].append(request.time)
    return min((after - before for own in times.values() for before, after in pairwise(own)), default=float("inf"))
