"""Documents and parts through the whole loader: waiting, completing, giving up, starting again."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from xyro.loader.intake import TROUBLES, Intake
from xyro.loader.parse import FAULTS, ParseLimits
from xyro.wire.messages import Kind, LinkKind, LoadReport, LoadState, XmlPage

Page = Callable[..., XmlPage]
D = "http://h.test/d/"
DTD = D + "x.dtd"
XHTML = 'xmlns="http://www.w3.org/1999/xhtml"'
DOCUMENT = f'<!DOCTYPE r SYSTEM "x.dtd"><r {XHTML}><a href="first"/><a href="&where;"/>&more;<e/></r>'
DECLARATIONS = (
    '<!ENTITY where "second"><!ENTITY more SYSTEM "more.ent">'
    '<!ATTLIST e xmlns:l CDATA #FIXED "http://www.w3.org/1999/xlink" l:type CDATA #FIXED "simple"'
    ' l:href CDATA "fourth">'
)
MORE = f'<a {XHTML} href="third"/>text<a {XHTML} href="third"/>'


def states(reports: list[LoadReport]) -> list[tuple[int, LoadState]]:
    return [(report.page, report.state) for report in reports]


def test_a_document_waits_for_its_dtd_and_for_what_the_dtd_names(page: Page) -> None:
    intake = Intake()
    (report,) = intake.take(page(DOCUMENT), 0.0)
    assert (report.state, report.needs, report.links.urls) == (LoadState.WAITING, (DTD,), (D + "first",))
    assert DTD in intake.missed_parts
    assert D + "more.ent" not in intake.missed_parts

    part, document = intake.take(page(DECLARATIONS, DTD, page=8, kind=Kind.DTD), 1.0)
    assert (part.page, part.state, part.format) == (8, LoadState.LOADED, "dtd")
    assert (document.page, document.state, document.needs) == (7, LoadState.WAITING, (D + "more.ent",))

    part, document = intake.take(page(MORE, D + "more.ent", page=9), 2.0)
    assert (part.page, part.state, part.links.urls) == (9, LoadState.LOADED, (D + "third",))
    assert (document.page, document.epoch, document.state, document.error) == (7, 1, LoadState.LOADED, "")
    assert document.links.urls == tuple(D + path for path in ("first", "second", "third", "fourth"))
    assert document.links.flags[-1] == LinkKind.XLINK
    assert (intake.waiting, intake.ready) == (0, 0)


def test_with_its_parts_on_the_shelf_nothing_waits(page: Page) -> None:
    intake = Intake()
    intake.take(page('<!ENTITY where "second"><!ENTITY more "">', DTD, page=8, kind=Kind.DTD), 0.0)
    (report,) = intake.take(page(DOCUMENT), 0.0)
    assert (report.state, report.links.urls) == (LoadState.LOADED, (D + "first", D + "second"))


def test_a_part_that_cannot_be_had(page: Page) -> None:
    intake = Intake()
    intake.take(page(DOCUMENT), 0.0)
    intake.take(page(DOCUMENT, D + "other.xml", page=6), 0.0)
    reports = intake.missing(DTD, 1.0)
    assert states(reports) == [(7, LoadState.INCOMPLETE), (6, LoadState.INCOMPLETE)]
    assert {report.error for report in reports} == {"missing-part"}
    assert reports[0].links.urls == (D + "first",)
    assert (intake.waiting, intake.missing(DTD, 2.0)) == (0, [])


def test_with_one_of_two_parts_it_is_read_as_far_as_it_goes(page: Page) -> None:
    intake = Intake()
    intake.take(page(DOCUMENT), 0.0)
    intake.take(page(DECLARATIONS, DTD, page=8, kind=Kind.DTD), 0.0)
    (report,) = intake.missing(D + "more.ent", 1.0)
    assert (report.state, report.error) == (LoadState.INCOMPLETE, "missing-part")
    assert report.links.urls == (D + "first", D + "second", D + "fourth")


def test_patience_ends(page: Page) -> None:
    intake = Intake(patience_s=60.0)
    intake.take(page(DOCUMENT), 100.0)
    assert intake.expire(159.0) == []
    intake.take(page(DECLARATIONS, DTD, page=8, kind=Kind.DTD), 159.0)
    assert states(intake.expire(160.0)) == [(7, LoadState.INCOMPLETE)]
    assert intake.waiting == 0


def test_a_part_that_is_late_is_still_used(page: Page) -> None:
    """No call between: the part comes after the deadline, and the document ends there, whatever else it names."""
    intake = Intake(patience_s=60.0)
    intake.take(page(DOCUMENT), 0.0)
    _, report = intake.take(page(DECLARATIONS, DTD, page=8, kind=Kind.DTD), 1_000.0)
    assert (report.state, D + "second" in report.links.urls) == (LoadState.INCOMPLETE, True)


def test_taking_the_same_page_twice_changes_nothing(page: Page) -> None:
    once, twice = Intake(), Intake()
    first = once.take(page(DOCUMENT), 0.0)
    assert twice.take(page(DOCUMENT), 0.0) == first
    assert twice.take(page(DOCUMENT), 0.0) == first
    assert twice.waiting == 1
    dtd = page(DECLARATIONS, DTD, page=8, kind=Kind.DTD)
    assert twice.take(dtd, 1.0) == once.take(dtd, 1.0)
    more = page(MORE, D + "more.ent", page=9)
    assert twice.take(more, 2.0) == once.take(more, 2.0)
    assert twice.waiting == once.waiting == 0


def test_after_a_restart_waiting_pages_are_taken_again(page: Page) -> None:
    before, after = Intake(), Intake()
    before.take(page(DOCUMENT), 0.0)
    before.take(page(DECLARATIONS, DTD, page=8, kind=Kind.DTD), 0.0)
    assert after.take(page(DOCUMENT), 10.0)[0].needs == (DTD,)


def test_a_newer_read_replaces_the_waiting_one_and_an_older_is_ignored(page: Page) -> None:
    intake = Intake()
    intake.take(page(DOCUMENT, epoch=2), 0.0)
    assert intake.take(page("<r/>", epoch=1), 0.0) == []
    assert intake.waiting == 1
    (report,) = intake.take(page("<r/>", epoch=3), 0.0)
    assert (report.state, intake.waiting, DTD in intake.missed_parts) == (LoadState.LOADED, 0, False)


def test_many_documents_wait_for_one_part_and_the_loop_goes_on(page: Page) -> None:
    """Reading them again is spread over calls by size; `ready` says that there is more."""
    intake = Intake()
    padding = "<!--" + "x" * 100_000 + "-->"
    for number in range(30):
        intake.take(page(DOCUMENT.replace("<e/>", padding), D + f"{number}.xml", page=number), 0.0)
    reports = intake.take(page('<!ENTITY where "w"><!ENTITY more "">', DTD, page=99, kind=Kind.DTD), 0.0)
    assert 2 < len(reports) < 30
    assert intake.ready == intake.waiting == 31 - len(reports)
    while intake.ready:
        reports += intake.expire(0.0)
    assert states(reports[1:]) == [(number, LoadState.LOADED) for number in range(30)]


def test_waiting_bodies_are_bounded(page: Page) -> None:
    """Beyond the bound the oldest end; what waits is kept packed."""
    noise = random.Random(1)
    intake = Intake(waiting_bytes=100_000)
    ended = []
    for number in range(20):
        body = DOCUMENT.replace("<e/>", f"<!--{noise.randbytes(10_000).hex()}-->")
        ended += intake.take(page(body, D + f"{number}.xml", page=number), 0.0)[1:]
    assert [report.page for report in ended] == list(range(len(ended)))
    assert {report.state for report in ended} == {LoadState.INCOMPLETE}
    assert 10 <= len(ended) <= 15


def test_a_redirected_part(page: Page) -> None:
    intake = Intake()
    intake.take(page(DOCUMENT), 0.0)
    (report,) = intake.moved(DTD, "https://o.test/x.dtd", 0.0)
    assert (report.state, report.needs) == (LoadState.WAITING, ("https://o.test/x.dtd",))
    declarations = page('<!ENTITY where "w"><!ENTITY more "">', "https://o.test/x.dtd", page=8, kind=Kind.DTD)
    assert states(intake.take(declarations, 0.0)) == [(8, LoadState.LOADED), (7, LoadState.LOADED)]


def test_redirects_of_parts_that_loop(page: Page) -> None:
    intake = Intake()
    intake.take(page(DOCUMENT), 0.0)
    intake.moved(DTD, D + "y.dtd", 0.0)
    (report,) = intake.moved(D + "y.dtd", DTD, 0.0)
    assert (report.state, report.error) == (LoadState.INCOMPLETE, "refused-part")
    assert intake.moved(DTD, D + "y.dtd", 0.0) == []


def test_dtds_that_name_each_other_end(page: Page) -> None:
    intake = Intake()
    intake.take(page(DOCUMENT), 0.0)
    reports = intake.take(page('<!ENTITY % y SYSTEM "y.dtd"> %y;', DTD, page=8, kind=Kind.DTD), 0.0)
    assert (reports[0].links.urls, reports[1].needs) == ((D + "y.dtd",), (D + "y.dtd",))
    reports = intake.take(page('<!ENTITY % x SYSTEM "x.dtd"> %x;', D + "y.dtd", page=9, kind=Kind.DTD), 0.0)
    assert (reports[0].state, reports[0].links.dropped) == (LoadState.LOADED, 1)
    assert (reports[1].state, reports[1].error) == (LoadState.INCOMPLETE, "bad-part")
    assert reports[1].links.urls == (D + "first",)


def test_an_endless_chain_of_dtds_ends(page: Page) -> None:
    intake = Intake(limits=ParseLimits(parts=10))
    (report,) = intake.take(page(DOCUMENT), 0.0)
    for number in range(20):
        if report.state is not LoadState.WAITING:
            break
        body = f'<!ENTITY % p{number} SYSTEM "{number}.dtd"> %p{number};'
        _, report = intake.take(page(body, report.needs[0], page=100 + number, kind=Kind.DTD), 0.0)
    assert report.state is LoadState.INCOMPLETE
    assert intake.waiting == 0


@pytest.mark.parametrize("body", ["not a DTD", "<!ELEMENT", "<html><body>404</body></html>", "\udcff"])
def test_a_part_that_is_no_dtd_costs_the_document_only_the_part(body: str, page: Page) -> None:
    intake = Intake()
    intake.take(page(DOCUMENT), 0.0)
    part, report = intake.take(page(body.encode("utf-8", "surrogateescape"), DTD, page=8, kind=Kind.DTD), 0.0)
    assert (part.state, part.format) == (LoadState.FAILED, "dtd")
    assert (report.state, report.error, report.links.urls) == (LoadState.INCOMPLETE, "bad-part", (D + "first",))


def test_a_document_at_fault_fails_with_and_without_its_parts(page: Page) -> None:
    intake = Intake()
    broken = DOCUMENT.replace("</r>", "<x></r>")
    (report,) = intake.take(page(broken), 0.0)
    assert (report.state, report.error, report.links.urls) == (LoadState.FAILED, "not-well-formed", (D + "first",))
    intake.take(page(DECLARATIONS, DTD, page=8, kind=Kind.DTD), 0.0)
    (report,) = intake.take(page(broken), 0.0)
    assert (report.state, report.error) == (LoadState.FAILED, "not-well-formed")


def test_a_module_that_misses_what_another_one_declares_waits_for_it(page: Page) -> None:
    """As DocBook 4.3 and later: declarations of one module take parameter entities of another's own module."""
    intake = Intake()
    names = '<!ENTITY % a SYSTEM "a.mod"><!ENTITY % b SYSTEM "b.mod">%b;%a;'
    (report,) = intake.take(page('<!DOCTYPE r SYSTEM "x.dtd"><r/>'), 0.0)
    intake.take(page(names, report.needs[0], page=8, kind=Kind.DTD), 0.0)
    parts = {"a.mod": "<!ATTLIST r kind %kinds; #IMPLIED>", "b.mod": '<!ENTITY % c SYSTEM "c.mod">%c;'}
    for number, (name, body) in enumerate(parts.items(), 9):
        *_, report = intake.take(page(body, D + name, page=number, kind=Kind.DTD), 0.0)
    assert (report.state, report.needs) == (LoadState.WAITING, (D + "c.mod",))
    part, report = intake.take(page('<!ENTITY % kinds "(x|y)">', D + "c.mod", page=11, kind=Kind.DTD), 0.0)
    assert (part.state, report.state, report.error) == (LoadState.LOADED, LoadState.LOADED, "")


def test_a_part_over_its_limit_is_a_missing_one(page: Page) -> None:
    intake = Intake(limits=ParseLimits(part=1_000))
    intake.take(page(DOCUMENT), 0.0)
    part, report = intake.take(page("<!ELEMENT a EMPTY>" * 100, DTD, page=8, kind=Kind.DTD), 0.0)
    assert (part.state, part.error) == (LoadState.FAILED, "too-large")
    assert (report.state, report.error) == (LoadState.INCOMPLETE, "missing-part")


def test_a_shelf_too_small_for_a_part(page: Page) -> None:
    intake = Intake(part_cache_bytes=100)
    intake.take(page(DOCUMENT), 0.0)
    assert states(intake.take(page(DECLARATIONS, DTD, page=8, kind=Kind.DTD), 0.0))[1:] == [(7, LoadState.INCOMPLETE)]


def test_zipped_parts_and_charsets_of_parts(page: Page) -> None:
    import gzip

    intake = Intake()
    intake.take(
        page('<!ENTITY where "é"><!ENTITY more "">'.encode("latin-1"), DTD, kind=Kind.DTD, charset="latin-1"), 0.0
    )
    assert intake.take(page(DOCUMENT), 0.0)[0].links.urls[1] == D + "%C3%A9"
    zipped = gzip.compress(
        '<?xml version="1.0" encoding="iso-8859-1"?><!ENTITY where "ü"><!ENTITY more "">'.encode("latin-1")
    )
    intake.take(page(zipped, DTD, kind=Kind.DTD), 0.0)
    assert intake.take(page(DOCUMENT), 0.0)[0].links.urls[1] == D + "%C3%BC"


def test_a_wanted_part_may_be_a_document_or_declarations(page: Page) -> None:
    intake = Intake()
    intake.take(page('<!DOCTYPE r [<!ENTITY % m SYSTEM "m"><!ENTITY e SYSTEM "e">%m;]><r>&e;</r>'), 0.0)
    (report,) = intake.take(page('<!ENTITY x "y">', D + "m", page=8), 0.0)
    assert (report.state, report.format) == (LoadState.LOADED, "dtd")
    reports = intake.take(page(f'<a {XHTML} href="z"/>', D + "e", page=9), 0.0)
    assert states(reports) == [(9, LoadState.LOADED), (7, LoadState.LOADED)]
    assert reports[1].links.urls == (D + "z",)


def test_unwanted_fragments_are_faulty_documents(page: Page) -> None:
    (report,) = Intake().take(page(MORE, D + "more.xml"), 0.0)
    assert (report.state, report.error) == (LoadState.FAILED, "not-well-formed")


def test_links_of_a_dtd_are_its_parts(page: Page) -> None:
    body = (
        '<!ENTITY % a SYSTEM "a.mod">%a;<!ENTITY % b SYSTEM "file:///b">%b;<!ENTITY unused SYSTEM "c"><!ELEMENT d ANY>'
    )
    (report,) = Intake().take(page(body, DTD, kind=Kind.DTD), 0.0)
    assert (report.state, report.format, report.links.urls) == (LoadState.LOADED, "dtd", (D + "a.mod",))
    assert (report.links.flags, report.links.dropped) == (bytes([LinkKind.XLINK]), 1)


def test_all_dtds_can_be_fetched(page: Page) -> None:
    document = page('<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" "http://w.test/x.dtd"><html/>')
    assert Intake().take(document, 0.0)[0].state is LoadState.LOADED
    assert Intake(stand_ins={}).take(document, 0.0)[0].needs == ("http://w.test/x.dtd",)


def test_a_waiting_sitemap_stays_named(page: Page) -> None:
    body = '<!DOCTYPE urlset SYSTEM "x.dtd"><urlset><url><loc>http://o.test/</loc></url></urlset>'
    for named in (True, False):
        intake = Intake()
        intake.take(page(body), 0.0, named=named)
        (report,) = intake.missing(DTD, 0.0)
        assert report.links.urls == (("http://o.test/",) if named else ())


def test_every_order_of_parts_gives_the_same_end(page: Page) -> None:
    document = page(
        '<!DOCTYPE r SYSTEM "x.dtd" [<!ENTITY e SYSTEM "e"><!ENTITY f SYSTEM "f">]><r>&e;&f;</r>', D + "doc.xml", page=0
    )
    parts = [
        page("<!ELEMENT r ANY>", DTD, page=1, kind=Kind.DTD),
        page(f'<a {XHTML} href="1"/>', D + "e", page=2),
        page(f'<a {XHTML} href="2"/>', D + "f", page=3),
    ]
    for order in ([0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]):
        intake = Intake()
        intake.take(document, 0.0)
        reports = [report for index in order for report in intake.take(parts[index], 0.0)]
        final = reports[-1]
        assert (final.page, final.state, final.links.urls) == (0, LoadState.LOADED, (D + "1", D + "2"))
        assert len(reports) == 4


def test_every_error_has_a_meaning(page: Page) -> None:
    assert not FAULTS.keys() & TROUBLES.keys()
    (report,) = Intake().take(replace(page("x"), url=D), 0.0)
    assert report.error in FAULTS
