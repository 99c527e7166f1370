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
when half widths came to know how far off pages are at this moment (opic/snapshots.py); those of all when scouts
came to be the pages that waited longest (frontier/discovery.py).
Whoever changes an algorithm on purpose makes them anew and says why; a change of names, files or wiring must not need
to.
"""

import pytest

from tests.frontier.seeded_crawl import VARIANTS, digests

FROZEN = {
    ("default", 1): {
        "orders": "02ee139989eb4d597a7c94aa60bdc0ea",
        "pages": "fff89f2d654e2564d81132c78f6ab11b",
        "links": "fd31a6216335cea45245cd5db1d14ca2",
        "sums": "487 pages, 2401 reads, 2599 orders",
    },
    ("default", 4): {
        "orders": "0fc1a86d3500fade461643b4c6fbf0d6",
        "pages": "f95a29b6de337479423583d60766dd80",
        "links": "49b03ed9ba48debfe92479fca639cbee",
        "sums": "481 pages, 2462 reads, 2664 orders",
    },
    ("more", 4): {
        "orders": "807740c1b7e82047925bed49204e772b",
        "pages": "2ba7bba62994830a250af51710f87a81",
        "links": "d761a1b5d8e424fdfaa0f0963f30c7dd",
        "sums": "482 pages, 2505 reads, 2698 orders",
    },
}
"""(settings, partitions) -> what came of it"""


@pytest.mark.parametrize(("variant", "partitions"), FROZEN)
def test_the_same_crawl_as_before(tmp_path, variant, partitions):
    assert digests(partitions, tmp_path, VARIANTS[variant]) == FROZEN[variant, partitions]
