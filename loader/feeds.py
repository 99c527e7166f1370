"""RSS 0.9x, 1.0 and 2.0, Atom 0.3 and 1.0: links of the entries, and their dates as evidence of change.

    FEED            an entry's page (RSS link, or a permalink guid without a link; Atom link rel=alternate), and the
                    site that the feed belongs to (channel link)
    NEXT            the feed's other pages and archives (RFC 5005)
    CANONICAL hint  rel=self
    ANCHOR          rel=related, via, replies; content that an Atom entry keeps elsewhere

    claimed rate    ttl; sy:updatePeriod and updateFrequency; less for skipHours and skipDays: of the feed itself
    hub             rel=hub (WebSub): told apart, no link

Not links to pages: enclosures, images, icons, edit and service documents, and what is inside escaped HTML (the entry's
own page shows it). A feed is parsed as the XML it is: where it breaks, what came before the fault counts, which is all
that a crawler needs; libraries that mend feeds (feedparser) read them whole, an order of magnitude slower.
"""

from __future__ import annotations

from functools import partial

from xyro.loader.dates import feed_time
from xyro.loader.parse import Attributes
from xyro.loader.xlinks import DocumentLinks, XmlLinks
from xyro.wire.messages import LINK_HINT, LinkKind

ATOMS = ("{http://www.w3.org/2005/Atom}", "{http://purl.org/atom/ns#}")
RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}RDF"
_RSS_1 = (
    "{http://purl.org/rss/1.0/}",
    "{http://my.netscape.com/rdf/simple/0.9/}",
    "{http://channel.netscape.com/rdf/simple/0.9/}",
)
_DUBLIN_CORE = ("{http://purl.org/dc/elements/1.1/}", "{http://purl.org/dc/terms/}")
_SYNDICATION = "{http://purl.org/rss/1.0/modules/syndication/}"
_PERIODS = {"hourly": 24.0, "daily": 1.0, "weekly": 1 / 7, "monthly": 1 / 30, "yearly": 1 / 365}
"""sy:updatePeriod as updates a day"""
_WFW = "{http://wellformedweb.org/CommentAPI/}"
_RELATIONS: dict[str, int] = {
    "alternate": LinkKind.FEED,
    "self": LinkKind.CANONICAL | LINK_HINT,
    "related": LinkKind.ANCHOR,
    "via": LinkKind.ANCHOR,
    "replies": LinkKind.ANCHOR,
} | dict.fromkeys(
    ("next", "prev", "previous", "first", "last", "current", "next-archive", "prev-archive"), LinkKind.NEXT
)


class _Feed(XmlLinks):
    """An entry begins, says its link and its dates in any order, and ends. Links are noted as soon as they show."""

    def __init__(self, found: DocumentLinks) -> None:
        super().__init__(found)
        self._in_entry = False
        self._url: str | None = None
        self._changed: float | None = None
        self._period = 0.0
        self._times = 1.0
        self._skipped = 1.0
        self.ends[_SYNDICATION + "updatePeriod"] = self._update_period
        self.ends[_SYNDICATION + "updateFrequency"] = self._update_frequency
        for namespace in ATOMS:
            self.starts[namespace + "link"] = self._atom_link

    def _begin(self, _: Attributes) -> None:
        self._in_entry = True
        self._url = self._changed = None

    def _end(self, _: str) -> None:
        if self._changed is not None:
            self.found.date(self._url, self._changed)
        self._in_entry = False

    def _date(self, text: str) -> None:
        when = feed_time(text) if self._in_entry else None
        if when is not None:
            self._changed = max(when, self._changed or 0.0)

    def _update_period(self, text: str) -> None:
        self._period = _PERIODS.get(text.lower(), 0.0)
        self._claim()

    def _update_frequency(self, text: str) -> None:
        if text.isascii() and text.isdigit():
            self._times = min(max(float(text[:6]), 1.0), 1_440.0)
        self._claim()

    def _claim(self) -> None:
        """Collect the feed's own claims; tags come in any order."""
        if self._period and not self._in_entry:
            self.found.rate(self.found.url, self._period * self._times * self._skipped)

    def _page(self, text: str, flags: int = LinkKind.FEED) -> None:
        """A link to a page; the first of an entry is the one that its dates speak of."""
        url = self.found.add(text.replace("&amp;", "&"), flags)  # escaped twice is the commonest slip in feeds
        if self._in_entry and self._url is None:
            self._url = url

    def _atom_link(self, attrib: Attributes) -> None:
        rel = attrib.get("rel", "alternate").strip().lower()
        flags = _RELATIONS.get(rel)
        if rel == "alternate":
            self._page(attrib.get("href", ""))
        elif rel == "hub":
            self.found.hub(attrib.get("href", ""))
        elif flags is not None:
            self.found.add(attrib.get("href", ""), flags)


class Rss(_Feed):
    """RSS by its channel and items: in the root's namespace or none (0.91 to 2.0), or inside RDF (0.9, 1.0)."""

    format = "rss"

    def __init__(self, found: DocumentLinks, root: str) -> None:
        super().__init__(found)
        if root == RDF:
            self.format = "xml"  # until it shows an item or channel: there is other RDF
        self._guid = ""
        self._permalink = False
        for namespace in _RSS_1 if root == RDF else {"", root[: root.rfind("}") + 1]}:
            self._read_items(namespace)
        for namespace in _DUBLIN_CORE:
            self.ends.update(dict.fromkeys((namespace + "date", namespace + "modified"), self._date))
        for namespace in ATOMS:
            self.ends[namespace + "updated"] = self._date
        self.ends[_WFW + "commentRss"] = self._comment_feed

    def _comment_feed(self, text: str) -> None:
        self.found.add(text, LinkKind.FEED)

    def _read_items(self, namespace: str) -> None:
        self.starts[namespace + "channel"] = self._channel
        self.starts[namespace + "item"] = self._begin
        self.starts[namespace + "guid"] = self._begin_guid
        self.ends[namespace + "item"] = self._end
        self.ends[namespace + "link"] = self._page
        self.ends[namespace + "guid"] = self._end_guid
        self.ends[namespace + "pubDate"] = self._date
        self.ends[namespace + "ttl"] = self._ttl
        self.ends[namespace + "comments"] = self._comments
        for tag, share in (("hour", 1 / 24), ("day", 1 / 7)):
            self.ends[namespace + tag] = partial(self._skip, share)

    def _ttl(self, text: str) -> None:
        """Minutes that the feed may be kept."""
        if text.isascii() and text.isdigit() and int(text[:9]):
            self._period, self._times = 1_440.0 / int(text[:9]), 1.0
            self._claim()

    def _skip(self, share: float, _: str) -> None:
        """skipHours and skipDays: nothing is published then."""
        self._skipped = max(self._skipped - share, share)
        self._claim()

    def _comments(self, text: str) -> None:
        self.found.add(text, LinkKind.ANCHOR)

    def _channel(self, _: Attributes) -> None:
        self.format = "rss"

    def _begin(self, attrib: Attributes) -> None:
        super()._begin(attrib)
        self.format = "rss"
        self._guid = ""

    def _end(self, text: str) -> None:
        if self._url is None and self._guid:
            self._page(self._guid)
        super()._end(text)

    def _begin_guid(self, attrib: Attributes) -> None:
        self._permalink = attrib.get("isPermaLink", "true").strip().lower() != "false"

    def _end_guid(self, text: str) -> None:
        if self._permalink and text[:4].lower() == "http":
            self._guid = text


class Atom(_Feed):
    """Atom by its entries; a lone entry is a document too. What an entry tells of its source feed is not its own."""

    format = "atom"

    def __init__(self, found: DocumentLinks, root: str) -> None:
        super().__init__(found)
        namespace = root[: root.rindex("}") + 1]
        self.starts[namespace + "entry"] = self._begin
        self.ends[namespace + "entry"] = self._end
        self.starts[namespace + "source"] = self._begin_source
        self.ends[namespace + "source"] = self._end_source
        self.starts[namespace + "content"] = self._content
        for tag in ("updated", "published", "modified", "issued", "created"):
            self.ends[namespace + tag] = self._date

    def _begin_source(self, _: Attributes) -> None:
        self._in_entry = False

    def _end_source(self, _: str) -> None:
        self._in_entry = True

    def _content(self, attrib: Attributes) -> None:
        self.found.add(attrib.get("src", ""), LinkKind.ANCHOR)
