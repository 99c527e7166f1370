"""Answers for documents that a partition keeps, while it goes on: the question DescribeDocument, and its handler.

A query over all documents may take hours, and nothing should be pinned so long: so each is asked for by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xyro.metadata.documents import Archive
from xyro.metadata.rows import RefreshRow
from xyro.plugins.warehouse.documents_view import body_of
from xyro.service.views.staleness import stale_of
from xyro.wire import codec
from xyro.wire.ids import LocalPage
from xyro.wire.questions import Question

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier


class DescribeDocument(Question, frozen=True):
    """Ask for the latest version of a document: an object as `bodies` yields it, None where there is none."""

    page: LocalPage
    """its number in the partition"""
    now: float = 0.0
    """seconds since 1970: the moment of which `stale` is"""


codec.register(codec.PLUGIN_TAGS + 48, DescribeDocument)


class DocumentAnswers:
    """The answers of one partition."""

    def __init__(self, frontier: Frontier) -> None:
        self._partition = frontier.partition
        self._archive = Archive(frontier.partition.get)
        frontier.commands.handle(DescribeDocument, self.describe)

    def describe(self, question: DescribeDocument) -> dict[str, Any] | None:
        """Return the latest version of a document."""
        page = question.page
        found = body_of(self._archive, self._partition.url, page)
        if found is not None:
            row = self._partition.row(page) or RefreshRow()
            found["stale"] = stale_of(self._partition.states[page], row, question.now)
        return found
