"""Every setting of the computed web, with its unit and default: two webs of equal Shape are equal byte for byte."""

from __future__ import annotations

from dataclasses import dataclass, fields

from xyro.wire.errors import InputError

DAY = 86_400.0
"""seconds"""
ORIGIN = 1_767_225_600.0
"""2026-01-01T00:00:00Z: where the change processes start unless told otherwise"""
MIN_HOST = 12
"""fewest pages of a host: home, feed, DTD, sitemap index, a sitemap and room for pages proper"""
MAX_HOSTS = 64_000
"""250 addresses in each of the 256 networks 127.1.x.0/24"""

_SHARES = (
    "xml",
    "archives",
    "births",
    "veiled",
    "parts",
    "redirects",
    "dead",
    "files",
    "private",
    "cross",
    "selfs",
    "duplicates",
    "nofollow",
    "outside",
    "listed",
    "drift",
    "absent",
    "lying",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Shares lie in 0..1. Raises InputError where a value makes no web."""

    seed: int = 1
    pages: int = 20_000
    """URLs of all kinds on the web's own hosts"""
    hosts: int = 40
    port: int = 8080
    origin: float = ORIGIN
    """seconds since 1970: pages have version 0 until then, and change afterwards"""

    xml: float = 0.04
    """share of pages that are XML documents with an external DTD"""
    catalogue: int = 0
    """documents on a catalogue page, from which alone pages lead to them; 0: any page links to them"""
    archives: float = 1.0
    """share of the hosts that have documents: as many of them as if all had"""
    veiled: float = 0.0
    """share of the documents whose URL does not tell (.html)"""
    births: float = 0.0
    """share of the documents that come to be after the origin (404 until then, and linked by nobody)"""
    birth_days: float = 30.0
    """days after the origin within which that happens; like change rates, `speed` shortens them"""
    parts: float = 0.0
    """share of XML documents that need an entity too (see parts.py)"""
    slow: float = 4.0
    """seconds that the slow ones of these take to be answered"""
    redirects: float = 0.03
    dead: float = 0.03
    """404 and 410"""
    files: float = 0.03
    """.png, .zip and the like"""
    private: float = 0.06
    """on each third host: share of pages in a folder that robots.txt disallows"""

    cross: float = 0.2
    """share of links that leave the host"""
    selfs: float = 0.03
    """share of pages that link to themselves"""
    duplicates: float = 0.05
    """links shown a second time on their page, per link"""
    nofollow: float = 0.04
    """rel=nofollow links, per link"""
    outside: float = 0.0
    """links to names outside this web, per link"""
    listed: float = 0.25
    """share of a host's pages that its sitemaps list"""

    drift: float = 0.0
    """share of changes that also alter a link"""
    rate_median: float = 1 / 30
    """changes per day: the median of a lognormal"""
    rate_sigma: float = 2.0
    speed: float = 1.0
    """multiplies every change rate, so that days pass in seconds"""

    absent: float = 0.0
    """share of hosts that send no ETag and no Last-Modified"""
    lying: float = 0.0
    """share of hosts whose Last-Modified and ETag are always new and which never answer 304"""
    crawl_delay: float = 0.0
    """seconds in every robots.txt; 0 = no such line"""
    size: int = 3_000
    """bytes of an average HTML page"""
    median: int = 0
    """bytes of the median HTML page, where sizes spread as on the web (padding.py); 0: they lie about `size`"""
    tls: bool = False
    """URLs are https://, and what a host answers is coded (codings.py)"""

    def __post_init__(self) -> None:
        for name in _SHARES:
            _require(0.0 <= getattr(self, name) <= 1.0, f"{name}: a share lies in 0..1")
        _require(1 <= self.hosts <= MAX_HOSTS, f"hosts: 1..{MAX_HOSTS}")
        _require(self.pages >= MIN_HOST * self.hosts, f"pages: at least {MIN_HOST} a host")
        _require(self.pages <= 50_000_000, "pages: at most 50 million")
        _require(self.seed >= 0 and 0 <= self.port <= 65_535, "seed >= 0, port 0..65535")
        _require(self.absent + self.lying <= 1.0, "absent + lying: at most 1")
        _require(self.xml + self.redirects + self.dead + self.files + self.private <= 0.9, "kinds: HTML needs a tenth")
        _require(min(self.rate_median, self.rate_sigma, self.crawl_delay) >= 0.0, "rates and delays are >= 0")
        _require(self.catalogue >= 0 and self.birth_days > 0.0, "catalogue >= 0, birth_days > 0")
        _require(self.births == 0.0 or self.catalogue > 0, "births: documents are born below a catalogue page")
        _require(
            self.archives > 0.0 and (self.archives >= 1.0 or self.xml <= 0.5 * self.archives),
            "archives: room for all documents",
        )
        _require(0.0 <= self.slow <= 3_600.0, "slow: 0..3600 seconds")
        _require(self.speed > 0.0 and 500 <= self.size <= 30_000, "speed > 0, size 500..30000")
        _require(self.median == 0 or 500 <= self.median <= 1_000_000, "median: 500..1000000, or 0")


SETTINGS = tuple(field.name for field in fields(Shape))
OPTION_HELP = {
    "seed": "another web for each",
    "pages": "URLs of all kinds",
    "hosts": "each on an address of its own",
    "port": "of all hosts [any that is free]",
    "origin": "when pages begin to change, seconds since 1970 [now]",
    "xml": "share of pages that are XML documents with a DTD",
    "catalogue": "documents on a catalogue page, which alone leads to them; 0: any page does",
    "archives": "share of the hosts that have the documents",
    "veiled": "share of the documents whose URL does not tell",
    "births": "share of the documents that come to be later; needs --catalogue",
    "birth_days": "days within which they do",
    "parts": "share of the documents that need an entity, too",
    "slow": "seconds that slow entities take to be answered",
    "redirects": "share of pages",
    "dead": "share of pages: 404 and 410",
    "files": "share of pages: pictures, archives",
    "private": "on each third host: share of pages that robots.txt disallows",
    "cross": "share of links that leave their host",
    "selfs": "share of pages that link to themselves",
    "duplicates": "links shown twice, per link",
    "nofollow": "links with rel=nofollow, per link",
    "outside": "links to names that are not of this web, per link",
    "listed": "share of pages that sitemaps list",
    "drift": "share of changes that alter a link, too",
    "rate_median": "changes a day of the median page",
    "rate_sigma": "spread of their logarithms",
    "speed": "times that everything changes faster",
    "absent": "share of hosts that send neither ETag nor Last-Modified",
    "lying": "share of hosts where these are always new",
    "crawl_delay": "seconds in every robots.txt; 0: no such line",
    "size": "bytes of an average HTML page",
    "median": "bytes of the median page, sizes as the web's; 0: as --size says",
    "tls": "HTTPS, real sizes, codings, time-outs of connections: see below",
}
"""what `xyro lab web --help` says of each"""


def _require(ok: bool, reason: str) -> None:
    if not ok:
        raise InputError(f"lab web: {reason}")
