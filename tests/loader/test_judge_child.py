"""The judge makes room: grammars that are kept are the first to go when memory runs short."""

from __future__ import annotations

from typing import Any

from xyro.loader.judge_child import Judge, _tried


class Narrow(Judge):
    """Its memory holds one answer, or grammars."""

    def answer(self, request: dict[str, Any], bodies: list[bytes]) -> dict[str, Any]:
        if self._grammars or request.get("big"):
            raise MemoryError
        return {"fits": True}


def test_grammars_go_when_memory_runs_short_and_the_question_is_tried_again() -> None:
    judge = Narrow()
    judge._grammars["a"] = object()
    assert _tried(judge, {}, []) == {"fits": True}
    assert not judge._grammars


def test_what_needs_more_by_itself_is_refused() -> None:
    assert "of memory" in _tried(Narrow(), {"big": True}, [])["error"]
