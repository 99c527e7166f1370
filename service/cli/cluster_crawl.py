"""`xyro crawl --join`: a bounded crawl that the nodes of a cluster do; this process begins it and waits for its end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from xyro.service.cli.crawl_place import CrawlPlace
from xyro.service.cli.daemon_commands import submitted
from xyro.service.cli.options import tell, tell_refused
from xyro.wire.errors import MachineError, XyroError

if TYPE_CHECKING:
    from xyro.plugins.bounded.run_end import Round
    from xyro.service.cluster.cluster_remote import ClusterRemote
    from xyro.service.node.run_file import Remote
    from xyro.wire.clock import SystemClock

TICK = 0.5
"""seconds between two rounds of counts"""
LINE_SECONDS = 10.0
"""seconds between two lines"""
AWAY = 20.0
"""seconds after the time of a run for which nodes that do not answer are waited for"""
SEEDS_LOOKED_AT = 1_000
FRUITLESS = 4
"""exit code of a crawl whose seeds were all tried, and none gave a page"""
FAILED = ("error", "failed", "dead", "disallowed")


def crawl_cluster(
    place: CrawlPlace, seeds: Sequence[str], chosen: Mapping[str, Any]
) -> tuple[dict[str, Any], list[dict[str, Any]], int]:
    """Begin, and wait for the end. -> closing report, the most important pages, exit code"""
    from xyro.wire.clock import SystemClock

    remote, clock = place.daemon(), SystemClock()
    run, pages = int(clock.time() * 1000), chosen["max_pages"] or 0
    bounds = {"pages": pages, "seconds": chosen["max_seconds"] or 0, "refresh": bool(chosen["refresh"])}
    began, before = clock.monotonic(), remote.get("/status")
    begin_run(remote, run=run, **bounds)
    handed = list(submitted(remote, seeds))
    refused = [each for batch in handed for each in (*batch.refused, *batch.absent)]
    accepted = [url for batch in handed for url in batch.urls if url not in dict(refused)]
    tell_refused(refused, "not read")
    reason, last = _wait(remote, run, pages, clock)
    away = {*last.missing}
    failed = failed_seeds(remote, [url for url in accepted if _partition(remote, url) not in away])
    report = (
        last.sums()
        | _since(before, remote.get("/status"))
        | {
            "seconds": round(clock.monotonic() - began, 3),
            "ended": reason,
            "seeds": len(accepted) + len(refused),
            "failed_seeds": failed,
            "missing": absences(remote, last.missing),
        }
    )
    for absence in report["missing"]:
        tell(absence, err=True)
    best = [] if last.missing else remote.get("/top", n=10, by="read")
    fruitless = FRUITLESS if accepted and len(failed) == len(accepted) else 0
    return report, best, 3 if last.missing else 1 if refused else fruitless


def _since(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """The fields of a closing report that two statuses give, of the nodes that answered. What nodes count since they
    started is what they counted meanwhile; less, where one was started anew."""
    cut_short = {
        kind: more for kind, count in now["cut_short"].items() if (more := count - before["cut_short"].get(kind, 0)) > 0
    }
    return {
        "out_of_scope": now["states"]["out-of-scope"],
        "unread": now["states"]["unread"],
        "cut_short": cut_short,
        "textless": max(now["textless"] - before["textless"], 0),
    }


def _partition(remote: Remote | ClusterRemote, url: str) -> int:
    """The partition of a URL as a person wrote it; -1: of a node that is asked by its directory."""
    from xyro.service.cluster.cluster_remote import ClusterRemote
    from xyro.wire.urls import canonical, host_of, partition_of

    if not isinstance(remote, ClusterRemote):
        return -1
    return partition_of(host_of(canonical(url)), remote.placement.partitions)


def begin_run(remote: Remote | ClusterRemote, **bounds: Any) -> None:
    """Let all partitions have the bounds on disk. MachineError: some did not answer."""
    missing = remote.post("/bounds", bounds)["missing"]
    if missing:
        others = "have the bounds (`xyro cluster unbound` lifts them)" if bounds["run"] else "read on, without bounds"
        raise MachineError(f"{'; '.join(absences(remote, missing))}: the others {others}; start it, and try again")


def absences(remote: Remote | ClusterRemote, missing: Sequence[int]) -> list[str]:
    """A sentence for each node whose partitions did not answer."""
    from xyro.service.cluster.cluster_remote import ClusterRemote
    from xyro.service.cluster.gathering import listed

    if not isinstance(remote, ClusterRemote) or not missing:
        return [f"partitions {listed(missing)} did not answer"] if missing else []
    owners = remote.placement.owners
    nodes = sorted({owners[q].node for q in missing})
    return [f"partitions {listed(q for q in missing if owners[q].node == n)} of node {n} did not answer" for n in nodes]


def _wait(remote: Remote | ClusterRemote, run: int, pages: int, clock: SystemClock) -> tuple[str, Round]:
    """Ask for counts until they say that the run is over: why, and the last ones. Ctrl-C ends it."""
    import msgspec

    from xyro.plugins.bounded.run_end import Round, run_end

    stop, before, reason = threading.Event(), None, ""
    handlers = {each: signal.signal(each, lambda *_: stop.set()) for each in (signal.SIGINT, signal.SIGTERM)}
    stopping, shown_at, over_at = False, clock.monotonic(), 0.0
    found = Round({}, [])
    try:
        while not reason:
            if stop.wait(TICK) and not stopping:
                stopping = True
                for number, handler in handlers.items():
                    signal.signal(number, handler)  # a second one ends this process
                remote.post("/bounds", {"run": run, "stop": True})
                stop.clear()
            try:
                found = msgspec.convert(remote.get("/bounds"), Round, strict=False)
            except XyroError as error:  # the node that was asked died, or the broker is away: others answer
                before = None
                tell(f"{error}; waiting", err=True)
                continue
            reason, before = run_end(before, found, run, pages), found
            now = clock.monotonic()
            over_at = over_at or (now if found.over else 0.0)
            if found.over and found.missing and now > over_at + AWAY:
                reason = "max-seconds"
            if now > shown_at + LINE_SECONDS:
                shown_at = now
                away = "".join(f"; {each}" for each in absences(remote, found.missing))
                tell(f"{found.reads:,} read  {found.pages:,} known{away}", err=True)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return "stopped" if stopping else reason, found


def failed_seeds(remote: Remote | ClusterRemote, seeds: Sequence[str]) -> list[dict[str, str]]:
    """The seeds that were tried and gave no page, each with the class of its failure."""
    rows = (remote.get("/why", url=url) for url in seeds[:SEEDS_LOOKED_AT])
    return [{"url": row["url"], "error": row.get("error") or row["state"]} for row in rows if row["state"] in FAILED]
