"""Hooks are the points of a turn at which extensions take part; a default crawl registers nothing and calls nothing.

An extension is a callable that receives a finished Frontier and registers callables with its `hooks`. It may
register them when the frontier is made, or within a later turn, when it first has something to do: the turn asks
`if hooks.born:` each time, so a feature that has nothing to do costs nothing. The frontier imports no extension; what
an extension returned is found by its type (`Hooks.extension`).

    hook         called in a turn                                     users
    recover      when the stored state has been read                  publications, subscriptions, focus
    renew        once, before anything else of the next turn          focus (its settings changed)
    born         when pages are minted, before they hold cash         focus, targets (subscriptions, clusters)
    judged       when a page enters or leaves the scope               focus
    visited      when reports are applied, before links become pages  focus, WebSub
    linked       when links have become pages, before cash is spent   focus
    importance   before pages are dated: what stands for importance   rank (guide = "interest")
    basis        while a page is dated: importance and change rate    clusters
    settled      when pages are dated, before orders are chosen       publications, subscriptions, clusters, focus
    set_aside    when an answer is none of its page's                 metrics
    deadlines    when a page is about to be ordered                   publications, subscriptions
    limits       before orders are made: most reads that may be       bounded crawls of a cluster
    alarms       outside turns: when a turn is wanted                 bounded crawls of a cluster
    why          outside turns: sentences for `xyro why`              publications, subscriptions, clusters

`stored` and `dumps` keep an extension's own state with the frontier's: see `Hooks.keep`. An extension knows its own
partition alone: what concerns another one goes there as a command (`Hooks.post`), and `status` has what it adds to the
partition's status (service/views/partition_status.py), where those of all partitions come together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from xyro.wire.commands import Command
from xyro.wire.ids import LocalPage, PageId
from xyro.wire.messages import LoadReport

if TYPE_CHECKING:
    from xyro.frontier.batch import Settled
    from xyro.frontier.ledger import Spending

_E = TypeVar("_E")
Ids = NDArray[np.int64]
_OLD_KEYS = {"publications": "publications", "clusters": "clusters", "readers": "subscriptions"}
"""below "promises" in a frontier's state of before there were hooks -> below "extensions" now"""


class Hooks:
    """The extensions of one partition. Callables of one hook are called in the order in which they registered."""

    def __init__(self) -> None:
        self.recover: list[Callable[[], None]] = []
        """The columns and rows are as of the last commit, `stored` is filled."""
        self.renew: list[Callable[[], None]] = []
        """Brings pages in line with settings that changed while the crawl was stopped; called once, then removed."""
        self.born: list[Callable[[LocalPage, Sequence[str]], None]] = []
        """(first local page number, URLs): the new pages have consecutive numbers."""
        self.judged: list[Callable[[LocalPage, str], None]] = []
        """(local page number, URL)"""
        self.visited: list[Callable[[Sequence[Settled], Iterable[LoadReport]], None]] = []
        """(orders settled in this turn, what the loader reported in this turn)"""
        self.linked: list[Callable[[Spending, int], None]] = []
        """(who spends in this turn over what, known pages before: those with higher numbers were met by these links)"""
        self.importance: list[Callable[[Ids, list[float], float], list[float]]] = []
        """(local pages, their importance, now) -> the numbers to date them by"""
        self.basis: list[Callable[[PageId, float, float], tuple[float, float]]] = []
        """(page id, importance, change rate) -> those to date the page by"""
        self.settled: list[Callable[[Sequence[Settled], float], None]] = []
        """(orders settled in this turn, now)"""
        self.set_aside: list[Callable[[Settled, float], None]] = []
        """(order whose answer is none of its page's: a challenge, or one that is doubted; now)"""
        self.deadlines: list[Callable[[LocalPage], float]] = []
        """local page number -> time by which it was promised to be read, seconds since 1970; 0 = it was not"""
        self.limits: list[Callable[[float], int]] = []
        """now -> reads that may be ordered"""
        self.alarms: list[Callable[[], float]] = []
        """-> wall clock, seconds: a turn is wanted then, if no message brings one; infinite: none is"""
        self.why: list[Callable[[LocalPage, float], list[str]]] = []
        """(local page number, now) -> sentences that explain the page's next read"""
        self.stored: dict[str, Any] = {}
        """State of extensions, by their key, as it was stored last; kept as it is while an extension is off."""
        self.dumps: dict[str, Callable[[], Any]] = {}
        self.status: dict[str, Callable[[float], Any]] = {}
        """Figures of an extension at a moment, by its key: plain values that MessagePack can write."""
        self.posts: list[tuple[int, Command]] = []
        """Commands to partitions that leave with the next commit group."""
        self._extensions: list[object] = []

    def add(self, extension: object) -> None:
        """Remember what an extension made for this partition."""
        self._extensions.append(extension)

    def extension(self, kind: type[_E]) -> _E | None:
        """The object of this type that an extension made; None where there is none."""
        return next((found for found in self._extensions if isinstance(found, kind)), None)

    def guided(self, pages: Ids, importance: NDArray[np.float64], now: float) -> NDArray[np.float64]:
        """The numbers to date pages of this importance by: float64[n]."""
        if not self.importance:
            return importance
        found: list[float] = importance.tolist()
        for guide in self.importance:
            found = guide(pages, found, now)
        return np.array(found, np.float64)

    def post(self, partition: int, command: Command) -> None:
        """Send a command to a partition as soon as the next commit group of this one is on disk.

        A crash may lose it: whoever depends on it tells it anew after a restart.
        """
        self.posts.append((partition, command))

    def take_posts(self) -> list[tuple[int, Command]]:
        """Take the commands that leave with this commit group."""
        posts, self.posts = self.posts, []
        return posts

    def keep(self, key: str, dump: Callable[[], Any]) -> None:
        """Store what `dump` returns, which MessagePack can write, under this key with every commit from now on."""
        self.dumps[key] = dump

    def load(self, state: Mapping[str, Any]) -> None:
        """Take the extensions' state out of a frontier's."""
        before = state.get("promises", {})
        self.stored.update({key: before[old] for old, key in _OLD_KEYS.items() if old in before})
        if "focus" in state:
            self.stored["focus"] = state["focus"]
        self.stored.update(state.get("extensions", {}))

    def dump(self) -> dict[str, Any]:
        """The state of all extensions, of those that are off, too."""
        self.stored = {**self.stored, **{key: dump() for key, dump in self.dumps.items()}}
        return self.stored

    def deadline(self, page: LocalPage) -> float:
        """The earliest time by which the page was promised to be read, seconds since 1970; 0 = it was not."""
        dates = [when for deadline in self.deadlines if (when := deadline(page))]
        return min(dates, default=0.0)
