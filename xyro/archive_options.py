"""Options of what is kept of each answer, as they go to a reader process."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class ArchiveOptions(Struct, frozen=True, kw_only=True):
    """Options of a reader that keeps contents. `directory`: where, made by the node before the first read."""

    directory: str
    crawl: str
    node: str
    """words of the file names"""
    warc: bool
    text: bool
    extractor: str
    """of main texts (text_libraries.py)"""
    file_bytes: int
    """a WARC file of so many bytes is closed"""
    limit: int
    """bytes of an answer that are recorded"""
    full: Literal["skip", "wait"] = "skip"
    user_agent: str = ""
    contact: str = ""
    private: tuple[str, ...] = ()
    """names of request headers whose values are not kept, in lower case"""
    bytes_signature: bool = True
    """a page's signature is that of its bytes"""
