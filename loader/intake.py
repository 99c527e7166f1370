"""The roof of the loader: a page in, its reports out.

    take(document)  -> its report: LOADED, FAILED, INCOMPLETE, or WAITING with its needs (links found so far included)
    take(part)      -> the report of the part (a DTD, an entity), and the final ones of documents that waited for it
    missing(part)   -> the final reports (INCOMPLETE) of documents that waited for it
    expire(now)     -> the final reports of documents whose time is up
    resume(waits)   -> after a restart: who waits for what, and which parts have to be asked for again
    leave(partition)   its documents are another process's now

Ahead of the final report of a document that is kept comes its Document, for the warehouse. A document is read with the
parts on the shelf or in the library (parts.py); what it asks for beyond them are its needs. Every further reading
starts from its body, held packed while it waits (bodies.py), so that links out of entities and default attributes
(XLink's, typically) come out right; the final report carries all links. Taking a page again (after a new read) replaces
the load of that page that waits; an older read than the waiting one is answered with nothing.
"""

from __future__ import annotations

import gc
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from xyro.loader.bodies import Bodies
from xyro.loader.feeds import ATOMS, RDF, Atom, Rss
from xyro.loader.json_feed import reader_of
from xyro.loader.keep import Keeper, document_of, pack
from xyro.loader.library import NOTHING, Library, Resumed, StoredPart
from xyro.loader.mend import may_be_list, mended
from xyro.loader.modules import is_named_like_a_part, may_be_content, not_alone
from xyro.loader.needs import AS_DTD, AS_ENTITY, STAND_INS, Shelf, Supply
from xyro.loader.outline import may_name_grammar
from xyro.loader.parse import Handler, ParseLimits, XmlFault, pieces, read
from xyro.loader.parts import Parts
from xyro.loader.sitemaps import Nesting, Sitemap
from xyro.loader.validate import Judged, Validator
from xyro.loader.waiting import Waiting, WaitState
from xyro.loader.xlinks import DocumentLinks, Xhtml, XmlLinks
from xyro.wire.ids import PageId, owner_of
from xyro.wire.messages import Document, Kind, LinkKind, LoadReport, LoadState, Verdict, XmlPage

TROUBLES = {
    "missing-part": "a part could not be read, or not in time",
    "refused-part": "a part that is never read: file:, ftp:, the document itself, redirects that loop",
    "bad-part": "a part is not what XML allows there; the document was read without any",
    "lost-body": "its body is no longer there: a later read has replaced it",
}
"""Errors of INCOMPLETE documents; those of FAILED ones are parse.FAULTS."""
_LISTS = frozenset({"rss", "atom", "sitemap", "sitemapindex"})
_SLIPS = frozenset({"not-well-formed", "undeclared-entity", "encoding"})
_SETTLE = 1 << 18
"""Bytes of waiting bodies read again in one call: some 30 ms, so that a part many wait for does not stop the loop."""
_RATE = _SETTLE / 0.03
"""bytes a second, as which the validator's time counts: a hostile grammar takes as long as megabytes"""
_LARGE = 1 << 18
"""Bytes of a body whose parser is collected at once: lxml's parsers are reference cycles that hold up to 10 MB each."""
LoadedMessage = LoadReport | Document


class _WaitingPage(Struct):
    """A document that waits: the page without its body (that is in Bodies)."""

    page: XmlPage
    named: bool
    deadline: float
    readings: int = 1


class _Reading(Struct):
    """The result of one parse of one body."""

    found: DocumentLinks
    supply: Supply
    handler: XmlLinks | None = None
    fault: str = ""


class Intake:
    """Not for two threads at once. Times are the caller's clock, in seconds, all of the same one.

    Bounded by: `part_cache_bytes` (the shelf), `waiting_bytes` (packed bodies in memory: beyond it they are read from
    the library; without one the oldest documents end INCOMPLETE), `patience_s` (no document waits longer),
    limits.parts (readings of one document). A document that waits costs 1 kB beside its body.
    """

    def __init__(
        self,
        *,
        limits: ParseLimits | None = None,
        part_cache_bytes: int = 64 << 20,
        waiting_bytes: int = 64 << 20,
        patience_s: float = 3_600.0,
        stand_ins: dict[str, bytes] | None = None,
        fold_slashes: bool = True,
        library: Library = NOTHING,
        keep: Collection[str] = (),
        extras: Collection[str] = (),
        validator: Validator | None = None,
    ) -> None:
        """`stand_ins`: DTDs that are not fetched (None: needs.STAND_INS). `fold_slashes`: see wire.urls.

        `keep`: formats (keep.FORMATS) of which Documents are made; `extras`: parts (xlinks.EXTRAS) that those are
        kept with, though they can be read without; `validator`: judges them, and has the catalog.
        """
        self._limits = limits or ParseLimits()
        self._parts = Parts(part_cache_bytes, self._limits, library, patience_s)
        self._empty = Shelf(0)
        self._keeper = Keeper(keep, validator, self._limits)
        self._validator = validator
        self._bodies = Bodies(waiting_bytes, library)
        self._patience = patience_s
        self._fold = fold_slashes
        self._nesting = Nesting()
        self._extra_kinds = frozenset(extras)
        self.rest: Callable[[], None] = lambda: None
        """called between two pieces of a body"""
        self._stand_ins = STAND_INS if stand_ins is None else stand_ins
        self._table: Waiting[PageId] = Waiting()
        self.missed_parts = self._table.missed
        """canonical URLs of the parts that documents wait for, as they are now"""
        self._waiting_pages: dict[PageId, _WaitingPage] = {}

    @property
    def waiting(self) -> int:
        """Documents held, those of `ready` included."""
        return len(self._waiting_pages)

    @property
    def ready(self) -> int:
        """Documents that wait for nothing but the next call (any of them; `expire` will do)."""
        return self._table.ready

    def may_take_long(self, page: XmlPage) -> bool:
        """Tell whether a load may take long, whatever the body's size: a grammar may have to be applied to it, or to
        those that wait for it."""
        return self._validator is not None and (
            page.kind is Kind.DTD or self.has_to_read(page.url) or may_name_grammar(page.body, page.charset)
        )

    def has_to_read(self, url: str) -> bool:
        """Tell whether documents may be read again when this part came, or cannot be had."""
        return self._validator is not None and (self.ready > 0 or url in self.missed_parts)

    def take(self, page: XmlPage, now: float, *, named: bool = False) -> list[LoadedMessage]:
        """Load one page. `named`: robots.txt names it as a sitemap, so it may list URLs outside its folder."""
        waiting = self._waiting_pages.get(page.page)
        if waiting is not None and waiting.page.epoch > page.epoch:
            return []
        self._release(page.page)
        if page.kind is Kind.DTD:
            messages = self._load_declarations(page)
        else:
            messages = self._load_document(page, now, named)
        if page.kind is Kind.DTD or page.url in self.missed_parts:
            self._tell(page.url, now, on_shelf=self._parts.keep(page))
        return messages + self._settle(now)

    def missing(self, url: str, now: float) -> list[LoadedMessage]:
        """The part `url` cannot be had."""
        self._tell(url, now, on_shelf=False)
        return self._settle(now)

    def moved(self, url: str, target: str, now: float) -> list[LoadedMessage]:
        """Reading the part `url` led to `target` (a redirect): those who wait for it will need that one."""
        if url in self.missed_parts:
            self._tell(url, now, on_shelf=self._parts.point(url, target))
        return self._settle(now)

    def unchanged(self, url: str, now: float) -> list[LoadedMessage]:
        """The part `url` is as it was when it was read before: the library has it, or nobody."""
        if url in self.missed_parts:
            self._tell(url, now, on_shelf=self._parts.fill((url,), now, unchanged=True))
        return self._settle(now)

    def wanted(self) -> list[str]:
        """Return the parts that documents wait for."""
        return [url for url, _ in self._table.wanted()]

    def supply(self, url: str, part: StoredPart, now: float) -> list[LoadedMessage]:
        """The part `url` is stored elsewhere, or known there never to be had."""
        if url in self.missed_parts:
            self._tell(url, now, on_shelf=self._parts.put(url, part, now))
        return self._settle(now)

    def expire(self, now: float) -> list[LoadedMessage]:
        """End what waited too long. To be called now and then, and while `ready` is not 0."""
        self._table.expire(now)
        return self._settle(now)

    def resume(self, waits: Iterable[Resumed], now: float) -> list[LoadedMessage]:
        """Hold what waited before a restart. The reports: one WAITING for each part that has to be read (again)."""
        for wait in waits:
            waiting = _WaitingPage(wait.page, wait.named, wait.since + self._patience)
            self._waiting_pages[wait.page.page] = waiting
            self._table.hold(wait.page.page, wait.needs or (wait.page.url,), waiting.deadline)
            if not wait.needs:
                self._table.hurry(wait.page.page)
        asked: dict[PageId, None] = {}
        for url, key in list(self._table.wanted()):
            if self._parts.fill((url,), now):
                self._table.arrived(url)
            elif self._parts.is_lost(url, now):
                self._table.lost(url)
            else:
                asked[key] = None
        return [_still_waits(self._waiting_pages[key].page, self._table.needs(key)) for key in asked]

    def leave(self, partition: int) -> None:
        """Hold nothing of a partition any more."""
        for key in [key for key in self._waiting_pages if owner_of(key) == partition]:
            self._release(key)

    def _load_document(self, page: XmlPage, now: float, named: bool) -> list[LoadedMessage]:
        messages = self._load(page, named, now)
        last = messages[-1]
        if _has_failed(messages) and (page.url in self.missed_parts or is_named_like_a_part(page.url)):
            return self._load_part(page, messages)
        if isinstance(last, LoadReport) and last.state is LoadState.WAITING:
            self._bodies.put(page.page, page.epoch, pack(page.body))
            self._hold(_WaitingPage(replace(page, body=b""), named, now + self._patience), last.needs)
        return messages

    def _load(
        self, page: XmlPage, named: bool, now: float, *, final: bool = False, packed: bytes | None = None
    ) -> list[LoadedMessage]:
        """Read it with the parts on the shelf, and again while the library has more of them.

        `final`: what is missing now is missing for good; `packed`: the body, where it was packed before.
        """
        for _ in range(self._limits.parts):
            reading = self._read(page, page.body, self._parts.shelf, named)
            needs, refused = dict(reading.supply.needs), reading.supply.refused
            if reading.fault and not reading.supply.used:
                return [self._failed(page, reading, named)]
            if self._parts.fill(needs, now):
                continue
            waits = needs and not (final or any(self._parts.is_lost(url, now) for url in needs))
            if reading.fault:  # a module of a DTD that is there may miss what one that is not there yet declares
                alone = self._load_alone(page, named)
                return [_waits(page, reading, needs)] if waits and not _has_failed(alone) else alone
            if waits:
                return [_waits(page, reading, needs)]
            state = LoadState.INCOMPLETE if needs or refused else LoadState.LOADED
            report = _report(page, reading, state, "missing-part" if needs else "refused-part" if refused else "")
            if not self._keeper.keeps(report.format):
                return [report]
            judged = self._keeper.judge(page, report.format, reading.supply)
            extras = self._extras(reading)
            judged = replace(judged, parts=tuple(dict.fromkeys((*judged.parts, *reading.found.extras))))
            more = [url for url in (*reading.supply.needs, *extras) if url not in needs]
            if self._parts.fill(more, now):
                continue
            if not final and not needs and any(not self._parts.is_lost(url, now) for url in more):
                return [_waits(page, reading, more)]
            return [document_of(page, packed, report.format, judged), report]
        return self._load_alone(page, named)

    def _extras(self, reading: _Reading) -> list[str]:
        """URLs to read before the document's extras (xlinks.EXTRAS) are all on the shelf."""
        looked = (self._parts.shelf.get(url) for url in reading.found.extras)
        return [part for part in looked if isinstance(part, str)]

    def _load_alone(self, page: XmlPage, named: bool) -> list[LoadedMessage]:
        """With its parts it does not parse: whose fault is it?"""
        reading = self._read(page, page.body, self._empty, named)
        if reading.fault:
            return [self._failed(page, reading, named)]
        report = _report(page, reading, LoadState.INCOMPLETE, "bad-part")
        return self._with_document(page, reading, report)

    def _with_document(self, page: XmlPage, reading: _Reading, report: LoadReport) -> list[LoadedMessage]:
        if not self._keeper.keeps(report.format):
            return [report]
        judged = self._keeper.judge(page, report.format, reading.supply)
        return [document_of(page, None, report.format, judged), report]

    def _failed(self, page: XmlPage, reading: _Reading, named: bool) -> LoadReport:
        """Feeds and sitemaps are lists of URLs: what is behind a slip in them is worth as much as what is before it."""
        form, fault = reading.handler.format if reading.handler else "", reading.fault
        if fault in _SLIPS and (form in _LISTS or _seems_list(page.body, self._limits)):
            reading = self._read(page, page.body, self._empty, named, recover=True)
        return _report(page, reading, LoadState.FAILED, fault)

    def _load_part(self, page: XmlPage, as_document: list[LoadedMessage]) -> list[LoadedMessage]:
        """A part that is no document by itself: an entity (many roots, or none), or declarations."""
        for wrapper, form in ((AS_ENTITY, "entity"), (AS_DTD, "dtd")):
            messages = self._load_wrapped(page, wrapper, form)
            if not _has_failed(messages):
                return messages
        return as_document

    def _load_declarations(self, page: XmlPage) -> list[LoadedMessage]:
        """A DTD; or content, under a type or name that stands for both: chapter.ent has text, iso-lat1.ent has none."""
        messages = self._load_wrapped(page, AS_DTD, "dtd")
        if _has_failed(messages) and may_be_content(page.mime, page.url):
            content = self._load_wrapped(page, AS_ENTITY, "entity")
            return messages if _has_failed(content) else content
        return messages

    def _load_wrapped(self, page: XmlPage, wrapper: bytes, form: str) -> list[LoadedMessage]:
        """A DTD or an entity by itself. The parts it names are its links; who waits for them are the documents."""
        try:
            body = self._parts.body_of(page)
        except XmlFault as fault:
            return [LoadReport(page.page, page.url, page.epoch, LoadState.FAILED, form, fault.kind)]
        reading = self._read(page, wrapper, self._parts.shelf, False, own=body)
        for url in reading.supply.asked:
            reading.found.note(url, LinkKind.XLINK)
        if reading.fault in _SLIPS and form == "dtd" and (why := not_alone(body, reading.supply.needs, True)):
            return self._module(page, reading, why)
        state = LoadState.FAILED if reading.fault else LoadState.LOADED
        report = replace(_report(page, reading, state, reading.fault), format=form)
        return [report] if reading.fault else self._with_document(page, reading, report)

    def _module(self, page: XmlPage, reading: _Reading, why: str) -> list[LoadedMessage]:
        """A module of a DTD: it need not be well-formed without the DTD that it is a part of."""
        report = replace(_report(page, reading, LoadState.LOADED), format="dtd")
        judged = Judged(Verdict.UNVALIDATED, (why,), parts=tuple(reading.supply.asked))
        return [document_of(page, None, "dtd", judged), report] if self._keeper.keeps("dtd") else [report]

    def _read(
        self, page: XmlPage, body: bytes, shelf: Shelf, named: bool, own: bytes | None = None, *, recover: bool = False
    ) -> _Reading:
        """Parse once; `own` is the body of a part in its wrapper."""
        found = DocumentLinks(page.url, page.read_at, fold_slashes=self._fold, extras=self._extra_kinds)
        supply = Supply(
            page.url, shelf, self._limits, self._stand_ins, fold_slashes=self._fold, own=own,
            catalog=self._validator.catalog if self._validator else None,
            slims=self._validator.slims if self._validator else None,
        )  # fmt: skip
        reading = _Reading(found, supply)

        def root(tag: str) -> Handler:
            reading.handler = handler_for(tag, found, named=named, nesting=self._nesting)
            return reading.handler

        try:
            charset = page.charset if own is None else ""
            stream = self._with_rests(pieces(body, self._limits))
            if recover:
                whole, charset = mended(b"".join(stream), charset)
                stream = iter([whole])
            first = next(stream, b"")
            plain = reader_of(first) if own is None else None
            if plain is not None:
                reading.handler = plain(b"".join([first, *stream]), found, named)
            else:
                read(
                    chain([first], stream),
                    charset,
                    root,
                    self._limits,
                    supply.answer,
                    recover=recover,
                    outline=supply.outline,
                )
        except XmlFault as fault:
            reading.fault = fault.kind
        if reading.handler is not None:
            reading.handler.close()
        if len(body) > _LARGE:
            gc.collect(1)
        found.dropped += supply.refused
        return reading

    def _with_rests(self, stream: Iterator[bytes]) -> Iterator[bytes]:
        for number, piece in enumerate(stream):
            if number:
                self.rest()
            yield piece

    def close(self) -> None:
        """End the validator's process."""
        if self._validator is not None:
            self._validator.close()

    def _tell(self, url: str, now: float, *, on_shelf: bool) -> None:
        if on_shelf:
            self._table.arrived(url)
        else:
            self._parts.lose(url, now)
            self._table.lost(url)

    def _settle(self, now: float) -> list[LoadedMessage]:
        """Read again what has its parts or is at its end, up to _SETTLE bytes (at least one)."""
        messages: list[LoadedMessage] = []
        size = 0
        while size < _SETTLE and (due := self._table.take()) is not None:
            key, state = due
            waiting = self._waiting_pages[key]
            packed = self._bodies.get(waiting.page.page, waiting.page.epoch)
            if packed is None:
                self._release(key)
                messages.append(_incomplete(waiting.page, "lost-body"))
                continue
            page = replace(waiting.page, body=zlib.decompress(packed))
            size += len(page.body)
            spent = self._spent
            final = state is WaitState.ENDING or waiting.readings >= self._limits.parts or waiting.deadline <= now
            messages += self._load(page, waiting.named, now, final=final, packed=packed)
            size += int((self._spent - spent) * _RATE)
            last = messages[-1]
            if isinstance(last, LoadReport) and last.state is LoadState.WAITING:
                waiting.readings += 1
                self._hold(waiting, last.needs)
            else:
                self._release(key)
        return messages

    @property
    def _spent(self) -> float:
        return 0.0 if self._validator is None else self._validator.spent

    def _hold(self, waiting: _WaitingPage, needs: tuple[str, ...]) -> None:
        key = waiting.page.page
        self._waiting_pages[key] = waiting
        self._table.hold(key, needs, waiting.deadline)
        for oldest in self._bodies.excess():
            self._table.hurry(oldest)

    def _release(self, key: PageId) -> None:
        if self._waiting_pages.pop(key, None) is not None:
            self._bodies.drop(key)
            self._table.drop(key)


def handler_for(root: str, found: DocumentLinks, *, named: bool = False, nesting: Nesting | None = None) -> XmlLinks:
    """The handler of a document by the tag of its root element."""
    namespace, _, local = root.rpartition("}")
    if local in ("urlset", "sitemapindex"):
        return Sitemap(found, root, named=named, nesting=nesting)
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


def _has_failed(messages: list[LoadedMessage]) -> bool:
    """Tell whether the messages end in a report of a failure."""
    last = messages[-1]
    return isinstance(last, LoadReport) and last.state is LoadState.FAILED


def _seems_list(body: bytes, limits: ParseLimits) -> bool:
    try:
        return may_be_list(next(pieces(body, limits), b""))
    except XmlFault:
        return False


def _waits(page: XmlPage, reading: _Reading, needs: Iterable[str]) -> LoadReport:
    return replace(_report(page, reading, LoadState.LOADED), state=LoadState.WAITING, needs=tuple(needs))


def _still_waits(page: XmlPage, needs: tuple[str, ...]) -> LoadReport:
    """As it waited before a restart: its links will come with the final report."""
    return LoadReport(page.page, page.url, page.epoch, LoadState.WAITING, needs=needs)


def _incomplete(page: XmlPage, error: str) -> LoadReport:
    return LoadReport(page.page, page.url, page.epoch, LoadState.INCOMPLETE, error=error)
