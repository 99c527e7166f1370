"""`import xyro`: a crawl inside a program's event loop, and what a directory answers; the README's ten lines."""

import asyncio
import json
import re
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import numpy as np
import pytest

import xyro
from tests.plugins.changing_site import ChangingSite
from tests.service.face import ENVIRONMENT, LOOPBACK, ROOT, started, until
from tests.service.face import xyro as command
from xyro.wire.errors import InputError
from xyro.wire.urls import host_of, partition_of

LOCAL = {"only_net": ["127.0.0.0/8"], "delay": 0, "scope": "any"}


@pytest.fixture(scope="module")
def site():
    with ChangingSite(2, 15, 1).serving() as serving:
        yield serving


async def test_each_page_comes_as_it_is_read(site, tmp_path):
    before = site.reads
    found = [page async for page in xyro.crawl(site.entry, data=tmp_path / "d", **LOCAL)]
    good = {page.url: page for page in found if not page.error}
    assert good.keys() == site.expected().keys() and len(found) == site.reads - before
    root = good[site.entry]
    assert root.status == 200 and root.kind == "HTML" and len(set(root.links)) == 15 + 2 and root.importance > 0
    assert all(page.changed is None for page in found)
    with xyro.open(tmp_path / "d") as crawl:
        assert crawl.status()["reads"] == len(found) and not crawl.status()["running"]
        rows = {row["url"]: row for row in crawl.pages()}
        assert {url for url, row in rows.items() if row["state"] == "read"} == good.keys()
        assert crawl.top(3)[0]["importance"] >= crawl.top(3)[2]["importance"]
        assert crawl.why(site.entry)["because"] and len(list(crawl.links())) > 100
    assert json.loads(command("audit", "--json", "--data", tmp_path / "d").stdout)["ok"]


def test_an_order_that_does_not_exist_is_refused_by_name(site, tmp_path):
    list(xyro.crawl(site.entry, data=tmp_path / "d", max_pages=3, **LOCAL))
    with xyro.open(tmp_path / "d") as crawl:
        with pytest.raises(ValueError, match="by='foo': one of importance, read, cash, stale, rising"):
            crawl.top(5, "foo")
        with pytest.raises(ValueError, match="count=-1: 0 or more"):
            crawl.top(-1)
        assert crawl.top(0) == []
        assert all(crawl.top(2, by) or by == "rising" for by in ("importance", "read", "cash", "stale", "rising"))


@pytest.mark.parametrize("table", ["pages", "links"])
def test_rows_that_are_not_read_to_their_end_hold_nothing(site, tmp_path, table):
    """The rows' iterator stays referenced: garbage collection frees nothing here."""
    list(xyro.crawl(site.entry, data=tmp_path / "d", max_pages=5, **LOCAL))

    def is_free():
        return command("audit", "--data", tmp_path / "d").returncode == 0

    with xyro.open(tmp_path / "d") as crawl:
        unused = getattr(crawl, table)()
        assert is_free(), "none was asked for"
        begun = getattr(crawl, table)()
        assert next(begun)
        del begun
        assert is_free(), "it was dropped halfway"
        begun = getattr(crawl, table)()
        assert next(begun)
    assert is_free() and [*begun, *unused] == [], "the directory was left"


async def test_who_leaves_the_loop_ends_the_crawl_in_order_and_another_goes_on(site, tmp_path):
    pages = xyro.crawl(site.entry, data=tmp_path / "d", changes__record=True, **LOCAL)
    async for _ in pages:
        break
    await pages.aclose()
    assert json.loads(command("audit", "--json", "--data", tmp_path / "d").stdout)["ok"], "nobody works there any more"
    first = {line["url"] for line in xyro.open(tmp_path / "d").changes()}
    rest = [page.url async for page in xyro.crawl(data=tmp_path / "d", changes__record=True, **LOCAL) if not page.error]
    assert first and first.isdisjoint(rest) and first | set(rest) == site.expected().keys(), "each is read once"
    with xyro.open(tmp_path / "d") as crawl:
        assert first <= {row["url"] for row in crawl.pages() if row["state"] == "read"}, "yielded or not"
    assert {line["url"] for line in xyro.open(tmp_path / "d").changes(where="change = 'new'")} == first | set(rest)


@pytest.mark.long
def test_changes_go_on_behind_a_cursor_each_once_and_in_order(tmp_path):
    """Taken a few at a time, each time by another opened crawl: while a process works there, killed in between, then
    from the directory alone."""
    data, taken = tmp_path / "d", []

    def take(count):
        with xyro.open(data) as crawl:
            lines = crawl.changes(taken[-1]["cursor"] if taken else "")
            taken.extend(islice(lines, count))

    (settings := tmp_path / "s.toml").write_text("[changes]\nrecord = true\n")
    options = (*LOOPBACK, "--refresh", "--partitions", "2", "--config", settings)
    with ChangingSite(5, 2, 3).serving() as site:
        for reads in (20, 10_000):
            with started("crawl", site.entry, *options, data=data, stderr=None):
                until(lambda enough=site.reads + reads: take(3) or site.reads > enough or site.complete)
        assert len(taken) >= 6, "some came from a process that went on"
        expected = site.expected()
    whole = sum(map(len, expected.values()))
    until(lambda: take(7) or len(taken) >= whole)
    take(100)
    pages, partitions = {}, {}
    for line in taken:
        pages.setdefault(line["url"], []).append((line["change"], line["signature_old"], line["signature"]))
        partitions.setdefault(line["partition"], []).append((line["epoch"], line["number"]))
    assert pages == expected and set(partitions) == {partition_of(host_of(url), 2) for url in expected}
    for places in partitions.values():
        assert places == sorted(set(places)) and len({epoch for epoch, _ in places}) == 1
        assert [number for _, number in places] == [*range(places[0][1], places[0][1] + len(places))]
    with xyro.open(data) as crawl:
        assert [line["cursor"] for line in crawl.changes()] != [] and [*crawl.changes(taken[-1]["cursor"])] == []
        assert len([*crawl.changes()]) == whole == len([*crawl.changes("2026-01-01")])
        assert [*crawl.changes("2099-01-01")] == []
        changed = [line["url"] for line in crawl.changes(where="change = 'changed'")]
        assert len(changed) == whole - len(expected)
        with pytest.raises(InputError, match="no cursor"):
            next(iter(crawl.changes("no cursor")))


async def test_a_loop_that_is_left_without_a_word_holds_up_the_next_crawl_no_longer_than_it_ends(site, tmp_path):
    for _ in range(3):
        async for _ in xyro.crawl(site.entry, data=tmp_path / "d", partitions=2, warc=True, **LOCAL):
            break
    rest = [page.url async for page in xyro.crawl(data=tmp_path / "d", **LOCAL)]
    with xyro.open(tmp_path / "d") as crawl:
        assert rest and {row["url"] for row in crawl.pages() if row["state"] == "read"} >= site.expected().keys()


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("opens", ["with", "async with", "bare"])
async def test_the_line_below_a_loop_that_was_left_opens_the_directory(site, tmp_path, named, opens):
    pages = xyro.crawl(site.entry, data=tmp_path / "d", **{**LOCAL, "delay": 0.05}) if named else None
    async for _ in pages or xyro.crawl(site.entry, data=tmp_path / "d", **{**LOCAL, "delay": 0.05}):
        break
    if opens == "bare":
        status = xyro.open(tmp_path / "d").status()
    elif opens == "with":
        with xyro.open(tmp_path / "d") as crawl:
            status = crawl.status()
    else:
        async with xyro.open(tmp_path / "d") as crawl:
            status = crawl.status()
    assert status["reads"] >= 1 and not status["running"]
    assert json.loads(command("audit", "--json", "--data", tmp_path / "d").stdout)["ok"]


async def test_a_loop_that_is_cancelled_has_ended_its_crawl(site, tmp_path):
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.0):
            async for _ in xyro.crawl(site.entry, data=tmp_path / "d", **{**LOCAL, "delay": 0.1}):
                pass
    assert {thread.name for thread in threading.enumerate()}.isdisjoint({"xyro.crawl"})
    assert json.loads(command("audit", "--json", "--data", tmp_path / "d").stdout)["ok"]


async def test_a_crawl_is_asked_while_its_loop_goes_on(site, tmp_path):
    """From inside the loop, by the command, and by a second loop, which is refused."""
    seen = []
    pages = xyro.crawl(site.entry, data=tmp_path / "d", **{**LOCAL, "delay": 0.2})
    async for page in pages:
        with xyro.open(tmp_path / "d") as crawl:
            seen.append(crawl.status()["running"])
            assert crawl.why(page.url)["because"] and list(crawl.pages())
            assert crawl.submit(f"{site.entry}?asked")["accepted"] == 1
        told = await asyncio.to_thread(command, "status", "--json", "--data", tmp_path / "d")
        assert json.loads(told.stdout)["running"]
        with pytest.raises(xyro.InputError, match="another loop of this program crawls there"):
            await anext(aiter(pages))
        break
    assert seen == [True]


def test_a_crawl_that_is_left_as_a_program_ends_has_ended_in_order(site, tmp_path):
    """The last line of a coroutine leaves one loop; of two others the pages are held to the end."""
    program = f"""
import asyncio, xyro
OPTIONS = {{**{LOCAL!r}, "delay": 0.05, "warc": True}}
async def main():
    async for _ in xyro.crawl("{site.entry}", data="a", **OPTIONS):
        break
asyncio.run(main())
held = iter(xyro.crawl("{site.entry}", data="b", **OPTIONS))
next(held)
pages = aiter(xyro.crawl("{site.entry}", data="c", **OPTIONS))
asyncio.run(asyncio.wait_for(anext(pages), 30))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    for name in "abc":
        assert not list((tmp_path / name / "contents").glob("*.part")), "stopped in order: its files are closed"
        assert json.loads(command("audit", "--json", "--data", tmp_path / name).stdout)["ok"]


async def test_each_loop_over_the_same_pages_resumes_the_crawl(site, tmp_path):
    pages = xyro.crawl(site.entry, data=tmp_path / "d", max_pages=10, **LOCAL)
    first, second = [page.url async for page in pages], [page.url async for page in pages]
    assert len(first) == len(second) == 10 and set(first).isdisjoint(second)


def test_what_is_left_for_sinks_is_delivered_before_a_crawl_ends(site, tmp_path):
    (tmp_path / "s.toml").write_text(f'[[sinks]]\nname = "f"\npath = "{tmp_path}/out"\nwait = 3.0\n')
    good = list(xyro.crawl(site.entry, data=tmp_path / "d", config=tmp_path / "s.toml", **LOCAL))
    lines = [line for file in (tmp_path / "out").iterdir() for line in file.read_text().splitlines()]
    assert len(lines) == sum(not page.error for page in good) > 20


def test_a_script_without_an_event_loop_gets_the_same_pages(site, tmp_path):
    pages = list(xyro.crawl(site.entry, data=tmp_path / "d", **LOCAL))
    assert {page.url for page in pages if not page.error} == site.expected().keys()
    assert {thread.name for thread in threading.enumerate()}.isdisjoint({"xyro.crawl"})


def test_a_script_that_leaves_the_loop_ends_the_crawl_in_order_in_any_thread(site, tmp_path):
    def first(data):
        for page in xyro.crawl(site.entry, data=data, **LOCAL):
            return page.url
        return None

    with ThreadPoolExecutor(1) as other:
        assert first(tmp_path / "d") == other.submit(first, tmp_path / "e").result(60) == site.entry
    for name in ("d", "e"):
        assert json.loads(command("audit", "--json", "--data", tmp_path / name).stdout)["ok"]
    rest = [page.url for page in xyro.crawl(data=tmp_path / "d", **LOCAL) if not page.error]
    assert rest and {site.entry, *rest} <= site.expected().keys()


def test_a_script_gets_the_error_of_its_crawl_and_of_its_own_work(site, tmp_path):
    with pytest.raises(xyro.InputError, match="nonsense"):
        next(iter(xyro.crawl("nonsense", data=tmp_path / "d", **LOCAL)))
    with pytest.raises(ZeroDivisionError):
        for page in xyro.crawl(site.entry, data=tmp_path / "d", **LOCAL):
            print(page.status / 0)
    assert json.loads(command("audit", "--json", "--data", tmp_path / "d").stdout)["ok"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"max_page": 3}, "max_page: no such option; did you mean max_pages?"),
        ({"nonsense": 3}, "nonsense: no such option; a setting is written section__key"),
        ({"only_net": "127.0.0"}, "only_net: expected a list of networks, such as 10.0.0.0/8, got ['127.0.0']"),
        ({"max_pages": -1}, "max_pages: expected "),
        ({"scope": "all"}, "scope: expected "),
        ({"header": "x"}, "header: expected "),
        ({"fetch__signatur": "text"}, "did you mean signature?"),
        ({"fetch__signature": 7}, "fetch__signature: expected "),
    ],
)
def test_a_wrong_argument_is_named_at_the_call(tmp_path, arguments, said):
    """Not in the loop, nor as an option of the command."""
    with pytest.raises(xyro.InputError) as refused:
        xyro.crawl("http://127.0.0.1:9/", data=tmp_path / "d", **{"only_net": "127.0.0.0/8", **arguments})
    assert str(refused.value).startswith("xyro.crawl: ") and said in str(refused.value)
    assert "command line" not in str(refused.value)
    assert refused.value.__context__ is None or refused.value.__suppress_context__, "one traceback, and a short one"
    assert len(refused.traceback) <= 3 and not (tmp_path / "d").exists()


def test_titles_come_with_the_text(site, tmp_path):
    options = {**LOCAL, "max_pages": 2}
    plain = [page for page in xyro.crawl(site.entry, data=tmp_path / "d", **options) if page.kind == "HTML"]
    told = [page for page in xyro.crawl(site.entry, data=tmp_path / "e", text=True, **options) if page.kind == "HTML"]
    assert plain and {page.title for page in plain} == {None} and all(isinstance(page.title, str) for page in told)


async def test_inside_an_event_loop_for_is_refused_and_names_the_other(site, tmp_path):
    with pytest.raises(xyro.InputError, match="`async for page in xyro"):
        for _ in xyro.crawl(site.entry, data=tmp_path / "d", **LOCAL):
            pass
    assert not (tmp_path / "d").exists()


def test_ctrl_c_ends_a_script_s_crawl_in_order(tmp_path):
    with ChangingSite(1, 5, 1).serving() as site:
        program = f"""
import os, signal, threading, xyro
for count, page in enumerate(xyro.crawl("{site.entry}", data="d", refresh=True, **{LOCAL!r})):
    if count == 4:
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
"""
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=60
        )
    assert done.stderr.rstrip().endswith("KeyboardInterrupt") and site.reads >= 5
    assert json.loads(command("audit", "--json", "--data", tmp_path / "d").stdout)["ok"]


async def test_a_slow_program_slows_the_crawl_down(tmp_path, monkeypatch):
    monkeypatch.setattr("xyro.library.page_feed.UNTAKEN", 4)
    with ChangingSite(1, 60, 1).serving() as site:
        count = 0
        async for _ in xyro.crawl(site.entry, data=tmp_path / "d", **LOCAL):
            count += 1
            if count == 5:
                await asyncio.sleep(1.5)
                assert site.reads <= 5 + 4 + 20, "read though nobody takes it: at most what one commit group brings"
        assert count == site.reads


async def test_max_pages_is_kept(site, tmp_path):
    found = [page async for page in xyro.crawl(site.entry, data=tmp_path / "d", max_pages=7, **LOCAL)]
    assert len(found) == 7


async def test_bad_input_is_refused_and_changes_nothing(tmp_path):
    for seeds, options, wrong in (
        (["http://a.example/"], {}, "contact"),
        (["nonsense"], LOCAL, "nonsense"),
        ([], LOCAL, "nothing to resume there"),
        (["http://127.0.0.1/"], {**LOCAL, "fetch__nothing": 1}, "nothing"),
    ):
        with pytest.raises(xyro.InputError, match=wrong):
            async for _ in xyro.crawl(*seeds, data=tmp_path / "d", **options):
                pass
        assert not (tmp_path / "d").exists()
    with pytest.raises(xyro.InputError):
        xyro.open(tmp_path / "d")


def test_a_directory_that_a_process_works_on_is_asked(site, tmp_path):
    with started("serve", "--only-net", "127.0.0.0/8", "--delay", "0", "--scope", "any", data=tmp_path / "d"):
        crawl = xyro.open(tmp_path / "d")
        assert crawl.submit(site.entry)["accepted"] == 1
        until(lambda: sum(row["state"] == "read" for row in crawl.pages()) >= 20)
        assert crawl.status()["running"] and crawl.why(site.entry)["because"]


@pytest.mark.long
@pytest.mark.parametrize("runs", [False, True])
def test_links_come_as_rows_and_as_arrays(site, tmp_path, runs):
    """The same links in each form, as the site has them: each page of a host links to all others of it."""
    options = ("--only-net", "127.0.0.0/8", "--delay", "0", "--scope", "any")
    with started("serve", site.entry, *options, data=tmp_path / "d"):
        crawl = xyro.open(tmp_path / "d")
        until(lambda: sum(row["state"] == "read" for row in crawl.pages()) >= len(site.expected()))
        if runs:
            _check_links(crawl)
    if not runs:
        _check_links(crawl)


def timeless(rows):
    """Rows without `stale`, which is another one at each moment."""
    return [{name: value for name, value in row.items() if name != "stale"} for row in rows]


def _check_links(crawl):
    rows = list(crawl.links())
    assert len(rows) > 60 and {row["source"] for row in rows} <= {row["id"] for row in crawl.pages()}
    pairs, table = crawl.links("numpy"), crawl.links("arrow")
    assert pairs.dtype == np.int64 and pairs.tolist() == [[row["source"], row["target"]] for row in rows]
    assert timeless(table.to_pylist()) == timeless(rows)
    assert all(0.0 <= row["stale"] < 1.0 for row in table.to_pylist())
    with pytest.raises(InputError, match="numpy"):
        crawl.links("pandas")


def readme_lines(site):
    """The README's ten lines, of this site."""
    (lines,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len([line for line in lines.splitlines() if line]) <= 10 and "http://127.1.0.1:8480/" in lines
    return lines.replace("http://127.1.0.1:8480/", site.entry)


def test_the_readme_s_lines_run_as_they_stand(site, tmp_path):
    program = readme_lines(site)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    assert len(told) == 16 + 5 and sum(line.startswith("200 ") for line in told) == 16
    assert (tmp_path / "tour").stat().st_mode & 0o077 == 0, "closed to others"


@pytest.mark.long
def test_the_readme_s_lines_run_in_a_notebook(site, tmp_path, monkeypatch):
    """In a kernel of Jupyter, whose event loop runs before the first cell does; then a second cell asks once more."""
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("XYRO_LOG__LEVEL", "warning")
    last = re.compile(r"^asyncio\.run\(main\(\)\)  # in a notebook: (.*)$", re.MULTILINE)
    lines, count = last.subn(r"\1", readme_lines(site))
    assert count == 1, "the last line says how it reads in a notebook"
    again = 'xyro.open("tour").status()["reads"]'
    cells = [nbformat.v4.new_code_cell(source) for source in (lines, again)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    told = "".join(out.text for out in notebook.cells[0].outputs if out.get("name") == "stdout").splitlines()
    assert len(told) == 16 + 5 and sum(line.startswith("200 ") for line in told) == 16
    (answer,) = (out.data["text/plain"] for out in notebook.cells[1].outputs)
    assert int(answer) == 16


async def test_options_are_named_as_the_command_s_and_take_one_or_several(site, tmp_path):
    seeds, local = [site.entry], {**LOCAL, "only_net": "127.0.0.0/8"}
    options = {"header": "X-Who: me", "include": [site.entry, f"{site.entry}*"], "warc": True, "partitions": 2}
    found = [page async for page in xyro.crawl(seeds, data=tmp_path / "d", max_pages=3, **options, **local)]
    assert len(found) == 3 and list((tmp_path / "d" / "contents").glob("*.warc.gz*"))
    with pytest.raises(xyro.InputError, match="max_page: no such option"):
        xyro.crawl(site.entry, max_page=3)
    with pytest.raises(xyro.InputError, match="delay"):
        xyro.crawl(site.entry, data=tmp_path / "e", delay="soon")


async def test_a_crawl_that_gives_nothing_says_why(tmp_path):
    with pytest.raises(xyro.InputError, match=r"http://10\.0\.0\.1/: not read: only-net"):
        async for _ in xyro.crawl("http://10.0.0.1/", data=tmp_path / "d", **LOCAL):
            pass
    assert not (tmp_path / "d").exists()
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/"
        with pytest.raises(xyro.TheirError, match="no seed gave a page"):
            async for _ in xyro.crawl(url, data=tmp_path / "e", max_seconds=3, **LOCAL):
                pass
