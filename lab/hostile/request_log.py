"""The log of a server: one line a request, and what it says of a crawl."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from xyro.lab.hostile.hostile_sites import TRAPS, kind_of


class ServedRequest(NamedTuple):
    """A request as the server saw it begin."""

    moment: float
    """monotonic seconds"""
    address: str
    path: str

    def is_hostile(self, traps: tuple[str, ...]) -> bool:
        """Tell whether it went to a hostile host, or into a trap: to a path that begins like one of these."""
        return kind_of(self.address) != "honest" or self.path.startswith(traps)


def read_log(path: Path) -> Iterator[ServedRequest]:
    """Yield the requests of a log; its last line may be half written."""
    text = path.read_text() if path.exists() else ""
    for line in text[: text.rfind("\n") + 1].splitlines():
        moment, address, page = line.split(" ", 2)
        yield ServedRequest(float(moment), address, page)


class LogReading(NamedTuple):
    """The reading of the logs of a run."""

    honest: int
    """honest pages that were asked for"""
    seconds: float
    """from the first request to the first for the last of them, but those of a host with traps"""
    trapped: float
    """the same for the host with traps: these cost it its own turns, the others nothing"""
    share: float
    """of the requests until then, robots.txt included, that went to the hostile"""
    later: float
    """the same of the whole run"""
    requests: int


def judge(
    requests: list[ServedRequest],
    wanted: set[tuple[str, str]],
    trapped: str = "",
    traps: tuple[str, ...] = TRAPS,
) -> LogReading:
    """Judge the requests of all servers together. trapped: address of the host with traps, at such paths."""
    requests.sort()
    first: dict[tuple[str, str], float] = {}
    for moment, address, path in requests:
        if (address, path) in wanted:
            first.setdefault((address, path), moment)
    began = requests[0].moment if requests else 0.0
    last = requests[-1].moment if requests else 0.0
    missing = {address for address, path in wanted - set(first)}
    inside = [moment for (address, _), moment in first.items() if address == trapped]
    outside = [moment for (address, _), moment in first.items() if address != trapped] or inside
    ended = last if missing - {trapped} else max(outside, default=began)
    late = last if trapped in missing else max(inside, default=began)
    before = [request for request in requests if request.moment <= ended]
    return LogReading(
        len(first), ended - began, late - began, _share(before, traps), _share(requests, traps), len(requests)
    )


def _share(requests: list[ServedRequest], traps: tuple[str, ...]) -> float:
    return sum(request.is_hostile(traps) for request in requests) / max(1, len(requests))
