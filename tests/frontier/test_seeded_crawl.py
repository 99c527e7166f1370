"""The same crawl before and after: orders and exports of a seeded crawl are, byte for byte, those of a commit before.

The digests were last made when paths with a query, and folders' own pages, came to weigh more against traps
(wire/urls.py, frontier/discovery.py); those of pages when an interval of importance came to have its own middle
(opic/importance.py), and when `error_bound` came to be what the intervals imply (opic/snapshots.py); those of one
partition when a bandwidth that is set came to be spent evenly (frontier/due_queue.py); those of all when pages came to
be dated anew by priors that have doubled or halved (frontier/redating.py), and when a commit group came to weigh all
its pages before it finds the multiplier once (frontier/revisit_dates.py); those of links when their rows came to have
`stale` (service/views/export.py); those of four partitions when the transfers of a turn came to be applied at once
(frontier/outbox.py). Whoever changes an algorithm on purpose makes them anew and says why; a change of names, files or
wiring must not need to.
"""

import pytest

from tests.frontier.seeded_crawl import VARIANTS, digests

FROZEN = {
    ("default", 1): {
        "orders": "5d87746fd3fa22b022d3a0adce77bc8b",
        "pages": "185f150e0faa26f5e0a74a7ff4616dea",
        "links": "8f5daa6c10e13d35e7ab858aa0c120fa",
        "sums": "483 pages, 2383 reads, 2585 orders",
    },
    ("default", 4): {
        "orders": "6b8e0a58ddd198175cb334bfd22e18a8",
        "pages": "1d83af4143170cfb0dbfca8ad5347d73",
        "links": "efe2d054a7ec44eb5769a015cf13a413",
        "sums": "484 pages, 2463 reads, 2667 orders",
    },
    ("more", 4): {
        "orders": "516ff505350537897bf952fb814ed80f",
        "pages": "092205a8fab78898e965ff48ca548a50",
        "links": "0601abf9e45840e7ea5f3f67557e8275",
        "sums": "481 pages, 2516 reads, 2697 orders",
    },
}
"""(settings, partitions) -> what came of it"""


@pytest.mark.parametrize(("variant", "partitions"), FROZEN)
def test_the_same_crawl_as_before(tmp_path, variant, partitions):
    assert digests(partitions, tmp_path, VARIANTS[variant]) == FROZEN[variant, partitions]
