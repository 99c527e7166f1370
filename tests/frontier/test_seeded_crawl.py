"""The same crawl before and after: orders and exports of a seeded crawl are, byte for byte, those of a commit before.

The digests were last made when paths with a query, and folders' own pages, came to weigh more against traps
(wire/urls.py, frontier/discovery.py); those of pages when a row came to say what its robots.txt refuses; those of one
partition when a bandwidth that is set came to be spent evenly (frontier/due_queue.py). Whoever
changes an algorithm on purpose makes them anew and says why; a change of names, files or wiring must not need to.
"""

import pytest

from tests.frontier.seeded_crawl import VARIANTS, digests

FROZEN = {
    ("default", 1): {
        "orders": "a0f83d050f360c891f9f7e2f48afb878",
        "pages": "02e08857d75649154c246c2777e50e88",
        "links": "c1385f95722e8308f3550e79716d14eb",
        "sums": "483 pages, 2489 reads, 2691 orders",
    },
    ("default", 4): {
        "orders": "b10267fc83edfb339f56e23675af5789",
        "pages": "39590665ba7d34c758a8e4d83986f850",
        "links": "6b195caea1fbb6d30e3fc586c70ab39d",
        "sums": "480 pages, 1993 reads, 2198 orders",
    },
    ("more", 4): {
        "orders": "7aba73602a93cb8be2dc2193bd38dfa2",
        "pages": "b9f23defa78dc701d5a0ee4182d52a12",
        "links": "e7d1985bb50b21016e0625cb8da628b5",
        "sums": "478 pages, 2046 reads, 2220 orders",
    },
}
"""(settings, partitions) -> what came of it"""


@pytest.mark.parametrize(("variant", "partitions"), FROZEN)
def test_the_same_crawl_as_before(tmp_path, variant, partitions):
    assert digests(partitions, tmp_path, VARIANTS[variant]) == FROZEN[variant, partitions]
