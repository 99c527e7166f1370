"""The same crawl before and after: orders and exports of a seeded crawl are, byte for byte, those that were frozen.

The digests are of the commit that reads unread pages by score (cash of links over the orders of folder and host), which
orders other pages. Whoever changes an algorithm on purpose makes
them anew and says why; a change of names, files or wiring must not need to.
"""

import pytest

from tests.frontier.seeded_crawl import VARIANTS, digests

FROZEN = {
    ("default", 1): {
        "orders": "0fae746ef89633530c959df70c51615a",
        "pages": "3d7ff88484eacd383618e459f529d6ff",
        "links": "aea1d406bb88da665ec9a0aa7594e4c1",
        "sums": "479 pages, 1882 reads, 2039 orders",
    },
    ("default", 4): {
        "orders": "30f28e81f935aa091f4b06d402fef6c5",
        "pages": "df8a9331485602b0088b4b112e5c8b10",
        "links": "071bcf498e67690d33b0bb5437a66ff9",
        "sums": "480 pages, 1962 reads, 2161 orders",
    },
    ("more", 4): {
        "orders": "38d66b3708e908db410af01bda6105ea",
        "pages": "785224e248d804eb4a2651eb72f03cf1",
        "links": "7c5debc9c3e23629f415196a8f5889b0",
        "sums": "479 pages, 1978 reads, 2176 orders",
    },
}
"""(settings, partitions) -> what came of it"""


@pytest.mark.parametrize(("variant", "partitions"), FROZEN)
def test_the_same_crawl_as_before(tmp_path, variant, partitions):
    assert digests(partitions, tmp_path, VARIANTS[variant]) == FROZEN[variant, partitions]
