"""Clocks: the manual one stands still, moves only forward and wakes its sleepers in order."""

from __future__ import annotations

import asyncio
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.wire.clock import Clock, ManualClock, SystemClock

START = 1_000_000_000.0


async def settle() -> None:
    """Let every task that can run come to its next wait."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_manual_time_passes_only_when_told() -> None:
    clock: Clock = ManualClock(START)
    assert (clock.time(), clock.monotonic()) == (START, 0.0)
    await settle()
    assert (clock.time(), clock.monotonic()) == (START, 0.0)


async def test_advance_moves_both_readings() -> None:
    clock = ManualClock(START)
    clock.advance(2.5)
    clock.advance(0)
    assert (clock.time(), clock.monotonic()) == (START + 2.5, 2.5)


async def test_sleepers_wake_in_order_of_deadline_then_of_falling_asleep() -> None:
    clock = ManualClock(START)
    woken: list[str] = []

    async def sleep(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(name)

    tasks = [asyncio.create_task(sleep(*what)) for what in [("c", 3), ("a", 1), ("b", 2), ("b2", 2), ("d", 4)]]
    await settle()
    assert clock.sleepers == 5
    clock.advance(0.999)
    await settle()
    assert woken == []
    clock.advance(2.001)
    await settle()
    assert woken == ["a", "b", "b2", "c"]
    assert clock.sleepers == 1
    clock.advance(1)
    await asyncio.gather(*tasks)
    assert woken[-1] == "d"


async def test_a_task_that_sleeps_again_counts_from_where_it_woke() -> None:
    clock = ManualClock(START)
    beats: list[float] = []

    async def beat() -> None:
        for _ in range(3):
            await clock.sleep(10)
            beats.append(clock.time())

    task = asyncio.create_task(beat())
    for _ in range(30):
        await settle()
        clock.advance(1)
    await task
    assert beats == [START + 10, START + 20, START + 30]


async def test_a_cancelled_sleeper_is_passed_over() -> None:
    clock = ManualClock(START)
    gone, stays = (asyncio.create_task(clock.sleep(1)) for _ in range(2))
    await settle()
    gone.cancel()
    await settle()
    assert clock.sleepers == 1
    clock.advance(1)
    await stays
    assert gone.cancelled()
    assert clock.sleepers == 0


@pytest.mark.parametrize("seconds", [0, -1.0])
async def test_sleeping_no_time_lets_others_run_and_returns(seconds: float) -> None:
    clock = ManualClock(START)
    ran = asyncio.create_task(asyncio.sleep(0))
    await clock.sleep(seconds)
    await clock.sleep(seconds)
    assert ran.done()
    assert clock.time() == START


@pytest.mark.parametrize("seconds", [-0.1, math.nan, math.inf])
def test_time_goes_forward_only(seconds: float) -> None:
    clock = ManualClock(START)
    with pytest.raises(ValueError, match="time goes forward"):
        clock.advance(seconds)
    assert clock.time() == START


@given(st.lists(st.floats(0.001, 1000), min_size=1, max_size=12))
def test_any_set_of_sleepers_wakes_sorted(naps: list[float]) -> None:
    async def run() -> list[float]:
        clock = ManualClock()
        woken: list[float] = []

        async def sleep(seconds: float) -> None:
            await clock.sleep(seconds)
            woken.append(seconds)

        tasks = [asyncio.create_task(sleep(nap)) for nap in naps]
        await settle()
        clock.advance(1000)
        await asyncio.gather(*tasks)
        return woken

    assert asyncio.run(run()) == sorted(naps)


async def test_the_system_clock_reads_and_waits() -> None:
    clock: Clock = SystemClock()
    wall, before = clock.time(), clock.monotonic()
    await clock.sleep(0.01)
    await clock.sleep(-1)
    assert clock.monotonic() - before >= 0.009
    assert wall > 1_700_000_000
