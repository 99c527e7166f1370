"""The same crawl before and after: orders and exports of a seeded crawl are, byte for byte, those of a commit before.

The digests were last made when paths with a query, and folders' own pages, came to weigh more against traps
(wire/urls.py, frontier/discovery.py); those of pages when a row came to say what its robots.txt refuses; those of one
partition when a bandwidth that is set came to be spent evenly (frontier/due_queue.py); those of all when pages came to
be dated anew by priors that have doubled or halved (frontier/redating.py). Whoever
changes an algorithm on purpose makes them anew and says why; a change of names, files or wiring must not need to.
"""

import pytest

from tests.frontier.seeded_crawl import VARIANTS, digests

FROZEN = {
    ("default", 1): {
        "orders": "26dfd69f74390808d1b3694674ab08e4",
        "pages": "8b7d1bea07776ef4a30d36ccecdfe4e5",
        "links": "6c661027d836752ec95824dac409c5e3",
        "sums": "483 pages, 2445 reads, 2648 orders",
    },
    ("default", 4): {
        "orders": "e979c4b5fd1d0d1ea6a602cbfd3d5323",
        "pages": "0bbc8bc0951f0419b665b9685d99d359",
        "links": "a63bd5f35df2b3ec4ba967e325c40d5b",
        "sums": "483 pages, 2485 reads, 2688 orders",
    },
    ("more", 4): {
        "orders": "a3730ecac910fc738ad2e100cc77f810",
        "pages": "881fc370e28098739a2d1e3bedde75a0",
        "links": "c4eadc3cc0d9e9e174cb345339b3ac10",
        "sums": "481 pages, 2533 reads, 2729 orders",
    },
}
"""(settings, partitions) -> what came of it"""


@pytest.mark.parametrize(("variant", "partitions"), FROZEN)
def test_the_same_crawl_as_before(tmp_path, variant, partitions):
    assert digests(partitions, tmp_path, VARIANTS[variant]) == FROZEN[variant, partitions]
