"""Blocks of text, as a page shows them one below the other: their size, and which ends are labels."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence

from msgspec import Struct

WHOLE = 120
"""bytes of UTF-8 from which on a paragraph is no label: forty letters of Chinese"""
MOSTLY = 0.5
"""share of a text that must be whole paragraphs for its ends to be cut"""
DENSE = 0.8
"""share of the letters in whole paragraphs and items that the densest part has"""
_ALWAYS = frozenset(["li", "pre", "table"])
"""kinds of blocks that are content, however short"""
HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}


class Enclosure(Struct, gc=False):
    """A quote, or an item of a list, that blocks stand in; compared by identity."""

    marker: str
    """of its first line"""
    rest: str
    """of the others: as wide"""
    collection: int = 0
    """number of its list in the page; 0: a quote"""
    interrupts: bool = False
    """its list may begin right below a line of text"""


class TextBlock(Struct, gc=False):
    """A paragraph, heading, item, table or piece of code. No block leads back to itself: nothing is to be collected."""

    text: str
    kind: str = ""
    """element that it is of"""
    links: int = 0
    """letters of it that are links"""
    markup: str = ""
    """the text as HTML, with marks of ours for its links and emphasis (markdown.py); empty where there are none"""
    targets: Sequence[str] = ()
    """addresses of its links"""
    places: tuple[Enclosure, ...] = ()
    """from the outermost one"""
    cells: Sequence[Sequence[Sequence[TextBlock]]] = ()
    """of a table, by row"""


def size_of(blocks: list[TextBlock]) -> int:
    """Characters of their text."""
    return sum(len(block.text) for block in blocks)


def trimmed(blocks: list[TextBlock]) -> list[TextBlock]:
    """From the title above the first whole sentence or item to the heading below the last; if those are its text.

    What stands before and after is what a page shows beside any text: dates, counters, "Print", links to others.
    """
    whole = [number for number, block in enumerate(blocks) if _is_whole(block)]
    if sum(len(blocks[number].text) for number in whole) < MOSTLY * size_of(blocks) or not whole:
        return blocks
    first = max((number for number in range(whole[0]) if blocks[number].kind == "h1"), default=0)
    end = whole[-1] + 1
    while end < len(blocks) and blocks[end].kind not in HEADINGS:
        end += 1
    return blocks[first:end]


def densest(blocks: list[TextBlock], parts: list[tuple[int, int]]) -> list[TextBlock]:
    """The innermost part that has almost all whole paragraphs and items, with the headings that it stands under.

    What a page shows around such a part is its frame: notices, lists of other texts. A part that is one section of
    several is none, for the others may be short. parts: first block and the one behind the last, inner before outer.
    """
    whole = [_is_whole(block) for block in blocks]
    sums = [
        0,
        *itertools.accumulate(
            len(block.text) if is_whole else 0 for block, is_whole in zip(blocks, whole, strict=True)
        ),
    ]
    sections: Sections | None = None
    for first, end in parts:
        if sums[end] - sums[first] >= DENSE * sums[-1] > 0:
            if any(block.kind in HEADINGS for block in itertools.chain(blocks[:first], blocks[end:])):
                sections = sections or Sections(blocks, whole)
                if sections.has_beside(first, end):
                    continue
            begin = min(_outline(blocks, first), next((n for n in range(first) if whole[n]), first))
            return blocks[begin : len(blocks) if all(whole[end:]) else end]
    return blocks


class Sections:
    """Levels of headings with whole text under them, before and behind each block: many parts cost one pass."""

    def __init__(self, blocks: list[TextBlock], whole: list[bool]) -> None:
        self._places: dict[str, list[int]] = {}
        """level -> numbers of its headings"""
        level, levels = "", frozenset[str]()
        self._before = [(level, levels)]
        """the last heading, and the levels with text among the blocks before"""
        for number, (block, is_whole) in enumerate(zip(blocks, whole, strict=True)):
            if block.kind in HEADINGS:
                level = block.kind
                self._places.setdefault(level, []).append(number)
            elif is_whole and level and level not in levels:
                levels |= {level}
            self._before.append((level, levels))
        is_text, levels = False, frozenset[str]()
        self._behind = [(is_text, levels)]
        """whole text before the next heading, and the levels with text among the blocks from here on"""
        for block, is_whole in zip(reversed(blocks), reversed(whole), strict=True):
            if block.kind in HEADINGS:
                if is_text and block.kind not in levels:
                    levels |= {block.kind}
                is_text = False
            else:
                is_text = is_text or is_whole
            self._behind.append((is_text, levels))
        self._behind.reverse()

    def has_beside(self, first: int, end: int) -> bool:
        """Tell whether there is whole text under a heading of the same level outside of a part."""
        level, before = self._before[first]
        is_text, behind = self._behind[end]
        beside = before | behind | ({level} if is_text else set())
        return any(self._stands(level, max(first - 1, 0), end) for level in beside if level)

    def _stands(self, level: str, first: int, end: int) -> bool:
        """Whether there is a heading of this level in a range."""
        places = self._places[level]
        number = bisect.bisect_left(places, first)
        return number < len(places) and places[number] < end


def _outline(blocks: list[TextBlock], first: int) -> int:
    """The highest of the headings that a block stands under."""
    level = "h7"
    for number in range(first - 1, -1, -1):
        kind = blocks[number].kind
        if kind in HEADINGS and kind < level:
            first, level = number, kind
    return first


def _is_whole(block: TextBlock) -> bool:
    if block.kind in _ALWAYS:
        return True
    size = len(block.text)
    if block.kind in HEADINGS or block.links >= size / 2:
        return False
    return size >= WHOLE or (4 * size >= WHOLE and len(block.text.encode()) >= WHOLE)
