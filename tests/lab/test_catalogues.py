"""Documents below catalogue pages, on archives only, born over time."""

from __future__ import annotations

import numpy as np
import pytest

from xyro.lab.web.places import Doc
from xyro.lab.web.render import render
from xyro.lab.web.shape import DAY, ORIGIN
from xyro.lab.web.truth import truth
from xyro.lab.web.web import Web
from xyro.wire.errors import InputError

WEB = Web(seed=3, pages=1_200, hosts=6, xml=0.1, catalogue=10, archives=0.5, births=0.5, birth_days=4.0, veiled=0.5)
XML = WEB.places.of_kind(Doc.XML).tolist()
LATER = [page for page in XML if np.isfinite(WEB.places.born[page])]


def parents(target):
    return [page for page in range(1_200) if any(link.target == target for link in WEB.links(page, 0))]


def test_documents_hang_on_few_pages_of_half_the_hosts():
    assert len({WEB.host(page) for page in XML}) == 3
    above = {parent for page in XML[:30] for parent in parents(page) if WEB.kind(parent) is Doc.HTML}
    assert len(above) <= 8
    suffixes = [WEB.url(page).rpartition(".")[2] for page in XML]
    assert 0.3 < suffixes.count("html") / len(XML) < 0.7


def test_a_document_is_not_there_before_its_birth_and_its_page_changes_with_it():
    page = LATER[0]
    born = float(WEB.places.born[page])
    assert ORIGIN < born < ORIGIN + 4 * DAY
    (parent,) = [one for one in parents(page) if WEB.kind(one) is Doc.HTML]
    for t, there in ((born - 1.0, False), (born, True)):
        assert (WEB.status(page, t) == 200) is there is (render(WEB, page, t).status == 200)
        assert (page in [link.target for link in WEB.shown(parent, t)]) is there
        assert (f"p{page}." in render(WEB, parent, t).body.decode()) is there
        assert (WEB.url(page) in truth(WEB, t).links(parent)) is there
    assert WEB.version(parent, born) == WEB.version(parent, born - 1e-3) + 1
    assert WEB.state(parent, born - 1e-3).until <= born == WEB.state(parent, born).since
    assert WEB.state(page, born - 1.0).until == born


def test_documents_that_were_always_there_are():
    for page in set(XML) - set(LATER):
        assert WEB.status(page, ORIGIN - DAY) == 200


def test_births_need_catalogues():
    with pytest.raises(InputError, match="catalogue page"):
        Web(pages=100, hosts=2, births=0.5)
