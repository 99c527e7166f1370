"""The parts that documents of the computed web need beyond their DTD: an external entity on some host, in all ways.

    ok      an entity                                   gone   404
    slow    an entity, after Shape.slow seconds         loop   redirects to another one, which redirects back
    moved   redirects to an `ok` one                    self   an entity that contains itself
    nest    an entity that contains an `ok` one         file   not on the web: file:///etc/hostname

`Shape.parts` is the share of documents that need one; parts are few, and many documents share each. They are no pages
of the web: not linked, not counted, not in its truth, except in `error_of`.
"""

from __future__ import annotations

import enum
import re

from xyro.lab.web.chance import mix, unit
from xyro.lab.web.prose import prose
from xyro.lab.web.web import Web

_DRAW, _WAY, _WHICH, _WORDS = 501, 502, 503, 504
"""keys that keep the draws of different purposes apart"""
PARTS = 24
"""parts of each way"""
MIME = "application/xml-external-parsed-entity"
_PATH = re.compile(r"/part/(ok|slow|moved|nest|gone|loop|self)-(\d{1,3})\.ent")


class Way(enum.Enum):
    """The way in which a part answers, as the table above has it."""

    OK = "ok"
    SLOW = "slow"
    MOVED = "moved"
    NEST = "nest"
    GONE = "gone"
    LOOP = "loop"
    SELF = "self"
    FILE = "file"


ERRORS = {Way.GONE: "missing-part", Way.LOOP: "refused-part", Way.SELF: "bad-part", Way.FILE: "refused-part"}
"""what a loader must say of a document with such a part; nothing of the others"""
_WAYS = (*(Way.SLOW,) * 14, *Way)


def way_of(web: Web, page: int) -> Way | None:
    """Return the way of the part that a document needs; None: it needs nothing but its DTD."""
    if unit(web.shape.seed, page, _DRAW) >= web.shape.parts:
        return None
    way: Way = _WAYS[mix(web.shape.seed, page, _WAY) % len(_WAYS)]
    return way


def error_of(web: Web, page: int) -> str:
    """Return the error of loading a document; '' where it is loaded with all that it needs."""
    way = way_of(web, page)
    return ERRORS.get(way, "") if way else ""


def name_of(web: Web, page: int) -> str:
    """System identifier of a document's part; empty where it needs none."""
    way = way_of(web, page)
    if way is None:
        return ""
    return part_url(web, way, mix(web.shape.seed, page, _WHICH) % PARTS)


def part_url(web: Web, way: Way, number: int) -> str:
    """Return the URL of a part."""
    if way is Way.FILE:
        return "file:///etc/hostname"
    host = mix(web.shape.seed, number, _WHICH, len(way.value)) % web.shape.hosts
    return f"{web.origin_of(host)}/part/{way.value}-{number}.ent"


def find(web: Web, host: int, path: str) -> tuple[Way, int] | None:
    """The part at a path of a host."""
    match = _PATH.fullmatch(path)
    if match is None:
        return None
    way, number = Way(match[1]), int(match[2])
    there = number < PARTS and part_url(web, way, number) == web.origin_of(host) + path
    return (way, number) if there else None


def location(web: Web, way: Way, number: int) -> str:
    """Return the URL that a part redirects to; empty where it does not redirect."""
    if way is Way.MOVED:
        return part_url(web, Way.OK, number)
    return part_url(web, Way.LOOP, number ^ 1) if way is Way.LOOP else ""


def text(web: Web, way: Way, number: int) -> str:
    """The entity."""
    sentences = " ".join(prose(web.shape.seed).sentences(160, number, _WORDS))
    inner = ""
    if way is Way.NEST:  # a parsed entity cannot declare: its documents do, under this name
        inner = "&inner;"
    elif way is Way.SELF:
        inner = "&chapter;"
    return f'<?xml version="1.0" encoding="UTF-8"?><para>{sentences}</para>{inner}\n'


def subset(web: Web, page: int) -> str:
    """Internal DTD subset of a document that needs a part; empty where it needs none."""
    way, name = way_of(web, page), name_of(web, page)
    if not name:
        return ""
    inner = ""
    if way is Way.NEST:
        inner = f'<!ENTITY inner SYSTEM "{part_url(web, Way.OK, mix(web.shape.seed, page, _WHICH) % PARTS)}">'
    return f' [<!ENTITY chapter SYSTEM "{name}">{inner}]'
