"""The services of a node are what it offers to plug-ins; a plug-in is what one adds to a node.

A room above chooses the plug-ins and hands them to the reference wiring (node.py) as a PluginSet. The node builds its
own parts first, then makes the plug-ins of each of its partitions; it imports none. A plug-in keeps its state with its
partition, and has to do with others by messages: `services.commands` from its loop, `hooks.post` from a turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, field

from xyro.wire.messages import PageReport, Priority, Submit

if TYPE_CHECKING:  # the child processes of plug-ins import this, and none of what it names
    from xyro.answer import Answer
    from xyro.configs.schema import Settings
    from xyro.frontier.frontier import Extension, Frontier
    from xyro.frontier.scope import Scope
    from xyro.guard import Guard
    from xyro.posts import Posted
    from xyro.service.node.command_sender import CommandSender
    from xyro.service.node.page_questions import PageQuestions
    from xyro.service.node.side_reads import SideReads
    from xyro.wire.clock import Clock


class Services(Struct, eq=False):
    """The parts of a node that its plug-ins may use."""

    settings_now: Callable[[], Settings]
    """the settings as they are now: SIGHUP replaces them"""
    clock: Clock
    scope: Scope
    commands: CommandSender
    """changes of any partition"""
    pages: PageQuestions
    """what any partition knows of its pages"""
    side_reads: SideReads
    post: Callable[[str, bytes, Mapping[str, str]], Awaitable[Posted]]
    """an HTTP POST (URL, body, headers) in the turn of its host, through the guard"""
    wake: Callable[[], None]
    """a gate may be open again"""
    give_back: Callable[[int], None]
    """the orders of a partition (its number) whose reads have not begun go back to it"""
    answered: list[Callable[[PageReport, Answer], None]] = field(default_factory=list)
    """called with each report of a page and its answer before the report is delivered; they must not wait"""
    followed: list[Callable[[], None]] = field(default_factory=list)
    """called when the settings have become others"""
    gates: list[Callable[[], bool]] = field(default_factory=list)
    """asked before each read: none begins while one says no"""
    barriers: list[Callable[[], None]] = field(default_factory=list)
    """called before each commit group is written, in its writer's thread: what they write is on disk before it"""
    endings: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    """what a crawl that ends by itself waits for, for a few seconds"""
    closers: list[Callable[[], None]] = field(default_factory=list)
    """called once the last commit group is on disk and the readers are closed; the last first"""
    unindexed: list[Callable[[], Set[str]]] = field(default_factory=list)
    """name the files of kept contents of which something waits to be indexed"""
    failed_proxies: dict[str, dict[str, Any]] = field(default_factory=dict)
    """proxies that lead nowhere now, by URL: {"failures", "error"}"""
    plug_in_faults: int = 0
    """fields of pages of this run that a plug-in of a package failed at, and values that were cut to 0 to 1"""
    unstored: Counter[str] = field(default_factory=Counter)
    """answers of this run of which something could not be stored as [keep] asks, by what failed"""
    textless: int = 0
    """reads of HTML of this run whose text was wanted, and could not be found"""

    @property
    def settings(self) -> Settings:
        """The settings as they are now."""
        return self.settings_now()

    async def submit(self, urls: Iterable[str], priority: Priority = Priority.ORDERED, *, seed: bool = True) -> None:
        """Hand canonical URLs over; return when they are on disk. `seed`: they widen the scope."""
        await self.commands.submit(Submit(tuple(urls), priority, seed))


class Plugin(Protocol):
    """A feature of a running crawl in one partition. It registers with the partition's hooks when it is made."""

    async def run(self) -> None:
        """Work until cancelled, or return at once. What it raises ends the crawl."""


class PluginSet(Struct, frozen=True):
    """The plug-ins of a crawl: the wiring makes those of each partition, and hands them that partition alone."""

    extensions: Callable[[Settings], Sequence[Extension]] = lambda settings: ()
    """of a partition, running or stopped, from the settings"""
    plugins: Callable[[Frontier, Services], Sequence[Plugin]] = lambda frontier, services: ()
    """of a running partition, from its frontier and the node's services"""
    check: Callable[[Settings, Guard], None] = lambda settings, guard: None
    """InputError: the settings ask for what cannot be done here. Called before the data directory is made"""


NO_PLUGINS = PluginSet()
