"""The intake with a library behind it, and the Documents that it makes for the warehouse."""

from __future__ import annotations

import contextlib
import hashlib
import zlib
from collections.abc import Callable

import pytest
from lxml import etree
from msgspec.structs import replace

from xyro.loader.intake import Intake, LoadedMessage
from xyro.loader.keep import FORMATS, OFF
from xyro.loader.library import Resumed, StoredPart
from xyro.loader.parse import ParseLimits
from xyro.loader.validate import Validator
from xyro.wire.messages import Document, Kind, LoadReport, LoadState, Verdict, XmlPage

Page = Callable[..., XmlPage]
D = "http://h.test/d/"
DTD = D + "x.dtd"
DOCUMENT = '<!DOCTYPE r SYSTEM "x.dtd"><r>&more;</r>'
DECLARATIONS = '<!ELEMENT r ANY><!ENTITY more "text">'


class Shelves:
    """A library; `asked` counts what it was asked for."""

    def __init__(self, **bodies: str) -> None:
        self.parts: dict[str, StoredPart] = {}
        self.bodies: dict[tuple[int, int], bytes] = {}
        self.asked: list[str] = []

    def part(self, url: str, *, unchanged: bool = False) -> StoredPart | None:
        self.asked.append(url)
        return self.parts.get(url)

    def body(self, page: int, epoch: int) -> bytes | None:
        return self.bodies.get((page, epoch))


def finals(told: list[LoadedMessage]) -> list[tuple[int, LoadState, str]]:
    return [(one.page, one.state, one.error) for one in told if isinstance(one, LoadReport)]


def test_a_part_in_the_library_is_not_needed(page: Page) -> None:
    library = Shelves()
    library.parts[DTD] = StoredPart('<!ENTITY more "é">'.encode("latin-1"), "latin-1")
    intake = Intake(library=library)
    assert finals(intake.take(page(DOCUMENT), 0.0)) == [(7, LoadState.LOADED, "")]
    intake.take(page(DOCUMENT, D + "2.xml", page=8), 0.0)
    assert library.asked == [DTD], "then it is on the shelf"


def test_parts_in_the_library_that_moved_and_name_others(page: Page) -> None:
    library = Shelves()
    library.parts = {
        DTD: StoredPart(moved=D + "y.dtd"),
        D + "y.dtd": StoredPart(b'<!ENTITY % z SYSTEM "z.mod">%z;'),
        D + "z.mod": StoredPart(b'<!ENTITY more "z">'),
    }
    assert finals(Intake(library=library).take(page(DOCUMENT), 0.0)) == [(7, LoadState.LOADED, "")]
    library.parts[D + "y.dtd"] = StoredPart(moved=DTD)
    assert finals(Intake(library=library).take(page(DOCUMENT), 0.0)) == [(7, LoadState.INCOMPLETE, "refused-part")]


def test_a_part_that_cannot_be_had_is_missing_at_once(page: Page) -> None:
    library = Shelves()
    library.parts[DTD] = StoredPart()
    intake = Intake(library=library)
    assert finals(intake.take(page(DOCUMENT), 0.0)) == [(7, LoadState.INCOMPLETE, "missing-part")]
    assert intake.waiting == 0


def test_a_part_that_was_lost_is_not_asked_for_again_for_a_while(page: Page) -> None:
    intake = Intake(patience_s=60.0)
    intake.take(page(DOCUMENT), 0.0)
    intake.missing(DTD, 0.0)
    other = page(DOCUMENT, D + "2.xml", page=8)
    assert finals(intake.take(other, 59.0)) == [(8, LoadState.INCOMPLETE, "missing-part")]
    assert finals(intake.take(other, 61.0)) == [(8, LoadState.WAITING, "")]


@pytest.mark.parametrize("there", [True, False])
def test_a_part_that_did_not_change_is_taken_from_the_library(page: Page, there: bool) -> None:
    library = Shelves()
    intake = Intake(library=library)
    intake.take(page(DOCUMENT), 0.0)
    if there:
        library.parts[DTD] = StoredPart(DECLARATIONS.encode())
    ((_, state, _),) = finals(intake.unchanged(DTD, 1.0))
    assert state is (LoadState.LOADED if there else LoadState.INCOMPLETE)


def resumed(page: Page, library: Shelves, number: int, *needs: str, since: float = 0.0) -> Resumed:
    body = page(DOCUMENT, D + f"{number}.xml", page=number)
    library.bodies[number, 1] = zlib.compress(body.body)
    return Resumed(page("", body.url, page=number), needs, since)


def test_after_a_restart_one_of_many_asks_for_a_part(page: Page) -> None:
    library = Shelves()
    intake = Intake(library=library)
    told = intake.resume([resumed(page, library, number, DTD) for number in range(50)], 5.0)
    assert [(one.page, one.state, one.needs) for one in told if isinstance(one, LoadReport)] == [
        (0, LoadState.WAITING, (DTD,))
    ]
    told = intake.take(page(DECLARATIONS, DTD, page=99, kind=Kind.DTD), 6.0)
    while intake.ready:
        told += intake.expire(6.0)
    assert sorted(finals(told)[1:]) == [(number, LoadState.LOADED, "") for number in range(50)]


def test_after_a_restart_what_came_meanwhile_is_in_the_library(page: Page) -> None:
    library = Shelves()
    library.parts = {DTD: StoredPart(DECLARATIONS.encode()), D + "gone.dtd": StoredPart()}
    intake = Intake(library=library)
    assert intake.resume([resumed(page, library, 1, DTD), resumed(page, library, 2, D + "gone.dtd")], 5.0) == []
    assert sorted(finals(intake.expire(5.0))) == [(1, LoadState.LOADED, ""), (2, LoadState.LOADED, "")]


def test_the_deadline_counts_over_restarts(page: Page) -> None:
    library = Shelves()
    intake = Intake(library=library, patience_s=60.0)
    intake.resume([resumed(page, library, 1, DTD, since=100.0)], 150.0)
    assert intake.expire(159.0) == []
    assert finals(intake.expire(160.0)) == [(1, LoadState.INCOMPLETE, "missing-part")]


def test_a_body_that_is_gone_ends_with_a_named_reason(page: Page) -> None:
    library = Shelves()
    intake = Intake(library=library)
    intake.resume([resumed(page, library, 1, DTD)], 0.0)
    library.bodies.clear()
    told = intake.take(page(DECLARATIONS, DTD, page=99, kind=Kind.DTD), 0.0)
    assert finals(told)[1:] == [(1, LoadState.INCOMPLETE, "lost-body")]
    assert intake.waiting == 0


def test_documents_come_ahead_of_their_final_reports(page: Page) -> None:
    intake = Intake(keep=FORMATS)
    (report,) = intake.take(page(DOCUMENT), 0.0)
    assert isinstance(report, LoadReport) and report.state is LoadState.WAITING
    told = intake.take(page(DECLARATIONS, DTD, page=8, kind=Kind.DTD), 0.0)
    assert [(type(one), one.page) for one in told] == [
        (Document, 8), (LoadReport, 8), (Document, 7), (LoadReport, 7),
    ]  # fmt: skip
    kept = told[2]
    assert isinstance(kept, Document)
    assert zlib.decompress(kept.packed) == DOCUMENT.encode() and kept.size == len(DOCUMENT)
    assert kept.digest == hashlib.blake2b(DOCUMENT.encode(), digest_size=16).digest()
    assert (kept.format, kept.root, kept.grammars, kept.depth, kept.elements) == ("xml", "r", (DTD,), 1, 1)
    assert (kept.verdict, kept.problems) == (Verdict.UNVALIDATED, (OFF,)), "nobody validates here"


@pytest.mark.parametrize(
    ("body", "form"),
    [
        ("<r/>", "xml"),
        ('<rss version="2.0"><channel/></rss>', "rss"),
        ('<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"/>', None),
        ("<r>", None),
    ],
)
def test_what_is_kept(page: Page, body: str, form: str | None) -> None:
    told = Intake(keep=FORMATS).take(page(body), 0.0)
    assert [one.format for one in told if isinstance(one, Document)] == ([form] if form else [])


@pytest.mark.parametrize(
    ("charset", "stored"),
    [("utf-8", "utf-8"), ("ISO-8859-1", "ISO-8859-1"), ("", ""), ("klingon", ""), ("x-none", ""), ("utf-9", "")],
)
def test_a_charset_that_nobody_knows_is_not_stored_so_that_the_document_can_be_read_again(
    page: Page, charset: str, stored: str
) -> None:
    told = Intake(keep=FORMATS).take(replace(page("<r>text</r>"), charset=charset), 0.0)
    (document,) = (one for one in told if isinstance(one, Document))
    assert document.charset == stored
    etree.XMLParser(encoding=document.charset or None)  # as the warehouse does


def test_a_wanted_entity_is_kept_as_one(page: Page) -> None:
    intake = Intake(keep=FORMATS)
    intake.take(page('<!DOCTYPE r [<!ENTITY e SYSTEM "e">]><r>&e;</r>'), 0.0)
    told = intake.take(page("<a/><b/>", D + "e", page=9), 0.0)
    assert [(one.page, one.format) for one in told if isinstance(one, Document)] == [(9, "entity"), (7, "xml")]


# --- parts that are read by themselves -------------------------------------------------------------------------------

DRIVER = '<!ENTITY % pool SYSTEM "pool.mod"> %pool; <!ELEMENT book (%mix;)*>'
POOL = '<!-- %not; --><!ENTITY % mix "para"><![%pool.more;[<!ELEMENT para (#PCDATA)>]]><!ELEMENT x EMPTY>'


def read_alone(page: Page, body: str, url: str, **fields: object) -> tuple[Document | None, LoadReport]:
    """What is told of a body nobody waits for."""
    with contextlib.closing(Intake(keep=FORMATS, validator=Validator(ParseLimits()))) as intake:
        *kept, report = intake.take(page(body, url, **fields), 0.0)
    assert isinstance(report, LoadReport) and len(kept) <= 1
    document = kept[0] if kept else None
    assert document is None or isinstance(document, Document)
    return document, report


@pytest.mark.parametrize(
    ("body", "url", "kind", "form", "problems"),
    [
        ("<a/><b/>", "two.ent", Kind.XML, "entity", ()),
        ("only text", "text.ENT?v=1", Kind.XML, "entity", ()),
        ('<?xml version="1.0" encoding="UTF-8"?><para>x</para>\n', "chapter.ent", Kind.DTD, "entity", ()),
        ("text, &mdash; and <a/>", "text.ENT?v=1", Kind.DTD, "entity", ()),
        ('<!ENTITY mdash "&#8212;">', "iso.ent", Kind.DTD, "dtd", ()),
        ('<!ENTITY mdash "&#8212;">', "iso.pen", Kind.XML, "dtd", ()),
        ("<!ELEMENT r (s)><!ELEMENT s EMPTY>", "x.dtd", Kind.DTD, "dtd", ()),
        (DRIVER, "book.dtd", Kind.DTD, "dtd", (f"not judged alone: {D}pool.mod is not at hand",)),
        (POOL, "pool.mod", Kind.XML, "dtd", ("not judged alone: %pool.more; is declared elsewhere",)),
        (POOL, "pool.mod", Kind.DTD, "dtd", ("not judged alone: %pool.more; is declared elsewhere",)),
    ],
)
def test_nothing_is_held_against_a_part_that_is_read_by_itself(
    page: Page, body: str, url: str, kind: Kind, form: str, problems: tuple[str, ...]
) -> None:
    document, report = read_alone(page, body, D + url, kind=kind)
    assert (report.state, report.error, report.format) == (LoadState.LOADED, "", form)
    assert document is not None and (document.format, document.problems) == (form, problems)
    assert document.verdict is (Verdict.UNVALIDATED if problems else Verdict.NO_GRAMMAR)
    assert document.kind is (Kind.DTD if form == "dtd" else Kind.XML)
    assert document.tags == 2 * (url == "x.dtd")


@pytest.mark.parametrize(
    ("body", "url", "kind"),
    [
        ("<a/><b/>", "two.xml", Kind.XML),
        ("<a><b></a>", "broken.ent", Kind.XML),
        ("<html><a href='a%20b;c'>404</p></html>", "gone.dtd", Kind.DTD),
        ("<!ELEMENT", "half.mod", Kind.XML),
        ("<a><b></a>", "broken.ent", Kind.DTD),
        ("<html><p>404</p></html>", "gone.dtd", Kind.DTD),
        ("<html><p>404</p></html>", "gone.mod", Kind.DTD),
    ],
)
def test_what_is_broken_stays_broken_whatever_it_is_called(page: Page, body: str, url: str, kind: Kind) -> None:
    document, report = read_alone(page, body, D + url, kind=kind)
    assert (report.state, report.error, document) == (LoadState.FAILED, "not-well-formed", None)


def test_what_declares_elements_is_a_dtd_though_it_names_what_others_declare(page: Page) -> None:
    document, report = read_alone(page, "<![IGNORE[ %more; ]]><!ELEMENT r EMPTY>", D + "r.dtd", kind=Kind.DTD)
    assert report.state is LoadState.LOADED and document is not None
    assert (document.verdict, document.problems, document.tags) == (Verdict.NO_GRAMMAR, (), 1)


def test_the_media_type_of_entities_stands_for_content_too(page: Page) -> None:
    """RFC 7303: application/xml-external-parsed-entity; a DTD's own type is for declarations only."""
    for mime, form, error in (
        ("application/xml-external-parsed-entity", "entity", ""),
        ("application/xml-dtd", "dtd", "not-well-formed"),
    ):
        document, report = read_alone(page, "<p/>text", D + "chapter", kind=Kind.DTD, mime=mime)
        assert (report.format, report.error, document is None) == (form, error, bool(error))


def test_the_links_of_an_entity_are_found(page: Page) -> None:
    body = '<p xmlns:l="http://www.w3.org/1999/xlink" l:href="next.xml"/>&more;'
    _, report = read_alone(page, body, D + "chapter.ent", kind=Kind.DTD)
    assert report.links.urls == (D + "next.xml",)


# --- extras: parts that a document is read without, and kept with ----------------------------------------------------

WHOLE = (
    '<?xml-stylesheet type="text/xsl" href="s.xsl"?><?xml-stylesheet type="text/css" href="s.css"?>'
    '<r xmlns:i="http://www.w3.org/2001/XInclude" xmlns:l="http://www.w3.org/1999/xlink">'
    '<i:include href="i.xml"/><i:include href="file:///etc/passwd"/><i:include href="#own"/><i:include href="doc.xml"/>'
    '<e l:type="simple" l:show="embed" l:actuate="onLoad" l:href="e.xml"/>'
    '<e l:type="simple" l:show="embed" l:actuate="onRequest" l:href="no.xml"/>'
    '<svg xmlns="http://www.w3.org/2000/svg"><image l:show="embed" l:actuate="onLoad" l:href="p.png"/></svg></r>'
)
EVERY = {"xinclude": "i.xml", "stylesheet": "s.xsl", "xlink": "e.xml"}


@pytest.mark.parametrize("kinds", [(), ("xinclude",), ("stylesheet", "xlink"), tuple(EVERY)])
def test_a_document_waits_for_the_extras_asked_for_and_is_kept_with_them(kinds: tuple[str, ...], page: Page) -> None:
    intake = Intake(keep=FORMATS, extras=kinds)
    wanted = {D + EVERY[kind] for kind in kinds}
    told = intake.take(page(WHOLE), 0.0)
    if wanted:
        (waits,) = told
        assert isinstance(waits, LoadReport) and waits.state is LoadState.WAITING and set(waits.needs) == wanted
    for number, url in enumerate(sorted(wanted)):
        told = intake.take(page("<part/>", url, page=20 + number), 0.0)
    document = next(one for one in told if isinstance(one, Document) and one.page == 7)
    assert set(document.parts) == wanted and finals(told)[-1] == (7, LoadState.LOADED, "")
    assert intake.waiting == 0


def test_an_extra_that_cannot_be_had_holds_nothing_up(page: Page) -> None:
    intake = Intake(keep=FORMATS, extras=tuple(EVERY))
    intake.take(page(WHOLE), 0.0)
    told = intake.missing(D + "i.xml", 1.0)
    assert finals(told) == [(7, LoadState.LOADED, "")] and isinstance(told[0], Document)


def test_documents_that_include_each_other_are_both_loaded(page: Page) -> None:
    one, two = (
        page(f'<r xmlns:i="http://www.w3.org/2001/XInclude"><i:include href="{other}"/></r>', D + own, page=number)
        for own, other, number in (("1.xml", "2.xml", 1), ("2.xml", "1.xml", 2))
    )
    intake = Intake(keep=FORMATS, extras=("xinclude",))
    assert finals(intake.take(one, 0.0)) == [(1, LoadState.WAITING, "")]
    told = intake.take(two, 0.0)  # its body is what the first waits for; it waits for the first itself
    assert (1, LoadState.LOADED, "") in finals(told) and (2, LoadState.WAITING, "") in finals(told)
    assert (2, LoadState.LOADED, "") in finals(intake.take(one, 1.0)) and intake.waiting == 0


def test_without_a_warehouse_extras_are_links_only(page: Page) -> None:
    (report,) = Intake(extras=tuple(EVERY)).take(page(WHOLE), 0.0)
    assert isinstance(report, LoadReport) and report.state is LoadState.LOADED and D + "i.xml" in report.links.urls
