"""Rows of a cluster of which a node does not answer: those of the others, then a sentence for each that is away."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from xyro.service.cli.options import tell
from xyro.wire.text import printable

INCOMPLETE = 3
"""exit code of what is shown without the partitions of some nodes"""


class PartialRows:
    """The rows of an answer to a request with `partial=1`, to be gone through once."""

    def __init__(self, rows: Iterable[dict[str, Any]]) -> None:
        self._rows = rows
        self.missing: Sequence[str] = ()
        """a sentence for each node that did not answer, once all rows were taken"""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for row in self._rows:
            if row.keys() == {"missing"}:
                self.missing = row["missing"]
            else:
                yield row

    def tell_missing(self) -> None:
        tell_missing(self.missing)


def tell_missing(missing: Sequence[str]) -> None:
    """Name the nodes that did not answer, and end the command: what was shown is not all."""
    for absence in missing:
        tell(f"! A node of the cluster does not answer: {printable(absence, 500)}.", err=True)
    if missing:
        sys.exit(INCOMPLETE)
