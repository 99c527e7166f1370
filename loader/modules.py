"""Recognises parts of documents: by name, or, of declarations, by what they take from others.

A module of a DTD (DocBook's *.mod) uses parameter entities that its driver declares, so by itself it need not even be
well-formed; an entity (*.ent) may have many roots, or none. Read by themselves, as a crawl comes upon them, nothing is
to be held against them. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

SUFFIXES = (".dtd", ".ent", ".mod", ".pen")
"""of DTDs, of external parsed entities and modules (DocBook, TEI, XHTML 1.1), of ISO's sets of characters"""
_ENTITIES = frozenset({"application/xml-external-parsed-entity", "text/xml-external-parsed-entity"})
"""media types of content as well as of declarations (RFC 7303 9.3, 9.4)"""
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
"""one that does not end takes all that follows: else each of many would be looked for to the end"""
_DECLARATION = re.compile(rb"<!(?:ENTITY|ELEMENT|ATTLIST|NOTATION)\s")
_DECLARED = re.compile(rb"<!ENTITY\s+%\s+([^\s%;<>\"']{1,200})\s")
_USED = re.compile(rb"%([^\s%;<>\"']{1,200});")
_EXTERNAL = re.compile(rb"<!ENTITY\s+%\s+([^\s%;<>\"']{1,200})\s+(?:SYSTEM|PUBLIC)\s")
_WITHIN = re.compile(rb"<![^<>]*")
"""a declaration, as far as references in it are concerned"""


def is_named_like_a_part(url: str) -> bool:
    """Tell whether the path of a canonical URL ends as those of parts do."""
    return url.partition("?")[0].lower().endswith(SUFFIXES)


def may_be_content(mime: str, url: str) -> bool:
    """Tell whether a part may hold elements and text, by its media type or its name. A DTD or a module of one may
    not."""
    return mime in _ENTITIES or url.partition("?")[0].lower().endswith(".ent")


def not_alone(body: bytes, needs: Iterable[str], broken: bool = False) -> str:
    """Say why declarations (unzipped) cannot be judged by themselves, empty where they can.

    needs: URLs of parts that they name and that are not at hand; broken: they are not well-formed, which these parts
    excuse only where something of them is used within a declaration.
    """
    body = _COMMENT.sub(b"", body)
    missing, names = next(iter(needs), ""), _borrowed(body)
    if missing and (names or not broken or _uses_parts(body)):
        return f"not judged alone: {missing} is not at hand"
    return f"not judged alone: %{names[0]}; is declared elsewhere" if names else ""


def _borrowed(body: bytes) -> list[str]:
    """Parameter entities that are used and not declared here, in the order of use; none where nothing is declared."""
    if _DECLARATION.search(body) is None:
        return []
    declared = set(_DECLARED.findall(body))
    return [name.decode("utf-8", "replace") for name in dict.fromkeys(_USED.findall(body)) if name not in declared]


def _uses_parts(body: bytes) -> bool:
    """Tell whether an external part stands in the middle of a declaration, not between two."""
    external = set(_EXTERNAL.findall(body))
    return (
        any(not external.isdisjoint(_USED.findall(section)) for section in _WITHIN.findall(body)) if external else False
    )
