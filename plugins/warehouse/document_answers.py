"""Answers for documents that a partition keeps, while it goes on: the question DescribeDocument, and its handler.

A query over all documents may take hours, and nothing should be pinned so long: so each is asked for by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xyro.metadata.documents import Archive
from xyro.plugins.warehouse.documents_view import body_of
from xyro.wire import codec
from xyro.wire.ids import LocalPage
from xyro.wire.questions import Question

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier


class DescribeDocument(Question, frozen=True):
    """Ask for the latest version of a document: an object as `body_of` returns it, None where there is none."""

    page: LocalPage
    """its number in the partition"""


codec.register(codec.PLUGIN_TAGS + 48, DescribeDocument)


class DocumentAnswers:
    """The answers of one partition."""

    def __init__(self, frontier: Frontier) -> None:
        self._partition = frontier.partition
        self._archive = Archive(frontier.partition.get)
        frontier.commands.handle(DescribeDocument, self.describe)

    def describe(self, question: DescribeDocument) -> dict[str, Any] | None:
        """Return the latest version of a document."""
        return body_of(self._archive, self._partition.url, question.page)
