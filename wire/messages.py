"""The messages of the loop: frozen, slotted, checked when built, so an invalid one cannot exist inside the system.

    FetchOrder    page node -> xyro        read this page
    PageReport    xyro -> page node        what the web answered: one order, one report
    XmlPage       xyro -> loader           an XML or DTD body, on its way to being parsed
    LoadReport    loader -> page node      links and needs found in it
    Document      loader -> page node      what the warehouse keeps of it, ahead of its final LoadReport
    CashTransfer  partition -> partition   cash (and news of URLs) for pages that live elsewhere
    Submit        a person -> page node    URLs to read
    Command       a person -> page node    a change to make within a commit group (commands.py)
    Answer        page node -> its sender  a Submit or Command is on disk, or why it is not (commands.py)
    Ack           receiver -> sender       applied (and durable) up to here

Times are seconds since 1970 (float, UTC); durations are seconds; cash is in integer units (65,536 = one page).
Pages are named by id (wire/ids.py); only metadata knows the URL of an id.
"""

from __future__ import annotations

import enum
from math import inf, isfinite

from msgspec import Struct

from xyro.wire.commands import MAX_REQUEST, Command, CommandAnswer
from xyro.wire.ids import PageId
from xyro.wire.uses import ALL_USES

MAX_URL = 4096
"""Longest canonical URL (characters) that the system carries; longer ones are dropped where they are found."""
MAX_LINKS = 65_534
"""Most distinct children stored of one page (P1 note 3: a child's rank fits in 16 bits)."""
MAX_NUMBER = 2**63 - 1
"""Largest page id, amount of cash, clock and number of a sequence: they are stored as 64-bit integers."""
EMPTY = "empty"
"""`vendor` of an answer without any content: nobody's challenge, and of its page alone until others are empty, too"""


class Priority(enum.IntEnum):
    """P1 section 3: the five priorities of the fetch queue, most urgent first."""

    BLOCKING = 0
    """a loader waits for this DTD or entity"""
    ORDERED = 1
    """a person, a publication or a subscription asks"""
    REFRESH = 2
    """it is due"""
    DISCOVER = 3
    """never read, the best of its host"""
    SCOUT = 4
    """never read, has waited longest of its host; goes when those of DISCOVER go"""


class Kind(enum.IntEnum):
    """The kind of a body, judged by its media type, suffix and first bytes."""

    UNKNOWN = 0
    HTML = 1
    XML = 2
    DTD = 3
    OTHER = 4


class LinkKind(enum.IntEnum):
    """The element that showed a link (4 bits of its flags)."""

    ANCHOR = 0
    AREA = 1
    FRAME = 2
    ALTERNATE = 3
    NEXT = 4
    CANONICAL = 5
    REDIRECT = 6
    XLINK = 7
    FEED = 8
    SITEMAP = 9
    STYLESHEET = 10
    MEDIA = 11
    """an image or a film that a sitemap lists"""


LINK_KIND_MASK = 0x0F
LINK_EXTERNAL = 0x10
"""the target's host (and port) differs from the page's"""
LINK_NOFOLLOW = 0x20
"""rel=nofollow: neither cash nor a new page"""
LINK_HINT = 0x40
"""a hint (canonical): neither cash nor a new page by itself"""
LINK_FOCUSED = 0x80
"""its text, its title or the words around it hold one of the words that a focus asks for"""


_LENGTH = f"1..{MAX_URL} characters"
_LINK_LIMIT = str(MAX_LINKS)


def _require(ok: bool, *words: str) -> None:
    """ValueError with these words; they are joined only where they are needed (a report is built for every page)."""
    if not ok:
        raise ValueError(" ".join(words))


class Links(Struct, frozen=True):
    """A page's links, in order of first appearance, distinct, canonical; flags[i] belongs to urls[i].

    `truncated`: how many further distinct links were dropped over MAX_LINKS; `dropped`: hrefs that name no http(s) URL.
    """

    urls: tuple[str, ...] = ()
    flags: bytes = b""
    truncated: int = 0
    dropped: int = 0

    def __post_init__(self) -> None:
        _require(len(self.urls) == len(self.flags), "Links: one flag byte per URL")
        _require(len(self.urls) <= MAX_LINKS, "Links: at most", _LINK_LIMIT)
        _require(self.truncated >= 0 and self.dropped >= 0, "Links: truncated, dropped >= 0")


NO_LINKS = Links()


class FetchOrder(Struct, frozen=True):
    """Read `url`. `epoch` is the lease: the report carries it back, a report of an older lease is dropped."""

    page: PageId
    url: str
    priority: Priority
    epoch: int
    etag: str = ""
    last_modified: str = ""
    attempt: int = 0
    """temporary failures in a row so far"""
    not_before: float = 0.0
    """the host may not be read before (politeness kept over a restart)"""
    deadline: float = 0.0
    """ORDERED: the page was promised to be read by then; 0 = nobody named a time"""
    raised: bool = False
    """an order of this page and epoch is out already: it takes this one's level and deadline, if it still waits"""
    probe: bool = False
    """it asks what the host of `page` says of a URL that cannot exist: `url` is no page"""
    refused: int = 0
    """uses that its robots.txt refuses (uses.py): the pool knows, as the order is read"""

    def __post_init__(self) -> None:
        _require(0 <= self.page <= MAX_NUMBER, "FetchOrder.page: a page id is 0..2**63-1")
        _require(0 < len(self.url) <= MAX_URL, "FetchOrder.url:", _LENGTH)
        _require(self.epoch >= 0 and self.attempt >= 0, "FetchOrder: epoch, attempt >= 0")
        _require(isfinite(self.not_before) and isfinite(self.deadline), "FetchOrder.not_before, deadline: finite times")
        _require(0 <= self.refused <= ALL_USES, "FetchOrder.refused: bits of uses")


class HostChallenged(Struct, frozen=True):
    """Evidence says that a host answers with challenges: its orders are to be reported as such, without a request."""

    host: str
    """authority: host, and the port where it is not the scheme's own"""
    until: float
    """not to be read before"""
    failures: int
    """in a row"""
    vendor: str

    def __post_init__(self) -> None:
        _require(bool(self.host) and isfinite(self.until), "HostChallenged: a host, a finite time")
        _require(self.failures >= 0, "HostChallenged.failures: >= 0")


class PageReport(Struct, frozen=True):
    """The outcome of one order: an answer of the web (`status` > 0), a named failure (`error`), or both (a 404)."""

    page: PageId
    url: str
    epoch: int
    started: float
    ended: float
    status: int = 0
    """HTTP status; 0 where no answer came"""
    error: str = ""
    """failure class (xyro/failures.py), empty for a good read, a 304 and a redirect"""
    final: bool = False
    """the failure is final: no retry (DEAD, disallowed, blocked, not worth reading)"""
    retry_at: float = 0.0
    """a temporary failure: when to try again"""
    kind: Kind = Kind.UNKNOWN
    mime: str = ""
    size: int = 0
    """bytes of the decoded body"""
    truncated: str = ""
    """length | time | disconnect | unspecified, WARC's words, or ratio; empty for a whole body"""
    signature: bytes = b""
    """16 bytes (MD5) of the body, or empty where no whole body came"""
    etag: str = ""
    last_modified: str = ""
    location: str = ""
    """canonical target of a redirect"""
    links: Links = NO_LINKS
    noindex: bool = False
    nofollow: bool = False
    """meta or X-Robots-Tag nofollow: links give neither cash nor new pages"""
    loading: bool = False
    """the body went on to a loader; its links come with a LoadReport"""
    charset: str = ""
    host_next: float = 0.0
    """politeness: the host may be read again at (to be kept over a restart)"""
    host_failures: int = 0
    """politeness: temporary failures of the host in a row"""
    sitemaps: tuple[str, ...] = ()
    """Sitemap: lines of the host's robots.txt, told once with the first report after it was read"""
    fresh_for: float = 0.0
    """seconds for which the answer says that it stays as it is (Cache-Control, Expires); 0 = it does not say"""
    hubs: tuple[str, ...] = ()
    """WebSub hubs that its Link headers or its <link> elements name"""
    topic: str = ""
    """with hubs: its rel=self, empty where there is none"""
    vendor: str = ""
    """of a challenge: who challenges, or what kind of wall it is"""
    skeleton: bytes = b""
    """16 bytes of what stays equal while a page tells its own URL (xyro/skeletons.py), of pages that another URL of the
    host resembles; else empty"""
    refused: int = 0
    """uses of the page that its robots.txt refuses (uses.py)"""
    received: int = 0
    """bytes of the answer, head included, before decoding"""

    @property
    def failure(self) -> str:
        """The class as people are told it, empty where there is none: a page without content is that, though it is
        treated like a challenge."""
        return EMPTY if self.vendor == EMPTY else self.error

    def __post_init__(self) -> None:
        _require(0 <= self.page <= MAX_NUMBER, "PageReport.page: a page id is 0..2**63-1")
        _require(0 < len(self.url) <= MAX_URL, "PageReport.url:", _LENGTH)
        _require(0 <= self.status <= 999, "PageReport.status: 0..999")
        _require(self.status > 0 or bool(self.error), "PageReport: no status and no error")
        _require(len(self.signature) in (0, 16), "PageReport.signature: 16 bytes")
        _require(len(self.skeleton) in (0, 16), "PageReport.skeleton: 16 bytes")
        _require(self.started <= self.ended, "PageReport: it ended before it started")
        _require(isfinite(self.ended - self.started), "PageReport.started, ended: finite times")
        _require(isfinite(self.retry_at) and isfinite(self.host_next), "PageReport.retry_at, host_next: finite times")
        _require(self.epoch >= 0 and self.size >= 0, "PageReport: epoch, size >= 0")
        _require(self.host_failures >= 0, "PageReport.host_failures: >= 0")
        _require(0.0 <= self.fresh_for < inf, "PageReport.fresh_for: finite, >= 0")
        _require(0 <= self.refused <= ALL_USES, "PageReport.refused: bits of uses")
        _require(0 <= self.received <= MAX_NUMBER, "PageReport.received: 0..2**63-1")


class XmlPage(Struct, frozen=True):
    """A whole XML or DTD body for the loader. `wait_epoch` ties the loader's answers to this read."""

    page: PageId
    url: str
    epoch: int
    read_at: float
    kind: Kind
    mime: str
    charset: str
    """charset of the media type, empty where it had none"""
    body: bytes

    def __post_init__(self) -> None:
        _require(0 <= self.page <= MAX_NUMBER and self.epoch >= 0, "XmlPage: page 0..2**63-1, epoch >= 0")
        _require(0 < len(self.url) <= MAX_URL, "XmlPage.url:", _LENGTH)
        _require(isfinite(self.read_at), "XmlPage.read_at: a finite time")
        _require(self.kind in (Kind.XML, Kind.DTD), "XmlPage.kind: XML or DTD")


class LoadState(enum.IntEnum):
    """The state of a load (Status-Data)."""

    LOADED = 0
    """parsed, nothing missing"""
    WAITING = 1
    """parsed as far as it goes; `needs` are wanted"""
    INCOMPLETE = 2
    """parsed, but a needed part could not be had"""
    FAILED = 3
    """not well-formed or hostile: `error` says which; links found before the error are kept"""


class LoadReport(Struct, frozen=True):
    """The loader's findings in one XmlPage. WAITING reports come before the final one of the same page and epoch."""

    page: PageId
    url: str
    epoch: int
    state: LoadState
    format: str = ""
    """rss | atom | sitemap | sitemapindex | xhtml | dtd | xml"""
    error: str = ""
    links: Links = NO_LINKS
    modified: tuple[tuple[str, float], ...] = ()
    """evidence: (URL, time of last change) from sitemap lastmod and feed dates"""
    needs: tuple[str, ...] = ()
    """canonical URLs of the DTDs and entities it waits for"""
    rates: tuple[tuple[str, float], ...] = ()
    """claims: (URL, changes a day) from changefreq, ttl and sy:updatePeriod; of links, or of the document itself"""
    hubs: tuple[str, ...] = ()
    """WebSub hubs that a feed names"""

    def __post_init__(self) -> None:
        _require(0 <= self.page <= MAX_NUMBER and self.epoch >= 0, "LoadReport: page 0..2**63-1, epoch >= 0")
        _require(0 < len(self.url) <= MAX_URL, "LoadReport.url:", _LENGTH)
        _require(all(isfinite(when) for _, when in self.modified), "LoadReport.modified: finite times")
        _require(all(isfinite(rate) and rate >= 0.0 for _, rate in self.rates), "LoadReport.rates: changes a day, >= 0")
        _require(bool(self.needs) == (self.state is LoadState.WAITING), "LoadReport: needs go with WAITING")


class Verdict(enum.IntEnum):
    """The result of validating a well-formed document (XML 1.0 section 2.8; malformed ones are not stored)."""

    NO_GRAMMAR = 0
    """it names neither DTD nor schema: well-formed is all that can be said"""
    VALID = 1
    INVALID = 2
    """`problems` says where"""
    UNVALIDATED = 3
    """it names a grammar that could not be had, or is none: `problems` says which"""


MAX_PROBLEMS = 20
"""Most validation errors that are kept of one document."""


class Document(Struct, frozen=True):
    """One XML or DTD body for the warehouse: the body itself, packed, and the findings of its load."""

    page: PageId
    url: str
    epoch: int
    read_at: float
    kind: Kind
    digest: bytes
    """16 bytes: BLAKE2b-128 of the body; the body's name in the repository"""
    packed: bytes
    """zlib of the body as it was read (after content decoding)"""
    size: int
    """bytes of the body"""
    verdict: Verdict = Verdict.NO_GRAMMAR
    problems: tuple[str, ...] = ()
    """the first validation errors: `line N: message`"""
    format: str = ""
    """rss | atom | sitemap | sitemapindex | xhtml | dtd | xml"""
    root: str = ""
    """tag of the root element, {namespace}local"""
    public_id: str = ""
    grammars: tuple[str, ...] = ()
    """canonical URLs (or catalog names) of the DTD and the schemas it names"""
    parts: tuple[str, ...] = ()
    """canonical URLs of all other documents it was read with: entities, modules of the DTD"""
    depth: int = 0
    """deepest nesting of elements"""
    elements: int = 0
    tags: int = 0
    """distinct element names; of a DTD: declared elements"""
    mime: str = ""
    charset: str = ""

    def __post_init__(self) -> None:
        _require(0 <= self.page <= MAX_NUMBER and self.epoch >= 0, "Document: page 0..2**63-1, epoch >= 0")
        _require(0 < len(self.url) <= MAX_URL, "Document.url:", _LENGTH)
        _require(isfinite(self.read_at), "Document.read_at: a finite time")
        _require(self.kind in (Kind.XML, Kind.DTD), "Document.kind: XML or DTD")
        _require(len(self.digest) == 16, "Document.digest: 16 bytes")
        _require(len(self.problems) <= MAX_PROBLEMS, "Document.problems: too many")
        _require(min(self.size, self.depth, self.elements, self.tags) >= 0, "Document: counts >= 0")


class Passing(Struct, frozen=True):
    """One item of a CashTransfer: cash for the page `url`; depth and credit matter if it is new there."""

    url: str
    cash: int
    depth: int = 0
    credit: int = 0
    """credit that its domain inherits from the domain that introduced its host (metadata/hosts.py)"""

    def __post_init__(self) -> None:
        if 0 < len(self.url) <= MAX_URL and 0 <= self.cash <= MAX_NUMBER >= self.credit >= 0 <= self.depth:
            return  # there are thousands in a second
        _require(0 < len(self.url) <= MAX_URL, "Passing.url:", _LENGTH)
        _require(0 <= self.cash <= MAX_NUMBER and self.depth >= 0, "Passing: cash 0..2**63-1, depth >= 0")
        _require(0 <= self.credit <= MAX_NUMBER, "Passing.credit: 0..2**63-1")


class CashTransfer(Struct, frozen=True):
    """Cash from partition `source` to partition `target`, number `seq` of that pair (1, 2, 3 ...: no gaps).

    `virtual`: income of the virtual page (to partition 0) or a payout of it (from partition 0).
    `spent` and `pages` tell the receiver the sender's clock (units spent so far) and its known pages, `weighted` the
    latter counted as often as the virtual page pays them (-1: once each). `focused`: numbers of the items that links
    with words of the focus lead to.
    """

    source: int
    target: int
    seq: int
    items: tuple[Passing, ...] = ()
    virtual: int = 0
    spent: int = 0
    pages: int = 0
    weighted: int = -1
    focused: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _require(self.source != self.target and min(self.source, self.target) >= 0, "CashTransfer: two partitions")
        _require(1 <= self.seq <= MAX_NUMBER, "CashTransfer.seq: 1..2**63-1")
        _require(self.virtual >= 0 and self.spent >= 0 and self.pages >= 0, "CashTransfer: virtual, spent, pages >= 0")
        _require(max(self.virtual, self.spent, self.pages) <= MAX_NUMBER, "CashTransfer: numbers fit in 63 bits")
        _require(-1 <= self.weighted <= MAX_NUMBER, "CashTransfer.weighted: -1..2**63-1")
        _require(all(0 <= i < len(self.items) for i in self.focused), "CashTransfer.focused: numbers of items")


class Submit(Struct, frozen=True):
    """URLs (canonical) that a person wants read."""

    urls: tuple[str, ...]
    priority: Priority = Priority.ORDERED
    seed: bool = True
    """the URLs widen the crawl's scope (scope host = host and port of a seed)"""
    request: int = 0
    """number of the request that an Answer names when they are on disk; 0: nobody waits (commands.py)"""

    def __post_init__(self) -> None:
        _require(0 <= self.request <= MAX_REQUEST, "Submit.request: 0..2**63-1")
        _require(all(0 < len(u) <= MAX_URL for u in self.urls), "Submit.urls:", _LENGTH, "each")


class Ack(Struct, frozen=True):
    """`source` has durably applied everything of `target`'s sequence up to and including `seq`."""

    source: int
    target: int
    seq: int
    full: tuple[str, ...] = ()
    """hosts (host:port) among those of the last transfers that have as many unread pages as they may: links to them
    have to wait where they are"""
    free: tuple[str, ...] = ()
    """hosts that were full and are half empty"""

    def __post_init__(self) -> None:
        _require(0 <= self.seq <= MAX_NUMBER, "Ack.seq: 0..2**63-1")
        _require(all(0 < len(name) <= MAX_URL for name in self.full), "Ack.full:", _LENGTH, "each")
        _require(all(0 < len(name) <= MAX_URL for name in self.free), "Ack.free:", _LENGTH, "each")


Message = (
    FetchOrder
    | HostChallenged
    | PageReport
    | XmlPage
    | LoadReport
    | Document
    | CashTransfer
    | Submit
    | Ack
    | Command
    | CommandAnswer
)
