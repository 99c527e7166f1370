"""[[sites]]: what an operator sets for some hosts: headers, cookies, credentials, delay, signature, proxy.

The first entry whose pattern fits a host holds for it, alone. What it adds to a request goes to that host only: no
client follows a redirect, each hop is a request of its own, by the entry of its own host; and no request has a Referer.
Values are never kept: WARC files have the names of these headers, and NOT_KEPT (`masked`).
"""

from __future__ import annotations

import base64
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal

from xyro.wire.errors import InputError
from xyro.wire.urls import authority, fits

NOT_KEPT: Final = b"(not kept)"
LONGEST_VALUE = 4096
"""characters of a header's value"""
SignatureKind = Literal["bytes", "text", "links"]


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy (proxy.py). host: an address, or a name. login: the value of Proxy-Authorization, or empty."""

    host: str
    port: int
    login: str = field(default="", repr=False)
    resolves: bool = False


@dataclass(frozen=True, slots=True)
class SiteEntry:
    """One entry, its secrets looked up. None: as everywhere. proxied: by `proxy`, which may be none."""

    pattern: str
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    """Cookie and Authorization among them"""
    delay: float | None = None
    signature: SignatureKind | None = None
    proxied: bool = False
    proxy: Proxy | None = None


@dataclass(frozen=True, slots=True)
class SiteOptions:
    """All entries in their order, and `headers` for every host."""

    sites: tuple[SiteEntry, ...] = ()
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    proxy: Proxy | None = None
    """of all hosts whose entry names no other"""


NO_SITES: Final = SiteOptions()


class SiteEntries:
    """The entries, asked by host (host[:port])."""

    def __init__(self, options: SiteOptions = NO_SITES) -> None:
        self.follow(options)

    def follow(self, options: SiteOptions) -> None:
        """Begin with these entries, or go on with others: from the next request to each host on."""
        self._options = options
        self.on = options != NO_SITES
        """something is set; else nothing here need be asked"""
        self.of = lru_cache(maxsize=65_536)(self._first)
        self._headers = {id(site): _joined(options.headers, site.headers) for site in options.sites}

    def _first(self, host: str) -> SiteEntry | None:
        """The entry that holds for a host."""
        return next((site for site in self._options.sites if fits(host, site.pattern)), None)

    def headers(self, url: str, asked: Mapping[str, str] | None) -> Mapping[str, str] | None:
        """The headers that a GET of `url` has beside those of every request."""
        site = self.of(authority(url)) if self._options.sites else None
        added = self._options.headers if site is None else self._headers[id(site)]
        return {**added, **(asked or {})} if added else asked

    def delay(self, host: str) -> float | None:
        """Seconds between two reads of a host, where its entry says so."""
        site = self.of(host) if self._options.sites else None
        return None if site is None else site.delay

    def proxy(self, host: str) -> Proxy | None:
        """The proxy that a host is read through."""
        site = self.of(host) if self._options.sites else None
        return site.proxy if site is not None and site.proxied else self._options.proxy

    def signature(self, url: str, default: SignatureKind) -> SignatureKind:
        """Return the kind of signature that a page gets."""
        site = self.of(authority(url)) if self._options.sites else None
        return default if site is None or site.signature is None else site.signature


def _joined(first: Mapping[str, str], second: Mapping[str, str]) -> dict[str, str]:
    """Headers of both, those of the second where both have one of a name."""
    names = {name.lower() for name in second}
    return {name: value for name, value in first.items() if name.lower() not in names} | dict(second)


def basic(user_and_password: str, place: str) -> str:
    """The value of Authorization (RFC 7617) for "user:password"."""
    if ":" not in user_and_password:
        raise InputError(f"{place}: expected user:password there, got no colon")
    return "Basic " + base64.b64encode(user_and_password.encode()).decode()


def secret(env: str, file: str, place: str) -> str:
    """The text of an environment variable, or of a file without the white space around it. InputError names the place,
    never the text."""
    if env:
        text, source = os.environ.get(env, ""), f"environment variable {env}"
    else:
        source = file
        try:
            text = Path(file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise InputError(f"{place}: {file}: {reason}") from error
    if not text:
        raise InputError(f"{place}: {source} is not set, or empty")
    if not text.isascii() or not text.isprintable() or len(text) > LONGEST_VALUE:
        raise InputError(f"{place}: {source}: expected one line of printable ASCII, {LONGEST_VALUE} characters at most")
    return text


def private_names(options: SiteOptions) -> tuple[str, ...]:
    """Names, in lower case, of all headers whose values are not kept."""
    every: Iterable[Mapping[str, str]] = (options.headers, *(site.headers for site in options.sites))
    return tuple(sorted({name.lower() for headers in every for name in headers}))


def masked(head: bytes, names: Collection[str]) -> bytes:
    """The head of a request without the values of these headers."""
    if not names:
        return head
    lines = head.split(b"\r\n")
    for number, line in enumerate(lines):
        name = line.partition(b":")[0]
        if name.decode("latin-1").lower() in names:
            lines[number] = name + b": " + NOT_KEPT
    return b"\r\n".join(lines)


def is_of_bytes(options: SiteOptions, default: SignatureKind) -> bool:
    """Tell whether every page's signature is that of its bytes."""
    return {default, *(site.signature or default for site in options.sites)} == {"bytes"}
