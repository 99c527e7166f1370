"""From a well-formed piece of HTML to blocks of text, in one pass over its tags (lexbor wrote it: page_text.py).

A container of blocks is left out where its element or its name says that it is no content, or where most of its letters
are links.
"""

from __future__ import annotations

import html
import itertools
import re
from collections import Counter
from collections.abc import Container
from dataclasses import dataclass, field
from functools import lru_cache

from selectolax.lexbor import LexborNode

from xyro.wire.urls import resolve

DEEPEST = 8
"""levels of lists that are indented further"""
MANY_WORDS = 4
"""hyphens in a name, such as `sharing-with-a-single-developer`, from which on it is no name of a part of the page"""
WRAPPER = 2
"""times all that was taken: an element with more text is no boilerplate, whatever its name (comments aside)"""
LINKED = 0.5
"""share of a container's letters that are links, from which on it is navigation"""
MAIN_SHARE = 0.3
"""share of a main part that must be left without its navigation; where less is, the page is one of links"""
WHOLE = 120
"""bytes of UTF-8 from which on a paragraph is no label: forty letters of Chinese"""
MOSTLY = 0.5
"""share of a text that must be whole paragraphs for its ends to be cut"""
_ALWAYS = frozenset(["li", "pre", "table"])
"""kinds of blocks that are content, however short"""
_TAG = re.compile(r'<(/?[a-z][^\s/>]*+)((?:[^">]++|"[^"]*+")*+)>([^<]*+)')
"""(name, after a slash if it ends an element; attributes; text up to the next tag)"""
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_DROPPED = frozenset(["nav", "footer", "aside", "form", "button", "select", "textarea", "dialog"])
_BLOCKS = frozenset(
    [
        "address",
        "article",
        "blockquote",
        "body",
        "caption",
        "center",
        "dd",
        "details",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hgroup",
        "li",
        "main",
        "ol",
        "p",
        "pre",
        "section",
        "summary",
        "table",
        "tbody",
        "td",
        "tfoot",
        "th",
        "thead",
        "tr",
        "ul",
    ]
)
_BLOCK_ENDS = frozenset(["/" + name for name in _BLOCKS])
_CONTAINERS = frozenset(
    ["article", "blockquote", "div", "dl", "figure", "header", "ol", "p", "section", "table", "td", "ul"]
)
_NAMED = frozenset(["a", "div", "dl", "header", "li", "ol", "p", "section", "table", "td", "ul"])
"""elements whose names are asked whether they are content"""
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_INLINE = {"b": "**", "strong": "**", "i": "*", "em": "*", "code": "`", "kbd": "`", "samp": "`"}
_MARKS = {
    **{name: "\1" + mark for name, mark in _INLINE.items()},
    **{"/" + name: mark + "\2" for name, mark in _INLINE.items()},
}
"""what a tag writes into a line: `_tight` sets it next to its words"""
_LABELS = re.compile(r'(?:class|id|role)="([^"]*)"')
_NAMES = re.compile(
    r"(?:.*[_-])?(?:nav|navigation|menu|sidebar|sphinxsidebar|related|footer|breadcrumbs?|cookies?|banner|advert|"
    r"sponsored|promo|share|sharing|social|newsletter|comments?|pagination|modal|login|signup|skip|headerlink|"
    r"excerpt|teasers?|slideshow|gallery|masthead|toctree-wrapper|navheader|navfooter)(?:[_-].*)?",
    re.IGNORECASE | re.DOTALL,
)
"""each of them gains on the pages that the rules were tuned on (docs/figures.md), or on pages of documentation"""
_HREF = re.compile(r'\shref="([^"]*)"')


_Skipped = tuple[str, str]
"""(element, its attributes)"""


@dataclass(slots=True)
class TextBlock:
    """A paragraph, heading, item, table or piece of code."""

    text: str
    markdown: str
    kind: str = ""
    """element that it is of"""
    links: int = 0
    """letters of it that are links"""


@dataclass(slots=True)
class _Open:
    """An element that is open: where its blocks begin, and how much of its text is links."""

    name: str
    first: int
    letters: int
    links: int
    rows: list[list[int]] = field(default_factory=list)
    """of a table: the number of the first block of each cell, by row"""
    headed: bool = False
    """a table has a <th>: it is one of data"""


@lru_cache(4096)
def _is_boilerplate(label: str) -> bool:
    """Tell whether one of the classes, ids or roles names what is no content. A name of many words is a heading's."""
    return any(_NAMES.fullmatch(name) for name in label.split() if name.count("-") + name.count("_") < MANY_WORDS)


def size_of(blocks: list[TextBlock]) -> int:
    """Characters of their text."""
    return sum(len(block.text) for block in blocks)


def _plain(text: str) -> str:
    """Text as lexbor writes it, read."""
    if "&" in text:
        text = text.replace("&nbsp;", " ").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return text


def joined(blocks: list[TextBlock]) -> str:
    """Markdown of the blocks, one item of a list right below the other."""
    parts = [blocks[0].markdown]
    for before, block in itertools.pairwise(blocks):
        parts.append("\n" if before.kind == block.kind == "li" else "\n\n")
        parts.append(block.markdown)
    return "".join(parts)


class BlockWalk:
    """One pass over the tags of a well-formed piece of HTML."""

    def __init__(
        self,
        base: str,
        *,
        named: bool,
        navigation: bool = False,
        everything: bool = False,
        spared: Container[_Skipped] = (),
    ) -> None:
        self.blocks: list[TextBlock] = []
        self.pruned = 0
        """letters of the navigation that was left out"""
        self._base = base
        self._named = named
        self._navigation = navigation or everything
        self._everything = everything
        self._open: list[_Open] = []
        self._line: list[str] = []
        self._bare: list[str] = []
        self._letters = 0
        self._links = 0
        self._href = ""
        self._linked = 0
        self._line_links = 0
        self._lists: list[int] = []
        """-1 of <ul>, the last number of <ol>"""
        self._marker = ""
        self._quotes = 0
        self._pre = 0
        self.skipped: Counter[_Skipped] = Counter()
        """characters between the tags of what was left out by its name"""
        self._spared = spared
        self._skipped: _Skipped | None = None
        self._counted: tuple[str, ...] = ()
        self._depth = 0

    def run(self, source: str) -> list[TextBlock]:
        line, bare = self._line, self._bare
        for name, attributes, text in _TAG.findall(source):
            if self._skipped is not None:
                if name not in self._counted or not self._is_over(name):
                    if text and not text.isspace():
                        self.skipped[self._skipped] += len(text)
                    continue
            elif name in _BLOCKS:
                if self._is_dropped(name, attributes):
                    self._skip(name, attributes)
                    self._flush("")
                    continue
                if line:
                    self._flush("")
                self._begin_block(name)
            elif name in _BLOCK_ENDS:
                if line:
                    self._flush(name[1:])
                self._end_block(name[1:])
            elif name == "a":
                if self._is_dropped(name, attributes):
                    self._skip(name, attributes)
                    continue
                self._begin_link(attributes)
            elif name == "/a":
                self._end_link()
            elif name in _MARKS:
                if not self._pre:
                    line.append(_MARKS[name])
            elif name == "br":
                line.append("\n" if self._pre else " ")
                bare.append("\n" if self._pre else " ")
            elif name in _DROPPED and self._is_dropped(name, attributes):
                self._skip(name, attributes)
                continue
            if not text:
                continue
            if not text.isspace():
                self._letters += len(text)
            elif not line and not self._pre:
                continue  # white space between blocks
            line.append(text)
            bare.append(text)
        self._flush("")
        return self.blocks

    def _skip(self, name: str, attributes: str) -> None:
        self._skipped, self._counted, self._depth = (name, attributes), (name, "/" + name), 1

    def _is_over(self, name: str) -> bool:
        """Tell whether this tag, of one name with it, ends the element that is left out."""
        self._depth += -1 if name[0] == "/" else 1
        if not self._depth:
            self._skipped = None
        return not self._depth

    def _is_dropped(self, name: str, attributes: str) -> bool:
        if (name, attributes) in self._spared:
            return False
        if name in _DROPPED:
            return not (self._everything and name in ("nav", "footer", "aside", "form", "dialog"))
        if not attributes or name not in _NAMED or self._everything:
            return False
        return any(map(_is_boilerplate, _LABELS.findall(attributes))) or " hidden" in attributes

    def _begin_block(self, name: str) -> None:
        if name in _CONTAINERS:
            self._open.append(_Open(name, len(self.blocks), self._letters, self._links))
        if name == "ul":
            self._lists.append(-1)
        elif name == "ol":
            self._lists.append(0)
        elif name == "li":
            self._begin_item()
        elif name == "blockquote":
            self._quotes += 1
        elif name == "pre":
            self._pre += 1
        elif name == "tr" and (table := self._table()):
            table.rows.append([])
        if name in ("td", "th") and (table := self._table()) and table.rows:
            table.rows[-1].append(len(self.blocks))
            table.headed |= name == "th"

    def _begin_item(self) -> None:
        number = -1
        if self._lists and self._lists[-1] >= 0:
            self._lists[-1] += 1
            number = self._lists[-1]
        self._marker = f"{number}. " if number >= 0 else "- "

    def _table(self) -> _Open | None:
        return next((element for element in reversed(self._open) if element.name == "table"), None)

    def _begin_link(self, attributes: str) -> None:
        self._href = found[1] if (found := _HREF.search(attributes)) else ""
        self._linked = self._letters
        if self._href:
            self._line.append("[")

    def _end_link(self) -> None:
        self._links += self._letters - self._linked
        self._line_links += self._letters - self._linked
        self._linked = self._letters
        if not self._href:
            return
        href = html.unescape(self._href)
        self._href = ""
        target = resolve(self._base, href) or href
        self._line.append(f"]({target.replace(' ', '%20').replace(')', '%29')})".replace("&", "&amp;"))

    def _end_block(self, name: str) -> None:
        if name in ("ul", "ol"):
            self._lists = self._lists[:-1]
        elif name == "blockquote":
            self._quotes -= 1
        elif name == "pre":
            self._pre -= 1
        elif name == "li":
            self._marker = ""
        if name in _CONTAINERS and self._open and self._open[-1].name == name:
            element = self._open.pop()
            if not self._navigation and self._is_navigation(element):
                del self.blocks[element.first :]
                self.pruned += self._letters - element.letters
                self._letters, self._links = element.letters, element.links
                self._linked = min(self._linked, self._letters)
            elif name == "table":
                self._end_table(element)

    def _is_navigation(self, element: _Open) -> bool:
        letters, links = self._letters - element.letters, self._links - element.links
        if element.name == "p" and self._named:
            return False
        if element.headed or not links or links < LINKED * letters or element.first >= len(self.blocks):
            return False
        return not any(outer.headed for outer in self._open)

    def _flush(self, name: str) -> None:
        """Make a block of what was written since the last one."""
        if not self._line:
            return
        bare = "".join(self._bare)
        line = "".join(self._line) if len(self._line) != len(self._bare) else bare
        self._line.clear()
        self._bare.clear()
        links, self._line_links = self._line_links, 0
        if self._pre:
            text = _plain(bare).strip("\n")
            if text.strip():
                self.blocks.append(TextBlock(text, self._placed(f"```\n{text}\n```", "pre"), "pre"))
            return
        text = " ".join(_plain(bare).split())
        if not text:
            return
        markdown = " ".join(_plain(line).split()) if line is not bare else text
        if "\1" in markdown or "\2" in markdown:
            markdown = _tight(markdown)
        kind = "li" if self._lists else name
        if name in _HEADINGS:
            markdown, kind = _HEADINGS[name] + markdown, name
        self.blocks.append(TextBlock(text, self._placed(markdown, kind), kind, links))

    def _placed(self, markdown: str, kind: str) -> str:
        """With its marker, indented by its lists, quoted."""
        if self._lists:
            indent = "  " * min(len(self._lists) - 1, DEEPEST)
            head = self._marker or "  "
            self._marker = ""
            markdown = indent + head + markdown.replace("\n", "\n" + indent + "  ")
        return "> " + markdown.replace("\n", "\n> ") if self._quotes else markdown

    def _end_table(self, table: _Open) -> None:
        """A table of data becomes one block; one that only places things stays as its blocks."""
        rows = [row for row in table.rows if row]
        if len(rows) < 2 or max(map(len, rows)) < 2 or not self._is_data(table, rows):
            return
        first = [*(start for row in rows for start in row), len(self.blocks)]
        cells = iter(itertools.pairwise(first))
        texts = [[" ".join(b.text for b in self.blocks[slice(*next(cells))]) for _ in row] for row in rows]
        cells = iter(itertools.pairwise(first))
        lines = [[" ".join(b.markdown for b in self.blocks[slice(*next(cells))]) for _ in row] for row in rows]
        caption = self.blocks[table.first : first[0]]
        width = max(map(len, rows))
        marked = [
            "| " + " | ".join([*(c.replace("|", "\\|") for c in r), *[""] * (width - len(r))]) + " |" for r in lines
        ]
        marked.insert(1, "|" + " --- |" * width)
        block = TextBlock("\n".join("\t".join(row) for row in texts), "\n".join(marked), "table")
        self.blocks[table.first :] = [*caption, block]

    def _is_data(self, table: _Open, rows: list[list[int]]) -> bool:
        cells = sum(map(len, rows))
        inner = self.blocks[rows[0][0] :]
        plain = all(block.kind in ("td", "th", "p", "", "div") and "\n" not in block.markdown for block in inner)
        return plain and len(inner) <= 1.2 * cells


def _tight(markdown: str) -> str:
    """Marks of emphasis next to their words; none around nothing."""
    markdown = re.sub(r"\x01(\*\*?|`)\s*\1\x02", "", markdown)
    markdown = re.sub(r"\x01(\*\*?|`) +", r" \1", markdown)
    markdown = re.sub(r" +(\*\*?|`)\x02", r"\1 ", markdown)
    return markdown.replace("\1", "").replace("\2", "").replace("****", "").strip()


def blocks_of(node: LexborNode, base: str, *, named: bool = False, everything: bool = False) -> list[TextBlock]:
    """The blocks below an element. `named`: the page names it as its main part; `everything`: nothing is left out."""
    source = node.html or ""
    if "<!--" in source:
        source = _COMMENT.sub("", source)
    walk = BlockWalk(base, named=named, everything=everything)
    blocks = walk.run(source)
    size = size_of(blocks)
    navigation = named and size < MAIN_SHARE * (size + walk.pruned)
    wrappers = [
        found
        for found, skipped in walk.skipped.items()
        if skipped > WRAPPER * size and (found[0] in _NAMED or found[0] == "form") and "comment" not in found[1]
    ]
    if not (navigation or wrappers):
        return blocks
    return (
        BlockWalk(base, named=named, navigation=navigation, everything=everything, spared=wrappers).run(source)
        or blocks
    )


def trimmed(blocks: list[TextBlock]) -> list[TextBlock]:
    """From the title above the first whole sentence or item to the heading below the last; if those are its text.

    What stands before and after is what a page shows beside any text: dates, counters, "Print", links to others.
    """
    whole = [number for number, block in enumerate(blocks) if _is_whole(block)]
    if sum(len(blocks[number].text) for number in whole) < MOSTLY * size_of(blocks) or not whole:
        return blocks
    first = max((number for number in range(whole[0]) if blocks[number].kind == "h1"), default=0)
    end = whole[-1] + 1
    while end < len(blocks) and blocks[end].kind not in _HEADINGS:
        end += 1
    return blocks[first:end]


def _is_whole(block: TextBlock) -> bool:
    if block.kind in _ALWAYS:
        return True
    return block.kind not in _HEADINGS and len(block.text.encode()) >= WHOLE and block.links < len(block.text) / 2
