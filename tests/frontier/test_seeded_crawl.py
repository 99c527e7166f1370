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
looked further ahead of (frontier/look_ahead.py); those of pages when their rows came to have `rate_from`
(service/views/views.py), and when half widths came to be of a page's own movement (opic/snapshots.py).
Whoever changes an algorithm on purpose makes them anew and says why; a change of names, files or wiring must not need
to.
"""

import pytest

from tests.frontier.seeded_crawl import VARIANTS, digests

FROZEN = {
    ("default", 1): {
        "orders": "170b6d21be98b95153a7c2dac8a2b767",
        "pages": "15eb9e732a54747db7c0362d7e74198d",
        "links": "533fb3a5ead38ff134e1f73c4447c390",
        "sums": "484 pages, 2422 reads, 2624 orders",
    },
    ("default", 4): {
        "orders": "823522778932e2a6f1ec83ec8bd91ade",
        "pages": "826c105bbfa7975a6678ce7a8cea740a",
        "links": "c703b9025c01564a5b00eb1efdc0ce67",
        "sums": "480 pages, 2473 reads, 2676 orders",
    },
    ("more", 4): {
        "orders": "374c5f66f3e11f5ee3b624ba98093656",
        "pages": "703764d3207fb9acb545dd0b29ea6d04",
        "links": "30f036016672eb8cb1d94a10dae92d3c",
        "sums": "479 pages, 2520 reads, 2715 orders",
    },
}
"""(settings, partitions) -> what came of it"""


@pytest.mark.long
@pytest.mark.parametrize(("variant", "partitions"), FROZEN)
def test_the_same_crawl_as_before(tmp_path, variant, partitions):
    assert digests(partitions, tmp_path, VARIANTS[variant]) == FROZEN[variant, partitions]
