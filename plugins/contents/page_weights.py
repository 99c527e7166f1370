"""Packs the importances of pages, for those who read their contents from the disk beside the crawl.

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
Weights = list[tuple[int, NDArray[np.float32]]]
"""(partition, importances of its pages by their numbers there, a mean page of the crawl having 1)"""


def weights_of(views: Views, mean: float | None = None) -> Weights:
    """The importances of all pages. mean: that of a page of the whole crawl, where the views are of a part."""
    return [(view.partition.number, (view.importance / (mean or views.mean)).astype("<f4")) for view in views.views]


def packed_weights(weights: Weights) -> bytes:
    """Pack importances."""
    return b"".join(part for number, values in weights for part in (_HEAD.pack(number, len(values)), values.tobytes()))


def unpacked_weights(packed: bytes) -> Weights:
    """Read what `packed_weights` packed."""
    found, start = [], 0
    while start < len(packed):
        partition, count = _HEAD.unpack_from(packed, start)
        start += _HEAD.size
        found.append((partition, np.frombuffer(packed, "<f4", count, start)))
        start += 4 * count
    return found
