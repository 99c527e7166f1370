"""The same crawl before and after: orders and exports of a seeded crawl are, byte for byte, those of a commit before.

The digests were last made when paths with a query, and folders' own pages, came to weigh more against traps
(wire/urls.py, frontier/discovery.py); those of pages when an interval of importance came to have its own middle
(opic/importance.py), and when `error_bound` came to be what the intervals imply (opic/snapshots.py); those of one
partition when a bandwidth that is set came to be spent evenly (frontier/due_queue.py); those of all when pages came to
be dated anew by priors that have doubled or halved (frontier/redating.py), and when a commit group came to weigh all
its pages before it finds the multiplier once (frontier/revisit_dates.py); those of links when their rows came to have
`stale` (service/views/export.py); those of four partitions when the transfers of a turn came to be applied at once, and
when cash for pages that are known elsewhere came to wait for more of it (frontier/outbox.py); those of all when pages
that other hosts link to came to be read before others (frontier/discovery.py); those of pages when half widths came to
count pages that err together (opic/snapshots.py); those of all when the orders that a host has out came to be divided
by gamma (frontier/look_ahead.py); those of pages when half widths came to know how far off pages are at this moment
(opic/snapshots.py).
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
        "orders": "435fb862bc69275d42aa66d7eb6552d2",
        "pages": "26febc652877194e44a1c01380f03d8f",
        "links": "a317c3333424277a315dd8ec54209528",
        "sums": "480 pages, 2473 reads, 2673 orders",
    },
    ("more", 4): {
        "orders": "2e4f2ca5b0fdfec313870f4bc5dd56a6",
        "pages": "61f6fe925d8f498d9ffe48fdd457f972",
        "links": "6a1417e8ef34bb0515e9dbeac4ac3646",
        "sums": "484 pages, 2512 reads, 2706 orders",
    },
}
"""(settings, partitions) -> what came of it"""


@pytest.mark.parametrize(("variant", "partitions"), FROZEN)
def test_the_same_crawl_as_before(tmp_path, variant, partitions):
    assert digests(partitions, tmp_path, VARIANTS[variant]) == FROZEN[variant, partitions]
