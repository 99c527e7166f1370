"""Answers questions about pages of one partition (wire/questions.py), from what is known of them now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xyro.frontier.targets import Targets, scan
from xyro.metadata import rows
from xyro.wire.ids import LocalPage
from xyro.wire.questions import DescribePages, FindPages, MatchPages

if TYPE_CHECKING:
    from xyro.frontier.command_handlers import CommandHandlers
    from xyro.metadata.partition import Partition


def answer_questions(partition: Partition, handlers: CommandHandlers) -> None:
    """Let a partition answer."""
    answers = PageAnswers(partition)
    handlers.handle(FindPages, answers.find)
    handlers.handle(DescribePages, answers.describe)
    handlers.handle(MatchPages, answers.match)


class PageAnswers:
    """The answers of one partition."""

    def __init__(self, partition: Partition) -> None:
        self.partition = partition

    def find(self, question: FindPages) -> list[tuple[int, int]]:
        """Return (page, host) of each URL, a page of -1 where it is unknown."""
        hosts = self.partition.hosts_of
        pages = self.partition.url_index.find(question.urls)
        return [(page, hosts[page]) if page >= 0 else (-1, 0) for page in pages]

    def describe(self, question: DescribePages) -> list[tuple[str, int, bytes]]:
        """Return (URL, state, row) of each page."""
        partition = self.partition
        return [
            (partition.url(page), partition.states[page], partition.get(rows.REFRESH.key(page)) or b"")
            for page in question.pages
        ]

    def match(self, question: MatchPages) -> tuple[int, list[tuple[int, LocalPage, int]]]:
        """Return the page to go on with, -1 at the end, and (number of the pattern, page, host) of those that fit."""
        targets, numbers = Targets(), {pattern: number for number, pattern in enumerate(question.patterns)}
        for pattern in numbers:
            targets.add(pattern)
        places = scan(self.partition, targets, question.first, question.limit)
        found = [(numbers[target], page, self.partition.hosts_of[page]) for target, page in places]
        end = question.first + question.limit
        return end if end < self.partition.columns.n else -1, found
