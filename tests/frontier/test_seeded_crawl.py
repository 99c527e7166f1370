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
came to be the pages that waited longest (frontier/discovery.py), and when hosts that had no orders left came to be
looked further ahead of (frontier/look_ahead.py).
Whoever changes an algorithm on purpose makes them anew and says why; a change of names, files or wiring must not need
to.
"""

import pytest

from tests.frontier.seeded_crawl import VARIANTS, digests

FROZEN = {
    ("default", 1): {
        "orders": "7af23f169b5a4d9b0dc11c87ab0c83b9",
        "pages": "cad6b4eaaf22cd8916e20151287bbd6c",
        "links": "c758dcf53bb6bae4bc1e63ff738f27fe",
        "sums": "486 pages, 2455 reads, 2658 orders",
    },
    ("default", 4): {
        "orders": "d21fdf9341afcf50ca8d615dcd792775",
        "pages": "825c7a39e334905fe68693b81ce92b5c",
        "links": "05d0ecb39a2e399900a6b94ea485a8cb",
        "sums": "482 pages, 2467 reads, 2669 orders",
    },
    ("more", 4): {
        "orders": "0459801fd487331f27885dd56e3970a7",
        "pages": "d3814747225b36955498e439f4763941",
        "links": "d08a841099f60b51cce07ed37c70c415",
        "sums": "479 pages, 2527 reads, 2725 orders",
    },
}
"""(settings, partitions) -> what came of it"""


@pytest.mark.parametrize(("variant", "partitions"), FROZEN)
def test_the_same_crawl_as_before(tmp_path, variant, partitions):
    assert digests(partitions, tmp_path, VARIANTS[variant]) == FROZEN[variant, partitions]
