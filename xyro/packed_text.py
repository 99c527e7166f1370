"""The main text of a page as it is stored: packed JSON of its text and Markdown, under the digest of the Markdown."""

from __future__ import annotations

import hashlib
import json
import zlib

import msgspec
from backports import zstd

from xyro.page_text import PageText

LEVEL = 3
"""of Zstandard, for texts: 6 kB in .05 ms, smaller than level 6 of zlib makes them in .2 ms"""
_ZLIB = 0x78
"""first byte of what versions before this one wrote"""


class StoredText(msgspec.Struct, array_like=True, frozen=True):
    """The main text of a page. `packed`: as `unpacked` reads it; `digest`: BLAKE2b-128 of the Markdown."""

    digest: bytes
    size: int
    packed: bytes
    title: str
    language: str
    published: str
    modified: str


def stored_text(found: PageText) -> StoredText:
    """The text of a page as it is stored."""
    packed = msgspec.json.encode({"text": found.text, "markdown": found.markdown})
    return StoredText(
        hashlib.blake2b(found.markdown.encode("utf-8", "replace"), digest_size=16).digest(),
        len(packed), zstd.compress(packed, LEVEL),
        found.title, found.language, found.published, found.modified,
    )  # fmt: skip


def unpacked(packed: bytes) -> dict[str, str]:
    """{"text", "markdown"} of a stored text. ValueError: it is damaged."""
    try:
        plain = zlib.decompress(packed) if packed[:1] == bytes([_ZLIB]) else zstd.decompress(packed)
    except (zlib.error, zstd.ZstdError) as error:
        raise ValueError(str(error)) from error
    found = json.loads(plain)
    return {"text": found["text"], "markdown": found["markdown"]}
