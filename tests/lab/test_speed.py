"""The benchmarks' tools: they must see what is really used, and where."""

import asyncio
import mmap
import re
import threading
import time
from collections import Counter
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import pytest

from xyro.lab.speed import speed_lab
from xyro.lab.speed.measures import (
    Lag,
    Sampler,
    cpu_seconds,
    lag_meter,
    memory,
    module_of,
    percentile,
    shares,
    slope,
    spread,
    thread_seconds,
)
from xyro.lab.speed.text_cost import cost
from xyro.lab.speed.text_sets import SETS, TextSet
from xyro.lab.speed.text_speed import bare, marked_pages, marked_sets, overlap, pages_by_marks
from xyro.wire.clock import SystemClock
from xyro.wire.errors import InputError


def burn(seconds):
    """Use CPU in this thread."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(accumulate(range(500)))


def test_memory_sees_what_is_touched():
    before = memory()
    block = mmap.mmap(
        -1, 64 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    )  # a bytearray may come from what this process freed
    block.write(b"x" * (64 << 20))
    after = memory()
    assert after.rss - before.rss >= 60 << 20
    assert after.anon - before.anon >= 60 << 20
    assert after.peak >= after.rss
    block.close()
    assert memory().peak >= after.peak - (1 << 20)  # the kernel adds its counters up now and then


def test_slope_of_a_line_with_one_outlier_in_its_middle():
    line = [(x, 7.0 * x + 100.0) for x in range(11)]
    assert slope(line) == pytest.approx(7.0)
    line[5] = (5, 1e6)
    assert slope(line) == pytest.approx(7.0)


def test_cpu_seconds_counts_all_threads_and_thread_seconds_tells_them_apart():
    done, go_on = threading.Event(), threading.Event()

    def work():
        burn(0.2)
        done.set()
        go_on.wait()

    before = cpu_seconds()
    thread = threading.Thread(target=work, name="worker-7")
    thread.start()
    done.wait()
    spent = thread_seconds()
    go_on.set()
    thread.join()
    assert cpu_seconds() - before >= 0.2
    assert spent["worker-7"] >= 0.19
    assert "MainThread" in spent
    assert "worker-7" not in thread_seconds()


@pytest.mark.parametrize(("share", "value"), [(0.0, 1), (0.5, 51), (0.99, 100), (1.0, 100)])
def test_percentile(share, value):
    assert percentile(list(range(100, 0, -1)), share) == value


def test_spread_tells_median_and_range_of_several_and_one_value_alone():
    assert spread([3.0, 1000.0, 2000.0]) == "1,000 (3 .. 2,000)"
    assert spread([0.12345], 3) == "0.123"


def test_shares_add_up_and_begin_with_the_largest():
    assert list(shares({"a": 1, "b": 3})) == [("b", 0.75), ("a", 0.25)]
    assert list(shares({})) == []


async def test_the_lag_meter_sees_a_loop_that_stands_still_and_stops_with_its_block():
    with lag_meter(SystemClock()) as lag:
        await asyncio.sleep(0.03)
        time.sleep(0.2)  # noqa: ASYNC251  # that is the point
        await asyncio.sleep(0.03)
    seen = len(lag.late)
    assert max(lag.late) >= 0.15
    await asyncio.sleep(0.05)
    assert len(lag.late) == seen


def test_a_lag_is_told_in_milliseconds():
    assert Lag([0.001] * 99 + [0.5]).sentence() == "median 1.0 ms, p99 500.0 ms, max 500.0 ms (100 looks)"


def test_the_sampler_counts_cpu_where_it_is_used():
    def part(frame):
        return next((name for name in iter_names(frame) if name in ("hot", "cold")), "rest")

    def hot():
        burn(0.3)

    def cold():
        time.sleep(0.3)

    with Sampler(part) as sampler:
        hot()
        cold()
    assert sampler.count["hot"] >= 10
    assert sampler.count["hot"] > 5 * sampler.count["cold"]
    seen = Counter(sampler.count)
    burn(0.02)
    assert sampler.count == seen


def iter_names(frame):
    while frame is not None:
        assert module_of(frame)
        yield frame.f_code.co_name
        frame = frame.f_back


def test_text_is_held_against_what_people_marked(tmp_path, capsys):
    page = tmp_path / "one"
    page.mkdir()
    story = "A sentence that somebody wrote for its readers, with commas, and an end. " * 12
    (page / "source.html").write_text(f"<nav><a href=/>Home</a></nav><div><p>{story}</p></div><footer>Imprint</footer>")
    (page / "expected.html").write_text(f"<div><p>{story}</p></div>")
    assert speed_lab.main(["text", str(tmp_path)]) == 0
    row = next(line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("xyro "))
    assert row[1:6] == ["1.000", "1.000", "1.000", "1.000", "0"]
    assert speed_lab.main(["text", str(page)]) == 2


def test_overlap_counts_letters_where_words_have_no_spaces():
    assert overlap("日本の page", "日本 page") == (2 * 3 / 7, 3 / 4, 1.0)


def test_markdown_of_a_marked_page_is_compared_without_addresses() -> None:
    assert bare("---\ntitle: x\n---\n# A [b](https://c/d) ![e](f) [[1]](#g)") == "# A b  [1]"


def test_pages_are_found_beside_their_marks(tmp_path: Path) -> None:
    (tmp_path / "html").mkdir()
    (tmp_path / "raw").mkdir()
    (tmp_path / "html" / "x.html").write_text("<div>menu</div><article>body</article>")
    (tmp_path / "raw" / "x.md").write_text("[body](y)")
    marks = tmp_path / "marks.txt"
    marks.write_text("# why\nhtml/x article\n")
    assert [page.truth for page in marked_pages(tmp_path)] == ["body"]
    assert [page.truth for page in pages_by_marks(tmp_path, marks)] == ["body"]


def made(folder: Path, each: TextSet) -> None:
    """A package as its registry gives it, of one page of each name that the set is split by."""
    (pages := folder / f"{each.package}-{each.version}" / each.place / "html").mkdir(parents=True)
    (pages.parent / "raw").mkdir()
    for name in "abcdefgh":
        (pages / f"{name}.html").write_text(f"<article><p>{name} has some words</article>")
        (pages.parent / "raw" / f"{name}.md").write_text(f"{name} has some words")


def test_each_set_has_its_table_and_one_that_cannot_be_had_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # no cargo is there
    held, tuned = (replace(SETS[1], label=part, part=part) for part in ("held", "tune"))
    made(tmp_path, held)
    marked_sets(tmp_path, 0, [held, tuned, SETS[3]])
    said = capsys.readouterr().out
    counts = [int(count) for count in re.findall(r": (\d+) pages", said)]
    assert len(counts) == 2 and sum(counts) == 8 and min(counts) > 0, "the halves are the whole"
    assert said.count("xyro           1.000") == 2 and said.count("\ntrafilatura") == 2
    assert said.endswith("not to be had: readabilityrs: cargo is not installed\n")


def test_what_a_text_costs_is_told_beside_other_libraries(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(tmp_path, SETS[1])
    (tmp_path / "empty.html").write_text("")
    cost([tmp_path], pages=4, rounds=2)
    head, _, ours, *others = capsys.readouterr().out.splitlines()
    assert head.startswith("4 pages, 0.0 kB a page") and ours.startswith("xyro, text and Markdown")
    assert others[0].split()[-1] == "1.00" and float(ours.split()[-1]) > 0.0
    with pytest.raises(InputError, match="no page of HTML"):
        cost([tmp_path / "nothing"], pages=4, rounds=1)
