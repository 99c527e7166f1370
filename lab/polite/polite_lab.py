"""`xyro lab politeness`: hundreds of names on few addresses, a crawl that is killed again and again, and the log.

A request comes too early if it comes before the one before it of its host, or of its address, has ended, or sooner
after that than it should:

    of a host      the least delay, 5 x the duration of the last read, Crawl-delay once the rules were shown,
                   Retry-After, and after a failure the back-off
    of an address  its floor

A page that is asked for before any robots.txt of its host was answered, or that this forbids, is one too many. What is
sent to a hub is a request like any other.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from xyro.lab.child import Running, environment, running
from xyro.lab.polite.polite_server import ServedExchange
from xyro.lab.polite.polite_sites import HUB, OWN, PAGES, crawl_delay
from xyro.lab.zoo.name_server import NAMES
from xyro.wire.clock import SystemClock
from xyro.wire.errors import MachineError, XyroError

LEAST, FACTOR, FLOOR, BACK_OFF = 0.3, 5.0, 0.1, 4.0
SETTINGS = """\
[crawl]
scope = "any"
[fetch]
name_servers = ["{names}:{port}"]
[politeness]
min_delay = {least}
factor = {factor}
ip_delay = {floor}
[publish]
listen = "127.0.0.1:0"
websub = true
callback = "http://127.0.0.1:9"
"""
SLACK = 0.001
"""seconds by which two clocks' roundings differ"""
PATIENCE = 600.0
LIFE = (1.0, 4.0)
"""seconds after which a process is killed"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 no request came too early, 1 one did, 2 bad input, 3 the machine failed."""
    parser = argparse.ArgumentParser(prog="xyro lab politeness", description="Politeness by the server's own log.")
    parser.add_argument("--names", type=int, default=500, help="hosts [500]")
    parser.add_argument("--addresses", type=int, default=40, help="on which they live [40]")
    parser.add_argument("--kills", type=int, default=25, help="of the crawl, by SIGKILL [25]")
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the kills [1]")
    options = parser.parse_args(arguments)
    try:
        exchanges = crawled(options.names, options.addresses, options.kills, options.seed)
    except XyroError as error:
        sys.stderr.write(f"xyro lab politeness: {error}\n")
        return 3 if isinstance(error, MachineError) else 2
    early = violations(exchanges)
    pages = {(each.host, each.path) for each in exchanges if each.status == 200 and each.path in ("/", *OWN)}
    hubs, cut = sum(each.path == HUB for each in exchanges), sum(each.cut for each in exchanges)
    sys.stdout.write(
        f"{len(exchanges):,} requests, {hubs:,} of them to hubs, {options.kills} kills, {cut} reads cut off, "
        f"{len(pages):,} of {options.names * PAGES:,} pages; violations: {len(early)}\n"
    )
    for line, number in Counter(kind for kind, _ in early).items():
        sys.stdout.write(f"  {number} {line}, such as {next(text for kind, text in early if kind == line)}\n")
    return 1 if early or len(pages) < options.names * PAGES else 0


def crawled(names: int, addresses: int, kills: int, seed: int) -> list[ServedExchange]:
    """Crawl all hosts, killing the crawl so often; the log."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="xyro-polite-") as folder:
        log = Path(folder, "log")
        with running("xyro.lab.polite.polite_server", log=log, names=names, addresses=addresses) as web:
            settings = Path(folder, "xyro.toml")
            figures = {"least": LEAST, "factor": FACTOR, "floor": FLOOR}
            settings.write_text(SETTINGS.format(names=NAMES, port=web.port + 1, **figures))
            for life in range(kills + 1):
                _live(web, Path(folder, "data"), settings, chance.uniform(*LIFE) if life < kills else 0.0)
        return read_log(log)


def _live(web: Running, data: Path, settings: Path, seconds: float) -> None:
    """One process, killed so long after it has begun to work; 0: it ends by itself."""
    entry = [] if (data / "crawl.toml").exists() else [web.entry]
    options = ["--data", str(data), "--config", str(settings), "--only-net", "127.0.0.0/8"]
    child = subprocess.Popen(  # noqa: S603  # our own interpreter, our own module
        [sys.executable, "-m", "xyro", "crawl", *entry, *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment() | {"XYRO_LOG__LEVEL": "error"},
    )
    try:
        if seconds:
            clock = SystemClock()
            started = clock.monotonic()
            while child.poll() is None and not (data / "run").exists():
                if clock.monotonic() - started > PATIENCE:
                    raise MachineError("the crawl did not begin")
                _pass(child, 0.02)
            _pass(child, seconds)
            child.send_signal(signal.SIGKILL)
            child.wait()
            (data / "run").unlink(missing_ok=True)
        elif child.wait(PATIENCE):
            raise MachineError(
                f"the crawl ended with {child.returncode}: {child.stderr and child.stderr.read()[-500:]!r}"
            )
    except subprocess.TimeoutExpired as error:
        raise MachineError(f"the crawl did not end within {PATIENCE:.0f} s") from error
    finally:
        child.kill()
        child.wait()
        if child.stderr is not None:
            child.stderr.close()


def _pass(child: subprocess.Popen[bytes], seconds: float) -> None:
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        return


def read_log(log: Path) -> list[ServedExchange]:
    """The requests of a log, in the order they came."""
    return sorted(msgspec.json.decode(line, type=ServedExchange) for line in log.read_text().splitlines())


def violations(exchanges: Iterable[ServedExchange]) -> list[tuple[str, str]]:
    """(kind, which) of each request that came too early, or should not have come."""
    found: list[tuple[str, str]] = []
    last: dict[int | str, tuple[ServedExchange, float]] = {}
    rules: dict[int, float] = {}
    failures: Counter[int] = Counter()
    for each in exchanges:
        for shared, kind in ((each.host, "host"), (each.address, "address")):
            if shared in last:
                before, gap = last[shared]
                if each.began < before.ended + gap - SLACK:
                    waited = each.began - before.ended
                    text = (
                        f"{before.host}{before.path}, then {each.host}{each.path} {waited:.3f} s after, not {gap:.3f}"
                    )
                    found.append((f"too early for its {kind}", text))
        if not each.path.startswith("/robots"):
            if each.began < rules.get(each.host, each.began + 1.0):
                found.append(("before robots.txt", f"{each.host}{each.path}"))
            if each.path.startswith("/private"):
                found.append(("forbidden", f"{each.host}{each.path}"))
        if each.rules_of >= 0 and not each.cut:
            rules.setdefault(each.rules_of, each.ended)
        failed = each.status in (429, 503)  # one that hangs up may have closed an idle connection: no failure of it
        failures[each.host] = failures[each.host] + 1 if failed and not each.cut else 0
        last[each.host] = each, _gap(each, rules, failures[each.host])
        last[each.address] = each, FLOOR
    return found


def _gap(last: ServedExchange, rules: dict[int, float], failures: int) -> float:
    """Seconds that a host is to be left alone after this."""
    delay = crawl_delay(last.host) if last.ended >= rules.get(last.host, last.ended + 1.0) else 0.0
    own = 0.0 if last.cut else FACTOR * (last.ended - last.began)
    back_off = BACK_OFF * 2.0 ** (failures - 1) if failures else 0.0
    return max(LEAST, delay, own, last.retry_after, back_off)
