"""Pseudo-attributes of instructions: found as they stand, and looked at once however long they are."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from xyro.loader.outline import pseudo_attributes

PLAIN = re.compile(r"""([\w.:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
"""the same without a care for time"""


def test_pseudo_attributes_of_a_stylesheet() -> None:
    said = pseudo_attributes("href='a&amp;b.xsl' type = \"text/xsl\" href='second' xml:x=\"1\"y='2'")
    assert said == {"href": "a&b.xsl", "type": "text/xsl", "xml:x": "1", "y": "2"}


@given(st.text("ab:= \"'", max_size=30))
def test_they_are_what_a_plain_search_finds(data: str) -> None:
    expected: dict[str, str] = {}
    for name, double, single in PLAIN.findall(data):
        expected.setdefault(name, double or single)
    assert pseudo_attributes(data) == expected


def test_megabytes_of_names_and_blanks_are_no_work() -> None:
    """A plain search takes hours over these: each place of a name would be a beginning."""
    for data in ("a" * 4_000_000, "a" + " " * 4_000_000, 'a="' * 1_000_000, "a=" * 1_000_000, "='" * 1_000_000):
        assert set(pseudo_attributes(data)) <= {"a"}
