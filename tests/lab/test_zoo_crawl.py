"""The whole zoo in one crawl by the command itself: each behaviour ends in its class, and cash is exact."""

import asyncio
import subprocess
import sys

import pytest

from tests.service.face import ENVIRONMENT, ROOT, rows, said
from xyro.lab.zoo.name_server import FORBIDDEN
from xyro.lab.zoo.zoo_server import Zoo
from xyro.wire.messages import EMPTY
from xyro.wire.urls import canonical, host_of

SETTINGS = """
[crawl]
scope = "any"
max_seconds = {seconds}
[politeness]
delay = 0.25
[fetch]
only_net = ["127.0.0.0/8"]
name_servers = ["{names}"]
connect_timeout = 8.0
first_byte_timeout = 5.0
header_timeout = 6.0
client = "{client}"
"""
SECONDS = 90
"""a body that drips is given up after 20, what waits to be tried again ends no crawl"""


async def crawled(folder, client):
    """(what is right for each URL, requests that the servers saw)"""
    folder.mkdir()
    async with Zoo() as zoo:
        settings = folder / "zoo.toml"
        settings.write_text(SETTINGS.format(seconds=SECONDS, names=zoo.name_server, client=client))
        words = ("crawl", zoo.hub, "--config", str(settings), "--data", str(folder / "data"))
        crawl = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "xyro", *words), cwd=ROOT, env=ENVIRONMENT, stderr=subprocess.PIPE
        )
        _, told = await crawl.communicate()
        assert crawl.returncode == 0, told
        right = {canonical(zoo.url(case)): case.kinds for case in zoo.cases}
        for case in zoo.cases:
            right |= {canonical(url): kinds for url, kinds in case.leads.items()}
        return right, zoo.requests


@pytest.mark.long
async def test_each_behaviour_ends_in_its_class(tmp_path):
    folders = {client: tmp_path / client for client in ("fast", "aiohttp")}
    crawls = await asyncio.gather(*(crawled(folder, client) for client, folder in folders.items()))
    for folder, crawl in zip(folders.values(), crawls, strict=True):
        check(folder, *crawl)


def check(folder, right, requests):
    pages = {page["url"]: page for page in rows("pages", folder / "data")}
    ends = {url: (pages[url]["error"] or "") if url in pages else "never met" for url in right}
    ends = {url: "challenge" if end == EMPTY else end for url, end in ends.items()}  # so it is treated
    assert {url: (end, right[url]) for url, end in ends.items() if end not in right[url]} == {}
    assert said("audit", "--data", folder / "data")["ok"]
    assert len(requests) > len(right)
    outside = [page for url, page in pages.items() if host_of(url) == FORBIDDEN]
    assert not any(page["reads"] for page in outside)
