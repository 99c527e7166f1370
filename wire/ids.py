"""Numbers of pages: `PageId` in a whole crawl, `LocalPage` within one partition; the one place that converts them.

A page id is its partition's number shifted by 32 bits, plus the page's row number in that partition. Messages, exports
and plug-ins name pages by id; rows, columns and keys of one partition name them by row number. Both are integers while
the program runs; type checkers keep them apart. Arrays of row numbers become ids by adding `first_id`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NewType, cast

if TYPE_CHECKING:
    from numpy.typing import NDArray

PageId = NewType("PageId", int)
"""a page of the crawl: 0..2^63-1"""
LocalPage = NewType("LocalPage", int)
"""a row number of one partition: 0..2^32-1"""

HOME: Final = 0
"""the partition of what a crawl has once: its subscriptions, say"""
_BITS = 32
_LOW = (1 << _BITS) - 1


def join(partition: int, page: LocalPage) -> PageId:
    """The id of a partition's page."""
    return PageId(partition << _BITS | page)


def split(page: PageId) -> tuple[int, LocalPage]:
    """The partition of a page, and its row number there."""
    return page >> _BITS, LocalPage(page & _LOW)


def owner_of(page: PageId) -> int:
    """The partition of a page."""
    return page >> _BITS


def local_page(page: PageId) -> LocalPage:
    """The row number of a page in its partition."""
    return LocalPage(page & _LOW)


def local_pages(numbers: NDArray[Any]) -> list[LocalPage]:
    """The row numbers of an array of any integers, as Python's."""
    found: list[LocalPage] = numbers.tolist()
    return found


def page_range(first: LocalPage, count: int) -> Sequence[LocalPage]:
    """Pages that were minted together: `count` consecutive row numbers."""
    return cast("Sequence[LocalPage]", range(first, first + count))


def first_id(partition: int) -> PageId:
    """The id of a partition's page 0: what to add to an array of its row numbers to have their ids."""
    return PageId(partition << _BITS)
