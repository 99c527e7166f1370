"""A site that knows which changes a crawler must have told of: a page goes on to its next version only when it is asked
for with the validator of the one before, which a crawler that was killed too early does not have.

So whatever is killed when, the changes of a page are exactly its versions, each once and in order. It uses nothing of
Xyro.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
from collections.abc import Iterator

from aiohttp import web

from tests.plugins.serving import serving

LETTERS = str.maketrans("0123456789", "qrstuvwxyz")


class ChangingSite:
    """`hosts` addresses with `pages` pages each, in `versions` versions."""

    def __init__(self, hosts: int, pages: int, versions: int) -> None:
        self.hosts, self.pages, self.last = hosts, pages, versions - 1
        self.version: dict[tuple[str, str], int] = {}
        self.done: set[tuple[str, str]] = set()
        """pages whose last version the crawler has"""
        self.reads = 0
        self.port = 0

    def body(self, host: str, path: str, version: int) -> bytes:
        if path == "/":
            links = "".join(f'<a href="/p{i}.html">{i}</a>' for i in range(self.pages))
            others = "".join(f'<a href="http://127.3.0.{h + 1}:{self.port}/">h</a>' for h in range(self.hosts))
            return f"<html><body>{links}{others}</body></html>".encode()
        own = hashlib.sha256(f"{host}{path}".encode()).hexdigest()  # pages that are all alike look like a challenge
        names = [own[i : i + 5].translate(LETTERS) for i in range(0, 60, 5)]
        links = "".join(f'<p>{name}</p><a href="/p{i}.html">{name[::-1]}</a>' for i, name in enumerate(names))
        return f"<html><body><h1>{names[0]}</h1><p>is at version {version}</p>{links}</body></html>".encode()

    async def answer(self, request: web.Request) -> web.Response:
        host, path = request.host, request.path
        number = path.removeprefix("/p").removesuffix(".html")
        if path != "/" and not (number.isdigit() and int(number) < self.pages):
            self.reads += path != "/robots.txt"
            return web.Response(status=404)
        self.reads += 1
        last = 0 if path == "/" else self.last
        version = self.version.setdefault((host, path), 0)
        if request.headers.get("If-None-Match") == f'"v{version}"':
            if version == last:
                self.done.add((host, path))
                return web.Response(status=304)
            version = self.version[host, path] = version + 1
        body = self.body(host, path, version)
        response = web.Response(body=body, content_type="text/html", headers={"ETag": f'"v{version}"'})
        if path == "/":
            response.enable_compression(web.ContentCoding.gzip)
        return response

    def signatures(self, host: str, path: str) -> list[str]:
        """Of all versions of a page, in order."""
        last = 0 if path == "/" else self.last
        bodies = (self.body(host, path, version) for version in range(last + 1))
        return [hashlib.md5(body, usedforsecurity=False).hexdigest() for body in bodies]

    def expected(self) -> dict[str, list[tuple[str, str | None, str]]]:
        """URL -> (change, signature before, signature) of each of its changes, in order."""
        paths = ["/", *(f"/p{i}.html" for i in range(self.pages))]
        found = {}
        for host in (f"127.3.0.{h + 1}:{self.port}" for h in range(self.hosts)):
            for path in paths:
                signatures = self.signatures(host, path)
                changed = [("changed", a, b) for a, b in itertools.pairwise(signatures)]
                found[f"http://{host}{path}"] = [("new", None, signatures[0]), *changed]
        return found

    @property
    def entry(self) -> str:
        return f"http://127.3.0.1:{self.port}/"

    @property
    def complete(self) -> bool:
        return len(self.done) == self.hosts * (self.pages + 1)

    @contextlib.contextmanager
    def serving(self) -> Iterator[ChangingSite]:
        """In a thread with an event loop of its own."""
        with serving(self.answer, [f"127.3.0.{h + 1}" for h in range(self.hosts)]) as self.port:
            yield self
