"""Sites on loopback, each with a robots.txt of its own, that note every request; some want requests to be signed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.xyro.signature_judge import ReceivedRequest

WORDS = "A page has a few sentences of its own. They tell of nothing but of this very page, at length. " * 5


class SignalSite(ThreadingHTTPServer):
    """One site: a page for each path, with a link to the next one, as far as `pages`."""

    daemon_threads = True

    def __init__(self, robots: str, pages: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.robots = robots
        self.pages = pages
        self.log: list[str] = []
        """paths that were asked for"""
        self.requests: list[ReceivedRequest] = []
        self.asks = False
        """pages are refused, with an Accept-Signature, to requests that have no signature"""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: SignalSite

    def do_GET(self) -> None:
        self.server.log.append(self.path)
        url = f"http://{self.headers['Host']}{self.path}"
        self.server.requests.append(ReceivedRequest(self.command, url, dict(self.headers)))
        if self.server.asks and self.path != "/robots.txt" and "Signature" not in self.headers:
            self.send_response(403)
            self.send_header("Accept-Signature", 'sig1=("@authority");tag="web-bot-auth"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        kind, text = "text/plain", self.server.robots
        if self.path != "/robots.txt":
            number = int(self.path[1:] or 0)
            link = f'<a href="/{number + 1}">next</a>' if number + 1 < self.server.pages else ""
            kind = "text/html"
            text = f"<html><head><title>Page {number}</title></head><body><p>{number}: {WORDS}</p>{link}</body></html>"
        body = text.encode()
        tag = f'"{len(body)}"'
        if kind == "text/html" and self.headers["If-None-Match"] == tag:
            self.send_response(304)
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("ETag", tag)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def signal_sites(*robots: str, pages: int = 2) -> Iterator[list[SignalSite]]:
    """A site for each robots.txt."""
    with ExitStack() as stack:
        sites = []
        for text in robots:
            site = stack.enter_context(SignalSite(text, pages))
            threading.Thread(target=site.serve_forever, args=(0.05,), daemon=True).start()
            stack.callback(site.shutdown)
            sites.append(site)
        yield sites
