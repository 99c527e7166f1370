"""Pages that change by the clock (every Monday, every day at 6): period and phase from few visits. Pure.

What is kept of a page is its last changes, each a window (start, end] in which it happened: from the read before to the
read that saw it, or the ten minutes that a trusted Last-Modified names. Between the windows it stayed quiet. Under

    a habit   points phase + k x period; each brings a change but for a few (MISSED); a little noise between them
    chance    a Poisson process, of the rate that fits these windows best

these windows have two likelihoods. Their ratio, averaged over all periods and phases (a Bayes factor: many periods
tried are paid for), must pass FOUND before a page is read by its habit, and falls below LOST when the habit has gone:
between the two it stays, for reads timed by a habit say little about it. Visits as far apart as the period say nothing
either: such a habit shows only by Last-Modified.
"""

from __future__ import annotations

import itertools
import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TICK = 600
"""Seconds: the grid of all times here."""
_HOUR = 6
_MONTH_TICKS = 4383
"""a mean month; months are measured in calendar months (UTC), each stretched to this length"""
PERIODS: Final = (*(h * _HOUR for h in (1, 2, 3, 4, 6, 8, 12, 24, 48, 72, 168, 336)), _MONTH_TICKS)
"""candidates in ticks: hours, days, weeks, the month"""
_MONTH: Final = len(PERIODS) - 1
MOST_BYTES = 40
FEWEST = 4
"""changes before anything is looked for"""
OFTEN = 9
MAX_CHANGES = 16
"""changes that are kept, at most"""
PHASES = 48
"""phases tried of each period; a point is spread over two of these steps"""
MISSED, NOISE = 0.05, 0.1
"""P(a point brings no change); changes that are none of the habit's, per period"""
FOUND, LOST = 5.0, -2.0
"""ln of the Bayes factor: of Poisson pages under 1 % ever pass the first (measured: tests/refresh/test_periodic.py)"""
SHORTEST_STEP, LONGEST_STEP = 0.5, 2.0
"""A read is moved to a point within these multiples of its interval."""
_NUMBERS = [f"{h} hours" for h in (1, 2, 3, 4, 6, 8, 12)]
NAMES: Final = (*_NUMBERS, "day", "2 days", "3 days", "week", "2 weeks", "month")


class Habit(NamedTuple):
    """`period`: number in PERIODS; `phase`: ticks into it at which the page has changed for sure."""

    period: int
    phase: int

    def __str__(self) -> str:
        return f"every {NAMES[self.period]}"


class Diary(NamedTuple):
    """The diary of a page: its habit if it has one, and the windows of its last changes (ticks, flat pairs)."""

    habit: Habit | None
    edges: tuple[int, ...]


EMPTY = Diary(None, ())


def pack(diary: Diary) -> bytes:
    """At most MOST_BYTES: the oldest windows are left out. Numbers of 7 bits a byte, times as differences."""
    edges = diary.edges[-2 * MAX_CHANGES :]
    head = bytes([0]) if diary.habit is None else bytes([diary.habit.period + 1]) + _varint(diary.habit.phase)
    while edges:
        steps = (edges[0], *(after - before for before, after in itertools.pairwise(edges)))
        packed = head + b"".join(map(_varint, steps))
        if len(packed) <= MOST_BYTES:
            return packed
        edges = edges[2:]
    return head if diary.habit is not None else b""


def unpack(data: bytes) -> Diary:
    """Empty where it is none of ours."""
    numbers = _varints(data[1:])
    if not data or data[0] > len(PERIODS) or numbers is None:
        return EMPTY
    habit = None
    if data[0]:
        if not numbers:
            return EMPTY
        habit = Habit(data[0] - 1, numbers.pop(0) % PERIODS[data[0] - 1])
    if len(numbers) % 2:
        return EMPTY
    edges = np.cumsum(numbers).tolist()
    return Diary(habit, tuple(edges))


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _varints(data: bytes) -> list[int] | None:
    numbers, number, shift = [], 0, 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            numbers.append(number)
            number = shift = 0
        elif shift > 28:
            return None
    return None if shift else numbers


# --- after a visit --------------------------------------------------------------------------------------------------


def visited(
    data: bytes, last_read: float, read_at: float, changed: bool, changed_at: float | None = None
) -> tuple[bytes, Habit | None]:
    """The page's record and habit after one more visit; times in seconds. changed_at: what a trusted date says."""
    if not data and not changed:
        return data, None
    diary = unpack(data)
    now = round(read_at / TICK)
    if changed:
        edges = (*diary.edges, *_window(diary, last_read, now, changed_at))[-2 * MAX_CHANGES :]
        habit = judged(Diary(diary.habit, edges), now) if _scan_phases(len(edges), now) else diary.habit
        return pack(Diary(habit, edges)), habit
    if diary.habit is None:
        return data, None
    habit = judged(diary, now)
    return (data if habit == diary.habit else pack(Diary(habit, diary.edges))), habit


def _scan_phases(edges: int, now: int) -> bool:
    """Judging costs up to half a millisecond: once there are OFTEN changes, one change in four is judged, by hash."""
    return edges < 2 * OFTEN or not (now * 2_654_435_761 >> 16) & 3


def _window(diary: Diary, last_read: float, now: int, changed_at: float | None) -> tuple[int, int]:
    """(start, end) in ticks, after all windows before."""
    before = diary.edges[-1] if diary.edges else 0
    if changed_at is not None and changed_at > last_read:
        start = int(changed_at // TICK)
        start, end = max(start, before), start + 1
    else:
        start, end = max(round(last_read / TICK), before), now
    return start, max(end, start + 1)


def judged(diary: Diary, now: int) -> Habit | None:
    """The habit that its record up to `now` (ticks) shows, with the present one's right to stay."""
    if len(diary.edges) < 2 * FEWEST:
        return None
    edges = np.array(diary.edges, np.int64)
    ends = np.append(edges, max(now, int(edges[-1])))
    chance = _chance(ends)
    if diary.habit is None and -chance < FOUND:  # no habit can make this record likelier than certain
        return None
    tried = _candidates(edges, diary.habit)
    if not tried:
        return None
    scores = np.stack([_likelihoods(ends, period) for period in tried]) - chance
    best = float(scores.max())
    evidence = best + math.log(float(np.exp(scores - best).mean()) * len(tried) / len(PERIODS))
    if evidence < (FOUND if diary.habit is None else LOST):
        return None
    row, step = divmod(int(scores.argmax()), PHASES)
    if diary.habit is not None and evidence < FOUND:
        return diary.habit  # reads timed by it prove little: neither does what they hint at instead
    return Habit(tried[row], _late_edge(edges, tried[row], step))


def _candidates(edges: Ints, habit: Habit | None) -> list[int]:
    """Periods that the mean step between changes allows: missed and seen-together changes leave some room."""
    step = float(edges[-1] - edges[0]) / (len(edges) // 2 - 1)
    return [i for i, period in enumerate(PERIODS) if step / 6 <= period <= 1.6 * step or (habit and i == habit.period)]


def _chance(ends: Ints) -> float:
    """Greatest ln likelihood of the record under a Poisson process, over its rate."""
    spans = np.diff(ends).astype(np.float64)
    windows, gaps = spans[::2], spans[1::2].sum()
    rates = len(windows) / max(float(spans.sum()), 1.0) * np.exp2(np.arange(-2.0, 8.1, 0.5))
    with np.errstate(divide="ignore"):
        found = np.log(-np.expm1(-rates[:, None] * windows)).sum(axis=1) - rates * gaps
    return float(found.max())


def _likelihoods(ends: Ints, period: int) -> Floats:
    """ln likelihood of the record under each phase of a period, float64[PHASES]."""
    length = float(PERIODS[period])
    places = _places(ends, period)
    phases = np.arange(PHASES)[:, None] * (length / PHASES)
    turns = (places[None, :] - phases) / length
    whole = np.floor(turns)
    passed = whole + np.minimum((turns - whole) * (PHASES / 2), 1.0)  # a point is spread over two steps
    points = np.diff(passed, axis=1)
    full = np.floor(points)
    part = points - full
    silent = full * math.log(MISSED) + np.log1p((MISSED - 1.0) * part) - NOISE / length * np.diff(places)
    found: Floats = np.log(-np.expm1(silent[:, ::2])).sum(axis=1) + silent[:, 1::2].sum(axis=1)
    return found


def _late_edge(edges: Ints, period: int, step: int) -> int:
    """The phase by which the change was always seen: the least end of the windows, unless a later one began after."""
    length = PERIODS[period]
    places = _places(edges, period)
    middle = (step + 1) * length / PHASES  # of the spread
    starts, ends = places[::2] - middle, places[1::2] - middle
    turn = np.floor(ends / length + 0.5) * length  # the point nearest to the window's end
    starts, ends = starts - turn, ends - turn
    reach = length / PHASES
    late = ends < -reach  # the window ended well before that point: it holds the one before
    starts, ends = np.where(late, starts + length, starts), np.where(late, ends + length, ends)
    holds = (starts <= reach) & (ends >= -reach)
    if not holds.any():
        return int(middle) % length
    edge = max(float(ends[holds].min()), float(starts[holds].max()) + 1.0)
    return math.ceil(middle + min(edge, length / 4)) % length


# --- when to read ---------------------------------------------------------------------------------------------------


def timed(habit: Habit, read_at: float, wait: float, draw: float) -> float:
    """Seconds to the next read of a page with a habit, instead of `wait`: just after one of its points.

    Between the point before and the one after read_at + wait, `draw` (0..1, evenly spread over reads) decides, so that
    the mean stays `wait`; points sooner than half of it or later than twice of it are not waited for. None is spent on
    looking elsewhere: one in eight found out sooner that a habit had moved by half a period (.61-.73 -> .79-.81 fresh,
    read every .35 periods), but cost pages that keep theirs up to 5 points, and few move.
    """
    due = read_at + wait
    before, after = points_around(habit, due)
    sooner, later = before - read_at, after - read_at
    early, late = sooner >= SHORTEST_STEP * wait, later <= LONGEST_STEP * wait
    if early and late:
        return later if draw < (wait - sooner) / (later - sooner) else sooner
    return later if late else sooner if early else wait


def points_around(habit: Habit, when: float) -> tuple[float, float]:
    """The last moment <= when and the first one after at which a read finds the page just changed, seconds."""
    length = PERIODS[habit.period]
    if habit.period != _MONTH:
        turn = (when / TICK - habit.phase - 1) // length
        before = (turn * length + habit.phase + 1) * TICK
        return before, before + length * TICK
    month = int(np.datetime64(int(when), "s").astype("M8[M]").astype(np.int64))
    near = [_month_point(month + step, habit.phase + 1) for step in (-1, 0, 1, 2)]
    return max(point for point in near if point <= when), min(point for point in near if point > when)


def _month_point(month: int, phase: int) -> float:
    begin, end = (float(np.datetime64(month + step, "M").astype("M8[s]").astype(np.int64)) for step in (0, 1))
    return begin + (end - begin) * min(phase / _MONTH_TICKS, 1.0)


def _places(ticks: Ints, period: int) -> Floats:
    """Times in ticks of a period that all have its length: calendar months are stretched to one."""
    if period != _MONTH:
        return ticks.astype(np.float64)
    seconds = ticks * TICK
    months = seconds.astype("M8[s]").astype("M8[M]")
    begin = months.astype("M8[s]").astype(np.int64)
    end = (months + 1).astype("M8[s]").astype(np.int64)
    passed = (seconds - begin) / (end - begin)
    return (passed + months.astype(np.int64)) * float(_MONTH_TICKS)
