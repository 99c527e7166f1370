"""Every key of a partition's store in one table: a prefix byte, then big-endian numbers: order lives in the key.

    prefix  key after the prefix            row (rows.py, links.py)             read in order to
    m META     name                         facts, scalars, counters            -
    u MAP      u32 page                     the page's canonical URL            rebuild the fingerprint table; export
    x CLASH    URL (bytes)                  u32 page: another URL owns          -
                                            this URL's fingerprint
    l LINK     u32 page                     Link-Data                           rank offline
    r REFRESH  u32 page                     Refresh-Data                        export
    s STATUS   u32 page                     a load that waits (Status-Data)     resume the waiting loads
    w WAITING  u32 page                     its body, packed: once it is wanted audit
    h HOST     u32 host                     politeness and hold of a host       restore politeness
    e WANTED   u32 page                     a page that is wanted               order it again
    j JOURNAL  u64 record                   after-images of the hot columns     replay from the newest snapshot on
    o OUTBOX   u16 partition, u64 number    a CashTransfer not yet acknowledged send again what one partition lacks
    i INBOX    u16 partition                u64: last number applied            -
    d DOCUMENT u32 page                     which versions there are            export; query
    v VERSION  u32 page, u32 number         what one version is                 list versions
    b BODY     16 bytes digest              a body, packed: stored once         audit
    c COUNT    16 bytes digest              u32: versions that have this body   audit
    p PLAN     u32 bin                      u32: refreshed pages in this bin    plan
                                            (refresh/population.py)
    q PUBLISHED u32 page                    a claim not yet borne out           take up what sites published
    k SUBSCRIPTION u32 number               who is told of which pages, when    take up the subscriptions
    y KEYED    u32 number                   URLs whose key is to be checked     ask for the keys again
    t TOPIC    u32 number                   a feed that a hub tells us of       renew the leases

Pages and hosts are local numbers of the partition (the low 32 bits of a page id). A number outside its width is a
ValueError (ours); a stored key that is not of its layout is a MachineError (the disk's).
"""

from __future__ import annotations

from xyro.wire.errors import MachineError


class _Layout:
    """A prefix and what follows it. `prefix` scans the whole family."""

    __slots__ = ("prefix",)

    def __init__(self, prefix: bytes) -> None:
        self.prefix = prefix

    def _tail(self, key: bytes, width: int | None = None) -> bytes:
        """What follows the prefix, `width` bytes of it if given."""
        tail = key[1:]
        if key[:1] != self.prefix or (width is not None and len(tail) != width):
            raise MachineError(f"damaged store: {key[:40]!r} is not a key of family {self.prefix.decode()!r}")
        return tail


class NumberKey(_Layout):
    """prefix + one number of `width` bytes."""

    __slots__ = ("width",)

    def __init__(self, prefix: bytes, width: int) -> None:
        super().__init__(prefix)
        self.width = width

    def key(self, number: int) -> bytes:
        try:
            return self.prefix + number.to_bytes(self.width, "big")
        except OverflowError:
            raise _too_wide(number, self.width) from None

    def split(self, key: bytes) -> int:
        return int.from_bytes(self._tail(key, self.width), "big")


class PairKey(_Layout):
    """prefix + u16 partition + u64 number: per partition in the order of the numbers."""

    __slots__ = ()

    def key(self, partition: int, number: int) -> bytes:
        try:
            return self.prefix + partition.to_bytes(2, "big") + number.to_bytes(8, "big")
        except OverflowError:
            raise ValueError(f"partition {partition} needs 0..65,535, number {number} 0..2^64 - 1") from None

    def split(self, key: bytes) -> tuple[int, int]:
        tail = self._tail(key, 10)
        return int.from_bytes(tail[:2], "big"), int.from_bytes(tail[2:], "big")

    def prefix_of(self, partition: int) -> bytes:
        """The prefix that scans one partition's numbers."""
        return self.key(partition, 0)[:3]


class VersionKey(_Layout):
    """prefix + u32 page + u32 number: a page's versions in their order."""

    __slots__ = ()

    def key(self, page: int, number: int) -> bytes:
        try:
            return self.prefix + page.to_bytes(4, "big") + number.to_bytes(4, "big")
        except OverflowError:
            raise ValueError(f"page {page} and version {number} need 0..2^32 - 1") from None

    def split(self, key: bytes) -> tuple[int, int]:
        tail = self._tail(key, 8)
        return int.from_bytes(tail[:4], "big"), int.from_bytes(tail[4:], "big")


class DigestKey(_Layout):
    """prefix + digest of 16 bytes: no order that means anything."""

    __slots__ = ()

    def key(self, digest: bytes) -> bytes:
        if len(digest) != 16:
            raise ValueError(f"a digest has 16 bytes, not {len(digest)}")
        return self.prefix + digest

    def split(self, key: bytes) -> bytes:
        return self._tail(key, 16)


class TextKey(_Layout):
    """prefix + text (UTF-8)."""

    __slots__ = ()

    def key(self, text: str) -> bytes:
        return self.prefix + text.encode()

    def split(self, key: bytes) -> str:
        try:
            return self._tail(key).decode()
        except UnicodeDecodeError:
            raise MachineError(f"damaged store: key {key[:40]!r} is not UTF-8") from None


def _too_wide(number: int, width: int) -> ValueError:
    return ValueError(f"{number} does not fit in an unsigned number of {width} bytes")


META = TextKey(b"m")
MAP = NumberKey(b"u", 4)
CLASH = TextKey(b"x")
LINK = NumberKey(b"l", 4)
REFRESH = NumberKey(b"r", 4)
STATUS = NumberKey(b"s", 4)
WAITING = NumberKey(b"w", 4)
HOST = NumberKey(b"h", 4)
WANTED = NumberKey(b"e", 4)
JOURNAL = NumberKey(b"j", 8)
OUTBOX = PairKey(b"o")
INBOX = NumberKey(b"i", 2)
DOCUMENT = NumberKey(b"d", 4)
VERSION = VersionKey(b"v")
BODY = DigestKey(b"b")
COUNT = DigestKey(b"c")
PLAN = NumberKey(b"p", 4)
PUBLISHED = NumberKey(b"q", 4)
SUBSCRIPTION = NumberKey(b"k", 4)
KEYED = NumberKey(b"y", 4)
TOPIC = NumberKey(b"t", 4)

LAYOUTS: tuple[NumberKey | PairKey | TextKey | VersionKey | DigestKey, ...] = (
    META, MAP, CLASH, LINK, REFRESH, STATUS, WAITING, HOST, WANTED, JOURNAL, OUTBOX, INBOX,
    DOCUMENT, VERSION, BODY, COUNT, PLAN,
    PUBLISHED, SUBSCRIPTION, KEYED, TOPIC,
)  # fmt: skip
