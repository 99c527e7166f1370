"""A data directory for a program: `xyro.open("xyro-data")`, whether a process works on it or not."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from xyro.library.crawled_pages import wait_for_ends
from xyro.metadata.directories import is_locked
from xyro.plugins import extensions
from xyro.plugins.changes.change_filter import change_filter
from xyro.plugins.changes.change_stream import ChangeSource, read_all
from xyro.plugins.view_extensions import VIEW_EXTENSIONS
from xyro.service.node.run_file import Remote
from xyro.service.node.stopped import open_stopped
from xyro.service.views.why import why
from xyro.wire.clock import SystemClock
from xyro.wire.errors import InputError, MachineError
from xyro.wire.urls import canonical

if TYPE_CHECKING:
    from types import TracebackType

    import numpy as np
    import pyarrow
    from numpy.typing import NDArray

    from xyro.service.views.views import Views

Row = dict[str, Any]
LOCK = "p0000/store/OWNER"
"""what a process that works on a directory has locked"""
PATIENCE, TICK = 30.0, 0.05
"""seconds that one which starts or ends is waited for; seconds between two looks"""
TOP_ORDERS = ("importance", "read", "cash", "stale", "rising")


class CrawlDirectory:
    """Rows and answers as the command prints them with --json, each of one commit; nothing stays open between two."""

    def __init__(self, data: str | Path = "xyro-data") -> None:
        """InputError: there is no such directory."""
        self.path = Path(data)
        if not self.path.is_dir():
            raise InputError(f"{self.path}: no such data directory; `xyro.crawl` makes one")
        self._clock = SystemClock()
        self._open: weakref.WeakSet[Generator[Row, None, None]] = weakref.WeakSet()
        """rows that somebody may not have read to their end"""

    def __enter__(self) -> CrawlDirectory:
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of what an iterator over rows, not read to its end, still holds."""
        for rows in list(self._open):
            rows.close()

    async def __aenter__(self) -> CrawlDirectory:
        await asyncio.to_thread(wait_for_ends, self.path)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """As `__exit__`."""
        self.__exit__()

    def status(self) -> Row:
        """`xyro status`"""

        def local() -> Row:
            with open_stopped(self.path, extensions) as stopped:
                return stopped.stopped_status(VIEW_EXTENSIONS, self._clock.time())

        return dict(self._answer("/status", local))

    def top(self, count: int = 20, by: str = "importance") -> list[Row]:
        """`xyro top`: by importance (of all pages, or of those "read"), cash, stale or rising. ValueError: another
        order, or a negative count."""
        if by not in TOP_ORDERS:
            raise ValueError(f"top: by={by!r}: one of {', '.join(TOP_ORDERS)}")
        if count < 0:
            raise ValueError(f"top: count={count}: 0 or more rows")

        def local(views: Views) -> list[Row]:
            return views.top(count, by, self._clock.time())

        return list(self._ask("/top", local, n=count, by=by))

    def why(self, url: str) -> Row:
        """`xyro why`: what is known of a URL. InputError: it is none."""

        def local(views: Views) -> Row:
            return why(views, canonical(url, fold_slashes=views.scope.fold_slashes), self._clock.time())

        return dict(self._ask("/why", local, url=canonical(url)))

    def pages(self) -> Iterator[Row]:
        """`xyro export pages`"""
        return self._export("pages")

    @overload
    def links(self, form: Literal["rows"] = "rows") -> Iterator[Row]: ...

    @overload
    def links(self, form: Literal["numpy"]) -> NDArray[np.int64]: ...

    @overload
    def links(self, form: Literal["arrow"]) -> pyarrow.Table: ...

    def links(self, form: str = "rows") -> Any:
        """`xyro export links`: rows; "numpy": int64[n, 2], source and target by id (-1: not known); "arrow": a table
        with URLs, as dictionaries, and `stale`, too (needs the extra `parquet`)."""
        rows = self._export("links")
        if form == "rows":
            return rows
        from xyro.library.link_arrays import link_pairs, link_table

        if form not in ("numpy", "arrow"):
            raise InputError(f'links({form!r}): one of "rows", "numpy", "arrow"')
        return link_pairs(rows) if form == "numpy" else link_table(rows)

    def changes(self, since: str = "", where: str = "") -> Iterator[Row]:
        """`xyro changes`: behind a cursor, or from a time on."""
        if (remote := self._remote()) is not None:
            yield from remote.lines("/changes", since=since, where=where)
            return
        with self._views() as views:
            source = ChangeSource.of_stopped(views)
            if source is None:
                raise InputError(f"{self.path}: records no changes: xyro.crawl(..., changes=True) does, from then on")
            lines = _ready(read_all(source, since, change_filter(where), SystemClock().time()))
        yield from lines

    def submit(self, *urls: str) -> Row:
        """`xyro submit`, to the process that works there. InputError: there is none."""
        remote = self._remote()
        if remote is None:
            raise InputError(f"{self.path}: no process works on it; `xyro serve` does")
        return dict(remote.post("/submit", {"urls": list(urls), "priority": "ordered"}))

    def _remote(self) -> Remote | None:
        """The process that works on the directory, this one among them; one that starts or ends is waited for."""
        wait_for_ends(self.path)
        for _ in range(round(PATIENCE / TICK)):
            if (remote := Remote.find(self.path)) is not None or not is_locked(self.path / LOCK):
                return remote
            threading.Event().wait(TICK)
        return None

    def _ask(self, path: str, views: Callable[[Views], Any], **query: object) -> Any:
        def local() -> Any:
            with self._views() as found:
                return views(found)

        return self._answer(path, local, **query)

    def _answer(self, path: str, local: Callable[[], Any], **query: object) -> Any:
        """The answer of the process that works there; of `local`, where none does, or where it ends meanwhile."""
        if (remote := self._remote()) is not None:
            try:
                return remote.get(path, **query)
            except MachineError:
                if self._remote() is not None:
                    raise
        return local()

    def _export(self, table: str) -> Iterator[Row]:
        """Rows that open the directory when the first is asked for, and let go behind the last, or when dropped."""
        rows = self._rows(table)
        self._open.add(rows)
        return rows

    def _rows(self, table: str) -> Generator[Row, None, None]:
        if (remote := self._remote()) is not None:
            yield from remote.lines(f"/export/{table}")
            return
        with self._views() as views:
            yield from getattr(views, table)()

    @contextlib.contextmanager
    def _views(self) -> Iterator[Views]:
        with open_stopped(self.path, extensions) as stopped, stopped.views(self._clock.time()) as views:
            yield views


def _ready(work: Any) -> Any:
    """The result of a coroutine that waits for nothing: a program's event loop may run already."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("the stored changes of a stopped crawl wait for nothing")
