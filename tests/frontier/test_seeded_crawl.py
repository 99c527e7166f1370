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
count pages that err together (opic/snapshots.py).
Whoever changes an algorithm on purpose makes them anew and says why; a change of names, files or wiring must not need
to.
"""

import pytest

from tests.frontier.seeded_crawl import VARIANTS, digests

FROZEN = {
    ("default", 1): {
        "orders": "cfefcc1b2bd73037d419cb78bb1b8199",
        "pages": "5b52f2df2c49b62d91dd07f3e14848fc",
        "links": "08f8dbb99470f6e2aaae63275b2eccf8",
        "sums": "485 pages, 2384 reads, 2585 orders",
    },
    ("default", 4): {
        "orders": "37c57d431bd94d899db6143b4fa117a9",
        "pages": "9f3cc444e992d82b109407d093420302",
        "links": "e915327d4401c92282086e5737cbe120",
        "sums": "483 pages, 2464 reads, 2666 orders",
    },
    ("more", 4): {
        "orders": "42600c94c6100f146bba70929d3cd4de",
        "pages": "c96a0b8bcf04c31c4721c9e67036f9e0",
        "links": "7f568b0fecb6529a83cd460b9822de4b",
        "sums": "482 pages, 2513 reads, 2711 orders",
    },
}
"""(settings, partitions) -> what came of it"""


@pytest.mark.parametrize(("variant", "partitions"), FROZEN)
def test_the_same_crawl_as_before(tmp_path, variant, partitions):
    assert digests(partitions, tmp_path, VARIANTS[variant]) == FROZEN[variant, partitions]
