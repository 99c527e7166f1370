"""Link-Data of one page <-> bytes: its distinct children, in two arrays that are read without a copy.

A child of the same partition is its local number (uint32), a child of another one its 64-bit fingerprint (uint64), at
most 65,534 together (P1 note 3). Layout, little-endian: version u8, one zero byte, number of foreign children u16,
truncated u32, then the foreign ones (8-byte aligned), then the local ones: 8 bytes + 4 a child here + 8 elsewhere.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xyro.wire.errors import InputError, MachineError
from xyro.wire.messages import MAX_LINKS

VERSION = 1
_HEAD = struct.Struct("<BxHI")
_PAGE = np.dtype("<u4")
_FINGERPRINT = np.dtype("<u8")
_MOST_TRUNCATED = 2**32 - 1
NO_FOREIGN: NDArray[np.uint64] = np.empty(0, np.uint64)


class Children(NamedTuple):
    """A page's children, each array in order of first appearance; read-only views when unpacked."""

    children: NDArray[np.uint32]
    """local numbers of this partition"""
    foreign: NDArray[np.uint64]
    """fingerprints of pages of other partitions"""
    truncated: int
    """further distinct links that were dropped over the limit"""


def pack(children: NDArray[np.uint32], foreign: NDArray[np.uint64], truncated: int = 0) -> bytes:
    """Raises ValueError over MAX_LINKS children. A `truncated` over 2^32 - 1 is stored as that."""
    if len(children) + len(foreign) > MAX_LINKS:
        raise ValueError(f"Link-Data: {len(children) + len(foreign)} children, at most {MAX_LINKS}")
    head = _HEAD.pack(VERSION, len(foreign), min(truncated, _MOST_TRUNCATED))
    return head + _bytes(foreign, _FINGERPRINT) + _bytes(children, _PAGE)


def unpack(data: bytes) -> Children:
    """Views into `data`. Raises InputError for another version, MachineError for damaged bytes."""
    if data[:1] != bytes([VERSION]):
        raise _unreadable(data)
    if len(data) < _HEAD.size:
        raise _damaged(data)
    _, elsewhere, truncated = _HEAD.unpack_from(data)
    here, odd = divmod(len(data) - _HEAD.size - elsewhere * _FINGERPRINT.itemsize, _PAGE.itemsize)
    if odd or here < 0 or here + elsewhere > MAX_LINKS:
        raise _damaged(data)
    foreign = np.frombuffer(data, _FINGERPRINT, elsewhere, _HEAD.size)
    return Children(np.frombuffer(data, _PAGE, here, _HEAD.size + foreign.nbytes), foreign, truncated)


def _bytes(array: NDArray[np.uint32] | NDArray[np.uint64], layout: np.dtype[np.uint32] | np.dtype[np.uint64]) -> bytes:
    """The array in its stored layout; only widenings are allowed, so no number is cut silently."""
    return array.tobytes() if array.dtype == layout else array.astype(layout, casting="safe").tobytes()


def _unreadable(data: bytes) -> InputError | MachineError:
    if not data:
        return _damaged(data)
    return InputError(f"Link-Data: version {data[0]}, this Xyro reads {VERSION}: use the Xyro that wrote the directory")


def _damaged(data: bytes) -> MachineError:
    return MachineError(
        f"damaged store: Link-Data of {len(data)} bytes does not add up: restore the directory from a copy"
    )
