"""The schemas that a document names, with everything that they include: asked of the document's Supply, never opened.

RELAX NG is named by an xml-model instruction (ISO/IEC 19757-2 in XML syntax), XML Schema by one, or by
xsi:schemaLocation and xsi:noNamespaceSchemaLocation. Schematron adds rules to a grammar and is not applied.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable

from msgspec import Struct

from xyro.loader.needs import NOTHING, ShelfPart, Supply
from xyro.loader.outline import Outline
from xyro.loader.parse import Attributes, ParseLimits, XmlFault, pieces, read
from xyro.loader.xlinks import DocumentLinks, XmlLinks
from xyro.wire.urls import resolve

RNG = "http://relaxng.org/ns/structure/1.0"
XSD = "http://www.w3.org/2001/XMLSchema"
_SCHEMATRON = ("http://purl.oclc.org/dsdl/schematron", "http://www.ascc.net/xml/schematron")
_NVDL = "http://purl.oclc.org/dsdl/nvdl/ns/structure/1.0"
_CACHE = 64
"""schemas whose includes are remembered"""


class Reference(Struct, frozen=True):
    """A schema that a document names: `kind` rng | xsd, or what refuses it; `urls` by namespace."""

    kind: str
    urls: tuple[tuple[str, str], ...]
    trouble: str = ""


class Schema(Struct, frozen=True):
    """A schema with all of its parts, by the URL they are asked for."""

    key: str
    parts: tuple[tuple[str, ShelfPart], ...]


def references(outline: Outline, url: str) -> list[Reference]:
    """List the schemas that the document at `url` names, in order; the locations of XML Schema together, as one."""
    found = [_of_model(model, url) for model in outline.models]
    pairs = [
        (namespace, resolve(base or url, location) or "", location)
        for (namespace, location), base in outline.schemas.items()
    ]
    bad = [location for _, target, location in pairs if not target]
    if bad:
        found.append(Reference("xsd", ((("", bad[0])),), f"{bad[0]}: not a name of a page"))
    elif pairs:
        found.append(Reference("xsd", tuple(dict.fromkeys((namespace, target) for namespace, target, _ in pairs))))
    return [reference for reference in found if reference is not None]


def _of_model(model: dict[str, str], url: str) -> Reference | None:
    href, kind, mime = model.get("href", ""), model.get("schematypens", ""), model.get("type", "")
    target = resolve(url, href)
    named = (("", target or href),)
    if kind in _SCHEMATRON or href.endswith(".sch"):
        return None
    if target is None:
        return Reference("", named, f"{href}: not a name of a page")
    if mime == "application/relax-ng-compact-syntax" or href.endswith(".rnc"):
        return Reference("rng", named, f"{target}: RELAX NG in compact syntax is not understood")
    if kind == XSD or (not kind and href.endswith(".xsd")):
        return Reference("xsd", named)
    if kind == RNG or (not kind and href.endswith(".rng")):
        return Reference("rng", named)
    return Reference("", named, f"{target}: {'NVDL' if kind == _NVDL else kind or mime or 'schema'} is not understood")


class Schemas:
    """Finds schemas with their parts; remembers what includes what while no part changes."""

    def __init__(self, limits: ParseLimits) -> None:
        self._limits = limits
        self._compiled: OrderedDict[Reference, Schema] = OrderedDict()

    def find(self, reference: Reference, supply: Supply) -> Schema | str:
        """The schema, or why it cannot be had. XmlFault: it has too many parts, or one is not well-formed."""
        schema = self._compiled.get(reference)
        if schema is not None and all(supply.fetch(url) == part for url, part in schema.parts):
            self._compiled.move_to_end(reference)
            return schema
        parts = self._gather((url for _, url in reference.urls), supply)
        missing = [url for url, part in parts.items() if part is NOTHING or not part.body]
        if missing:
            return f"{missing[0]}: a schema that could not be had"
        schema = Schema(_key(reference, parts), tuple(parts.items()))
        self._compiled[reference] = schema
        if len(self._compiled) > _CACHE:
            self._compiled.popitem(last=False)
        return schema

    def _gather(self, urls: Iterable[str], supply: Supply) -> dict[str, ShelfPart]:
        parts: dict[str, ShelfPart] = {}
        left = list(urls)
        while left:
            url = left.pop()
            if url in parts:
                continue
            if len(parts) >= self._limits.parts:
                raise XmlFault("too-many-parts")
            part = parts[url] = supply.fetch(url)
            if part.body:
                left.extend(self._included(part))
        return parts

    def _included(self, part: ShelfPart) -> list[str]:
        """List the parts that a schema names: XML Schema's include, import, redefine; RELAX NG's include,
        externalRef."""
        handler = _Includes(DocumentLinks(part.url, 0.0))
        try:
            read(pieces(part.body, self._limits), "", lambda tag: handler, self._limits, lambda *_: NOTHING)
        finally:
            handler.close()
        return list(handler.urls)


class _Includes(XmlLinks):
    def __init__(self, found: DocumentLinks) -> None:
        super().__init__(found)
        self.urls: dict[str, None] = {}
        self.starts = {f"{{{XSD}}}{name}": self._location for name in ("include", "import", "redefine", "override")}
        self.starts |= {f"{{{RNG}}}{name}": self._href for name in ("include", "externalRef")}

    def _location(self, attrib: Attributes) -> None:
        self._named(attrib.get("schemaLocation", ""))

    def _href(self, attrib: Attributes) -> None:
        self._named(attrib.get("href", ""))

    def _named(self, href: str) -> None:
        """An import without a location names a namespace only; one that names no page stays for libxml2 to miss."""
        if not href:
            return
        url = self.found.resolve(href) or (href if self.found.base.startswith("file:") else None)
        if url is None:
            raise XmlFault("not-well-formed", f"includes {href[:100]}, which is not a name of a page")
        self.urls[url] = None


def _key(reference: Reference, parts: dict[str, ShelfPart]) -> str:
    name = hashlib.blake2b(repr(reference).encode(), digest_size=16)
    for url, part in parts.items():
        name.update(repr((url, part.url, len(part.body))).encode())
        name.update(part.body)
    return name.hexdigest()
