"""The same crawl before and after: orders and exports of a seeded crawl are, byte for byte, those of a commit before.

The digests were last made when more came to be ordered ahead at fast hosts (frontier/discovery.py). Whoever changes an
algorithm on purpose makes them anew and says why; a change of names, files or wiring must not need to.
"""

import pytest

from tests.frontier.seeded_crawl import VARIANTS, digests

FROZEN = {
    ("default", 1): {
        "orders": "cedcc1210629b8787502dfe5ba2bf053",
        "pages": "9292dbb73be08947aec3a8eec4031b5e",
        "links": "fbd4569b71b163add2a7fe2bc7eb3a72",
        "sums": "480 pages, 1811 reads, 1981 orders",
    },
    ("default", 4): {
        "orders": "1594048ba83ae7edced476e14227dbff",
        "pages": "48534544044107c991351c34ce39e794",
        "links": "8016402aaa01185be06e0355ffe4e880",
        "sums": "483 pages, 1973 reads, 2172 orders",
    },
    ("more", 4): {
        "orders": "bb9e9db60e350bc782cda6b5000c30ad",
        "pages": "433d7759241359fb8bd30f8af277d304",
        "links": "af9c14d6090895a92cd0da9c602ab25b",
        "sums": "482 pages, 2005 reads, 2201 orders",
    },
}
"""(settings, partitions) -> what came of it"""


@pytest.mark.parametrize(("variant", "partitions"), FROZEN)
def test_the_same_crawl_as_before(tmp_path, variant, partitions):
    assert digests(partitions, tmp_path, VARIANTS[variant]) == FROZEN[variant, partitions]
