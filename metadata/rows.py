"""Rows of the store <-> bytes: MessagePack lists that begin with the number of the format (version.py).

A row of another number is an InputError with the mend, a row of the right version
and the wrong shape a MachineError. To change a layout: append a field with a default (older rows still read, the new
field takes its default), or raise the number and convert (format1.py).

Map-Data is the exception: its row is the page's canonical URL and nothing else (one row a known URL: bytes count).
msgspec packs and unpacks the lists in C and checks every type on the way in: 0.25 us out, 0.6 us in.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from xyro.metadata.version import VERSION
from xyro.wire.errors import InputError, MachineError
from xyro.wire.messages import Kind, Priority, Verdict


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """A page's importance when it was read, for the trend."""

    importance: float
    """page-units a turnover (mean about 1)"""
    backed: int
    """ticks of the OPIC clock that the estimate rests on at most"""
    clock: int
    """the moment, in ticks of the OPIC clock"""
    at: int
    """the moment, seconds since 1970"""


class Said(msgspec.Struct, frozen=True, array_like=True):
    """What somebody said of a page's changes (refresh/trust.py)."""

    source: int
    """Source, by number"""
    host: int
    """number of the host that said it"""
    at: int
    """changed at, seconds since 1970; of a rate: when it was said"""
    rate: float = 0.0
    """changes a day; 0: it is a date that was said"""


class RefreshRow(
    msgspec.Struct, frozen=True, array_like=True, tag=VERSION, tag_field="version", forbid_unknown_fields=True
):
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
    rate_a: float = 0.0
    rate_b: float = 0.0
    """the change rate's Gamma(a, b), b in days (algorithms.md E)"""
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
    said: tuple[Said, ...] = ()
    """claims about the page that no read has settled yet, at most one of each kind"""
    counted: int = 0
    """its change rate as it counts among those the prior is learned from (refresh.change.code); 0 = it does not"""
    diary: bytes = b""
    """its last changes and its habit, at most 40 bytes, of pages with changes (refresh/periodic.py)"""
    visits: bytes = b""
    """its last 64 visits, 4 or 8 bytes each, where [refresh] estimator asks for them (refresh/evidence.py)"""
    fault: str = ""
    """what is wrong with the body that was read last (cut, or what the loader said); it stands as long as that body"""

    @property
    def rate(self) -> float:
        """Expected changes a day, 0 before the first read."""
        return self.rate_a / self.rate_b if self.rate_b else 0.0


class HostRow(
    msgspec.Struct, frozen=True, array_like=True, tag=VERSION, tag_field="version", forbid_unknown_fields=True
):
    """What politeness must remember of a host over a restart."""

    name: str
    """authority: host, and the port where it is not the scheme's own"""
    next_at: float = 0.0
    """wall clock: not to be read before"""
    failures: int = 0
    """temporary failures of the host in a row"""
    held: str = ""
    """'' | paused | blocked, by a person"""
    trust: bytes = b""
    """what its claims of changes were worth (refresh/trust.py), empty where none was settled"""
    rates: bytes = b""
    """change rates of its pages, for the prior (refresh/change.py Population), empty where none counts"""


class WantedRow(
    msgspec.Struct, frozen=True, array_like=True, tag=VERSION, tag_field="version", forbid_unknown_fields=True
):
    """A page is wanted, by a person, a publisher or a load: stored until an order for it is settled."""

    priority: Priority


class WaitRow(
    msgspec.Struct, frozen=True, array_like=True, tag=VERSION, tag_field="version", forbid_unknown_fields=True
):
    """Status-Data: a load that waits for parts, with all that is needed to load it again (P1 section 3)."""

    epoch: int
    """lease of the read that brought the body"""
    needs: tuple[int, ...]
    """page ids of the parts it waits for"""
    body: bytes
    """compressed by the caller; empty where it is a row of its own (keys.WAITING),"""
    url: str
    kind: Kind = Kind.XML
    mime: str = ""
    charset: str = ""
    read_at: float = 0.0
    since: float = 0.0
    """when it began to wait"""
    readings: int = 1
    """how often it was read with the parts it had by then, and found to need others"""


class DocumentRow(
    msgspec.Struct, frozen=True, array_like=True, tag=VERSION, tag_field="version", forbid_unknown_fields=True
):
    """Which versions of a page's document are kept: first, first + 1 ... last."""

    first: int
    """1 or more; what came before was dropped by retention"""
    last: int
    epoch: int
    """lease of the last read that was stored: an older one changes nothing"""


class VersionRow(
    msgspec.Struct, frozen=True, array_like=True, tag=VERSION, tag_field="version", forbid_unknown_fields=True
):
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


class CountsRow(
    msgspec.Struct, frozen=True, array_like=True, tag=VERSION, tag_field="version", forbid_unknown_fields=True
):
    """Counters of a partition's repository, so that nobody has to scan it for them. `latest` versions count."""

    by_kind: dict[str, int] = {}
    """documents by name of their kind: XML, DTD"""
    by_verdict: dict[str, int] = {}
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


class PublishedRow(
    msgspec.Struct, frozen=True, array_like=True, tag=VERSION, tag_field="version", forbid_unknown_fields=True
):
    """What a site said of a page (refresh/publications.py), until a read has shown whether it is so."""

    publisher: str
    claim: str
    at: float
    deadline: float
    learn: bool = True
    ordered: bool = True


class SubscriptionRow(
    msgspec.Struct, frozen=True, array_like=True, tag=VERSION, tag_field="version", forbid_unknown_fields=True
):
    """A subscription (refresh/subscriptions.py), and what was last told. Pages are ids (partition << 32 | local)."""

    target: str
    """canonical URL, or a pattern with * or ?"""
    every: float
    """seconds between two notices"""
    url: str
    """where notices are posted; empty for a command"""
    command: tuple[str, ...] = ()
    made: float = 0.0
    due: float = 0.0
    """of the next notice"""
    attempts: int = 0
    """tries of the present notice that failed"""
    sequence: int = 0
    """notices that were told"""
    told_at: float = 0.0
    seen: dict[int, bytes] = {}
    """page -> signature as last told; empty where the page was not there"""
    error: str = ""
    """why the last try failed"""
    numbered: int = 0
    """the last number that a notice had, told or only tried"""
    tried: bytes = b""
    """digest of what that one says of its pages; empty once it was told"""
    based: bool = False
    """`seen` began with what the pages were when it was made, or when the crawl ran first after that"""


class KeyedRow(
    msgspec.Struct, frozen=True, array_like=True, tag=VERSION, tag_field="version", forbid_unknown_fields=True
):
    """URLs that were published with a key (IndexNow) which is still to be read from its host."""

    host: str
    key: str
    location: str
    urls: tuple[str, ...]
    at: float


class TopicRow(
    msgspec.Struct, frozen=True, array_like=True, tag=VERSION, tag_field="version", forbid_unknown_fields=True
):
    """A feed that a WebSub hub tells us of, or is asked to."""

    topic: str
    hub: str
    path: str
    """the last part of our callback: nobody else can know it"""
    secret: str
    state: str = "asked"
    """asked | active | denied"""
    asked: float = 0.0
    """when the hub was asked last"""
    begun: float = 0.0
    """when the lease, or the hub's denial, began"""
    until: float = 0.0
    """end of the lease"""
    failures: int = 0


Row = (
    RefreshRow
    | HostRow
    | WantedRow
    | WaitRow
    | DocumentRow
    | VersionRow
    | CountsRow
    | PublishedRow
    | SubscriptionRow
    | KeyedRow
    | TopicRow
)
_R = TypeVar(
    "_R",
    RefreshRow,
    HostRow,
    WantedRow,
    WaitRow,
    DocumentRow,
    VersionRow,
    CountsRow,
    PublishedRow,
    SubscriptionRow,
    KeyedRow,
    TopicRow,
)

pack = msgspec.msgpack.Encoder().encode
"""row -> bytes"""

_REFRESH = msgspec.msgpack.Decoder(RefreshRow)
_HOST = msgspec.msgpack.Decoder(HostRow)
_WANTED = msgspec.msgpack.Decoder(WantedRow)
_WAIT = msgspec.msgpack.Decoder(WaitRow)
_DOCUMENT = msgspec.msgpack.Decoder(DocumentRow)
_VERSION = msgspec.msgpack.Decoder(VersionRow)
_COUNTS = msgspec.msgpack.Decoder(CountsRow)
_PUBLISHED = msgspec.msgpack.Decoder(PublishedRow)
_SUBSCRIPTION = msgspec.msgpack.Decoder(SubscriptionRow)
_KEYED = msgspec.msgpack.Decoder(KeyedRow)
_TOPIC = msgspec.msgpack.Decoder(TopicRow)


def unpack_refresh(data: bytes) -> RefreshRow:
    return _unpack(_REFRESH, data)


def unpack_host(data: bytes) -> HostRow:
    return _unpack(_HOST, data)


def unpack_wanted(data: bytes) -> WantedRow:
    return _unpack(_WANTED, data)


def unpack_wait(data: bytes) -> WaitRow:
    return _unpack(_WAIT, data)


def unpack_document(data: bytes) -> DocumentRow:
    return _unpack(_DOCUMENT, data)


def unpack_version(data: bytes) -> VersionRow:
    return _unpack(_VERSION, data)


def unpack_counts(data: bytes) -> CountsRow:
    return _unpack(_COUNTS, data)


def unpack_published(data: bytes) -> PublishedRow:
    return _unpack(_PUBLISHED, data)


def unpack_subscription(data: bytes) -> SubscriptionRow:
    return _unpack(_SUBSCRIPTION, data)


def unpack_keyed(data: bytes) -> KeyedRow:
    return _unpack(_KEYED, data)


def unpack_topic(data: bytes) -> TopicRow:
    return _unpack(_TOPIC, data)


def _unpack(decoder: msgspec.msgpack.Decoder[_R], data: bytes) -> _R:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _unreadable(decoder.type.__name__, data, error) from None


def _unreadable(name: str, data: bytes, error: Exception) -> InputError | MachineError:
    """Whose fault it is: the list's first item tells another version from damage."""
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
    """When the URL was first met: seconds since 1970."""
    return int.from_bytes(row[:4], "big")
