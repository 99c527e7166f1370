"""Which part of a page is one section of several, and which is its text."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from xyro.text_blocks import HEADINGS, Sections, TextBlock

KINDS = st.lists(st.tuples(st.sampled_from(["h1", "h2", "h3", "p", "p", "p"]), st.booleans()), max_size=14)


def is_section(blocks, whole, first, end):
    """Whole text outside of the part, under a heading of a level that the part has or stands under."""
    levels = {block.kind for block in blocks[max(first - 1, 0) : end]} & HEADINGS.keys()
    under = ""
    for number in itertools.chain(range(first), range(end, len(blocks))):
        if blocks[number].kind in HEADINGS:
            under = blocks[number].kind
        elif under in levels and whole[number]:
            return True
    return False


@given(KINDS)
def test_sections_beside_each_part_are_those_of_the_definition(kinds):
    blocks = [TextBlock("x", "x", kind) for kind, _ in kinds]
    whole = [is_whole and kind == "p" for kind, is_whole in kinds]
    sections = Sections(blocks, whole)
    for first, end in itertools.combinations_with_replacement(range(len(blocks) + 1), 2):
        assert sections.has_beside(first, end) == is_section(blocks, whole, first, end), (first, end)


def test_a_look_at_a_part_does_not_go_through_all_blocks():
    """A hostile page nests a part 400 times beside 16,000 short blocks: each look passed all of them."""

    class Counted(list):
        looks = 0

        def __getitem__(self, place):
            self.looks += 1
            return super().__getitem__(place)

    blocks = Counted(TextBlock("x", "x", "p") for _ in range(16_000))
    blocks[15_000:15_002] = [TextBlock("a", "a", "h2"), TextBlock("t" * 200, "t", "p")]
    sections = Sections(blocks, [False] * 15_001 + [True] + [False] * 998)
    blocks.looks = 0
    assert not any(sections.has_beside(first, 15_002) for first in range(14_600, 15_000))
    assert blocks.looks == 0
