"""Versions of pages' texts in the index: a new one begins when the Markdown changes; each body is stored once.

`[store] versions` and `version_days` hold for texts as for XML documents (metadata/documents.py): what is beyond is
dropped when the next version is stored, and the latest always stays.
"""

from __future__ import annotations

import itertools
import sqlite3
from typing import TYPE_CHECKING

from xyro.wire.ids import PageId

if TYPE_CHECKING:
    from xyro.packed_text import StoredText

DAY = 86_400.0


class TextVersions:
    """Writes within the transaction of its caller. versions, days: 0 = all, for ever."""

    def __init__(self, index: sqlite3.Connection, versions: int, days: float) -> None:
        self._index = index
        self._limit = versions
        self._days = days

    def store(self, page: PageId, time: float, text: StoredText, same: bool = False) -> bool:
        """Keep what a read showed; True if a new version began.

        same: the page's bytes are those of the read before. If its text is another all the same, another extractor
        found it: it takes the place of the last version, for the page has not changed.
        """
        last = self._index.execute(
            "SELECT number, digest, time FROM texts WHERE page = ? ORDER BY number DESC LIMIT 1", (page,)
        ).fetchone()
        if last is not None and (last[1] == text.digest or time <= last[2]):
            return False
        number = last[0] + 1 if last else 1
        replaced = same and last is not None
        if replaced:
            number, _, time = last
            self.drop(page, number)
        self._index.execute(
            "INSERT INTO bodies VALUES (?, 1, ?, ?) ON CONFLICT (digest) DO UPDATE SET uses = uses + 1",
            (text.digest, text.size, text.packed),
        )
        self._index.execute(
            "INSERT INTO texts VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (page, number, time, text.digest, text.title, text.language, text.published, text.modified),
        )
        self._retain(page, number, time)
        return not replaced

    def drop(self, page: PageId, number: int) -> None:
        """Drop one version, and its body where no other version has it."""
        (digest,) = self._index.execute(
            "SELECT digest FROM texts WHERE page = ? AND number = ?", (page, number)
        ).fetchone()
        self._index.execute("DELETE FROM texts WHERE page = ? AND number = ?", (page, number))
        self._index.execute("UPDATE bodies SET uses = uses - 1 WHERE digest = ?", (digest,))
        self._index.execute("DELETE FROM bodies WHERE digest = ? AND uses = 0", (digest,))

    def _retain(self, page: PageId, last: int, now: float) -> None:
        """Drop the versions that are kept no longer."""
        rows = self._index.execute("SELECT number, time FROM texts WHERE page = ? ORDER BY number", (page,)).fetchall()
        for (number, _), (_, replaced) in itertools.pairwise(rows):
            old = self._days and replaced < now - self._days * DAY
            if (self._limit and number <= last - self._limit) or old:
                self.drop(page, number)
