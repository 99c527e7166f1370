"""OASIS XML Catalogs 1.1: well-known identifiers lead to local copies, before anything is fetched.

    catalog = Catalog.load(["/etc/xml/catalog"])        reads the catalogs and those they name, once
    catalog.external(public, system)  -> Copy | None    section 7.1: DTDs and entities
    catalog.uri("http://...xsd")      -> Copy | None    section 7.2: schemas

Catalogs are the machine's own: they are named by a setting. Still only files are read, never a URL, and a copy has to
lie below the directory of a catalog that was read, however an entry (a rewrite of a stranger's identifier, say) spells
it. Copies are read when they are first wanted, and kept. libxml2 has catalogs of its own: no parser of ours lets it
ask them, since our resolver answers first, always (tests/loader/test_catalog.py sets XML_CATALOG_FILES).
"""

from __future__ import annotations

import os
import re
import stat
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

from lxml import etree
from msgspec import Struct, field

from xyro.loader.parse import XML_BASE
from xyro.wire.errors import InputError

NAMESPACE = "{urn:oasis:names:tc:entity:xmlns:xml:catalog}"
MOST_CATALOGS = 1_000
MOST_BYTES = 4 << 20
"""of one catalog, and of one copy"""
_CACHE = 64 << 20
"""bytes of copies kept"""
_ANSWERS = 4_096
"""identifiers remembered with their answer"""
_EXACT = {"public": "publicId", "system": "systemId", "uri": "name"}
_PREFIX = {
    "rewriteSystem": "systemIdStartString", "rewriteURI": "uriStartString",
    "delegatePublic": "publicIdStartString", "delegateSystem": "systemIdStartString", "delegateURI": "uriStartString",
}  # fmt: skip
_SUFFIX = {"systemSuffix": "systemIdSuffix", "uriSuffix": "uriSuffix"}
_TARGET = {"rewriteSystem": "rewritePrefix", "rewriteURI": "rewritePrefix"}
_TARGET |= dict.fromkeys(("delegatePublic", "delegateSystem", "delegateURI"), "catalog")
_ENTRIES = _EXACT | _PREFIX | _SUFFIX
_URN = "urn:publicid:"
_URN_SIGNS = {"+": " ", ":": "//", ";": "::", "%2B": "+", "%3A": ":", "%2F": "/", "%3B": ";", "%27": "'", "%3F": "?"}
_URN_SIGNS |= {"%23": "#", "%25": "%"}
_URN_SIGN = re.compile(r"%2B|%3A|%2F|%3B|%27|%3F|%23|%25|[+:;]", re.IGNORECASE)


class Copy(Struct, frozen=True):
    """A local copy: where it lies (file: URL) and what it is."""

    url: str
    body: bytes


class CatalogEntry(Struct, frozen=True):
    """One entry: `key` is what it compares with, `target` an absolute URL."""

    key: str
    target: str
    by_public: bool = True
    """public, delegatePublic: does it also count where there is a system identifier? (prefer, section 4.1.1)"""


class _File(Struct):
    """One catalog file: its entries by their element's name, in order, and the catalogs to go on with."""

    entries: dict[str, list[CatalogEntry]] = field(default_factory=lambda: {name: [] for name in _ENTRIES})
    next: list[str] = field(default_factory=list)


class Catalog:
    """A list of catalogs, the first of which that has an answer gives it. Identifiers in, copies out."""

    def __init__(self, first: Iterable[str], files: dict[str, _File]) -> None:
        """Use `load`. `first`: URLs of the catalogs to begin with; `files`: all that were read."""
        self._first = tuple(first)
        self._files = files
        self._roots = tuple({str(Path(path_of(url) or "/-").resolve().parent) + os.sep for url in files})
        self._copies: dict[str, Copy | None] = {}
        self._size = 0
        self._answers: dict[tuple[str, str], str | None] = {}

    @classmethod
    def load(cls, paths: Iterable[str | Path]) -> Catalog:
        """Read catalogs and those they lead to. InputError: one of `paths` is no catalog; others are passed over."""
        first = [Path(path).absolute().as_uri() for path in paths]
        files: dict[str, _File] = {}
        left = deque(first)
        while left and len(files) < MOST_CATALOGS:
            url = left.popleft()
            if url in files:
                continue
            try:
                files[url] = found = _read(url)
            except (OSError, etree.XMLSyntaxError, ValueError) as error:
                if url in first:
                    raise InputError(f"{path_of(url)}: not an XML catalog: {error}") from error
                continue
            left.extend(found.next)
            left.extend(entry.target for name in _TARGET if name[0] == "d" for entry in found.entries[name])
        return cls(first, files)

    def __len__(self) -> int:
        """Catalog files read."""
        return len(self._files)

    def external(self, public: str, system: str) -> Copy | None:
        """The copy of an external identifier; either may be empty."""
        if (public, system) not in self._answers:
            if len(self._answers) >= _ANSWERS:
                self._answers.clear()
            self._answers[public, system] = self._external(public, system)
        target = self._answers[public, system]
        return self._copy(target) if target else None

    def _external(self, public: str, system: str) -> str | None:
        public, system = _normal(public), system.strip()
        if system.lower().startswith(_URN):
            public, system = public or _public_of(system), ""
        if public.lower().startswith(_URN):
            public = _public_of(public)
        return _resolve_external(self._files, self._first, public, system, frozenset())

    def uri(self, name: str) -> Copy | None:
        """The copy of a resource that is no external identifier (a schema, a namespace)."""
        if name.lower().startswith(_URN):
            return self.external(_public_of(name), "")
        target = _resolve_uri(self._files, self._first, name, frozenset())
        return self._copy(target) if target else None

    def beside(self, url: str, copies: Iterable[str]) -> Copy | None:
        """A file that a copy names by a relative reference: one below the directory of a copy that was `given`."""
        fits = any(url.startswith(copy[: copy.rindex("/") + 1]) for copy in copies) and "/../" not in url
        return self._copy(url) if fits else None

    def _copy(self, url: str) -> Copy | None:
        if url not in self._copies:
            body = self._body(url)
            if self._size > _CACHE:
                self._copies.clear()
                self._size = 0
            self._copies[url] = None if body is None else Copy(url, body)
            self._size += len(url) + len(body or b"")
        return self._copies[url]

    def _body(self, url: str) -> bytes | None:
        path = path_of(url)
        if path is None or not str(Path(path).resolve()).startswith(self._roots):
            link = path and str(Path(path).parent.resolve() / Path(path).name)
            if not link or not link.startswith(self._roots):
                return None
        try:
            return _bytes(path or "")
        except (OSError, ValueError):
            return None


def path_of(url: str) -> str | None:
    """The file of a file: URL on this machine; None for every other URL."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or "%2f" in url.lower() or "%00" in url:
        return None
    return os.path.normpath(unquote(parts.path))


def _bytes(path: str) -> bytes:
    """An ordinary file, whole. OSError, ValueError: too large, or something else than a file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("not a file")
        body = file.read(MOST_BYTES + 1)
    if len(body) > MOST_BYTES:
        raise ValueError(f"more than {MOST_BYTES} bytes")
    return body


def _read(url: str) -> _File:
    """One catalog file. What it names beyond entries (its own DTD) is not read."""
    path = path_of(url)
    if path is None:
        raise ValueError("not a file: URL")
    parser = etree.XMLParser(load_dtd=False, resolve_entities=False, no_network=True)
    parser.resolvers.add(_Nothing())
    root = etree.fromstring(_bytes(path), parser)
    if root.tag != NAMESPACE + "catalog":
        raise ValueError(f"root element {root.tag}")
    found = _File()
    _gather(root, url, True, found)
    return found


class _Nothing(etree.Resolver):  # type: ignore[misc]  # lxml has no types
    def resolve(self, *asked: object) -> object:
        return self.resolve_empty(asked[-1])


def _gather(root: etree._Element, base: str, prefer: bool, found: _File) -> None:
    """The entries of a catalog or group; xml:base and prefer are inherited (sections 6.3, 6.5.2)."""
    base = urljoin(base, root.get(XML_BASE, ""))
    prefer = root.get("prefer", "public" if prefer else "system") != "system"
    for element in root.iterchildren(NAMESPACE + "*"):
        name = element.tag[len(NAMESPACE) :]
        if name == "group":
            _gather(element, base, prefer, found)
            continue
        here = urljoin(base, element.get(XML_BASE, ""))
        if name == "nextCatalog" and element.get("catalog"):
            found.next.append(urljoin(here, element.get("catalog")))
        elif name in _ENTRIES:
            key, target = element.get(_ENTRIES[name]), element.get(_TARGET.get(name, "uri"))
            if key and target is not None:
                key = _normal(key) if name in ("public", "delegatePublic") else key
                found.entries[name].append(CatalogEntry(key, urljoin(here, target), prefer))


# Resolution: sections 7.1.2 and 7.2.2, in this order: exact, longest rewrite, longest suffix, delegates, next catalog.

Files = dict[str, _File]
Seen = frozenset[str]
"""catalogs on the way here: a nextCatalog or delegate that leads back ends there"""


def _resolve_external(files: Files, urls: Iterable[str], public: str, system: str, seen: Seen) -> str | None:
    for url, file in _unseen(files, urls, seen):
        entries, way = file.entries, seen | {url}
        if system:
            target = _direct(entries, system, "system", "rewriteSystem", "systemSuffix")
            if target is not None:
                return target
            delegates = _delegates(entries["delegateSystem"], system)
            if delegates:
                return _resolve_external(files, delegates, "", system, way)
        if public:
            counted = [entry for entry in entries["public"] if entry.by_public or not system]
            for entry in counted:
                if entry.key == public:
                    return entry.target
            counted = [entry for entry in entries["delegatePublic"] if entry.by_public or not system]
            delegates = _delegates(counted, public)
            if delegates:
                return _resolve_external(files, delegates, public, "", way)
        target = _resolve_external(files, file.next, public, system, way)
        if target is not None:
            return target
    return None


def _resolve_uri(files: Files, urls: Iterable[str], name: str, seen: Seen) -> str | None:
    for url, file in _unseen(files, urls, seen):
        target = _direct(file.entries, name, "uri", "rewriteURI", "uriSuffix")
        if target is not None:
            return target
        delegates = _delegates(file.entries["delegateURI"], name)
        if delegates:
            return _resolve_uri(files, delegates, name, seen | {url})
        target = _resolve_uri(files, file.next, name, seen | {url})
        if target is not None:
            return target
    return None


def _unseen(files: Files, urls: Iterable[str], seen: Seen) -> Iterator[tuple[str, _File]]:
    return ((url, files[url]) for url in urls if url in files and url not in seen)


def _direct(entries: dict[str, list[CatalogEntry]], name: str, exact: str, rewrite: str, suffix: str) -> str | None:
    for entry in entries[exact]:
        if entry.key == name:
            return entry.target
    fits = [entry for entry in entries[rewrite] if name.startswith(entry.key)]
    if fits:
        best = max(fits, key=lambda entry: len(entry.key))
        return best.target + name[len(best.key) :]
    fits = [entry for entry in entries[suffix] if name.endswith(entry.key)]
    return max(fits, key=lambda entry: len(entry.key)).target if fits else None


def _delegates(entries: Iterable[CatalogEntry], name: str) -> list[str]:
    """The catalogs of the delegate entries that fit, the longest first, each once."""
    fits = sorted((entry for entry in entries if name.startswith(entry.key)), key=lambda entry: -len(entry.key))
    return list(dict.fromkeys(entry.target for entry in fits))


def _normal(public: str) -> str:
    """Section 6.2: white space in public identifiers."""
    return " ".join(public.split())


def _public_of(urn: str) -> str:
    """RFC 3151: urn:publicid: is a public identifier in another dress."""
    return _normal(_URN_SIGN.sub(lambda match: _URN_SIGNS[match[0].upper()], urn[len(_URN) :]))
