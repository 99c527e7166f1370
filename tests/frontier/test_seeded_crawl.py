"""The same crawl before and after: orders and exports of a seeded crawl are, byte for byte, those of a commit before.

The digests were last made when paths with a query, and folders' own pages, came to weigh more against traps
(wire/urls.py, frontier/discovery.py); those of pages when an interval of importance came to have its own middle
(opic/importance.py), and when `error_bound` came to be what the intervals imply (opic/snapshots.py); those of one
partition when a bandwidth that is set came to be spent evenly (frontier/due_queue.py); those of all when pages came to
be dated anew by priors that have doubled or halved (frontier/redating.py), and when a commit group came to weigh all
its pages before it finds the multiplier once (frontier/revisit_dates.py); those of links when their rows came to have
`stale` (service/views/export.py); those of four partitions when the transfers of a turn came to be applied at once
(frontier/outbox.py); those of all when pages that other hosts link to came to be read before others
(frontier/discovery.py). Whoever
changes an algorithm on purpose makes them anew and says why; a change of names, files or wiring must not need to.
"""

import pytest

from tests.frontier.seeded_crawl import VARIANTS, digests

FROZEN = {
    ("default", 1): {
        "orders": "5a6f65bd00aa2dff0db59b604ec8f17b",
        "pages": "5a5f4b99de9249a182cea9ba5e999a87",
        "links": "7d003d757a2d46760f4f11be2526f7d6",
        "sums": "480 pages, 2449 reads, 2651 orders",
    },
    ("default", 4): {
        "orders": "a11693ece417ca574722a1f9853ee04a",
        "pages": "d9a09e011e0d4905516d9c1016bc14fb",
        "links": "ed904174143d7914930fe2c1fbf953c1",
        "sums": "481 pages, 2473 reads, 2675 orders",
    },
    ("more", 4): {
        "orders": "7a5978f18fa32aa68313a5372be622c5",
        "pages": "86fe6fe1bca11b8284b20947eb140a4f",
        "links": "567cc2d57041f04cde8432953fb1dddc",
        "sums": "481 pages, 2515 reads, 2713 orders",
    },
}
"""(settings, partitions) -> what came of it"""


@pytest.mark.parametrize(("variant", "partitions"), FROZEN)
def test_the_same_crawl_as_before(tmp_path, variant, partitions):
    assert digests(partitions, tmp_path, VARIANTS[variant]) == FROZEN[variant, partitions]
