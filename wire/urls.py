"""URLs: the one place that parses, resolves and compares them.

A canonical URL is what the WHATWG URL standard serialises (default port, dot segments, IDNA, backslashes, white space)
without fragment and userinfo, with the hexadecimal digits of percent escapes in upper case and, as the only rule beyond
the standard, a switchable one, with runs of slashes in the path folded (as Nutch does: joined by the standard, sqlite's
documentation is an endless trap). It is ASCII, its scheme is http or https, its path is never empty, and it has at most
MAX_URL characters. Nothing is decoded: %7E and ~ stay two pages.

`canonical` reads what a person gave and explains a refusal; `resolve` reads what a page gave and returns None. The rest
(`origin`, `host_of` ...) is string work that takes canonical URLs and the hosts of canonical URLs only.
"""

from __future__ import annotations

import codecs
import ipaddress
import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from ada_url import URL, join_url
from xxhash import xxh3_64_intdigest

from xyro.wire.errors import InputError
from xyro.wire.messages import MAX_URL
from xyro.wire.text import printable

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

MAX_HREF = 4 * MAX_URL
"""Longest text (characters) that is parsed at all: what is longer is mostly fragment, or hostile."""

_SCHEMES = ("http://", "https://")
_CHARS = r"\w.:,;=@+~!$()*&\-"  # the standard leaves them as they are, in a path and in a query
_ESCAPED = r"%(?!2E)[0-9A-F]{2}"  # %2E is a dot, also where dots have a meaning
_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_PLAIN = re.compile(
    r"https?://(?:(?!xn--)(?:[a-z0-9-]++\.(?!xn--))*+[a-z][a-z0-9-]*+"  # a name without IDNA, its last label no number
    rf"|(?:{_OCTET}\.){{3}}+{_OCTET})"  # or an IPv4 address
    r"(?::(?:[1-9][0-9]{3}|[1-5][0-9]{4}))?+"  # a port of 4 or 5 digits is nobody's default
    rf"(?:/(?![./])[{_CHARS}]*+(?:{_ESCAPED}[{_CHARS}]*+)*+)++"  # no segment that is empty or begins with a dot
    rf"(?:\?[{_CHARS}/?]*+(?:{_ESCAPED}[{_CHARS}/?]*+)*+)?+",
    re.ASCII,
).fullmatch
"""Matches only URLs that are canonical as they stand, and most of those met; the tests hold it against the parser.
Possessive throughout: it never goes back, so no text can make it slow."""
_LOWER_ESCAPE = re.compile(r"%(?:[a-f][0-9A-Fa-f]|[0-9A-F][a-f])")
_SLASHES = re.compile(r"/{2,}")
_QUERY_OCTET = re.compile(rb"[\0-\x20\"#<>'\x7f-\xff]").sub
"""The octets of a query that the standard escapes (special-query percent-encode set)."""
_C0_AND_SPACE = bytes(range(0x21)).decode()
_NO_BREAKS = {ord(char): None for char in "\t\n\r"}
_USERINFO = re.compile(r"\A((?:[^/\\?#@:]*:(?=[/\\\s]))?[/\\\s]*+)[^/\\?#]*@")
_HOST_AND_PORT = re.compile(r"[\w.-]+:\d{1,5}(?:[/?#]|$)")


def canonical(text: str, *, fold_slashes: bool = True) -> str:
    """The canonical form of an absolute http(s) URL that a person gave.

    InputError names the URL (made printable, without its userinfo) and the mend.
    """
    href = _parse(text)
    if "@" in _authority_of(href):
        raise InputError(
            f"{_shown(text)}: has a user name or password, which would be stored and sent with every request; "
            f"write {printable(_tidy(href, fold_slashes))}"
        )
    url = _tidy(href, fold_slashes)
    if len(url) > MAX_URL:
        raise InputError(f"{_shown(text)}: longer than {MAX_URL} characters; give a shorter URL")
    return url


def resolve(base: str, href: str, *, fold_slashes: bool = True, codec: str = "") -> str | None:
    """The canonical URL that `href` names on a page at `base` (an absolute URL), or None if it names none.

    None: another scheme, not parsable, or longer than MAX_URL. Userinfo is stripped. `codec`: Python's name of the
    page's encoding, empty for UTF-8: forms and links of a page in windows-1251 write their queries in windows-1251
    (URL standard, "percent-encode after encoding"). Most links take 1 us, those that need the parser 3 us.
    """
    if len(href) > MAX_HREF:
        return None
    guess = _joined(base, href)
    if _PLAIN(guess):
        return guess if len(guess) <= MAX_URL else None
    if codec and not href.isascii():
        href = _with_encoded_query(href, codec)
    try:
        found = join_url(base, href)
    except ValueError:
        scalar = _scalar(href)
        return None if scalar == href else resolve(base, scalar, fold_slashes=fold_slashes)
    if not found.startswith(_SCHEMES):
        return None
    url = _tidy(found, fold_slashes)
    return url if len(url) <= MAX_URL else None


def _joined(base: str, href: str) -> str:
    """Join the two as strings; empty where that cannot do. Right wherever _PLAIN matches, whatever `base` is."""
    if "#" in href:
        href = href[: href.index("#")]
    if "://" in href:
        return href
    if not href:
        return base
    stem = base[: base.index("?")] if "?" in base else base
    slash = stem.find("/", 8)
    if slash < 0:
        return ""
    first = href[0]
    if first == "/":
        return stem[:slash] + href
    if first == "?":
        return stem + href
    if first == ".":
        return _climbed(stem, slash, href)
    if ":" not in href and first.isalnum():
        return stem[: stem.rindex("/") + 1] + href
    return ""


def _climbed(stem: str, slash: int, href: str) -> str:
    """_joined for hrefs that begin with ./ or ../: what they take away from `stem` must have been plain too."""
    if not _PLAIN(stem):
        return ""
    end = stem.rindex("/")
    position = 2 if href.startswith("./") else 0
    while href.startswith("../", position):
        position += 3
        if end > slash:
            end = stem.rindex("/", slash, end)
    return stem[: end + 1] + href[position:]


def _scalar(text: str) -> str:
    """`text` with each lone surrogate replaced by U+FFFD, as a browser does before it parses."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _with_encoded_query(href: str, codec: str) -> str:
    """`href` with an empty fragment if it has one, its query in the octets of `codec`; what that cannot write is a
    reference."""
    whole, fragment, _ = href.strip(_C0_AND_SPACE).partition("#")  # only what ends the href is stripped, not the query
    stem, mark, query = whole.partition("?")
    octets = _scalar(query.translate(_NO_BREAKS)).encode(codec, "xyro.references")
    return stem + mark + _QUERY_OCTET(lambda octet: b"%%%02X" % octet[0][0], octets).decode("ascii") + fragment


def _as_references(error: UnicodeError) -> tuple[str, int]:
    """The error mode "html" of the Encoding Standard, its signs escaped as the URL standard wants them in a query."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(f"%26%23{ord(char)}%3B" for char in error.object[error.start : error.end]), error.end


codecs.register_error("xyro.references", _as_references)


def _parse(text: str) -> str:
    """Parse an absolute http(s) URL by WHATWG's rules. InputError: names the fault."""
    if len(text) > MAX_HREF:
        raise InputError(f"{_shown(text)}: longer than {MAX_URL} characters; give a shorter URL")
    href = _href(text)
    if href is not None and href.startswith(_SCHEMES):
        return href
    raise InputError(f"{_shown(text) or 'an empty text'}: not an absolute http(s) URL; {_mend(text, href)}")


def _mend(text: str, href: str | None) -> str:
    """Say how to mend `text`, of which the parser made `href` (None: nothing), which is no http(s) URL."""
    bare = text.strip().lstrip("/\\")
    names_no_scheme = "://" not in bare if href is None else _HOST_AND_PORT.match(bare) is not None
    if bare and names_no_scheme and _href("http://" + bare) is not None:
        return f"write {_shown('http://' + bare)}"
    if href is not None:
        return "only http:// and https:// can be read"
    return "write it as http://host/path and check the host and the port"


def _href(text: str) -> str | None:
    try:
        return URL(text).href
    except ValueError:  # not parsable, or a lone surrogate, which UTF-8 cannot write
        return None


def _shown(text: str) -> str:
    """`text` fit for an error message: printable, capped, and without a password."""
    return printable(_USERINFO.sub(r"\1…@", text[:MAX_HREF], count=1))


def _authority_of(href: str) -> str:
    start = href.index("//") + 2
    return href[start : href.index("/", start)]


def _tidy(href: str, fold_slashes: bool) -> str:
    """From the standard's http(s) form to ours: no fragment, no userinfo, escapes in upper case, slashes folded."""
    url = href.partition("#")[0]  # the standard escapes any other number sign
    slash = url.index("/", 8)
    if "@" in url[:slash]:
        scheme = url.index("//") + 2
        url = url[:scheme] + url[url.rindex("@", 0, slash) + 1 :]
        slash = url.index("/", 8)
    if "%" in url:
        url = _LOWER_ESCAPE.sub(lambda escape: escape[0].upper(), url)
    if fold_slashes and "//" in url[slash:]:
        path, mark, query = url[slash:].partition("?")
        url = url[:slash] + _SLASHES.sub("/", path) + mark + query
    return url


def origin(url: str) -> str:
    """'https://host' or 'http://host:port' of a canonical URL: what its robots.txt speaks for (RFC 9309 2.3)."""
    return url[: url.index("/", 8)]


def authority(url: str) -> str:
    """host[:port] as the canonical URL writes it; a default port is not written."""
    return url[7 if url[4] == ":" else 8 : url.index("/", 8)]


def host_of(url: str) -> str:
    """The host of a canonical URL, without port; an IPv6 address keeps its brackets."""
    host = url[7 if url[4] == ":" else 8 : url.index("/", 8)]
    if ":" not in host or host[-1] == "]":
        return host
    return host[: host.rindex(":")]


def host_and_port(host: str, port: int) -> str:
    """HOST:PORT; the host is a name or an address, an IPv6 address comes into brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def fits(name: str, pattern: str) -> bool:
    """Tell whether a host (with its port, if that is not the scheme's own) fits the pattern, such as
    "*.example.org"."""
    bare = name if name.startswith("[") else name.partition(":")[0]
    if pattern.startswith("*."):
        return bare.endswith(pattern[1:]) or name.endswith(pattern[1:])
    return pattern in (name, bare)


def path_of(url: str) -> str:
    """The path of a canonical URL, from its first slash up to the query."""
    return url[url.index("/", 8) :].partition("?")[0]


def folder_of(url: str) -> str:
    """The folder of a canonical URL: host and path up to its last slash; with a query, the whole path and '?'.

    A folder's own page ("/a/b/c/", "/a/b/c/index.html") counts as one of the first folder above it ("/a/"): a site that
    opens a folder for each page, one within another, has all of them in one.
    """
    begin, query = url.index("/") + 2, url.find("?")
    if query >= 0:
        return url[begin : query + 1]
    end = url.rindex("/")
    if end + 1 == len(url) or url.startswith("index.", end + 1):
        top = url.index("/", begin)
        first = url.find("/", top + 1, end)
        end = top if first < 0 else first
    return url[begin : end + 1]


def form_of(url: str) -> str:
    """The host and folder of a canonical URL, and the keys of its query in alphabetical order."""
    place, _, query = url.partition("?")
    keys = sorted(part.partition("=")[0] for part in query.split("&"))
    return f"{place[: place.rindex('/') + 1]}?{'&'.join(keys)}"


@lru_cache(maxsize=1024)  # the judgement of one answer asks five times
def suffix_of(url: str) -> str:
    """The extension of the path's last segment in lower case ('html', 'gz'), without a segment's ';parameters'.

    Empty where there is none; the dot of '.profile' begins a name, not an extension.
    """
    query = url.find("?")
    end = len(url) if query < 0 else query
    name, dot, suffix = url[url.rindex("/", 0, end) + 1 : end].partition(";")[0].rpartition(".")
    return suffix.lower() if dot and name else ""


@lru_cache(maxsize=16_384)
def address_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a canonical host is ('192.0.2.1', '[2001:db8::1]'; the brackets may miss), None for a name."""
    bare = host[1:-1] if host[:1] == "[" and host[-1:] == "]" else host
    if ":" not in bare and not bare[-1:].isdigit():
        return None  # most names: spare the exception
    try:
        return ipaddress.ip_address(bare)
    except ValueError:
        return None


def is_address(host: str) -> bool:
    """Tell whether a canonical host is an address, not a name. (The parser has normalised forms like 0x7f.1 before.)"""
    return address_of(host) is not None


def load_suffixes() -> None:
    """Load the list of public suffixes, 50 ms, before the first page waits for it."""
    _public_suffixes()


@cache
def _public_suffixes() -> PublicSuffixList:
    """Mozilla's list, as the package ships it: 50 ms to load, so only where a site is asked for."""
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList()


@lru_cache(maxsize=16_384)
def site_of(host: str) -> str:
    """The registrable domain of a canonical host, by the public suffix list with its private part (a.github.io is one).

    An address, a public suffix itself and a name without dots are their own site.
    """
    if is_address(host):
        return host
    name = host.rstrip(".")
    return _public_suffixes().privatesuffix(name) or name or host


def partition_of(host: str, partitions: int) -> int:
    """The partition (0 .. partitions - 1) that all pages of `host` (no port) belong to: xxh3_64(host) mod partitions.

    Part of the format of a stored crawl: it never changes (pinned by tests/wire/test_hosts.py).
    """
    return xxh3_64_intdigest(host.encode()) % partitions
