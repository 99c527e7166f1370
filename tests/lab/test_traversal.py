"""A plain traversal, written without our parsers, finds exactly the URLs and links of the truth."""

import asyncio
from urllib.parse import urldefrag, urljoin, urlsplit
from xml.etree import ElementTree

import aiohttp
import numpy as np
import pytest
from aiohttp.abc import AbstractResolver
from lxml import etree

from xyro.lab.web.places import Doc
from xyro.lab.web.server import WebServer
from xyro.lab.web.shape import DAY, ORIGIN
from xyro.lab.web.web import Web
from xyro.wire.clock import ManualClock

T = ORIGIN + 15 * DAY
SKIP = (".png", ".zip", ".jpg", ".pdf")
LISTS = {"loc", "link"}


class NoNames(AbstractResolver):
    """The test stays on loopback: names are never looked up."""

    async def resolve(self, host, port=0, family=0):
        raise AssertionError(f"the traversal asked for {host}")

    async def close(self):
        pass


def html_links(url, body):
    for element in etree.HTML(body).iter("a", "area", "iframe"):
        if "nofollow" not in element.get("rel", ""):
            yield urljoin(url, element.get("href") or element.get("src"))


def xml_links(body):
    """Text or href of loc and link elements, in document order."""
    root = ElementTree.fromstring(body)
    for element in root.iter():
        if element.tag.rpartition("}")[2] in LISTS:
            yield element.get("href") or element.text


class Traversal:
    def __init__(self, entry):
        self.known, self.queue = {entry}, [entry]
        self.links, self.hosts, self.statuses, self.denied = {}, set(), {}, set()

    def add(self, url):
        url = urldefrag(url)[0]
        if url.startswith(("http://", "https://")) and url not in self.known:
            self.known.add(url)
            self.queue.append(url)
        return url

    async def robots(self, session, origin):
        async with session.get(origin + "/robots.txt") as response:
            for line in (await response.text()).splitlines():
                name, _, value = line.partition(": ")
                if name == "Sitemap":
                    self.add(value)
                elif name == "Disallow" and value:
                    self.denied.add(origin + value)

    async def visit(self, session, url):
        origin = "http://" + urlsplit(url).netloc
        if url.endswith(SKIP) or ".example/" in url:
            return
        if origin not in self.hosts:
            self.hosts.add(origin)
            await self.robots(session, origin)
        if url.startswith(tuple(self.denied)):
            return
        async with session.get(url, allow_redirects=False) as response:
            self.statuses[url] = response.status
            body = await response.read()
            found = self.extract(url, response, body)
        self.links[url] = [link for link in dict.fromkeys(map(self.add, found)) if link.startswith("http")]

    def extract(self, url, response, body):
        mime = response.headers["Content-Type"]
        if "Location" in response.headers:
            return [urljoin(url, response.headers["Location"])]
        if response.status != 200 or mime == "application/xml-dtd":
            return []
        if mime.startswith("text/html"):
            return list(html_links(url, body.decode()))
        if b"<!DOCTYPE" in body:
            root = etree.fromstring(body, etree.XMLParser(resolve_entities=False))
            return [urljoin(url, e.get("{http://www.w3.org/1999/xlink}href")) for e in root.iter("see")]
        return list(xml_links(body))

    async def run(self):
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(resolver=NoNames())) as session:
            while self.queue:
                batch, self.queue = self.queue, []
                for start in range(0, len(batch), 20):
                    await asyncio.gather(*(self.visit(session, url) for url in batch[start : start + 20]))


@pytest.mark.long
@pytest.mark.parametrize("settings", [{}, {"outside": 0.05, "drift": 0.5, "rate_median": 1.0, "seed": 9}])
async def test_a_plain_traversal_finds_the_truth(settings):
    async with WebServer(Web(pages=700, hosts=7, **settings), clock=ManualClock(T)) as server:
        traversal, true = Traversal(server.entry), server.truth()
        await traversal.run()
    assert traversal.known == set(true.urls)
    readable = {url for url, wanted in zip(true.urls, true.readable(), strict=True) if wanted}
    assert set(traversal.links) == readable
    for page, url in enumerate(true.urls):
        assert tuple(traversal.links.get(url, ())) == true.links(page)
        assert traversal.statuses.get(url, 200) == (true.statuses[page] or 200)
    private = {url for url, kind in zip(true.urls, true.kinds, strict=True) if kind == Doc.PRIVATE}
    assert private
    assert {url for url in true.urls if url.startswith(tuple(traversal.denied))} == private
    dead = np.isin(true.statuses, (404, 410)).mean()
    moved = np.isin(true.statuses, (301, 302)).mean()
    assert 0.01 < dead < 0.06
    assert 0.01 < moved < 0.06
