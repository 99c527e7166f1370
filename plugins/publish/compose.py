"""Composes notices: for each page of a subscription's target, how it changed since the last notice.

A pattern stands for up to 10,000 pages, whose rows take 30 us each: they are read some at a time. What is told of a
page, and what is kept as told, come from one look at its row.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from xyro.frontier.watch import Watch
from xyro.metadata.rows import RefreshRow
from xyro.metadata.states import State
from xyro.plugins.publish.publication_rows import changes, present
from xyro.plugins.publish.stored_rows import SubscriptionRow
from xyro.service.node.slicing import unhurried
from xyro.wire.ids import PageId
from xyro.wire.text import stamp

if TYPE_CHECKING:
    from xyro.service.node.services import Services

READABLE = (State.READ, State.UNREAD, State.ERROR, State.FAILED)
_NOTHING = RefreshRow()


class Notice(NamedTuple):
    """`body`: JSON; `missed`: pages (ids) that were not refreshed for it; `seen`: what it says that pages are.

    `number`: that of the last one only where it could not be told (or nobody knows), and says the same of the pages.
    """

    body: bytes
    missed: list[PageId]
    seen: dict[PageId, bytes]
    number: int
    digest: bytes
    """of `seen`"""


def signatures(services: Services, watch: Watch, target: str) -> Iterator[tuple[PageId, bytes]]:
    """(page, what it is now) of those that were read: the base of the first notice."""
    for page in watch.pages(target):
        row = services.lookup.row(page)
        if row is not None and row.reads:
            yield page, present(row)


async def compose(
    services: Services, watch: Watch, number: int, row: SubscriptionRow, due: float, since: float
) -> Notice:
    """The next notice of a subscription. due: when it is; since: when its pages began to be refreshed for it."""
    pages, missed, seen, changed = list[str](), list[PageId](), dict[PageId, bytes](), 0
    async for page in unhurried(watch.pages(row.target)):
        state = services.lookup.state(page)
        if state not in READABLE and page not in row.seen:
            continue
        stored = services.lookup.row(page) or _NOTHING
        fresh = stored.last_read >= int(since)
        if not fresh and state in READABLE:
            missed.append(page)
        seen[page] = present(stored)
        became = changes(stored, row.seen.get(page))
        changed += became["changed"]
        pages.append(json.dumps({"url": services.lookup.url(page), **became, "refreshed": fresh}))
    digest = hashlib.sha1(msgspec.msgpack.encode(sorted(seen.items())), usedforsecurity=False).digest()
    last = max(row.numbered, row.sequence)
    name = last if row.tried == digest else last + 1
    head = json.dumps(
        {
            "subscription": number,
            "notice": name,
            "target": row.target,
            "since": stamp(row.told_at or row.made),
            "at": stamp(services.clock.time()),
            "due": stamp(due),
            "in_time": not missed,
            "changed": changed,
        }
    )
    return Notice(f'{head[:-1]}, "pages": [{", ".join(pages)}]}}'.encode(), missed, seen, name, digest)
