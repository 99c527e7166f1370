"""Gives out what the nodes of a cluster keep of pages, as `ContentsView` does for one directory.

Each node keeps what it has read itself. Where a partition has moved, older versions of its pages are on the nodes that
had it before: those of all nodes are put in order and numbered anew, and the latest text of a page is the last one that
any node has.
"""

from __future__ import annotations

import heapq
import math
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any, Protocol

import msgspec

from xyro.contents_index import TextRow
from xyro.plugins.contents.contents_view import PageVersion, chosen_version, described
from xyro.wire.errors import InputError, MachineError
from xyro.wire.ids import PageId, owner_of

Row = dict[str, Any]
Keys = dict[str, Callable[[Row], Any]]
TEXT_KEYS: Keys = {
    "url": lambda row: row["url"],
    "importance": lambda row: (-row["importance"], row["url"]),
    "date": lambda row: (row["read_at"], row["url"]),
}
"""the order in which a node gives out texts, by the name of the order"""
WARC_KEYS: Keys = {
    "url": lambda row: row["file"],
    "importance": lambda row: -row["importance"],
    "date": lambda row: row["first"],
}


class KeepingNode(Protocol):
    """A node that answers for itself (routes.py)."""

    def get(self, path: str, **query: object) -> Any: ...
    def body(self, path: str, **query: object) -> tuple[bytes, Mapping[str, str]]: ...
    def lines(self, path: str, **query: object) -> Iterator[Any]: ...


@dataclass(frozen=True, slots=True)
class NodeVersion(PageVersion):
    """A version of a page. `text.number` is its number on the node that keeps it."""

    node: int
    size: int | None


class ClusterContents:
    """The contents of all nodes. MachineError: one does not answer."""

    def __init__(self, nodes: Mapping[int, KeepingNode], owner: Callable[[int], int], partial: bool = False) -> None:
        """nodes: all of them, by number. owner: the node that has a partition. partial: do without nodes that do not
        answer, but not for a page whose own node is one of these. InputError: nothing is kept on any."""
        self._owner = owner
        self._missing: dict[int, str] = {}
        partitions: dict[int, list[int]] = {}
        for number, node in nodes.items():
            try:
                partitions[number] = node.get("/contents/partitions")
            except MachineError as error:
                if not partial:
                    raise
                self._missing[number] = str(error).partition(";")[0]
        self._nodes = {number: nodes[number] for number, found in partitions.items() if found}
        self._moved = {q for number, found in partitions.items() for q in found if owner(q) != number}
        if not self._nodes:
            self._require_all()
            raise InputError("no node keeps pages' contents; nodes that run with --text or --warc ([keep]) do")

    @property
    def missing(self) -> list[str]:
        """A sentence for each node that does not answer, and is done without."""
        return list(self._missing.values())

    def _require_all(self) -> None:
        if self._missing:
            raise MachineError("; ".join(self.missing))

    def __enter__(self) -> ClusterContents:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is held open."""

    def page(self, url: str) -> PageId:
        """The id of a page of which something is kept. `url`: canonical."""
        for node in self._nodes.values():
            if (found := node.get("/contents/page", url=url)) is not None:
                if self._owner(owner_of(PageId(found))) in self._missing:
                    break
                return PageId(found)
        self._require_all()
        raise InputError(f"{url}: no node keeps anything of it; it was not read since [keep] is on, or is no page")

    def is_empty(self, _table: str) -> bool:
        """Some of it is kept: nodes that keep nothing are left out."""
        return False

    def versions(self, page: PageId) -> list[NodeVersion]:
        """The versions of all nodes, oldest first."""
        found = []
        for number, node in self._nodes.items():
            for time, text, size in node.get("/contents/versions", page=page):
                found.append((time, number, msgspec.convert(text, TextRow | None), size))
        found.sort(key=lambda each: each[0])
        distinct: list[NodeVersion] = []
        for time, number, text, size in found:
            before = distinct[-1].text if distinct else None
            if text is None or before is None or text.digest != before.digest:
                distinct.append(NodeVersion(len(distinct) + 1, time, text, number, size))
        return distinct

    def version(self, page: PageId, number: int | None, until: float = math.inf) -> NodeVersion:
        """The one of this number, or the latest until a moment. InputError: there is no such one."""
        return chosen_version(self.versions(page), number, until)

    def text(self, version: PageVersion) -> dict[str, str]:
        """{"text", "markdown"} of a version of ours. InputError: its text is not kept."""
        assert isinstance(version, NodeVersion), "of `version` or `versions`"
        if version.text is None:
            raise InputError("its text is not kept; [keep] text = true keeps it from the next read on")
        text: dict[str, str] = self._nodes[version.node].get(
            "/contents/text", page=version.text.page, version=version.text.number
        )
        return text

    def html(self, page: PageId, until: float) -> bytes:
        """The body of the last answer that was read until then; decoded."""
        found = [(time, number) for number in self._nodes for time in self._answers(number, page)["bodies"]]
        time, number = max((each for each in found if each[0] <= until), default=(until, next(iter(self._nodes))))
        return self._nodes[number].body("/contents/html", page=page, time=repr(time))[0]

    def describe(self, page: PageId) -> Iterator[Row]:
        """Rows of `page versions`."""
        versions = self.versions(page)
        sizes = {version.text.digest: version.size for version in versions if version.text}
        times = {time for number in self._nodes for time in self._answers(number, page)["all"]}
        found = (node.get("/contents/stale", page=page) for node in self._nodes.values())
        _, stale, gone = max(found, key=itemgetter(0))
        return described(versions, lambda text: sizes[text.digest], times, stale, gone)

    def _answers(self, node: int, page: PageId) -> dict[str, list[float]]:
        found: dict[str, list[float]] = self._nodes[node].get("/contents/answers", page=page)
        return found

    @cached_property
    def _latest(self) -> dict[int, tuple[float, int]]:
        """Page of a partition that has moved -> (time of its latest text, node that keeps it)."""
        found: dict[int, tuple[float, int]] = {}
        for partition in self._moved:
            for number, node in self._nodes.items():
                for page, time in node.lines("/contents/times", partition=partition):
                    found[page] = max(found.get(page, (0.0, 0)), (time, number))
        return found

    def _keeper(self, page: PageId) -> int:
        """The node that has the latest text of a page, if any has."""
        return self._latest[page][1] if page in self._latest else self._owner(owner_of(page))

    def latest(self, page: PageId) -> tuple[TextRow, bytes] | None:
        """The latest text of a page, and how it is packed; None where none is kept."""
        node = self._nodes.get(self._keeper(page))
        found = node.get("/contents/latest", page=page) if node is not None else None
        return found and (msgspec.convert(found[0], TextRow), b64decode(found[1]))

    def texts(self, by: str, since: float, least: float) -> Iterator[Row]:
        """The latest text of each page: of texts read first since then, of pages at least so important."""

        def rows_of(number: int, node: KeepingNode) -> Iterator[Row]:
            rows = node.lines("/contents/texts", by=by, since=since, least=least)
            return (row for row in rows if self._keeper(PageId(row["id"])) == number)

        return heapq.merge(*(rows_of(number, node) for number, node in self._nodes.items()), key=TEXT_KEYS[by])

    def warc(self, by: str, since: float, least: float) -> Iterator[Row]:
        """The WARC files of all nodes, each with the number of the node on whose machine it is."""

        def rows_of(number: int, node: KeepingNode) -> Iterator[Row]:
            return ({**row, "node": number} for row in node.lines("/contents/warc", by=by, since=since, least=least))

        return heapq.merge(*(rows_of(number, node) for number, node in self._nodes.items()), key=WARC_KEYS[by])
