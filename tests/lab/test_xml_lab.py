"""A focus finds XML sooner than no focus: the same figures each time, for nothing in it is left to chance."""

from __future__ import annotations

import pytest

from xyro.lab.crawls.xml_kinds import NEVER, delays, found, ways, web_of
from xyro.lab.web.places import Doc


@pytest.mark.long
def test_a_focus_finds_documents_sooner():
    web, settings = web_of(1, 1_000), ways()
    shares = {name: found(web, way) for name, way in settings.items()}
    assert shares["xml.toml"] > 2 * max(shares["breadth-first"], shares["OPIC"], 0.05)
    assert found(web, settings["OPIC"]) == shares["OPIC"]


@pytest.mark.long
def test_documents_that_are_born_are_found():
    web = web_of(1, 600, births=0.5)
    waits = delays(web, ways()["xml.toml"])
    assert 0 < len(waits) < len(web.places.of_kind(Doc.XML))
    assert min(waits) > 0.0 and sum(wait < NEVER for wait in waits) > len(waits) / 2
