"""The external parts that a document needs, as the parser asks for them, answered from memory.

libxml2 asks for an external resource exactly where XML 1.0 makes a processor read one: the external DTD subset, a
parameter entity that a DTD references, a general entity that the content references (in comments and CDATA nothing is
referenced; declared but unused entities are not asked for). `Supply` stands where it asks:

    an identifier in a catalog-> the local copy (catalog.py), and what that names beside itself
    a part in the shelf       -> its body, with its own URL as base of what it references
    a known DTD, once more    -> what a document takes from it (slim.py), instead of 400 kB of declarations
    a well-known DTD          -> a stand-in (STAND_INS)
    any other http(s) URL     -> nothing, and noted in `needs`
    file:, ftp:, the document,
    redirects that loop       -> nothing, and counted in `refused`

so one parse with an empty shelf tells the first needs, and each later parse those of the parts that came since.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import cached_property
from html.entities import name2codepoint

from msgspec import Struct

from xyro.loader.catalog import Catalog, Copy
from xyro.loader.outline import Outline
from xyro.loader.parse import ParseLimits, XmlFault
from xyro.loader.slim import Slim, Slims, is_plain
from xyro.wire.urls import resolve

_ENTITIES = "".join(
    f'<!ENTITY {name} "&#{code};">' for name, code in name2codepoint.items() if name not in ("lt", "gt", "amp", "quot")
).encode()
"""The character entities of HTML 4 and XHTML 1.0 (Latin 1, symbols, special), as declarations."""

STAND_INS: dict[str, bytes] = {
    "-//W3C//DTD XHTML 1.0 Strict//EN": _ENTITIES,
    "-//W3C//DTD XHTML 1.0 Transitional//EN": _ENTITIES,
    "-//W3C//DTD XHTML 1.0 Frameset//EN": _ENTITIES,
    "-//W3C//DTD XHTML 1.1//EN": _ENTITIES,
    "-//W3C//DTD XHTML Basic 1.0//EN": _ENTITIES,
    "-//W3C//DTD XHTML Basic 1.1//EN": _ENTITIES,
    "-//W3C//DTD XHTML+RDFa 1.0//EN": _ENTITIES,
    "-//W3C//DTD XHTML+RDFa 1.1//EN": _ENTITIES,
    "-//W3C//DTD XHTML 1.1 plus MathML 2.0//EN": _ENTITIES,
    "-//W3C//DTD XHTML 1.1 plus MathML 2.0 plus SVG 1.1//EN": _ENTITIES,
    "-//W3C//DTD SVG 1.0//EN": b"",
    "-//W3C//DTD SVG 1.1//EN": b"",
    "-//WAPFORUM//DTD XHTML Mobile 1.0//EN": _ENTITIES,
    "-//Netscape Communications//DTD RSS 0.91//EN": _ENTITIES,
}
"""DTDs that are not fetched, by public identifier, and what stands in for them: their character entities.

W3C answers crawlers that ask for its DTDs with delays and blocks (w3.org, "W3C's Excessive DTD Traffic", 2008), and
Netscape's RSS DTD has been gone since 2007. All other needs are fetched.
"""

SCHEMAS: dict[str, bytes] = dict.fromkeys(
    ("http://www.w3.org/2001/xml.xsd", "https://www.w3.org/2001/xml.xsd", "http://www.w3.org/2005/08/xml.xsd"),
    b"""<s:schema xmlns:s="http://www.w3.org/2001/XMLSchema" targetNamespace="http://www.w3.org/XML/1998/namespace">
<s:attribute name="lang"><s:simpleType><s:union memberTypes="s:language"><s:simpleType>
<s:restriction base="s:string"><s:enumeration value=""/></s:restriction></s:simpleType></s:union></s:simpleType>
</s:attribute><s:attribute name="space"><s:simpleType><s:restriction base="s:NCName"><s:enumeration value="default"/>
<s:enumeration value="preserve"/></s:restriction></s:simpleType></s:attribute>
<s:attribute name="base" type="s:anyURI"/><s:attribute name="id" type="s:ID"/>
<s:attributeGroup name="specialAttrs"><s:attribute ref="xml:base"/><s:attribute ref="xml:lang"/>
<s:attribute ref="xml:space"/><s:attribute ref="xml:id"/></s:attributeGroup></s:schema>""",
)
"""Schemas that are not fetched, by URL: nearly every schema imports xml:lang from the W3C."""

_LEGACY = "about:legacy-compat"
"""The system identifier that HTML 5 gives to documents that must have one: it stands for no DTD."""
_HOPS = 5


class ShelfPart(Struct, frozen=True):
    """A part as the parser gets it (parse.Part)."""

    url: str
    body: bytes


NOTHING = ShelfPart("", b"")


class Shelf:
    """The parts seen lately, by canonical URL: at most `capacity` bytes, the longest unused go first.

    Filled by the intake with every DTD and every wanted entity that was read; a redirect is a part that points on.
    """

    _OVERHEAD = 200
    """bytes a row costs beside body and URL, so that empty parts fill the shelf too"""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.size = 0
        self._rows: OrderedDict[str, bytes | str] = OrderedDict()

    def put(self, url: str, body: bytes) -> bool:
        """Keep a part; False where it is larger than the whole shelf."""
        return self._keep(url, body)

    def point(self, url: str, target: str) -> bool:
        """Reading `url` led to `target` (a redirect)."""
        return self._keep(url, target)

    def get(self, url: str) -> ShelfPart | str:
        """The part; or the URL that has to be read to have it: `url`, or where its redirects end."""
        for _ in range(_HOPS):
            row = self._rows.get(url)
            if row is None:
                return url
            self._rows.move_to_end(url)
            if isinstance(row, bytes):
                return ShelfPart(url, row)
            url = row
        return NOTHING  # a redirect loop: nothing to be had, nothing to wait for

    def _keep(self, url: str, row: bytes | str) -> bool:
        self._drop(url)
        if self._cost(url, row) > self.capacity:
            return False
        self._rows[url] = row
        self.size += self._cost(url, row)
        while self.size > self.capacity:
            self._drop(next(iter(self._rows)))
        return True

    def _drop(self, url: str) -> None:
        row = self._rows.pop(url, None)
        if row is not None:
            self.size -= self._cost(url, row)

    def _cost(self, url: str, row: bytes | str) -> int:
        return len(url) + len(row) + self._OVERHEAD


class Supply:
    """Answers one parse of one document at `url` (parse.Answer), and remembers what was asked."""

    def __init__(
        self,
        url: str,
        shelf: Shelf,
        limits: ParseLimits,
        stand_ins: dict[str, bytes],
        *,
        fold_slashes: bool = True,
        own: bytes | None = None,
        catalog: Catalog | None = None,
        slims: Slims | None = None,
    ) -> None:
        """`own`: the body that OWN stands for, of a DTD or entity that is parsed inside a wrapper.

        `catalog`: where the machine's local copies are; `slims`: of the DTDs that were seen before (validate.py).
        """
        self.outline = Outline()
        """what the parse saw (give it to parse.read)"""
        self.answered: dict[tuple[str, str], ShelfPart] = {}
        """what was answered, by (system, public) as the parser asked"""
        self.slim: Slim | None = None
        """stood in for the DTD: `given` does not hold that one and its modules"""
        self.asked: dict[str, None] = {}
        """URLs of the parts it named, in order, whether they were there or not"""
        self.needs: dict[str, None] = {}
        """URLs to read before it can be understood"""
        self.refused = 0
        """names of parts that are never read"""
        self.used = 0
        """parts given"""
        self._url = url
        self._shelf = shelf
        self._limit = limits.parts
        self._stand_ins = stand_ins
        self._own = own
        self._fold = fold_slashes
        self._catalog = catalog
        self._slims = slims
        self._copies: dict[str, None] = {}

    def answer(self, system: str, public: str) -> ShelfPart:
        """The part, or NOTHING. XmlFault: it asks for more parts than a document may."""
        slim = self._slims.get(public, self._absolute(system)) if self._slims and self._is_dtd(system, public) else None
        if slim is not None and all(self.look(*asked) == part for asked, part in slim.parts):
            self.slim = slim
            self.used += 1
            self.asked.update(slim.asked)
            return ShelfPart(slim.url, slim.entities if self._mentions else slim.defaults)
        part = self.answered[(system, public)] = self._answered(system, public)
        return part

    @property
    def url(self) -> str:
        """The document's."""
        return self._url

    def look(self, system: str, public: str) -> ShelfPart | None:
        """Return what `answer` would, without a trace; None: it would be a need."""
        copy = self._copy(system, public)
        if copy is not None:
            return copy
        url = self._absolute(system)
        part = self._shelf.get(url) if url else NOTHING
        return None if isinstance(part, str) else part

    def fetch(self, url: str) -> ShelfPart:
        """A part that is no external identifier (a schema): `url` is absolute."""
        copy = self._catalog.uri(url) or self._catalog.external("", url) if self._catalog else None
        if copy is not None:
            return self._note(copy)
        body = SCHEMAS.get(url)
        if body is not None:
            return ShelfPart(url, body)
        canonical = resolve(self._url, url, fold_slashes=self._fold)
        if canonical is None:
            self.refused += 1
            return NOTHING
        return self._part(canonical)

    def name_of(self, system: str, public: str) -> str:
        """Canonical URL of an external identifier, or what else it is called."""
        return self._absolute(system) or public or system

    def _is_dtd(self, system: str, public: str) -> bool:
        """Tell whether this is the external subset of a document whose internal subset has no say in it."""
        doctype = self.outline.doctype
        return doctype is not None and doctype[:2] == (public, system) and is_plain(self.outline.head)

    @cached_property
    def _mentions(self) -> bool:
        return self.outline.mentions_entities()

    def _absolute(self, system: str) -> str:
        return (resolve(self._url, system, fold_slashes=self._fold) if system else None) or ""

    def _copy(self, system: str, public: str) -> ShelfPart | None:
        if self._catalog is None:
            return None
        copy = self._catalog.external(public, system)
        if copy is None and system.startswith("file:"):
            copy = self._catalog.beside(system, self._copies)
        return self._note(copy) if copy is not None else None

    def _note(self, copy: Copy) -> ShelfPart:
        self._copies[copy.url] = None
        return ShelfPart(copy.url, copy.body)

    def _answered(self, system: str, public: str) -> ShelfPart:
        if system == OWN and self._own is not None:
            return ShelfPart(self._url, self._own)
        copy = self._copy(system, public)
        if copy is not None:
            self.used += 1
            return copy
        stand_in = self._stand_ins.get(" ".join(public.split()))
        if stand_in is not None:
            return ShelfPart(self._url, stand_in)
        url = resolve(self._url, system, fold_slashes=self._fold) if system else None
        if url is None or url == self._url:
            self.refused += system != _LEGACY
            return NOTHING
        return self._part(url)

    def _part(self, url: str) -> ShelfPart:
        self.asked[url] = None
        if len(self.asked) > self._limit:
            raise XmlFault("too-many-parts")
        part = self._shelf.get(url)
        if isinstance(part, str):
            self.needs[part] = None
            return NOTHING
        self.refused += part is NOTHING
        self.used += bool(part.body)
        return part


OWN = "x-own:"
"""System identifier, inside our own wrappers, of the body that is parsed as a DTD or an entity."""
AS_DTD = b'<!DOCTYPE x SYSTEM "x-own:"><x/>'
AS_ENTITY = b'<!DOCTYPE x SYSTEM "about:legacy-compat" [<!ENTITY e SYSTEM "x-own:">]><x>&e;</x>'
"""Wrappers: the document that has this DTD, and the one that has this entity as its content."""
