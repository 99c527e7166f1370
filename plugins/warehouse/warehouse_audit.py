"""Checks the repository for `xyro audit`: versions, bodies, reference counts and counters agree with each other.

Everything is scanned in the order of its keys, documents beside their versions, bodies and counts beside the sorted
digests of all versions: 24 bytes of memory a version. Every body is unpacked once.
"""

from __future__ import annotations

import heapq
from array import array
from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from xyro.metadata import rows
from xyro.metadata.documents import (
    CountsRow,
    DocumentRow,
    VersionRow,
    digest_of,
    unpack_document,
    unpack_version,
    unpacked,
)
from xyro.service.views.views import View
from xyro.wire.errors import XyroError
from xyro.wire.ids import LocalPage
from xyro.wire.messages import Kind

WIDTH = 16
NO_DOCUMENT = DocumentRow(1, 0, 0)


class _VersionScan:
    """Counts and digests from the scan of all versions."""

    def __init__(self) -> None:
        self.digests = bytearray()
        self.sizes = array("q")
        self.kinds: Counter[str] = Counter()
        self.verdicts: Counter[str] = Counter()
        self.sums: Counter[str] = Counter()

    def version(self, row: VersionRow) -> None:
        self.digests += row.digest
        self.sizes.append(row.size)

    def latest(self, row: VersionRow) -> None:
        self.kinds[row.kind.name] += 1
        self.verdicts[row.verdict.name] += row.kind is Kind.XML
        for name in ("size", "depth", "elements"):
            self.sums[name] += getattr(row, name)

    def bodies(self) -> _Bodies:
        names, first, counts = np.unique(
            np.frombuffer(bytes(self.digests), f"S{WIDTH}"), return_index=True, return_counts=True
        )
        return _Bodies(names.tobytes(), np.array(self.sizes, np.int64)[first], counts)


class _Bodies:
    """The distinct digests of all versions, sorted; what size their bodies have, and how many versions have them."""

    def __init__(self, names: bytes, sizes: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        self.names = names
        self.sizes = sizes
        self.counts = counts

    def __len__(self) -> int:
        return len(self.sizes)

    def beside(self, view: View, family: rows.DigestKey) -> Iterator[tuple[bytes, int | None, bytes | None]]:
        """(digest, its place here, what the family stores of it), by digest; None where one of them lacks it."""
        place = 0
        for key, value in view.store.scan(family.prefix):
            digest = family.split(key)
            while place < len(self) and self._name(place) < digest:
                yield self._name(place), place, None
                place += 1
            here = place < len(self) and self._name(place) == digest
            yield digest, place if here else None, value
            place += here
        for rest in range(place, len(self)):
            yield self._name(rest), rest, None

    def _name(self, place: int) -> bytes:
        return self.names[place * WIDTH : (place + 1) * WIDTH]


def check_repository(view: View) -> Iterator[str]:
    """Yield a sentence for each violation in the repository of one partition."""
    found = _VersionScan()
    yield from _versions(view, found)
    bodies = found.bodies()
    packed = 0
    for digest, place, stored in bodies.beside(view, rows.BODY):
        packed += len(stored or b"")
        if violation := _damage(digest, None if place is None else int(bodies.sizes[place]), stored):
            yield f"body {digest.hex()} {violation}"
    for digest, place, stored in bodies.beside(view, rows.COUNT):
        there, counted_there = 0 if place is None else int(bodies.counts[place]), int.from_bytes(stored or b"", "big")
        if there != counted_there or (place is None) != (stored is None):
            yield f"body {digest.hex()} has {there} versions, {counted_there} were counted"
    yield from _counters(view, found, len(bodies), packed)


def _damage(digest: bytes, size: int | None, stored: bytes | None) -> str:
    if stored is None:
        return "is missing"
    if size is None:
        return "belongs to no version"
    try:
        return "" if digest_of(unpacked(stored, size)) == digest else "is another one: its digest is wrong"
    except XyroError as error:
        return f"cannot be read: {error}"


def _versions(view: View, found: _VersionScan) -> Iterator[str]:
    """Documents belong to pages; their versions are those that they name, without a gap; neighbours differ."""
    document, head, expected = LocalPage(-1), NO_DOCUMENT, 1
    before: VersionRow | None = None
    for page, number, value in _by_page(view):
        if number < 0:
            yield from _ended(document, head, expected)
            document, head, before = page, unpack_document(value), None
            expected = head.first
            if page >= view.n:
                yield f"document of page {page}, which does not exist"
            continue
        row = unpack_version(value)
        found.version(row)
        if page != document or number != expected or number > head.last:
            yield f"document of page {page}: version {number} does not belong there, or one before it is missing"
        elif before is not None and before.digest == row.digest:
            yield f"document of page {page}: versions {number - 1} and {number} are the same"
        before, expected = row, number + 1
        if page == document and number == head.last:
            found.latest(row)
    yield from _ended(document, head, expected)


def _ended(page: LocalPage, head: DocumentRow, expected: int) -> Iterator[str]:
    if head is not NO_DOCUMENT and (not 1 <= head.first <= head.last or expected != head.last + 1):
        yield f"document of page {page}: versions {head.first} to {head.last} are told, they end with {expected - 1}"


def _by_page(view: View) -> Iterator[tuple[LocalPage, int, bytes]]:
    """(page, -1, DocumentRow), then (page, number, VersionRow) of its versions, by page."""
    documents = ((rows.DOCUMENT.split(key), -1, value) for key, value in view.store.scan(rows.DOCUMENT.prefix))
    versions = ((*rows.VERSIONS.split(key), value) for key, value in view.store.scan(rows.VERSIONS.prefix))
    return heapq.merge(documents, versions)


def _counters(view: View, found: _VersionScan, bodies: int, packed: int) -> Iterator[str]:
    counted = CountsRow(
        by_kind=dict(+found.kinds),
        by_verdict=dict(+found.verdicts),
        versions=len(found.sizes),
        bodies=bodies,
        packed=packed,
        size=found.sums["size"],
        depth=found.sums["depth"],
        elements=found.sums["elements"],
    )
    counted_there = view.archive.counts()
    for name in counted.__struct_fields__:
        if getattr(counted_there, name) != getattr(counted, name):
            yield f"repository: {name} is {getattr(counted, name)}, {getattr(counted_there, name)} was counted"
