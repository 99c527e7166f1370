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
(service/views/views.py), and when half widths came to be of a page's own movement (opic/snapshots.py); those of all
when what a bandwidth leaves over came to be spent by intervals, not by dates (frontier/due_queue.py); those of four
partitions when pages before a full host came to be chosen by intervals, too (frontier/leases.py), and few to be ordered
of a host that has not answered yet (frontier/look_ahead.py).
Whoever changes an algorithm on purpose makes them anew and says why; a change of names, files or wiring must not need
to.
"""

import pytest

from tests.frontier.seeded_crawl import VARIANTS, digests

FROZEN = {
    ("default", 1): {
        "orders": "26af98abc87284febf0cf3a39a22dbd8",
        "pages": "fa1f23a7d371e33fbf9278878699d56f",
        "links": "2f68759d5a64d92fa3167c6a2ef198d8",
        "sums": "483 pages, 2421 reads, 2624 orders",
    },
    ("default", 4): {
        "orders": "8b0f712d62407427a77efe54334cc220",
        "pages": "e66d37e817b047e7860fe1fd877ce96b",
        "links": "f737843686ef52a888addcb0c05744d2",
        "sums": "484 pages, 2484 reads, 2693 orders",
    },
    ("more", 4): {
        "orders": "c3da83c3619342fdc4529d2474d153e9",
        "pages": "54f09c73ce0c3a32a68d5c37620610db",
        "links": "39712937a1ef3895cef35beea64c874f",
        "sums": "482 pages, 2513 reads, 2682 orders",
    },
}
"""(settings, partitions) -> what came of it"""


@pytest.mark.long
@pytest.mark.parametrize(("variant", "partitions"), FROZEN)
def test_the_same_crawl_as_before(tmp_path, variant, partitions):
    assert digests(partitions, tmp_path, VARIANTS[variant]) == FROZEN[variant, partitions]
