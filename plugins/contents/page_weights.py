"""Packs the importance of every page of a crawl, for those who read its contents from the disk beside it.

For each partition its number and its pages (two uint64), and their importances (float32 each), little endian.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from xyro.service.views.views import Views

_HEAD = struct.Struct("<QQ")


def packed_weights(views: Views) -> bytes:
    """Pack the importances of all pages by their numbers in their partitions; a mean page has 1."""
    parts = []
    for view in views.views:
        values = (view.importance / views.mean).astype("<f4")
        parts += [_HEAD.pack(view.partition.number, len(values)), values.tobytes()]
    return b"".join(parts)


def unpacked_weights(packed: bytes) -> list[tuple[int, NDArray[np.float32]]]:
    """(partition, importances) of each partition."""
    found, start = [], 0
    while start < len(packed):
        partition, count = _HEAD.unpack_from(packed, start)
        start += _HEAD.size
        found.append((partition, np.frombuffer(packed, "<f4", count, start)))
        start += 4 * count
    return found
