"""The refreshed pages of some partitions, as `xyro plan` needs them: nodes of a cluster send theirs to another one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from msgspec import Struct, field

from xyro.refresh.calibration import Calibration
from xyro.refresh.expected import RateMixture
from xyro.refresh.population import ChanceWaits, Population


class PlanPart(Struct, frozen=True):
    """A sketch of pages, what is believed behind their rates, and how often changes came beside that."""

    pages: Population = field(default_factory=Population)
    calibration: Calibration = field(default_factory=Calibration)
    believed: RateMixture = field(default_factory=RateMixture)

    def dump(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "pages": self.pages.dump(),
            "chance_waits": self.pages.chance_waits.dump(),
            "calibration": self.calibration.dump(),
            "believed": self.believed.sums.tolist(),
        }

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> PlanPart:
        """Take over what `dump` gave."""
        pages = Population.load(state["pages"], ChanceWaits(**state["chance_waits"]))
        return cls(pages, Calibration.load(state["calibration"]), RateMixture(np.array(state["believed"])))

    @classmethod
    def merged(cls, parts: Iterable[PlanPart]) -> PlanPart:
        """Combine several; a copy."""
        whole = cls()
        for part in parts:
            whole.pages.merge(part.pages)
            whole.calibration.merge(part.calibration)
            whole.believed.merge(part.believed)
        return whole
