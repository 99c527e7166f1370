"""Which node of a cluster has which partition: one document, on which all nodes agree (service/cluster/bucket.py).

A partition's epoch is in the document and in the partition's directory. Only where both agree, and the document names
the node, is the partition opened; whoever changes the owner raises the epoch. So a copied directory, a node that wakes
up late or a backup that was put back can never work beside the owner.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec


class Member(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A node, as the placement knows it."""

    identity: str
    """random; in the node's directory"""
    instance: str
    """random; of the process that runs as this node, or ran last"""
    host: str
    """name of its machine, for people"""
    draining: bool = False
    """its partitions go to others, and it gets none"""
    pid: int = 0
    """number of that process on its machine, for people"""
    directory: str = ""
    """its data directory there, for people"""
    ended: str = ""
    """what that process failed of (a full disk), for people"""


class Owner(msgspec.Struct, frozen=True, array_like=True):
    """A partition's owner."""

    node: int
    epoch: int


class Placement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The crawl of a cluster: what all nodes agree on."""

    crawl: str
    """its name, in every subject"""
    seed: int
    """of the fingerprints of its URLs: partitions of one crawl share it"""
    settings: dict[str, Any]
    """section.key -> value: settings that must be the same on all nodes"""
    owners: tuple[Owner, ...]
    """by partition"""
    members: dict[str, Member]
    """by number"""
    moves: dict[str, int] = {}
    """partition -> node that it is to go to"""
    restored: dict[str, int] = {}
    """partition -> epoch at which it was last brought back from a backup (restore.py)"""
    founding: bool = False
    """the founder has not made its partitions yet"""
    version: int = 0
    """counts the changes; a bucket that was made anew begins its revisions again"""
    revision: int = 0
    """of the document in the bucket; not stored"""

    @property
    def partitions(self) -> int:
        """Number of partitions of the crawl."""
        return len(self.owners)

    def owned(self, node: int) -> dict[int, int]:
        """The partitions of a node, each with its epoch."""
        return {q: owner.epoch for q, owner in enumerate(self.owners) if owner.node == node}

    def number_of(self, identity: str) -> int | None:
        """The number of the node that a directory says it is; None: it is no member."""
        return next((int(number) for number, each in self.members.items() if each.identity == identity), None)

    def counts(self) -> dict[int, int]:
        """Partitions of each member."""
        found = dict.fromkeys(map(int, self.members), 0)
        for owner in self.owners:
            found[owner.node] = found.get(owner.node, 0) + 1
        return found

    def moved(self, partition: int, node: int) -> Placement:
        """The placement with another owner of a partition, at the next epoch."""
        owners = list(self.owners)
        owners[partition] = Owner(node, owners[partition].epoch + 1)
        moves = {key: target for key, target in self.moves.items() if key != str(partition)}
        return msgspec.structs.replace(self, owners=tuple(owners), moves=moves)

    def recovered(self, partition: int, node: int) -> Placement:
        """The placement with a lost partition brought back from a backup on a node, at the next epoch."""
        placement = self.moved(partition, node)
        restored = {**self.restored, str(partition): placement.owners[partition].epoch}
        return msgspec.structs.replace(placement, restored=restored)

    def planned(self, partition: int, node: int) -> Placement:
        """The placement with a move to come; to the node that has it: without one."""
        moves = {key: target for key, target in self.moves.items() if key != str(partition)}
        if self.owners[partition].node != node:
            moves[str(partition)] = node
        return msgspec.structs.replace(self, moves=moves)

    def moves_of(self, node: int) -> dict[int, int]:
        """The moves to come from a node: partition -> target."""
        return {int(q): target for q, target in self.moves.items() if self.owners[int(q)].node == node}

    def opened_at(self, places: Mapping[int, tuple[int, int]]) -> Placement:
        """The placement with partitions where they are open: partition -> (node, epoch), where that is the later."""
        owners = list(self.owners)
        for q, (node, epoch) in places.items():
            if epoch > owners[q].epoch:
                owners[q] = Owner(node, epoch)
        return msgspec.structs.replace(self, owners=tuple(owners), moves={}, version=self.version + 1)

    def next_move(self, node: int, alive: Collection[int]) -> tuple[int, int] | None:
        """A move that evens the counts, of a partition of this node to the living one that has fewest; None: they are
        even, or so they will be after the moves that are planned."""
        counts = dict.fromkeys(map(int, self.members), 0)
        for q, owner in enumerate(self.owners):
            taker = self.moves.get(str(q), owner.node)
            counts[taker] = counts.get(taker, 0) + 1
        takers = [n for n in alive if n != node and n in counts and not self.members[str(n)].draining]
        free = [q for q in self.owned(node) if str(q) not in self.moves]
        if not takers or not free:
            return None
        target = min(takers, key=lambda n: (counts[n], n))
        if not self.members[str(node)].draining:
            fair = sum(counts[n] for n in (*takers, node)) // (1 + len(takers))
            if counts[node] <= fair or counts[node] - counts[target] < 2:
                return None
        return free[-1], target

    def founded(self) -> Placement:
        """The placement of a crawl whose partitions exist."""
        return msgspec.structs.replace(self, founding=False)

    def with_member(self, number: int, member: Member) -> Placement:
        """The placement with a node, new or changed."""
        return msgspec.structs.replace(self, members={**self.members, str(number): member})

    def without_member(self, number: int) -> Placement:
        """The placement without a node that has no partition."""
        members = {key: each for key, each in self.members.items() if key != str(number)}
        return msgspec.structs.replace(self, members=members)
