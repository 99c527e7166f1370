"""The process of plug-ins: what is asked of it beside what it does to the loop that asks, and when it ends."""

import asyncio
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from xyro.answer import Answer
from xyro.page_copy import PageCopy
from xyro.page_plug_ins import PagePlugIns
from xyro.wire.messages import Kind

ROOT = Path(__file__).resolve().parents[2]
URL = "http://h.example/"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder on the path of this process alone, with an installed package that writes the id of its process there."""
    (tmp_path / "odd.py").write_text(
        textwrap.dedent(f"""
            import itertools, os, subprocess, time

            def value(page):
                with open({str(tmp_path / "pid")!r}, "w") as out:
                    out.write(f"{{os.getpid()}}\\n")
                if "hang" in page.url:
                    sum(itertools.count())
                if "starts" in page.url:
                    started = subprocess.Popen(["sleep", "60"])
                    with open({str(tmp_path / "started")!r}, "w") as out:
                        out.write(str(started.pid))
                    started.wait()
                if "sleep" in page.url:
                    time.sleep(0.5)
                if "large" in page.url:
                    bytearray(4 << 30)
                return len(page.text) / 100
        """)
    )
    info = tmp_path / "odd-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[xyro.values]\nodd = odd:value\n")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def pid_in(place):
    """The id of the plug-ins' process, once it was asked."""
    while not (file := place / "pid").exists() or not file.read_text().endswith("\n"):
        time.sleep(0.01)
    return int(file.read_text())


def is_alive(pid):
    """Tell whether there is such a process, other than one that has ended and is not waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for_end(pid):
    """An error after five seconds."""
    end = time.monotonic() + 5
    while is_alive(pid):
        assert time.monotonic() < end
        time.sleep(0.01)


async def answer_of(plug_ins, url=URL, text="x" * 50):
    answer = Answer(0.0, kind=Kind.HTML, mime="text/html")
    await plug_ins.look_at(url, PageCopy(body=f"<p>{text}</p>".encode(), charset="utf-8"), answer)
    return answer


async def test_the_loop_goes_on_while_a_plug_in_hangs_and_the_next_page_has_its_value(place):
    plug_ins, turns = PagePlugIns("odd", {}), []

    async def tick():
        while True:
            turns.append(time.monotonic())
            await asyncio.sleep(0.01)

    ticking = asyncio.create_task(tick())
    answers = await asyncio.gather(*(answer_of(plug_ins, f"{URL}{path}") for path in ("", "hang", "fine")))
    ticking.cancel()
    plug_ins.close()
    assert [answer.value for answer in answers] == [0.5, 1.0, 0.5]
    assert [answer.plug_in_faults for answer in answers if answer.plug_in_faults] == [
        ("no value by plug-in odd: not done after 1 s",)
    ]
    assert max(later - turn for turn, later in itertools.pairwise(turns)) < 0.5


async def test_a_page_that_is_given_up_costs_the_next_one_nothing(place):
    plug_ins = PagePlugIns("odd", {})
    await answer_of(plug_ins)
    first = pid_in(place)
    waiting = asyncio.create_task(answer_of(plug_ins, f"{URL}sleep"))
    await asyncio.sleep(0.1)
    waiting.cancel()
    found = await answer_of(plug_ins, text="x" * 20)
    assert (found.value, found.plug_in_faults) == (0.2, ())
    assert pid_in(place) != first and not is_alive(first)
    plug_ins.close()


async def test_a_process_that_ended_between_two_pages_is_started_again(place):
    plug_ins = PagePlugIns("odd", {})
    await answer_of(plug_ins)
    os.kill(pid_in(place), signal.SIGKILL)
    await asyncio.sleep(0.2)
    found = await answer_of(plug_ins)
    assert (found.value, found.plug_in_faults) == (0.5, ())
    plug_ins.close()


async def test_what_a_plug_in_started_ends_with_it(place):
    plug_ins = PagePlugIns("odd", {})
    assert (await answer_of(plug_ins, f"{URL}starts")).plug_in_faults
    wait_for_end(int((place / "started").read_text()))
    plug_ins.close()


async def test_its_memory_is_bounded(place):
    plug_ins = PagePlugIns("odd", {})
    assert (await answer_of(plug_ins, f"{URL}large")).plug_in_faults == ("no value by plug-in odd: MemoryError()",)
    assert (await answer_of(plug_ins)).value == 0.5
    plug_ins.close()


async def test_one_that_cannot_be_imported_any_more_costs_the_field(place):
    (place / "odd.py").write_text("import nothing_of_this_name\n")
    plug_ins = PagePlugIns("odd", {})
    for _ in range(2):
        (fault,) = (await answer_of(plug_ins)).plug_in_faults
        assert "no value by plug-in odd: 'odd': odd:value of xyro.values cannot be imported" in fault
    plug_ins.close()


async def test_none_is_started_before_a_page_needs_it_and_none_is_left(place):
    plug_ins = PagePlugIns("odd", {})
    await asyncio.sleep(0.1)
    assert not (place / "pid").exists()
    await answer_of(plug_ins)
    pid = pid_in(place)
    assert is_alive(pid)
    plug_ins.close()
    assert not is_alive(pid)


@pytest.mark.long
@pytest.mark.parametrize("path", ["", "sleep", "hang"])
def test_it_ends_with_a_parent_that_is_killed(place, path):
    script = f"""
        import asyncio
        from tests.xyro.test_plug_in_process import answer_of
        from xyro.page_plug_ins import PagePlugIns

        async def main():
            await answer_of(PagePlugIns("odd", {{}}), "http://h.example/{path}")
            await asyncio.sleep(60)

        asyncio.run(main())
    """
    words = [sys.executable, "-c", textwrap.dedent(script)]
    environment = {**os.environ, "PYTHONPATH": f"{place}:{ROOT}"}
    with subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True) as parent:
        pid = pid_in(place)
        parent.kill()
        wait_for_end(pid)
        assert parent.stderr.read() == ""
