"""The answer to one request, before politeness and retry policy are applied to it.

The fetcher fills an Answer while the body arrives; the pool turns it into the PageReport (frozen, checked) that leaves.
"""

from __future__ import annotations

from msgspec import Struct

from xyro.wire.messages import NO_LINKS, Kind, Links


class Answer(Struct):
    """Times are wall-clock seconds since 1970; those of `duration` and `received_at` are monotonic.

    See PageReport for the other fields.
    """

    started: float
    ended: float = 0.0
    duration: float = 0.0
    """from the request to the last byte: what we did with the answer is no time of its server's"""
    status: int = 0
    received_at: float = 0.0
    """moment of the last byte; 0.0: as now"""
    error: str = ""
    """failure kind (xyro/failures.py), empty for a good read, a 304 and a redirect"""
    detail: str = ""
    """one line for the log: never stored, never shown unescaped"""
    vendor: str = ""
    """of a challenge (xyro/challenges.py): who challenges, or what kind of wall it is"""
    retry_after: float = 0.0
    """seconds asked for by Retry-After, already clamped to [0, 1 day]"""
    kind: Kind = Kind.UNKNOWN
    mime: str = ""
    charset: str = ""
    size: int = 0
    truncated: str = ""
    signature: bytes = b""
    skeleton: bytes = b""
    """16 bytes (xyro/skeletons.py), where another URL of the host has just shown the same links"""
    etag: str = ""
    last_modified: str = ""
    location: str = ""
    fresh_for: float = 0.0
    links: Links = NO_LINKS
    noindex: bool = False
    nofollow: bool = False
    hubs: tuple[str, ...] = ()
    topic: str = ""
    address: str = ""
    body: bytes | None = None
    """the whole body, kept only for XML and DTD (it goes on to a loader)"""
    value: float = 1.0
    """share of its importance that the page passes on, by a plug-in (xyro/page_plug_ins.py)"""
    plug_in_faults: tuple[str, ...] = ()
    """what plug-ins failed at, and how"""
    contents: bytes = b""
    """what was kept of it (xyro/page_archive.py: PageContents), where something is"""
    bytes: int = 0
    """received, before decoding"""
    coding: str = "identity"
    """of these bytes (xyro/decode.py: coding_word)"""
