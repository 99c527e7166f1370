"""The sums of the partitions beside each: one pass over all, whatever their number."""

from __future__ import annotations

import pytest

from xyro.plugins.totals.shared_totals import others_of
from xyro.refresh.other_sums import OtherSums
from xyro.refresh.population import Population


def part(number: int) -> OtherSums:
    population = Population()
    for page in range(number + 1):
        population.add(1.0 + number, 0.01 * (page + 1))
    return OtherSums(population, 2.0 * number, 0.5, 0.25, number, 10 * number, 20.0 + number, 1.0 + number)


@pytest.mark.parametrize("partitions", [1, 2, 5])
def test_each_partition_is_told_the_sums_of_all_beside_it(partitions: int) -> None:
    parts = {number: part(number) for number in range(partitions)}
    found = dict(others_of(parts))
    assert found.keys() == parts.keys()
    for number, told in found.items():
        expected = OtherSums()
        for source, sums in parts.items():
            if source != number:
                expected.add(sums)
        assert told.population.pages == expected.population.pages == sum(n + 1 for n in parts if n != number)
        assert (told.population.bins.rate.tolist(), told.population.bins.pages.tolist()) == (
            expected.population.bins.rate.tolist(),
            expected.population.bins.pages.tolist(),
        )
        for name in ("spread", "rate", "promised", "unread", "reads", "gamma", "weight"):
            assert getattr(told, name) == pytest.approx(getattr(expected, name))
