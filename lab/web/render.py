"""Bytes of the computed web: what a host answers to an unconditional GET of a page at time t.

Every page shows its links in the order that Web.links gives, in the spellings of real pages (relative, from the root,
absolute, with a fragment); a decoy or two stands between them (mailto:, a comment, a script) and is no link.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from xyro.lab.web import render_xml
from xyro.lab.web.chance import mix, unit
from xyro.lab.web.padding import padding, size_of
from xyro.lab.web.places import Doc
from xyro.lab.web.prose import prose
from xyro.lab.web.web import Link, Web
from xyro.lab.web.web_graph import TREE

_SPELL, _TEXT, _SIZE = 301, 302, 303
"""keys that keep the draws of different purposes apart"""
SPELLINGS = 8
_PLAIN_SPELLINGS = SPELLINGS - 1
"""the last one has a fragment, which a Location should not have"""
_NAV = 4
"""links that stand in the navigation; the others stand in the text"""
_FRAME = 900
"""bytes of a page beside its body, about"""
_PARAGRAPH = 600
"""bytes of prose in a paragraph"""
_TYPES = {
    Doc.HTML: "text/html; charset=utf-8",
    Doc.PRIVATE: "text/html; charset=utf-8",
    Doc.DEAD: "text/html; charset=utf-8",
    Doc.REDIRECT: "text/html; charset=utf-8",
    Doc.XML: "application/xml",
    Doc.DTD: "application/xml-dtd",
    Doc.SITEMAP: "application/xml",
    Doc.INDEX: "application/xml",
}
_FILE_TYPES = ("image/png", "application/zip", "image/jpeg", "application/pdf")
_MAGIC = (b"\x89PNG\r\n\x1a\n", b"PK\x05\x06" + bytes(18), b"\xff\xd8\xff\xe0", b"%PDF-1.4\n")


@dataclass(frozen=True, slots=True)
class Rendered:
    """A response without its validators. `location`: for redirects only, relative or absolute."""

    status: int
    mime: str
    body: bytes
    location: str = ""


def render(web: Web, page: int, t: float) -> Rendered:
    """The page (one of our own) as it is at time t; equal for all t of one State."""
    kind, status = web.kind(page), web.status(page, t)
    if not web.is_born(page, t):
        return Rendered(status, _TYPES[Doc.DEAD], _notice("Not found", "/"))
    match kind:
        case Doc.FILE:
            return Rendered(status, _FILE_TYPES[page % 4], _MAGIC[page % 4])
        case Doc.REDIRECT:
            target = spelling(web, page, web.links(page, 0)[0].target, mix(page, _SPELL) % _PLAIN_SPELLINGS)
            return Rendered(status, _TYPES[kind], _notice("Moved", target), target)
        case Doc.DEAD:
            return Rendered(status, _TYPES[kind], _notice("Gone" if status == 410 else "Not found", "/"))
        case Doc.PRIVATE:
            return Rendered(status, _TYPES[kind], _notice("Private", "/"))
        case Doc.FEED:
            atom = web.host(page) % 2 == 1
            body = render_xml.atom(web, page, t) if atom else render_xml.rss(web, page, t)
            return Rendered(status, "application/atom+xml" if atom else "application/rss+xml", body.encode())
        case Doc.SITEMAP | Doc.INDEX:
            return Rendered(status, _TYPES[kind], render_xml.sitemap(web, page, t).encode())
        case Doc.XML:
            return Rendered(status, _TYPES[kind], render_xml.document(web, page, t).encode())
        case Doc.DTD:
            return Rendered(status, _TYPES[kind], render_xml.dtd(web, page, t).encode())
    return Rendered(status, _TYPES[kind], _html(web, page, t).encode())


def spelling(web: Web, page: int, target: int, way: int) -> str:
    """Spell a link's URL in one of SPELLINGS ways, which all resolve to the same canonical URL."""
    if target >= web.shape.pages:
        return web.url(target)
    path = web.places.path(target) + ("#top" if way == SPELLINGS - 1 else "")
    if web.host(page) != web.host(target):
        origin = web.origin_of(web.host(target))
        return (origin[origin.index("//") :] if way == 0 else origin) + path
    if way == 0:
        return web.origin_of(web.host(target)) + path
    if way <= 3 or len(path) < 6:  # "/" and "/#top" have no shorter form
        return path
    folder = web.places.folder_of(page)
    if path.startswith(folder):
        return path[len(folder) :]
    return path[1:] if folder == "/" else ".." + path


def _html(web: Web, page: int, t: float) -> str:
    state, words = web.state(page, t), prose(web.shape.seed)
    links = web.shown(page, t)
    anchors = [_anchor(web, page, link, place) for place, link in enumerate(links)]
    title, day = words.title(page), datetime.fromtimestamp(int(state.modified), UTC)
    extra = _extra(web, page)
    body = "\n".join(_paragraphs(web, page, state.version, anchors[_NAV:]))
    styles, markup, scripts = _padding(web, page, len(body))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{title}</title>\n{extra}{styles}</head>\n"
        f"<body>\n<!-- <a href='/not/a/link.html'>old</a> -->\n<nav>{' | '.join(anchors[:_NAV])}</nav>\n"
        f"<main>\n<h1>{title}</h1>\n<p>Revision {state.version}, {day:%d %B %Y %H:%M:%S}.</p>\n"
        f"{body}\n{markup}</main>\n"
        f'<footer><a href="mailto:editor@lab.example">Write to us</a> <a href="javascript:print()">Print</a></footer>\n'
        f"<script>document.title += \"<a href='/not/a/link.html'>\";</script>\n{scripts}</body>\n</html>\n"
    )


def _padding(web: Web, page: int, body: int) -> tuple[str, str, str]:
    """Styles, markup and scripts that fill a page of `body` bytes up to its size as a page of the web."""
    if not web.shape.median:
        return "", "", ""
    size = size_of(web.shape.seed, page, web.shape.median)
    return padding(web.shape.seed, page, max(0, size - body - _FRAME))


def _extra(web: Web, page: int) -> str:
    """Head elements: half of the pages name themselves as canonical, home pages announce their feed."""
    host = web.host(page)
    home = int(web.places.starts[host])
    parts = [f'<link rel="canonical" href="{web.url(page)}">\n'] if page % 2 == 0 else []
    if page == home:
        feed = web.places.path(home + 1)
        mime = "application/atom+xml" if host % 2 else "application/rss+xml"
        parts.append(f'<link rel="alternate" type="{mime}" href="{feed}">\n')
    return "".join(parts)


def _anchor(web: Web, page: int, link: Link, place: int) -> str:
    """One link's element: an anchor, or (not in the tree) now and then an area or an iframe."""
    drawn = mix(page, place, _SPELL)
    href = spelling(web, page, link.target, drawn % SPELLINGS)
    title = prose(web.shape.seed).title(link.target)
    if link.nofollow:
        return f'<a rel="nofollow noopener" href="{href}">{title}</a>'
    element = drawn // SPELLINGS % 40
    if element == 0 and not link.flags & TREE:
        return f'<map name="m{place}"><area href="{href}" alt="{title}"></map>'
    if element == 1 and not link.flags & TREE:
        return f'<iframe src="{href}" title="{title}"></iframe>'
    return f"<a href='{href}'>{title}</a>" if element < 6 else f'<a href="{href}">{title}</a>'


def _paragraphs(web: Web, page: int, version: int, anchors: list[str]) -> list[str]:
    """Prose with links among it. Paragraph k is rewritten with each (k+1)-th change, so most changes are small."""
    size = max(200, round(web.shape.size * (0.5 + unit(page, _SIZE))) - 70 * len(anchors) - 900)
    count = size // _PARAGRAPH + 1
    share = -(-len(anchors) // count)
    paragraphs = []
    for k in range(count):
        text = prose(web.shape.seed).sentences(size // count, page, k, version // (k + 1), _TEXT)
        for place, anchor in enumerate(anchors[k * share : (k + 1) * share]):
            text.insert(min(len(text), 2 * place + 1), anchor)
        paragraphs.append(f"<p>{' '.join(text)}</p>")
    return paragraphs


def _notice(title: str, href: str) -> bytes:
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>\n'
        f'<body><h1>{title}</h1><p>Go on <a href="{href}">here</a>.</p></body></html>\n'
    ).encode()
