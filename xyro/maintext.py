"""The signature of a page's main text: what stays equal while menus, advertisements and scripts change.

lexbor builds the tree, and a small page can make it take gigabytes. So `tamed` counts, on the bytes and in linear time,
what makes its tree blow up or its time grow with the square. A page over these counts is counted again without what
nobody reads: scripts, styles, drawings, comments and long attributes (20 of 130 news pages; the others pay nothing).
One that is still over them has no main text, and its signature is that of its bytes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

MAX_BODY = 1024 * 1024
"""Bytes of a page that is looked at."""
MAX_SIZE = 512 * 1024
"""Bytes that lexbor is given: its tree takes 5 ms."""
MAX_TAGS = 20_000
MAX_TAG = 8 * 1024
"""Bytes of one tag: its attributes are compared with each other."""
HALF = MAX_TAG // 2
MAX_DEPTH = 512
MAX_FORMATTING = 64
"""Formatting elements open at once: each paragraph opens all of them again (the adoption agency of the standard)."""
MAX_OPTIONS = 2_000

_MARK: Final = "\ufeff"
"""byte order mark: no text, though a parser would begin the body with it"""
_TAG = re.compile(rb"</?[a-z][a-z0-9:-]*+")
_CHILDLESS = re.compile(rb"<([a-z][^<]*+)</\1(?![^<])")
"""of tags alone: an element without another in it"""
ROUNDS = 6
"""times that elements without others in them are taken away, which is quick, before depth is counted: of 738 tags of a
page of documentation 19 are left"""
_LONG_TAG = re.compile(rb"<[a-z][^>]{%d}" % MAX_TAG)
_UNREAD = re.compile(
    rb"<!--.*?(?:-->|\Z)|<(script|style)(?=[\s/>]).*?(?:</\1[^>]*+(?:>|\Z)|\Z)"  # an unclosed one goes to the end
    rb"|<svg(?=[\s>])[^>]*+(?<!/)>[^<]*+(?:<(?!/?svg[\s/>])[^<]*+)*+</svg\s*+>"
    rb"|(?<==)(?:\"[^\"<>]{1024,}+\"|'[^'<>]{1024,}+')",
    re.DOTALL | re.IGNORECASE,
)
_FORMATTING = frozenset(b"<" + name for name in (b"a b big code em font i nobr s small strike strong tt u").split())
# void, or closed by what follows them: they make no depth of their own
_SHALLOW = frozenset(
    opening + name
    for opening in (b"<", b"</")
    for name in (
        b"area base br col embed hr img input link meta param source track wbr p li dt dd tr td th thead tbody tfoot "
        b"colgroup option optgroup rp rt html head body"
    ).split()
)
_OPTIONS = frozenset([b"<option", b"<optgroup", b"</option", b"</optgroup"])
_SLASH: Final = ord("/")
_BOILERPLATE = ["script", "style", "noscript", "template", "nav", "header", "footer", "aside", "form", "iframe", "svg"]


def signature(body: bytes, codec: str) -> bytes | None:
    """MD5 (16 bytes) of the main text of an HTML page, white space folded; None if it has none or is not tame."""
    tame = tamed(body, codec)
    if tame is None:
        return None
    from selectolax.lexbor import LexborHTMLParser  # signatures of texts alone need it

    tree = LexborHTMLParser(tame.source)
    if tree.body is None:
        return None
    tree.strip_tags(tame.present(_BOILERPLATE))
    text = " ".join(tree.body.text(separator=" ").split())
    return hashlib.md5(text.encode("utf-8", "replace"), usedforsecurity=False).digest() if text else None


class PageBounds(Struct, frozen=True):
    """`body`: bytes of a page that is looked at; `size`, `tags`: bytes and tags that lexbor is given of it."""

    body: int = MAX_BODY
    size: int = MAX_SIZE
    tags: int = MAX_TAGS


BRIEF = PageBounds()
"""what the event loop has time for"""
LONG = PageBounds(8 * MAX_BODY, 8 * MAX_SIZE, 10 * MAX_TAGS)
"""what a thread beside it has time for: manuals on one page, indexes of manuals"""


class TameSource(Struct, frozen=True):
    """A page that lexbor can be given; `tags`: its distinct tags in lower case, such as b"<div" and b"</div"."""

    source: str
    tags: frozenset[bytes]

    def present(self, names: Iterable[str]) -> list[str]:
        """Filter the elements that the page may have: each that is looked for in the tree costs a walk."""
        return [name for name in names if b"<" + name.encode() in self.tags]


def tamed(body: bytes, codec: str, bounds: PageBounds = BRIEF) -> TameSource | None:
    """The page as lexbor can be given it; None where it cannot."""
    if codec.startswith("utf-16"):  # its tags are not to be seen in its bytes
        body, codec = body.decode(codec, "replace").encode("utf-8", "replace"), "utf-8"
    if len(body) > bounds.body:
        return None
    tags = _tags_of(body, bounds)
    if tags is None:
        body = _UNREAD.sub(b"", body)
        tags = _tags_of(body, bounds)
    return None if tags is None else TameSource(body.decode(codec, "replace").removeprefix(_MARK), tags)


def _tags_of(body: bytes, bounds: PageBounds) -> frozenset[bytes] | None:
    """Its distinct tags; None if it is not tame. Its depth is estimated to the safe side: an end tag closes an element
    only if that is the innermost one, for what a parser makes of any other end tag is where the attacks are."""
    if len(body) > bounds.size or body.count(b"<") > bounds.tags:
        return None
    body = body.lower()
    tags = _TAG.findall(body)
    distinct = frozenset(tags)
    if any(body.find(b">", start, start + HALF) < 0 for start in range(0, len(body), HALF)) and _LONG_TAG.search(body):
        return None  # a tag that is too long has a whole half of its length without an end
    if not _OPTIONS.isdisjoint(distinct) and body.count(b"<opt") + body.count(b"</opt") > MAX_OPTIONS:
        return None
    deep = distinct - _SHALLOW
    tags = [*filter(deep.__contains__, tags)]
    nested = b"".join(tags)
    for _ in range(ROUNDS):
        nested = _CHILDLESS.sub(b"", nested)
    return distinct if _is_flat(_TAG.findall(nested), ROUNDS) or _is_flat(tags) else None


def _is_flat(tags: Iterable[bytes], lower: int = 0) -> bool:
    """Tell whether no element is too deep, by bounds that are so much lower."""
    ends: list[bytes] = []
    formatting = 0
    for tag in tags:
        if tag[1] != _SLASH:
            ends.append(b"</" + tag[1:])
            formatting += tag in _FORMATTING
            if len(ends) > MAX_DEPTH - lower or formatting > MAX_FORMATTING - lower:
                return False
        elif ends and ends[-1] == tag:
            ends.pop()
            formatting -= b"<" + tag[2:] in _FORMATTING
    return True
