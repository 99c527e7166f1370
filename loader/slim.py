"""Reduces a DTD that thousands share to what a document takes from it: entities and default attributes.

DocBook 4.5 has 0.4 MB of declarations in 27 files; to read them for every document costs 30 ms. The first document
is read with all of it. Then the DTD, compiled by the judge's process (judge_child.py), is written out again as the
declarations that a reader who does not validate must know: general entities and attributes with a default (XML 1.0
section 5.1). It stands in for the DTD as long as all parts of that are what they were, in documents whose internal
subset cannot change the DTD's meaning (`is_plain`). Attribute types are not in it: where a value's white space matters
to its validity, the judge reads the whole DTD again.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import Any

from msgspec import Struct

_DOCTYPE = re.compile(
    rb"""(?:\xef\xbb\xbf)?\s*(?:<\?xml\s[^>]*\?>)?(?:\s|<!--(?:(?!-->).)*-->|<\?(?:(?!\?>).)*\?>)*"""
    rb"""<!DOCTYPE\s+[^\s\[>%]+\s+(?:PUBLIC\s+(?:"[^"]*"|'[^']*')|SYSTEM)\s*(?:"[^"]*"|'[^']*')\s*"""
    rb"""(?:>|\[([^\]%]*)\]\s*>)""",
    re.DOTALL,
)
_CHANGES = re.compile(rb"<!(?:ELEMENT|ATTLIST|NOTATION)|NDATA")
_TWO_BYTES = re.compile(rb"""<\?xml\s[^>]*encoding\s*=\s*["'](?!utf-8|us-ascii|iso-8859-|windows-125)""", re.IGNORECASE)
_GENERAL = re.compile(rb"<!ENTITY\s+(?!%\s)([^\s%\"'&]+)\s")
_PARAMETER = re.compile(rb"<!ENTITY\s+%\s+([^\s%\"'&]+)\s")


class Slim(Struct, frozen=True):
    """Stands in for the DTD at `url` while every one of `parts` is what it was."""

    key: str
    """name of the compiled DTD"""
    url: str
    parts: tuple[tuple[tuple[str, str], Any], ...]
    """((system, public), the answer) of the DTD and all its modules"""
    asked: dict[str, None]
    """canonical URLs of those that are pages"""
    defaults: bytes
    """attributes with a default"""
    entities: bytes
    """these, and all general entities"""


class Slims:
    """The DTDs used last, by identifier. Filled by the judge."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._rows: OrderedDict[tuple[str, str], Slim] = OrderedDict()

    def get(self, public: str, url: str) -> Slim | None:
        slim = self._rows.get((public, url))
        if slim is not None:
            self._rows.move_to_end((public, url))
        return slim

    def put(self, public: str, url: str, slim: Slim) -> None:
        self._rows[public, url] = slim
        self._rows.move_to_end((public, url))
        while len(self._rows) > self._capacity:
            self._rows.popitem(last=False)


def is_plain(head: bytes) -> bool:
    """Tell whether the internal subset cannot change what the DTD declares. False where that is not plain to see."""
    match = _DOCTYPE.match(head)
    if match is None or _TWO_BYTES.match(head):
        return False
    return not _CHANGES.search(match[1] or b"")


def slim_of(dtd: Any, parts: list[bytes]) -> tuple[bytes, bytes] | None:
    """(defaults, entities) of a compiled DTD (lxml) that was read from `parts`; None: it cannot be told from it.

    lxml lists parameter entities among the others, and does not say where an external one was declared.
    """
    general = {name for part in parts for name in _GENERAL.findall(part)}
    parameter = {name for part in parts for name in _PARAMETER.findall(part)}
    entities: list[str] = []
    for entity in dtd.iterentities():
        name = entity.name.encode()
        if (name in general) == (name in parameter):
            return None
        if name in parameter or (entity.system_url is not None and entity.content is not None):  # unparsed
            continue
        if entity.content is None:
            return None
        entities.append(f'<!ENTITY {entity.name} "{_literal(entity.content)}">')
    defaults = "".join(_default(element, attribute) for element, attribute in _attributes(dtd)).encode()
    return defaults, defaults + "".join(entities).encode()


def _attributes(dtd: Any) -> list[tuple[Any, Any]]:
    pairs = [(element, attribute) for element in dtd.iterelements() for attribute in element.iterattributes()]
    return [pair for pair in pairs if pair[1].default_value is not None]


def _default(element: Any, attribute: Any) -> str:
    kind = attribute.type.upper()
    if kind in ("ENUMERATION", "NOTATION"):
        kind = f"{'NOTATION ' if kind == 'NOTATION' else ''}({'|'.join(attribute.itervalues())})"
    fixed = "#FIXED " if attribute.default == "fixed" else ""
    value = _literal(attribute.default_value.replace("&", "&#38;").replace("<", "&#60;"), within="")
    return f'<!ATTLIST {_name(element)} {_name(attribute)} {kind} {fixed}"{value}">'


def _name(declared: Any) -> str:
    return f"{declared.prefix}:{declared.name}" if declared.prefix else str(declared.name)


def _literal(text: str, within: str = "&%") -> str:
    """`text` as a quoted literal; white space other than blanks is kept from being normalised."""
    signs = within + '"\r\n\t'
    return "".join(f"&#{ord(sign)};" if sign in signs else sign for sign in text)
