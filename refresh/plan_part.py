"""The refreshed pages of some partitions, as `xyro plan` needs them: nodes of a cluster send theirs to another one."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

import msgpack
from msgspec import Struct, field

from xyro.refresh.calibration import Calibration
from xyro.refresh.expected import Expected
from xyro.refresh.population import ChanceWaits, Population


class PlanPart(Struct, frozen=True):
    """A sketch of pages, how fresh they are believed to be and by which rates, how often changes came beside that."""

    pages: Population = field(default_factory=Population)
    calibration: Calibration = field(default_factory=Calibration)
    expected: Expected = field(default_factory=Expected)

    def dump(self) -> dict[str, Any]:
        """Return it as plain values, which JSON can tell."""
        return {
            "pages": self.pages.dump(),
            "chance_waits": self.pages.chance_waits.dump(),
            "calibration": self.calibration.dump(),
            "expected": base64.b64encode(msgpack.packb(self.expected.dump())).decode(),
        }

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> PlanPart:
        """Take over what `dump` gave."""
        pages = Population.load(state["pages"], ChanceWaits(**state["chance_waits"]))
        expected = Expected.load(msgpack.unpackb(base64.b64decode(state["expected"])))
        return cls(pages, Calibration.load(state["calibration"]), expected)

    @classmethod
    def merged(cls, parts: Iterable[PlanPart]) -> PlanPart:
        """Combine several; a copy."""
        whole = cls()
        for part in parts:
            whole.pages.merge(part.pages)
            whole.calibration.merge(part.calibration)
            whole.expected.merge(part.expected)
        return whole
