"""Guides the refresh of HTML pages by their interest (P1 5.2) instead of their importance; `xyro rank --keep` writes
it.

DIR/p0000/interest, for each page of the partition a float32: what takes the place of its importance r in
t = K / sqrt(r x change rate), NaN where importance stays (pages that are not HTML, pages met later). Interest is scaled
so that HTML pages weigh together what their importance weighs together; none weighs less than a hundredth of the mean,
so that a page which leads nowhere is not given up.

    magic "XYRI", version u32, partition u32, unused u32, pages u64, xxh3 of the values u64      all little-endian
    values float32[pages]
"""

from __future__ import annotations

import logging
import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from xxhash import xxh3_64_intdigest

from xyro.metadata.states import KIND_MASK, KIND_SHIFT
from xyro.wire.errors import MachineError
from xyro.wire.messages import Kind

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier

NAME, VERSION = "interest", 1
LOOK = 60.0
"""seconds between two looks whether there is a new file"""
LEAST = 0.01
_HEAD = struct.Struct("<4sIIIQQ")
_MAGIC = b"XYRI"
_HTML = int(Kind.HTML) << KIND_SHIFT
Values = npt.NDArray[np.float32]
_log = logging.getLogger("xyro")


def values_of(interest: npt.NDArray[np.float64], importance: npt.NDArray[np.float64], html: npt.NDArray[np.bool_]) -> (
    npt.NDArray[np.float64]
):  # fmt: skip
    """Scale the interest (float64[n]) of HTML pages (bool[n]) to the weight of their importance; NaN elsewhere."""
    values = np.full(interest.size, np.nan)
    mean = float(interest[html].mean()) if html.any() else 0.0
    if mean > 0:
        values[html] = np.maximum(interest[html] / mean, LEAST) * float(importance[html].mean())
    return values


def write(folder: Path, partition: int, values: npt.ArrayLike) -> None:
    """Put DIR/p0000/interest in place: there is the old one or the new one, never a part. MachineError: the disk."""
    data = np.asarray(values, "<f4").tobytes()
    head = _HEAD.pack(_MAGIC, VERSION, partition, 0, len(data) // 4, xxh3_64_intdigest(data))
    fresh = folder / f".{NAME}.new"
    try:
        with fresh.open("wb") as file:
            file.write(head + data)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(folder / NAME)
    except OSError as error:
        raise MachineError(f"{folder / NAME}: {error.strerror or error}: free or mend the disk") from error
    finally:
        fresh.unlink(missing_ok=True)


def read(path: Path, partition: int) -> Values:
    """The values, mapped. ValueError: it is damaged, or another's; OSError: it cannot be read."""
    with path.open("rb") as file:
        head = file.read(_HEAD.size)
    if len(head) < _HEAD.size:
        raise ValueError("it is cut short")
    magic, version, number, _, pages, wanted = _HEAD.unpack(head)
    if (magic, version, number) != (_MAGIC, VERSION, partition):
        raise ValueError(f"it is no interest of version {VERSION} of partition {partition}")
    if path.stat().st_size != _HEAD.size + 4 * pages:
        raise ValueError("it is cut short")
    values: Values = np.memmap(path, "<f4", "r", _HEAD.size) if pages else np.zeros(0, np.float32)
    if xxh3_64_intdigest(values.data) != wanted:
        raise ValueError("its checksum is wrong")
    return values


class Guide:
    """The interest of one partition's pages, read anew when `xyro rank --keep` has written it anew."""

    @classmethod
    def of_node(cls, frontier: Frontier) -> Guide:
        """The guide of a node's pages, which dates them from now on."""
        guide = cls(frontier.partition.directory, frontier.partition.number)
        columns = frontier.columns
        frontier.hooks.importance.append(
            lambda pages, flow, now: guide.weigh(pages, columns["flags"][pages], flow, now)
        )
        return guide

    def __init__(self, folder: Path, partition: int) -> None:
        self.path, self.partition = folder / NAME, partition
        self.values: Values = np.zeros(0, np.float32)
        self._looked = -np.inf
        self._seen: tuple[int, int] | None = None
        self._warned = False

    def weigh(
        self, pages: npt.NDArray[np.int64], flags: npt.NDArray[np.uint32], flow: Sequence[float], now: float
    ) -> list[float]:
        """r of each page: its interest where it is HTML and has one, else `flow`, its importance."""
        if not 0 <= now - self._looked < LOOK:
            self._looked = now
            self._look()
        found = np.array(flow, np.float64)
        inside = np.flatnonzero((pages < self.values.size) & ((flags & KIND_MASK) == _HTML))
        interests = self.values[pages[inside]].astype(np.float64)
        usable = np.isfinite(interests) & (interests > 0)
        found[inside[usable]] = interests[usable]
        weighed: list[float] = found.tolist()
        return weighed

    def _look(self) -> None:
        try:
            status = self.path.stat()
            if (status.st_mtime_ns, status.st_ino) != self._seen:
                self._seen = status.st_mtime_ns, status.st_ino
                self.values = read(self.path, self.partition)
                self._warned = False
        except (OSError, ValueError) as error:
            self.values = np.zeros(0, np.float32)
            if not self._warned:
                self._warned = True
                problem = "is not there" if isinstance(error, FileNotFoundError) else f"is not used: {error}"
                _log.warning(
                    "%s %s: importance guides the refresh; `xyro rank --method interest --keep` writes it anew",
                    self.path,
                    problem,
                )
