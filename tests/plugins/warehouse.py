"""A crawl with a repository of documents, made by the page nodes themselves, without a web.

crawl = filled(tmp_path / "data")     what DOCUMENTS lists: bodies in the order they were read, a day apart
"""

from __future__ import annotations

import zlib

from tests.frontier.rig import START, Crawl
from xyro.configs.schema import CrawlSettings as CrawlSettings
from xyro.configs.schema import Settings
from xyro.metadata.documents import digest_of
from xyro.wire.messages import Document, FetchOrder, Kind, LoadReport, LoadState, Verdict

ANY = Settings(crawl=CrawlSettings(scope="any"))
DAY = 86_400.0
BOOKS = [
    b"<book id='1'><title>Old</title><para>one &lt; two</para></book>",
    b"<book id='1'><title>New</title><para>one &lt; two</para></book>",
    b"<book id='1'><title>New</title><para>three</para><para/></book>",
]
FEED = b'<feed xmlns="http://www.w3.org/2005/Atom"><title>News</title><entry><title>First</title></entry></feed>'
NOTE = b"<!DOCTYPE note SYSTEM 'note.dtd'><note>caf\xe9 &unknown;</note>"
BOOK, FEEDS, NOTES = "http://h0.example/book.xml", "http://h1.example/feed.xml", "http://h2.example/note.xml"
COPY = "http://h3.example/copy.xml"
DTD, MODULE = "http://h0.example/book.dtd", "http://h0.example/module.mod"
DOCUMENTS: dict[str, list[bytes]] = {
    BOOK: BOOKS,
    FEEDS: [FEED],
    NOTES: [NOTE],
    COPY: [BOOKS[2]],
    DTD: [b"<!ELEMENT book ANY><!ENTITY % m SYSTEM 'module.mod'>%m;"],
    MODULE: [b"<!ELEMENT para ANY>"],
}
FACTS = {
    BOOK: {"verdict": Verdict.VALID, "grammars": (DTD,), "parts": (MODULE,), "root": "book", "format": "xml"},
    FEEDS: {"root": "{http://www.w3.org/2005/Atom}feed", "format": "atom"},
    NOTES: {"verdict": Verdict.UNVALIDATED, "problems": ("line 1: no DTD",), "root": "note", "charset": "iso-8859-1"},
    COPY: {"verdict": Verdict.INVALID, "grammars": (DTD,), "problems": ("line 1: a", "line 1: b"), "root": "book"},
    DTD: {"kind": Kind.DTD, "parts": (MODULE,), "tags": 1, "format": "dtd"},
    MODULE: {"kind": Kind.DTD, "tags": 1, "format": "dtd"},
}


def document(order: FetchOrder, body: bytes, now: float, **fields: object) -> Document:
    said = {"kind": Kind.XML, "elements": body.count(b"<"), "depth": 2} | fields
    digest, packed = digest_of(body), zlib.compress(body)
    return Document(order.page, order.url, order.epoch, now, digest=digest, packed=packed, size=len(body), **said)  # type: ignore[arg-type]


def read(crawl: Crawl, url: str, body: bytes, **fields: object) -> None:
    """A read of `url` brings `body`, which is loaded and kept, in one turn."""
    crawl.submit(url)
    crawl.turn()
    order = crawl.order(url)
    owner = crawl.pending[order.page >> 32]
    said = FACTS.get(url, {}) | fields
    owner.append(document(order, body, crawl.now, **said))
    owner.append(LoadReport(order.page, order.url, order.epoch, LoadState.LOADED, "xml"))
    kind = said.get("kind", Kind.XML)
    crawl.answer(order, kind=kind, loading=True, signature=digest_of(body), size=len(body))
    crawl.turn()


def fill(crawl: Crawl) -> Crawl:
    """Every document of DOCUMENTS, the versions of one a day apart; pages of HTML that link to some of them."""
    for url, bodies in DOCUMENTS.items():
        crawl.now = START
        for body in bodies:
            read(crawl, url, body)
            crawl.now += DAY
    for number in range(3):
        page = f"http://h{number}.example/p.html"
        crawl.submit(page)
        crawl.turn()
        crawl.answer(crawl.order(page), [FEEDS, *([BOOK] if number else [])], size=1000)
        crawl.turn()
        crawl.deliver_all()
        crawl.turn()
    return crawl


def filled(path, partitions: int = 1):
    """Such a crawl on disk, closed."""
    crawl = fill(Crawl.on_disk(path, partitions, settings=ANY))
    crawl.deliver_all()
    crawl.turn()
    crawl.close()
    return path
