"""The same crawl before and after: orders and exports of a seeded crawl are, byte for byte, those of a commit before.

The digests were last made when unread pages came to be read by score (frontier/discovery.py). Whoever changes an
algorithm on purpose makes them anew and says why; a change of names, files or wiring must not need to.
"""

import pytest

from tests.frontier.seeded_crawl import VARIANTS, digests

FROZEN = {
    ("default", 1): {
        "orders": "9c5fcfbb1cf35f22d25f35ae515cacdd",
        "pages": "a97938770068d255cbf50d1b0ddd5484",
        "links": "f3081e4db93805d06164f6aee38bf065",
        "sums": "476 pages, 1764 reads, 1925 orders",
    },
    ("default", 4): {
        "orders": "e68299da99fb7cc48a34029ca749bc54",
        "pages": "d7cfa9960c7210af782ec1f685dae269",
        "links": "f06cb0a97ce080b3f8e5f6a5a86a333a",
        "sums": "481 pages, 1981 reads, 2180 orders",
    },
    ("more", 4): {
        "orders": "5cb206d8197309e2b3ebf2221fe5df1d",
        "pages": "3c72d11686fa6727d6c7b30d5de49781",
        "links": "63914c51e74eea605a2cbd0ebbc44882",
        "sums": "477 pages, 1994 reads, 2187 orders",
    },
}
"""(settings, partitions) -> what came of it"""


@pytest.mark.parametrize(("variant", "partitions"), FROZEN)
def test_the_same_crawl_as_before(tmp_path, variant, partitions):
    assert digests(partitions, tmp_path, VARIANTS[variant]) == FROZEN[variant, partitions]
