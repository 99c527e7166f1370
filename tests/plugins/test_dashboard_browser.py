"""The dashboard in a real browser: all five views by keyboard on a narrow screen, over titles and URLs that attack."""

import asyncio
import json
import os
import re
from pathlib import Path
from socket import gethostname

import pytest

from tests.plugins.browser import CHROMIUM, browser
from tests.plugins.hostile_titles import PAGES, PAYLOADS, HostileTitles
from tests.service.face import said, started, until, xyro
from xyro.wire.urls import canonical

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


HARM_NONE = {"pwned": True, "planted": 0, "handlers": 0, "turned": False}
CUT = """(() => {
  const wide = document.documentElement.clientWidth, seen = document.querySelector("main > section:not([hidden])");
  const inside = (each) => { const box = each.getBoundingClientRect(); return box.left >= 0 && box.right <= wide; };
  return [...seen.querySelectorAll(".card, .tile, h2, p, li, svg, input, select, button.small, th, td")]
    .filter((each) => each.getClientRects().length && getComputedStyle(each).position !== "absolute" && !inside(each))
    .filter((each) => !each.closest("thead") || getComputedStyle(each.closest("thead")).position !== "absolute")
    .map((each) => each.tagName + " " + each.textContent.slice(0, 40));
})()"""
WIDTHS = (375, 768, 1000, 1280)
EXPLAINED = """(async (url, shown) => {
  const texts = () => [...document.querySelectorAll("#about > .card:nth-child(2) p")].map((each) => each.textContent);
  document.querySelector("#wanted").value = url;
  document.querySelector("#wanted").form.requestSubmit();
  for (let tries = 0; tries < 1000 && texts().at(-1) !== shown; tries += 1)
    await new Promise((done) => setTimeout(done, 5));
  return texts();
})"""
WAITED = """
window.WAITED = [];
new MutationObserver((records) => WAITED.push(...records.flatMap((record) => [...record.addedNodes])
  .map((node) => node.textContent))).observe(document.querySelector("#now .wait"), { childList: true });
"""


async def walk(tab, data, link, pictures):
    """Every view, by keys alone."""
    await tab.size(375)
    await first_picture(tab, data, link, pictures)
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
        assert await tab.value(HARMLESS) == HARM_NONE | {"wide": 375}, view
        await tab.value(f"document.querySelector('#tab-{view}').focus()")
    await tab.press("Home")
    await tab.until("document.activeElement.id === 'tab-now'")


async def first_picture(tab, data, link, pictures):
    """Before any figure has come, the page says what it waits for, then for which crawl."""
    await tab.hold_back("*/dashboard/events")
    await tab.open(link)
    await tab.until("document.querySelector('#tab-now').ariaSelected === 'true' && state.session")
    await tab.picture(pictures / "first.png")
    said = await tab.value("document.querySelector('#now').innerText")
    assert said.startswith("What limits the speed now\n\nWaiting for the first figures of this crawl."), said
    assert said.count("–") == 6 and "pages known" in said
    assert await tab.value("document.querySelector('#link').textContent") == "connecting"
    await tab.value(WAITED)
    await tab.let_go()
    await tab.until("document.querySelector('#limit')")
    where = f"{data.resolve()} on {gethostname()}"
    assert await tab.value("WAITED") == [f"Waiting for the first figures of the crawl in {where}."]
    assert await tab.value("document.querySelector('#crawl').textContent") == where
    assert await tab.value("document.title") == f"Xyro: {data.name}"


def plain(text):
    """The page's own: what turns a line around, and controls, are shown escaped."""
    turning = "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
    return re.sub(turning, lambda found: f"\\u{ord(found[0]):04x}", text)


async def every_page(tab, site):
    """All 200 hostile URLs and titles are shown, each as the text that it is."""
    await tab.press("4")
    await tab.until("!document.querySelector('#page').hidden && document.querySelector('#wanted')")
    for number in range(PAGES):
        url = canonical(site.address(number))
        shown = await tab.value(f"({EXPLAINED})({json.dumps(url)}, {json.dumps(plain(url))})")
        assert len(shown) == 2 and shown[1] == plain(url), (url, shown)
        title = " ".join(plain(f"{PAYLOADS[number % len(PAYLOADS)]} {number}").split())
        assert " ".join(shown[0].split())[:60] == title[:60] and (
            len(title) > 150 or shown[0].endswith(f" {number}")
        ), (
            title,
            shown,
        )
        assert await tab.value(HARMLESS) == HARM_NONE | {"wide": 1280}, url
    await tab.value("document.querySelector('#about button').click()")
    for order in ("stale", "rising", "cash", "importance"):
        await tab.until("document.querySelectorAll('#about tbody tr').length === 30")
        await tab.value(
            "((by, order) => { by.value = order; by.dispatchEvent(new Event('change')); })"
            f"(document.querySelector('#top-by'), '{order}')"
        )
        await tab.until(f"document.querySelector('#top-by').value === '{order}'")
        assert await tab.value(HARMLESS) == HARM_NONE | {"wide": 1280}, order


async def widths(tab, pictures):
    """Nothing of any view is cut, or wider than the window; the tables of URLs may scroll in their own boxes."""
    for width in WIDTHS:
        await tab.size(width, 900)
        for key, view in enumerate(VIEWS, 1):
            await tab.press(str(key))
            await tab.until(f"document.querySelector('#{view}').textContent.length > 40")
            if view == "hosts":
                await tab.until("document.querySelectorAll('#rows tbody tr').length >= 10")
            await tab.until("document.documentElement.scrollWidth === innerWidth")
            assert await tab.value(CUT) == [], (view, width)
            await tab.picture(pictures / f"{view}-{width}.png")


async def hosts_by_keys(tab, data, site):
    """What the buttons do to a host is what happens in the crawl: no read while it is paused or blocked."""
    await tab.press("3")
    await tab.until("!document.querySelector('#hosts').hidden && document.querySelector('#rows tbody tr')")
    name = f"127.9.0.4:{site.port}"
    steps = (("pause", "paused"), ("resume", None), ("block", "blocked"), ("resume", None), ("block", "blocked"))
    for action, held in steps:
        await tab.value("document.querySelector('#find').focus()")
        await reach(tab, f"here.ariaLabel === '{action} {name}' && !here.disabled")
        await tab.press("Enter")
        word = {"pause": "paused", "resume": "resumed", "block": "blocked"}[action]
        await tab.until(f"document.querySelector('#done').textContent === '{name}: {word}'")
        rows = await asyncio.to_thread(said, "hosts", "-n", "100", "--data", data)
        assert {row["host"]: row["held"] for row in rows}[name] == held, (action, rows)
        await asyncio.sleep(0.5)  # what was being read is answered
        before, others = site.reads_of_host[name], site.reads
        if held:
            await asyncio.to_thread(until, lambda others=others: site.reads > others + 60)
            assert site.reads_of_host[name] == before, action
        else:
            await asyncio.to_thread(until, lambda before=before: site.reads_of_host[name] > before)


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
            await walk(tab, data, link, pictures)
            await widths(tab, pictures)
            await every_page(tab, site)
            await hosts_by_keys(tab, data, site)
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
        until(lambda: site.reads > 6 * PAGES)  # then all are likely to have been read three times
        link = xyro("dashboard", "--data", data).stdout.strip()
        asyncio.run(visit(link))
