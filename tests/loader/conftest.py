"""Fixtures of the loader's tests: one page, one reading, and evidence that nothing was opened or contacted."""

from __future__ import annotations

import ctypes
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from xyro.loader.intake import Intake
from xyro.wire.messages import Kind, LoadReport, XmlPage

NOW = 1_700_000_000.0


@pytest.fixture
def page() -> Callable[..., XmlPage]:
    def make(body: str | bytes, url: str = "http://h.test/d/doc.xml", **fields: object) -> XmlPage:
        data = body.encode() if isinstance(body, str) else body
        row: dict[str, object] = {"page": 7, "epoch": 1, "read_at": NOW, "kind": Kind.XML, "mime": "text/xml"}
        return XmlPage(**{**row, "charset": "", "url": url, "body": data, **fields})  # type: ignore[arg-type]

    return make


@pytest.fixture
def load(page: Callable[..., XmlPage]) -> Callable[..., LoadReport]:
    """The report of one document, taken by a fresh intake."""

    def run(
        body: str | bytes, url: str = "http://h.test/d/doc.xml", *, named: bool = False, **fields: object
    ) -> LoadReport:
        reports = Intake().take(page(body, url, **fields), NOW, named=named)
        assert len(reports) == 1
        return reports[0]

    return run


class Watch:
    """inotify on one directory: which of its files were opened since the last look."""

    _OPENED = 0x20

    def __init__(self, directory: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd = libc.inotify_init1(os.O_NONBLOCK)
        assert self._fd >= 0
        assert libc.inotify_add_watch(self._fd, os.fsencode(directory), self._OPENED) >= 0

    def opened(self) -> bool:
        try:
            return bool(os.read(self._fd, 65_536))
        except BlockingIOError:
            return False

    def close(self) -> None:
        os.close(self._fd)


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Watch]:
    watching = Watch(tmp_path)
    yield watching
    watching.close()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A loopback listener that never answers: whoever connects stays in its backlog."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server
