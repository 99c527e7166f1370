"""Rules of robots.txt that one process knows, for the one that reads the hosts next: it need not ask again.

A partition that leaves a node has a file of it in its directory, which goes along when it moves; whoever opens the
partition takes the file. Without one, robots.txt is read anew, as after any other start. Moments are wall clock.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from xyro.failures import DAY
from xyro.robots import Robots, RobotsState

NAME: Final = "robots"
"""file of a partition's directory"""


class KeptRules(Struct, frozen=True, array_like=True):
    """The rules in force for one origin (`RobotsState`), and when its host may be read again."""

    origin: str
    ready_at: float
    """0: at once"""
    rules: tuple[tuple[str, ...], tuple[str, ...], str, float | None, tuple[str, ...], int]
    """`Robots.dump`"""
    fresh_until: float
    kind: str
    failures: int
    since: float
    detail: str

    @classmethod
    def of_state(cls, origin: str, state: RobotsState, ready_at: float, ahead: float) -> KeptRules:
        """ahead: wall clock less the monotonic one, in which ready_at and the state's moments are."""
        since = state.since + ahead if state.failures else 0.0
        ready = max(ready_at + ahead, 0.0)
        until = state.fresh_until + ahead
        return cls(origin, ready, state.rules.dump(), until, state.kind, state.failures, since, state.detail)

    def state(self, ahead: float, now: float, purposes: int) -> RobotsState:
        """The state in monotonic moments; fresh for a day at most, for a clock may have been set back. now: wall
        clock."""
        until, rules = min(self.fresh_until, now + DAY) - ahead, Robots.of_dump(self.rules, purposes)
        since = self.since - ahead if self.failures else 0.0
        return RobotsState(rules, until, self.kind, self.failures, since, self.detail)


class RulesFile(Struct, frozen=True, array_like=True):
    """The file."""

    token: str
    """the agent that the rules are for"""
    origins: list[KeptRules]

    def write(self, directory: Path) -> None:
        """Leave it in a partition's directory. Where there is no room, robots.txt is read anew."""
        with contextlib.suppress(OSError):
            (directory / NAME).write_bytes(msgspec.msgpack.encode(self))

    @classmethod
    def take(cls, directory: Path, token: str) -> list[KeptRules]:
        """Take the rules that lie there; none where they are another agent's, or cannot be read."""
        path = directory / NAME
        try:
            found = msgspec.msgpack.decode(path.read_bytes(), type=cls)
            path.unlink()
        except (OSError, msgspec.MsgspecError):
            return []
        return found.origins if found.token == token else []
