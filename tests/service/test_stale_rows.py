"""`stale` is on every row that shows a page, whoever is asked: each command, stopped and running, and the library."""

from __future__ import annotations

import json

import pytest
from aiohttp import web

import xyro as library
from tests.plugins.serving import serving
from tests.service.face import LOOPBACK, started, until, xyro

WORDS = "A sentence that is long enough to be the content of a page, with commas, and an end. " * 8
LINKS = "<a href=/b>b</a> <a href=/lost>lost</a> <a href=/doc.xml>doc</a> <a href=/doc.dtd>dtd</a>"
SITE = {
    "/": ("text/html", f"<html><title>Start</title><body><p>{WORDS}</p>{LINKS}"),
    "/b": ("text/html", f"<html><title>B</title><body><p>{WORDS}</p><a href=/>start</a>"),
    "/doc.xml": ("application/xml", '<!DOCTYPE d SYSTEM "doc.dtd"><d><t>One</t></d>'),
    "/doc.dtd": ("application/xml-dtd", "<!ELEMENT d (t)><!ELEMENT t (#PCDATA)>"),
}
KEEP = {"keep__warc": True, "changes__record": True}


async def answer(request: web.Request) -> web.Response:
    kind, body = SITE.get(request.path, ("text/html", ""))
    return web.Response(text=body, content_type=kind, status=200 if body else 404)


@pytest.fixture(scope="module")
def crawled(tmp_path_factory):
    """(data, URL of the site, pages of `xyro.crawl`)"""
    data = tmp_path_factory.mktemp("stale") / "d"
    with serving(answer, ["127.0.0.1"]) as port:
        url = f"http://127.0.0.1:{port}"
        found = library.crawl(url + "/", data=data, text=True, only_net=["127.0.0.0/8"], delay=0, **KEEP)
        yield data, url, list(found)


def answers(url):
    """Each command whose rows show pages -> how many rows it has at least."""
    return {
        ("export", "pages"): 5,
        ("export", "documents"): 2,
        ("export", "links"): 5,
        ("export", "histories"): 4,
        ("export", "texts"): 2,
        ("rank", "--format", "jsonl"): 5,
        ("rank", "--method", "pagerank", "--format", "jsonl"): 5,
        ("changes",): 4,
        ("top", "--json"): 5,
        ("top", "--by", "stale", "--json"): 4,
        ("why", url + "/", "--json"): 1,
        ("page", "versions", url + "/", "--json"): 1,
        ("xml", "versions", url + "/doc.xml", "--json"): 1,
        ("xml", "query", "//t", "--json"): 1,
        ("xml", "dtds", "--json"): 1,
        ("log", "--errors", "--json"): 1,
    }


def told(data, words):
    """The rows that a command prints."""
    done = xyro(*words, "--data", data)
    assert done.returncode == 0, done.stderr
    values = [json.loads(line) for line in done.stdout.splitlines()]
    rows = values[0] if len(values) == 1 and isinstance(values[0], list) else values
    return [sample for row in rows for sample in row["samples"]] if words[0] == "log" else rows


def check_all(data, url):
    shown = {}
    for words, least in answers(url).items():
        rows = told(data, words)
        assert len(rows) >= least, words
        assert [row for row in rows if "stale" not in row] == [], words
        values = [row["stale"] for row in rows]
        lost = [row["stale"] for row in rows if row.get("url") == url + "/lost"]
        assert all(value is None or 0.0 <= value <= 1.0 for value in values), words
        assert lost.count(None) == len(lost) and values.count(None) == len(lost), (words, "there, or not there")
        shown[words] = {row.get("url") or row.get("path") or row.get("source_url"): row["stale"] for row in rows}
    of_start = [found[url + "/"] for found in shown.values() if url + "/" in found]
    assert len(of_start) >= 7 and max(of_start) - min(of_start) < 1e-3, "all of one moment, some seconds apart"


def test_every_command_and_value_of_a_stopped_crawl_has_it(crawled):
    data, url, pages = crawled
    check_all(data, url)
    assert {page.url for page in pages} == {url + path for path in (*SITE, "/lost")}
    assert all((page.stale is None) == (page.url == url + "/lost") for page in pages)
    assert all(0.0 <= page.stale < 0.01 for page in pages if page.stale is not None)
    crawl = library.open(data)
    for rows in (crawl.pages(), crawl.top(), crawl.links(), crawl.changes(), [crawl.why(url + "/")]):
        assert all("stale" in row for row in rows)


@pytest.mark.long
def test_every_command_has_it_while_the_crawl_runs(crawled):
    data, url, _ = crawled
    with started("serve", url + "/", *LOOPBACK, data=data):
        until(lambda: len(told(data, ("top", "--json"))) >= 5)
        check_all(data, url)


def test_what_a_later_read_replaced_is_stale(tmp_path):
    """Versions and lines of changes: 1 of those that are not the last."""
    data, words = tmp_path / "d", iter(range(100))

    async def changing(request: web.Request) -> web.Response:
        if request.path.endswith("xml"):
            return web.Response(text=f"<d>{next(words)}</d>", content_type="application/xml")
        links = "<a href=/doc.xml>doc</a>" if request.path == "/" else ""
        return web.Response(text=f"<p>{next(words)} {WORDS}</p>{links}", content_type="text/html")

    with serving(changing, ["127.0.0.1"]) as port:
        url = f"http://127.0.0.1:{port}"
        options = {"text": True, "only_net": ["127.0.0.0/8"], "delay": 0, "refresh__min_interval": 0.0, **KEEP}
        for _ in library.crawl(url + "/", data=data, refresh=True, max_pages=8, **options):
            pass
    for words in (("page", "versions", url + "/", "--json"), ("xml", "versions", url + "/doc.xml", "--json")):
        *earlier, last = (row["stale"] for row in told(data, words))
        assert earlier and set(earlier) == {1.0} and 0.0 < last < 1.0
    lines = [line for line in told(data, ("changes",)) if line["url"] == url + "/"]
    assert {line["stale"] for line in lines[:-1]} == {1.0} and 0.0 < lines[-1]["stale"] < 1.0
    chosen = told(data, ("changes", "--where", "stale < 1"))
    assert {line["number"] for line in chosen} >= {lines[-1]["number"]} and len(chosen) == 2
