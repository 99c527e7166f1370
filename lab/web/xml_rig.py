"""Real XML over loopback: DocBook documents of Debian packages, their DTDs on another host, feeds, sitemaps.

    python -m xyro.lab.web.xml_rig --log access.log [--pages 400]

Packages are fetched with apt-get, unpacked into $RIG_DATA/xml (default ~/.cache/xyro-rig/xml) and never installed; what
is there already is not fetched again. Without network and cache `fetch` raises MachineError with the reason.

    127.0.2.1       the entry: links to the index of every package, a feed, `pages` ordinary pages of the DTD host
    127.0.2.2 ...   one package each: index, documents and entities as they are, a sitemap named in robots.txt
    127.0.2.99      what documents call http://www.oasis-open.org/ and http://docbook.org/: DTDs, modules, entities, and
                    `pages` ordinary HTML pages

The names of those two sites in the bodies are replaced by the address of the third host; all else is as packaged.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from xml.sax.saxutils import escape

from aiohttp import web
from lxml import etree

from xyro.lab.web.access_log import AccessLog, LogEntry
from xyro.lab.web.prose import prose
from xyro.wire.clock import SystemClock
from xyro.wire.errors import MachineError

GRAMMARS = ("docbook-xml", "sgml-data")
DOCUMENTS = ("docbook-xml", "gnumeric-doc", "atril-common", "eom-common", "mate-panel-common", "pluma-common")
"""Debian packages that ship DocBook: examples for each version, a book of 73 entities, articles in many languages (with
their DTD), and a book of DocBook 5 put together by XInclude (without one)."""
LIMIT = 80
"""documents of a package that are listed: translations repeat themselves"""
SITES = (b"http://www.oasis-open.org/", b"http://docbook.org/", b"http://www.docbook.org/")
HUB, GRAMMAR_HOST = "127.0.2.1", "127.0.2.99"
_DTD_ROOT, _ENTITIES = "usr/share/xml/docbook/schema/dtd", "usr/share/xml/entities/xml-iso-entities-8879.1986"
_SUFFIXES = {
    ".xml": "application/xml",
    ".docbook": "application/xml",
    ".dtd": "application/xml-dtd",
    ".mod": "application/xml-dtd",
    ".ent": "application/xml-external-parsed-entity",
}
_DOCTYPE = re.compile(rb"<!DOCTYPE\s+[\w:.-]+\s+(?:PUBLIC|SYSTEM)\s")
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
Files = dict[str, tuple[str, bytes]]
"""path -> (media type, body)"""


def cache() -> Path:
    """Return the directory in which packages are unpacked."""
    return Path(os.environ.get("RIG_DATA", Path.home() / ".cache" / "xyro-rig")) / "xml"


def fetch(packages: Iterable[str], directory: Path) -> None:
    """Have these packages unpacked below the directory. MachineError: one can neither be found there nor fetched."""
    directory.mkdir(parents=True, exist_ok=True)
    for package in packages:
        if (directory / package / "usr").exists():
            continue
        _run(["apt-get", "download", "-q", package], directory)
        for archive in directory.glob(f"{package}_*.deb"):
            _run(["dpkg", "-x", archive.name, package], directory)
            archive.unlink()


def _run(command: Sequence[str], directory: Path) -> None:
    try:
        subprocess.run(command, cwd=directory, check=True, capture_output=True, timeout=300)  # noqa: S603
    except (OSError, subprocess.SubprocessError) as error:
        message = getattr(error, "stderr", b"") or b""
        reason = message.decode(errors="replace").strip().rpartition("\n")[2] or str(error)
        raise MachineError(f"xml rig: {' '.join(command)}: {reason}: it needs Debian's packages once") from None


@dataclass(frozen=True, slots=True)
class Site:
    """The site that the rig serves: host -> its files. `documents`: URLs of the files that name a DTD."""

    port: int
    hosts: dict[str, Files]
    documents: tuple[str, ...]

    @property
    def entry(self) -> str:
        return f"http://{HUB}:{self.port}/"

    def body(self, url: str) -> bytes | None:
        """Return the body at a URL; None: there is no file."""
        host, _, path = url.removeprefix("http://").partition(f":{self.port}")
        found = self.hosts.get(host, {}).get(path)
        return None if found is None else found[1]


def build(directory: Path, port: int, pages: int, packages: Sequence[str] = DOCUMENTS) -> Site:
    """The site of unpacked packages."""
    grammar = f"http://{GRAMMAR_HOST}:{port}/"
    installed = _grammars(directory, grammar)
    hosts: dict[str, Files] = {GRAMMAR_HOST: {**installed, **_ordinary(pages)}}
    named, entries = [], []
    for number, package in enumerate(packages, 2):
        origin = f"http://127.0.2.{number}:{port}"
        files = {**(installed if package == GRAMMARS[0] else {}), **dict(_served(directory / package, grammar))}
        paths = [path for path, (_, body) in files.items() if _is_document(path, body)][:LIMIT]
        named += [origin + path for path in paths]
        files["/"] = ("text/html", _list(package, [(path, path) for path in paths]))
        files["/sitemap.xml"] = ("application/xml", _sitemap([origin + path for path in paths]))
        files["/robots.txt"] = ("text/plain", f"User-agent: *\nDisallow:\nSitemap: {origin}/sitemap.xml\n".encode())
        hosts[f"127.0.2.{number}"] = files
        entries.append((f"{origin}/", package))
    ordinary = [(f"{grammar}page/{number}.html", str(number)) for number in range(pages)]
    feed = _feed(f"http://{HUB}:{port}/", named[:50])
    hosts[HUB] = {
        "/": ("text/html", _list("XML", [*ordinary, ("/feed.rss", "new"), *entries])),
        "/feed.rss": ("application/rss+xml", feed),
    }
    return Site(port, hosts, tuple(named))


def _served(package: Path, grammar: str) -> Iterator[tuple[str, tuple[str, bytes]]]:
    """Documents, entities and grammars of a package; links of the file system that stay inside are followed."""
    root = package.resolve()
    for found in sorted(package.glob("usr/share/help/*/**/*")) + sorted(package.glob("usr/share/doc/**/*")):
        mime = _SUFFIXES.get(found.suffix)
        real = found.resolve()
        if mime and real.is_file() and real.is_relative_to(root):
            yield "/" + str(found.relative_to(package)), (mime, _localised(real.read_bytes(), grammar))


def _grammars(directory: Path, grammar: str) -> Files:
    """DocBook's DTDs where its makers serve them and where Debian installs them, and the entities they name."""
    entities = sorted((directory / "sgml-data" / _ENTITIES).glob("*.ent"))
    files: Files = {f"/{_ENTITIES}/{found.name}": (_SUFFIXES[".ent"], found.read_bytes()) for found in entities}
    for folder in sorted((directory / "docbook-xml" / _DTD_ROOT).glob("4*")):
        base = "/docbook/xml/" + folder.name
        for found in [*sorted(folder.glob("*.dtd")), *sorted(folder.glob("*.mod"))]:
            body = _localised(_inside(directory / "docbook-xml", found).read_bytes(), grammar)
            for place in (base, "/xml/" + folder.name, f"/{_DTD_ROOT}/{folder.name}"):
                files[f"{place}/{found.name}"] = (_SUFFIXES[found.suffix], body)
    return files


def _inside(package: Path, found: Path) -> Path:
    """Resolve the links of a file of an unpacked package: an absolute link starts at the root of the package."""
    while found.is_symlink():
        target = found.readlink()
        found = package / target.relative_to("/") if target.is_absolute() else found.parent / target
    return found


def _localised(body: bytes, grammar: str) -> bytes:
    for site in SITES:
        body = body.replace(site, grammar.encode())
    return body


def _is_document(path: str, body: bytes) -> bool:
    """Tell whether a file names a DTD by a URL; names in comments do not count."""
    return Path(path).suffix in (".xml", ".docbook") and bool(_DOCTYPE.search(_COMMENT.sub(b"", body[:20_000])))


def _ordinary(pages: int) -> Files:
    words = prose(1)
    return {
        f"/page/{number}.html": (
            "text/html",
            f"<!DOCTYPE html><title>{number}</title><p>{' '.join(words.sentences(600, number))}</p>".encode(),
        )
        for number in range(pages)
    }


def _list(title: str, links: Sequence[tuple[str, str]]) -> bytes:
    items = "\n".join(f'<li><a href="{escape(href)}">{escape(text)}</a></li>' for href, text in links)
    return f"<!DOCTYPE html><title>{title}</title><ul>{items}</ul>".encode()


def _sitemap(urls: Sequence[str]) -> bytes:
    entries = "".join(f"<url><loc>{escape(url)}</loc></url>" for url in urls)
    return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'.encode()


def _feed(home: str, urls: Sequence[str]) -> bytes:
    items = "".join(f"<item><title>new</title><link>{escape(url)}</link></item>" for url in urls)
    head = f"<title>XML</title><link>{home}</link><description>new</description>"
    return f'<rss version="2.0"><channel>{head}{items}</channel></rss>'.encode()


class _Served(etree.Resolver):  # type: ignore[misc]  # lxml has no types
    """libxml2's requests, answered from the site; what is not there is missing."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.missed = False

    def resolve(self, url: str, public_id: str, context: object) -> object:
        body = self._site.body(url)
        if body is None:
            self.missed = True
            raise OSError(f"not served: {url}")
        return self.resolve_string(body, context, base_url=url)


def truth(site: Site) -> dict[str, str]:
    """Validate each document that names a DTD with libxml2: URL -> valid | invalid | broken."""
    return {url: _truth(site, url) for url in site.documents}


def _truth(site: Site, url: str) -> str:
    """Return the verdict on a document; broken: not well-formed with all its parts, or a part is not there."""
    for validating, verdict in ((False, "broken"), (True, "invalid")):
        parser = etree.XMLParser(
            dtd_validation=validating, load_dtd=True, resolve_entities=True, no_network=True, huge_tree=True
        )
        served = _Served(site)
        parser.resolvers.add(served)
        try:
            etree.fromstring(site.body(url) or b"", parser, base_url=url)
        except OSError:
            return "broken"
        except etree.XMLSyntaxError:
            return "broken" if served.missed else verdict
    return "valid"


async def serve(data: Path, packages: Sequence[str], pages: int, log: Path | None) -> None:
    """Serve until SIGTERM; the first line on stdout is the entry's URL."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    served: dict[str, Files] = {}
    clock, access = SystemClock(), AccessLog(log) if log else None

    async def answer(request: web.BaseRequest) -> web.Response:
        host = request.host.rpartition(":")[0]
        found = served.get(host, {}).get(request.path)
        status, (mime, body) = (200, found) if found else (404, ("text/plain", b"nothing here\n"))
        if access:
            agent = request.headers.get("User-Agent", "")
            access.write(
                LogEntry(clock.time(), host, request.method, status, mime, len(body), 0, 0, agent, request.path)
            )
        headers = {"Date": formatdate(clock.time(), usegmt=True)}
        return web.Response(body=body, status=status, content_type=mime, headers=headers)

    runners, port = [], 0
    for host in [HUB, *(f"127.0.2.{number}" for number in range(2, 2 + len(packages))), GRAMMAR_HOST]:
        runner = web.ServerRunner(web.Server(answer))
        await runner.setup()
        await web.TCPSite(runner, host, port, backlog=256).start()
        port = port or int(runner.addresses[0][1])
        runners.append(runner)
    site = build(data, port, pages, packages)
    served.update(site.hosts)
    sys.stdout.write(site.entry + "\n")
    sys.stdout.flush()
    await stop.wait()
    for runner in runners:
        await runner.cleanup()
    if access:
        access.close()


def main() -> int:
    """Command line. Exit code 1 where a package cannot be had."""
    parser = argparse.ArgumentParser(
        prog="python -m xyro.lab.web.xml_rig", description="Serve real DocBook on loopback."
    )
    parser.add_argument("--data", type=Path, default=cache(), help=f"unpacked packages [{cache()}]")
    parser.add_argument("--packages", default=",".join(DOCUMENTS), help="between commas")
    parser.add_argument("--pages", type=int, default=400, help="ordinary pages of the DTDs' host [400]")
    parser.add_argument("--log", type=Path, help="access log in the rig's format")
    options = parser.parse_args()
    packages = tuple(options.packages.split(","))
    try:
        fetch(dict.fromkeys((*GRAMMARS, *packages)), options.data)
    except MachineError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    asyncio.run(serve(options.data, packages, options.pages, options.log))
    return 0


if __name__ == "__main__":
    sys.exit(main())
