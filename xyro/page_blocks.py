"""From a well-formed piece of HTML to blocks of text, in one pass over its tags (lexbor wrote it: page_text.py).

A container of blocks is left out where its element or its name says that it is no content, or where most of its letters
are links.
"""

from __future__ import annotations

import html
import itertools
import re
from collections import Counter
from collections.abc import Callable, Container, Iterator
from functools import lru_cache
from urllib.parse import quote

from msgspec import Struct, field
from selectolax.lexbor import LexborNode

from xyro.markdown import CODE, EMPHASIS, LINK, STRONG, plain
from xyro.text_blocks import HEADINGS, Enclosure, TextBlock, densest, size_of
from xyro.wire.urls import resolve

DEEPEST = 8
"""lists and quotes in one another"""
MANY_WORDS = 4
"""hyphens in a name, such as `sharing-with-a-single-developer`, from which on it is no name of a part of the page"""
WRAPPER = 2
"""times all that was taken: an element with more text is no boilerplate, whatever its name (comments aside)"""
LINKED = 0.5
"""share of a container's letters that are links, from which on it is navigation"""
LEAST_BLOCKS = 3
"""blocks of a container that is one of the page's parts"""
MAIN_SHARE = 0.3
"""share of a main part that must be left without its navigation; where less is, the page is one of links"""
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_DROPPED = frozenset(["nav", "footer", "aside", "form", "button", "select", "textarea", "dialog"])
_READABLE = frozenset(["nav", "footer", "aside", "form", "dialog"])
"""of the dropped ones, those that have text that is kept where everything is"""
_BLOCKS = frozenset([
    "address", "article", "blockquote", "body", "caption", "center", "dd", "details", "div", "dl", "dt", "fieldset",
    "figcaption", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup", "li", "main", "ol", "p", "pre",
    "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
])  # fmt: skip
_CONTAINERS = frozenset(
    ["article", "blockquote", "div", "dl", "figure", "header", "ol", "p", "section", "table", "td", "ul"]
)
_PARTS = frozenset(["article", "div", "section", "td"])
"""containers that may hold the text of a page, and nothing else of it"""
_NAMED = frozenset(["a", "div", "dl", "header", "li", "ol", "p", "section", "table", "td", "ul"])
"""elements whose names are asked whether they are content"""
_WRAPPERS = _NAMED | {"form"}
_INLINE = {"b": STRONG, "strong": STRONG, "i": EMPHASIS, "em": EMPHASIS, "code": CODE, "kbd": CODE, "samp": CODE}
_MARKS = {
    **{name: begin for name, (begin, _) in _INLINE.items()},
    **{"/" + name: end for name, (_, end) in _INLINE.items()},
}
"""what a tag writes into a line"""
_BEGINS = frozenset(begin for begin, _ in _INLINE.values())
_OTHERS = ("mailto:", "tel:", "ftp:")
"""schemes of links that are kept, besides those of pages; a reader's program may run what others name (javascript:)"""
_START = re.compile(r' start="(\d{1,9})"')
_LABELS = re.compile(r'(?:class|id|role)="([^"]*)"')
_HIDDEN = ' hidden=""'
"""as lexbor writes the attribute; in a value, quotes are escaped"""
_NAMES = re.compile(
    r"(?:.*[_-])?(?:nav|navigation|menu|sidebar|sphinxsidebar|related|footer|breadcrumbs?|cookies?|banner|advert|"
    r"sponsored|promo|share|sharing|social|newsletter|comments?|pagination|modal|login|signup|skip|headerlink|"
    r"excerpt|teasers?|slideshow|gallery|masthead|toctree-wrapper|navheader|navfooter)(?:[_-].*)?|hidden",
    re.IGNORECASE | re.DOTALL,
)
"""each of them gains on the pages that the rules were tuned on (docs/figures.md), or on pages of documentation"""
_HREF = ' href="'
_TAGS: dict[str, Tag] = {}
"""tags that were met, by what stands between < and >; those of links without their address"""
MANY_TAGS = 4096
LONG_PLACE = 500
"""characters of a fragment from which on it is left out of a link"""
_PLACE = "!#$%&'*+,/:;=?@[]~"
LONG_TAG = 200
"""characters of a tag from which on it is not remembered"""


class _Table(Struct):
    """A table that is open."""

    rows: list[list[int]] = field(default_factory=list)
    """the number of the first block of each cell, by row"""
    headed: bool = False
    """it has a <th>: it is one of data"""


class _Collection(Struct):
    """A list that is open. `last`: number of its last item; `first`: of its first block."""

    number: int
    numbered: bool
    last: int
    other: bool
    """its marker is not that of the list right before it: they would be one"""
    first: int


class Tag(Struct):
    """A tag by its meaning to a walk."""

    name: str
    """after a slash if it ends an element"""
    ends: str | None
    """kind of the block that ends here; empty where that is of no element, None where none ends"""
    act: Callable[[BlockWalk, Tag, str], None] | None
    drops: bool
    """its element is no content, unless the walk says otherwise"""
    mark: str = ""


@lru_cache(4096)
def _is_boilerplate(label: str) -> bool:
    """Tell whether one of the classes, ids or roles names what is no content. A name of many words is a heading's."""
    return any(_NAMES.fullmatch(name) for name in label.split() if name.count("-") + name.count("_") < MANY_WORDS)


class BlockWalk:
    """One pass over the tags of a well-formed piece of HTML.

    A page has hundreds of tags, most of them as other pages have them. So what a tag means is looked up by its text.
    """

    def __init__(
        self,
        base: str,
        *,
        named: bool,
        navigation: bool = False,
        everything: bool = False,
        spared: Container[str] = (),
    ) -> None:
        self.blocks: list[TextBlock] = []
        self.parts: list[tuple[int, int]] = []
        """of large containers the first block and the one behind the last; inner ones before outer ones"""
        self.pruned = 0
        """letters of the navigation that was left out"""
        self._base = base
        self._named = named
        self._navigation = navigation or everything
        self._everything = everything
        self._open: list[tuple[str, int, int, int]] = []
        """of each container: its name, where its blocks begin, letters and linked letters before it"""
        self._tables: list[_Table] = []
        self._line: list[str] = []
        self._marks: list[int] = []
        """places in the line that are of its Markdown only"""
        self._letters = 0
        self._links = 0
        self._href = ""
        """of the tag that was met last, where it is a link's"""
        self._target = ""
        """address of the link that is open"""
        self._targets: list[str] = []
        """of the line's links"""
        self._styles: list[str] = []
        """marks of the emphasis and code that is open"""
        self._linked = 0
        self._line_links = 0
        self._lists: list[_Collection] = []
        self._collections = 0
        self._ended: tuple[int, int, bool] = (0, -1, False)
        """of the list that ended last: the places it is in, blocks up to its end, is it numbered?"""
        self._other = False
        """it has the other marker"""
        self._places: tuple[Enclosure, ...] = ()
        self._outer: list[tuple[Enclosure, ...]] = []
        """of each item and quote that is open: the places that it is in"""
        self._pre = 0
        self.skipped: Counter[str] = Counter()
        """characters between the tags of what was left out, by its tag"""
        self._spared = spared

    def run(self, source: str) -> list[TextBlock]:
        """The blocks of a piece that lexbor wrote: < and > stand around tags, else in raw text and odd names alone."""
        line, marks, styles, met = self._line, self._marks, self._styles, _TAGS.get
        pieces = iter(source.split("<"))
        next(pieces)
        for piece in pieces:
            head, _, text = piece.partition(">")
            tag = met(head) or self._tag_of(head)
            if tag.drops and self._is_dropped(tag, head):
                if tag.ends is not None:
                    self._flush("")
                text = self._skip(tag.name, head, pieces)
            elif tag.mark:
                if not self._pre:
                    marks.append(len(line))
                    line.append(tag.mark)
                    if tag.mark in _BEGINS:
                        styles.append(tag.mark)
                    elif styles:
                        styles.pop()
            else:
                if line and tag.ends is not None:
                    self._flush(tag.ends)
                if tag.act is not None:
                    tag.act(self, tag, head)
            if not text:
                continue
            if not text.isspace():
                self._letters += len(text)
            elif not line and not self._pre:
                continue  # white space between blocks
            line.append(text)
        self._flush("")
        return self.blocks

    def _skip(self, name: str, skipped: str, pieces: Iterator[str]) -> str:
        """Pass over the rest of an element; the text behind it."""
        depth, end, begin, letters, behind = 1, f"/{name}>", (f"{name}>", f"{name} "), 0, ""
        for piece in pieces:
            if piece.startswith(end):
                depth -= 1
                if not depth:
                    behind = piece[len(end) :]
                    break
            elif piece.startswith(begin):
                depth += 1
            _, _, text = piece.partition(">")
            if text and not text.isspace():
                letters += len(text)
        self.skipped[skipped] += letters
        self._href = ""
        return behind

    def _is_dropped(self, tag: Tag, head: str) -> bool:
        if head in self._spared:
            return False
        return not self._everything or (tag.name in _DROPPED and tag.name not in _READABLE)

    def _tag_of(self, head: str) -> Tag:
        """The meaning of a tag that was not met before. That of a link is the same whatever its address is."""
        before, found, after = head.partition(_HREF)
        if found and (before == "a" or before.startswith("a ")):
            self._href, _, after = after.partition('"')
            head = before + after
            return _TAGS.get(head) or _learnt(head)
        return _learnt(head)

    # What tags do

    def begin(self, tag: Tag, head: str) -> None:
        self._open.append((tag.name, len(self.blocks), self._letters, self._links))

    def begin_list(self, tag: Tag, head: str) -> None:
        self.begin(tag, head)
        numbered = tag.name == "ol"
        first = int(found[1]) if numbered and (found := _START.search(head)) else 1
        other = not self._other and self._ended == (len(self._places), len(self.blocks), numbered)
        self._collections += 1
        self._lists.append(_Collection(self._collections, numbered, first - 1, other, len(self.blocks)))

    def begin_item(self, tag: Tag, head: str) -> None:
        self._outer.append(self._places)
        if not self._lists:
            return
        collection = self._lists[-1]
        collection.last += 1
        if collection.numbered:
            marker = f"{collection.last}) " if collection.other else f"{collection.last}. "
        else:
            marker = "* " if collection.other else "- "
        self._enter(Enclosure(marker, " " * len(marker), collection.number, marker[:-2] in ("", "1")))

    def begin_quote(self, tag: Tag, head: str) -> None:
        self.begin(tag, head)
        self._outer.append(self._places)
        self._enter(Enclosure("> ", "> "))

    def _enter(self, place: Enclosure) -> None:
        self._places = (*self._places[: DEEPEST - 1], place)

    def begin_code(self, tag: Tag, head: str) -> None:
        self._pre += 1

    def begin_table(self, tag: Tag, head: str) -> None:
        self.begin(tag, head)
        self._tables.append(_Table())

    def begin_row(self, tag: Tag, head: str) -> None:
        if self._tables:
            self._tables[-1].rows.append([])

    def begin_cell(self, tag: Tag, head: str) -> None:
        if tag.name == "td":
            self.begin(tag, head)
        if self._tables and (rows := self._tables[-1].rows):
            rows[-1].append(len(self.blocks))
            self._tables[-1].headed |= tag.name == "th"

    def begin_link(self, tag: Tag, head: str) -> None:
        self._linked = self._letters
        if self._target:
            self._mark(LINK[1])
        href, self._href = self._href, ""
        self._target = target = self._resolved(href) if href else ""
        if target:
            self._targets.append(target)
            self._mark(LINK[0])

    def _resolved(self, href: str) -> str:
        """The address of a link; empty where it is none that a reader can be sent to."""
        if "&" in href:
            href = html.unescape(href)
        href, _, place = href.partition("#")
        target = resolve(self._base, href)
        if target is None:
            href = href.strip()
            return quote(href, safe=_PLACE) if href.lower().startswith(_OTHERS) else ""
        return f"{target}#{quote(place, safe=_PLACE)}" if place and len(place) <= LONG_PLACE else target

    def end_link(self, tag: Tag, head: str) -> None:
        letters = self._letters - self._linked
        self._links += letters
        self._line_links += letters
        self._linked = self._letters
        if self._target:
            self._target = ""
            self._mark(LINK[1])

    def break_line(self, tag: Tag, head: str) -> None:
        self._line.append("\n" if self._pre else " ")

    def end(self, tag: Tag, head: str) -> None:
        if self._open and self._open[-1][0] == tag.ends:
            name, first, letters, links = self._open.pop()
            if links != self._links or name == "table":
                self._close(name, first, letters, links)
            if name in _PARTS and len(self.blocks) >= first + LEAST_BLOCKS:
                self.parts.append((first, len(self.blocks)))

    def end_list(self, tag: Tag, head: str) -> None:
        self.end(tag, head)
        if self._lists:
            collection = self._lists.pop()
            if len(self.blocks) > collection.first:
                self._ended = (len(self._places), len(self.blocks), collection.numbered)
                self._other = collection.other

    def end_item(self, tag: Tag, head: str) -> None:
        if self._outer:
            self._places = self._outer.pop()

    def end_quote(self, tag: Tag, head: str) -> None:
        self.end(tag, head)
        self.end_item(tag, head)

    def end_code(self, tag: Tag, head: str) -> None:
        self._pre -= 1

    def _mark(self, mark: str) -> None:
        self._marks.append(len(self._line))
        self._line.append(mark)

    def _close(self, name: str, first: int, letters: int, links: int) -> None:
        """A container ends: navigation goes, a table becomes one block."""
        if links != self._links and not self._navigation and self._is_navigation(name, first, letters, links):
            del self.blocks[first:]
            self._forget(first)
            self.pruned += self._letters - letters
            self._letters, self._links = letters, links
            self._linked = min(self._linked, self._letters)
            if name == "table":
                self._tables.pop()
        elif name == "table":
            self._end_table(first, self._tables.pop())

    def _forget(self, first: int) -> None:
        """Forget the parts that blocks from `first` on were taken out of."""
        while self.parts and self.parts[-1][1] > first:
            self.parts.pop()

    def _is_navigation(self, name: str, first: int, letters: int, links: int) -> bool:
        letters, links = self._letters - letters, self._links - links
        if name == "p" and self._named:
            return False
        if not links or links < LINKED * letters or first >= len(self.blocks):
            return False
        return not any(table.headed for table in self._tables)

    def _flush(self, name: str) -> None:
        """Make a block of what was written since the last one."""
        line = self._line
        if not line:
            return
        markup, bare, targets = "", line[0] if len(line) == 1 else "".join(line), self._targets
        if self._marks:
            markup = bare
            for place in self._marks:
                line[place] = ""
            self._marks.clear()
            bare = "".join(line)
            self._targets = []
        line.clear()
        if self._target or self._styles:
            self._reopen()
        links, self._line_links = self._line_links, 0
        if self._pre:
            text = plain(bare).strip("\n")
            if text.strip():
                self.blocks.append(TextBlock(text, "pre", places=self._places))
            return
        text = " ".join((plain(bare) if "&" in bare else bare).split())
        if not text:
            return
        kind = "li" if self._lists and name not in HEADINGS else name
        if markup:
            self.blocks.append(TextBlock(text, kind, links, markup, targets, self._places))
        else:
            self.blocks.append(TextBlock(text, kind, links, places=self._places))

    def _reopen(self) -> None:
        """A link, emphasis or code goes on in the next block."""
        if self._target:
            self._targets.append(self._target)
            self._mark(LINK[0])
        for style in self._styles:
            self._mark(style)

    def _end_table(self, begin: int, table: _Table) -> None:
        """A table of data becomes one block; one that only places things stays as its blocks."""
        rows = [row for row in table.rows if row]
        if len(rows) < 2 or max(map(len, rows)) < 2 or not self._is_data(rows):
            return
        first = [*(start for row in rows for start in row), len(self.blocks)]
        cells = iter(itertools.pairwise(first))
        texts = [[" ".join(b.text for b in self.blocks[slice(*next(cells))]) for _ in row] for row in rows]
        cells = iter(itertools.pairwise(first))
        inner = [[self.blocks[slice(*next(cells))] for _ in row] for row in rows]
        caption, width = self.blocks[begin : first[0]], max(map(len, rows))
        inner = [[*row, *[[]] * (width - len(row))] for row in inner]
        columns = [column for column in zip(*inner, strict=True) if any(column)]  # empty ones only place things
        if len(columns) < 2:
            return
        written = [list(row) for row in zip(*columns, strict=True) if any(row)]
        texts = [row for row in texts if any(row)]
        block = TextBlock("\n".join("\t".join(row) for row in texts), "table", places=self._places, cells=written)
        self.blocks[begin:] = [*caption, block]
        self._forget(begin)

    def _is_data(self, rows: list[list[int]]) -> bool:
        cells = sum(map(len, rows))
        inner = self.blocks[rows[0][0] :]
        simple = all(block.kind in ("td", "th", "p", "", "div") for block in inner)
        return simple and len(inner) <= 1.2 * cells


_ACTS: dict[str, Callable[[BlockWalk, Tag, str], None]] = {
    **dict.fromkeys(_CONTAINERS, BlockWalk.begin),
    **dict.fromkeys(["/" + name for name in _CONTAINERS], BlockWalk.end),
    **dict.fromkeys(["ul", "ol"], BlockWalk.begin_list),
    **dict.fromkeys(["/ul", "/ol"], BlockWalk.end_list),
    **dict.fromkeys(["td", "th"], BlockWalk.begin_cell),
    "li": BlockWalk.begin_item,
    "/li": BlockWalk.end_item,
    "blockquote": BlockWalk.begin_quote,
    "/blockquote": BlockWalk.end_quote,
    "pre": BlockWalk.begin_code,
    "/pre": BlockWalk.end_code,
    "table": BlockWalk.begin_table,
    "tr": BlockWalk.begin_row,
    "a": BlockWalk.begin_link,
    "/a": BlockWalk.end_link,
    "br": BlockWalk.break_line,
}
"""name of a tag -> what it does; others do nothing"""
_ENDS = {**dict.fromkeys(_BLOCKS, ""), **{"/" + name: name for name in _BLOCKS}}


def _learnt(head: str) -> Tag:
    """Find out what a tag means, and remember it."""
    name = head.partition(" ")[0]
    drops = name in _DROPPED or (
        len(name) < len(head)
        and name in _NAMED
        and (any(map(_is_boilerplate, _LABELS.findall(head))) or _HIDDEN in head)
    )
    tag = Tag(name, _ENDS.get(name), _ACTS.get(name), drops, _MARKS.get(name, ""))
    if len(head) < LONG_TAG:
        if len(_TAGS) >= MANY_TAGS:
            _TAGS.clear()
        _TAGS[head] = tag
    return tag


def blocks_of(node: LexborNode, base: str, *, named: bool = False, everything: bool = False) -> list[TextBlock]:
    """The blocks below an element. `named`: the page names it as its main part; `everything`: nothing is left out."""
    source = node.html or ""
    if "<!--" in source:
        source = _COMMENT.sub("", source)
    if "\1" in source or "\2" in source:  # they are marks of ours
        source = source.replace("\1", "").replace("\2", "")
    walk = BlockWalk(base, named=named, everything=everything)
    blocks = walk.run(source)
    size = size_of(blocks)
    navigation = named and size < MAIN_SHARE * (size + walk.pruned)
    wrappers = [
        found
        for found, skipped in walk.skipped.items()
        if skipped > WRAPPER * size and found.partition(" ")[0] in _WRAPPERS and "comment" not in found
    ]
    again = BlockWalk(base, named=named, navigation=navigation, everything=everything, spared=wrappers)
    if (navigation or wrappers) and again.run(source):
        walk = again
    return walk.blocks if everything else densest(walk.blocks, walk.parts)
