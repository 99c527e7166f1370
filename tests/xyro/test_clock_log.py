"""The log of clocks: what a process that was killed at any moment leaves to the next one."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from xyro.clock_log import MOST_BYTES, ClockLog
from xyro.politeness import Manners, Politeness
from xyro.wire.clock import ManualClock

EPOCH = 1_700_000_000.0
MANNERS = Manners(min_delay=2.0, factor=5.0, factor_cap=30.0, ip_delay=0.5, net_delay=40.0)


class Machine:
    """A data directory on which one process after the other works, each of them killed: nothing is ever closed."""

    def __init__(self, directory: Path, pause: float = 2.0) -> None:
        self.path = directory / "clocks"
        self.clock = ManualClock(EPOCH)
        self.pause = pause

    async def start(self) -> tuple[Politeness, dict[str, float]]:
        """A new process, and the seconds that it leaves each host alone for."""
        politeness = Politeness(MANNERS, ClockLog(self.path, self.clock, self.pause))
        now = self.clock.monotonic()
        return politeness, {host: ready - now for host, ready in politeness.restore_log(now)}


async def test_a_host_that_was_being_read_is_left_alone_for_its_crawl_delay(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    politeness, _ = await machine.start()
    politeness.begin("slow.example", crawl_delay=20.0)
    machine.clock.advance(0.3)
    _, waits = await machine.start()
    assert waits == {"slow.example": 20.0}


async def test_so_is_one_that_took_long_to_answer(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    politeness, _ = await machine.start()
    politeness.begin("heavy.example")
    machine.clock.advance(3.0)
    _, waits = await machine.start()
    assert waits == {"heavy.example": pytest.approx(15.0)}  # 5 x the 3 s it took at least
    machine.clock.advance(100.0)
    assert (await machine.start())[1] == {"heavy.example": 30.0}  # nobody knows when it ended; the cap holds


async def test_a_delay_that_runs_goes_on_and_ends(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    politeness, _ = await machine.start()
    for host, asked in (("a", 60.0), ("b", 0.0)):
        politeness.begin(host)
        politeness.finished(host, "", machine.clock.monotonic(), 0.1, retry_after=asked)
    machine.clock.advance(10.0)
    politeness, waits = await machine.start()
    assert waits == {"a": pytest.approx(50.0)}, "b's two seconds are over before any restart reads"
    machine.clock.advance(51.0)
    assert (await machine.start())[1] == {}


async def test_a_gap_is_known_until_robots_txt_is_read_again(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    politeness, _ = await machine.start()
    politeness.begin("a")
    politeness.finished("a", "", machine.clock.monotonic(), 0.1, crawl_delay=20.0)
    machine.clock.advance(1_000.0)
    politeness, waits = await machine.start()
    assert waits == {}
    politeness.begin("a")  # its robots.txt, of which this process knows nothing yet
    machine.clock.advance(0.1)
    politeness, waits = await machine.start()
    assert waits == {"a": 20.0}
    machine.clock.advance(20.0)
    politeness.begin("a")
    politeness.finished("a", "", machine.clock.monotonic(), 0.1, crawl_delay=3.0)  # and now it asks for less
    assert (await machine.start())[1] == {"a": pytest.approx(3.0)}


async def test_floors_of_networks_survive_too(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    politeness, _ = await machine.start()
    assert politeness.servers.claim("a", "192.0.2.1", machine.clock.monotonic()) == machine.clock.monotonic()
    machine.clock.advance(5.0)
    politeness, _ = await machine.start()
    assert politeness.servers.ready("b", "192.0.2.77") == machine.clock.monotonic() + 40.0
    machine.clock.advance(40.0)
    now = machine.clock.monotonic()
    assert politeness.servers.claim("b", "192.0.2.77", now) == now
    politeness.servers.unclaim("b", "192.0.2.77")
    assert (await machine.start())[0].servers.ready("c", "192.0.2.5") < now


async def test_what_no_restart_can_undercut_is_not_written(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    log = ClockLog(machine.path, machine.clock, 2.0)
    politeness = Politeness(Manners.fixed(2.0), log)
    for number in range(1_000):
        politeness.begin(f"h{number}")
        politeness.finished(f"h{number}", "", 0.0, 0.1)
    assert machine.path.stat().st_size == 0
    politeness.begin("h1", crawl_delay=9.0)
    assert machine.path.stat().st_size > 0


@pytest.mark.parametrize("cut", range(0, 60, 7))
async def test_a_line_that_was_torn_costs_that_line_only(tmp_path: Path, cut: int) -> None:
    machine = Machine(tmp_path)
    politeness, _ = await machine.start()
    politeness.begin("first.example", crawl_delay=20.0)
    whole = machine.path.stat().st_size
    politeness.begin("second.example", crawl_delay=20.0)
    machine.path.write_bytes(machine.path.read_bytes()[: whole + cut])
    assert "first.example" in (await machine.start())[1]
    machine.path.write_bytes(b"\xff\0 nonsense\nhost x\n" + machine.path.read_bytes())
    assert "first.example" in (await machine.start())[1]


async def test_a_clock_that_was_set_back_shuts_nobody_out(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    politeness, _ = await machine.start()
    politeness.begin("a")
    politeness.finished("a", "", machine.clock.monotonic(), 0.1, crawl_delay=20.0)
    machine.clock = ManualClock(EPOCH - 400 * 86_400)
    assert (await machine.start())[1] == {"a": 20.0}


@pytest.mark.long
async def test_the_file_is_bounded_and_loses_no_delay_that_runs(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    politeness, _ = await machine.start()
    for number in itertools.count():
        host = f"h{number % 50_000}.example"
        politeness.begin(host, crawl_delay=100.0)
        politeness.finished(host, "", machine.clock.monotonic(), 0.1, crawl_delay=100.0)
        if number > 100_000:
            break
    assert machine.path.stat().st_size <= 1.5 * MOST_BYTES
    assert len((await machine.start())[1]) == 50_000
