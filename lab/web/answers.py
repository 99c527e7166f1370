"""Requests in, responses out: HTTP's rules over the computed web, without sockets and without a clock.

Validators are true by default (ETag names page and version, Last-Modified the second of the last change); hosts of
another Manner send none, or lie. Whole responses are kept until their page changes, up to a bound in bytes; of a
web over TLS they are kept in the coding that they are sent in.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from email.utils import formatdate, parsedate_to_datetime
from http import HTTPStatus

from xyro.lab.web import codings, document_parts
from xyro.lab.web.changes import ChangeState
from xyro.lab.web.render import Rendered, render
from xyro.lab.web.web import Manner, Web

CACHE_BYTES = 64 << 20
OVERHEAD = 600
"""bytes of an entry beside its body, about"""
ALL = "br, gzip, zstd"
"""Accept-Encoding of most clients"""
_VALIDATED = 200
_REASONS = {status.value: status.phrase for status in HTTPStatus}


@dataclass(frozen=True, slots=True)
class Request:
    """A parsed request head; header names in lower case, of repeated headers the last."""

    method: str
    target: str
    headers: dict[str, str]
    version: str = "HTTP/1.1"

    @property
    def keep_alive(self) -> bool:
        """Tell whether the connection may serve another request after this one."""
        wish = self.headers.get("connection", "").lower()
        return wish != "close" if self.version == "HTTP/1.1" else wish == "keep-alive"


@dataclass(frozen=True, slots=True)
class Response:
    """`head`: header lines after Date, the empty line included; `body` is sent for GET only."""

    status: int
    mime: str
    head: bytes
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class _Rendered:
    state: ChangeState
    etag: str
    last_modified: str
    full: Response
    unchanged: Response


class Answers:
    """The answers of each host of the web. `answer` fills the cache, `cache_bytes` bounds it."""

    def __init__(self, web: Web, cache_bytes: int = CACHE_BYTES) -> None:
        self.web = web
        self._bound = cache_bytes
        self._rendered: OrderedDict[tuple[int, str], _Rendered] = OrderedDict()
        """(page, coding) -> response"""
        self._bytes = 0
        self._robots: dict[int, Response] = {}
        self._manners: dict[int, Manner] = {}
        self._wishes = [
            codings.preferred(web.shape.seed, host) for host in range(web.shape.hosts if web.shape.tls else 0)
        ]

    def answer(self, host: int, request: Request, t: float) -> Response:
        """The response of a host (number) at time t. For HEAD it is that of GET; the caller leaves the body away."""
        if request.method not in ("GET", "HEAD"):
            return _plain(405, "GET and HEAD only\n", "Allow: GET, HEAD\r\n")
        if request.target == "/robots.txt":
            return self._robots_of(host)
        page = self.web.places.find(host, request.target)
        if page < 0 and self.web.shape.parts and (part := document_parts.find(self.web, host, request.target)):
            return _part(self.web, *part)
        if page < 0:
            return _plain(404, "no such page\n")
        if self._manner(host) is Manner.LYING and self.web.status(page) == _VALIDATED:
            return self._lie(page, t)
        rendered = self._page(page, self._coding(host, request.headers.get("accept-encoding", "")), t)
        return rendered.unchanged if _not_modified(request, rendered, t) else rendered.full

    def prepare(self, t: float) -> None:
        """Make the answers that most clients get at time t, as many as find room."""
        keys = [(page, self._coding(self.web.host(page), ALL)) for page in range(self.web.shape.pages)]
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            for key, rendered in zip(keys, threads.map(lambda key: self._made(key[0], key[1], t), keys), strict=True):
                self._store(key, rendered)

    def delay(self, host: int, request: Request) -> float:
        """Seconds that this answer takes."""
        part = document_parts.find(self.web, host, request.target) if self.web.shape.parts else None
        return self.web.shape.slow if part is not None and part[0] is document_parts.Way.SLOW else 0.0

    def _robots_of(self, host: int) -> Response:
        if host not in self._robots:
            self._robots[host] = _plain(200, self.web.robots(host))
        return self._robots[host]

    def _manner(self, host: int) -> Manner:
        return self._manners.get(host) or self._manners.setdefault(host, self.web.manner(host))

    def _coding(self, host: int, accepted: str) -> str:
        return codings.chosen(self._wishes[host], accepted) if self._wishes else ""

    def _page(self, page: int, coding: str, t: float) -> _Rendered:
        key = page, coding
        rendered = self._rendered.get(key)
        if rendered is not None and rendered.state.since <= t < rendered.state.until:
            self._rendered.move_to_end(key)
            return rendered
        return self._store(key, self._made(page, coding, t))

    def _made(self, page: int, coding: str, t: float) -> _Rendered:
        return _keep(self.web, page, coding, self._manner(self.web.host(page)), t)

    def _store(self, key: tuple[int, str], rendered: _Rendered) -> _Rendered:
        """Keep a response in the place of an older one, and drop those that were not asked for longest."""
        if key in self._rendered:
            self._drop(key)
        self._rendered[key] = rendered
        self._bytes += len(rendered.full.body) + OVERHEAD
        while self._bytes > self._bound and len(self._rendered) > 1:
            self._drop(next(iter(self._rendered)))
        return rendered

    def _drop(self, key: tuple[int, str]) -> None:
        self._bytes -= len(self._rendered.pop(key).full.body) + OVERHEAD

    def _lie(self, page: int, t: float) -> Response:
        rendered = render(self.web, page, t)
        return _response(rendered, _validators(f'"{t:.6f}"', formatdate(t, usegmt=True)))


def _part(web: Web, way: document_parts.Way, number: int) -> Response:
    if way is document_parts.Way.GONE:
        return _plain(404, "no such part\n")
    target = document_parts.location(web, way, number)
    body = b"" if target else document_parts.text(web, way, number).encode()
    return _response(Rendered(302 if target else 200, document_parts.MIME, body, target))


def _keep(web: Web, page: int, coding: str, manner: Manner, t: float) -> _Rendered:
    state, rendered = web.state(page, t), render(web, page, t)
    etag = last_modified = ""
    if manner is Manner.HONEST and rendered.status == _VALIDATED:
        etag, last_modified = f'"p{page}-v{state.version}"', formatdate(int(state.modified), usegmt=True)
    validators = _validators(etag, last_modified) if etag else ""
    extra = validators
    if coding and len(rendered.body) >= codings.LEAST:
        rendered = replace(rendered, body=codings.coded(coding, rendered.body))
        extra += f"Content-Encoding: {coding}\r\nVary: Accept-Encoding\r\n"
    return _Rendered(
        state, etag, last_modified, _response(rendered, extra), Response(304, "", f"{validators}\r\n".encode())
    )


def _validators(etag: str, last_modified: str) -> str:
    return f"ETag: {etag}\r\nLast-Modified: {last_modified}\r\n"


def _not_modified(request: Request, rendered: _Rendered, t: float) -> bool:
    """RFC 9110 13.2.2: If-None-Match decides alone where it is sent, compared weakly; else If-Modified-Since."""
    if not rendered.etag:
        return False
    tags = request.headers.get("if-none-match")
    if tags is not None:
        return any(tag.strip().removeprefix("W/") in (rendered.etag, "*") for tag in tags.split(","))
    since = request.headers.get("if-modified-since")
    if since is None or since == rendered.last_modified:
        return since is not None
    try:
        when = parsedate_to_datetime(since).timestamp()
    except (ValueError, OverflowError):
        return False
    return int(rendered.state.modified) <= when <= t


def _plain(status: int, text: str, extra: str = "") -> Response:
    return _response(Rendered(status, "text/plain; charset=utf-8", text.encode()), extra)


def _response(rendered: Rendered, extra: str = "") -> Response:
    location = f"Location: {rendered.location}\r\n" if rendered.location else ""
    head = f"Content-Type: {rendered.mime}\r\nContent-Length: {len(rendered.body)}\r\n{location}{extra}\r\n"
    return Response(rendered.status, rendered.mime, head.encode(), rendered.body)


def status_line(status: int) -> bytes:
    """First line of a response."""
    return f"HTTP/1.1 {status} {_REASONS.get(status, 'Unknown')}\r\n".encode()


def refusal(status: int, text: str) -> Response:
    """A response to what is no sound request."""
    return _plain(status, text + "\n")
