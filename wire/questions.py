"""Questions are commands that change nothing: a partition answers them at once, between two of its turns.

    FindPages       which of these URLs are known    -> [[page, -1 where it is unknown; host] ...]
    DescribePages   what is known of these pages     -> [[URL, state, Refresh-Data row as stored, or empty] ...]
    MatchPages      which pages fit these patterns   -> [first page not looked at yet, or -1,
                                                         [[number of the pattern, page, host] ...]]
    FindPart        what a DTD or entity holds       -> [body, charset, where it moved] (no body, moved nowhere: it is
                                                        never to be had); None: it has to be read

Pages and hosts are numbers of the partition that is asked. Each question is small enough, and its answer soon enough
found, to be asked while pages are read: who wants more asks again (service/node/page_questions.py).
"""

from __future__ import annotations

from xyro.wire.commands import Command
from xyro.wire.ids import LocalPage


class Question(Command, frozen=True):
    """A command that changes nothing."""


class FindPages(Question, frozen=True):
    """Ask for the numbers of canonical URLs of this partition."""

    urls: tuple[str, ...]


class DescribePages(Question, frozen=True):
    """Ask for URLs, states and rows of known pages."""

    pages: tuple[LocalPage, ...]


class MatchPages(Question, frozen=True):
    """Ask which of `limit` pages on disk, from the page `first` on, fit patterns (frontier/targets.py)."""

    patterns: tuple[str, ...]
    first: LocalPage
    limit: int


class FindPart(Question, frozen=True):
    """Ask for the stored part at a canonical URL of this partition."""

    url: str
