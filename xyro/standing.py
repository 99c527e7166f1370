"""Standing of hosts: what a host gave for the slots that it took, and the three kinds of hosts by it.

Written by SlotShares, read by the fetch queue; both keep to the same kinds.
"""

from __future__ import annotations

WORTH = 4.0
"""seconds of a slot that one answer is worth"""
NOTHING, BEST = 1.0, 5.0
"""standing of a host that nobody knows, and the most there is: a read that takes WORTH seconds halves any standing"""
TRIED_FROM, PROVEN_FROM = 1.5, 2.5
"""least standing: after an answer within 1.3 s; after two within half a second each. 2.7 and 1.6 s keep it"""
UNKNOWN, TRIED, PROVEN = range(3)
"""kinds of hosts"""
KINDS = 3
REMEMBERED = 1 << 17
"""hosts with a standing, 150 bytes each: the one that answered first is forgotten, and is unknown again"""


def kind_of(standing: float) -> int:
    """Return the kind of a host that has such a standing."""
    return (standing >= TRIED_FROM) + (standing >= PROVEN_FROM)
