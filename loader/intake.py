"""The roof of the loader: a page in, its reports out.

    take(document)  -> its report: LOADED, FAILED, INCOMPLETE, or WAITING with its needs (links found so far included)
    take(part)      -> the report of the part (a DTD, an entity), and the final ones of documents that waited for it
    missing(part)   -> the final reports (INCOMPLETE) of documents that waited for it
    expire(now)     -> the final reports of documents whose time is up

A document is read with the parts on the shelf; what it asks for beyond them are its needs. Every further reading
starts from its body, kept packed while it waits, so that links out of entities and default attributes (XLink's,
typically) come out right; the final report carries all links. Taking a page again (after a restart, after a new read)
replaces the load of that page that waits; an older read than the waiting one is answered with nothing.
"""

from __future__ import annotations

import gc
import re
import zlib
from dataclasses import dataclass, replace
from itertools import chain

from loader.feeds import ATOMS, RDF, Atom, Rss
from loader.json_feed import reader_of
from loader.needs import AS_DTD, AS_ENTITY, STAND_INS, Shelf, Supply
from loader.parse import Handler, Limits, XmlFault, pieces, read
from loader.sitemaps import Sitemap
from loader.waiting import State, Waiting
from loader.xlinks import Found, Xhtml, XmlLinks
from wire.messages import Kind, LinkKind, LoadReport, LoadState, XmlPage

TROUBLES = {
    "missing-part": "a part could not be read, or not in time",
    "refused-part": "a part with a name that is never read: file:, ftp:, the document itself",
    "bad-part": "a part is not what XML allows there; the document was read without any",
}
"""Errors of INCOMPLETE documents; those of FAILED ones are parse.FAULTS."""
_LISTS = frozenset({"rss", "atom", "sitemap", "sitemapindex"})
_SLIPS = frozenset({"not-well-formed", "undeclared-entity", "encoding"})
_BARE_AMPERSAND = re.compile(rb"&(?!#?\w{1,32};)", re.ASCII)
"""The commonest slip of all: a URL with & in it, as it is. libxml2's recovery would cut the URL there."""
_SETTLE = 1 << 20
"""Bytes of waiting bodies read again in one call: some 20 ms, so that a part many wait for does not stop the loop."""
_LARGE = 1 << 18
"""Bytes of a body whose parser is collected at once: lxml's parsers are reference cycles that hold up to 10 MB each."""


@dataclass(slots=True)
class _Held:
    """A document that waits: the page without its body, and the body packed."""

    page: XmlPage
    packed: bytes
    named: bool
    deadline: float
    readings: int = 1


@dataclass(slots=True)
class _Reading:
    """What one parse of one body gave."""

    found: Found
    supply: Supply
    handler: XmlLinks | None = None
    fault: str = ""


class Intake:
    """Not for two threads at once. Times are the caller's clock, in seconds, all of the same one.

    Bounded by: `part_cache_bytes` (the shelf), `waiting_bytes` (packed bodies of waiting documents: beyond it the
    oldest end INCOMPLETE), `patience_s` (no document waits longer), limits.parts (readings of one document).
    """

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        part_cache_bytes: int = 64 << 20,
        waiting_bytes: int = 64 << 20,
        patience_s: float = 3_600.0,
        stand_ins: dict[str, bytes] | None = None,
        fold_slashes: bool = True,
    ) -> None:
        """`stand_ins`: DTDs that are not fetched (None: needs.STAND_INS). `fold_slashes`: see wire.urls."""
        self._limits = limits or Limits()
        self._shelf = Shelf(part_cache_bytes)
        self._empty = Shelf(0)
        self._waiting_bytes = waiting_bytes
        self._patience = patience_s
        self._fold = fold_slashes
        self._stand_ins = STAND_INS if stand_ins is None else stand_ins
        self._table: Waiting[int] = Waiting()
        self._held: dict[int, _Held] = {}
        self._packed = 0

    @property
    def waiting(self) -> int:
        """Documents held, those of `ready` included."""
        return len(self._held)

    @property
    def ready(self) -> int:
        """Documents that wait for nothing but the next call (any of them; `expire` will do)."""
        return self._table.ready

    def wants(self, url: str) -> bool:
        """Does a document wait for this part (a canonical URL)?"""
        return self._table.wants(url)

    def take(self, page: XmlPage, now: float, *, named: bool = False) -> list[LoadReport]:
        """Load one page. `named`: robots.txt names it as a sitemap, so it may list URLs outside its folder."""
        held = self._held.get(page.page)
        if held is not None and held.page.epoch > page.epoch:
            return []
        self._release(page.page)
        if page.kind is Kind.DTD:
            reports = [self._load_wrapped(page, AS_DTD, "dtd")]
        else:
            reports = [self._load_document(page, now, named)]
        if page.kind is Kind.DTD or self.wants(page.url):
            self._arrive(page)
        return reports + self._settle(now)

    def missing(self, url: str, now: float) -> list[LoadReport]:
        """The part `url` cannot be had."""
        self._table.lost(url)
        return self._settle(now)

    def moved(self, url: str, target: str, now: float) -> list[LoadReport]:
        """Reading the part `url` led to `target` (a redirect): those who wait for it will need that one."""
        if self.wants(url):
            self._tell(url, on_shelf=self._shelf.point(url, target))
        return self._settle(now)

    def expire(self, now: float) -> list[LoadReport]:
        """End what waited too long. To be called now and then, and while `ready` is not 0."""
        self._table.expire(now)
        return self._settle(now)

    def _load_document(self, page: XmlPage, now: float, named: bool) -> LoadReport:
        report = self._load(page, named)
        if report.state is LoadState.FAILED and self.wants(page.url):
            return self._load_part(page, report)
        if report.state is LoadState.WAITING:
            held = _Held(replace(page, body=b""), zlib.compress(page.body, 1), named, now + self._patience)
            self._hold(held, report.needs)
        return report

    def _load(self, page: XmlPage, named: bool, *, final: bool = False) -> LoadReport:
        """One reading with the parts on the shelf. `final`: what is missing now is missing for good."""
        reading = self._read(page, page.body, self._shelf, named)
        if reading.fault and reading.supply.used:
            return self._load_alone(page, named)
        needs = tuple(reading.supply.needs)
        if reading.fault:
            return self._failed(page, reading, named)
        if needs and not final:
            return replace(_report(page, reading, LoadState.LOADED), state=LoadState.WAITING, needs=needs)
        if needs or reading.supply.refused:
            return _report(page, reading, LoadState.INCOMPLETE, "missing-part" if needs else "refused-part")
        return _report(page, reading, LoadState.LOADED)

    def _load_alone(self, page: XmlPage, named: bool) -> LoadReport:
        """With its parts it does not parse: whose fault is it?"""
        reading = self._read(page, page.body, self._empty, named)
        if reading.fault:
            return self._failed(page, reading, named)
        return _report(page, reading, LoadState.INCOMPLETE, "bad-part")

    def _failed(self, page: XmlPage, reading: _Reading, named: bool) -> LoadReport:
        """Feeds and sitemaps are lists of URLs: what is behind a slip in them is worth as much as what is before it."""
        form, fault = reading.handler.format if reading.handler else "", reading.fault
        if form in _LISTS and fault in _SLIPS:
            reading = self._read(page, page.body, self._empty, named, recover=True)
        return _report(page, reading, LoadState.FAILED, fault)

    def _load_part(self, page: XmlPage, as_document: LoadReport) -> LoadReport:
        """A wanted part that is no document by itself: an entity (many roots, or none), or declarations."""
        for wrapper, form in ((AS_ENTITY, "xml"), (AS_DTD, "dtd")):
            report = self._load_wrapped(page, wrapper, form)
            if report.state is LoadState.LOADED:
                return report
        return as_document

    def _load_wrapped(self, page: XmlPage, wrapper: bytes, form: str) -> LoadReport:
        """A DTD or an entity by itself. The parts it names are its links; who waits for them are the documents."""
        try:
            body = self._part_of(page)
        except XmlFault as fault:
            return LoadReport(page.page, page.url, page.epoch, LoadState.FAILED, form, fault.kind)
        reading = self._read(page, wrapper, self._shelf, False, own=body)
        for url in reading.supply.asked:
            reading.found.note(url, LinkKind.XLINK)
        state = LoadState.FAILED if reading.fault else LoadState.LOADED
        return replace(_report(page, reading, state, reading.fault), format=form)

    def _read(
        self, page: XmlPage, body: bytes, shelf: Shelf, named: bool, own: bytes | None = None, *, recover: bool = False
    ) -> _Reading:
        """Parse once; `own` is the body of a part in its wrapper."""
        found = Found(page.url, page.read_at, fold_slashes=self._fold)
        supply = Supply(page.url, shelf, self._limits, self._stand_ins, fold_slashes=self._fold, own=own)
        reading = _Reading(found, supply)

        def root(tag: str) -> Handler:
            reading.handler = handler_for(tag, found, named=named)
            return reading.handler

        try:
            charset = page.charset if own is None else ""
            stream = pieces(body, self._limits)
            if recover:
                stream = iter([_BARE_AMPERSAND.sub(b"&amp;", b"".join(stream))])
            first = next(stream, b"")
            plain = reader_of(first) if own is None else None
            if plain is not None:
                reading.handler = plain(b"".join([first, *stream]), found, named)
            else:
                read(chain([first], stream), charset, root, self._limits, supply.answer, recover=recover)
        except XmlFault as fault:
            reading.fault = fault.kind
        if reading.handler is not None:
            reading.handler.close()
        if len(body) > _LARGE:
            gc.collect(1)
        found.dropped += supply.refused
        return reading

    def _arrive(self, page: XmlPage) -> None:
        """Put a part on the shelf and tell who waits; one that cannot be kept is lost."""
        try:
            on_shelf = self._shelf.put(page.url, self._part_of(page))
        except XmlFault:
            on_shelf = False
        self._tell(page.url, on_shelf=on_shelf)

    def _part_of(self, page: XmlPage) -> bytes:
        """The page's body as a part: unzipped, in an encoding that the parser finds by itself."""
        body = b"".join(pieces(page.body, self._limits))
        if len(body) > self._limits.part:
            raise XmlFault("too-large", "as a part")
        return _as_utf8(body, page.charset)

    def _tell(self, url: str, *, on_shelf: bool) -> None:
        if on_shelf:
            self._table.arrived(url)
        else:
            self._table.lost(url)

    def _settle(self, now: float) -> list[LoadReport]:
        """Read again what has its parts or is at its end, up to _SETTLE bytes (at least one)."""
        reports: list[LoadReport] = []
        size = 0
        while size < _SETTLE and (taken := self._table.take()) is not None:
            key, state = taken
            held = self._held[key]
            page = replace(held.page, body=zlib.decompress(held.packed))
            size += len(page.body)
            final = state is State.ENDING or held.readings >= self._limits.parts or held.deadline <= now
            report = self._load(page, held.named, final=final)
            self._release(key)
            if report.state is LoadState.WAITING:
                held.readings += 1
                self._hold(held, report.needs)
            reports.append(report)
        return reports

    def _hold(self, held: _Held, needs: tuple[str, ...]) -> None:
        key = held.page.page
        self._held[key] = held
        self._packed += len(held.packed)
        self._table.hold(key, needs, held.deadline)
        excess = self._packed - self._waiting_bytes
        for oldest, load in self._held.items():
            if excess <= 0:
                break
            self._table.hurry(oldest)
            excess -= len(load.packed)

    def _release(self, key: int) -> None:
        held = self._held.pop(key, None)
        if held is not None:
            self._packed -= len(held.packed)
            self._table.drop(key)


def handler_for(root: str, found: Found, *, named: bool = False) -> XmlLinks:
    """The handler of a document by the tag of its root element."""
    namespace, _, local = root.rpartition("}")
    if local in ("urlset", "sitemapindex"):
        return Sitemap(found, root, named=named)
    if local == "html":
        return Xhtml(found, root)
    if local == "rss" or root == RDF:
        return Rss(found, root)
    if local in ("feed", "entry") and namespace + "}" in ATOMS:
        return Atom(found, root)
    return XmlLinks(found)


def _report(page: XmlPage, reading: _Reading, state: LoadState, error: str = "") -> LoadReport:
    handler = reading.handler
    return LoadReport(
        page.page,
        page.url,
        page.epoch,
        state,
        format=handler.format if handler else "",
        error=error,
        links=reading.found.links(nofollow=handler is not None and handler.nofollow),
        modified=reading.found.dates,
        rates=reading.found.rates,
        hubs=reading.found.hubs,
    )


def _as_utf8(body: bytes, charset: str) -> bytes:
    """A part as the parser can read it without being told the charset of its media type (it cannot be, for parts).

    Only a part without text declaration and byte order mark is recoded; a charset nobody knows is left to the parser.
    """
    if not charset or body.startswith((b"<?xml", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        return body
    try:
        return body.decode(charset).encode()
    except (LookupError, UnicodeError, ValueError):
        return body
