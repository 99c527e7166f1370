"""The dashboard in a real browser: all five views by keyboard on a narrow screen, over titles and URLs that attack."""

import asyncio
import json
import os
import re
from pathlib import Path

import pytest

from tests.plugins.browser import CHROMIUM, browser
from tests.plugins.hostile_titles import PAGES, PAYLOADS, HostileTitles
from tests.service.face import said, started, until, xyro

NEEDS_CHROMIUM = pytest.mark.skipif(CHROMIUM is None, reason="no chromium is here: Debian's package `chromium` has it")
SETTINGS = '[keep]\ntext = true\n[refresh]\nbandwidth = "50/s"\nmin_interval = "1s"\nleast_chance = 0.0\n'
VIEWS = ("now", "fresh", "hosts", "page", "nodes")
HARMLESS = """(() => ({
  pwned: window.PWNED === undefined && !({}).innerHTML,
  planted: ["script", "img", "iframe", "base", "a", "style", "link"].flatMap(
    (name) => [...document.querySelectorAll("main " + name)]).length,
  handlers: [...document.querySelectorAll("*")].flatMap((each) => [...each.attributes])
    .filter((attribute) => attribute.name.startsWith("on")).length,
  wide: document.documentElement.scrollWidth,
  turned: /[\\u202a-\\u202e\\u2066-\\u2069]/.test(document.querySelector("main").textContent),
}))()"""


async def walk(tab, link, pictures):
    """Every view, by keys alone."""
    await tab.size(375)
    await tab.open(link)
    await tab.until(
        "document.querySelector('#limit') && document.querySelector('#link').textContent.startsWith('live')"
    )
    while await tab.value("document.activeElement.id") != "tab-now":
        await tab.press("Tab")
    for number, view in enumerate(VIEWS):
        if number:
            await tab.press("ArrowRight")
        await tab.until(f"document.activeElement.id === 'tab-{view}' && !document.querySelector('#{view}').hidden")
        await tab.until(f"document.querySelector('#{view}').textContent.length > 40")
        if view == "now":
            await tab.until("document.querySelectorAll('#reads tbody tr').length === 12")
            await tab.until("document.querySelector('#sinks tbody tr').textContent.startsWith('lines')")
        if view == "fresh":
            await bandwidth(tab)
        if view == "hosts":
            await pause(tab)
        if view == "page":
            await explain(tab)
        await tab.picture(pictures / f"{view}.png")
        assert await tab.value(HARMLESS) == {
            "pwned": True,
            "planted": 0,
            "handlers": 0,
            "wide": 375,
            "turned": False,
        }, view
        await tab.value(f"document.querySelector('#tab-{view}').focus()")
    await tab.press("Home")
    await tab.until("document.activeElement.id === 'tab-now'")


async def reach(tab, condition):
    """Press Tab until the focus is where it is wanted."""
    for _ in range(60):
        if await tab.value(f"(() => {{ const here = document.activeElement; return {condition}; }})()"):
            return
        await tab.press("Tab")
    raise AssertionError(condition)


async def bandwidth(tab):
    """The slider says what another bandwidth would give."""
    await tab.until("document.querySelector('#outlook')?.textContent.includes('reads a day keep')")
    before = await tab.value("document.querySelector('#outlook').textContent")
    assert before.startswith("4,320,000 reads a day keep"), before  # what is set: 50 a second
    note = await tab.value("document.querySelector('#plan .note').textContent")
    told, kept = (float(re.search(r"([\d.]+) % fresh", text)[1]) for text in (note, before))
    assert abs(told - kept) < 5, (note, before)  # one outlook, asked for twice
    await reach(tab, "here.id === 'bandwidth'")
    await tab.press("ArrowLeft", 30)
    await tab.until(f"document.querySelector('#outlook').textContent !== {json.dumps(before)}")


async def pause(tab):
    """A host is paused and read again."""
    await tab.until("document.querySelector('#rows tbody tr')")
    cells = "[...document.querySelectorAll('#rows tbody tr:first-child td')]"
    told = f"Object.fromEntries({cells}.map((each) => [each.dataset.name, each.textContent]))"
    assert (await tab.value(told)).items() >= {"delay": "0 s", "traps": "–"}.items()
    assert await tab.value(f"{told}.received.endsWith('kB') || {told}.received.endsWith('MB')")
    for action, word in (("pause", "paused"), ("resume", "resumed")):
        await reach(tab, f"here.textContent === '{action}' && !here.disabled")
        await tab.press("Enter")
        await tab.until(f"document.querySelector('#done').textContent.endsWith(': {word}')")
        await tab.until(
            "[...document.querySelectorAll('td')].some((each) => each.textContent === 'paused') === "
            + str(word == "paused").lower()
        )
        await tab.value("document.querySelector('#find').focus()")


async def explain(tab):
    """A page of the list: its title is shown as it was written, its versions are compared."""
    await tab.until("document.querySelector('button.url')")
    versions = "Number(here.closest('tr').lastChild.textContent) > 2"  # a page that was read once has none to compare
    await reach(tab, f"here.className === 'url' && /script|onerror|onload/.test(here.textContent) && {versions}")
    await tab.press("Enter")
    await tab.until("document.querySelectorAll('.time li').length > 4 && document.querySelector('.why li')")
    title = " ".join((await tab.value("document.querySelector('#about .big').textContent")).split())
    assert any(" ".join(payload.split())[:60] in title for payload in PAYLOADS if payload.strip()), title
    await tab.until("document.querySelector('.change')")


@pytest.mark.long
@NEEDS_CHROMIUM
def test_hostile_titles_and_urls_stay_text_in_every_view(tmp_path):
    pictures = Path(os.environ.get("XYRO_TEST_PICTURES", tmp_path))
    (settings := tmp_path / "s.toml").write_text(f'{SETTINGS}[[sinks]]\nname = "lines"\npath = "{tmp_path}/lines"\n')
    options = ("--scope", "any", "--only-net", "127.0.0.0/8", "--delay", "0", "--config", settings, "--refresh")
    data = tmp_path / "d"

    async def visit(link):
        async with browser() as tab:
            await walk(tab, link, pictures)
            await tab.size(1200, 900, dark=True)
            for key, view in enumerate(VIEWS, 1):
                await tab.press(str(key))
                await asyncio.sleep(0.5)
                await tab.picture(pictures / f"{view}-dark.png")
            assert tab.console == [] and tab.dialogs == []
            origin = link.partition("/dashboard")[0]
            assert [each for each in tab.asked if not each.startswith((f"{origin}/", "data:image/svg"))] == []
            await tab.open(link.replace("#", "?again#"))
            await tab.until("document.querySelector('#link').textContent.startsWith('live')")  # its session goes on
            await tab.value("sessionStorage.clear()")
            await tab.open(link.replace("#", "?anew#"))
            await tab.until("document.body.textContent.includes('this link was used before')")

    with HostileTitles().serving() as site, started("crawl", site.entry, *options, data=data, stderr=None):
        until(lambda: said("status", "--data", data)["states"].get("read", 0) >= 0.9 * PAGES)
        until(lambda: site.reads > 4 * PAGES)  # then all are likely to have been read three times
        link = xyro("dashboard", "--data", data).stdout.strip()
        asyncio.run(visit(link))
