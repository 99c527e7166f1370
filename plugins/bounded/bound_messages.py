"""The commands of a bounded crawl, between whoever begins it, the home partition and the others.

BoundReads   a run begins, or the one of this number ends earlier      to every partition
AskReads     what a partition has of the bound, and wants beyond that  to the home partition
GrantReads   what it has from now on                                   to the partition that asked
CountReads   what it has done so far, for a round of counts            to every partition
"""

from __future__ import annotations

from typing import ClassVar

from xyro.wire import codec
from xyro.wire.commands import Command
from xyro.wire.questions import Question

_FIRST_TAG = codec.PLUGIN_TAGS + 80


class BoundReads(Command, frozen=True):
    """Begin the run of this number, which is greater than those of earlier runs; of the run of now: end it `until`."""

    run: int
    """0: none, the nodes read on without bounds"""
    pages: int
    """reads of all partitions together; 0: no bound"""
    until: float
    """wall clock; infinite: no bound"""
    refresh: bool
    """pages that were read are read again when they are due"""


class AskReads(Command, frozen=True):
    """Tell the home partition what a partition has; of two, that of the greater serial number holds."""

    hurries: ClassVar[bool] = True
    source: int
    run: int
    serial: int
    granted: int
    """reads that it may make, those it made among them"""
    wants: int


class GrantReads(Command, frozen=True):
    """Answer the question of this serial number: nothing more, or more; more may follow later."""

    hurries: ClassVar[bool] = True
    run: int
    serial: int
    granted: int


class CountReads(Question, frozen=True):
    """Ask a partition for its counts at a moment (wall clock of who asks)."""

    now: float


codec.register(_FIRST_TAG, BoundReads, AskReads, GrantReads, CountReads)
