"""The rig of real XML, with packages written by hand: a DTD of modules that need one another, on another host."""

from __future__ import annotations

import pytest

from xyro.lab.crawls.xml_packages import docbook
from xyro.lab.web.xml_rig import GRAMMARS, build, truth

DTD = """<!ENTITY % pool SYSTEM "pool.mod"><!ENTITY % hier SYSTEM "hier.mod">%pool;%hier;
<!ENTITY % iso PUBLIC "ISO 8879:1986//ENTITIES X//EN"
  "/usr/share/xml/entities/xml-iso-entities-8879.1986/ISOx.ent">%iso;
<!ELEMENT book (title, chapter+)><!ELEMENT title (#PCDATA)>"""
POOL = '<!ENTITY % tables SYSTEM "table.dtd">%tables;<!ELEMENT para (#PCDATA)><!ATTLIST para role %roles; #IMPLIED>'
HIER = "<!ELEMENT chapter (title, (para|table)+)><!ATTLIST chapter frame %frames; #IMPLIED>"
TABLE = '<!ELEMENT table EMPTY><!ENTITY % roles "(a|b)"><!ENTITY % frames "CDATA">'
NAME = "http://www.oasis-open.org/docbook/xml/4.5/docbookx.dtd"


def book(inner: str, name: str = NAME, subset: str = "") -> str:
    head = f'<!DOCTYPE book PUBLIC "-//OASIS//DTD DocBook XML V4.5//EN" "{name}"{subset}>'
    return f"{head}<book><title>A &ix;</title>{inner}</book>"


CHAPTER = "<chapter><title>B</title><para>C</para></chapter>"
BOOKS = {
    "valid.xml": (book(CHAPTER), "valid"),
    "entity.xml": (book("&one;", subset=' [<!ENTITY one SYSTEM "one.ent">]'), "valid"),
    "invalid.xml": (book("<chapter><para>C</para></chapter>"), "invalid"),
    "missing.xml": (book(CHAPTER, "nowhere.dtd"), "broken"),
}


def packages(root):
    """Unpacked, as dpkg -x would."""
    grammars = root / GRAMMARS[0] / "usr/share/xml/docbook/schema/dtd/4.5"
    entities = root / GRAMMARS[1] / "usr/share/xml/entities/xml-iso-entities-8879.1986"
    documents = root / "some-doc" / "usr/share/help/C/some"
    for folder in (grammars, entities, documents):
        folder.mkdir(parents=True)
    for name, text in {"docbookx.dtd": DTD, "pool.mod": POOL, "hier.mod": HIER, "table.dtd": TABLE}.items():
        (grammars / name).write_text(text)
    (entities / "ISOx.ent").write_text('<!ENTITY ix "&#169;">')
    (documents / "one.ent").write_text(CHAPTER)
    for name, (text, _) in BOOKS.items():
        (documents / name).write_text(text)
    return root


def test_the_truth_is_that_of_libxml2(tmp_path):
    site = build(packages(tmp_path), 8080, 2, ("some-doc",))
    said = {url.rpartition("/")[2]: verdict for url, verdict in truth(site).items()}
    assert said == {name: verdict for name, (_, verdict) in BOOKS.items()}


@pytest.mark.long
def test_a_crawl_says_what_libxml2_says_and_asks_for_the_dtd_first(tmp_path, capsys):
    assert docbook(100, ("some-doc",), tmp_path / "data", packages(tmp_path / "deb")), capsys.readouterr().out
    told = capsys.readouterr().out
    assert "valid    valid              2" in told and "all of it holds" in told
    assert "/docbook/xml/4.5/docbookx.dtd" in told
