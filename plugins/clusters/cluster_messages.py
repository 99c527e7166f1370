"""The commands between a cluster's home partition, which has its rounds, and the partitions of its members.

    ClusterMembers  pages that belong to a cluster         to the home partition, when they are found
    ClusterReads    members that were read and dated       to the home partition, at the end of the turn
    ClusterRound    a date for members, members to read    to the partition of the members

Members are numbers of the partition that sends or gets them; a cluster is its number in the settings.
"""

from __future__ import annotations

from xyro.wire import codec
from xyro.wire.commands import Command
from xyro.wire.ids import LocalPage

_FIRST_TAG = codec.PLUGIN_TAGS + 32


class ClusterMembers(Command, frozen=True):
    """Members of one partition; importances, rates (changes a day) and reads (seconds since 1970, 0: never) of each."""

    partition: int
    cluster: int
    pages: tuple[LocalPage, ...]
    importances: tuple[float, ...]
    rates: tuple[float, ...]
    reads: tuple[float, ...]


class ClusterReads(Command, frozen=True):
    """Members of one partition that were read, with the dates that the policy gives them (seconds since 1970)."""

    partition: int
    cluster: int
    pages: tuple[LocalPage, ...]
    importances: tuple[float, ...]
    rates: tuple[float, ...]
    dues: tuple[int, ...]
    read_at: float


class ClusterRound(Command, frozen=True):
    """The cluster as a whole, members that get its date, and members to read now."""

    cluster: int
    dated: tuple[LocalPage, ...]
    call: tuple[LocalPage, ...]
    importance: float
    rate: float
    weighed: int
    """members that count in these sums"""
    size: int
    """members"""
    due: int
    first: float
    """first and last read of this round, seconds since 1970"""
    last: float


codec.register(_FIRST_TAG, ClusterMembers, ClusterReads, ClusterRound)
