"""The same crawl before and after: orders and exports of a seeded crawl are, byte for byte, those of commit 5f9a742.

The digests were made by the code as it was before the house was cut anew. Whoever changes an algorithm on purpose makes
them anew and says why; a change of names, files or wiring must not need to.
"""

import pytest

from tests.frontier.seeded_crawl import VARIANTS, digests

FROZEN = {
    ("default", 1): {
        "orders": "653fbb1f2b916714a45b4ee89b75788e",
        "pages": "12bf5f07ddabcd7d35a0d19caa159b40",
        "links": "553a753e9b6adc688c9341bedb6c1a84",
        "sums": "474 pages, 1741 reads, 1895 orders",
    },
    ("default", 4): {
        "orders": "415d22498d80d3a782ef25508f6cbd8d",
        "pages": "7f689addb1f8538e3044148656ea3581",
        "links": "c22e9e86e7217b9b57b411d167a94cab",
        "sums": "478 pages, 1966 reads, 2165 orders",
    },
    ("more", 4): {
        "orders": "909916624983bee5e8f2a55fa907cb81",
        "pages": "6392b6db2cb9d23bdaa25392e613be09",
        "links": "44d88579cf256bb8a3d6ad99c6adfc75",
        "sums": "480 pages, 1955 reads, 2150 orders",
    },
}
"""(settings, partitions) -> what came of it"""


@pytest.mark.parametrize(("variant", "partitions"), FROZEN)
def test_the_same_crawl_as_before(tmp_path, variant, partitions):
    assert digests(partitions, tmp_path, VARIANTS[variant]) == FROZEN[variant, partitions]
