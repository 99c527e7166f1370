"""The keys of [loader]: each one, written in settings, changes what the loader makes of a document."""

from __future__ import annotations

import pytest

from xyro.configs.load import load
from xyro.loader.library import NOTHING
from xyro.service.node.loader_factory import intake_of
from xyro.wire.messages import Document, Kind, LoadReport, LoadState, Verdict, XmlPage

D = "http://h.test/d/"
WITH_DTD = b"<!DOCTYPE r SYSTEM 'x.dtd'><r>&more;</r>"
DTD = b"<!ELEMENT r (#PCDATA)><!ENTITY more 'text'>"
EXTRA = b'<r xmlns:i="http://www.w3.org/2001/XInclude"><i:include href="i.xml"/></r>'


def intake(library=NOTHING, **keys):
    return intake_of(load(overrides={f"loader.{key}": value for key, value in keys.items()}), library)


def page(body, name="doc.xml", number=7, kind=Kind.XML):
    return XmlPage(number, D + name, 1, 0.0, kind, "text/xml", "", body)


def documents(messages):
    return [message for message in messages if isinstance(message, Document)]


def states(messages):
    return [message.state for message in messages if isinstance(message, LoadReport)]


@pytest.mark.parametrize("store", [True, False])
def test_store_keeps_documents(store):
    assert len(documents(intake(store=store).take(page(b"<r/>"), 0.0))) == store


@pytest.mark.parametrize(("validate", "verdict"), [(True, Verdict.INVALID), (False, Verdict.NO_GRAMMAR)])
def test_validate_judges_documents(validate, verdict):
    body = b"<!DOCTYPE r [<!ELEMENT r EMPTY>]><r>text</r>"
    (document,) = documents(intake(validate=validate).take(page(body), 0.0))
    assert document.verdict is verdict


@pytest.mark.parametrize(("keep", "kept"), [(("xml", "rss"), 1), (("rss",), 0)])
def test_keep_names_the_formats_of_documents_that_are_kept(keep, kept):
    assert len(documents(intake(keep=keep).take(page(b"<r/>"), 0.0))) == kept


@pytest.mark.parametrize(("extras", "state"), [(("xinclude",), LoadState.WAITING), (("stylesheet",), LoadState.LOADED)])
def test_extras_are_parts_that_a_document_waits_for(extras, state):
    assert states(intake(extras=extras).take(page(EXTRA), 0.0)) == [state]


def test_catalogs_have_copies_of_parts_that_need_not_be_read(tmp_path):
    (tmp_path / "copy.dtd").write_bytes(DTD)
    catalog = tmp_path / "catalog.xml"
    entry = '<public publicId="-//H//R//EN" uri="copy.dtd"/>'
    catalog.write_text(f'<catalog xmlns="urn:oasis:names:tc:entity:xmlns:xml:catalog">{entry}</catalog>')
    document = page(WITH_DTD.replace(b"SYSTEM", b"PUBLIC '-//H//R//EN'"))
    assert states(intake().take(document, 0.0)) == [LoadState.WAITING]
    assert states(intake(catalogs=(str(catalog),)).take(document, 0.0)) == [LoadState.LOADED]


def test_patience_ends_the_wait_for_parts():
    loads = intake(patience=50.0)
    assert states(loads.take(page(WITH_DTD), 0.0)) == [LoadState.WAITING]
    assert states(loads.expire(49.0)) == [] and loads.waiting == 1
    assert len(states(loads.expire(51.0))) == 1 and loads.waiting == 0


@pytest.mark.parametrize(("part_cache", "state"), [(1 << 20, LoadState.LOADED), (0, LoadState.INCOMPLETE)])
def test_part_cache_holds_the_parts_that_documents_are_read_with(part_cache, state):
    loads = intake(part_cache=part_cache)
    loads.take(page(WITH_DTD), 0.0)
    assert states(loads.take(page(DTD, "x.dtd", 8, Kind.DTD), 0.0)) == [LoadState.LOADED, state]


@pytest.mark.parametrize(("waiting_cache", "waiting"), [(1 << 20, 5), (0, 0)])
def test_waiting_cache_bounds_the_bodies_that_wait_in_memory(waiting_cache, waiting):
    """Without a warehouse that has them, documents whose bodies do not fit are given up."""
    loads = intake(waiting_cache=waiting_cache)
    for number in range(5):
        loads.take(page(WITH_DTD, f"{number}.xml", number), 0.0)
    assert loads.waiting == waiting
