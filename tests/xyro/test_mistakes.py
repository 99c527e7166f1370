"""Lines of mistakes: bounded in a minute, none forgotten."""

import logging

from tests.xyro.test_pool import EPOCH
from xyro.answer import Answer
from xyro.mistakes import LINES, WINDOW
from xyro.reports import GuardedReads
from xyro.wire.clock import ManualClock


async def fail() -> Answer:
    raise RuntimeError("a mistake of ours")


async def test_lines_are_bounded_and_the_next_one_counts_the_others(caplog):
    caplog.set_level(logging.ERROR, "xyro")
    clock = ManualClock(EPOCH)
    reads = GuardedReads(clock)
    for number in range(LINES + 30):
        answer = await reads.answer(f"http://h/{number}", fail())
        assert answer.error == "internal" and "tests/xyro/test_mistakes.py, line 13, in fail" in answer.detail
    assert len(caplog.records) == LINES
    clock.advance(WINDOW)
    await reads.answer("http://h/last", fail())
    *_, last = caplog.records
    assert len(caplog.records) == LINES + 1 and "30 more were not logged" in last.getMessage()
    assert last.fields["url"] == "http://h/last" and last.fields["omitted"] == 30
    assert last.levelno == logging.ERROR


async def test_no_minute_has_more_lines_whenever_it_begins(caplog):
    caplog.set_level(logging.ERROR, "xyro")
    clock = ManualClock(EPOCH)
    reads, moments = GuardedReads(clock), []
    for step in (0.0, WINDOW - 1.0, 0.5, 0.5, 0.5, 30.0, 29.0, 1.0):  # one mistake first, many at the minute's end
        clock.advance(step)
        for _ in range(1 if not moments else LINES):
            before = len(caplog.records)
            await reads.answer("http://h/", fail())
            moments += [clock.monotonic()] * (len(caplog.records) - before)
    for begin in moments:
        assert sum(begin <= moment < begin + WINDOW for moment in moments) <= LINES, moments
    assert len(moments) > 2 * LINES


async def test_a_failure_of_the_web_is_not_a_line(caplog):
    async def away() -> Answer:
        return Answer(1.0, error="disconnect", detail="gone")

    assert (await GuardedReads(ManualClock(EPOCH)).answer("http://h/", away())).error == "disconnect"
    assert caplog.records == []
