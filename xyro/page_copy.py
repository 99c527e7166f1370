"""Copies of reads as they go on, from the fetcher to the archive (xyro/page_archive.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xyro.page_client import Reply


@dataclass(slots=True, eq=False)
class PageCopy:
    """A read as it goes on: its answer, as soon as there is one."""

    refused: int = 0
    """uses of the page that its robots.txt refuses (wire/uses.py)"""
    reply: Reply | None = None
    html: bytes = b""
    """the body of a page whose text is kept; empty where there is none, or it is too large"""
    charset: str = ""
