"""Positions in the stream of changes, and the text that stands for one: the cursor. Pure.

A position holds, of each partition, the number of the last change that was seen and the lineage of that number: the
epochs it came through, each with its base, the last number before it. A partition whose data are gone on with from a
copy begins an epoch, so the same number may follow on two lineages: where those part, reading goes on at the fork, and
nothing that was told on one is taken for what was told on the other.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from xyro.wire.errors import InputError
from xyro.wire.moments import EXAMPLES

OLD_BEGIN = -1
"""number that earlier versions wrote for the beginning"""
Lineage = tuple[tuple[int, int], ...]
"""(epoch, base) of each, the oldest first"""


class Position(NamedTuple):
    """The position of a reader in one partition."""

    number: int
    lineage: Lineage


UNREAD = Position(0, ())
"""before the first change that was ever recorded"""


def encode_cursor(positions: Sequence[Position]) -> str:
    """The text of the positions of all partitions, in their order."""
    plain = [[position.number, *(number for pair in position.lineage for number in pair)] for position in positions]
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(plain)).rstrip(b"=").decode()


def decode_cursor(text: str, partitions: int) -> list[Position]:
    """The positions of a cursor. InputError: it is none, or that of a crawl with other partitions."""
    try:
        packed = base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
        plain = msgspec.msgpack.decode(packed, type=list[list[int]])
    except (binascii.Error, ValueError, msgspec.DecodeError):
        raise InputError(f"{text[:60]!a}: no cursor; copy the `cursor` of a line, or give a time: {EXAMPLES}") from None
    if len(plain) != partitions or not all(len(part) % 2 == 1 and part[0] >= OLD_BEGIN for part in plain):
        raise InputError(f"{text[:60]!a}: a cursor of another crawl (this one has {partitions} partitions)")
    return [Position(max(part[0], 0), tuple(zip(part[1::2], part[2::2], strict=True))) for part in plain]


def lineage_at(lineage: Lineage, number: int) -> Lineage:
    """The lineage of one number: the epochs that had begun by then."""
    return tuple(pair for pair in lineage if pair[1] < number)


def meeting_point(position: Position, lineage: Lineage) -> int:
    """The last number that a reader and a stream of this lineage have in common, at most the reader's.

    InputError: they have nothing in common, so the cursor is of another crawl.
    """
    if position.number <= 0:
        return position.number
    shared = 0
    while shared < min(len(position.lineage), len(lineage)) and position.lineage[shared] == lineage[shared]:
        shared += 1
    if not shared:
        raise InputError("the cursor is of another crawl, or of before its changes were recorded anew: give a time")
    forks = [other[shared][1] for other in (position.lineage, lineage) if len(other) > shared]
    return min(position.number, *forks) if forks else position.number
