"""The keys by which tools of web archives look a URL up in a CDXJ index: the Internet Archive's canonical form (SURT).

One key stands for URLs that show the same, most probably: with www. and without, in capitals or not, with another
order of the query or the id of a session. pywb and OpenWayback make the key of what they are asked for in this way, and
find nothing under any other.
"""

from __future__ import annotations

import re
from urllib.parse import quote_from_bytes, unquote_to_bytes

from xyro.wire.urls import host_of

_WWW = re.compile(r"www\d*\.")
_SAFE = "!\"$&'()*+,-./:;<=>?@[\\]^_`{|}~"
"""what is not escaped, beside letters and digits"""
_PATH_SESSIONS = (
    re.compile(r"(.*/)\((?:[a-z]\([0-9a-z]{24}\))+\)/([^?]+\.aspx.*)"),
    re.compile(r"(.*/)\([0-9a-z]{24}\)/([^?]+\.aspx.*)"),
)
_QUERY_SESSIONS = tuple(
    re.compile(rf"(.*){session}(?:&(.*))?")
    for session in (
        "jsessionid=[0-9a-z]{32}",
        "phpsessid=[0-9a-z]{32}",
        "sid=[0-9a-z]{32}",
        "aspsessionid[a-z]{8}=[a-z]{24}",
        "cfid=[^&]+&cftoken=[^&]+",
    )
)
_MAY_BE_SESSION = re.compile("sid=|sessionid|phpsessid|cfid=")


def surt(url: str) -> str:
    """The key of a canonical http(s) URL: the host's labels reversed, then port, path and query: `org,example)/a?b`."""
    scheme, _, rest = url.partition("://")
    place, _, path = rest.partition("/")
    host = host_of(url)
    port = place.removeprefix(host)
    if port == {"http": ":80", "https": ":443"}.get(scheme):
        port = ""
    host = host.strip("[].")
    if found := _WWW.match(host):
        host = host[found.end() :]
    path, _, query = ("/" + path).partition("?")
    query = _query(query) if query else ""
    return f"{','.join(reversed(host.split('.')))}{port}){_path(path)}{'?' * bool(query)}{query}"


def _path(path: str) -> str:
    steps: list[str] = []
    for part in _unescaped(path).split("/")[1:]:
        if part == ".." and steps:
            steps.pop()
        elif part != ".":
            steps.append(part)
    path = "/" + "/".join([*filter(None, steps[:-1]), *steps[-1:]])
    path = _escaped(path).lower()
    if ".aspx" in path:
        for session in _PATH_SESSIONS:
            if found := session.fullmatch(path):
                path = found[1] + found[2]
    return path[:-1] if len(path) > 1 and path.endswith("/") else path


def _query(query: str) -> str:
    query = _escaped(_unescaped(query)).lower()
    if _MAY_BE_SESSION.search(query):
        for session in _QUERY_SESSIONS:
            if found := session.fullmatch(query):
                query = found[1] + (found[2] or "")
    return "&".join(map("=".join, sorted(tuple(field.split("=", 1)) for field in query.split("&"))))


def _unescaped(text: str) -> str:
    """Escapes undone until none is left; a byte a character."""
    while "%" in text:
        before, text = text, unquote_to_bytes(text.encode("latin-1")).decode("latin-1")
        if text == before:
            break
    return text


def _escaped(text: str) -> str:
    return quote_from_bytes(text.encode("latin-1"), _SAFE)
