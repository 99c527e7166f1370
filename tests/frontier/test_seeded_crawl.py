"""The same crawl before and after: orders and exports of a seeded crawl are, byte for byte, those of a commit before.

The digests were last made when paths with a query, and folders' own pages, came to weigh more against traps
(wire/urls.py, frontier/discovery.py); those of pages when an interval of importance came to have its own middle
(opic/importance.py), and when `error_bound` came to be what the intervals imply (opic/snapshots.py); those of one
partition when a bandwidth that is set came to be spent evenly (frontier/due_queue.py); those of all when pages came to
be dated anew by priors that have doubled or halved (frontier/redating.py), and when a commit group came to weigh all
its pages before it finds the multiplier once (frontier/revisit_dates.py); those of links when their rows came to have
`stale` (service/views/export.py); those of four partitions when the transfers of a turn came to be applied at once
(frontier/outbox.py); those of all when pages that other hosts link to came to be read before others
(frontier/discovery.py); those of pages when half widths came to count pages that err together (opic/snapshots.py);
those of all when the orders that a host has out came to be divided by gamma (frontier/look_ahead.py); those of pages
when half widths came to know how far off pages are at this moment (opic/snapshots.py).
Whoever changes an algorithm on purpose makes them anew and says why; a change of names, files or wiring must not need
to.
"""

import pytest

from tests.frontier.seeded_crawl import VARIANTS, digests

FROZEN = {
    ("default", 1): {
        "orders": "95654f9355fbd90f70d1156447003246",
        "pages": "5c7b7b65b9a5fdc6e9a1ab9b17a5c11d",
        "links": "a849eb5b1a3a4ef86b73e0e3d87d0442",
        "sums": "484 pages, 2385 reads, 2587 orders",
    },
    ("default", 4): {
        "orders": "01a6fc8777326a64fc4767eb44a5d36b",
        "pages": "8cf4e14875c271d069fdc49ebc7db716",
        "links": "7955c4048ed258c8bd15263876a0ed80",
        "sums": "482 pages, 2474 reads, 2676 orders",
    },
    ("more", 4): {
        "orders": "5d687b4792204174bcf79086043335d8",
        "pages": "49e5b7b7b2a30a3ab68f8f64d1953b3e",
        "links": "3bf35c20f8abe3cdb79f37a10562db9d",
        "sums": "482 pages, 2511 reads, 2695 orders",
    },
}
"""(settings, partitions) -> what came of it"""


@pytest.mark.parametrize(("variant", "partitions"), FROZEN)
def test_the_same_crawl_as_before(tmp_path, variant, partitions):
    assert digests(partitions, tmp_path, VARIANTS[variant]) == FROZEN[variant, partitions]
