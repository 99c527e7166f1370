"""Which grammars are tried: few documents given up, and none for good."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from xyro.loader.grammar_trust import GrammarTrust


def tried(trust: GrammarTrust, key: str, dies: bool) -> bool:
    if trust.refuses(key):
        return False
    if dies:
        trust.died(key, "slow", wholly=False)
    else:
        trust.judged(key)
    return True


def test_three_in_a_row_and_then_a_pause() -> None:
    trust = GrammarTrust()
    attempts = [tried(trust, "k", True) for _ in range(303)]
    assert attempts.count(True) == 3 + 2  # one more for each hundred documents
    assert attempts[:4] == [True, True, True, False]
    assert trust.refuses("other") == ""


def test_a_grammar_that_cannot_be_compiled_is_not_tried_at_once() -> None:
    trust = GrammarTrust()
    trust.died("k", "bad", wholly=True)
    assert trust.refuses("k") == "bad"


def test_it_recovers_when_documents_are_quick_again() -> None:
    trust = GrammarTrust()
    for _ in range(3):
        tried(trust, "k", True)
    passed = [tried(trust, "k", False) for _ in range(200)]
    assert all(passed[101:])


@given(st.lists(st.booleans(), max_size=600))
def test_few_documents_are_given_up(dies: list[bool]) -> None:
    trust = GrammarTrust()
    given_up = sum(tried(trust, "k", dead) and dead for dead in dies)
    assert given_up <= 3 + len(dies) / 10


def test_memory_is_bounded() -> None:
    trust = GrammarTrust()
    for number in range(5_000):
        trust.died(f"k{number}", "slow", wholly=True)
    assert trust.refuses("k0") == ""
    assert trust.refuses("k4999") == "slow"
    assert len(trust._credit) <= 1_000
