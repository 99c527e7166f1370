"""What is excused in declarations that are read by themselves, and what is not; of any body without an effort."""

from __future__ import annotations

import pytest

from xyro.loader.modules import not_alone

MISSING = "http://h.test/missing.mod"
PART = b'<!ENTITY % m SYSTEM "missing.mod">'


@pytest.mark.parametrize(
    ("body", "broken", "said"),
    [
        (PART + b"%m; <!ELEMENT a (b>", True, ""),  # between declarations: it breaks none
        (PART + b"%m; <!ELEMENT a (b)>", False, "missing.mod is not at hand"),
        (PART + b"%m; <!ELEMENT a (%mix;)>", True, "missing.mod is not at hand"),
        (PART + b"<!ELEMENT a (%m;)>", True, "missing.mod is not at hand"),
        (PART + b"<![%m;[<!ELEMENT a EMPTY>]]>", True, "missing.mod is not at hand"),
        (PART + b"<!-- <!ELEMENT a (%m;)> --> <!ELEMENT a (b>", True, ""),
        (PART + b"<!-- %mix; <!ELEMENT a (b>", True, ""),
    ],
)
def test_a_part_that_is_not_at_hand_excuses_what_it_is_used_in(body: bytes, broken: bool, said: str) -> None:
    assert not_alone(body, (MISSING,), broken).endswith(said) and bool(not_alone(body, (MISSING,), broken)) == bool(
        said
    )


def test_megabytes_that_begin_and_never_end_are_no_work() -> None:
    """Each beginning would be looked for to the end: hours over these."""
    for piece in (b"<!--", b"<!ENTITY % ", b"<![", b"%", b"%a", b"<!ENTITY % a SYSTEM "):
        body = PART + b"<!ELEMENT a EMPTY>" + piece * (4_000_000 // len(piece))
        assert not_alone(body, (), True) == ""
        not_alone(body, (MISSING,), True)
