"""The same crawl before and after: orders and exports of a seeded crawl are, byte for byte, those of a commit before.

The digests were last made when paths with a query, and folders' own pages, came to weigh more against traps
(wire/urls.py, frontier/discovery.py); those of pages when an interval of importance came to have its own middle
(opic/importance.py), and when `error_bound` came to be what the intervals imply (opic/snapshots.py); those of one
partition when a bandwidth that is set came to be spent evenly (frontier/due_queue.py); those of all when pages came to
be dated anew by priors that have doubled or halved (frontier/redating.py), and when a commit group came to weigh all
its pages before it finds the multiplier once (frontier/revisit_dates.py); those of links when their rows came to have
`stale` (service/views/export.py); those of four partitions when the transfers of a turn came to be applied at once
(frontier/outbox.py); those of all when pages that other hosts link to came to be read before others
(frontier/discovery.py); those of pages when half widths came to count pages that err together (opic/snapshots.py).
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
        "orders": "ee4ccbb82443cf19d344961d5e4d98eb",
        "pages": "c0de8a0b53d4ca01a4ed5909ef75a658",
        "links": "f0b92232e93e3bc587db6369013d28c8",
        "sums": "484 pages, 2467 reads, 2668 orders",
    },
    ("more", 4): {
        "orders": "d4a1b0ad46d738f7b529173478263a1e",
        "pages": "b779c455c791eeb9fdc044f44260b92f",
        "links": "2a36e7a93d5d959a5463fda53d3562b8",
        "sums": "480 pages, 2513 reads, 2708 orders",
    },
}
"""(settings, partitions) -> what came of it"""


@pytest.mark.parametrize(("variant", "partitions"), FROZEN)
def test_the_same_crawl_as_before(tmp_path, variant, partitions):
    assert digests(partitions, tmp_path, VARIANTS[variant]) == FROZEN[variant, partitions]
