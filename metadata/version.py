"""The number of the format of a data directory: one for its rows, its journal and its snapshots.

Raise it with any change that an older Xyro would read wrongly, and teach metadata/format1.py's successor to carry the
directories of the number before over (`xyro migrate`). A field appended to a row with a default needs no new number.
"""

from __future__ import annotations

from typing import Final

VERSION: Final = 2
"""2: page flags of 32 bits, Link-Data without a head, rows without what nobody read (CHANGELOG.md)"""
