"""The repository of documents: every body of XML and DTDs that was read, each version of a page, each body once.

    DocumentRow   a page's versions: first ... last         VersionRow   what one version is, and its body's digest
    BODY, COUNT   a body by its digest, and how many versions (of any page of this partition) have it

A body is content-addressed: stored with its first version, deleted with its last. All rows go into the commit group of
the turn that stored them, so a crash leaves whole documents or none. Counters for `xyro status` go along (CountsRow).

What always holds (`xyro audit`): versions are numbered without a gap; neighbours differ; a body's count is the number
of versions that have it; a body without a version does not exist.
"""

from __future__ import annotations

import hashlib
import itertools
import zlib
from collections import Counter
from collections.abc import Callable, Iterator

import msgspec

from xyro.metadata import rows
from xyro.metadata.partition import Partition
from xyro.metadata.rows import Row
from xyro.wire.errors import InputError, MachineError
from xyro.wire.ids import LocalPage
from xyro.wire.messages import Document, Kind, Verdict

DAY = 86_400.0
COMPARED = 4 << 20
"""bytes of a body up to which its change is counted: 20 ms at most, 0.3 ms for 20 kB"""
_COUNTS = rows.META.key("documents")
Get = Callable[[bytes], bytes | None]


class DocumentRow(Row, frozen=True):
    """The stored versions of a page's document: first, first + 1 ... last."""

    first: int
    """1 or more; what came before was dropped by retention"""
    last: int
    epoch: int
    """lease of the last read that was stored: an older one changes nothing"""


class VersionRow(Row, frozen=True):
    """One version of a page's document: its body's digest, and what loading it showed (wire.messages.Document)."""

    digest: bytes
    """16 bytes: BLAKE2b-128 of the body"""
    read_at: float
    """when this version was first read; it held until the next version's"""
    kind: Kind = Kind.XML
    verdict: Verdict = Verdict.NO_GRAMMAR
    problems: tuple[str, ...] = ()
    format: str = ""
    root: str = ""
    public_id: str = ""
    grammars: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    size: int = 0
    """bytes of the body as it was read"""
    packed: int = 0
    """bytes of the body as it is stored"""
    depth: int = 0
    elements: int = 0
    tags: int = 0
    mime: str = ""
    charset: str = ""
    changed: int = 0
    """bytes that differ from the version before (documents.changed_bytes); 0 of a first one, -1 where not counted"""


class CountsRow(Row, frozen=True):
    """Counters of a partition's repository, so that nobody has to scan it for them. `latest` versions count."""

    by_kind: dict[str, int] = msgspec.field(default_factory=dict)
    """documents by name of their kind: XML, DTD"""
    by_verdict: dict[str, int] = msgspec.field(default_factory=dict)
    """XML documents by name of their verdict"""
    versions: int = 0
    bodies: int = 0
    packed: int = 0
    """bytes of all bodies as they are stored"""
    size: int = 0
    """bytes of all latest versions as they were read"""
    depth: int = 0
    """sum over the latest versions"""
    elements: int = 0


unpack_document = rows.reader(DocumentRow)
unpack_version = rows.reader(VersionRow)
unpack_counts = rows.reader(CountsRow)


def digest_of(body: bytes) -> bytes:
    """BLAKE2b-128: the name of a body."""
    return hashlib.blake2b(body, digest_size=16).digest()


class Archive:
    """Reading, through any `get`: a partition's (what the open group put included) or a snapshot's. Pages are local."""

    def __init__(self, get: Get) -> None:
        self._get = get

    def head(self, page: LocalPage) -> DocumentRow | None:
        """Return the range of the page's versions; None: no document of it is kept."""
        found = self._get(rows.DOCUMENT.key(page))
        return None if found is None else unpack_document(found)

    def version(self, page: LocalPage, number: int) -> VersionRow | None:
        found = self._get(rows.VERSIONS.key(page, number))
        return None if found is None else unpack_version(found)

    def latest(self, page: LocalPage) -> VersionRow | None:
        head = self.head(page)
        return None if head is None else self.there(page, head.last)

    def versions(self, page: LocalPage) -> Iterator[tuple[int, VersionRow]]:
        """(number, row), oldest first."""
        head = self.head(page)
        if head is not None:
            for number in range(head.first, head.last + 1):
                yield number, self.there(page, number)

    def body(self, page: LocalPage, version: int | None = None) -> bytes | None:
        """The body as it was read, of the latest version if none is named. None: no such page or version."""
        row = self.latest(page) if version is None else self.version(page, version)
        return None if row is None else unpacked(self.packed(row), row.size)

    def packed(self, row: VersionRow) -> bytes:
        """A version's body as it is stored. MachineError: it is not there."""
        found = self._get(rows.BODY.key(row.digest))
        if found is None:
            raise MachineError(f"damaged store: body {row.digest.hex()} is missing: restore the directory from a copy")
        return found

    def counts(self) -> CountsRow:
        found = self._get(_COUNTS)
        return CountsRow() if found is None else unpack_counts(found)

    def there(self, page: LocalPage, number: int) -> VersionRow:
        """A version that the page's DocumentRow names. MachineError: it is missing."""
        row = self.version(page, number)
        if row is None:
            raise MachineError(f"damaged store: page {page} lacks version {number}: run `xyro audit`, restore a copy")
        return row


class Documents(Archive):
    """The repository of one partition; what changes it belongs into a turn (Partition.begin ... seal).

    `versions`: most versions kept of a page, 0 = all. `days`: versions are kept until they have been replaced for so
    many days, 0 = for ever; the latest one always stays.
    """

    def __init__(self, partition: Partition, versions: int = 0, days: float = 0.0) -> None:
        super().__init__(partition.get)
        self._partition = partition
        self._max_versions = versions
        self._days = days

    def store(self, page: LocalPage, document: Document) -> bool:
        """Keep what was read; True if a new version began.

        The body of the latest version again (its grammar changed, or the message came twice) only renews what loading
        it showed. A read older than the one that was stored last changes nothing.
        """
        head = self.head(page)
        if head is None:
            return self._append(page, None, None, document)
        latest = self.there(page, head.last)
        if document.epoch < head.epoch:
            return False
        if document.digest != latest.digest:
            return self._append(page, head, latest, document)
        renewed = _row(document, latest.read_at, latest.changed, latest.packed)
        if renewed != latest:
            self._partition.put(rows.VERSIONS.key(page, head.last), rows.pack(renewed))
            self._count(latest, renewed)
        if document.epoch != head.epoch:
            self._partition.put(rows.DOCUMENT.key(page), rows.pack(msgspec.structs.replace(head, epoch=document.epoch)))
        return False

    def copy(self, source: Archive, page: LocalPage) -> bool:
        """Take over all versions of a page that has none here. False, and nothing is: one of them, or its body, is
        damaged in the source."""
        try:
            head = source.head(page)
            versions = list(source.versions(page))
            bodies = [source.packed(row) for _, row in versions]
            names = [digest_of(unpacked(body, row.size)) for body, (_, row) in zip(bodies, versions, strict=True)]
        except (MachineError, InputError):
            return False
        if head is None or not versions or names != [row.digest for _, row in versions]:
            return False
        if any(name == following for name, following in itertools.pairwise(names)):
            return False
        for (number, row), body in zip(versions, bodies, strict=True):
            self._refer(row.digest, body)
            self._partition.put(rows.VERSIONS.key(page, number), rows.pack(row))
            self._tally(versions=1)
        self._partition.put(rows.DOCUMENT.key(page), rows.pack(head))
        self._count(None, versions[-1][1])
        return True

    def forget(self, page: LocalPage) -> None:
        """Drop all versions of the page."""
        head = self.head(page)
        if head is None:
            return
        latest = self.there(page, head.last)
        for number in range(head.first, head.last + 1):
            self._drop(page, number)
        self._partition.delete(rows.DOCUMENT.key(page))
        self._count(latest, None)

    def _append(self, page: LocalPage, head: DocumentRow | None, latest: VersionRow | None, document: Document) -> bool:
        changed = 0 if latest is None else self._changed(latest, document)
        packed = self._refer(document.digest, document.packed)
        row = _row(document, document.read_at, changed, packed)
        number = head.last + 1 if head else 1
        self._partition.put(rows.VERSIONS.key(page, number), rows.pack(row))
        first = self._retain(page, head.first, number, document.read_at) if head else number
        self._partition.put(rows.DOCUMENT.key(page), rows.pack(DocumentRow(first, number, document.epoch)))
        self._count(latest, row, versions=1)
        return True

    def _changed(self, latest: VersionRow, document: Document) -> int:
        if max(latest.size, document.size) > COMPARED:
            return -1
        before = unpacked(self.packed(latest), latest.size)
        return changed_bytes(before, unpacked(document.packed, document.size))

    def _retain(self, page: LocalPage, first: int, last: int, now: float) -> int:
        """Drop the versions that are kept no longer; the first that stays."""
        keep = max(first, last - self._max_versions + 1) if self._max_versions else first
        while self._days and keep < last and self.there(page, keep + 1).read_at < now - self._days * DAY:
            keep += 1
        for number in range(first, keep):
            self._drop(page, number)
        return keep

    def _drop(self, page: LocalPage, number: int) -> None:
        row = self.there(page, number)
        self._partition.delete(rows.VERSIONS.key(page, number))
        left = self._references(row.digest) - 1
        if left:
            self._partition.put(rows.COUNT.key(row.digest), left.to_bytes(4, "big"))
            self._tally(versions=-1)
            return
        self._partition.delete(rows.COUNT.key(row.digest))
        self._partition.delete(rows.BODY.key(row.digest))
        self._tally(versions=-1, bodies=-1, packed=-row.packed)

    def _refer(self, digest: bytes, packed: bytes) -> int:
        """One more version has this body; stored if it is the first one. -> bytes as it is stored"""
        there = self._references(digest)
        self._partition.put(rows.COUNT.key(digest), (there + 1).to_bytes(4, "big"))
        if there:
            stored = self._get(rows.BODY.key(digest))
            return len(stored or b"")
        self._partition.put(rows.BODY.key(digest), packed)
        self._tally(bodies=1, packed=len(packed))
        return len(packed)

    def _references(self, digest: bytes) -> int:
        found = self._get(rows.COUNT.key(digest))
        return 0 if found is None else int.from_bytes(found, "big")

    # -- counters ------------------------------------------------------------------------------------------------

    def _count(self, old: VersionRow | None, new: VersionRow | None, versions: int = 0) -> None:
        """The latest version of a page was `old` and is `new`."""
        counts = self.counts()
        kinds, verdicts = Counter(counts.by_kind), Counter(counts.by_verdict)
        size, depth, elements = counts.size, counts.depth, counts.elements
        for row, sign in ((old, -1), (new, 1)):
            if row is not None:
                kinds[row.kind.name] += sign
                verdicts[row.verdict.name] += sign * (row.kind is Kind.XML)
                size, depth, elements = size + sign * row.size, depth + sign * row.depth, elements + sign * row.elements
        self._put_counts(
            msgspec.structs.replace(
                counts,
                by_kind=dict(+kinds),
                by_verdict=dict(+verdicts),
                versions=counts.versions + versions,
                size=size,
                depth=depth,
                elements=elements,
            )
        )

    def _tally(self, versions: int = 0, bodies: int = 0, packed: int = 0) -> None:
        counts = self.counts()
        self._put_counts(
            msgspec.structs.replace(
                counts,
                versions=counts.versions + versions,
                bodies=counts.bodies + bodies,
                packed=counts.packed + packed,
            )
        )

    def _put_counts(self, counts: CountsRow) -> None:
        self._partition.put(_COUNTS, rows.pack(counts))


def _row(document: Document, read_at: float, changed: int, packed: int) -> VersionRow:
    return VersionRow(
        digest=document.digest, read_at=read_at, kind=document.kind, verdict=document.verdict,
        problems=document.problems, format=document.format, root=document.root, public_id=document.public_id,
        grammars=document.grammars, parts=document.parts, size=document.size, packed=packed, depth=document.depth,
        elements=document.elements, tags=document.tags, mime=document.mime, charset=document.charset, changed=changed,
    )  # fmt: skip


def unpacked(packed: bytes, size: int) -> bytes:
    """The body of this size; never more bytes, whatever the stored ones would unpack to. MachineError: it is not."""
    inflate = zlib.decompressobj()
    try:
        body = inflate.decompress(packed, size + 1)
    except zlib.error as error:
        raise MachineError(
            f"damaged store: a body does not unpack ({error}): restore the directory from a copy"
        ) from None
    if len(body) != size:
        raise MachineError(f"damaged store: a body is not of {size:,} bytes: restore the directory from a copy")
    return body


def changed_bytes(old: bytes, new: bytes) -> int:
    """About how many bytes of the longer one differ: without common ends, the tags and texts that only one side has.

    0 exactly for equal bodies; symmetric; at most the longer length. What only moved counts little.
    """
    head = _common(old, new)
    old, new = old[head:], new[head:]
    tail = _common(old[::-1], new[::-1])
    old, new = old[: len(old) - tail], new[: len(new) - tail]
    before, after = Counter(old.split(b">")), Counter(new.split(b">"))
    gone, come = _weight(before - after), _weight(after - before)
    return min(max(gone, come, 1), max(len(old), len(new)))


def _common(first: bytes, other: bytes) -> int:
    """Length of the common beginning, by halving."""
    low, high = 0, min(len(first), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _weight(pieces: Counter[bytes]) -> int:
    """Bytes of the pieces, each with its `>`."""
    return sum((len(piece) + 1) * count for piece, count in pieces.items())
