"""The sums of the partitions beside one: with them each plans as if it knew all pages (frontier/bandwidth.py)."""

from __future__ import annotations

from dataclasses import dataclass, field

from xyro.refresh.population import Population


@dataclass(slots=True)
class OtherSums:
    """Sums over some partitions, as each told them last."""

    population: Population = field(default_factory=Population)
    spread: float = 0.0
    """S"""
    rate: float = 0.0
    """reads a second, as measured"""
    promised: float = 0.0
    """of them: reads of pages with a deadline"""
    unread: int = 0
    """pages never read that wait"""
    reads: int = 0
    gamma: float = 0.0
    """mean, each partition weighed by its reads and one more"""
    weight: float = 0.0
    """of that mean"""
    importance: float = 0.0
    """of all known pages, page-units a turnover"""
    page_count: int = 0
    """these pages"""

    def add(self, other: OtherSums) -> None:
        """Take a partition in."""
        self.population.merge(other.population)
        total = self.weight + other.weight
        self.gamma = (self.weight * self.gamma + other.weight * other.gamma) / total if total else 0.0
        self.weight = total
        for name in ("spread", "rate", "promised", "unread", "reads", "importance", "page_count"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
