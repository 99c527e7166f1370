"""Copies of reads as they go on, from the fetcher to the archive (xyro/page_archive.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from xyro.page_client import Reply
    from xyro.page_text import PageText


class PageCopy(Struct, eq=False):
    """A read as it goes on: its answer, as soon as there is one."""

    refused: int = 0
    """uses of the page that its robots.txt refuses (wire/uses.py)"""
    reply: Reply | None = None
    body: bytes = b""
    """of a page whose text is kept, or that plug-ins look at; empty where there is none, or it is too large"""
    charset: str = ""
    """of HTML: Python's name of its encoding"""
    long: bool = False
    """its body is longer than most: few reads at a time may have such a one"""
    parsed: PageText | None = None
    """its text by a plug-in"""
