"""The computed web of `xyro lab speed scale`: any number of pages on addresses of 127.0.0.0/8, served by one socket.

`python -m xyro.lab.speed.scale_web --pages N` serves it: a page shows links of its host and far ones, none of them
new, so that a daemon at work does not change the size that is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from aiohttp import web

from xyro.configs.load import SERVE, load
from xyro.configs.schema import Settings
from xyro.lab.speed.ram_speed import MadeUpWeb

PORT = 18_470
"""a part of all URLs, so it is the same in each run that goes on with a directory"""
PER_HOST = 500
LATENCY = 0.05
SHOWN = (0, 56, 4)
"""new, near and far links of a page that is served"""
OPTIONS = {"crawl.scope": "any", "fetch.only_net": ("127.0.0.0/8",), "politeness.delay": 0.0, "fetch.concurrency": 8}


class ScaleWeb(MadeUpWeb):
    """Host number i is the i-th address from 127.0.0.1 on."""

    def __init__(self, pages_known: int = 1) -> None:
        super().__init__(PER_HOST)
        self.pages_known = pages_known

    def url(self, number: int) -> str:
        host = number // self.per_host
        address = f"127.{host // 62_500}.{host // 250 % 250}.{host % 250 + 1}"
        return f"http://{address}:{PORT}/section-{number % 7}/page-{number}.html"


def settings_of() -> Settings:
    """The settings of the growth and of the daemon: a difference would be another scope."""
    return load((SERVE,), {}, OPTIONS)


def config(path: Path, exclude: str = "") -> Path:
    """Write these settings as a file for `--config`. exclude: a pattern that leaves the scope."""
    path.write_text(
        f'[crawl]\nscope = "any"\nexclude = {[exclude] if exclude else []}\n'
        '[fetch]\nonly_net = ["127.0.0.0/8"]\nconcurrency = 8\n'
        "[politeness]\ndelay = 0.0\n[api]\nport = 0\n"
    )
    return path


class ScaleServer:
    """Answers for every host."""

    def __init__(self, pages: int) -> None:
        self.web = ScaleWeb(pages)

    async def answer(self, request: web.Request) -> web.Response:
        if not request.path.endswith(".html"):
            raise web.HTTPNotFound
        await asyncio.sleep(LATENCY)
        number = int(request.path.rpartition("-")[2].removesuffix(".html"))
        links = "".join(f'<a href="{url}">page</a>\n' for url in self.web.links(number, *SHOWN))
        return web.Response(text=f"<title>page {number}</title>\n{links}", content_type="text/html")


async def _serve(pages: int) -> None:
    app = web.Application()
    app.router.add_get("/{path:.*}", ScaleServer(pages).answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "0.0.0.0", PORT, backlog=1024).start()  # noqa: S104  # each host is an address of 127/8
    sys.stdout.write(f"{ScaleWeb().url(0)}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--pages", type=int, required=True)
    asyncio.run(_serve(parser.parse_args().pages))
