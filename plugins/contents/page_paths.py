"""File names of pages: a path below a folder for each URL, whatever the URL is.

    https://example.org/docs/          example.org/docs/index.md
    https://example.org/docs/a.html    example.org/docs/a.html.md
    http://127.0.0.1:8000/a            127.0.0.1+8000/a.md
    https://example.org/Find?q=1       example.org/Find-q-1~k3v0c5qn7gd1a.md

A URL whose own characters make safe names, the same on each file system, has these names. Any other URL (capitals, a
query, escapes, names that some system reserves, too long or too deep ones) has readable names and, in the file's, a
digest of the URL: no two URLs have the same path, nor two paths that differ by case or by Unicode's normal forms only.
"""

from __future__ import annotations

import base64
import hashlib
import re
import unicodedata
from urllib.parse import unquote, urlsplit

MOST_DEPTH = 12
"""folders below that of the host"""
MOST_NAME = 80
"""bytes of a name, and of all folders below that of the host together: a path has 260 at most"""
INDEX = "index"
PORT = "+"
"""between a host and its port"""
MARK = "~"
"""between a readable name and a digest; in no readable name"""
_RESERVED = re.compile(r"(?i)^(con|prn|aux|nul|(com|lpt)[0-9¹²³])(?=\.|$)")
"""names of devices, with any ending"""


def page_path(url: str, suffix: str) -> str:
    """Return the path of a canonical URL's file, with / between names. suffix: of the file, such as ".md".

    Each name begins with a letter or digit and holds letters, digits, ".", "-", "_", "+" and "~" only.
    """
    parts = urlsplit(url)
    authority = _authority(parts.scheme, parts.netloc)
    host = _readable(authority, PORT)
    plain = _is_plain(host, authority) and PORT not in parts.netloc and "?" not in url
    *folders, last = parts.path[1:].split("/")
    names: list[str] = []
    room = MOST_NAME
    for folder in folders:
        name = _readable(folder)
        if name.lower().endswith(suffix):
            name = f"{name[: -len(suffix)]}-{suffix[1:]}"  # a file may have this name
        plain = plain and _is_plain(name, folder)
        room -= len(name.encode()) + 1
        if room < 0 or len(names) == MOST_DEPTH:
            plain = False
            break
        names.append(name)
    wanted = f"{last or INDEX}-{parts.query}" if parts.query else last or INDEX
    name = _readable(wanted)
    plain = plain and _is_plain(name, wanted) and last != INDEX
    if not plain:
        name = f"{name}{MARK}{_digest(url)}"
    return "/".join((host, *names, name + suffix))


def _authority(scheme: str, netloc: str) -> str:
    """The host, with its port unless that is HTTPS's own."""
    host, colon, port = netloc.rpartition(":")
    if not colon or netloc.endswith("]"):
        host, port = netloc, ""
    if scheme == "http":
        return f"{host}{PORT}{port or 80}"
    return f"{host}{PORT}https{PORT}{port}" if port else host


def _is_plain(name: str, text: str) -> bool:
    return name == text and text.isascii() and text == text.lower()


def _readable(text: str, more: str = "") -> str:
    """A name that is safe on each file system: the text itself where that is. more: a character that stays."""
    text = unicodedata.normalize("NFC", unquote(text, errors="replace"))
    name = "".join(c if c in "._-" or c == more or unicodedata.category(c)[0] in "LMN" else "-" for c in text)
    while name and not name[0].isalnum():
        name = name[1:]
    name = name.encode()[: MOST_NAME - 1].decode(errors="ignore").rstrip(".")
    return _RESERVED.sub(r"\1_", name, count=1) or "page"


def _digest(url: str) -> str:
    return base64.b32hexencode(hashlib.blake2b(url.encode(), digest_size=8).digest()).decode().rstrip("=").lower()
