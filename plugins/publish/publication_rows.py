"""Subscriptions as rows: made from what a person says, listed, and compared with what their pages are now."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator, Sequence
from typing import Any

from xyro.frontier.targets import is_pattern
from xyro.metadata import rows
from xyro.metadata.partition import Partition
from xyro.metadata.rows import RefreshRow
from xyro.plugins.publish.stored_rows import SubscriptionRow, unpack_subscription
from xyro.wire.errors import InputError
from xyro.wire.messages import MAX_URL
from xyro.wire.text import stamp
from xyro.wire.urls import canonical

LEAST_EVERY = 60.0
MOST_COMMAND = 100
"""words of a command"""


def stored(partition: Partition) -> Iterator[tuple[int, SubscriptionRow]]:
    """(number, row) of all subscriptions, which live in partition 0."""
    for key, value in partition.scan(rows.SUBSCRIPTION.prefix):
        yield rows.SUBSCRIPTION.split(key), unpack_subscription(value)


def made(target: str, every: float, notify: str | Sequence[str], now: float, fold_slashes: bool) -> SubscriptionRow:
    """A new one; its first notice is due a period from now. `notify`: a URL, a command line, or words."""
    if every < LEAST_EVERY:
        raise InputError(f"--every: at least {LEAST_EVERY:g} seconds")
    if is_pattern(target):
        if len(target) > MAX_URL or not target.startswith(("http://", "https://", "*")):
            raise InputError(f"{target!a:.200}: a pattern stands for whole URLs, such as https://example.org/news/*")
    else:
        target = canonical(target, fold_slashes=fold_slashes)
    url, command = _notify(notify)
    try:
        "".join((target, *command)).encode()
    except UnicodeEncodeError as error:  # bytes of a command line that are no UTF-8: such a row could not be stored
        raise InputError(f"{error.object!a:.200}: not text (UTF-8)") from None
    return SubscriptionRow(target, every, url, command, made=now, due=now + every)


def _notify(notify: str | Sequence[str]) -> tuple[str, tuple[str, ...]]:
    if isinstance(notify, str) and notify.startswith(("http://", "https://")):
        return canonical(notify), ()
    try:
        words = tuple(shlex.split(notify) if isinstance(notify, str) else notify)
    except ValueError as error:
        raise InputError(f"--notify: {error}: close the quote") from None
    if not words or not words[0] or len(words) > MOST_COMMAND or any("\0" in word for word in words):
        raise InputError("--notify: a URL, or a command and its arguments")
    if shutil.which(words[0]) is None:
        raise InputError(f"--notify: {words[0]!a:.200}: no such command here; give its whole path")
    return "", words


def described(number: int, row: SubscriptionRow, pages: int) -> dict[str, Any]:
    """For `xyro subscriptions`."""
    return {
        "id": number,
        "target": row.target,
        "every_s": row.every,
        "notify": row.url or shlex.join(row.command),
        "pages": pages,
        "notices": row.sequence,
        "last_notice": stamp(row.told_at),
        "next_notice": stamp(row.due),
        "error": row.error,
    }


def present(row: RefreshRow) -> bytes:
    """A page's signature as subscriptions compare it: empty where the page is not there, or was never read."""
    return b"" if row.gone_since or not row.reads else row.signature or b"-"


def changes(row: RefreshRow, old: bytes | None) -> dict[str, Any]:
    """Compare a page with the last notice of it. `old`: its `present` of then, None where it was not known."""
    new = present(row)
    return {
        "changed": new != (old or b""),
        "new": not old and bool(new),
        "gone": bool(old) and not new,
        "status": row.status,
        "last_change": stamp(row.last_change),
        "last_read": stamp(row.last_read),
        "signature_old": old.hex() if old else None,
        "signature_new": new.hex() if new else None,
    }
