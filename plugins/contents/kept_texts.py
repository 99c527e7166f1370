"""Gives versions of a page's kept text to the dashboard, and what changed between two of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from xyro.plugins.contents.contents_view import ContentsView
from xyro.wire.errors import InputError
from xyro.wire.word_diff import word_diff

MOST_VERSIONS, MOST_CHANGES = 50, 200


def kept_texts(directory: Path, url: str, old: int | None, new: int | None, now: float) -> dict[str, Any]:
    """`versions` that are kept, the latest last, and `changes` by words from `old` to `new` (the last two).

    Nothing is kept of it: both are empty, and `why` says so.
    """
    try:
        with ContentsView(directory, now) as view:
            page = view.page(url)
            rows = list(view.describe(page))[-MOST_VERSIONS:]
            texts = [version for version in view.versions(page) if version.text is not None]
            found: dict[str, Any] = {"versions": rows, "from": None, "to": None, "changes": [], "why": ""}
            if len(texts) < 2:
                return {**found, "why": "One version of its text is kept: nothing to compare."}
            numbers = {version.number: version for version in texts}
            after = numbers.get(texts[-1].number if new is None else new)
            before = numbers.get(texts[-2].number if old is None else old)
            if after is None or before is None:
                raise InputError("no such version is kept")
            changes = word_diff(view.text(before)["text"], view.text(after)["text"])
            return {**found, "from": before.number, "to": after.number, "changes": changes[:MOST_CHANGES]}
    except InputError as error:
        return {"versions": [], "from": None, "to": None, "changes": [], "why": str(error)}
