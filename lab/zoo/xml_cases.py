"""Zoo F: XML, feeds and sitemaps (cases 77 to 81). The classes are those of the loader.

The attacks' full size is the loader's tests' business; here they are as large as it takes to be refused.
"""

from __future__ import annotations

import gzip

from xyro.lab.zoo.acts import Act, Case, ZooClient, answers, page, response, says
from xyro.lab.zoo.body_cases import bomb

XML, DTD = "application/xml", "application/xml-dtd"
_NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
_INNER = "http://169.254.169.254/latest/meta-data"


def _xml(text: bytes | str, *headers: str, mime: str = XML) -> Act:
    return says(response(text, *headers, mime=mime))


def _laughs() -> str:
    rows = "".join(f'<!ENTITY a{k} "{f"&a{k - 1};" * 10}">' for k in range(1, 12))
    return f'<!DOCTYPE r [<!ENTITY a0 "ha">{rows}]><r>&a11;</r>'


def _quadratic() -> str:
    return f'<!DOCTYPE r [<!ENTITY a "{"x" * 100_000}">]><r>{"&a;" * 20_000}</r>'


def _parameters() -> str:
    rows = "".join(f'<!ENTITY % a{k} "{f"&#37;a{k - 1};" * 10}">' for k in range(1, 12))
    return f'<!ENTITY % a0 "<!--ha-->">{rows}%a11;'


def _including(client: ZooClient) -> bytes:
    """A DTD whose every part names the next one; /doc.xml has it as its own."""
    if client.path == "/doc.xml":
        return response('<!DOCTYPE r SYSTEM "/0.dtd"><r/>', mime=XML)
    part = client.path[1:].partition(".")[0] or "0"
    if not part.isdigit():
        return response("", status="404 Not Found")
    number = int(part)
    return response(f'<!ENTITY % next SYSTEM "/{number + 1}.dtd"> %next; <!ELEMENT r ANY>', mime=DTD)


def _index_chain(client: ZooClient) -> bytes:
    """/index.xml?x=N leads to the index of N + 1, for ever."""
    number = int(client.path.partition("=")[2] or 0) + 1
    loc = f"{client.origin}/index.xml?x={number}"
    return response(f"<sitemapindex {_NS}><sitemap><loc>{loc}</loc></sitemap></sitemapindex>", mime=XML)


def _index_loop(client: ZooClient) -> bytes:
    locs = "".join(f"<sitemap><loc>{client.origin}/{name}.xml</loc></sitemap>" for name in "ab")
    return response(f"<sitemapindex {_NS}>{locs}</sitemapindex>", mime=XML)


def _sitemap(*urls: str, more: str = "") -> str:
    return f"<urlset {_NS}>{''.join(f'<url><loc>{url}</loc>{more}</url>' for url in urls)}</urlset>"


def _own_and_foreign(client: ZooClient) -> bytes:
    return response(_sitemap(f"{client.origin}/ok.html", "http://127.2.255.1/ok.html"), mime=XML)


def _escaped_twice(client: ZooClient) -> bytes:
    return response(_sitemap(f"{client.origin}/ok.html?a=1&amp;amp;b=2"), mime=XML)


def _future(client: ZooClient) -> bytes:
    return response(_sitemap(f"{client.origin}/ok.html", more="<lastmod>2999-01-01</lastmod>"), mime=XML)


def _huge(client: ZooClient) -> bytes:
    return response(_sitemap(*(f"{client.origin}/ok{number}" for number in range(60_000))), mime=XML)


def _case(number: int, name: str, kinds: tuple[str, ...], act: Act, path: str = "/doc.xml", **more: object) -> Case:
    return Case(number, name, kinds, act, path=path, **more)  # type: ignore[arg-type]  # the fields of Case


ENTITIES = (
    _case(77, "billion-laughs", ("entity-expansion",), _xml(_laughs())),
    _case(77, "quadratic-entities", ("entity-expansion",), _xml(_quadratic())),
    _case(77, "entity-loop", ("entity-loop",), _xml('<!DOCTYPE r [<!ENTITY a "&b;"><!ENTITY b "&a;">]><r>&a;</r>')),
    _case(77, "parameter-laughs", ("entity-expansion",), _xml(_parameters(), mime=DTD), path="/x.dtd"),
    _case(77, "endless-dtd", ("missing-part", "too-many-parts", "bad-part"), answers(_including), endless=True),
    _case(77, "huge-dtd", ("too-large",), _xml(b"<!ELEMENT a EMPTY>" * 300_000, mime=DTD), path="/x.dtd"),
    _case(
        78,
        "entity-of-a-file",
        ("refused-part",),
        _xml('<!DOCTYPE r [<!ENTITY e SYSTEM "file:///etc/passwd">]><r>&e;</r>'),
    ),
    _case(78, "entity-by-ftp", ("refused-part",), _xml('<!DOCTYPE r [<!ENTITY e SYSTEM "ftp://h/x">]><r>&e;</r>')),
    _case(
        78,
        "entity-of-a-service",
        ("missing-part",),
        _xml(f'<!DOCTYPE r [<!ENTITY e SYSTEM "{_INNER}">]><r>&e;</r>'),
    ),
    _case(
        78,
        "stylesheet-of-a-service",
        ("",),
        _xml(f'<?xml-stylesheet href="{_INNER}/s.xsl"?><r/>'),
    ),
    _case(
        79,
        "xinclude-of-a-file",
        ("",),
        _xml('<r xmlns:i="http://www.w3.org/2001/XInclude"><i:include href="file:///etc/passwd" parse="text"/></r>'),
    ),
    _case(
        79,
        "xinclude-of-itself",
        ("",),
        _xml('<r xmlns:i="http://www.w3.org/2001/XInclude"><i:include href="/doc.xml"/></r>'),
    ),
)

DOCUMENTS = (
    _case(80, "encoding-lies", ("", "not-well-formed"), _xml('<?xml version="1.0" encoding="utf-16"?><r/>')),
    _case(80, "utf-16-without-mark", ("",), _xml("<r>text</r>".encode("utf-16-le"))),
    _case(80, "utf-16-cut", ("not-well-formed",), _xml("<r>text</r>".encode("utf-16")[:-3])),
    _case(80, "xml-1.1", ("", "not-well-formed", "xml-version"), _xml('<?xml version="1.1"?><r>&#1;</r>')),
    _case(80, "deep-xml", ("too-deep",), _xml("<a>" * 100_000 + "</a>" * 100_000)),
    _case(80, "long-text", ("text-too-long", "too-large", "not-well-formed"), _xml(f"<a>{'x' * 12_000_000}</a>")),
    _case(
        80,
        "many-attributes",
        ("too-many-attributes",),
        _xml("<r><a " + " ".join(f'a{number}="1"' for number in range(200_000)) + "/></r>"),
    ),
    _case(81, "sitemap-index-loop", ("",), answers(_index_loop), path="/a.xml"),
    _case(81, "sitemap-index-chain", ("",), answers(_index_chain), path="/index.xml?x=0"),
    _case(81, "sitemap-of-60000", ("too-many-urls",), answers(_huge), path="/sitemap.xml"),
    _case(81, "sitemap-of-others", ("",), answers(_own_and_foreign), path="/sitemap.xml"),
    _case(81, "sitemap-of-2999", ("",), answers(_future), path="/sitemap.xml"),
    _case(81, "sitemap-escaped-twice", ("",), answers(_escaped_twice), path="/sitemap.xml"),
    _case(
        81,
        "sitemap-bomb",
        ("too-large", "not-well-formed", "encoding"),
        says(response(gzip.compress(_sitemap().encode()[:-9], mtime=0) + bomb(128), mime="application/gzip")),
        path="/sitemap.xml.gz",
    ),
    _case(
        81,
        "sitemap-twice-packed",
        ("", "not-well-formed", "not-readable"),
        says(response(gzip.compress(gzip.compress(_sitemap().encode(), mtime=0), mtime=0), mime="application/gzip")),
        path="/sitemap.xml.gz",
    ),
)

CASES = (*ENTITIES, *DOCUMENTS, Case(80, "html-as-xml", ("", "not-well-formed"), _xml(page("/ok.html")), path="/p.xml"))
