"""The web of a seed: small sites, each with its robots.txt and its way of lying, all drawn from the seed.

A page's links never change; what it shows besides, its status, and what its server does with the connection, do. What
lies (`lies`) is drawn page by page and site by site. From `truce` on nobody lies any more: the last life of a crawl
must find what there is to be found.
"""

from __future__ import annotations

import gzip
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from xyro.lab.simulate.exchanges import CLOSE, HANG, KEEP, RESET, AnswerPiece, PeerReply, PeerRequest, SiteRules
from xyro.wire.urls import canonical

HONEST = ("html", "html", "html", "html", "chunked", "gzip", "changing", "changing", "feed", "document")
LIES = (
    *("missing", "gone", "moved", "elsewhere", "looping", "forbidden", "slow", "endless", "short", "broken", "mute"),
    *("busy", "failing", "garbage", "picture", "late", "drip", "closing"),
)
PRIVATE = "/private/"
FORBIDDEN = tuple(
    canonical(url)
    for url in (
        *("http://10.0.0.1/", "http://192.168.1.1:8000/a", "http://example.com/", "http://127.0.0.1:22/"),
        *("http://[::1]:8001/", "http://169.254.169.254/latest/meta-data/", "http://8.8.8.8/", "http://2130706433:22/"),
        *("https://10.1.1.1/", "http://0.0.0.0:8001/"),
    )
)
"""where links and redirects lead that must never be contacted under --only-net 127.0.0.0/8"""
FOREVER = 1e18


@dataclass(slots=True)
class LyingPage:
    """A page: its kind of behaviour, and where it links to (canonical URLs)."""

    path: str
    kind: str
    links: tuple[str, ...] = ()
    target: str = ""
    """of a redirect"""
    period: float = FOREVER
    """seconds between two changes"""


@dataclass(slots=True)
class WebSite:
    """A host."""

    authority: str
    address: tuple[str, int]
    number: int
    latency: float
    moods: list[tuple[float, str]]
    """(until when, behaviour of its robots.txt), the last one forever"""
    access: list[tuple[float, str]]
    """(until when, 'accept' | 'refuse' | 'silent')"""
    delay: float = 0.0
    """Crawl-delay"""
    pages: dict[str, LyingPage] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        return f"http://{self.authority}"


@dataclass(frozen=True, slots=True)
class WorldShape:
    """How much there is, and how bad it is."""

    sites: int
    pages: int
    """of each site, at most"""
    lies: float
    """share of the pages that lie, and of the sites"""
    private: float
    """share of the pages below /private/"""


class LyingWeb:
    """All sites. `draw` makes them; what they answer follows from the order of the requests and the time alone."""

    def __init__(self, shape: WorldShape, draw: random.Random, start: float) -> None:
        self.truce = FOREVER
        self.visits: Counter[str] = Counter()
        self.sites = [self._site(number, shape, draw, start) for number in range(shape.sites)]
        self.by_authority = {site.authority: site for site in self.sites}
        self.by_address = {site.address: site for site in self.sites}
        urls = [f"{site.origin}{path}" for site in self.sites for path in site.pages]
        for site in self.sites:
            self._link(site, shape, draw, urls)

    @property
    def endpoints(self) -> set[tuple[str, int]]:
        """Where a connection is no violation: the sites, and the port that nobody listens on."""
        return {*self.by_address, ("127.0.0.9", 8999)}

    @property
    def links(self) -> Mapping[str, tuple[str, ...]]:
        """Where each page links to that shows its links whole."""
        whole = {*HONEST, "late", "slow", "closing", "busy", "failing"}
        return {
            f"{site.origin}{page.path}": page.links
            for site in self.sites
            for page in site.pages.values()
            if page.kind in whole
        }

    @property
    def sound_pages(self) -> list[str]:
        """Pages that never lie, on sites that never do, and that robots.txt allows."""
        return [
            f"{site.origin}{page.path}"
            for site in self.sites
            if len(site.moods) == 1 and len(site.access) == 1
            for page in site.pages.values()
            if page.kind in HONEST and not page.path.startswith(PRIVATE)
        ]

    # -- making it -----------------------------------------------------------------------------------------------

    def _site(self, number: int, shape: WorldShape, draw: random.Random, start: float) -> WebSite:
        port = 8001 + number
        address = draw.choice(("127.0.0.1", "127.0.0.2", f"127.0.1.{number}"))
        authority = f"{address}:{port}"
        if draw.random() < 0.3:
            address, authority = "127.0.0.1", f"s{number}.localhost:{port}"
        moods, access = [(FOREVER, draw.choice(("rules", "rules", "rules", "none")))], [(FOREVER, "accept")]
        if draw.random() < shape.lies:
            for _ in range(draw.randint(1, 3)):
                lie = draw.choice(("error", "error", "mute", "broken", "busy", "lax", "moved", "hop"))
                moods.insert(0, (start + draw.expovariate(1 / 60.0), lie))
            moods.sort()
        if draw.random() < shape.lies / 2:
            access.insert(0, (start + draw.expovariate(1 / 60.0), draw.choice(("refuse", "silent"))))
        site = WebSite(authority, (address, port), number, draw.choice((0.001, 0.02, 0.2)), moods, access)
        site.delay = draw.choice((0.0, 0.0, 0.0, 1.0, 7.0))
        for place in range(draw.randint(1, shape.pages)):
            lies = draw.random() < shape.lies and place > 0
            kind = draw.choice(LIES if lies else HONEST) if place else "html"
            folder = PRIVATE if place and draw.random() < shape.private else f"/{draw.choice('abc')}/"
            ending = {"feed": ".xml", "document": ".xml", "picture": ".dat"}.get(kind, ".html")
            path = f"{folder}p{place}{ending}" if place else "/"
            site.pages[path] = LyingPage(
                path, kind, period=draw.choice((30.0, 300.0)) if kind == "changing" else FOREVER
            )
        return site

    def _link(self, site: WebSite, shape: WorldShape, draw: random.Random, urls: list[str]) -> None:
        own = [f"{site.origin}{path}" for path in site.pages]
        chain = own[1:]
        for page in site.pages.values():
            found = draw.choices(own, k=draw.randint(0, 5)) + draw.choices(urls, k=draw.randint(0, 3))
            found += chain[:2]  # so that most is reachable
            del chain[:2]
            if draw.random() < 0.15:
                found.append(draw.choice((*FORBIDDEN, "http://127.0.0.9:8999/", f"{site.origin}/nowhere")))
            page.links = tuple(dict.fromkeys(found))
            if page.kind == "feed":
                page.links = tuple(url for url in page.links if url in own)
            page.target = draw.choice(urls)
            if page.kind == "forbidden":
                page.target = draw.choice(FORBIDDEN)
            if page.kind == "looping":
                page.target = f"{site.origin}{page.path}"

    # -- living --------------------------------------------------------------------------------------------------

    def accept(self, address: tuple[str, int], now: float) -> tuple[str, float]:
        """How a connection to an address goes, and when."""
        site = self.by_address.get(address)
        return ("refuse", 0.001) if site is None else (self._mood(site.access, now), site.latency)

    def _mood(self, moods: list[tuple[float, str]], now: float) -> str:
        """The last one from the truce on."""
        return moods[-1][1] if now >= self.truce else next(mood for end, mood in moods if now < end)

    def answer(self, request: PeerRequest, now: float) -> PeerReply:
        """Return the answer of the site that a request is for."""
        site = self.by_authority.get(request.authority)
        if site is None:
            return _reply(404, b"no such host")
        self.visits[request.url] += 1
        if request.path == "/robots.txt":
            return self._robots(site, self._mood(site.moods, now))
        if request.path.startswith("/robots/"):
            origin = self.sites[int(request.path.removeprefix("/robots/"))]
            return self._robots(origin, "rules", site.latency)
        page = site.pages.get(request.path)
        if page is None:
            return _reply(404, b"nothing here", delay=site.latency)
        kind = page.kind
        if now >= self.truce and kind in ("busy", "failing", "mute", "broken", "endless", "drip", "slow"):
            kind = "html"
        return ANSWERS[kind](_PageVisit(site, page, request, self.visits[request.url], now))

    def _robots(self, site: WebSite, mood: str, latency: float | None = None) -> PeerReply:
        delay = site.latency if latency is None else latency
        unusable = SiteRules(site.origin, usable=False)
        if mood in ("moved", "hop"):
            other = site if mood == "moved" else self.sites[(site.number + 1) % len(self.sites)]
            location = f"{other.origin}/robots/{site.number}"
            return _reply(302, b"", {"Location": location}, delay=delay)._replace(robots=unusable)
        if mood == "mute":
            return PeerReply((), HANG, robots=unusable)
        if mood == "broken":
            return PeerReply(
                (AnswerPiece(delay, b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\nUser-"),), RESET, robots=unusable
            )
        if mood in ("error", "busy"):
            wait = {"Retry-After": "9"} if mood == "busy" else {}
            reply = _reply(503 if mood == "error" else 429, b"later", wait, delay=delay)
            return reply._replace(robots=unusable, wait=9.0 if wait else 0.0)
        if mood == "none":
            return _reply(404, b"", delay=delay)._replace(robots=SiteRules(site.origin))
        rules = SiteRules(site.origin, (PRIVATE,) if mood == "rules" else (), site.delay)
        text = f"User-agent: other\nDisallow: /\n\nUser-agent: *\nDisallow: {PRIVATE if mood == 'rules' else ''}\n"
        if site.delay:
            text += f"Crawl-delay: {site.delay:g}\n"
        return _reply(200, text.encode(), {"Content-Type": "text/plain"}, delay=delay)._replace(robots=rules)


# Answers


@dataclass(slots=True)
class _PageVisit:
    """A request for a page."""

    site: WebSite
    page: LyingPage
    request: PeerRequest
    count: int
    now: float

    @property
    def version(self) -> int:
        return int(self.now // self.page.period)

    @property
    def body(self) -> bytes:
        links = "".join(f'<li><a href="{url}">to {place}</a>\n' for place, url in enumerate(self.page.links))
        return f"<!doctype html><title>{self.page.path}</title><p>Version {self.version}\n{links}".encode()


HTML = "text/html; charset=utf-8"


def _head(status: int, length: int | None, headers: Mapping[str, str] | None = None) -> bytes:
    lines = [f"HTTP/1.1 {status} Whatever"]
    lines += [f"{name}: {value}" for name, value in {"Content-Type": HTML, **(headers or {})}.items()]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    return "\r\n".join([*lines, "", ""]).encode()


def _reply(
    status: int, body: bytes, headers: Mapping[str, str] | None = None, *, delay: float = 0.0, end: str = KEEP
) -> PeerReply:
    return PeerReply((AnswerPiece(delay, _head(status, len(body), headers) + body),), end, status)


def _plain(visit: _PageVisit) -> PeerReply:
    etag = f'"{visit.version}"'
    if visit.page.kind == "changing" and visit.request.headers.get("if-none-match") == etag:
        return PeerReply((AnswerPiece(visit.site.latency, _head(304, None, {"ETag": etag})),), KEEP, 304)
    more = {"ETag": etag} if visit.page.kind == "changing" else {}
    return _reply(200, visit.body, more, delay=visit.site.latency)


def _chunked(visit: _PageVisit) -> PeerReply:
    body = visit.body
    half = len(body) // 2
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:half], body[half:])) + b"0\r\n\r\n"
    head = _head(200, None, {"Transfer-Encoding": "chunked"})
    return PeerReply((AnswerPiece(visit.site.latency, head), AnswerPiece(0.01, chunks)), KEEP, 200)


def _gzip(visit: _PageVisit) -> PeerReply:
    coding = {"Content-Encoding": "gzip"}
    return _reply(200, gzip.compress(visit.body, mtime=0), coding, delay=visit.site.latency)


def _feed(visit: _PageVisit) -> PeerReply:
    items = "".join(f"<item><link>{url}</link><title>t</title></item>" for url in visit.page.links)
    text = f'<?xml version="1.0"?><rss version="2.0"><channel><title>f</title>{items}</channel></rss>'
    return _reply(200, text.encode(), {"Content-Type": "application/rss+xml"}, delay=visit.site.latency)


def _document(visit: _PageVisit) -> PeerReply:
    links = "".join(f'<see xlink:href="{url}"/>' for url in visit.page.links)
    text = f'<?xml version="1.0"?><doc xmlns:xlink="http://www.w3.org/1999/xlink">{links}</doc>'
    return _reply(200, text.encode(), {"Content-Type": "application/xml"}, delay=visit.site.latency)


def _moved(visit: _PageVisit) -> PeerReply:
    return _reply(301 if visit.page.kind == "moved" else 302, b"", {"Location": visit.page.target})


def _slow(visit: _PageVisit) -> PeerReply:
    """A first byte that comes just in time, or too late."""
    return _reply(200, visit.body, delay=1.0 + 2.0 * (visit.count % 2))


def _drip(visit: _PageVisit) -> PeerReply:
    body = visit.body
    head = _head(200, len(body))
    pieces = [AnswerPiece(0.3, body[place : place + 40]) for place in range(0, len(body), 40)]
    return PeerReply((AnswerPiece(visit.site.latency, head), *pieces), KEEP, 0)


def _endless(visit: _PageVisit) -> PeerReply:
    pieces = [AnswerPiece(0.01, b"<p>more " * 800) for _ in range(20)]
    return PeerReply((AnswerPiece(visit.site.latency, _head(200, None)), *pieces), HANG)


def _short(visit: _PageVisit) -> PeerReply:
    body = visit.body
    return PeerReply((AnswerPiece(visit.site.latency, _head(200, len(body) + 100) + body),), CLOSE)


def _broken(visit: _PageVisit) -> PeerReply:
    body = visit.body
    piece = AnswerPiece(visit.site.latency, _head(200, len(body)) + body[: len(body) // 2])
    return PeerReply((piece,), RESET)


def _mute(visit: _PageVisit) -> PeerReply:
    return PeerReply((), HANG if visit.count % 2 else RESET)


def _busy(visit: _PageVisit) -> PeerReply:
    if visit.count % 3 == 0:
        return _plain(visit)
    wait = (3, 11)[visit.count % 2]
    return _reply(429, b"slower", {"Retry-After": str(wait)}, delay=visit.site.latency)._replace(wait=float(wait))


def _failing(visit: _PageVisit) -> PeerReply:
    if visit.count % 2 == 0:
        return _plain(visit)
    return _reply(503, b"later", {"Retry-After": "4"}, delay=visit.site.latency)._replace(wait=4.0)


def _garbage(visit: _PageVisit) -> PeerReply:
    kinds = (
        b"\0\1\2 no HTTP at all\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 206 Partial Content\r\nContent-Length: 2\r\n\r\nhi",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    )
    return PeerReply((AnswerPiece(0.0, kinds[len(visit.page.links) % len(kinds)]),), CLOSE)


def _picture(visit: _PageVisit) -> PeerReply:
    return _reply(200, b"\x89PNG\r\n\x1a\n" * 9, {"Content-Type": "image/png"})


def _late(visit: _PageVisit) -> PeerReply:
    """The head at once, the body later."""
    body = visit.body
    return PeerReply((AnswerPiece(0.0, _head(200, len(body))), AnswerPiece(1.2, body)), KEEP, 200)


def _closing(visit: _PageVisit) -> PeerReply:
    """The connection is closed after the answer, without a word."""
    return _reply(200, visit.body, delay=visit.site.latency, end=CLOSE)


ANSWERS: dict[str, Callable[[_PageVisit], PeerReply]] = {
    **dict.fromkeys(("html", "changing"), _plain),
    "chunked": _chunked,
    "gzip": _gzip,
    "feed": _feed,
    "document": _document,
    "missing": lambda visit: _reply(404, b"not here"),
    "gone": lambda visit: _reply(410, b"gone"),
    **dict.fromkeys(("moved", "elsewhere", "looping", "forbidden"), _moved),
    "slow": _slow,
    "endless": _endless,
    "short": _short,
    "broken": _broken,
    "mute": _mute,
    "busy": _busy,
    "failing": _failing,
    "garbage": _garbage,
    "picture": _picture,
    "late": _late,
    "drip": _drip,
    "closing": _closing,
}
"""kind of a page -> what its server does"""
