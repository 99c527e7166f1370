"""Check the XML documents of a crawl that was killed while thousands of them waited for their parts.

The truth is the computed web's: which document can be loaded with all that it needs, and what each body is. Pure: rows
of the exports in, violations out.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from xyro.lab.web.document_parts import error_of
from xyro.lab.web.places import Doc
from xyro.lab.web.render import render
from xyro.lab.web.web import Web

Row = Mapping[str, Any]
SHAPE = {"xml": 0.7, "parts": 1.0}
"""seven in ten pages are documents; all of these need an entity beside their DTD, two in three a slow one"""
PAGES, SECONDS = 8_000, 80.0
"""of a crawl in which thousands of documents wait at a time"""
_STORED_KINDS = (Doc.XML, Doc.DTD)


def violations(web: Web, pages: Sequence[Row], documents: Sequence[Row], waiting: int) -> Iterator[str]:
    """`pages`, `documents`: exports of the killed crawl at its end; `waiting`: loads that still wait then."""
    if waiting:
        yield f"{waiting} loads still wait at the end"
    read = {row["url"]: row for row in pages if row["reads"]}
    stored = {row["url"]: row for row in documents}
    for url, times in Counter(row["url"] for row in documents).items():
        if times > 1:
            yield f"{url} stands {times} times among the documents"
    for page in web.places.of_kind(*_STORED_KINDS).tolist():
        url = web.url(page)
        if url in read:
            yield from _stored_faults(web, page, read[url], stored.get(url))


def _stored_faults(web: Web, page: int, row: Row, document: Row | None) -> Iterator[str]:
    """Report documents that were not loaded as the truth says, or not stored once, byte for byte."""
    url, error = web.url(page), error_of(web, page) if web.kind(page) is Doc.XML else ""
    if (row["error"] or "") != error:
        yield f"{url}: {row['error'] or 'no error'}, the truth is {error or 'that it can be loaded'}"
    if document is None:
        yield f"{url} was read and is not among the documents"
        return
    if document["versions"] != 1:
        yield f"{url}: {document['versions']} versions of a document that never changed"
    body = render(web, page, web.shape.origin).body
    if document["digest"] != hashlib.blake2b(body, digest_size=16).hexdigest():
        yield f"{url}: the stored body is not the one that was served"
    if web.kind(page) is Doc.XML and document["verdict"] != ("unvalidated" if error else "valid"):
        yield f"{url}: {document['verdict']}, the truth is {'unvalidated' if error else 'valid'}"
