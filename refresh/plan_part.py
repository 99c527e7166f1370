"""The refreshed pages of some partitions, as `xyro plan` needs them: nodes of a cluster send theirs to another one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from xyro.refresh.calibration import Calibration
from xyro.refresh.population import ChanceWaits, Population


class PlanPart(Struct, frozen=True):
    """A sketch of pages, and how often changes came beside their rates."""

    pages: Population = field(default_factory=Population)
    calibration: Calibration = field(default_factory=Calibration)

    def dump(self) -> dict[str, Any]:
        """Return it as plain values."""
        waits, calibration = self.pages.chance_waits.dump(), self.calibration.dump()
        return {"pages": self.pages.dump(), "chance_waits": waits, "calibration": calibration}

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> PlanPart:
        """Take over what `dump` gave."""
        pages = Population.load(state["pages"], ChanceWaits(**state["chance_waits"]))
        return cls(pages, Calibration.load(state["calibration"]))

    @classmethod
    def merged(cls, parts: Iterable[PlanPart]) -> PlanPart:
        """Combine several; a copy."""
        whole = cls()
        for part in parts:
            whole.pages.merge(part.pages)
            whole.calibration.merge(part.calibration)
        return whole
