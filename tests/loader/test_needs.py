"""What documents need, as the parser asks for it; the shelf; stand-ins."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.loader.needs import NOTHING, STAND_INS, Shelf, ShelfPart, Supply
from xyro.loader.parse import ParseLimits, XmlFault, pieces, read
from xyro.loader.xlinks import DocumentLinks, XmlLinks

URL = "http://h.test/d/doc.xml"
D = "http://h.test/d/"


def supply_of(document: str, shelf: Shelf | None = None, limits: ParseLimits | None = None) -> Supply:
    limits = limits or ParseLimits()
    supply = Supply(URL, shelf or Shelf(0), limits, STAND_INS)
    handler = XmlLinks(DocumentLinks(URL, 0.0))
    read(pieces(document.encode(), limits), "", lambda tag: handler, limits, supply.answer)
    return supply


@pytest.mark.parametrize(
    ("document", "needs", "refused"),
    [
        ("<r/>", [], 0),
        ("<!DOCTYPE r><r/>", [], 0),
        ('<!DOCTYPE r SYSTEM "x.dtd"><r/>', ["x.dtd"], 0),
        ('<!DOCTYPE r PUBLIC "-//X//Y//EN" "/x.dtd"><r/>', ["/x.dtd"], 0),
        ('<?xml version="1.0" standalone="yes"?><!DOCTYPE r SYSTEM "x.dtd"><r/>', ["x.dtd"], 0),
        ('<!DOCTYPE r [<!ENTITY e SYSTEM "e">]><r>&e;&e;</r>', ["e"], 0),
        ('<!DOCTYPE r [<!ENTITY e PUBLIC "p" "e">]><r>&e;</r>', ["e"], 0),
        ('<!DOCTYPE r [<!ENTITY e SYSTEM "e">]><r/>', [], 0),
        ('<!DOCTYPE r [<!ENTITY e SYSTEM "e">]><r><!-- &e; --><![CDATA[&e;]]><?p &e;?></r>', [], 0),
        ('<!DOCTYPE r [<!ENTITY e SYSTEM "e"><!ENTITY f "x&e;">]><r>&f;</r>', ["e"], 0),
        ('<!DOCTYPE r [<!ENTITY % p SYSTEM "p"> %p;]><r/>', ["p"], 0),
        ('<!DOCTYPE r [<!ENTITY % p SYSTEM "p">]><r/>', [], 0),
        ('<!DOCTYPE r SYSTEM "x.dtd" [<!ENTITY % p SYSTEM "p"> %p; <!ENTITY e SYSTEM "e">]><r>&e;</r>',
         ["p", "x.dtd", "e"], 0),
        ('<!DOCTYPE r [<!ENTITY e SYSTEM "a.gif" NDATA gif><!NOTATION gif SYSTEM "v">]><r/>', [], 0),
        ('<!DOCTYPE r SYSTEM "file:///x.dtd"><r/>', [], 1),
        ('<!DOCTYPE r SYSTEM "ftp://h.test/x.dtd" [<!ENTITY e SYSTEM "jar:x">]><r>&e;</r>', [], 2),
        ('<!DOCTYPE r SYSTEM "doc.xml"><r/>', [], 1),
        ('<!DOCTYPE r SYSTEM "about:legacy-compat"><r/>', [], 0),
        ('<!DOCTYPE r SYSTEM "x-own:"><r/>', [], 1),
        ('<!DOCTYPE r SYSTEM ""><r/>', [], 1),
        ('<!DOCTYPE r [<!ENTITY e SYSTEM "http://h.test:80/d/./e">]><r>&e;</r>', ["e"], 0),
    ],
)  # fmt: skip
def test_needs(document: str, needs: list[str], refused: int) -> None:
    supply = supply_of(document)
    assert sorted(supply.needs) == sorted(f"http://h.test{n}" if n[0] == "/" else D + n for n in needs)
    assert supply.refused == refused
    assert supply.used == 0


def test_what_a_part_names_is_relative_to_the_part() -> None:
    shelf = Shelf(10_000)
    shelf.put(D + "dtds/x.dtd", b'<!ENTITY % m SYSTEM "mods/m.mod"> %m; <!ENTITY e SYSTEM "../e.xml">')
    document = '<!DOCTYPE r SYSTEM "dtds/x.dtd"><r>&e;&f;</r>'
    supply = supply_of(document, shelf)
    assert list(supply.needs) == [D + "dtds/mods/m.mod", D + "e.xml"]
    shelf.put(D + "dtds/mods/m.mod", b'<!ENTITY f SYSTEM "f.xml">')
    assert list(supply_of(document, shelf).needs) == [D + "e.xml", D + "dtds/mods/f.xml"]


def test_a_redirected_part_is_relative_to_where_it_was_read() -> None:
    shelf = Shelf(10_000)
    shelf.point(D + "x.dtd", "https://o.test/y/x.dtd")
    document = '<!DOCTYPE r SYSTEM "x.dtd"><r/>'
    assert list(supply_of(document, shelf).needs) == ["https://o.test/y/x.dtd"]
    shelf.put("https://o.test/y/x.dtd", b'<!ENTITY % m SYSTEM "m"> %m;')
    assert list(supply_of(document, shelf).needs) == ["https://o.test/y/m"]


def test_the_number_of_parts_is_limited() -> None:
    def document(count: int) -> str:
        names = [f"e{i}" for i in range(count)]
        declared = "".join(f'<!ENTITY {name} SYSTEM "{name}">' for name in names)
        return f"<!DOCTYPE r [{declared}]><r>{''.join(f'&{name};' for name in names)}</r>"

    assert len(supply_of(document(5), limits=ParseLimits(parts=5)).needs) == 5
    with pytest.raises(XmlFault, match="too-many-parts"):
        supply_of(document(6), limits=ParseLimits(parts=5))


@pytest.mark.parametrize("public", [*STAND_INS, "-//W3C//DTD\n XHTML 1.0  Strict//EN"])
def test_well_known_dtds_are_not_needed(public: str) -> None:
    supply = supply_of(f'<!DOCTYPE html PUBLIC "{public}" "http://www.w3.org/x.dtd"><html>&nbsp;</html>')
    assert (supply.needs, supply.asked, supply.refused) == ({}, {}, 0)


def test_stand_ins_know_the_characters_of_html() -> None:
    found = DocumentLinks(URL, 0.0)
    handler = XmlLinks(found)
    document = (
        '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd">'
        '<html xmlns="http://www.w3.org/1999/xhtml">&nbsp;<a href="caf&eacute;?a&amp;b&lt;"/></html>'
    )
    read(
        [document.encode()],
        "",
        lambda tag: handler,
        ParseLimits(),
        Supply(URL, Shelf(0), ParseLimits(), STAND_INS).answer,
    )
    assert found.links().urls == (D + "caf%C3%A9?a&b%3C",)


def test_shelf_follows_redirects_but_no_loops() -> None:
    shelf = Shelf(10_000)
    shelf.point("a", "b")
    assert shelf.get("a") == "b"
    shelf.put("b", b"body")
    assert shelf.get("a") == ShelfPart("b", b"body")
    shelf.point("b", "a")
    assert shelf.get("a") is NOTHING


def test_shelf_forgets_the_longest_unused() -> None:
    shelf = Shelf(3 * 301)
    for name in "abc":
        assert shelf.put(name, bytes(100))
    shelf.get("a")
    shelf.put("d", bytes(100))
    assert [isinstance(shelf.get(name), ShelfPart) for name in "abcd"] == [True, False, True, True]
    assert not shelf.put("e", bytes(1_000))
    assert isinstance(shelf.get("d"), ShelfPart)


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.one_of(st.integers(0, 400), st.sampled_from("abcdef")))),
    st.integers(0, 1_500),
)
def test_shelf_is_bounded(rows: list[tuple[str, int | str]], capacity: int) -> None:
    shelf = Shelf(capacity)
    for url, row in rows:
        kept = shelf.point(url, row) if isinstance(row, str) else shelf.put(url, bytes(row))
        assert 0 <= shelf.size <= capacity
        assert kept == (201 + (1 if isinstance(row, str) else row) <= capacity)
        if kept and isinstance(row, int):
            assert shelf.get(url) == ShelfPart(url, bytes(row))
