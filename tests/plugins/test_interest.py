"""[[focus]] leads_to: parents of documents, and what hangs beside these, get another share of the virtual page."""

from __future__ import annotations

import msgspec
import pytest

from tests.frontier.rig import Crawl, url
from tests.plugins.test_focus import _reborn
from tests.service.test_part_library import load
from xyro.configs.load import load as read
from xyro.configs.schema import CrawlSettings as CrawlSettings
from xyro.configs.schema import FocusTable as Table
from xyro.configs.schema import OpicSettings, Settings
from xyro.metadata.states import CLASS_MASK, CLASS_SHIFT, LEADS, SOUGHT
from xyro.wire.errors import InputError
from xyro.wire.messages import Kind, LoadReport, LoadState

HUB, DOCUMENT, BESIDE, OTHER = url(0, 0), url(0, 1), url(0, 2), url(0, 9)
LEADING = Table(20.0, kinds=("HTML",), leads_to=("xml",))


def set_to(*tables):
    return Settings(crawl=CrawlSettings(scope="any"), focus=tables)


def begun(*tables, settings=None):
    """A hub was read; it shows two pages. An ordinary page stands beside it."""
    crawl = Crawl.in_memory(settings=settings or set_to(*tables))
    crawl.submit(HUB, OTHER)
    crawl.turn()
    crawl.answer(crawl.order(HUB), [DOCUMENT, BESIDE])
    crawl.answer(crawl.order(OTHER), [url(1, 1)])
    crawl.turn()
    return crawl


def load_it(crawl, target=DOCUMENT, form="xml", state=LoadState.LOADED, error=""):
    order = crawl.order(target)
    crawl.load(LoadReport(order.page, order.url, order.epoch, state, form, error))
    crawl.answer(order, kind=Kind.XML, loading=True)
    crawl.turn()


def flags(crawl, target):
    frontier, page = crawl.page(target)
    return int(frontier.columns["flags"][page])


def class_of(crawl, target):
    return (flags(crawl, target) & CLASS_MASK) >> CLASS_SHIFT


def sound(crawl):
    there, wanted = crawl.cash()
    assert there == wanted
    said = crawl.audit()
    assert said["ok"], said["violations"]


def test_a_document_found_makes_its_parent_and_what_hangs_beside_it_rich():
    crawl = begun(LEADING)
    assert [class_of(crawl, page) for page in (HUB, DOCUMENT, BESIDE, OTHER)] == [0, 1, 1, 0]
    load_it(crawl)
    assert [class_of(crawl, page) for page in (HUB, DOCUMENT, BESIDE, OTHER)] == [2, 0, 3, 0]
    assert flags(crawl, DOCUMENT) & SOUGHT and flags(crawl, HUB) & LEADS and flags(crawl, BESIDE) & LEADS
    sound(crawl)


def test_a_parent_hears_of_it_as_soon_as_it_is_loaded_though_it_does_not_spend():
    settings = msgspec.structs.replace(set_to(LEADING), opic=OpicSettings(spend_ratio=0.0))
    crawl = begun(settings=settings)
    spends = crawl.frontier.ledger.spends
    load_it(crawl)
    assert crawl.frontier.ledger.spends == spends + 1, "the document, and nobody else"
    assert [class_of(crawl, page) for page in (HUB, DOCUMENT, BESIDE, OTHER)] == [2, 0, 3, 0]
    sound(crawl)


@pytest.mark.parametrize(
    "form, state", [("rss", LoadState.LOADED), ("sitemap", LoadState.LOADED), ("xml", LoadState.FAILED)]
)
def test_what_is_not_sought_shares_nothing_back(form, state):
    crawl = begun(LEADING)
    load_it(crawl, form=form, state=state, error="not-well-formed" if state is LoadState.FAILED else "")
    assert [class_of(crawl, page) for page in (HUB, BESIDE)] == [0, 1]
    sound(crawl)


def test_what_hung_beside_a_document_is_an_ordinary_page_once_it_is_read():
    crawl = begun(LEADING)
    load_it(crawl)
    crawl.answer(crawl.order(BESIDE), [url(2, 2)])
    crawl.turn()
    assert class_of(crawl, BESIDE) == 0 and class_of(crawl, url(2, 2)) == 1
    sound(crawl)


def test_a_parent_that_shows_no_document_any_more_leads_no_more():
    crawl = begun(LEADING)
    load_it(crawl)
    crawl.submit(HUB)
    crawl.turn()
    crawl.answer(crawl.order(HUB), [BESIDE], signature=b"another one 1234")
    crawl.turn()
    assert class_of(crawl, HUB) == 0 and not flags(crawl, HUB) & LEADS
    sound(crawl)


def test_a_parent_that_did_not_introduce_the_document_hears_of_it_when_it_spends():
    crawl = begun(LEADING)
    load_it(crawl)
    crawl.submit(OTHER)
    crawl.turn()
    crawl.answer(crawl.order(OTHER), [DOCUMENT, url(3, 3)], signature=b"another one 1234")
    crawl.turn()
    assert [class_of(crawl, page) for page in (OTHER, url(3, 3))] == [2, 3]
    sound(crawl)


def test_a_document_that_is_gone_is_no_more_sought():
    crawl = begun(LEADING)
    load_it(crawl)
    crawl.submit(DOCUMENT)
    crawl.turn()
    crawl.fail(crawl.order(DOCUMENT), "http-404", status=404)
    crawl.turn()
    assert not flags(crawl, DOCUMENT) & SOUGHT
    sound(crawl)


def test_a_restart_keeps_it_and_a_crawl_without_the_table_drops_its_column():
    crawl = begun(LEADING)
    load_it(crawl)
    again = Crawl([_reborn(frontier.partition) for frontier in crawl.frontiers], set_to(LEADING))
    again.turn()
    assert "parent" in again.frontier.columns and class_of(again, HUB) == 2
    sound(again)
    plain = Crawl([_reborn(frontier.partition) for frontier in again.frontiers], set_to())
    plain.turn()
    assert "parent" not in plain.frontier.columns
    assert [class_of(plain, page) for page in (HUB, BESIDE)] == [0, 0]
    assert not flags(plain, HUB) & (LEADS | SOUGHT)
    sound(plain)


def test_a_document_that_has_become_another_kind_of_document_is_no_more_sought():
    crawl = begun(LEADING)
    load_it(crawl)
    crawl.submit(DOCUMENT)
    crawl.turn()
    load_it(crawl, form="rss")
    assert not flags(crawl, DOCUMENT) & SOUGHT
    sound(crawl)


def test_a_document_that_has_become_a_page_of_html_is_no_more_sought():
    crawl = begun(LEADING)
    load_it(crawl)
    crawl.submit(DOCUMENT)
    crawl.turn()
    crawl.answer(crawl.order(DOCUMENT), [], kind=Kind.HTML, signature=b"another one 1234")
    crawl.turn()
    assert not flags(crawl, DOCUMENT) & SOUGHT
    sound(crawl)


@pytest.mark.parametrize(("form", "found"), [("xml", True), ("rss", False)])
def test_a_table_that_comes_on_a_resume_counts_for_what_was_found_before(form, found):
    """By what is stored of documents and links; a page that has no XML below it stays ordinary."""
    crawl = begun()
    load(crawl, DOCUMENT, b"<a/>", Kind.XML, format=form)
    again = Crawl([_reborn(frontier.partition) for frontier in crawl.frontiers], set_to(LEADING))
    again.turn()
    assert bool(flags(again, DOCUMENT) & SOUGHT) is found
    assert [bool(flags(again, page) & LEADS) for page in (HUB, BESIDE, OTHER)] == [found, found, False]
    assert [class_of(again, page) for page in (HUB, BESIDE)] == ([2, 3] if found else [0, 1])
    sound(again)


def test_formats_stand_in_one_table(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text('[[focus]]\nweight = 2.0\nleads_to = ["xml"]\n' * 2)
    with pytest.raises(InputError, match="leads_to stand in several tables"):
        read((path,))
