"""Verdicts known by construction: each document with its DTD, RELAX NG or XML Schema on the shelf."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from xyro.loader.needs import STAND_INS, Shelf, Supply
from xyro.loader.parse import ParseLimits, pieces, read
from xyro.loader.validate import Judged, Validator
from xyro.loader.xlinks import DocumentLinks, XmlLinks
from xyro.wire.messages import Verdict

URL, D = "http://h.test/d/doc.xml", "http://h.test/d/"
DTD = b"""<!ENTITY % more SYSTEM "more.mod"> %more; <!ENTITY copy "&#169;"><!ENTITY both "<b/>">
<!ELEMENT r (b*, c?)><!ELEMENT b EMPTY><!ATTLIST r id ID #IMPLIED kind (x|y) "x" to IDREF #IMPLIED>"""
MORE = b'<!ELEMENT c (#PCDATA)><!ATTLIST c n NMTOKEN #REQUIRED f CDATA #FIXED "a&lt;&#34;&#37;b">'
RNG = b"""<grammar xmlns="http://relaxng.org/ns/structure/1.0"><include href="inc/b.rng"/><start>
<element name="r"><optional><attribute name="kind"/></optional>
<zeroOrMore><ref name="b"/></zeroOrMore></element></start></grammar>"""
RNG_B = b"""<grammar xmlns="http://relaxng.org/ns/structure/1.0">
<define name="b"><element name="b"><empty/></element></define></grammar>"""
XSD = b"""<s:schema xmlns:s="http://www.w3.org/2001/XMLSchema" xmlns="urn:x" targetNamespace="urn:x"
elementFormDefault="qualified"><s:include schemaLocation="types.xsd"/>
<s:import namespace="http://www.w3.org/XML/1998/namespace" schemaLocation="http://www.w3.org/2001/xml.xsd"/>
<s:element name="r"><s:complexType><s:sequence><s:element name="n" type="small" maxOccurs="9"/></s:sequence>
<s:attribute ref="xml:lang"/></s:complexType></s:element></s:schema>"""
TYPES = b"""<s:schema xmlns:s="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:x"><s:simpleType name="small">
<s:restriction base="s:integer"><s:maxInclusive value="9"/></s:restriction></s:simpleType></s:schema>"""
PLAIN_XSD = b'<s:schema xmlns:s="http://www.w3.org/2001/XMLSchema"><s:element name="r" type="s:date"/></s:schema>'
PARTS = {
    "x.dtd": DTD, "more.mod": MORE, "r.rng": RNG, "inc/b.rng": RNG_B, "x.xsd": XSD, "types.xsd": TYPES,
    "plain.xsd": PLAIN_XSD, "bad.rng": b"<grammar", "bad.xsd": b"<x/>", "e.xml": b"<b/><b/>",
    "entities.dtd": b'<!ENTITY copy "c">',
}  # fmt: skip
DOCTYPE = '<!DOCTYPE r SYSTEM "x.dtd">'
MODEL = '<?xml-model href="{}" schematypens="http://relaxng.org/ns/structure/1.0"?>'
XSI = 'xmlns:i="http://www.w3.org/2001/XMLSchema-instance"'

TWO = 'xmlns:x="u" xmlns:y="u"'
TWICE = "<!ATTLIST r x:a CDATA #IMPLIED y:a CDATA #IMPLIED xmlns:x CDATA #IMPLIED xmlns:y CDATA #IMPLIED>"


@pytest.fixture(scope="module")
def validator() -> Iterator[Validator]:
    made = Validator(ParseLimits())
    yield made
    made.close()


def supply_of(body: bytes, validator: Validator | None, parts: dict[str, bytes], charset: str = "") -> Supply:
    shelf = Shelf(10_000_000)
    for name, part in parts.items():
        shelf.put(D + name, part)
    supply = Supply(URL, shelf, ParseLimits(), STAND_INS, slims=validator.slims if validator else None)
    handler = XmlLinks(DocumentLinks(URL, 0.0))
    read(pieces(body, ParseLimits()), charset, lambda _: handler, ParseLimits(), supply.answer, outline=supply.outline)
    return supply


@pytest.fixture
def judge(validator: Validator) -> Callable[..., Judged]:
    def run(document: str | bytes, parts: dict[str, bytes] = PARTS, charset: str = "") -> Judged:
        body = document.encode() if isinstance(document, str) else document
        return validator.judge(body, charset, supply_of(body, validator, parts, charset))

    return run


V, BAD, U, N = Verdict.VALID, Verdict.INVALID, Verdict.UNVALIDATED, Verdict.NO_GRAMMAR


@pytest.mark.parametrize(
    ("document", "verdict", "problem"),
    [
        ("<r/>", N, ""),
        ("<!DOCTYPE r><r/>", N, ""),
        ('<!DOCTYPE r [<!ENTITY e "x">]><r>&e;</r>', N, ""),
        ('<!DOCTYPE r SYSTEM "about:legacy-compat"><r/>', N, ""),
        ("<!DOCTYPE r [<!ELEMENT r EMPTY>]><r/>", V, ""),
        ("<!DOCTYPE r [<!ELEMENT r EMPTY>]><r>\n<q/></r>", BAD, "line 2: No declaration for element q"),
        ("<!DOCTYPE r [<!ELEMENT r EMPTY><!ATTLIST r a CDATA #IMPLIED><!ATTLIST r a CDATA #IMPLIED>]><r/>", V, ""),
        ("<!DOCTYPE r [<!ELEMENT r EMPTY><!ATTLIST r a CDATA 'x' a NMTOKEN #IMPLIED>]><r a='1 2'/>", V, ""),
        ("<!DOCTYPE r [<!ELEMENT r EMPTY><!ATTLIST r a (x) 'x'><!ATTLIST r a CDATA 'y'>]><r a='y'/>", BAD, 'Value "y"'),
        ("<!DOCTYPE r [<!ELEMENT r EMPTY><!ELEMENT r ANY>]><r/>", BAD, "Redefinition of element r"),
        ("<!DOCTYPE r [<!ELEMENT r EMPTY><!ENTITY e 'x'><!ENTITY e 'y'>]><r/>", V, ""),
        (f"<!DOCTYPE r [<!ELEMENT r EMPTY>{TWICE}]><r {TWO} x:a='' y:a=''/>", BAD, "Attribute a in 'u' redefined"),
        (f"<!DOCTYPE r [<!ELEMENT r EMPTY>{TWICE}]><r {TWO} x:a=''/>", V, ""),
        ("<!DOCTYPE a:b:c [<!ELEMENT a:b:c EMPTY>]><a:b:c/>", BAD, "QName 'a:b:c'"),
        ("<!DOCTYPE r [<!ELEMENT r EMPTY>]><?p:i x?><r/>", BAD, "colons are forbidden from PI names"),
        ("<!DOCTYPE r [<!ELEMENT r EMPTY><!ATTLIST r xmlns CDATA #IMPLIED>]><r xmlns='rel'/>", V, ""),
        (f'<!DOCTYPE r SYSTEM "x.dtd" [{TWICE}]><r {TWO} x:a="" y:a=""><b/></r>', BAD, "Attribute a in 'u' redefined"),
        (DOCTYPE + "<?p:i x?><r><b/></r>", BAD, "colons are forbidden"),
        (MODEL.format("r.rng") + f"<?p:i x?><r {TWO}><b/></r>", BAD, "colons are forbidden"),
        (MODEL.format("r.rng") + "<r xmlns:p=''><b/></r>", BAD, "Empty XML namespace"),
        (f'<r xmlns="urn:x" {XSI} i:schemaLocation="urn:x x.xsd"><n>3</n><?p:i x?></r>', BAD, "colons are forbidden"),
        (DOCTYPE + "<r/>", V, ""),
        (DOCTYPE + "<r>&both;<b/></r>", V, ""),
        (DOCTYPE + '<r to="k" id="k"><c n="1">&copy;</c></r>', V, ""),
        (DOCTYPE + '<r to="k"/>', BAD, "IDREF attribute to references an unknown ID"),
        (DOCTYPE + "<r>text</r>", BAD, "line 1: Element r content does not follow the DTD"),
        (DOCTYPE + "<r><c/></r>", BAD, "does not carry attribute n"),
        (DOCTYPE + '<r><c n="  1 "/></r>', V, ""),
        (DOCTYPE + '<r><c n="1 2"/></r>', BAD, "Syntax of value for attribute n"),
        (DOCTYPE + '<r kind=" y "/>', V, ""),
        (DOCTYPE + '<r kind="z"/>', BAD, 'Value "z" for attribute kind'),
        (DOCTYPE + '<r><c n="1" f="other"/></r>', BAD, "line 1: Value for attribute f"),
        (DOCTYPE + "<b/>", BAD, "root element b, but DOCTYPE r"),
        ('<!DOCTYPE r SYSTEM "x.dtd" [<!ENTITY e SYSTEM "e.xml">]><r>&e;</r>', V, ""),
        ('<!DOCTYPE r SYSTEM "x.dtd" [<!ENTITY e SYSTEM "e.xml">]><r><c n="1">&e;</c></r>', BAD, "Element c"),
        ('<!DOCTYPE r SYSTEM "x.dtd" [<!ATTLIST r new CDATA #IMPLIED>]><r new="1"/>', V, ""),
        ('<!DOCTYPE r SYSTEM "x.dtd" [<!ENTITY % more "<!ELEMENT c EMPTY>">]><r><c/></r>', V, ""),
        ('<!DOCTYPE r SYSTEM "gone.dtd"><r/>', U, D + "gone.dtd: a part that could not be had"),
        ('<!DOCTYPE r SYSTEM "entities.dtd"><r/>', U, "entities.dtd: declares no elements"),
        ('<!DOCTYPE r SYSTEM "file:///etc/passwd"><r/>', U, "a part that is never read"),
        (MODEL.format("r.rng") + "<r><b/></r>", V, ""),
        (MODEL.format("r.rng") + "<r>\n<c/></r>", BAD, "line 2: Did not expect element c there"),
        (MODEL.format("gone.rng") + "<r/>", U, "gone.rng: a schema that could not be had"),
        (MODEL.format("bad.rng") + "<r/>", U, "not-well-formed"),
        (MODEL.format("x.dtd") + "<r/>", U, ""),
        ('<?xml-model href="r.rnc"?><r/>', U, "r.rnc: RELAX NG in compact syntax is not understood"),
        ('<?xml-model href="r.sch" schematypens="http://purl.oclc.org/dsdl/schematron"?><r/>', N, ""),
        (f'<r xmlns="urn:x" {XSI} i:schemaLocation="urn:x x.xsd" xml:lang="de"><n>3</n></r>', V, ""),
        (f'<r xmlns="urn:x" {XSI} i:schemaLocation="urn:x x.xsd"><n>30</n></r>', BAD, "line 1: Element '{urn:x}n'"),
        (f'<r {XSI} i:noNamespaceSchemaLocation="plain.xsd">2026-11-22</r>', V, ""),
        (f'<r {XSI} i:noNamespaceSchemaLocation="plain.xsd">now</r>', BAD, "not a valid value"),
        (f'<r {XSI} i:noNamespaceSchemaLocation="bad.xsd"/>', U, "bad.xsd"),
        (f'<r {XSI} i:noNamespaceSchemaLocation="file:///etc/passwd"/>', U, "not a name of a page"),
        (f'<r {XSI} i:schemaLocation="urn:x x.xsd" i:noNamespaceSchemaLocation="plain.xsd">2026-11-22</r>', V, ""),
        (DOCTYPE + MODEL.format("r.rng") + "<r><b/></r>", V, ""),
        (DOCTYPE + MODEL.format("gone.rng") + "<r><b/></r>", U, "gone.rng"),
        (DOCTYPE + MODEL.format("gone.rng") + "<r><q/></r>", BAD, "No declaration for element q"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("again", [False, True])
def test_verdict(judge: Callable[..., Judged], document: str, verdict: Verdict, problem: str, again: bool) -> None:
    """Again: with what was remembered of its grammars."""
    judged = [judge(document) for _ in range(1 + again)][-1]
    assert judged.verdict is verdict, judged.problems
    assert bool(judged.problems) == (verdict in (BAD, U))
    assert problem in "\n".join(judged.problems)


def test_what_is_told_of_a_document(judge: Callable[..., Judged]) -> None:
    head = '<!DOCTYPE r PUBLIC "-//X//R//EN" "x.dtd" [<!ENTITY e SYSTEM "e.xml">]>'
    for _ in range(2):
        judged = judge(head + '<r xmlns="urn:r">&e;<b/><c n="1"/></r>')
        assert (judged.root, judged.public_id) == ("{urn:r}r", "-//X//R//EN")
        assert judged.grammars == (D + "x.dtd",)
        assert set(judged.parts) == {D + "more.mod", D + "e.xml"}
        assert (judged.depth, judged.elements, judged.tags) == (2, 5, 3)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "iso-8859-1", "euc_jp", "utf-16-le"])
def test_encodings(judge: Callable[..., Judged], encoding: str) -> None:
    text = DOCTYPE + '<r><c n="1">\u65e5\u672c</c></r>' if encoding != "iso-8859-1" else DOCTYPE + "<r><q/>\xe9</r>"
    charset = {"euc_jp": "euc-jp", "iso-8859-1": "iso-8859-1"}.get(encoding, "")
    assert judge(text.encode(encoding), charset=charset).verdict is (BAD if encoding == "iso-8859-1" else V)


def test_a_changed_dtd_changes_the_verdict(judge: Callable[..., Judged]) -> None:
    document = DOCTYPE + '<r><c n="1"/></r>'
    assert judge(document).verdict is V
    stricter = {**PARTS, "more.mod": MORE.replace(b"(#PCDATA)", b"(b)")}
    assert judge(document, stricter).verdict is BAD
    assert judge(document).verdict is V


def test_a_changed_include_changes_the_verdict(judge: Callable[..., Judged]) -> None:
    document = MODEL.format("r.rng") + "<r><b/></r>"
    assert judge(document).verdict is V
    assert judge(document, {**PARTS, "inc/b.rng": RNG_B.replace(b"<empty/>", b"<text/><ref name='b'/>")}).verdict is BAD
    assert judge(document).verdict is V


def test_the_slim_dtd_is_used_and_says_the_same(validator: Validator) -> None:
    """Entities and default attributes out of the whole DTD and out of its stand-in are the same events."""

    def seen(supply: Supply, body: bytes) -> list[object]:
        events: list[object] = []

        class Recorder(XmlLinks):
            def __init__(self) -> None:
                super().__init__(DocumentLinks(URL, 0.0))
                self.starts = {name: lambda attrib: events.append(sorted(attrib.items())) for name in "rbc"}
                self.ends = {"c": events.append}

        handler = Recorder()
        read([body], "", lambda _: handler, ParseLimits(), supply.answer, outline=supply.outline)
        return events

    body = (DOCTYPE + '<r><c n="1">&copy;</c>&both;<b/></r>').encode()
    validator.judge(body, "", supply_of(body, validator, PARTS))
    shelf = Shelf(1_000_000)
    for name, part in PARTS.items():
        shelf.put(D + name, part)
    slim, whole = (Supply(URL, shelf, ParseLimits(), STAND_INS, slims=slims) for slims in (validator.slims, None))
    assert seen(slim, body) == seen(whole, body)
    assert slim.slim is not None and whole.slim is None
    assert slim.asked == whole.asked == {D + "x.dtd": None, D + "more.mod": None}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.sampled_from("bcrq "), max_size=12), st.booleans())
def test_fast_and_full_validation_agree(judge: Callable[..., Judged], children: str, entity: bool) -> None:
    """The same document, once with an internal subset that makes the judge read the whole DTD while it parses."""
    content = "".join(
        "&both;" if entity and name == " " else f"<{name}/>" for name in children if name != " " or entity
    )
    fast = judge(f"{DOCTYPE}<r>{content}</r>")
    full = judge(f'<!DOCTYPE r SYSTEM "x.dtd" [<!ATTLIST nobody a CDATA #IMPLIED>]><r>{content}</r>')
    assert fast.verdict is full.verdict
    assert set(fast.problems) == set(full.problems)


def test_without_an_outline_the_judge_looks_for_itself(validator: Validator) -> None:
    shelf = Shelf(1_000_000)
    for name, part in PARTS.items():
        shelf.put(D + name, part)
    supply = Supply(URL, shelf, ParseLimits(), STAND_INS)
    judged = validator.judge((DOCTYPE + "<r><b/></r>").encode(), "", supply)
    assert (judged.verdict, judged.elements) == (V, 2)


def test_missing_schemas_are_needs(validator: Validator) -> None:
    body = (MODEL.format("r.rng") + f'<r {XSI} i:noNamespaceSchemaLocation="plain.xsd"/>').encode()
    supply = supply_of(body, validator, {})
    assert not supply.needs
    assert validator.judge(body, "", supply).verdict is U
    assert list(supply.needs) == [D + "r.rng", D + "plain.xsd"]
    supply = supply_of(body, validator, {"r.rng": RNG, "plain.xsd": PLAIN_XSD})
    validator.judge(body, "", supply)
    assert list(supply.needs) == [D + "inc/b.rng"]


@pytest.mark.parametrize(
    ("dtd", "verdict", "elements"),
    [
        (b"<!ELEMENT a EMPTY><!ELEMENT b ANY>", N, 2),
        (b"", N, 0),
        (b"<!ELEMENT a", U, 0),
    ],
)
def test_a_dtd_by_itself(validator: Validator, dtd: bytes, verdict: Verdict, elements: int) -> None:
    supply = Supply(URL, Shelf(0), ParseLimits(), STAND_INS, own=dtd)
    judged = validator.judge_dtd(dtd, "", supply)
    assert (judged.verdict, judged.tags) == (verdict, elements)


def test_a_process_that_was_ended_is_started_again(judge: Callable[..., Judged], validator: Validator) -> None:
    document = DOCTYPE + MODEL.format("r.rng") + "<r><b/></r>"
    assert judge(document).verdict is V
    validator.close()
    assert judge(document).verdict is V
