"""printable: nothing of a stranger's string can act on a terminal or forge a line, and nothing printable is changed."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.wire.text import ELLIPSIS, counted, figure, printable, shown

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("plain text, ünïcode, 日本語, 🦊", "plain text, ünïcode, 日本語, 🦊"),
        (r"C:\new", r"C:\new"),
        ("a\r\nERROR forged", r"a\r\nERROR forged"),
        ("\x1b[2J\x1b]0;title\x07", r"\x1b[2J\x1b]0;title\x07"),
        ("\x00\x7f\x85\x9b31m", r"\x00\x7f\x85\x9b31m"),
        ("a\u2028b\u2029c", r"a\u2028b\u2029c"),
        ("user\u202egpj.exe\u2066\u061c", r"user\u202egpj.exe\u2066\u061c"),
        ("ze\u200bro\ufeff\u00ad\u00a0wide", r"ze\u200bro\ufeff\xad\xa0wide"),
        ("\ud800 and \udc00", r"\ud800 and \udc00"),
        ("\U000e0041\U0010ffff", r"\U000e0041\U0010ffff"),
    ],
)
def test_escapes_what_acts_and_keeps_what_shows(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("text", "limit", "shown"),
    [
        ("abcde", 5, "abcde"),
        ("abcdef", 5, "abcd…"),
        ("abc\n", 5, r"abc\n"),
        ("abcd\n", 5, "abcd…"),
        ("\n\n\n", 5, r"\n\n…"),
        ("ab\u2028", 5, "ab…"),
        ("\u2028", 5, "…"),
        ("ab", 1, "…"),
        ("a", 1, "a"),
    ],
)
def test_cuts_before_what_does_not_fit(text: str, limit: int, shown: str) -> None:
    assert printable(text, limit) == shown


def test_caps_long_texts_at_200_by_default() -> None:
    assert printable("x" * 10_000_000) == "x" * 199 + ELLIPSIS


@given(ANY_TEXT, st.integers(1, 80))
def test_one_safe_line_within_the_limit(text: str, limit: int) -> None:
    shown = printable(text, limit)
    assert len(shown) <= limit
    assert len(shown.splitlines()) <= 1
    assert all(c == " " or unicodedata.category(c)[0] not in "CZ" for c in shown)
    shown.encode()  # no surrogate is left
    assert printable(shown, limit) == shown


@pytest.mark.parametrize("number, said", [(0, "0 pages"), (1, "1 page"), (2, "2 pages"), (1234, "1,234 pages")])
def test_one_alone_is_no_plural(number: int, said: str) -> None:
    assert counted(number, "page") == said


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0"), (0.02714, "0.0271"), (44.23, "44.2"), (999.6, "1,000"), (6857.3, "6,860"), (-1e6, "-1,000,000"),
     (1.5e-7, "1.5e-07"), (float("inf"), "inf")],
)  # fmt: skip
def test_figures_have_so_many_digits_and_no_exponent_above_one(value, shown):
    assert figure(value) == shown


@given(ANY_TEXT)
def test_a_text_for_a_terminal_keeps_its_lines_and_letters(text: str) -> None:
    """Escaped are controls, surrogates and what turns the line around; nothing else."""
    escaped = shown(text)
    assert not any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in escaped if char not in "\n\t")
    assert not any(
        char in escaped for char in "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    )
    assert shown(escaped) == escaped
    kept = "".join(char for char in text if char in "\n\t" or unicodedata.category(char)[0] not in "CZ")
    rest = iter(escaped)
    assert all(char in rest for char in kept), "in their order"


@pytest.mark.parametrize("mark", "\u200e\u200f\u061c\u202a\u202e\u2066\u2069\x9b\x1b\r")
def test_what_turns_a_line_around_is_escaped(mark: str) -> None:
    assert shown(f"a{mark}b") == f"a{ascii(mark)[1:-1]}b"


def test_emoji_and_scripts_that_join_stay_whole() -> None:
    text = "👩\u200d🚀 क्\u200dष שלום 水\u3000a\u00a0b\n\tzwei\r\n"
    assert shown(text) == text.replace("\r\n", "\n")
