"""The signature of a page's main text: what stays equal while menus, advertisements and scripts change.

lexbor builds the tree, and a small page can make it take gigabytes. So `is_tame` counts, on the
bytes and in linear time, what makes its tree blow up or its time grow with the square; a page over these counts has no
main text, and its signature is that of its bytes.
"""

from __future__ import annotations

import hashlib
import re

from selectolax.lexbor import LexborHTMLParser

MAX_SIZE = 512 * 1024
MAX_TAGS = 20_000
MAX_TAG = 8 * 1024
"""Bytes of one tag: its attributes are compared with each other."""
MAX_DEPTH = 512
MAX_FORMATTING = 64
"""Formatting elements open at once: each paragraph opens all of them again (the adoption agency of the standard)."""
MAX_OPTIONS = 2_000

_TAG = re.compile(rb"<(/?)([a-zA-Z][a-zA-Z0-9:-]*)")
_LONG_TAG = re.compile(rb"<[a-zA-Z][^>]{%d}" % MAX_TAG)
_FORMATTING = frozenset(
    {b"a", b"b", b"big", b"code", b"em", b"font", b"i", b"nobr", b"s", b"small", b"strike", b"strong", b"tt", b"u"}
)
# void, or closed by what follows them: they make no depth of their own
_SHALLOW = frozenset(
    {
        *(b"area", b"base", b"br", b"col", b"embed", b"hr", b"img", b"input", b"link", b"meta", b"param", b"source"),
        *(b"track", b"wbr", b"p", b"li", b"dt", b"dd", b"tr", b"td", b"th", b"thead", b"tbody", b"tfoot", b"colgroup"),
        *(b"option", b"optgroup", b"rp", b"rt", b"html", b"head", b"body"),
    }
)
_BOILERPLATE = ["script", "style", "noscript", "template", "nav", "header", "footer", "aside", "form", "iframe", "svg"]


def signature(body: bytes, codec: str) -> bytes | None:
    """MD5 (16 bytes) of the main text of an HTML page, white space folded; None if it has none or is not tame."""
    if not is_tame(body):
        return None
    tree = LexborHTMLParser(body.decode(codec, "replace"))
    if tree.body is None:
        return None
    tree.strip_tags(_BOILERPLATE)
    text = " ".join(tree.body.text(separator=" ").split())
    return hashlib.md5(text.encode("utf-8", "replace"), usedforsecurity=False).digest() if text else None


def is_tame(body: bytes) -> bool:
    """Tell whether lexbor can be given this page. Its depth is estimated to the safe side: an end tag closes an
    element only
    if that is the innermost one, for what a parser makes of any other end tag is where the attacks are."""
    if len(body) > MAX_SIZE or body.count(b"<") > MAX_TAGS or _LONG_TAG.search(body):
        return False
    stack: list[bytes] = []
    formatting = options = 0
    for slash, raw in _TAG.findall(body):
        name = raw.lower()
        options += name in (b"option", b"optgroup")
        if name in _SHALLOW:
            continue
        if not slash:
            stack.append(name)
            formatting += name in _FORMATTING
            if len(stack) > MAX_DEPTH or formatting > MAX_FORMATTING:
                return False
        elif stack and stack[-1] == name:
            stack.pop()
            formatting -= name in _FORMATTING
    return options <= MAX_OPTIONS
