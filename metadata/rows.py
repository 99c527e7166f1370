"""Every row of a partition's store: the layout of its key, and its value <-> bytes.

Keys are a prefix byte, then big-endian numbers: order lives in the key.

    prefix  key after the prefix            row                                 read in order to
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
    a STANDING u8 kind, u32 number          orders that a host or folder was    order discovery (hosts.py)
                                            given
    C COST     u32 host                     requests, bytes, seconds so far     tell what a host costs
    f DOMAIN   registrable domain           what its standing lets it introduce admit links (hosts.py)
    g WAIT     u32 page                     links that wait for standing        admit them (frontier/pages.py)
    z BIRTHS   u32 number                   scalars of the virtual page at the  tell cash that came over links
                                            birth of pages (opic/cash.py)
    n CHANGE   u64 number                   a change of a page                  follow the changes
    N SINK     name                         how far a sink of changes has come  take up the sinks
    P FAULTS   u32 page                     what plug-ins failed at, last read  explain

Pages and hosts are local numbers of the partition (the low 32 bits of a page id). A number outside its width is a
ValueError (ours); a stored key that is not of its layout is a MachineError (the disk's).

Values are MessagePack lists that begin with the number of the format (version.py); msgspec checks every type on the way
in: 0.25 us out, 0.6 us in. A row of another number is an InputError with the mend, one of the right number and the
wrong shape a MachineError. To change a layout: append a field with a default (older rows still read, the new field
takes its default), or raise the number and convert (format1.py). Plug-ins define rows of their own by `Row` and
`reader`, documents.py those of documents. Map-Data and Link-Data are bare bytes, as there is one row a known URL.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from xyro.metadata.version import VERSION
from xyro.refresh.rate_belief import Onset, PageBelief, RatePrior
from xyro.refresh.rate_sums import RateSums
from xyro.wire.errors import InputError, MachineError
from xyro.wire.ids import LocalPage
from xyro.wire.messages import MAX_LINKS, Kind, Priority

_PAGE = np.dtype("<u4")
_N = TypeVar("_N", bound=int)

# Keys


class _Layout:
    """A prefix and what follows it. `prefix` scans the whole family."""

    __slots__ = ("prefix",)

    def __init__(self, prefix: bytes) -> None:
        self.prefix = prefix

    def _tail(self, key: bytes, width: int | None = None) -> bytes:
        """Return the bytes after the prefix, `width` bytes of it if given."""
        tail = key[1:]
        if key[:1] != self.prefix or (width is not None and len(tail) != width):
            raise MachineError(f"damaged store: {key[:40]!r} is not a key of family {self.prefix.decode()!r}")
        return tail


class NumberKey(_Layout, Generic[_N]):
    """prefix + one number of `width` bytes; the parameter says what is numbered."""

    __slots__ = ("width",)

    def __init__(self, prefix: bytes, width: int) -> None:
        super().__init__(prefix)
        self.width = width

    def key(self, number: _N) -> bytes:
        try:
            return self.prefix + number.to_bytes(self.width, "big")
        except OverflowError:
            raise ValueError(f"{number} does not fit in an unsigned number of {self.width} bytes") from None

    def split(self, key: bytes) -> _N:
        return cast("_N", int.from_bytes(self._tail(key, self.width), "big"))


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

    def key(self, page: LocalPage, number: int) -> bytes:
        try:
            return self.prefix + page.to_bytes(4, "big") + number.to_bytes(4, "big")
        except OverflowError:
            raise ValueError(f"page {page} and version {number} need 0..2^32 - 1") from None

    def split(self, key: bytes) -> tuple[LocalPage, int]:
        tail = self._tail(key, 8)
        return LocalPage(int.from_bytes(tail[:4], "big")), int.from_bytes(tail[4:], "big")


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


META = TextKey(b"m")
MAP = NumberKey[LocalPage](b"u", 4)
CLASH = TextKey(b"x")
LINK = NumberKey[LocalPage](b"l", 4)
REFRESH = NumberKey[LocalPage](b"r", 4)
STATUS = NumberKey[LocalPage](b"s", 4)
WAITING = NumberKey[LocalPage](b"w", 4)
HOST = NumberKey[int](b"h", 4)
WANTED = NumberKey[LocalPage](b"e", 4)
JOURNAL = NumberKey[int](b"j", 8)
OUTBOX = PairKey(b"o")
INBOX = NumberKey[int](b"i", 2)
DOCUMENT = NumberKey[LocalPage](b"d", 4)
VERSIONS = VersionKey(b"v")
BODY = DigestKey(b"b")
COUNT = DigestKey(b"c")
PLAN = NumberKey[int](b"p", 4)
PUBLISHED = NumberKey[LocalPage](b"q", 4)
SUBSCRIPTION = NumberKey[int](b"k", 4)
KEYED = NumberKey[int](b"y", 4)
TOPIC = NumberKey[int](b"t", 4)
STANDING = NumberKey[int](b"a", 5)
COST = NumberKey[int](b"C", 4)
DOMAIN = TextKey(b"f")
WAIT = NumberKey[LocalPage](b"g", 4)
BIRTHS = NumberKey[int](b"z", 4)
CHANGE = NumberKey[int](b"n", 8)
SINK = TextKey(b"N")
FAULTS = NumberKey[LocalPage](b"P", 4)

LAYOUTS: tuple[NumberKey[Any] | PairKey | TextKey | VersionKey | DigestKey, ...] = (
    META, MAP, CLASH, LINK, REFRESH, STATUS, WAITING, HOST, WANTED, JOURNAL, OUTBOX, INBOX,
    DOCUMENT, VERSIONS, BODY, COUNT, PLAN,
    PUBLISHED, SUBSCRIPTION, KEYED, TOPIC, STANDING, COST, DOMAIN, WAIT, BIRTHS,
    CHANGE, SINK, FAULTS,
)  # fmt: skip

# Values


class Row(msgspec.Struct, frozen=True, array_like=True, tag=VERSION, tag_field="version", forbid_unknown_fields=True):
    """A value that is a MessagePack list of the format's number and the fields of its class, in order."""


_R = TypeVar("_R", bound=Row)

pack = msgspec.msgpack.Encoder().encode
"""row -> bytes"""


def reader(kind: type[_R]) -> Callable[[bytes], _R]:
    """Return the function that unpacks rows of this class. It raises InputError for another format, MachineError for
    a damaged row.
    """
    decode = msgspec.msgpack.Decoder(kind).decode

    def unpack(data: bytes) -> _R:
        try:
            return decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise _unreadable(kind.__name__, data, error) from None

    return unpack


def _unreadable(name: str, data: bytes, error: Exception) -> InputError | MachineError:
    """Tell another format from damage: the list's first item tells another version from damage."""
    version = _version_of(data)
    if version is not None and version != VERSION:
        return InputError(f"{name}: version {version}, this Xyro reads {VERSION}: run `xyro migrate`")
    return MachineError(f"damaged store: {name}: {error}: run `xyro audit`, restore the directory from a copy")


def _version_of(data: bytes) -> int | None:
    try:
        fields = msgspec.msgpack.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    whole = isinstance(fields, list) and bool(fields) and type(fields[0]) is int
    return fields[0] if whole else None


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """A page's importance when it was read, for the trend."""

    importance: float
    """page-units a turnover (mean about 1)"""
    backed: int
    """ticks of the OPIC clock that the estimate rests on at most"""
    clock: int
    """the moment, in ticks of the OPIC clock"""
    time: int
    """the moment, seconds since 1970"""


class PageClaim(msgspec.Struct, frozen=True, array_like=True):
    """A claim about a page's changes (refresh/trust.py)."""

    source: int
    """Source, by number"""
    host: int
    """number of the host that said it"""
    time: int
    """changed at, seconds since 1970; of a rate: when it was said"""
    rate: float = 0.0
    """changes a day; 0: it is a date that was said"""


class RefreshRow(Row, frozen=True):
    """Refresh-Data of one page (P1 section 6); times in seconds since 1970, 0 = never. `RefreshRow()`: never read."""

    first_read: int = 0
    """first answered order"""
    last_read: int = 0
    """last time the page itself was seen, or seen to be gone; an answer that says nothing of it (503) is none"""
    last_change: int = 0
    """when a change was last seen (or what Last-Modified says)"""
    signature: bytes = b""
    """16 bytes (MD5), empty where no whole body ever came"""
    reads: int = 0
    changes: int = 0
    """seen since the base line: the first read, or the last time the change rate was reset"""
    last_modified: str = ""
    """verbatim, to be sent back as the validator"""
    etag: str = ""
    quiet_days: float = 0.0
    change_days: float = 0.0
    """of the sums of its visits V and C (refresh/rate_sums.py); n is `change_sum`"""
    weight: float = 0.0
    """sqrt(r * lambda) as it stands in S (P1 eq. 22)"""
    kind: Kind = Kind.UNKNOWN
    status: int = 0
    """HTTP status of the last answer"""
    error: str = ""
    """failure class of the last order; if it was answered well, `fault`"""
    failures: int = 0
    """temporary failures in a row"""
    gone_since: float = 0.0
    """first 404 or 410 of the present row of them; 0 = there"""
    mime: str = ""
    size: int = 0
    """bytes of the decoded body"""
    charset: str = ""
    location: str = ""
    """canonical target, if the page redirects"""
    noindex: bool = False
    epoch: int = 0
    """lease of the last applied report: a report of this or an older lease changes nothing"""
    marks: tuple[Mark, ...] = ()
    """importance at reads at least a window of the OPIC clock apart: the last two of these, older first"""
    claims: tuple[PageClaim, ...] = ()
    """claims about the page that no read has settled yet, at most one of each kind"""
    counted: int = 0
    """its belief as it counts among those the prior is learned from (refresh.rate_belief.codes); 0 = it does not"""
    diary: bytes = b""
    """its last changes and its habit, at most 40 bytes, of pages with changes (refresh/periodic.py)"""
    visits: bytes = b""
    """nobody writes it any more"""
    fault: str = ""
    """what is wrong with the body that was read last (cut, or what the loader said); it stands as long as that body"""
    change_sum: float = 0.0
    rate: float = 0.0
    """changes a day as believed when the page was dated (refresh/rate_belief.py), 0 before the first order"""
    prior: int = 0
    """of that belief (RatePrior.code)"""
    capped: float = 0.0
    """rate by which the page is read, where `[refresh] rate_cap` makes it less; else 0"""
    onset: tuple[float, ...] = ()
    """chance that its rate is another one since a change that was hardly expected, and the sums V, n, C since; empty
    where nothing speaks for it (rate_belief.Onset)"""
    refused: int = 0
    """uses that its robots.txt refused when it was read last, or was not read for that (wire/uses.py)"""

    @property
    def belief(self) -> PageBelief:
        """The belief that `rate` was told by."""
        sums = RateSums(self.quiet_days, self.change_sum, self.change_days)
        onset = Onset(self.onset[0], RateSums(*self.onset[1:])) if self.onset else None
        return PageBelief(sums, RatePrior.decode(self.prior), onset)

    @property
    def shown(self) -> bool:
        """Tell whether anything but the prior says how often it changes."""
        return bool(self.quiet_days or self.change_sum)

    @property
    def pace(self) -> float:
        """The rate behind the weight: importance is weight^2 / pace."""
        return self.capped or self.rate


class HostMask(msgspec.Struct, frozen=True, array_like=True):
    """The answers of a host that are not its pages (frontier/impostors.py); times in seconds since 1970."""

    vendor: str = ""
    """of the challenge that it shows now; empty: none"""
    times: int = 0
    """in a row"""
    since: float = 0.0
    until: float = 0.0
    """it is left alone till then"""
    signature: bytes = b""
    """of the challenge, where evidence told it by that"""
    not_found: tuple[bytes, ...] = ()
    """signatures and skeletons of its soft 404"""
    probed: tuple[int, ...] = ()
    """slots of folders that were asked for a URL that cannot exist"""


class HostRow(Row, frozen=True):
    """The politeness of a host, stored over a restart."""

    name: str
    """authority: host, and the port where it is not the scheme's own"""
    next_at: float = 0.0
    """wall clock: not to be read before"""
    failures: int = 0
    """temporary failures of the host in a row"""
    hold: str = ""
    """'' | paused | blocked, by a person"""
    trust: bytes = b""
    """what its claims of changes were worth (refresh/trust.py), empty where none was settled"""
    rates: bytes = b""
    """change rates of its pages, for the prior (refresh/change.py Population), empty where none counts"""
    masks: tuple[HostMask, ...] = ()
    """what it shows in place of pages: one, or none where nothing of the kind was ever seen"""


class WantedRow(Row, frozen=True):
    """A page is wanted, by a person, a publisher or a load: stored until an order for it is settled."""

    priority: Priority


class WaitRow(Row, frozen=True):
    """Status-Data: a load that waits for parts, with all that is needed to load it again (P1 section 3)."""

    epoch: int
    """lease of the read that brought the body"""
    needs: tuple[LocalPage, ...]
    """page ids of the parts it waits for"""
    body: bytes
    """compressed by the caller; empty where it is a row of its own (WAITING)"""
    url: str
    kind: Kind = Kind.XML
    mime: str = ""
    charset: str = ""
    read_at: float = 0.0
    since: float = 0.0
    """when it began to wait"""
    readings: int = 1
    """how often it was read with the parts it had by then, and found to need others"""


_unpack_refresh = reader(RefreshRow)
unpack_host = reader(HostRow)
unpack_wanted = reader(WantedRow)
unpack_wait = reader(WaitRow)


def unpack_refresh(data: bytes) -> RefreshRow:
    """A page's Refresh-Data. Rows from before there were three sums hold a Gamma(a, b) of the rate in their place."""
    row = _unpack_refresh(data)
    if row.rate or not row.change_days:
        return row
    a, b = row.quiet_days, row.change_days
    quiet_days, changes, change_days = RateSums.from_gamma(a, b)
    replaced = msgspec.structs.replace(row, quiet_days=quiet_days, change_days=change_days, change_sum=changes)
    return msgspec.structs.replace(replaced, rate=a / b, counted=0)  # all sums over pages were given that very rate


def pack_map(url: str, seen: int = 0) -> bytes:
    """Map-Data: when the URL was first met (u32, seconds since 1970, big-endian), then the canonical URL as UTF-8."""
    return seen.to_bytes(4, "big") + url.encode()


def unpack_map(row: bytes) -> str:
    """The URL. MachineError where the row is none of Map-Data."""
    try:
        return row[4:].decode()
    except UnicodeDecodeError as error:
        raise MachineError(f"damaged store: Map-Data: {error}: restore the directory from a copy") from None


def first_seen(row: bytes) -> int:
    """Return the time at which the URL was first met: seconds since 1970."""
    return int.from_bytes(row[:4], "big")


def pack_links(children: NDArray[np.uint32]) -> bytes:
    """Return a page's Link-Data: its distinct children in order of first appearance, 4 bytes each, little-endian.

    A child of another partition is a page in state FOREIGN here (states.py). ValueError: more than MAX_LINKS (P1 note
    3); TypeError: numbers that may not fit.
    """
    if len(children) > MAX_LINKS:
        raise ValueError(f"Link-Data: {len(children)} children, at most {MAX_LINKS}")
    return children.tobytes() if children.dtype == _PAGE else children.astype(_PAGE, casting="safe").tobytes()


def unpack_links(data: bytes) -> NDArray[np.uint32]:
    """A page's children: a read-only view into `data`. MachineError: the bytes are not of whole numbers."""
    if len(data) % _PAGE.itemsize or len(data) > MAX_LINKS * _PAGE.itemsize:
        raise MachineError(
            f"damaged store: Link-Data of {len(data)} bytes does not add up: restore the directory from a copy"
        )
    return np.frombuffer(data, _PAGE)
