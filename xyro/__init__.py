"""xyro reads the web: the only code of the system that touches it.

Comes in: FetchOrders (a page id, a URL, one of five priorities, the validators of the last read).
Goes out: exactly one PageReport for each completed order (the web's answer, or a named failure), and the body itself
where it is XML or a DTD, for the loader.

`reader.py` assembles all of it; `xyro.Reader` and the other names of the library (NAMES below) are loaded when they are
asked for, so `import xyro` alone loads nothing.

An order's life:

    fetch_queue.py waits in the queue: BLOCKING, ORDERED, then discovery (gamma % of these orders) and refresh; hosts
                   take turns
    pool.py        leaves it when a slot is free and its host may be read; is reported, or goes back to wait
    slot_shares.py which hosts may have one more slot, by what they gave for those they had
    robots.py      is refused where the origin's robots.txt says so, or cannot be had; a robots.txt that redirects to
                   another host is read when that host may be read (hops.py)
    site_entries.py what an operator set for its host: headers, credentials, delay
    posts.py       requests to hubs stand in the same lines
    clock_log.py   delays that outlive the process are kept in a file
    kept_rules.py  rules of robots.txt that go to another process with their hosts
    politeness.py  waits for the turn of its host and of its server (server_floors.py), from the end of their last read
    resolver.py    its host becomes addresses; no more than half of the slots wait for that (lookups.py)
    guard.py       is checked against the networks that may be contacted, on the address really connected to
    proxy.py       where an operator set one: the tunnel to that address
    page_client.py one connection to each host at a time; limits on time, bytes, headers and decompression: by
                   fast_client.py or, over aiohttp, client.py; exchange.py is one request and its answer, and what
                   becomes of a connection between two; connector.py makes it, tls_transport.py is its TLS
    fetcher.py     one request, no redirect followed: a redirect is a link, and the next hop an order of its own
    request_signing.py, identity_key.py
                   where [identity] asks for it: its request is signed
    body.py        its body piece by piece; long sitemaps, and pages of very many links, a few at a time
    decode.py, coded_streams.py, doctype.py, charset.py, scan.py, links.py, hrefs.py, nearby.py, maintext.py
                   its body is read while it arrives: content coding, kind, encoding, links, words near links, signature
    challenges.py, skeletons.py
                   is it a page at all, or what stands in its way; what pages of one make have in common
    failures.py    what went wrong has a name (aiohttp's by complaints.py), and the name a policy: wait, retries, whole
                   host or not, final or not; mistakes.py: it was ours, and is logged
    hubs.py        WebSub hubs that its headers, or its <link> elements, name
    page_archive.py, page_copy.py, tape.py, warc_files.py, warc_mending.py, contents_index.py, contents_copy.py,
    archive_options.py, archive_disk.py, surt.py
                   where [keep] asks for it: the answer as it came, in a WARC file; mended after a kill; found again
    page_text.py, page_blocks.py, text_blocks.py, markdown.py, text_libraries.py, packed_text.py
                   and its main text, as Markdown
    page_plug_ins.py, plug_in_process.py, plug_in_child.py
                   where [fetch] parsers or [opic] values name a plug-in: its links and text, the share of its
                   importance that it passes on; a process of their own asks the plug-ins
    answer.py, headers.py, reports.py
                   what came (of the headers those that are read here) and the policy become the report

With --readers N the steps from resolver.py to hubs.py are taken by processes beside the pool's own: readers.py starts
them (child_process.py) and asks them as the pool would ask a fetcher (page_fetcher.py), reader_child.py is such a
process, and reader_frames.py is what they say to each other. process_memory.py tunes the memory of each.

What always holds: no page is read before its origin's robots.txt, nor while that forbids it; at most one read per host
at a time, and the next one no earlier than politeness says; nothing that a site does raises out of here or outlives its
limits; fetch_queue.py, politeness.py, lookups.py, hops.py, robots.py, failures.py and reports.py never await, read a
clock or touch the network.
"""

from __future__ import annotations

import importlib
from typing import Any

VERSION = "0.1.0"
"""as pyproject.toml has it: to ask the installed package takes 10 ms of each start"""
NAMES = {
    "Answer": "xyro.answer.Answer",
    "Crawl": "xyro.library.crawl_directory.CrawlDirectory",
    "CrawledPage": "xyro.library.page_feed.CrawledPage",
    "FetchOrder": "xyro.wire.messages.FetchOrder",
    "Guard": "xyro.guard.Guard",
    "InputError": "xyro.wire.errors.InputError",
    "MachineError": "xyro.wire.errors.MachineError",
    "PageReport": "xyro.wire.messages.PageReport",
    "Pool": "xyro.pool.Pool",
    "Reader": "xyro.reader.Reader",
    "ParsedPage": "xyro.page_plug_ins.ParsedPage",
    "ReadPage": "xyro.page_plug_ins.ReadPage",
    "ReaderOptions": "xyro.reader.ReaderOptions",
    "TheirError": "xyro.wire.errors.TheirError",
    "crawl": "xyro.library.page_crawl.crawl",
    "open": "xyro.library.crawl_directory.CrawlDirectory",
}
"""name of the library -> where it is defined (__init__.pyi tells type checkers the same); a module is loaded when the
first of its names is asked for"""


def __getattr__(name: str) -> Any:
    """The library's name `name`, loaded now."""
    if name not in NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = NAMES[name].rpartition(".")
    value = globals()[name] = getattr(importlib.import_module(module), attribute)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *NAMES})
