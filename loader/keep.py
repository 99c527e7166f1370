"""From a loaded body to the warehouse's Document, with the judgement of the validator.

Kept are the formats asked for (FORMATS: everything but sitemaps, which are lists of URLs and change all the time);
bodies that are not well-formed never are. `entity`: a part that is no document by itself.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Collection

from xyro.loader.needs import Supply
from xyro.loader.parse import ParseLimits, is_known, pieces
from xyro.loader.validate import Judged, Validator
from xyro.wire.messages import Document, Kind, Verdict, XmlPage

FORMATS = ("xml", "xhtml", "dtd", "entity", "rss", "atom", "jsonfeed")
PLAIN = ("jsonfeed", "sitemap")
"""formats that may be no XML at all"""
OFF = "not validated: [loader] validate = false"
_LEVEL = 1
"""of zlib: 20 kB of DocBook in 0.15 ms to a fifth; level 6 takes three times as long for 15 % less"""


class Keeper:
    """`formats`: what is kept (none: nothing is judged either); `validator`: None = it is kept unvalidated."""

    def __init__(self, formats: Collection[str], validator: Validator | None, limits: ParseLimits) -> None:
        self._formats = frozenset(formats)
        self._validator = validator
        self._limits = limits

    def keeps(self, form: str) -> bool:
        return form in self._formats

    def judge(self, page: XmlPage, form: str, supply: Supply) -> Judged:
        """Validate a body whose streaming read went well with the same supply."""
        if form == "entity" or (form in PLAIN and not supply.outline.root):
            return Judged(Verdict.NO_GRAMMAR, parts=tuple(supply.asked))
        if self._validator is None:
            return _unjudged(form, supply)
        plain = b"".join(pieces(page.body, self._limits))
        if form == "dtd":
            return self._validator.judge_dtd(plain, page.charset, supply)
        return self._validator.judge(plain, page.charset, supply)


def _unjudged(form: str, supply: Supply) -> Judged:
    """A document that was not validated, as the streaming read saw it."""
    seen, asked = supply.outline, tuple(supply.asked)
    grammars = asked[:1] if seen.doctype and seen.doctype[1] and form != "dtd" else ()
    shape = (seen.root, seen.doctype[0] if seen.doctype else "", grammars, asked[len(grammars) :])
    named = bool(grammars or seen.schemas or seen.models)
    counts = (seen.depth, seen.elements, len(seen.tags)) if form != "dtd" else (0, 0, 0)
    return Judged(Verdict.UNVALIDATED if named else Verdict.NO_GRAMMAR, (OFF,) if named else (), *shape, *counts)


def document_of(page: XmlPage, packed: bytes | None, form: str, judged: Judged) -> Document:
    """`packed`: the body by zlib, where it was packed before."""
    return Document(
        page=page.page, url=page.url, epoch=page.epoch, read_at=page.read_at,
        kind=Kind.DTD if form == "dtd" else Kind.XML,
        digest=hashlib.blake2b(page.body, digest_size=16).digest(),
        packed=pack(page.body) if packed is None else packed,
        size=len(page.body),
        verdict=judged.verdict, problems=judged.problems, format=form, root=judged.root, public_id=judged.public_id,
        grammars=judged.grammars, parts=judged.parts, depth=judged.depth, elements=judged.elements, tags=judged.tags,
        mime=page.mime, charset=page.charset if is_known(page.charset) else "",
    )  # fmt: skip


def pack(body: bytes) -> bytes:
    """A body as the warehouse keeps it."""
    return zlib.compress(body, _LEVEL)
