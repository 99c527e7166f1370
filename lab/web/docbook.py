"""Documents like DocBook's, valid against a DTD of DocBook's make, and a server of them in a process of its own.

    python -m xyro.lab.web.docbook --documents 2000 --size 20000 --hosts 64

The DTD is one file of some 25 kB: 90 elements by parameter entities, common attributes with defaults, character
entities. Each document is another one of about `size` bytes: sections, paragraphs with inline markup, lists, links.
Host 0 serves an HTML page that links to all documents, and the DTD. Nothing listens beyond loopback.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from html.entities import name2codepoint

from aiohttp import web

from xyro.lab.web.places import address_of
from xyro.lab.web.prose import prose


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_INLINE = _names(
    "emphasis literal filename command option replaceable application function parameter varname constant "
    "userinput computeroutput prompt keycap guilabel guimenu acronym abbrev citetitle quote foreignphrase "
    "firstterm productname systemitem classname methodname type errorcode envar email ulink link xref"
)
_BLOCK = _names(
    "para simpara formalpara note tip warning caution important programlisting screen literallayout synopsis "
    "blockquote epigraph itemizedlist orderedlist variablelist simplelist figure example table informaltable"
)
_NAMESPACE = 'xmlns:xlink="http://www.w3.org/1999/xlink"'
_COMMON = """
<!ENTITY % common.attrib "id ID #IMPLIED lang CDATA #IMPLIED role CDATA #IMPLIED remap CDATA #IMPLIED
  revisionflag (changed|added|deleted|off) #IMPLIED os CDATA #IMPLIED arch CDATA #IMPLIED condition CDATA #IMPLIED">
"""


def dtd() -> str:
    """The grammar."""
    inline, block = "|".join(_INLINE), "|".join(_BLOCK)
    parts = [
        *(f'<!ENTITY {name} "&#{code};">' for name, code in name2codepoint.items() if len(name) > 4),
        _COMMON,
        f'<!ENTITY % inline.mix "#PCDATA|{inline}"><!ENTITY % block.mix "{block}">',
        "<!ELEMENT article (articleinfo?, (%block.mix;)*, section+)>",
        "<!ELEMENT articleinfo (title, author*, abstract?)><!ELEMENT author (firstname, surname)>",
        "<!ELEMENT firstname (#PCDATA)><!ELEMENT surname (#PCDATA)><!ELEMENT abstract (para+)>",
        "<!ELEMENT title (%inline.mix;)*><!ELEMENT section (title, (%block.mix;)+, section*)>",
        "<!ELEMENT listitem (%block.mix;)+><!ELEMENT term (%inline.mix;)*>",
        "<!ELEMENT varlistentry (term+, listitem)><!ELEMENT member (%inline.mix;)*>",
        "<!ELEMENT row (entry+)><!ELEMENT entry (%inline.mix;)*>",
    ]
    lists = {
        "itemizedlist": "(title?, listitem+)",
        "orderedlist": "(title?, listitem+)",
        "variablelist": "(title?, varlistentry+)",
        "simplelist": "(member+)",
        "formalpara": "(title, para)",
        "table": "(title, row+)",
        "informaltable": "(row+)",
    }
    nested = {"note", "tip", "warning", "caution", "important", "blockquote", "epigraph", "figure", "example"}
    for name in _BLOCK:
        model = lists.get(name) or ("(title?, (%block.mix;)+)" if name in nested else "(%inline.mix;)*")
        parts.append(f"<!ELEMENT {name} {model}>")
    parts += [f"<!ELEMENT {name} (%inline.mix;)*>" for name in _INLINE]
    parts.append('<!ATTLIST ulink url CDATA #REQUIRED type CDATA #IMPLIED xmlns:xlink CDATA #FIXED "')
    parts[-1] += 'http://www.w3.org/1999/xlink" xlink:type (simple) "simple" xlink:href CDATA #IMPLIED>'
    named = ("article", "section", "title", "listitem", *_BLOCK, *_INLINE)
    parts += [f"<!ATTLIST {name} %common.attrib;>" for name in named]
    return "\n".join(parts)


def document(number: int, size: int, grammar: str) -> bytes:
    """The number-th document, about `size` bytes, naming the DTD by its URL."""
    words = prose(1)
    head = f'<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE article SYSTEM "{grammar}">\n<article>\n<articleinfo>'
    head += f"<title>{words.title(number)}</title><author><firstname>A</firstname><surname>B</surname></author>"
    parts, length, section = [head + "</articleinfo>\n"], len(head), 0
    while length < size:
        section += 1
        part = _section(number, section)
        parts.append(part)
        length += len(part.encode())
    return ("".join(parts) + "</article>\n").encode()


def _section(number: int, section: int) -> str:
    words = prose(1)
    text = words.sentences(1_100, number, section)
    half = len(text) // 2
    marked = [
        f'<{_INLINE[(number + k) % 20]} role="r">{line}</{_INLINE[(number + k) % 20]}>' for k, line in enumerate(text)
    ]
    link = f'<ulink url="x" {_NAMESPACE} xlink:href="/doc/{number}.xml#s{section + 1}">{words.title(section)}</ulink>'
    items = "".join(f"<listitem><para>{line}</para></listitem>" for line in text[half:])
    return (
        f'<section id="s{section}"><title>{words.title(number + section)} &mdash; {section}</title>\n'
        f"<para>{' '.join(marked[:half])} {link}</para>\n<itemizedlist>{items}</itemizedlist>\n</section>\n"
    )


class Server:
    """Answers from memory: documents spread over hosts, index and DTD on the first."""

    def __init__(self, documents: int, size: int, hosts: int, port: int) -> None:
        self._origin = [f"http://{address_of(host)}:{port}" for host in range(hosts)]
        grammar = self._origin[0] + "/docbook.dtd"
        self._bodies = {f"/doc/{number}.xml": document(number, size, grammar) for number in range(documents)}
        links = "\n".join(
            f'<a href="{self._origin[number % hosts]}/doc/{number}.xml">{number}</a>' for number in range(documents)
        )
        self._index = f"<!DOCTYPE html><title>Documents</title>{links}".encode()
        self._dtd = dtd().encode()

    async def answer(self, request: web.BaseRequest) -> web.Response:
        body = self._bodies.get(request.path)
        if body is not None:
            return web.Response(body=body, content_type="application/xml")
        if request.path == "/":
            return web.Response(body=self._index, content_type="text/html")
        if request.path == "/docbook.dtd":
            return web.Response(body=self._dtd, content_type="application/xml-dtd")
        return web.Response(status=404)


async def serve(documents: int, size: int, hosts: int) -> None:
    """Serve until SIGTERM; the first line on stdout is the index's URL."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    port, runners = 0, []
    made: Server | None = None

    async def answer(request: web.BaseRequest) -> web.Response:
        return await made.answer(request) if made is not None else web.Response(status=503)

    for host in range(hosts):
        runner = web.ServerRunner(web.Server(answer))
        await runner.setup()
        site = web.TCPSite(runner, address_of(host), port, backlog=128)
        await site.start()
        port = port or int(runner.addresses[0][1])
        runners.append(runner)
    made = Server(documents, size, hosts, port)
    sys.stdout.write(f"http://{address_of(0)}:{port}/\n")
    sys.stdout.flush()
    await stop.wait()
    for runner in runners:
        await runner.cleanup()


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m xyro.lab.web.docbook", description="Serve DocBook-like documents.")
    for name, default in (("documents", 2_000), ("size", 20_000), ("hosts", 64)):
        parser.add_argument(f"--{name}", type=int, default=default, help=f"[{default}]")
    asyncio.run(serve(**vars(parser.parse_args())))


if __name__ == "__main__":
    main()
