"""XML of the computed web: documents valid against their external DTD, feeds, sitemaps. All well-formed UTF-8."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime

from xyro.lab.web import document_parts
from xyro.lab.web.places import Doc
from xyro.lab.web.prose import prose
from xyro.lab.web.web import Web

_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
_XLINK = "http://www.w3.org/1999/xlink"
_TEXT = 401


def document(web: Web, page: int, t: float) -> str:
    """An article whose entity &publisher; only the external DTD declares; its links are simple XLinks."""
    state, words = web.state(page, t), prose(web.shape.seed)
    links = "\n".join(
        f'  <see xlink:type="simple" xlink:href="{web.url(link.target)}">{words.title(link.target)}</see>'
        for link in web.links(page, state.version)
    )
    chapter = ["  &chapter;"] if document_parts.way_of(web, page) else []
    sentences = words.sentences(web.shape.size // 4, page, state.version, _TEXT)
    text = "\n".join(chapter + [f"  <para>{sentence}</para>" for sentence in sentences])
    return (
        f'{_HEAD}<!DOCTYPE article SYSTEM "{web.url(web.needs(page))}"{document_parts.subset(web, page)}>\n'
        f'<article xmlns:xlink="{_XLINK}" revision="{state.version}">\n'
        f"  <title>{words.title(page)}</title>\n  <publisher>&publisher;</publisher>\n{text}\n{links}\n</article>\n"
    )


def dtd(web: Web, page: int, t: float) -> str:
    """The grammar of documents; versions differ in the publisher's name."""
    return f"""<!-- article, revision {web.version(page, t)} -->
<!ELEMENT article (title, publisher, para*, see*)>
<!ATTLIST article xmlns:xlink CDATA #FIXED "{_XLINK}" revision CDATA #REQUIRED>
<!ELEMENT title (#PCDATA)>
<!ELEMENT publisher (#PCDATA)>
<!ELEMENT para (#PCDATA)>
<!ELEMENT see (#PCDATA)>
<!ATTLIST see xlink:type (simple) #REQUIRED xlink:href CDATA #REQUIRED>
<!ENTITY publisher "{prose(web.shape.seed).title(page)}, edition {web.version(page, t)}">
"""


def rss(web: Web, page: int, t: float) -> str:
    """RSS 2.0: the channel's link is the home page, the items are the other pages listed, with their true dates."""
    words, (home, *items) = prose(web.shape.seed), web.listed(page)
    entries = "\n".join(
        f"<item><title>{words.title(item)}</title><link>{web.url(item)}</link>"
        f'<guid isPermaLink="false">p{item}-v{web.version(item, t)}</guid>'
        f"<pubDate>{format_datetime(_moment(web, item, t))}</pubDate></item>"
        for item in items
    )
    return (
        f'{_HEAD}<rss version="2.0">\n<channel><title>{words.title(home)}</title><link>{web.url(home)}</link>'
        f"<description>{' '.join(words.sentences(80, page, _TEXT))}</description>\n"
        f"<lastBuildDate>{format_datetime(_moment(web, page, t))}</lastBuildDate>\n"
        f"<!-- edition {web.version(page, t)} -->\n{entries}\n</channel></rss>\n"
    )


def atom(web: Web, page: int, t: float) -> str:
    """Atom 1.0, of the same contents as rss()."""
    words, (home, *items) = prose(web.shape.seed), web.listed(page)
    entries = "\n".join(
        f"<entry><title>{words.title(item)}</title><id>tag:lab.example,2026:p{item}</id>"
        f'<link href="{web.url(item)}"/><updated>{_moment(web, item, t).isoformat()}</updated>'
        f"<summary>Version {web.version(item, t)}</summary></entry>"
        for item in items
    )
    return (
        f'{_HEAD}<feed xmlns="http://www.w3.org/2005/Atom">\n<title>{words.title(home)}</title>'
        f"<id>tag:lab.example,2026:p{page}</id><author><name>{words.title(page)}</name></author>"
        f'<link rel="alternate" href="{web.url(home)}"/>\n<updated>{_moment(web, page, t).isoformat()}</updated>\n'
        f"<!-- edition {web.version(page, t)} -->\n{entries}\n</feed>\n"
    )


def sitemap(web: Web, page: int, t: float) -> str:
    """A sitemap, or an index of sitemaps, with the true time of the last change of each entry."""
    index = web.kind(page) is Doc.INDEX
    outer, inner = ("sitemapindex", "sitemap") if index else ("urlset", "url")
    entries = "\n".join(
        f"<{inner}><loc>{web.url(item)}</loc><lastmod>{_moment(web, item, t).isoformat()}</lastmod></{inner}>"
        for item in web.listed(page)
    )
    return (
        f'{_HEAD}<{outer} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
        f"<!-- edition {web.version(page, t)} -->\n{entries}\n</{outer}>\n"
    )


def _moment(web: Web, page: int, t: float) -> datetime:
    """Time of a page's last change, to the second."""
    return datetime.fromtimestamp(int(web.state(page, t).modified), UTC)
