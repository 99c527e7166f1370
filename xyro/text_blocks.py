"""Blocks of text, as a page shows them one below the other: their size, and which ends are labels."""

from __future__ import annotations

import itertools

from msgspec import Struct, field

WHOLE = 120
"""bytes of UTF-8 from which on a paragraph is no label: forty letters of Chinese"""
MOSTLY = 0.5
"""share of a text that must be whole paragraphs for its ends to be cut"""
DENSE = 0.8
"""share of the letters in whole paragraphs and items that the densest part has"""
_ALWAYS = frozenset(["li", "pre", "table"])
"""kinds of blocks that are content, however short"""
HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}


class Enclosure(Struct):
    """A quote, or an item of a list, that blocks stand in; compared by identity."""

    marker: str
    """of its first line"""
    rest: str
    """of the others: as wide"""
    collection: int = 0
    """number of its list in the page; 0: a quote"""
    interrupts: bool = False
    """its list may begin right below a line of text"""


class TextBlock(Struct):
    """A paragraph, heading, item, table or piece of code."""

    text: str
    kind: str = ""
    """element that it is of"""
    links: int = 0
    """letters of it that are links"""
    markup: str = ""
    """the text as HTML, with marks of ours for its links and emphasis (markdown.py); empty where there are none"""
    targets: list[str] = field(default_factory=list)
    """addresses of its links"""
    places: tuple[Enclosure, ...] = ()
    """from the outermost one"""
    cells: list[list[list[TextBlock]]] = field(default_factory=list)
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
    for first, end in parts:
        if sums[end] - sums[first] >= DENSE * sums[-1] > 0 and not _is_section(blocks, whole, first, end):
            begin = min(_outline(blocks, first), next((n for n in range(first) if whole[n]), first))
            return blocks[begin : len(blocks) if all(whole[end:]) else end]
    return blocks


def _is_section(blocks: list[TextBlock], whole: list[bool], first: int, end: int) -> bool:
    """Tell whether there is whole text under a heading of the same level outside of a part."""
    levels = {block.kind for block in blocks[max(first - 1, 0) : end]} & HEADINGS.keys()
    beside = False
    for number in itertools.chain(range(first), range(end, len(blocks))):
        kind = blocks[number].kind
        if kind in HEADINGS:
            beside = kind in levels
        elif beside and whole[number]:
            return True
    return False


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
