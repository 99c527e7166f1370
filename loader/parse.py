"""An XML body becomes events for a handler, safely: no tree, no input or output, every limit ours or libxml2's.

    pieces(body)  ->  read(pieces, ...)  ->  handler.starts[tag](attributes), handler.ends[tag](text), ...
    gzip, caps        encoding, lxml, limits

Bounds that libxml2 2.14 keeps by itself without `huge_tree` (tests/loader/test_hostile.py): expansion of entities and
default attributes to 1 MB + 5 x the input (billion laughs, quadratic blow-up, a DTD's too), entity loops, names of
50 kB, attribute values and markup of 10 MB. What it leaves open when no tree is built (depth, counts, text, the length
of the prolog) is `Limits`.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any, Protocol

from lxml import etree
from msgspec import Struct

from xyro.loader.outline import SCHEMA_LOCATIONS, Outline
from xyro.wire.errors import TheirError

PIECE = 65_536
"""Bytes given to the parser at once."""
XML_BASE = "{http://www.w3.org/XML/1998/namespace}base"
XLINK = "{http://www.w3.org/1999/xlink}"
_XLINK_HREF = XLINK + "href"
_GZIP = b"\x1f\x8b\x08"
BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_WIDEST = {b"\xff\xfe\0\0": "UTF-32LE", b"\0\0\xfe\xff": "UTF-32BE"}
"""libxml2 takes the first for UTF-16, and has to be told; then it would read the mark as text"""
_NEWER = re.compile(rb"<\?xml\s+version\s*=\s*[\"']1\.[1-9]")

Attributes = Mapping[str, str]
"""Attributes of one element by name; names and tags are in Clark notation: {namespace}local."""


class ParseLimits(Struct, frozen=True):
    """Limits of one body's cost. Over a limit the load fails by name, with the links found so far."""

    depth: int = 1_000
    """elements open at once (hand-written documents stay below 100)"""
    attributes: int = 1_000
    """attributes of one element"""
    nodes: int = 500_000
    """elements and attributes in all: a full sitemap (50,000 URLs) has 250,000; 0.7 us each"""
    text: int = 10_000_000
    """bytes of text or comment in one go (libxml2's own limit where it builds a tree)"""
    prolog: int = 1 << 20
    """bytes before the root element: 1 MiB of declarations cost 0.07 s and 8 MB"""
    body: int = 50 << 20
    """unzipped bytes (sitemaps.org: 52,428,800)"""
    ratio: int = 200
    """unzipped to zipped bytes, judged from 1 MiB on"""
    parts: int = 64
    """external parts asked for by one document (XHTML 1.1, the most modular DTD around, has about 40)"""
    part: int = 4 << 20
    """bytes of one external part (DocBook 4.5 in one file: 0.3 MB)"""


class XmlFault(TheirError):
    """A body that is not well-formed, or hostile. `kind` is one of FAULTS."""


FAULTS = {
    "empty": "no bytes, or white space only",
    "not-well-formed": "breaks a rule of XML 1.0 that has no name of its own here",
    "xml-version": "an XML version that is not 1.x, or what only XML 1.1 allows in a document that says it is 1.1",
    "encoding": "bytes that its encoding does not have, or an encoding that nobody knows",
    "undeclared-entity": "&name; without a declaration, where no external DTD could have one",
    "entity-loop": "an entity that contains itself",
    "entity-expansion": "entities or default attributes blow it up beyond 1 MB + 5 x its size",
    "too-deep": "Limits.depth",
    "too-many-attributes": "Limits.attributes",
    "too-many-nodes": "Limits.nodes",
    "text-too-long": "Limits.text, or a name, value or comment over libxml2's own bounds",
    "prolog-too-long": "Limits.prolog",
    "too-large": "Limits.body",
    "gzip-bomb": "Limits.ratio, or thousands of gzip members",
    "gzip-broken": "gzip data cut short or damaged",
    "too-many-urls": "a sitemap over 50,000 entries",
    "too-many-parts": "Limits.parts",
}
"""Kinds of XmlFault: what each means. intake.TROUBLES has the kinds of incomplete documents."""

_NAMES = {
    etree.ErrorTypes.ERR_UNKNOWN_VERSION: "xml-version",
    etree.ErrorTypes.ERR_INVALID_ENCODING: "encoding",
    etree.ErrorTypes.ERR_UNKNOWN_ENCODING: "encoding",
    etree.ErrorTypes.ERR_UNSUPPORTED_ENCODING: "encoding",
    etree.ErrorTypes.I18N_CONV_FAILED: "encoding",
    etree.ErrorTypes.ERR_UNDECLARED_ENTITY: "undeclared-entity",
    etree.ErrorTypes.ERR_ENTITY_LOOP: "entity-loop",
    etree.ErrorTypes.ERR_NAME_TOO_LONG: "text-too-long",
}


class Handler(Protocol):
    """Receives the document's events. Tags it has no entry for cost it nothing."""

    @property
    def starts(self) -> Mapping[str, Callable[[Attributes], None]]:
        """By tag: called with the attributes of a start tag."""
        ...

    @property
    def ends(self) -> Mapping[str, Callable[[str], None]]:
        """By tag: called with the text since the element's last child (all of it where there is none), stripped."""
        ...

    def linked(self, tag: str, attrib: Attributes) -> None:
        """A start tag with an xlink:href, before `starts`."""

    def styled(self, sheet: Mapping[str, str]) -> None:
        """An xml-stylesheet instruction ahead of the root element: its pseudo-attributes."""

    def rebase(self, base: str | None) -> None:
        """An element with this xml:base begins; None: it ended."""


class DocumentPart(Protocol):
    """An external part: its bytes, and the URL that they were read from."""

    @property
    def url(self) -> str: ...

    @property
    def body(self) -> bytes: ...


Answer = Callable[[str, str], DocumentPart]
"""(system identifier as far as libxml2 resolved it, public identifier) -> the part, empty where there is none."""


def pieces(body: bytes, limits: ParseLimits) -> Iterator[bytes]:
    """`body` in pieces of at most PIECE bytes, unzipped (one layer) if it begins as gzip does, within the limits."""
    if body.startswith(_GZIP):
        yield from _unzipped(body, limits)
        return
    if len(body) > limits.body:
        raise XmlFault("too-large", f"{len(body)} bytes")
    for start in range(0, len(body), PIECE):
        yield body[start : start + PIECE]


def _unzipped(body: bytes, limits: ParseLimits) -> Iterator[bytes]:
    """The members of a gzip file one after the other; what follows the last is ignored, as gzip(1) does."""
    size, members, position = 0, 0, 0
    while body.startswith(_GZIP, position):
        members += 1
        unzip = zlib.decompressobj(wbits=31)
        while not unzip.eof:
            data = unzip.unconsumed_tail or body[position : position + PIECE]
            position += 0 if unzip.unconsumed_tail else len(data)
            piece = _inflated(unzip, data)
            size += len(piece)
            _refuse_bomb(size, position, members, limits)
            if piece:
                yield piece
        position -= len(unzip.unused_data)


def _inflated(unzip: Any, data: bytes) -> bytes:
    if not data:
        raise XmlFault("gzip-broken", "cut short")
    try:
        return bytes(unzip.decompress(data, PIECE))
    except zlib.error as error:
        raise XmlFault("gzip-broken", str(error)) from None


def _refuse_bomb(size: int, zipped: int, members: int, limits: ParseLimits) -> None:
    if size > limits.body:
        raise XmlFault("too-large", "unzipped")
    if members > 2_000 or size > max(1 << 20, zipped * limits.ratio):
        raise XmlFault("gzip-bomb", f"{size} of {zipped} bytes in {members} members")


def read(
    parts: Iterable[bytes],
    charset: str,
    root: Callable[[str], Handler],
    limits: ParseLimits,
    answer: Answer,
    *,
    recover: bool = False,
    outline: Outline | None = None,
) -> None:
    """Parse the pieces of one body; `root` chooses the handler when the root element's tag is known.

    outline: is filled with what the body is and which grammars it names.

    recover: go on behind what is not well-formed, as libxml2 does (for feeds and sitemaps, whose URLs are wanted).

    `charset` is the media type's (empty: none). Order of belief (XML 1.0 appendix F, RFC 7303): byte order mark,
    charset, XML declaration, UTF-8. White space before the XML declaration, a common slip, is forgiven. Raises
    XmlFault, after all events that came before the fault; what `root`, a handler or `answer` raises passes through.
    """
    stream = iter(parts)
    first = _first(stream)
    if not first:
        raise XmlFault("empty")
    outline = outline if outline is not None else Outline()
    outline.begins(first)
    outline.whole, stream = _ends(stream)
    events, resolver = _Events(root, limits, outline), _Resolver(answer)
    try:
        parser = _parser(events, encoding_of(first, charset), recover)
        parser.resolvers.add(resolver)
        parser.feed(unmarked(first))
        events.fed(len(first))
        for piece in stream:
            parser.feed(piece)
            events.fed(len(piece))
        parser.close()
    except etree.XMLSyntaxError as error:
        raise XmlFault(_name(error, first), str(error)) from None
    finally:  # lxml's parser is part of a reference cycle: nothing of ours shall wait for the garbage collector with it
        events.forget()
        resolver.forget()


def _ends(stream: Iterator[bytes]) -> tuple[bool, Iterator[bytes]]:
    """(is there nothing more?, the stream); a fault of the next piece is kept for its place."""
    try:
        piece = next(stream, b"")
    except XmlFault as fault:
        return False, _failing([fault])
    return not piece, chain([piece] if piece else [], stream)


def _failing(faults: list[XmlFault]) -> Iterator[bytes]:
    for fault in faults:
        raise fault
    yield b""


def _first(stream: Iterator[bytes]) -> bytes:
    """Enough bytes to know the family of the encoding by (4), from the first that is not white space."""
    first = b""
    while len(first) < 4 and (piece := next(stream, b"")):
        first += piece
        mark = BOMS[0] if first.startswith(BOMS[0]) else b""
        first = mark + first[len(mark) :].lstrip(b" \t\r\n")
    return first


def encoding_of(head: bytes, charset: str) -> str | None:
    """Return the encoding that the parser must be given, None where it finds out by itself (byte order mark,
    declaration, UTF-8)."""
    if head[:4] in _WIDEST:
        return _WIDEST[head[:4]]
    if head.startswith(BOMS):
        return None
    if charset:
        return charset
    if head[0:2] == b"<\0" and head[2:4] != b"\0\0":
        return "UTF-16LE"
    return "UTF-16BE" if head[0:2] == b"\0<" and head[2:3] == b"\0" else None


@lru_cache(maxsize=256)
def is_known(charset: str) -> bool:
    """Tell whether libxml2 has this encoding (a document under an unknown one is read as if none had been named)."""
    try:
        etree.XMLParser(encoding=charset)
    except (LookupError, ValueError):
        return False
    return True


def unmarked(body: bytes) -> bytes:
    """Without a byte order mark of UTF-32."""
    return body[4:] if body[:4] in _WIDEST else body


def _parser(events: _Events, encoding: str | None, recover: bool) -> Any:
    """A parser for one body. It may resolve entities and load DTDs because a _Resolver is all that it can ask."""
    try:
        return etree.XMLParser(
            target=events,
            encoding=encoding,
            resolve_entities=True,
            load_dtd=True,
            attribute_defaults=True,
            no_network=True,
            huge_tree=False,
            recover=recover,
        )
    except (LookupError, ValueError):  # a charset that libxml2 does not know
        return _parser(events, None, recover)


class _Resolver(etree.Resolver):  # type: ignore[misc]  # lxml has no types
    """Stands between libxml2 and the world: it always answers, so lxml never falls back on files or the network."""

    def __init__(self, answer: Answer) -> None:
        self._answer: Answer | None = answer

    def resolve(self, system: str | None, public: str | None, context: Any) -> Any:
        if self._answer is None:
            raise XmlFault("too-many-parts", "asked after the end")
        part = self._answer(system or "", public or "")
        return self.resolve_string(part.body, context, base_url=part.url)

    def forget(self) -> None:
        self._answer = None


class _Events:
    """The parser's target: counts, keeps text, and passes on what the handler has an entry for."""

    def __init__(self, root: Callable[[str], Handler], limits: ParseLimits, outline: Outline) -> None:
        self._root = root
        self._outline = outline
        self._tags = outline.tags
        self._most_open = 0
        self._limits = limits
        self._deepest, self._nodes_left = limits.depth, limits.nodes
        self._handler: Handler | None = None
        self._starts: Mapping[str, Callable[[Attributes], None]] = {}
        self._ends: Mapping[str, Callable[[str], None]] = {}
        self._bases: list[int] = []
        """depths of the open elements with an xml:base"""
        self._text: list[str] = []
        self.data = self._text.append  # libxml2 gives every &lt; of an escaped article as a text of its own
        self._depth = self._nodes = self._run = 0
        self._mark = (0, 0)

    def start(self, tag: str, attrib: Attributes) -> None:
        handler = self._handler or self._begin(tag)
        self._depth += 1
        self._nodes += 1
        self._tags[tag] = None
        if self._depth > self._most_open:
            self._opened()
        if attrib:
            self._attributes(handler, tag, attrib)
        if self._nodes > self._nodes_left:
            raise XmlFault("too-many-nodes")
        act = self._starts.get(tag)
        if act is not None:
            act(attrib)
        self._text.clear()

    def _opened(self) -> None:
        """Deeper than ever before."""
        self._most_open = self._outline.depth = self._depth
        if self._depth > self._deepest:
            raise XmlFault("too-deep")

    def pi(self, target: str, data: str | None) -> None:
        if self._handler is None:
            self._outline.instructed(target, data or "")

    def end(self, tag: str) -> None:
        act = self._ends.get(tag)
        if act is not None:
            act("".join(self._text).strip())
        self._text.clear()
        if self._bases and self._bases[-1] == self._depth:
            self._rebased()
        self._depth -= 1

    def close(self) -> None:
        """Required of a target."""

    def forget(self) -> None:
        """The parse is over: let go of the handler and the text."""
        self._outline.elements = self._nodes - self._outline.attributes
        self._handler, self._starts, self._ends = None, {}, {}
        del self._root
        self._text.clear()

    def fed(self, size: int) -> None:
        """A piece of `size` bytes was parsed. Pieces without a tag in them are one run of text (or one long prolog)."""
        mark = (self._nodes, self._depth)
        self._run = self._run + size if mark == self._mark else 0
        self._mark = mark
        if self._handler is None and self._run > self._limits.prolog:
            raise XmlFault("prolog-too-long")
        if self._run > self._limits.text:
            raise XmlFault("text-too-long")

    def _begin(self, tag: str) -> Handler:
        self._outline.root = tag
        self._handler = handler = self._root(tag)
        for sheet in self._outline.stylesheets:
            handler.styled(sheet)
        self._starts, self._ends = handler.starts, handler.ends
        return handler

    def _rebased(self) -> None:
        self._bases.pop()
        if self._handler is not None:
            self._handler.rebase(None)

    def _attributes(self, handler: Handler, tag: str, attrib: Attributes) -> None:
        self._nodes += len(attrib)
        self._outline.attributes += len(attrib)
        if len(attrib) > self._limits.attributes:
            raise XmlFault("too-many-attributes", f"{len(attrib)}")
        if XML_BASE in attrib:
            self._bases.append(self._depth)
            handler.rebase(attrib[XML_BASE])
        if _XLINK_HREF in attrib:
            handler.linked(tag, attrib)
        for name in SCHEMA_LOCATIONS:
            if name in attrib:
                self._outline.located(name, attrib[name], handler)


def _name(error: Any, head: bytes) -> str:
    """The fault that an error of libxml2 is; one code stands for both the limit of expansion and that of buffers."""
    if error.code == etree.ErrorTypes.ERR_RESOURCE_LIMIT:
        return "entity-expansion" if "amplification" in str(error) else "text-too-long"
    name = _NAMES.get(error.code, "not-well-formed")
    return "xml-version" if name == "not-well-formed" and _NEWER.match(head) else name
