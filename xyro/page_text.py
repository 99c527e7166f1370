"""The main text of an HTML page, as plain text and as Markdown, with its title, language and dates.

lexbor parses the page and writes it out again, well-formed; one pass over its tags makes blocks of text. A container of
blocks is left out where its element or its name says that it is no content (nav, footer, class="sidebar"), or where
half of its letters are links. If a page names its main part (<main>, role="main", a single <article>), that is taken; a
main part of hardly anything but links keeps them. Where one part has almost all whole paragraphs, what stands around it
goes; and what stands above the title and below the last heading, where it is labels alone. A page whose text is shorter
than SHORT keeps all of it: there is no telling. Headings, lists, tables, code, quotes and links stay.

Why not a library: resiliparse drops tables and writes no Markdown, html-to-markdown keeps the boilerplate, trafilatura
takes ten times as long (tests/xyro/test_page_text.py holds the three against each other). `tamed` (maintext.py) says
which pages lexbor may be given.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace
from selectolax.lexbor import LexborHTMLParser, LexborNode

from xyro.maintext import LONG, PageBounds, TameSource, tamed
from xyro.markdown import joined
from xyro.page_blocks import blocks_of
from xyro.text_blocks import TextBlock, size_of, trimmed
from xyro.wire.urls import resolve

SHORT = 400
"""characters of text up to which a page has no boilerplate worth the risk"""
SURELY_LONG = 2 * SHORT
"""characters of a page's blocks with which it needs no closer look"""
LARGE = 20 * SHORT
"""characters of HTML from which on a page is probably long"""
LEAST = 0.15
"""share of a page's text that a main part must have; with less, the page as a whole is taken"""
_SILENT = [
    "script",
    "style",
    "noscript",
    "template",
    "iframe",
    "svg",
    "canvas",
    "audio",
    "video",
    "object",
    "math",
    "head",
]
"""elements whose text nobody reads"""
_RAW = ["xmp", "noembed", "noframes", "plaintext"]
"""elements whose text is written as it is, tags and all"""
_UNSEEN = [
    "span",
    "font",
    "u",
    "s",
    "small",
    "big",
    "abbr",
    "acronym",
    "cite",
    "dfn",
    "ins",
    "label",
    "mark",
    "q",
    "sub",
    "sup",
    "var",
    "time",
    "tt",
    "wbr",
    "bdi",
    "bdo",
    "data",
]
"""elements that only dress their text"""
_WRITTEN = {
    "published": (
        re.compile(r'"datePublished"\s*:\s*"([^"]{4,40})"'),
        re.compile(r'<meta[^>]+(?:article:published_time|"date"|dcterms\.created)[^>]+content="([^"]{4,40})"', re.I),
    ),
    "modified": (
        re.compile(r'"dateModified"\s*:\s*"([^"]{4,40})"'),
        re.compile(
            r'<meta[^>]+(?:article:modified_time|last-modified|dcterms\.modified)[^>]+content="([^"]{4,40})"', re.I
        ),
    ),
}
"""what a date means -> where it stands: in JSON-LD, and in an element of the head"""
_DATED = ("_time", "-modified", '"date"', "dcterms")
"""what an element that names a date has in it"""
_TIME = re.compile(r'<time[^>]+datetime="([^"]{4,40})"', re.IGNORECASE)


class PageText(Struct, frozen=True):
    """`published`, `modified`: dates as the page wrote them; empty where it names none."""

    text: str
    markdown: str
    title: str = ""
    language: str = ""
    published: str = ""
    modified: str = ""


def page_text(body: bytes, codec: str, url: str, bounds: PageBounds = LONG) -> PageText | None:
    """The main text of a page; None where it has none, or is not tame. `url`: what its links are relative to."""
    tame = tamed(body, codec, bounds)
    if tame is None:
        return None
    tree = LexborHTMLParser(tame.source)
    root = tree.body
    if root is None:
        return None
    base, main, facts = (
        _base(tree, tame, url),
        _main(tree, tame),
        _facts(tree, tame.source, tame.present(["script", "time"])),
    )
    if silent := tame.present(_SILENT):
        tree.strip_tags(silent)
    if raw := tame.present(_RAW):
        for node in tree.css(", ".join(raw)):
            node.replace_with(f" {node.text()} ")
    if unseen := tame.present(_UNSEEN):
        tree.unwrap_tags(unseen)
    blocks = _content(root, main, base, len(tame.source))
    if not blocks:
        return None
    text = "\n\n".join(block.text for block in blocks).replace("\0", "")
    return replace(facts, text=text, markdown=joined(blocks))


def facts_of(source: str) -> PageText:
    """Title, language and dates of a page, without its text."""
    return _facts(LexborHTMLParser(source), source, ("script", "time"))


def markdown_of(source: str, url: str) -> str:
    """A piece of HTML as Markdown, all of it."""
    root = LexborHTMLParser(source).body
    blocks = blocks_of(root, url, everything=True) if root is not None else []
    return joined(blocks) if blocks else ""


def _facts(tree: LexborHTMLParser, source: str, present: Sequence[str]) -> PageText:
    """present: of script and time, the elements that the page may have; without one, no date is looked for in it."""
    head, element = tree.head, tree.root
    title = (head.css_first("title") if head is not None else None) or tree.css_first("title")
    if title is not None and _is_drawn(title):
        title = None
    named = element.attributes if element is not None else {}
    language = named.get("lang") or named.get("xml:lang") or ""
    heading = " ".join(title.text().split())[:500] if title else ""
    return PageText("", "", heading.replace("\0", ""), language.strip()[:35], *_dates(source, present))


def _is_drawn(title: LexborNode) -> bool:
    """Tell whether it is the title of a drawing (SVG), not of the page."""
    node = title.parent
    while node is not None and node.tag != "svg":
        node = node.parent
    return node is not None


def _content(root: LexborNode, main: LexborNode | None, base: str, size: int) -> list[TextBlock]:
    """The blocks of the main part; of all of a short page. size: characters of its HTML."""
    found = None
    if main is None and size >= LARGE:
        found = blocks_of(root, base)
        if sum(len(block.text) for block in found if block.kind != "pre") >= SURELY_LONG:
            return trimmed(found) or blocks_of(root, base, everything=True)
    written = root.text(separator=" ")
    if all(_letters(written[:count]) < SHORT for count in (4 * SHORT, 20 * SHORT, len(written))):
        return blocks_of(root, base, everything=True)
    if main is not None:
        blocks = blocks_of(main, base, named=True)
        letters = size_of(blocks)
        if letters >= LEAST * len(written) or letters >= LEAST * _letters(written):
            return trimmed(blocks)
    return trimmed(found if found is not None else blocks_of(root, base)) or blocks_of(root, base, everything=True)


def _letters(text: str) -> int:
    """Characters, white space folded."""
    return len(" ".join(text.split()))


def _base(tree: LexborHTMLParser, tame: TameSource, url: str) -> str:
    base = tree.css_first("base[href]") if tame.present(["base"]) else None
    return (resolve(url, base.attributes.get("href") or "") or url) if base else url


def _main(tree: LexborHTMLParser, tame: TameSource) -> LexborNode | None:
    """The element that the page names as its main part."""
    found: list[LexborNode] = []
    if tame.present(["main"]) or ("main" in tame.source and ("role" in tame.source or "ROLE" in tame.source)):
        found = tree.css("main, [role=main]")
    if not found and tame.present(["article"]):
        found = tree.css("article")
    return found[0] if len(found) == 1 else None


def _dates(source: str, present: Sequence[str]) -> Iterator[str]:
    """(published, modified)"""
    head = source[: max(source.find("<body"), 0)]
    lower = head.lower()
    dated = any(word in lower for word in _DATED)
    for meaning, (structured, element) in _WRITTEN.items():
        key = "datePublished" if meaning == "published" else "dateModified"
        found = structured.search(source) if "script" in present and key in source else None
        if found is None and dated:
            found = element.search(head)
        if found is None and meaning == "published" and "time" in present:
            found = _TIME.search(source)
        yield html.unescape(found[1]).strip() if found else ""
