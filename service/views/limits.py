"""Tells what limits the speed of a crawl at this moment, and what is wrong with it, from the fields of its status.

`xyro status` prints it first, and the dashboard shows it on top. Each finding has a kind, one of

    speed      stopped, starting, bounds, disk, cpu, connections, politeness, left-alone, bandwidth, queue, sites
    wrong      node, disk, contents, clock, sink, reader, proxy, name-server, certificate, challenged, paused, blocked,
               failing, failures, trap, farm, bandwidth

and a sentence that says what to do where something can be done. Nothing is computed here but what the fields say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from xyro.wire.sizes import sized
from xyro.wire.text import counted

LEAST_DISK = 1 << 30
"""bytes: below, a full disk is near; it ends a crawl in order, and the next start goes on"""
LONG_DELIVERY = 60.0
"""seconds after which a sink is told that has not taken a delivery yet: a webhook or a command has failed by then"""
LONG_COMMIT = 10.0
"""seconds that a commit group waits for the disk: it takes milliseconds"""
BUSY = 0.9
"""share of a core, or of the connections, from which on they are what limits"""
BEGINS = 3.0
"""seconds in which a crawl has not found its speed yet"""
TOO_FEW, GAINED = 1.5, 0.05
"""more bandwidth is proposed where so many times as much gains so much freshness"""
FEW = 3
MOSTLY = 0.5
"""share of failures from which on the reads of ten minutes are told to fail"""
Found = dict[str, str]
Status = Mapping[str, Any]


def limits(status: Status) -> dict[str, Any]:
    """{"speed": {"kind", "text"}, "wrong": [{"kind", "text"}, ...]}, of a running or stopped crawl."""
    wrong = [{"kind": kind, "text": text} for kind, text in _wrong(status)]
    kind, text = _speed(status)
    if status.get("missing"):
        text = f"Of the others: {text}"
    return {"speed": {"kind": kind, "text": text}, "wrong": wrong}


# -- speed -------------------------------------------------------------------------------------------------------------


def _speed(status: Status) -> tuple[str, str]:
    if not status.get("running"):
        return "stopped", "Nothing runs; `xyro serve` resumes the crawl."
    if status["seconds"] < BEGINS:
        return "starting", "It has just started."
    work, queued, reading = status.get("work", {}), sum(status["queue"].values()), status["in_flight"]
    share, connections = work.get("cpu", 0.0), work.get("connections", 1 << 30)
    if not reading and (reached := _reached_bound(status)):
        return "bounds", f"A bound of the last `xyro crawl --join` is reached ({reached}): {_UNBOUND}."
    if (contents := status.get("contents", {})).get("reads_wait"):
        return (
            "contents",
            f'Reads wait until their contents can be stored ([keep] full = "wait"): {contents["paused"]}.',
        )
    if work.get("full"):
        return "disk", "Reads wait until what was read is parsed and written: the disk, or one core, is at its limit."
    if share >= BUSY and queued:
        return "cpu", f"The processor: {share:.0%} of a core is used; `--readers auto` reads and decodes on others."
    if reading >= BUSY * connections:
        return "connections", f"All {connections:,} connections are in use ([fetch] concurrency)."
    if queued and not reading and queued == work.get("paused_orders"):
        return (
            "paused",
            f"Nothing is read: all that waits ({counted(queued, 'order')}) is of hosts that somebody has paused.",
        )
    if queued:
        orders = f"{counted(queued, 'order')} waiting for the delays of hosts"
        return "politeness", f"Politeness: {orders}; {reading:,} being read."
    if reading:
        return "sites", f"The sites: {counted(reading, 'read')} under way, no other page may be read at this moment."
    return _idle(status)


_UNBOUND = "nothing more is read until the next one, or until `xyro cluster unbound`"


def _reached_bound(status: Status) -> str:
    """The bound of a crawl of the cluster (plugins/bounded) that its nodes have reached; "": none."""
    bounds, counts = status.get("bounded_crawl"), status.get("bounded_reads", {})
    if not bounds:
        return ""
    if counts["out_of_time"]:
        return "its time is over"
    if bounds["pages"] and (counts["out_of_reads"] or counts["charged"] >= bounds["pages"]):
        return f"its {counted(bounds['pages'], 'read')}"
    return ""


def _idle(status: Status) -> tuple[str, str]:
    """Why the queue is empty and nothing is being read."""
    unread = status["states"].get("unread", 0)
    if unread:
        return "left-alone", f"The queue is empty: {counted(unread, 'unread page')} on hosts that are left alone."
    if (bounds := status.get("bounded_crawl")) and not bounds["refresh"]:
        return "bounds", f"The last `xyro crawl --join` is complete: {_UNBOUND}."
    bandwidth = status.get("bandwidth", {})
    if bandwidth.get("set"):
        return "bandwidth", f"The bandwidth: [refresh] bandwidth {bandwidth['set']} paces all reads; nothing is unread."
    if failed := status["states"].get("error", 0) * (not status["states"].get("read", 0)):
        return "queue", f"The queue is empty: {counted(failed, 'page')} failed, and no other is known."
    if status["reads"]:
        rules = status.get("bounded_by", {}).get("refresh")
        bounds = f" ({rules})" if rules else ""
        return (
            "queue",
            f"The queue is empty: nothing is unread, and no page is due again yet{bounds}.",
        )
    return "queue", "The queue is empty: no URL is known that may be read; `xyro submit URL` hands it some."


# -- what is wrong -----------------------------------------------------------------------------------------------------


def _wrong(status: Status) -> Iterator[tuple[str, str]]:
    for text in status.get("missing", []):
        yield "node", f"A node of the cluster does not answer: {text}."
    if "troubled_nodes" in status:
        yield from ((row["kind"], f"Node {row['node']}: {row['text']}") for row in status["troubled_nodes"])
    else:
        yield from _of_this_machine(status)
        yield from _of_sinks(status)
    yield from _of_errors(status)
    yield from _of_hosts(status)
    yield from _of_plans(status)


def _of_this_machine(status: Status) -> Iterator[tuple[str, str]]:
    work = status.get("work", {})
    free = work.get("disk_free")
    if free is not None and free < LEAST_DISK:
        yield "disk", f"The disk is nearly full: {free >> 20:,} MiB are left; free some, a full disk ends the crawl."
    if work.get("commit_waits", 0.0) > LONG_COMMIT:
        yield "disk", f"The disk hangs: a commit group has waited for it for {work['commit_waits']:.0f} s."
    yield from _of_contents(status.get("contents", {}))
    if step := work.get("clock_step"):
        moved = f"{'forward' if step > 0 else 'back'} by {abs(step):,.0f} s"
        yield "clock", f"This machine's clock was set {moved}: dates of reads are off by as much; let NTP keep it."
    recent = status.get("recent_errors", {})
    lost, ended = recent.get("reader-lost", 0) + recent.get("poison", 0), work.get("readers_lost", 0)
    if lost or ended:
        times = f"{counted(ended, 'time')}, " if ended else ""
        yield "reader", f"Reader processes ended: {times}{counted(lost, 'read')} lost in ten minutes; the log says why."

    if (slow := work.get("slow_lookups")) and not any(recent.get(name) for name in _ERRORS["name-server"][0]):
        took = f"{counted(slow, 'look-up')} of the last ten minutes took 2 s or more"
        yield "name-server", f"Name servers are slow: {took}; see [fetch] name_servers."
    for proxy, row in work.get("proxies", {}).items():
        pages = f"{counted(row['failures'], 'read')} failed; once it answers, they follow within five minutes"
        yield "proxy", f"The proxy {proxy} fails ({row['error']}): {pages}."


def _of_contents(contents: Status) -> Iterator[tuple[str, str]]:
    if paused := contents.get("paused"):
        yield "contents", f"Contents are not stored now ([keep]): {paused}."
    if failure := contents.get("failure"):
        yield "contents", f"The index of contents cannot be read: {failure}."
    if surplus := contents.get("surplus"):
        text = f"Contents take {sized(surplus)} more than [keep] bytes: files being written and the index stay"
        yield "contents", f"{text}; raise it."


def _of_sinks(status: Status) -> Iterator[tuple[str, str]]:
    for name, sink in status.get("sinks", {}).items():
        if sink.get("failures"):
            dropped = f", {sink['dropped']:,} dropped" if sink["dropped"] else ""
            row = (
                f"{counted(sink['failures'], 'failure')} in a row, {counted(sink['behind'], 'change')} behind{dropped}"
            )
            yield "sink", f"Sink {name} takes nothing ({sink['error']}): {row}."
        elif (sink.get("delivers_s") or 0.0) > LONG_DELIVERY:
            since = f"for {sink['delivers_s']:.0f} s"
            yield (
                "sink",
                f"Sink {name} has not answered a delivery {since}: {counted(sink['behind'], 'change')} behind.",
            )
        elif sink.get("error"):
            yield "sink", f"Sink {name} refused changes ({sink['error']}): {counted(sink['dead'], 'dead letter')}."


_ERRORS = {
    "name-server": (
        ("dns-timeout", "dns-servfail"),
        "Name servers are slow or fail: {count} in ten minutes{example}; see [fetch] name_servers.",
    ),
    "certificate": (("tls",), "Certificates cannot be verified (expired, or of another name): {count}{example}."),
}


_ORDINARY = (
    *("http-404", "http-410", "robots-disallowed", "content-signal", "not-readable", "soft-404", "too-large"),
    *("ratio-too-large", "truncated"),
)
"""failures of single pages, of which any web has some"""


def _of_errors(status: Status) -> Iterator[tuple[str, str]]:
    recent, pages = status.get("recent_errors", {}), status.get("failed_pages", {})
    for kind, (classes, text) in _ERRORS.items():
        if count := sum(recent.get(name, 0) for name in classes):
            page = next((pages[name] for name in classes if name in pages), "")
            yield kind, text.format(count=counted(count, "failure"), example=f", such as {page}" if page else "")
    failed = {name: count for name, count in recent.items() if name not in (*_ORDINARY, "proxy-failed")}
    unanswered = sum(count for name, count in failed.items() if not name.startswith("http-"))
    tried = status.get("recent_reads", 0) + unanswered
    if tried and sum(failed.values()) >= MOSTLY * tried:
        name = max(failed, key=lambda each: failed[each])
        where = f", such as {pages[name]}" if name in pages else ""
        yield "failures", f"Most reads of the last ten minutes failed: {name} {failed[name]:,} times{where}."


_HOSTS = {
    "challenged": "show a challenge in place of their pages",
    "paused": "somebody has paused",
    "blocked": "somebody has blocked",
    "failing": "fail again and again",
}


def _of_hosts(status: Status) -> Iterator[tuple[str, str]]:
    troubled = status.get("troubled_hosts", [])
    for kind, text in _HOSTS.items():
        rows = [row for row in troubled if row["kind"] == kind]
        if not rows:
            continue
        named = ", ".join(_host(row) for row in rows[:FEW])
        more = " and others" if len(rows) > FEW else ""
        yield kind, f"Hosts that {text}: {named}{more}."


def _host(row: Mapping[str, Any]) -> str:
    failures = f"{row['detail']} failures" if row["kind"] == "failing" else row["detail"]
    notes = [failures, f"{counted(row['unread'], 'unread page')}", f"until {row['until']}" if row["until"] else ""]
    return f"{row['host']} ({', '.join(filter(None, notes))})"


def _of_plans(status: Status) -> Iterator[tuple[str, str]]:
    breeding = status.get("breeding", {})
    if breeding.get("unread"):
        pages = f"{counted(breeding['unread'], 'unread page')} of patterns that breed, or show one page over and over"
        where = f"such as on {breeding['host']}"
        share = "2 % of the reads, or what nothing else needs"
        yield "trap", f"A trap: {pages}, {where}; they get {share}; [crawl] exclude stops them."
    if waiting := status.get("waiting_links", 0):
        yield (
            "farm",
            f"{counted(waiting, 'link')} waiting: their hosts may not have more unread pages yet (`xyro hosts`).",
        )
    bandwidth = status.get("bandwidth", {})
    if (proposed := bandwidth.get("proposed")) and proposed > TOO_FEW * bandwidth["reads_per_day"]:
        fresh, better = bandwidth["freshness"], bandwidth["freshness_proposed"]
        if better - fresh > GAINED:
            small = f"The bandwidth is small: {bandwidth['set']} keeps {fresh:.0%} fresh"
            yield "bandwidth", f"{small}, {proposed:,.0f} reads a day would keep {better:.0%} (`xyro plan`)."


def limit_lines(found: Mapping[str, Any]) -> list[str]:
    """The findings as lines for people: the nodes that are away, of which nothing else is known; what limits; what is
    wrong."""
    away = [f"! {row['text']}" for row in found["wrong"] if row["kind"] == "node"]
    wrong = [f"! {row['text']}" for row in found["wrong"] if row["kind"] != "node"]
    return [*away, found["speed"]["text"], *wrong]
