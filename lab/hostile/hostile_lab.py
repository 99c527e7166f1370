"""`xyro lab hostile`: what hostile hosts cost the honest ones, by the servers' logs.

Each row crawls the honest hosts alone, then beside the hostile ones, `--times` in turn; what is shown are the medians.
The delay between two reads of a host is such that 100 honest pages a second can be read, however many hosts there are:
what is measured is who gets the slots, not how fast this machine is. Where a row keeps the processor busy (the zoo) it
is that, too: `--pace 25` leaves a slow machine room.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from xyro.lab.child import environment, running
from xyro.lab.hostile.hostile_rows import ROWS, Hostile, RowGoal, TableRow
from xyro.lab.hostile.hostile_sites import HonestSites, traps_of
from xyro.lab.hostile.request_log import LogReading, judge, read_log
from xyro.lab.speed.measures import memory_of
from xyro.lab.web.places import address_of
from xyro.lab.zoo.name_server import NAMES
from xyro.service.node.run_file import Remote
from xyro.wire.clock import SystemClock
from xyro.wire.errors import InputError, MachineError, XyroError

LONGEST = 8.0
"""times the honest crawl's own duration after which it is not waited for any more"""
LEAST_LONGEST = 60.0
LOOK = 0.5
PROBE = 0.05
"""seconds between two questions to the crawl's interface"""
STOP = 30.0


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """A crawl beside some hostile hosts, or none."""

    reading: LogReading
    wanted: int
    """honest pages"""
    peak: float
    """MB"""
    lag: float
    """longest time in which the interface did not answer, seconds"""
    cpu: float
    """seconds of processor"""
    holds: bool
    """the audit of the directory held"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 every goal is met, 1 one is not, 2 bad input, 3 the machine failed."""
    parser = argparse.ArgumentParser(prog="xyro lab hostile", description="Hostile hosts: does an honest one starve?")
    parser.add_argument("--rows", default="", help=f"by comma [all]: {', '.join(row.name for row in ROWS)}")
    parser.add_argument("--hosts", default="20", help="numbers of honest hosts, by comma [20]")
    parser.add_argument("--part", type=float, default=1.0, help="of the honest pages and of the seconds [1]")
    parser.add_argument("--partitions", type=int, default=1, help="of the crawl [1]")
    parser.add_argument("--times", type=int, default=1, help="alone and beside the hostile ones, in turn [1]")
    parser.add_argument("--pace", type=float, default=100.0, help="honest pages a second that may be read [100]")
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each row")
    options = parser.parse_args(arguments)
    try:
        rows = [row for row in ROWS if not options.rows or row.name in options.rows.split(",")]
        if not rows:
            raise InputError(f"--rows {options.rows}: {', '.join(row.name for row in ROWS)}")
        tables = [asyncio.run(_table(rows, int(hosts), options)) for hosts in options.hosts.split(",")]
        return 0 if all(tables) else 1
    except XyroError as error:
        sys.stderr.write(f"xyro lab hostile: {error}\n")
        return 3 if isinstance(error, MachineError) else 2


async def _table(rows: list[TableRow], hosts: int, options: argparse.Namespace) -> bool:
    """Measure the rows with so many honest hosts; True: every goal is met."""
    quiet: dict[tuple[int, bool], MeasuredRun] = {}
    good = True
    for row in rows:
        pages, doors = max(hosts, int(row.pages * options.part)), row.hostile.trapped
        without = TableRow("alone", Hostile(doors=doors), RowGoal())
        if row.goal.time or (pages, doors) not in quiet:
            alone, beside = [], []
            for _ in range(options.times):
                alone.append(await crawl(hosts, pages, without, options.partitions, pace=options.pace))
                beside.append(await _beside(row, hosts, pages, options, alone[-1]))
            quiet[pages, doors] = typical(alone)
            _show("alone", hosts, typical(alone), "", options.json)
        else:
            beside = [await _beside(row, hosts, pages, options, quiet[pages, doors]) for _ in range(options.times)]
        run = typical(beside)
        missed = shortfalls(row.goal, run, quiet[pages, doors])
        good = good and not missed
        _show(row.name, hosts, run, "; ".join(missed) or "ok", options.json)
    return good


async def _beside(
    row: TableRow, hosts: int, pages: int, options: argparse.Namespace, alone: MeasuredRun
) -> MeasuredRun:
    seconds = alone.reading.seconds
    return await crawl(hosts, pages, row, options.partitions, options.part, seconds, options.pace)


def typical(runs: Sequence[MeasuredRun]) -> MeasuredRun:
    """The run of median duration; what the worst of them lost is lost."""
    middle = sorted(runs, key=lambda run: run.reading.seconds)[len(runs) // 2]
    fewest = min(run.reading.honest for run in runs)
    return replace(middle, reading=middle.reading._replace(honest=fewest), holds=all(run.holds for run in runs))


def shortfalls(goal: RowGoal, run: MeasuredRun, alone: MeasuredRun) -> list[str]:
    """Tell which bounds a run did not keep."""
    reading, missed = run.reading, []
    if reading.honest < run.wanted:
        missed.append(f"{reading.honest} of {run.wanted} honest pages")
    if not run.holds:
        missed.append("the audit does not hold")
    figures = (
        ("times as long", reading.seconds / max(alone.reading.seconds, 1e-9), goal.time),
        ("of the requests until then", reading.share, goal.share),
        ("of all requests", reading.later, goal.later),
        ("MB more", run.peak - alone.peak, goal.memory),
        ("s without an answer", run.lag, goal.lag),
    )
    return missed + [
        f"{figure:.3g} {what} (<= {bound:.3g})" for what, figure, bound in figures if bound and figure > bound
    ]


def _show(name: str, hosts: int, run: MeasuredRun, verdict: str, as_json: bool) -> None:
    if as_json:
        line = json.dumps({"row": name, "hosts": hosts, **asdict(run), **run.reading._asdict(), "verdict": verdict})
    else:
        reading = run.reading
        line = (
            f"{name:14}{hosts:4} hosts {reading.honest:5}/{run.wanted:5} pages {reading.seconds:6.1f} s "
            f"{f'(trapped {reading.trapped:5.1f} s) ' if reading.trapped else ''} hostile "
            f"{reading.share:6.1%} then {reading.later:6.1%} of {reading.requests:6}  {run.peak:5.0f} MB  "
            f"lag {run.lag:5.2f} s  CPU {run.cpu:5.1f} s  {verdict}"
        )
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def crawl(
    hosts: int,
    pages: int,
    row: TableRow,
    partitions: int = 1,
    part: float = 1.0,
    seconds_alone: float = 0.0,
    pace: float = 100.0,
) -> MeasuredRun:
    """Crawl the honest hosts beside the hostile ones of a row, until all honest pages were asked for."""
    hostile = json.dumps(row.hostile.dump())
    with contextlib.ExitStack() as stack:
        name = stack.enter_context(tempfile.TemporaryDirectory(prefix="xyro-hostile-"))
        logs = [Path(name, "honest.log"), Path(name, "hostile.log"), Path(name, "zoo.log")]
        honest: dict[str, object] = {"log": logs[0], "hostile": hostile, "hosts": hosts, "pages": pages}
        words = ["--delay", str(hosts / pace), "--partitions", str(partitions)]
        if row.hostile.zoo:
            honest["zoo"] = Path(name, "zoo.json")
            zoo = stack.enter_context(running("xyro.lab.zoo.zoo_server", log=logs[2], table=honest["zoo"]))
            words += ["--config", _with_names(Path(name, "settings.toml"), zoo.port)]
        others = {"log": logs[1], "hostile": hostile}
        with running("xyro.lab.hostile.loopback_server", **others) as server:
            honest["hostile_port"] = server.port
            with running("xyro.lab.hostile.loopback_server", **honest) as web:
                wanted = HonestSites(hosts, pages, row.hostile, web.port, server.port).paths()
                bounds = (row.seconds * part, max(LEAST_LONGEST, LONGEST * seconds_alone))
                cost = await _crawl(web.entry, Path(name, "data"), row, words, bounds, logs[0], wanted)
        trapped = address_of(0) if row.hostile.trapped or row.hostile.doors else ""
        requests = [request for log in logs for request in read_log(log)]
        reading = judge(requests, wanted, trapped, traps_of(row.hostile))
        holds = await _audited(Path(name, "data"))
    return MeasuredRun(reading, len(wanted), *cost, holds)


def _with_names(settings: Path, port: int) -> str:
    """Write settings with the zoo's name server; return their place."""
    settings.write_text(f'[fetch]\nname_servers = ["{NAMES}:{port}"]\n')
    return str(settings)


async def _crawl(
    entry: str,
    data: Path,
    row: TableRow,
    words: Sequence[str],
    bounds: tuple[float, float],
    log: Path,
    wanted: set[tuple[str, str]],
) -> tuple[float, float, float]:
    """Run the crawl; its peak of memory in MB, the longest time in which it did not answer, its seconds of processor.

    words: of its command line. bounds: seconds that it runs at least, and at most while honest pages are missing.
    """
    clock = SystemClock()
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "xyro", "crawl", entry, "--data", str(data), "--scope", "any", *words),
        *("--only-net", "127.0.0.0/8", *(["--refresh"] if row.refresh else [])),
        *("--max-seconds", str(int(sum(bounds)) + 60)),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env=environment(),
    )
    began, lags, peak, cpu = clock.monotonic(), [0.0], 0.0, 0.0
    probe = asyncio.create_task(_probe(data, lags))
    try:
        while child.returncode is None:
            await asyncio.sleep(LOOK)
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
                peak, cpu = max(peak, memory_of(child.pid).peak / 1e6), _processor_of(child.pid)
            passed = clock.monotonic() - began
            complete = wanted <= {(request.address, request.path) for request in read_log(log)}
            if passed > bounds[1] + bounds[0] or (complete and passed > bounds[0]):
                break
    finally:
        probe.cancel()
        await asyncio.gather(probe, return_exceptions=True)
        if child.returncode is None:
            child.send_signal(signal.SIGINT)
            try:
                await asyncio.wait_for(child.wait(), STOP)
            except TimeoutError:
                child.kill()
                await child.wait()
    return peak, max(lags), cpu


def _processor_of(pid: int) -> float:
    """Seconds of processor of a process, and of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


async def _audited(data: Path) -> bool:
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "xyro", "audit", "--data", str(data)),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env=environment(),
    )
    return await child.wait() == 0


async def _probe(data: Path, lags: list[float]) -> None:
    """Ask the crawl's interface all the time; note how long each answer took."""
    clock = SystemClock()
    remote = None
    while remote is None:
        await asyncio.sleep(LOOK)
        remote = await asyncio.to_thread(Remote.find, data)
    reader, writer = await asyncio.open_connection(remote.host, remote.port)
    try:
        while True:
            before = clock.monotonic()
            writer.write(f"GET /health HTTP/1.1\r\nHost: {remote.host}:{remote.port}\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]))
            lags.append(clock.monotonic() - before)
            await asyncio.sleep(PROBE)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass  # it has ended
    finally:
        writer.close()
