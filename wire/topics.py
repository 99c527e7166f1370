"""The topics of the bus: each one's name, who fills it, who empties it, and what keeps it small.

    topic       filled by                                    emptied by        kept small by
    orders      partitions                                   fetch loops       leases: at most 64 orders of a host
    pages.N     fetch and load loops: reports, documents     partition N       leases; waiting documents
                people, publishers: submits, commands                          limits of the HTTP interfaces
                other partitions: cash, acknowledgements, commands             commit groups of the sender
    answers.N   partitions: what became of commands          node N            the commands that wait for an answer

The same text is a table for code: `TOPICS`. The bus refuses a message that would exceed a topic's bound, since then
nobody empties it.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

LEASED: Final = 262_144
"""orders that can be out at once: 64 of each of 4,096 hosts"""


class Topic(Struct, frozen=True):
    """A family of topics: `name` alone, or `name.N` with the number of a partition or of a node."""

    name: str
    fillers: str
    """senders of its messages"""
    drain: str
    """receiver of its messages"""
    limit: str
    """rule that keeps it below its bound"""
    bound: int
    """most messages that may wait in one topic"""


ORDERS: Final = "orders"
PAGES: Final = "pages"
ANSWERS: Final = "answers"

TOPICS: Final = {
    topic.name: topic
    for topic in (
        Topic(ORDERS, "partitions", "fetch loops", "leases of a host", LEASED),
        Topic(PAGES, "fetch and load loops, interfaces, partitions", "one partition", "leases", LEASED),
        Topic(ANSWERS, "partitions", "one node", "commands under way", LEASED),
    )
}


def pages(partition: int) -> str:
    """Topic of everything that goes to a partition."""
    return f"{PAGES}.{partition}"


def answers(node: int) -> str:
    """Topic of the answers to a node's commands."""
    return f"{ANSWERS}.{node}"


def bound(topic: str) -> int:
    """Most messages that may wait in a topic; a topic that is not in the table has the bound of the orders."""
    entry = TOPICS.get(topic.partition(".")[0])
    return LEASED if entry is None else entry.bound
