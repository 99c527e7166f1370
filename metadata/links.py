"""Link-Data of one page <-> bytes: its distinct children as local numbers (uint32, little-endian), 4 bytes a child.

At most 65,534 children (P1 note 3), in order of first appearance. A page of another partition has a local number too:
it is a page in state FOREIGN here (states.py).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xyro.wire.errors import MachineError
from xyro.wire.messages import MAX_LINKS

_PAGE = np.dtype("<u4")


def pack(children: NDArray[np.uint32]) -> bytes:
    """The bytes of a page's children. ValueError: more than MAX_LINKS; TypeError: numbers that may not fit."""
    if len(children) > MAX_LINKS:
        raise ValueError(f"Link-Data: {len(children)} children, at most {MAX_LINKS}")
    return children.tobytes() if children.dtype == _PAGE else children.astype(_PAGE, casting="safe").tobytes()


def unpack(data: bytes) -> NDArray[np.uint32]:
    """A page's children: a read-only view into `data`. MachineError: the bytes are not of whole numbers."""
    if len(data) % _PAGE.itemsize or len(data) > MAX_LINKS * _PAGE.itemsize:
        raise MachineError(
            f"damaged store: Link-Data of {len(data)} bytes does not add up: restore the directory from a copy"
        )
    return np.frombuffer(data, _PAGE)
