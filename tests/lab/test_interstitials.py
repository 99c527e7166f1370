"""Interstitials in place of pages: each is recognised, and none of them changes what is known of a page."""

import asyncio
import subprocess
import sys

import pytest

from tests.service.face import ENVIRONMENT, ROOT, rows, said
from tests.xyro.raw_server import fetched, says
from xyro.lab.zoo.interstitials import INTERSTITIALS
from xyro.lab.zoo.wall_server import WallServer

BY_NAME = {each.name: each for each in INTERSTITIALS}


@pytest.mark.parametrize("name", [each.name for each in INTERSTITIALS])
async def test_one_is_told_by_its_marks_or_is_a_page_like_others(name):
    each = BY_NAME[name]
    answer = await fetched(says(each.answer("/a/page.html", "5eed")))
    if each.vendor:
        assert (answer.error, answer.vendor) == ("challenge", each.vendor)
        assert (answer.links.urls, answer.signature, answer.etag) == ((), b"", "")
    else:
        assert answer.error in ("", "http-403") and not answer.vendor


async def crawl(folder, *words):
    command = (sys.executable, "-m", "xyro", "crawl", *words, "--only-net", "127.0.0.0/8", "--data", str(folder))
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, env=ENVIRONMENT, stderr=subprocess.PIPE)
    _, told = await process.communicate()
    assert process.returncode == 0, told


async def walled(folder, pages, seconds):
    """(rows of pages before, after, rows of hosts after, requests of each host behind its wall)"""
    async with WallServer(INTERSTITIALS, pages) as walls:
        await crawl(folder, *walls.seeds, "--delay", "0.05")
        before = {page["url"]: page for page in await asyncio.to_thread(rows, "pages", folder)}
        read = len(walls.requests)
        walls.up = True
        await crawl(folder, "--refresh", "--delay", "0.05", "--max-seconds", str(seconds))
        after = {page["url"]: page for page in await asyncio.to_thread(rows, "pages", folder)}
        hosts = {host["host"]: host for host in await asyncio.to_thread(rows, "hosts", folder)}
        asked = [number for _, number, path in walls.requests[read:] if path != "/robots.txt"]
        names = [f"127.3.0.{number + 1}:{walls.port}" for number in range(len(INTERSTITIALS))]
    return before, after, [hosts[name] for name in names], asked


SAME = ("state", "changes", "change_rate", "signature", "out_links", "kind", "http_status", "error", "last_change")
PAGES, SECONDS = 6, 25


@pytest.mark.long
async def test_no_interstitial_changes_what_is_known(tmp_path):
    before, after, hosts, asked = await walled(tmp_path / "data", PAGES, SECONDS)
    assert len(before) >= PAGES * len(INTERSTITIALS) and {page["state"] for page in before.values()} == {"read"}
    false = {url for url in before if any(before[url][name] != after[url][name] for name in SAME)}
    assert false == set()
    for number, (each, host) in enumerate(zip(INTERSTITIALS, hosts, strict=True)):
        assert host["challenge"] == (each.vendor or host["challenge"]) and host["challenges"] == 1, each.name
        assert asked.count(number) <= (1 if each.vendor and each.vendor != "empty" else 5), each.name
    told = said("status", "--data", tmp_path / "data")["challenged_hosts"]
    assert sum(told.values()) == len(INTERSTITIALS) and told["cloudflare"] == 7
    assert said("audit", "--data", tmp_path / "data")["ok"]
