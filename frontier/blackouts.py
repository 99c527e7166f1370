"""[[blackouts]] as a calendar: is a host to be left alone at a moment, and until when.

A window begins at an hour of some days of the week, in the host's time zone, and ends at a later one, perhaps of the
next day. Where clocks are put forward or back a window begins and ends by the wall clock, as people mean it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from xyro.configs.load import DAYS
from xyro.configs.schema import Blackout

MINUTES = 1440
LONGEST = 15
"""days that windows without a gap are followed on: what ends later is looked at again then"""


@dataclass(frozen=True, slots=True)
class Window:
    """Minutes of the day from `begin` to `end` (may be past midnight), on `days` (0 = Monday)."""

    begin: int
    end: int
    days: frozenset[int]
    zone: ZoneInfo

    def around(self, moment: float) -> Iterator[tuple[float, float]]:
        """(begin, end) in seconds since 1970 of the windows of the days from before `moment` to LONGEST after."""
        today = datetime.fromtimestamp(moment, self.zone).date()
        for offset in range(-2, LONGEST):
            day = today + timedelta(days=offset)
            if day.weekday() in self.days:
                yield self._at(day, self.begin), self._at(day, self.end)

    def _at(self, day: date, minutes: int) -> float:
        days, minutes = divmod(minutes, MINUTES)
        clock = time(minutes // 60, minutes % 60, tzinfo=self.zone)
        return datetime.combine(day + timedelta(days=days), clock).timestamp()


def windows_of(blackout: Blackout) -> list[Window]:
    """The windows of one table of the settings (which were checked when they were read)."""
    zone, days = ZoneInfo(blackout.timezone), frozenset(_days(blackout.days))
    found = []
    for part in blackout.hours.split(","):
        begin, end = map(_minutes, part.split("-"))
        found.append(Window(begin, end if end > begin else end + MINUTES, days, zone))
    return found


def closed_until(windows: Sequence[Window], moment: float) -> float:
    """When the windows that hold at `moment` have ended, with those that follow without a gap; 0.0: none holds."""
    spans = sorted(span for window in windows for span in window.around(moment))
    until = moment
    for begin, end in spans:
        if begin <= until < end:
            until = end
    return until if until > moment else 0.0


def next_begin(windows: Sequence[Window], moment: float) -> float:
    """When a window begins next, after `moment`; LONGEST days on where none does sooner."""
    begins = [begin for window in windows for begin, _ in window.around(moment) if begin > moment]
    return min(begins, default=moment + (LONGEST - 2) * 86_400.0)


def _minutes(text: str) -> int:
    hour, _, minute = text.partition(":")
    return 60 * int(hour) + int(minute or 0)


def _days(text: str) -> Iterator[int]:
    """ "fri-mon,wed" -> 4, 5, 6, 0, 2."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        begin, end = DAYS.index(first), DAYS.index(last or first)
        for step in range((end - begin) % 7 + 1):
            yield (begin + step) % 7
