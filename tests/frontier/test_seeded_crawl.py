"""The same crawl before and after: orders and exports of a seeded crawl are, byte for byte, those of a commit before.

The digests were last made when change rates became beliefs over three sums (refresh/rate_belief.py). Whoever changes an
algorithm on purpose makes them anew and says why; a change of names, files or wiring must not need to.
"""

import pytest

from tests.frontier.seeded_crawl import VARIANTS, digests

FROZEN = {
    ("default", 1): {
        "orders": "7014418482c54a9e48b764b6a52c859e",
        "pages": "0caf3ac82f16f1ed5aa5ed5c059e701a",
        "links": "4f106518367e37303cec9d647799c54a",
        "sums": "478 pages, 1931 reads, 2105 orders",
    },
    ("default", 4): {
        "orders": "7435d7442e2669bff1b6a4e6595486e5",
        "pages": "91afb1b2f0bc38f119ebd1eb4f7ba65e",
        "links": "debda5d9e19755dee31151417a219e50",
        "sums": "479 pages, 2001 reads, 2203 orders",
    },
    ("more", 4): {
        "orders": "7df3cf567ab045aadd326bbe0749218c",
        "pages": "c47880e716906c8f809e90a90c78f60b",
        "links": "413b77a0e5bdcc01a2966353c63ea200",
        "sums": "481 pages, 2009 reads, 2198 orders",
    },
}
"""(settings, partitions) -> what came of it"""


@pytest.mark.parametrize(("variant", "partitions"), FROZEN)
def test_the_same_crawl_as_before(tmp_path, variant, partitions):
    assert digests(partitions, tmp_path, VARIANTS[variant]) == FROZEN[variant, partitions]
