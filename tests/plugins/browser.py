"""A headless Chromium over the DevTools protocol: keys, sizes, colours, what its console says, pictures of the page."""

import asyncio
import base64
import contextlib
import json
import shutil
import tempfile
import time
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import aiohttp

from tests.service.face import until

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars", "--remote-debugging-port=0"),
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
KEYS = {"Tab": 9, "Enter": 13, "ArrowRight": 39, "ArrowLeft": 37, "Home": 36, "End": 35, " ": 32}


class Browser:
    """One tab. `console`: errors and warnings of its console, exceptions, and what its policy refused."""

    def __init__(self, socket):
        self._socket = socket
        self._waiting, self._number = {}, 0
        self.console, self.dialogs, self.asked, self._paused = [], [], [], asyncio.Queue()

    async def listen(self):
        async for message in self._socket:
            found = message.json()
            if "id" in found:
                self._waiting.pop(found["id"]).set_result(found)
                continue
            self._note(found["method"], found["params"])

    def _note(self, method, params):
        if method == "Runtime.exceptionThrown":
            self.console.append(params["exceptionDetails"].get("exception", {}).get("description", str(params)))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.console.append(str([each.get("value") for each in params["args"]]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.console.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
        elif method == "Page.javascriptDialogOpening":
            self.dialogs.append(params["message"])
        elif method == "Network.requestWillBeSent":
            self.asked.append(params["request"]["url"])
        elif method == "Fetch.requestPaused":
            self._paused.put_nowait(params["requestId"])

    async def call(self, method, **params):
        self._number += 1
        future = self._waiting[self._number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": self._number, "method": method, "params": params})
        found = await asyncio.wait_for(future, 30)
        assert "error" not in found, (method, found)
        return found["result"]

    async def value(self, script):
        """What the script comes to; a test's own scripts are no part of the page, so its policy does not hold."""
        found = await self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    async def until(self, script, seconds=30.0):
        """Wait until the script comes to something true."""
        end = time.monotonic() + seconds
        while not (found := await self.value(f"!!({script})")):
            if time.monotonic() > end:
                shown = await self.value("document.querySelector('main:not([hidden])')?.innerText")
                raise AssertionError(f"never true: {script}; the page shows: {shown}")
            await asyncio.sleep(0.05)
        return found

    async def open(self, address):
        await self.call("Page.navigate", url=address)
        await self.until("document.readyState == 'complete'")

    async def hold_back(self, pattern):
        """The next request of an address like `pattern` is sent with `let_go`."""
        await self.call("Fetch.enable", patterns=[{"urlPattern": pattern}])

    async def let_go(self):
        await self.call("Fetch.continueRequest", requestId=await self._paused.get())
        await self.call("Fetch.disable")

    async def press(self, key, times=1):
        for _ in range(times):
            text = {"text": "\r"} if key == "Enter" else {"text": key} if len(key) == 1 else {}
            code = {"windowsVirtualKeyCode": KEYS.get(key, ord(key[0].upper()))}
            await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text, **code)
            await self.call("Input.dispatchKeyEvent", type="keyUp", key=key, **code)

    async def write(self, text):
        await self.call("Input.insertText", text=text)

    async def size(self, width, height=800, dark=False):
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        await self.call("Emulation.setEmulatedMedia", features=scheme)

    async def picture(self, path):
        """The whole page as it would be scrolled through."""
        found = await self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        await asyncio.to_thread(Path(path).write_bytes, base64.b64decode(found["data"]))


def _address(place):
    """Where its first tab is spoken to, once it says its port."""
    until(lambda: place.exists() and len(place.read_text().split()) == 2)
    port = int(place.read_text().split()[0])

    def first_tab():
        with closing(HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
            connection.request("GET", "/json/list")
            tabs = json.loads(connection.getresponse().read())
        return next((tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page"), "")

    return until(first_tab)


@contextlib.asynccontextmanager
async def browser():
    """A fresh Chromium with one tab, ended with the block; it reaches nothing but 127.0.0.1."""
    with tempfile.TemporaryDirectory(prefix="xyro-browser-", ignore_cleanup_errors=True) as profile:
        process = await asyncio.create_subprocess_exec(
            CHROMIUM, *OPTIONS, f"--user-data-dir={profile}", "about:blank",
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            address = await asyncio.to_thread(_address, Path(profile) / "DevToolsActivePort")
            async with (
                aiohttp.ClientSession() as session,
                session.ws_connect(address, max_msg_size=0) as socket,
            ):
                tab = Browser(socket)
                listening = asyncio.create_task(tab.listen())
                for domain in ("Page", "Runtime", "Log", "Network"):
                    await tab.call(f"{domain}.enable")
                yield tab
                listening.cancel()
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()
