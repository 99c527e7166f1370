"""The same crawl before and after: orders and exports of a seeded crawl are, byte for byte, those of a commit before.

The digests were last made when paths with a query, and folders' own pages, came to weigh more against traps
(wire/urls.py, frontier/discovery.py); those of pages when an interval of importance came to have its own middle
(opic/importance.py), and when `error_bound` came to be what the intervals imply (opic/snapshots.py); those of one
partition when a bandwidth that is set came to be spent evenly (frontier/due_queue.py); those of all when pages came to
be dated anew by priors that have doubled or halved (frontier/redating.py), and when a commit group came to weigh all
its pages before it finds the multiplier once (frontier/revisit_dates.py); those of links when their rows came to have
`stale` (service/views/export.py). Whoever
changes an algorithm on purpose makes them anew and says why; a change of names, files or wiring must not need to.
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
        "orders": "63e16557f8fa026552646f5de58ba166",
        "pages": "c4a2b68e229561667168d872a40b1e39",
        "links": "b6bbc3b6acd754411982c52368a46420",
        "sums": "482 pages, 2473 reads, 2675 orders",
    },
    ("more", 4): {
        "orders": "dc5ee8ea9db29192cf8535a8d455d6c8",
        "pages": "31106b59f2ef0b719b7438fbf52a5d4b",
        "links": "5486fe89a8eb7f94b42fdd0b06b89140",
        "sums": "481 pages, 2526 reads, 2722 orders",
    },
}
"""(settings, partitions) -> what came of it"""


@pytest.mark.parametrize(("variant", "partitions"), FROZEN)
def test_the_same_crawl_as_before(tmp_path, variant, partitions):
    assert digests(partitions, tmp_path, VARIANTS[variant]) == FROZEN[variant, partitions]
