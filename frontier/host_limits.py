"""Hosts that are left alone for a while: blackout hours, budgets of pages a day, those that show a challenge, and those
whose orders came back because they do not answer.

The scheduler asks `shut[host]` as it asks whether a person holds the host: pages of a host that is shut are parked,
whoever ordered them, and come back when it opens. A promise to a host does not depend on who wants the page; who must
read it changes the settings (SIGHUP).

A budget counts orders, not answers: what was ordered today is what the host may be asked for. Days are those of UTC;
orders that are out at midnight are read in the new day, and count for it, too.

Hosts are many ("*.example.org"), tables are few: what a calendar says is asked once for all hosts of the same tables.

[[blackouts]] are a calendar. A window begins at an hour of some days of the week, in the host's time zone, and ends at
a later one, perhaps of the next day. Where clocks are put forward or back it begins and ends by the wall clock, as
people mean it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from xyro.configs.schema import DAYS, BlackoutTable, BudgetTable
from xyro.metadata.hosts import Hosts
from xyro.wire.urls import fits

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

MINUTES = 1440
LONGEST = 15
"""days that windows without a gap are followed on: what ends later is looked at again then"""


class BlackoutWindow(Struct, frozen=True):
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
                yield self._moment(day, self.begin), self._moment(day, self.end)

    def _moment(self, day: date, minutes: int) -> float:
        days, minutes = divmod(minutes, MINUTES)
        clock = time(minutes // 60, minutes % 60, tzinfo=self.zone)
        return datetime.combine(day + timedelta(days=days), clock).timestamp()


def windows_of(blackout: BlackoutTable) -> list[BlackoutWindow]:
    """The windows of one table of the settings (which were checked when they were read)."""
    from zoneinfo import ZoneInfo  # 3 ms of each start

    zone, days = ZoneInfo(blackout.timezone), frozenset(_days(blackout.days))
    found = []
    for part in blackout.hours.split(","):
        begin, end = map(_minutes, part.split("-"))
        found.append(BlackoutWindow(begin, end if end > begin else end + MINUTES, days, zone))
    return found


def closed_until(windows: Sequence[BlackoutWindow], moment: float) -> float:
    """Return when the windows that hold at `moment` have ended, with those that follow without a gap; 0.0: none
    holds."""
    spans = sorted(span for window in windows for span in window.around(moment))
    until = moment
    for begin, end in spans:
        if begin <= until < end:
            until = end
    return until if until > moment else 0.0


def next_begin(windows: Sequence[BlackoutWindow], moment: float) -> float:
    """Return when a window begins next, after `moment`; LONGEST days on where none does sooner."""
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


DAY = 86_400.0


class HostLimits:
    """`renew` at the beginning of each plan while it is `on`; nothing is called without [[budgets]] and
    [[blackouts]]."""

    def __init__(self, hosts: Hosts, budgets: Sequence[BudgetTable], blackouts: Sequence[BlackoutTable]) -> None:
        self.hosts = hosts
        self.shut: NDArray[np.bool_] = np.zeros(len(hosts.waiting), np.bool_)
        """by host number, as long as `hosts.open`"""
        self.until: dict[int, tuple[float, str]] = {}
        """hosts that are shut: (when they open, 'blackout' | 'budget' | 'challenge' | 'back-off')"""
        self.challenged: dict[int, float] = {}
        """hosts that show a challenge, and until when they are left alone for it (impostors.py)"""
        self.backed_off: dict[int, float] = {}
        """hosts whose orders came back, for others can be read meanwhile, and until when they are not contacted"""
        self._day = 0
        self.orders_today: dict[int, int] = {}
        """orders of this day, of hosts with a budget"""
        self.follow(budgets, blackouts)

    def follow(self, budgets: Sequence[BudgetTable], blackouts: Sequence[BlackoutTable]) -> None:
        """Other settings: all hosts are looked at again by the next `renew`."""
        self._budgets = [(table.host, table.pages_per_day) for table in budgets]
        self._blackouts = [(table.host, windows_of(table)) for table in blackouts]
        self.on = bool(self._budgets or self._blackouts or self.until)
        """some host is limited: else nothing here need be asked"""
        self._seen = 0
        self.met = False
        """hosts with blackouts are new since `closed` was asked"""
        self._budget_of: dict[int, int] = {}
        self._calendars: dict[tuple[int, ...], list[BlackoutWindow]] = {}
        """tables of [[blackouts]], by number, that some host keeps together -> their windows"""
        self._calendar_of: dict[int, tuple[int, ...]] = {}
        """hosts with blackouts -> the tables that are theirs"""
        self._next = -math.inf

    def renew(self, now: float) -> list[int]:
        """The hosts that have opened since the last time; shuts those whose blackout has begun."""
        met = self._meet()
        if now < self._next:
            if met:
                self._shut_new(met, now)
            return []
        if now // DAY != self._day:
            self._day, self.orders_today = int(now // DAY), self._out()
        before = set(self.until)
        self.challenged = {host: min(until, now + DAY) for host, until in self.challenged.items() if until > now}
        self.until = self._shut_at(now, self._budget_of, self._calendar_of)
        self.backed_off = {host: min(until, now + DAY) for host, until in self.backed_off.items() if until > now}
        for reason, alone in (("challenge", self.challenged), ("back-off", self.backed_off)):
            for host, until in alone.items():
                if until > self.until.get(host, (0.0, ""))[0]:
                    self.until[host] = until, reason
        opened = sorted(before.difference(self.until))
        self.shut[opened] = False
        self.shut[list(self.until)] = True
        self._next = self._change_after(now, self.until)
        self.on = bool(self._budgets or self._blackouts or self.until)
        return opened

    def _shut_new(self, met: Sequence[int], now: float) -> None:
        """Hosts were met: none of the others changes for it."""
        found = self._shut_at(now, (), (host for host in met if host in self._calendar_of))
        self.until |= found
        self.shut[list(found)] = True
        self._next = min(self._next, self._change_after(now, found))

    def _out(self) -> dict[int, int]:
        """Orders that are out as a day begins: they are read in it."""
        return {host: out for host in self._budget_of if (out := int(self.hosts.leased[host]))}

    def challenge(self, host: int, until: float) -> None:
        """Leave a host alone until then, whoever wants its pages."""
        self.challenged[host] = until
        self._leave_alone(host, until, "challenge")

    def back_off(self, host: int, until: float) -> None:
        """Order nothing of a host until it may be contacted again: it failed."""
        self.backed_off[host] = until
        self._leave_alone(host, until, "back-off")

    def _leave_alone(self, host: int, until: float, reason: str) -> None:
        self._meet()
        if until > self.until.get(host, (0.0, ""))[0]:
            self.until[host] = until, reason
        self.shut[host] = self.on = True
        self._next = min(self._next, until)

    def end_challenge(self, host: int) -> bool:
        """The host answers in earnest again; True: it is open now."""
        self.challenged.pop(host, None)
        if self.until.get(host, (0.0, ""))[1] != "challenge":
            return False
        del self.until[host]
        self.shut[host] = False
        self._next = -math.inf  # a blackout may have begun meanwhile
        return True

    def count(self, host: int, now: float) -> None:
        """An order for a page of this host goes out."""
        budget = self._budget_of.get(host)
        if budget is None:
            return
        self.orders_today[host] = used = self.orders_today.get(host, 0) + 1
        if used >= budget and host not in self.until:
            self.until[host] = ((now // DAY + 1) * DAY, "budget")
            self.shut[host] = True
            self._next = min(self._next, self.until[host][0])

    def used(self, host: int) -> tuple[int, int] | None:
        """(orders of today, its budget); None: it has none."""
        budget = self._budget_of.get(host)
        return None if budget is None else (self.orders_today.get(host, 0), budget)

    def closed(self, now: float) -> tuple[set[int], float]:
        """Hosts in a blackout at this moment, and when that changes (infinite without any)."""
        self.met = False
        ends = self._ends(now)
        moments = [until for until in ends.values() if until]
        moments += [next_begin(windows, now) for windows in self._calendars.values()]
        return {host for host, tables in self._calendar_of.items() if ends[tables]}, min(moments, default=math.inf)

    # -- state ---------------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """Return the part of today's budgets that is used up."""
        return (
            {"day": self._day, "used": [[host, count] for host, count in self.orders_today.items()]}
            if self.orders_today
            else {}
        )

    def load(self, state: Mapping[str, Any]) -> None:
        self._day = state.get("day", 0)
        self.orders_today = dict(state.get("used", ()))

    # -- within --------------------------------------------------------------------------------------------------

    def _meet(self) -> list[int]:
        """Hosts that are new: which tables are theirs. -> those that have any."""
        found = []
        if len(self.shut) < len(self.hosts.open):
            self.shut = np.concatenate([self.shut, np.zeros(len(self.hosts.open) - len(self.shut), np.bool_)])
        for host in range(self._seen, len(self.hosts)):
            name = self.hosts.names[host]
            budget = next((budget for pattern, budget in self._budgets if fits(name, pattern)), None)
            if budget is not None:
                self._budget_of[host] = budget
            tables = tuple(index for index, (pattern, _) in enumerate(self._blackouts) if fits(name, pattern))
            if tables:
                self._calendar_of[host] = tables
                self._calendars.setdefault(tables, [window for index in tables for window in self._blackouts[index][1]])
                self.met = True
            if tables or budget is not None:
                found.append(host)
        self._seen = len(self.hosts)
        return found

    def _ends(self, now: float) -> dict[tuple[int, ...], float]:
        """Return when the blackouts of each set of tables have ended; 0.0: none holds now."""
        return {tables: closed_until(windows, now) for tables, windows in self._calendars.items()}

    def _shut_at(self, now: float, budgeted: Iterable[int], scheduled: Iterable[int]) -> dict[int, tuple[float, str]]:
        """Return the hosts that a budget or a blackout shuts."""
        found, midnight, ends = {}, (now // DAY + 1) * DAY, self._ends(now)
        for host in budgeted:
            if self.orders_today.get(host, 0) >= self._budget_of[host]:
                found[host] = midnight, "budget"
        for host in scheduled:
            until = ends[self._calendar_of[host]]
            if until and until > found.get(host, (0.0, ""))[0]:
                found[host] = until, "blackout"
        return found

    def _change_after(self, now: float, shut: Mapping[int, tuple[float, str]]) -> float:
        """Return when one of these opens, a blackout begins or a day ends."""
        moments = [until for until, _ in shut.values()]
        moments += [next_begin(windows, now) for windows in self._calendars.values()]
        return min([(now // DAY + 1) * DAY, *moments])
