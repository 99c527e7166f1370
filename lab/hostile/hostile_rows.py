"""The rows of the table: who is hostile, how many of them, and what is wanted of a crawl that meets them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Hostile:
    """Numbers of hostile hosts; traps and the folder lie inside an honest host."""

    mutes: int = 0
    """accept a connection and never answer"""
    drippers: int = 0
    """send 1.5 kB a second, for ever"""
    turncoats: int = 0
    """answer one small page at once, then drip"""
    relapsers: int = 0
    """answer two pages at once, then drip the next, again and again; each leads to two more"""
    farms: int = 0
    """one page with 30 links to new hosts, which are the same, for ever"""
    redirectors: int = 0
    """each URL redirects to a new one, on the same host or on the next redirector"""
    floods: int = 0
    """five pages of 65,000 links"""
    traps: bool = False
    """calendar, session ids, query permutations, soft 404"""
    folder: bool = False
    """a folder without end, which answers 404 to names that its pages did not give"""
    zoo: bool = False
    """each behaviour of `xyro lab zoo`, on a host of its own"""
    doors: bool = False
    """the pages with which these traps begin are there, and lead home: the same web without its traps"""

    @property
    def trapped(self) -> bool:
        """Tell whether an honest host has a trap."""
        return self.traps or self.folder

    def dump(self) -> dict[str, Any]:
        return asdict(self)

    def __or__(self, other: Hostile) -> Hostile:
        """All of both."""
        return Hostile(**{each.name: getattr(self, each.name) or getattr(other, each.name) for each in fields(self)})


@dataclass(frozen=True, slots=True)
class RowGoal:
    """Bounds; what is None is not asked for."""

    time: float | None = None
    """times as long as without the hostile hosts, until the last honest page was asked for"""
    share: float | None = None
    """of all requests that go to the hostile, until then"""
    later: float | None = None
    """of all requests of the run that go to the hostile"""
    memory: float | None = None
    """MB more than without them"""
    lag: float | None = None
    """longest time, in seconds, in which the crawl's interface did not answer"""


@dataclass(frozen=True, slots=True)
class TableRow:
    """One line of the table."""

    name: str
    hostile: Hostile
    goal: RowGoal
    pages: int = 1_000
    seconds: float = 0.0
    """that the run lasts in any case; 0: it ends with the last honest page"""
    refresh: bool = False
    """honest pages are read again, as a daemon reads them"""


SLOW = 1 / 0.9
MUTES, DRIPPERS, TURNCOATS = Hostile(mutes=1_000), Hostile(drippers=600), Hostile(turncoats=600)
RELAPSERS = Hostile(relapsers=600)
FARM, REDIRECTORS = Hostile(farms=1), Hostile(redirectors=10)
FLOODS, TRAPS, FOLDER = Hostile(floods=50), Hostile(traps=True), Hostile(folder=True)
MIX = Hostile(mutes=30, drippers=30, farms=1, redirectors=10, floods=5, traps=True)
ROWS = (
    TableRow("mutes-200", Hostile(mutes=200), RowGoal(time=SLOW)),
    TableRow("mutes-300", Hostile(mutes=300), RowGoal(time=SLOW)),
    TableRow("mutes-1000", MUTES, RowGoal(time=SLOW)),
    TableRow("drippers-600", DRIPPERS, RowGoal(time=SLOW)),
    TableRow("turncoats-600", TURNCOATS, RowGoal(time=SLOW), pages=3_000),
    TableRow("relapsers-600", RELAPSERS, RowGoal(time=SLOW), pages=3_000),
    TableRow("farm", FARM, RowGoal(share=0.05, later=0.30), pages=5_000, seconds=90.0),
    TableRow("redirectors", REDIRECTORS, RowGoal(share=0.05, later=0.05), seconds=40.0, refresh=True),
    TableRow("floods", FLOODS, RowGoal(time=1.2, memory=200.0, lag=0.25)),
    TableRow("traps", TRAPS, RowGoal(share=0.05, later=0.05), seconds=40.0, refresh=True),
    TableRow("folder", FOLDER, RowGoal(share=0.05, later=0.05), seconds=40.0, refresh=True),
    TableRow("mix", MIX, RowGoal(time=1.2, memory=200.0, lag=0.25)),
    TableRow("zoo", Hostile(zoo=True), RowGoal(time=1.2, memory=200.0, lag=0.25), seconds=60.0),
    TableRow(
        "together",
        MUTES | DRIPPERS | TURNCOATS | RELAPSERS | FARM | REDIRECTORS | FLOODS | TRAPS | FOLDER,
        RowGoal(time=1.2, memory=200.0, lag=0.25),
    ),
)
