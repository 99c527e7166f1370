"""Tells of a change what part of the page's text it was, and which words, where texts of the page are kept.

`text_changed` is the share of the words of both texts, before and after, that went or came: 0 where the text is the
same and only the rest of the page changed. Both fields are null where one of the texts is not kept (any more), and the
words where they are LONGEST or more; `xyro page diff` shows those.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xyro.contents_index import FOLDER, NAME, open_index, unpacked_text
from xyro.plugins.changes.change_rows import ChangeKind, ChangeRow
from xyro.wire.errors import XyroError
from xyro.wire.ids import PageId
from xyro.wire.word_diff import word_diff

if TYPE_CHECKING:
    import sqlite3

    from xyro.configs.schema import Settings

LONGEST = 8192
"""characters of JSON that the words of one change take at most"""
COMPARED = 100_000
"""characters of both texts together up to which words are compared in their order; above, they are counted"""
Line = dict[str, Any]


class ChangedTexts:
    """The texts that a crawl keeps on this machine, if it does."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @classmethod
    def of_crawl(cls, settings: Settings, data: Path) -> ChangedTexts:
        """The texts of the crawl in a data directory."""
        return cls(Path(settings.keep.directory) if settings.keep.directory else data / FOLDER)

    def fill(self, changes: Sequence[tuple[Line, ChangeRow]]) -> None:
        """Write `text_changed` and `text_diff` into lines. A damaged index says nothing."""
        changed = [pair for pair in changes if pair[1].kind is ChangeKind.CHANGED]
        if not changed or not (self._directory / NAME).exists():
            return
        import sqlite3

        try:
            base = open_index(self._directory)
        except XyroError:
            return
        try:
            for line, row in changed:
                line["text_changed"], line["text_diff"] = _difference(base, line["page"], row)
        except (sqlite3.Error, XyroError):
            return
        finally:
            base.close()


def _difference(base: sqlite3.Connection, page: PageId, row: ChangeRow) -> tuple[float | None, list[Any] | None]:
    """(share of the words, the words), of the texts before and after a change."""
    query = (
        "SELECT number, CAST(time AS INTEGER) > ?, packed FROM texts LEFT JOIN bodies USING (digest) "
        "WHERE page = ? AND time <= ? ORDER BY number DESC LIMIT 2"
    )
    versions = base.execute(query, (row.before, page, row.time)).fetchall()
    if not versions or not row.before:
        return None, None
    if not versions[0][1]:  # the last text is of an earlier read: this one showed the same
        return 0.0, []
    if len(versions) < 2 or versions[0][0] != versions[1][0] + 1 or None in (versions[0][2], versions[1][2]):
        return None, None
    new, old = (unpacked_text(packed)["text"] for _, _, packed in versions)
    return compared(old, new)


def compared(old: str, new: str) -> tuple[float, list[dict[str, Any]] | None]:
    """(share of the words of both texts that went or came, and these words: None where they are too many)"""
    size = len(old.split()) + len(new.split())
    if len(old) + len(new) > COMPARED:
        before, after = Counter(old.split()), Counter(new.split())
        return round(((before - after).total() + (after - before).total()) / size, 6), None
    edits = word_diff(old, new)
    moved = sum(len(edit["removed"].split()) + len(edit["added"].split()) for edit in edits)
    short = sum(map(len, map(json.dumps, edits))) < LONGEST
    return round(moved / size, 6) if size else 0.0, edits if short else None
