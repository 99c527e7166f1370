"""`xyro lab walk`: the files and functions that one page of a default crawl enters, in order, and their direction.

A site of three pages is crawled in this process, with Xyro's own settings; the second page is followed from
the link in the first one's HTML until its commit group is on disk. Time stands still, so nothing but the crawl itself
takes part. Exit code 1: a function calls into a room above its own, or a sibling, through no callback that is named.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xyro.configs.load import load
from xyro.lab.walk.rooms import CALLBACKS, ROOMS, direction, room_of
from xyro.lab.walk.site import FIRST, LINKED, WalkSite
from xyro.lab.walk.tracer import Tracer, TraceStep
from xyro.plugins import PLUGINS
from xyro.service.node.data_dir import DataDir
from xyro.service.node.guard_factory import guard_of
from xyro.service.node.node import Bounds, Node
from xyro.wire.clock import ManualClock
from xyro.wire.errors import MachineError, XyroError

START = 1_700_000_000.0
PATIENCE = 30.0
"""real seconds in which the page must be on disk"""


@dataclass(frozen=True, slots=True)
class Entered:
    """A file, in the order of first entry."""

    file: str
    functions: tuple[str, ...]
    calls: int

    @property
    def room(self) -> str:
        return room_of(self.file)


@dataclass(frozen=True, slots=True)
class Crossing:
    """A function called against the direction of the rooms. callback: what CALLBACKS says of it; '': a fault."""

    caller: str
    callee: str
    function: str
    source: str
    """the function that calls it"""
    callback: str


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of the page's way."""

    steps: Sequence[TraceStep]

    @property
    def entered(self) -> list[Entered]:
        """Each file with its functions, both in the order of first entry."""
        functions: dict[str, dict[str, None]] = {}
        calls: dict[str, int] = {}
        for step in self.steps:
            functions.setdefault(step.place.file, {})[step.place.function] = None
            calls[step.place.file] = calls.get(step.place.file, 0) + 1
        return [Entered(file, tuple(names), calls[file]) for file, names in functions.items()]

    @property
    def changes(self) -> int:
        """The number of steps into another file."""
        return sum(a.place.file != b.place.file for a, b in zip(self.steps, self.steps[1:], strict=False))

    def report(self) -> dict[str, Any]:
        entered = self.entered
        return {
            "files": len(entered),
            "functions": sum(len(place.functions) for place in entered),
            "changes": self.changes,
            "calls": len(self.steps),
            "rooms": _by_room(entered),
            "path": [
                {"room": place.room, "file": place.file, "calls": place.calls, "functions": list(place.functions)}
                for place in entered
            ],
        }


@dataclass(frozen=True, slots=True)
class Walk:
    """The walk of one page: the turn that takes its report, and its whole way."""

    turn: Stretch
    way: Stretch

    @property
    def crossings(self) -> list[Crossing]:
        """Calls against the direction, each once, in order."""
        found: dict[Crossing, None] = {}
        for place, caller in self.way.steps:
            if caller is not None and direction(caller.room, place.room):
                pair = caller.room, place.room
                source, function = (f"{end.file}: {end.function}" for end in (caller, place))
                found[Crossing(*pair, function, source, CALLBACKS.get(pair, ""))] = None
        return list(found)

    @property
    def faults(self) -> list[Crossing]:
        return [crossing for crossing in self.crossings if not crossing.callback]

    def report(self) -> dict[str, Any]:
        """Return the walk as `--json` prints it."""
        upward = [
            {
                "from": crossing.caller,
                "to": crossing.callee,
                "caller": crossing.source,
                "called": crossing.function,
                "by": crossing.callback,
            }
            for crossing in self.crossings
        ]
        return {"ok": not self.faults, "turn": self.turn.report(), "way": self.way.report(), "upward": upward}


def _by_room(entered: Iterable[Entered]) -> dict[str, dict[str, int]]:
    """Files and functions of each room, from the ground up."""
    rooms: dict[str, dict[str, int]] = {}
    for place in entered:
        count = rooms.setdefault(place.room, {"files": 0, "functions": 0})
        count["files"] += 1
        count["functions"] += len(place.functions)
    return dict(sorted(rooms.items(), key=lambda item: ROOMS.index(item[0]) if item[0] in ROOMS else len(ROOMS)))


def walk() -> Walk:
    """Follow the page. MachineError: it did not get there."""
    tracer = asyncio.run(_followed())
    return Walk(Stretch(tracer.turn), Stretch(tracer.way))


async def _followed() -> Tracer:
    tracer = Tracer()
    async with WalkSite(lambda path: tracer.begin(site.url(LINKED)) if path == FIRST else None) as site:
        options: dict[str, Any] = {"fetch.only_net": ("127.0.0.0/8",), "politeness.delay": 0.0}
        settings = load((), {}, options)
        with tempfile.TemporaryDirectory(prefix="xyro-walk-") as directory, tracer.watching():
            data = DataDir.open(Path(directory) / "data", make=True)
            crawl = Node(data, settings, guard_of(settings.fetch), Bounds(), ManualClock(START), plugins=PLUGINS)
            try:
                crawl.start()
                await crawl.sow([site.url(FIRST)])
                async with asyncio.timeout(PATIENCE):
                    await tracer.finished.wait()
            except TimeoutError:
                crawl.check()
                raise MachineError(f"walk: {site.url(LINKED)} was not written within {PATIENCE:g} s (a bug)") from None
            finally:
                await crawl.stop()
                data.close()
    return tracer


# -- the command -------------------------------------------------------------------------------------------------------


def lines(found: Walk) -> list[str]:
    """The report for people."""
    return [
        *_stretch("The turn that takes the page's report", found.turn),
        "",
        *_stretch("The whole way, from the link in HTML to the commit on disk", found.way),
        "",
        *_direction(found),
    ]


def _stretch(title: str, part: Stretch) -> list[str]:
    summary = part.report()
    rooms = ", ".join(f"{room} {count['files']}" for room, count in summary["rooms"].items())
    return [
        f"{title}: {summary['files']} files, {summary['functions']} functions, {summary['changes']} changes of file",
        f"files by room: {rooms}",
        *(f"{place.calls:6}  {place.file}: {', '.join(map(_short, place.functions))}" for place in part.entered),
    ]


def _short(function: str) -> str:
    return function.replace("<locals>.", "")


def _direction(found: Walk) -> list[str]:
    crossings, faults = len(found.crossings), len(found.faults)
    lines = [f"Calls against the direction of the rooms: {crossings}, without a named callback: {faults}"]
    for crossing in found.crossings:
        by = f"callback: {crossing.callback}" if crossing.callback else "FAULT"
        lines.append(f"  {crossing.caller} -> {crossing.callee}: {crossing.source} calls {crossing.function} ({by})")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 the direction holds, 1 it does not, 3 the machine failed."""
    parser = argparse.ArgumentParser(prog="xyro lab walk", description="What one page of a default crawl enters.")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    options = parser.parse_args(arguments)
    try:
        found = walk()
    except XyroError as error:
        sys.stderr.write(f"xyro lab walk: {error}\n")
        return 3
    sys.stdout.write(json.dumps(found.report()) + "\n" if options.json else "\n".join([*lines(found), ""]))
    return 1 if found.faults else 0


if __name__ == "__main__":
    sys.exit(main())
