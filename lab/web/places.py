"""The kind, the host and the URL of each page. URLs carry the page number, so parsing needs no table.

    http://127.1.x.y:PORT/                  a host's home page
    http://127.1.x.y:PORT/d3/p12345.html    page 12345: an HTML page, a dead one or a redirect (no URL tells)
    /d3/p12345.xml  /d3/p12345.png  /private/p12345.html  /dtd/p3.dtd  /feed-2.xml  /sitemap-5.xml  /sitemap-index-4.xml

Pages of a host are consecutive numbers; the first of each host are its home, feed, DTD, sitemap index and sitemaps.
"""

from __future__ import annotations

import enum
import re

import numpy as np
from numpy.typing import NDArray

from xyro.lab.web.chance import unit
from xyro.lab.web.shape import DAY, Shape


class Doc(enum.IntEnum):
    """The kind of a page of the computed web."""

    HTML = 0
    XML = 1
    """a document that needs an external DTD"""
    DTD = 2
    FEED = 3
    """RSS 2.0 on even hosts, Atom on odd ones"""
    SITEMAP = 4
    INDEX = 5
    """sitemap index"""
    REDIRECT = 6
    """301 or 302"""
    DEAD = 7
    """404 or 410"""
    FILE = 8
    """not worth reading by its suffix"""
    PRIVATE = 9
    """HTML that robots.txt disallows"""
    OUTSIDE = 10
    """on a host that is not ours"""


FIXED = (Doc.HTML, Doc.FEED, Doc.DTD, Doc.INDEX)
"""kinds of a host's first pages; its sitemaps come after them"""
FILE_SUFFIXES = ("png", "zip", "jpg", "pdf")
PAGES_PER_SITEMAP = 300
FOLDERS = 9
"""ordinary pages lie in /d1/ to /d8/, one in nine in the root"""
_ARCHIVE, _BORN, _WHEN, _VEIL = 601, 602, 603, 604
"""keys that keep the draws of different purposes apart"""
_NUMBER = re.compile(r"(\d{1,9})\.[a-z]{3,4}$")
_ADDRESS = re.compile(r"127\.1\.(\d{1,3})\.(\d{1,3})")


def address_of(host: int) -> str:
    """Loopback address of a host number: 127.1.x.y with y in 1..250."""
    return f"127.1.{host // 250}.{host % 250 + 1}"


def host_at(address: str) -> int:
    """Inverse of address_of; -1 for an address that is no host's."""
    match = _ADDRESS.fullmatch(address)
    if match is None:
        return -1
    host = int(match[1]) * 250 + int(match[2]) - 1
    return host if address_of(host) == address else -1


def disallows(host: int) -> bool:
    """Each third host has a folder that its robots.txt disallows."""
    return host % 3 == 1


class Places:
    """kinds: uint8[pages]; hosts: int64[pages]; starts: int64[hosts + 1], host h has pages starts[h]..starts[h+1]-1.

    born: float64[pages], seconds since 1970; -inf: it was always there.
    """

    def __init__(self, shape: Shape, rng: np.random.Generator) -> None:
        self.shape = shape
        self.starts: NDArray[np.int64] = np.linspace(0, shape.pages, shape.hosts + 1).astype(np.int64)
        self.hosts: NDArray[np.int64] = np.repeat(np.arange(shape.hosts), np.diff(self.starts))
        self.kinds = _draw_kinds(shape, self.hosts, rng)
        self._paths: dict[int, str] = {}
        for host, start in enumerate(self.starts[:-1].tolist()):
            sitemaps = 1 + (int(self.starts[host + 1]) - start) // PAGES_PER_SITEMAP
            first = (*FIXED, *[Doc.SITEMAP] * sitemaps)
            self.kinds[start : start + len(first)] = first
        self.born = _births(shape, self.kinds)

    def of_kind(self, *kinds: Doc) -> NDArray[np.int64]:
        """Numbers of all pages of these kinds, ascending."""
        return np.flatnonzero(np.isin(self.kinds, kinds))

    def path(self, page: int) -> str:
        """Path of one of our own pages."""
        path = self._paths.get(page)
        if path is None:
            path = self._paths[page] = self._path(page)
        return path

    def folder_of(self, page: int) -> str:
        """Folder of a page's path, with both slashes."""
        path = self.path(page)
        return path[: path.rindex("/") + 1]

    def find(self, host: int, path: str) -> int:
        """Number of the page at a path of a host; -1 where there is none."""
        if not 0 <= host < self.shape.hosts:
            return -1
        if path == "/":
            return int(self.starts[host])
        match = _NUMBER.search(path)
        page = int(match[1]) if match else -1
        if not self.starts[host] <= page < self.starts[host + 1]:
            return -1
        return page if self.path(page) == path else -1

    def _path(self, page: int) -> str:
        kind = Doc(self.kinds[page])
        match kind:
            case Doc.FEED:
                return f"/feed-{page}.xml"
            case Doc.SITEMAP:
                return f"/sitemap-{page}.xml"
            case Doc.INDEX:
                return f"/sitemap-index-{page}.xml"
            case Doc.DTD:
                return f"/dtd/p{page}.dtd"
            case Doc.PRIVATE:
                return f"/private/p{page}.html"
        if page == self.starts[self.hosts[page]]:
            return "/"
        folder = page * 7919 % FOLDERS
        return (f"/d{folder}" if folder else "") + f"/p{page}.{self._suffix(kind, page)}"

    def _suffix(self, kind: Doc, page: int) -> str:
        if kind is Doc.FILE:
            return FILE_SUFFIXES[page % len(FILE_SUFFIXES)]
        tells = kind is Doc.XML and unit(self.shape.seed, page, _VEIL) >= self.shape.veiled
        return "xml" if tells else "html"


def _draw_kinds(shape: Shape, hosts: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.uint8]:
    kinds = (Doc.XML, Doc.REDIRECT, Doc.DEAD, Doc.FILE, Doc.PRIVATE, Doc.HTML)
    ends = np.cumsum([shape.xml, shape.redirects, shape.dead, shape.files, shape.private])
    drawn = np.array(kinds, np.uint8)[np.searchsorted(ends, rng.random(shape.pages), side="right")]
    drawn[(drawn == Doc.PRIVATE) & (hosts % 3 != 1)] = Doc.HTML
    if shape.archives < 1.0:
        _gather(shape, drawn, hosts, rng)
    return drawn


def _gather(shape: Shape, drawn: NDArray[np.uint8], hosts: NDArray[np.int64], rng: np.random.Generator) -> None:
    """Documents on the archives only, as many as were drawn."""
    order = sorted(range(shape.hosts), key=lambda host: unit(shape.seed, host, _ARCHIVE))
    archive = np.isin(hosts, order[: max(1, round(shape.archives * shape.hosts))])
    count = int((drawn == Doc.XML).sum())
    drawn[drawn == Doc.XML] = Doc.HTML
    room = np.flatnonzero(archive & (drawn == Doc.HTML))
    drawn[rng.choice(room, min(count, len(room)), replace=False)] = Doc.XML


def _births(shape: Shape, kinds: NDArray[np.uint8]) -> NDArray[np.float64]:
    born = np.full(shape.pages, -np.inf)
    if shape.births:
        span = shape.birth_days * DAY / shape.speed
        for page in np.flatnonzero(kinds == Doc.XML).tolist():
            if unit(shape.seed, page, _BORN) < shape.births:
                born[page] = shape.origin + span * unit(shape.seed, page, _WHEN)
    return born
