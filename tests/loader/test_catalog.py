"""OASIS XML Catalogs 1.1: one entry of each kind and the order between them; and what catalogs may not be used for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from xyro.loader.catalog import Catalog
from xyro.loader.needs import STAND_INS, Shelf, Supply
from xyro.loader.parse import ParseLimits, read
from xyro.loader.validate import Validator
from xyro.loader.xlinks import DocumentLinks, XmlLinks
from xyro.wire.errors import InputError
from xyro.wire.messages import Verdict

HEAD = '<catalog xmlns="urn:oasis:names:tc:entity:xmlns:xml:catalog">'
URL = "http://h.test/d/doc.xml"
Make = Callable[..., Catalog]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A catalog of these entries; each file `a` .. `e` holds its own name."""

    def write(entries: str, **more: str) -> Catalog:
        for name in "abcde":
            (tmp_path / name).write_text(name)
        for name, content in {"catalog": entries, **more}.items():
            (tmp_path / f"{name}.xml").write_text(HEAD + content + "</catalog>")
        return Catalog.load([tmp_path / "catalog.xml"])

    return write


def external(catalog: Catalog, public: str = "", system: str = "") -> str | None:
    copy = catalog.external(public, system)
    return copy.body.decode() if copy else None


@pytest.mark.parametrize(
    ("entries", "public", "system", "answer"),
    [
        ("", "p", "s", None),
        ('<public publicId="p" uri="a"/>', "p", "", "a"),
        ('<public publicId=" -//X//Y  Z//EN " uri="a"/>', "-//X//Y\n Z//EN", "", "a"),
        ('<public publicId="p" uri="a"/>', "q", "", None),
        ('<system systemId="s" uri="b"/><public publicId="p" uri="a"/>', "p", "s", "b"),
        ('<public publicId="p" uri="a"/><system systemId="s" uri="b"/>', "p", "s", "b"),
        ('<public publicId="p" uri="a"/><public publicId="p" uri="b"/>', "p", "", "a"),
        ('<group prefer="system"><public publicId="p" uri="a"/></group>', "p", "s", None),
        ('<group prefer="system"><public publicId="p" uri="a"/></group>', "p", "", "a"),
        ('<rewriteSystem systemIdStartString="http://x/" rewritePrefix="./"/>', "", "http://x/c", "c"),
        ('<rewriteSystem systemIdStartString="http://x/" rewritePrefix="no/"/>'
         '<rewriteSystem systemIdStartString="http://x/y/" rewritePrefix="./"/>', "", "http://x/y/d", "d"),
        ('<systemSuffix systemIdSuffix=".dtd" uri="a"/><systemSuffix systemIdSuffix="y.dtd" uri="b"/>', "",
         "http://x/y.dtd", "b"),
        ('<delegatePublic publicIdStartString="-//X" catalog="more.xml"/><nextCatalog catalog="next.xml"/>', "-//X//1",
         "", "a"),
        ('<delegatePublic publicIdStartString="-//X" catalog="more.xml"/><nextCatalog catalog="next.xml"/>', "-//X//2",
         "", None),
        ('<delegateSystem systemIdStartString="http://x" catalog="more.xml"/>', "", "http://x/1", "b"),
        ('<nextCatalog catalog="next.xml"/>', "-//X//2", "", "c"),
        ('<nextCatalog catalog="catalog.xml"/><nextCatalog catalog="next.xml"/>', "-//X//2", "", "c"),
        ('<delegatePublic publicIdStartString="-//X" catalog="catalog.xml"/>', "-//X//2", "", None),
        ('<public publicId="-//X//Y Z//EN" uri="e"/>', "", "urn:publicid:-:X:Y+Z:EN", "e"),
        ('<uri name="s" uri="a"/>', "", "s", None),
        ('<other xmlns="urn:q" publicId="p" uri="a"/>', "p", "", None),
    ],
)  # fmt: skip
def test_external_identifiers(make: Make, entries: str, public: str, system: str, answer: str | None) -> None:
    more = '<public publicId="-//X//1" uri="a"/><system systemId="http://x/1" uri="b"/>'
    catalog = make(entries, more=more, next='<public publicId="-//X//2" uri="c"/>')
    assert external(catalog, public, system) == answer
    assert external(catalog, public, system) == answer


@pytest.mark.parametrize(
    ("entries", "name", "answer"),
    [
        ('<uri name="http://x/s.xsd" uri="a"/>', "http://x/s.xsd", "a"),
        ('<system systemId="http://x/s.xsd" uri="a"/>', "http://x/s.xsd", None),
        ('<rewriteURI uriStartString="http://x/" rewritePrefix="./"/>', "http://x/b", "b"),
        ('<uriSuffix uriSuffix="s.xsd" uri="c"/>', "http://x/s.xsd", "c"),
        ('<delegateURI uriStartString="http://x" catalog="more.xml"/>', "http://x/1", "d"),
        ('<nextCatalog catalog="more.xml"/>', "http://x/1", "d"),
    ],
)
def test_uris(make: Make, entries: str, name: str, answer: str | None) -> None:
    copy = make(entries, more='<uri name="http://x/1" uri="d"/>').uri(name)
    assert (copy.body.decode() if copy else None) == answer


def test_xml_base_and_groups(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "f").write_text("deep")
    entries = (
        '<group xml:base="sub/"><public publicId="p" uri="f"/></group><public publicId="q" uri="f" xml:base="sub/"/>'
    )
    (tmp_path / "c.xml").write_text(HEAD + entries + "</catalog>")
    catalog = Catalog.load([tmp_path / "c.xml"])
    assert external(catalog, "p") == external(catalog, "q") == "deep"


@pytest.mark.parametrize(
    "target", ["../outside", "http://127.0.0.1:9/x", "//host/share/x", "sub%2F..%2F..%2Foutside", "link"]
)
def test_copies_lie_below_a_catalog(tmp_path: Path, target: str) -> None:
    """`link` is a directory elsewhere; an entry may itself be a link, as Debian has them."""
    (tmp_path / "outside").write_text("secret")
    inside = tmp_path / "in"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path)
    target = "link/outside" if target == "link" else target
    entries = f'<public publicId="p" uri="{target}"/><rewriteSystem systemIdStartString="x:" rewritePrefix="./"/>'
    (inside / "c.xml").write_text(HEAD + entries + "</catalog>")
    catalog = Catalog.load([inside / "c.xml"])
    assert external(catalog, "p") is None
    assert external(catalog, "", "x:../outside") is None


def test_large_files_and_devices_are_not_read(make: Make, tmp_path: Path) -> None:
    catalog = make('<public publicId="p" uri="large"/><public publicId="q" uri="pipe"/><public publicId="d" uri="."/>')
    (tmp_path / "large").write_bytes(bytes((4 << 20) + 1))
    os.mkfifo(tmp_path / "pipe")
    assert [external(catalog, public) for public in "pqd"] == [None, None, None]


@pytest.mark.parametrize("content", [None, "<x/>", "<catalog", "x" * (5 << 20)])
def test_a_catalog_that_is_none(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "c.xml").write_text(content)
    with pytest.raises(InputError, match=r"c\.xml: not an XML catalog"):
        Catalog.load([tmp_path / "c.xml"])


def test_catalogs_do_not_expand_entities_or_load_dtds(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text('<public publicId="p" uri="secret"/>')
    text = f'<!DOCTYPE catalog SYSTEM "secret" [<!ENTITY e SYSTEM "secret">]>{HEAD}&e;</catalog>'
    (tmp_path / "c.xml").write_text(text)
    assert external(Catalog.load([tmp_path / "c.xml"]), "p") is None


def supply_of(document: str, catalog: Catalog | None, validator: Validator | None = None) -> Supply:
    slims = validator.slims if validator else None
    supply = Supply(URL, Shelf(1_000), ParseLimits(), STAND_INS, catalog=catalog, slims=slims)
    handler = XmlLinks(DocumentLinks(URL, 0.0))
    read([document.encode()], "", lambda _: handler, ParseLimits(), supply.answer, outline=supply.outline)
    return supply


def test_a_local_dtd_with_its_modules_is_not_fetched(make: Make, tmp_path: Path) -> None:
    catalog = make('<public publicId="-//X//R//EN" uri="r.dtd"/>')
    (tmp_path / "r.dtd").write_text('<!ENTITY % m SYSTEM "r.mod"> %m; <!ELEMENT r (b)>')
    (tmp_path / "r.mod").write_text("<!ELEMENT b EMPTY>")
    validator = Validator(ParseLimits(), catalog)
    for content, verdict in (("<b/>", Verdict.VALID), ("<c/>", Verdict.INVALID), ("<b/>", Verdict.VALID)):
        document = f'<!DOCTYPE r PUBLIC "-//X//R//EN" "http://far.test/r.dtd"><r>{content}</r>'
        supply = supply_of(document, catalog, validator)
        assert (supply.needs, supply.asked, supply.refused) == ({}, {}, 0)
        judged = validator.judge(document.encode(), "", supply)
        assert (judged.verdict, judged.grammars) == (verdict, ("http://far.test/r.dtd",))
    assert supply.slim is not None
    validator.close()


def test_a_document_cannot_name_a_copy_by_its_file(make: Make, tmp_path: Path) -> None:
    catalog = make('<public publicId="-//X//R//EN" uri="r.dtd"/>')
    document = f'<!DOCTYPE r [<!ENTITY e SYSTEM "file://{tmp_path}/a">]><r>&e;</r>'
    supply = supply_of(document, catalog)
    assert (supply.needs, supply.refused, supply.used) == ({}, 1, 0)


def test_catalogs_come_before_stand_ins(make: Make, tmp_path: Path) -> None:
    public = "-//W3C//DTD SVG 1.1//EN"
    (tmp_path / "svg.dtd").write_text('<!ENTITY here "yes">')
    document = f'<!DOCTYPE r PUBLIC "{public}" "http://www.w3.org/svg11.dtd"><r>&here;</r>'
    assert supply_of(document, make(f'<public publicId="{public}" uri="svg.dtd"/>')).used == 1
    assert supply_of(document, None).used == 0


def test_libxml2_does_not_use_its_own(make: Make, tmp_path: Path, watch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    make('<public publicId="-//X//R//EN" uri="a"/><system systemId="http://far.test/r.dtd" uri="a"/>')
    monkeypatch.setenv("XML_CATALOG_FILES", str(tmp_path / "catalog.xml"))
    watch.opened()
    supply = supply_of('<!DOCTYPE r PUBLIC "-//X//R//EN" "http://far.test/r.dtd"><r/>', None)
    assert list(supply.needs) == ["http://far.test/r.dtd"]
    assert not watch.opened()
