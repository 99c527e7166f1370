"""The same crawl before and after: orders and exports of a seeded crawl are, byte for byte, those of a commit before.

The digests were last made when paths with a query, and folders' own pages, came to weigh more against traps
(wire/urls.py, frontier/discovery.py); those of pages when an interval of importance came to have its own middle
(opic/importance.py), and when `error_bound` came to be what the intervals imply (opic/snapshots.py); those of one
partition when a bandwidth that is set came to be spent evenly (frontier/due_queue.py); those of all when pages came to
be dated anew by priors that have doubled or halved (frontier/redating.py), and when a commit group came to weigh all
its pages before it finds the multiplier once (frontier/revisit_dates.py); those of links when their rows came to have
`stale` (service/views/export.py); those of four partitions when the transfers of a turn came to be applied at once
(frontier/outbox.py); those of all when pages that other hosts link to came to be read before others
(frontier/discovery.py). Whoever changes an algorithm on purpose makes them anew and says why; a change of names, files
or wiring must not need to.
"""

import pytest

from tests.frontier.seeded_crawl import VARIANTS, digests

FROZEN = {
    ("default", 1): {
        "orders": "5a6f65bd00aa2dff0db59b604ec8f17b",
        "pages": "5a5f4b99de9249a182cea9ba5e999a87",
        "links": "7d003d757a2d46760f4f11be2526f7d6",
        "sums": "480 pages, 2449 reads, 2651 orders",
    },
    ("default", 4): {
        "orders": "9728549454e44b58c52d731be4c191a8",
        "pages": "56b426c36e008358c65a6e992747e87c",
        "links": "9d8d001dc6e9d5e868e72a1393d871fd",
        "sums": "485 pages, 2476 reads, 2678 orders",
    },
    ("more", 4): {
        "orders": "1b99674a5b07412e7083520278e61e37",
        "pages": "9ebd29ed98c8c2331b54a7285ec9cbf7",
        "links": "9ce28edc19f6d762cb252bdd0aec47f5",
        "sums": "483 pages, 2516 reads, 2713 orders",
    },
}
"""(settings, partitions) -> what came of it"""


@pytest.mark.parametrize(("variant", "partitions"), FROZEN)
def test_the_same_crawl_as_before(tmp_path, variant, partitions):
    assert digests(partitions, tmp_path, VARIANTS[variant]) == FROZEN[variant, partitions]
