"""The refreshed pages of some partitions, as `xyro plan` needs them: nodes of a cluster send theirs to another one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from xyro.refresh.calibration import Calibration
from xyro.refresh.expected import Expected
from xyro.refresh.population import ChanceWaits, Population


class PlanPart(Struct, frozen=True):
    """A sketch of pages, how fresh they are believed to be and by which rates, how often changes came beside that."""

    pages: Population = field(default_factory=Population)
    calibration: Calibration = field(default_factory=Calibration)
    expected: Expected = field(default_factory=Expected)
    most_reads: float = math.inf
    """reads a day that politeness allows of the hosts of these pages"""

    def dump(self) -> dict[str, Any]:
        """Return it as plain values, which JSON can tell."""
        return {
            "pages": self.pages.dump(),
            "chance_waits": self.pages.chance_waits.dump(),
            "calibration": self.calibration.dump(),
            "expected": _told(self.expected.dump(), bytes.hex),
            "most_reads": self.most_reads if math.isfinite(self.most_reads) else None,
        }

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> PlanPart:
        """Take over what `dump` gave."""
        pages = Population.load(state["pages"], ChanceWaits(**state["chance_waits"]))
        expected = Expected.load(_told(state["expected"], bytes.fromhex))
        most_reads = state.get("most_reads")  # None: of a node of an older version, too
        most_reads = math.inf if most_reads is None else most_reads
        return cls(pages, Calibration.load(state["calibration"]), expected, most_reads)

    @classmethod
    def merged(cls, parts: Iterable[PlanPart]) -> PlanPart:
        """Combine several; a copy."""
        parts = list(parts)
        limits = [part.most_reads for part in parts if part.pages.pages]
        whole = cls(most_reads=sum(limits) if limits else math.inf)
        for part in parts:
            whole.pages.merge(part.pages)
            whole.calibration.merge(part.calibration)
            whole.expected.merge(part.expected)
        return whole


def _told(state: Mapping[str, Any], how: Callable[[Any], Any]) -> dict[str, Any]:
    """Write or read the packed sums of what Expected dumps: JSON has no bytes."""
    packed = {name: [(*numbers, how(sums)) for *numbers, sums in state[name]] for name in ("sums", "believed")}
    return {**state, **packed}
