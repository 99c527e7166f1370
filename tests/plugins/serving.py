"""A site of aiohttp on some addresses of loopback, in a thread with an event loop of its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence

from aiohttp import web


@contextlib.contextmanager
def serving(answer: Callable[[web.Request], Awaitable[web.Response]], addresses: Sequence[str]) -> Iterator[int]:
    """Serve `answer` at every path; yields the port, the same at all addresses."""
    loop, ready, ports = asyncio.new_event_loop(), threading.Event(), [0]

    async def start() -> web.AppRunner:
        app = web.Application()
        app.add_routes([web.get("/{path:[\\s\\S]*}", answer)])
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        for address in addresses:
            site = web.TCPSite(runner, address, ports[0])
            await site.start()
            ports[0] = site._server.sockets[0].getsockname()[1]
        ready.set()
        return runner

    def work() -> None:
        asyncio.set_event_loop(loop)
        runner = loop.run_until_complete(start())
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait(10)
    try:
        yield ports[0]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
