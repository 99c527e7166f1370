"""The outline of a document after one streaming read: its shape, and the grammars and stylesheets that it names."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct, field

_XSI = "{http://www.w3.org/2001/XMLSchema-instance}"
WITH_NAMESPACES = _XSI + "schemaLocation"
WITHOUT_NAMESPACE = _XSI + "noNamespaceSchemaLocation"
SCHEMA_LOCATIONS = (WITH_NAMESPACES, WITHOUT_NAMESPACE)
_PSEUDO = re.compile(r"""(?<![\w.:-])([\w.:-]++)\s*+=\s*+(?:"([^"]*)"|'([^']*)')""")
"""begins where a name does, and never goes back: megabytes of one name are looked at once"""
_REFERENCES = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'", "&amp;": "&"}
_REFERENCE = re.compile("|".join(_REFERENCES))
_DOCTYPE = re.compile(
    r"""(?:\s|<!--(?:(?!-->).)*-->|<\?(?:(?!\?>).)*\?>)*<!DOCTYPE\s+([^\s\[>]+)"""
    r"""(?:\s+(?:PUBLIC\s+(?:"([^"]*)"|'([^']*)')|SYSTEM)\s*(?:"([^"]*)"|'([^']*)'))?""",
    re.DOTALL,
)
_LIMIT = 64
"""schema locations and instructions kept of one document"""
_ENTITY = re.compile(rb"&(?!#|(?:lt|gt|amp|quot|apos);)")
_NAMING = (b"<!DOCTYPE", b"chemaLocation", b"<?xml-model")
_UNLIKE_ASCII = re.compile(rb"\A(?:\x1f\x8b|[\xfe\xff]|\x00|.\x00|[^\xef\s<{h])|\A.{0,200}utf-?7", re.I | re.S)
"""zipped, UTF-16, UTF-32, UTF-7, EBCDIC"""


def may_name_grammar(body: bytes, charset: str) -> bool:
    """Could this body, as it was read, name a grammar? Where its bytes do not say: yes. 10 us for 20 kB."""
    if _UNLIKE_ASCII.match(body) or _UNLIKE_ASCII.match(b"<" + charset.encode(errors="replace")):
        return True
    return any(name in body for name in _NAMING)


class Outline(Struct):
    """Filled by parse.read, in the order of the document."""

    head: bytes = b""
    """first piece of the body, as it was read"""
    root: str = ""
    doctype: tuple[str, str, str] | None = None
    """(public, system, name) as they stand there"""
    depth: int = 0
    elements: int = 0
    attributes: int = 0
    tags: dict[str, None] = field(default_factory=dict)
    """distinct names of elements"""
    models: list[dict[str, str]] = field(default_factory=list)
    """pseudo-attributes of the xml-model instructions"""
    stylesheets: list[dict[str, str]] = field(default_factory=list)
    """pseudo-attributes of the xml-stylesheet instructions"""
    schemas: dict[tuple[str, str], str] = field(default_factory=dict)
    """(namespace or empty, location as it stands there) -> base URL around it; empty: the document's own"""
    whole: bool = False
    """`head` is all of the body"""

    def begins(self, head: bytes) -> None:
        """`head` is the first piece. Its DOCTYPE is looked for here: lxml has no event that leaves the DTD working."""
        self.head = head
        text = _text(head)
        match = _DOCTYPE.match(text) if "!DOCTYPE" in text else None
        if match is not None:
            name, *identifiers = match.groups("")
            public, system = identifiers[0] or identifiers[1], "".join(identifiers[2:])
            self.doctype = (public, system, name)

    def instructed(self, target: str, data: str) -> None:
        """A processing instruction ahead of the root element."""
        instructions = {"xml-model": self.models, "xml-stylesheet": self.stylesheets}.get(target)
        if instructions is not None and len(instructions) < _LIMIT:
            instructions.append(pseudo_attributes(data))

    def located(self, name: str, value: str, handler: Any) -> None:
        """An xsi:schemaLocation or xsi:noNamespaceSchemaLocation."""
        words = value.split() if name == WITH_NAMESPACES else ["", value.strip()]
        found = getattr(handler, "found", None)
        for namespace, location in zip(words[::2], words[1::2], strict=False):
            if location and len(self.schemas) < _LIMIT:
                self.schemas.setdefault((namespace, location), found.base if found is not None else "")

    def mentions_entities(self) -> bool:
        """Tell whether the body may refer to a declared entity. False only where the whole body is here and plainly
        does not."""
        return not self.whole or _ENTITY.search(self.head) is not None


def _text(head: bytes) -> str:
    """Markup of the prolog is ASCII in every encoding, but UTF-16."""
    if head[:2] in (b"\xff\xfe", b"<\0"):
        return head[: len(head) & ~1].decode("utf-16-le", "replace").removeprefix("\ufeff")
    if head[:2] in (b"\xfe\xff", b"\0<"):
        return head[: len(head) & ~1].decode("utf-16-be", "replace").removeprefix("\ufeff")
    return head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")


def pseudo_attributes(data: str) -> dict[str, str]:
    """Parse the pseudo-attributes of an instruction (xml-stylesheet 1.0 section 3); the first of a name counts."""
    found: dict[str, str] = {}
    for name, double, single in _PSEUDO.findall(data):
        found.setdefault(name, _REFERENCE.sub(lambda match: _REFERENCES[match[0]], double or single))
    return found
