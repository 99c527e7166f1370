"""Composes notices: for each page of a subscription's target, how it changed since the last notice.

A pattern stands for up to 10,000 pages, which their partitions describe some at a time. What is told of a page, and
what is kept as told, come from one such answer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from xyro.metadata.rows import RefreshRow
from xyro.plugins.publish.notice_pages import READABLE
from xyro.plugins.publish.publication_rows import changes, present
from xyro.plugins.publish.stored_rows import SubscriptionRow
from xyro.service.node.page_questions import AT_ONCE
from xyro.service.views.staleness import stale_of
from xyro.wire.ids import PageId
from xyro.wire.text import stamp

if TYPE_CHECKING:
    from xyro.service.node.services import Services

_NOTHING = RefreshRow()


class Notice(NamedTuple):
    """`body`: JSON; `missed`: pages that were not refreshed for it; `seen`: what it says that pages are.

    `number`: that of the last one only where it could not be told (or nobody knows), and says the same of the pages.
    """

    body: bytes
    missed: list[PageId]
    seen: dict[PageId, bytes]
    number: int
    digest: bytes
    """of `seen`"""


async def signatures(services: Services, pages: Sequence[PageId]) -> dict[PageId, bytes]:
    """Return what those pages are now that were read: the base of the first notice."""
    facts = await services.pages.describe(pages)
    return {page.page: present(page.row) for page in facts if page.row is not None and page.row.reads}


async def compose(
    services: Services, pages: Sequence[PageId], number: int, row: SubscriptionRow, due: float, since: float
) -> Notice:
    """The next notice of a subscription. due: when it is; since: when its pages began to be refreshed for it."""
    described, missed, seen, changed = list[str](), list[PageId](), dict[PageId, bytes](), 0
    now = services.clock.time()
    for first in range(0, len(pages), AT_ONCE):
        for page, url, state, stored in await services.pages.describe(pages[first : first + AT_ONCE]):
            if state not in READABLE and page not in row.seen:
                continue
            stored = stored or _NOTHING
            fresh = stored.last_read >= int(since)  # rows tell seconds: in the one in which it began counts as after it
            if not fresh and state in READABLE:
                missed.append(page)
            seen[page] = present(stored)
            became = changes(stored, row.seen.get(page))
            changed += became["changed"]
            stale = stale_of(state, stored, now)
            described.append(json.dumps({"url": url, **became, "refreshed": fresh, "stale": stale}))
    digest = hashlib.sha1(msgspec.msgpack.encode(sorted(seen.items())), usedforsecurity=False).digest()
    last = max(row.numbered, row.sequence)
    name = last if row.tried == digest else last + 1
    head = json.dumps(
        {
            "subscription": number,
            "notice": name,
            "target": row.target,
            "since": stamp(row.told_at or row.made),
            "at": stamp(now),
            "due": stamp(due),
            "in_time": not missed,
            "changed": changed,
        }
    )
    return Notice(f'{head[:-1]}, "pages": [{", ".join(described)}]}}'.encode(), missed, seen, name, digest)
