"""WebSub discovery (WebSub section 4) in the headers of an answer, `Link: <https://hub.example/>; rel="hub"` (RFC
8288), and in the <link> elements of an HTML page (hrefs.py). Feeds are the loader's.

A Link header is a list of `<target>` and parameters; `rel` is a token or a quoted list of relations, its first one
counts (RFC 8288 3.3), and commas and semicolons within quotes or angle brackets separate nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from xyro.wire.urls import resolve

LONGEST = 8_192
"""characters of all Link headers of an answer that are looked at"""
MOST_HUBS = 8
_QUOTED = r"\"(?:[^\"\\]|\\.)*\""
_LINK = re.compile(rf"[\s,]*<([^>]{{0,4096}})>((?:[^,\"<]|{_QUOTED})*)", re.DOTALL)
_PARAMETER = re.compile(rf";\s*([!#$&+\-.^_`|~0-9A-Za-z]+)\s*(?:=\s*({_QUOTED}|[^\s\";,]*))?", re.DOTALL)


def websub(headers: Iterable[str], url: str, fold_slashes: bool = True) -> tuple[tuple[str, ...], str]:
    """(hubs, topic) that the Link headers of `url` name: canonical URLs, distinct; the topic (rel=self) only with a
    hub. Empty where they name none."""
    text = ", ".join(headers)[:LONGEST]
    return named(links(text), url, fold_slashes) if "hub" in text.lower() else ((), "")


def named(
    links: Iterable[tuple[str, frozenset[str]]], url: str, fold_slashes: bool = True
) -> tuple[tuple[str, ...], str]:
    """Return hubs and topic from (target relative to `url`, relations) of links."""
    hubs: dict[str, None] = {}
    topic = ""
    for target, relations in links:
        found = resolve(url, target, fold_slashes=fold_slashes) if relations & {"hub", "self"} else None
        if found is not None and "hub" in relations and len(hubs) < MOST_HUBS:
            hubs[found] = None
        if found is not None and "self" in relations:
            topic = topic or found
    return (tuple(hubs), topic) if hubs else ((), "")


def links(text: str) -> Iterator[tuple[str, frozenset[str]]]:
    """(target, relations in lower case) of each link; what follows something malformed is not looked at. Links of
    another context (anchor) say nothing of this page."""
    place = 0
    while (link := _LINK.match(text, place)) is not None:
        place = link.end()
        parameters: dict[str, str] = {}
        for name, value in _PARAMETER.findall(link[2]):
            parameters.setdefault(name.lower(), value.strip('"'))
        if "anchor" not in parameters:
            yield link[1].strip(), frozenset(parameters.get("rel", "").lower().split())
