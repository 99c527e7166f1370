"""The disk of the contents has no room, or goes: a small file system of its own, real processes, real errors."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plugins.test_page_contents import page, serving
from tests.plugins.test_warc import HTML, answered, assert_sound
from tests.service.face import LOOPBACK, process, said, started, until, xyro
from xyro.contents_index import open_index, totals
from xyro.lab.child import running
from xyro.warc_files import HttpAnswer, WarcFiles
from xyro.warc_mending import mend

FULL = "No space left on device"


@contextlib.contextmanager
def small_disk(place: Path, size: str) -> Iterator[Path]:
    """A file system of its own, so large."""
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    if os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a file system needs root")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.fixture
def disk(tmp_path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", "512k") as place:
        yield place


def fill(disk: Path) -> Path:
    """Take all the room that is left."""
    with (disk / "fill").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    return disk / "fill"


@pytest.mark.long
def test_a_crawl_whose_contents_have_no_room_ends_as_ever_and_says_so(tmp_path, disk):
    data = tmp_path / "data"
    keep = {"XYRO_KEEP__DIRECTORY": str(disk)}
    with running(pages=300, hosts=4, seed=3, rate_median=0.0) as web:
        done = process("crawl", web.entry, *LOOPBACK, "--data", data, "--warc", "--text", **keep)
        assert done.returncode == 1, done.stderr
        assert " pages read, 300 known" in done.stdout, "the closing report"
        assert f"could not be stored ([keep]): {disk}: {FULL}; free or mend the disk" in done.stdout
        assert f"contents: not stored: {disk}: {FULL}" in done.stderr and "Traceback" not in done.stderr
        assert xyro("audit", "--data", data).returncode == 0
        told = said("status", "--data", data)
        with contextlib.closing(open_index(disk)) as index:
            records = totals(index)["records"]
        assert 0 < records < told["reads"], "what is there can be looked at"
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        bounds = ("--refresh", "--max-pages", "100", "--json")
        assert said("crawl", *LOOPBACK, "--data", data, *bounds, **keep)["unstored"] == {}
    found = sorted(disk.glob("*.warc.gz"))
    assert_sound(found)
    assert not list(disk.glob("*.part"))
    with contextlib.closing(open_index(disk)) as index:
        assert records + 100 == totals(index)["records"] <= answered(found).total()


@pytest.mark.long
def test_a_crawl_begins_while_the_disk_is_full_and_goes_on_with_room(tmp_path, disk):
    data, keep = tmp_path / "data", {"XYRO_KEEP__DIRECTORY": str(disk)}
    room = fill(disk)
    with running(pages=60, hosts=4, seed=3, rate_median=0.0) as web:
        crawl = ("crawl", web.entry, *LOOPBACK, "--data", data, "--text", "--warc")
        done = process(*crawl, "--max-pages", "30", **keep)
        assert done.returncode == 1 and "30 pages read" in done.stdout, done.stderr
        looks = [xyro(*look, "--data", data) for look in (("status",), ("export", "texts"), ("page", "get", web.entry))]
        assert [look.returncode for look in looks] == [0, 2, 2] and "no page's contents are kept" in looks[1].stderr
        room.unlink()
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        done = process(*crawl, "--max-pages", "20", **keep)
        assert done.returncode == 0 and "could not be stored" not in done.stdout
        assert said("status", "--data", data)["contents"]["records"] == 20
        fill(disk)
        assert said("status", "--data", data)["contents"]["records"] == 20, "a look needs no room"


@pytest.mark.long
def test_a_crawl_that_waits_for_room_is_told_by_status(tmp_path, disk):
    """No read says that the disk is full, for none ends."""
    data = tmp_path / "data"
    room = fill(disk)
    settings = tmp_path / "wait.toml"
    settings.write_text(f'[keep]\nwarc = true\nfull = "wait"\ndirectory = "{disk}"\n')
    with (
        running(pages=60, hosts=4, seed=3, rate_median=0.0) as web,
        started("serve", web.entry, *LOOPBACK, "--config", settings, data=data),
    ):
        until(lambda: FULL in said("status", "--data", data)["contents"]["paused"])
        shown = xyro("status", "--data", data).stdout
        assert f"! Contents are not stored now ([keep]): {disk}: {FULL}" in " ".join(shown.split())
        assert said("status", "--data", data)["reads"] == 0
        room.unlink()
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        until(lambda: (status := said("status", "--data", data))["contents"]["paused"] == "" and status["reads"] > 10)


def serve_within(limit: int, entry: str, data: Path, keep: dict[str, str]) -> None:
    """Serve with [keep] bytes of so many until something was dropped and contents are stored again."""
    log, bound = data.with_name("log"), {**keep, "XYRO_KEEP__BYTES": str(limit)}
    with log.open("w") as errors, started("serve", entry, *LOOPBACK, data=data, environment=bound, stderr=errors):
        until(lambda: "of what matters least dropped" in log.read_text(), 60.0)
        until(lambda: said("status", "--data", data)["contents"]["paused"] == "", 60.0)


@pytest.mark.long
def test_a_bound_below_what_fills_the_disk_gives_it_room(tmp_path, disk):
    """The index has no room to say what matters least; nor has it to forget what goes."""
    subprocess.run(["mount", "-o", "remount,size=16m", str(disk)], check=True)
    data, keep = tmp_path / "data", {"XYRO_KEEP__DIRECTORY": str(disk), "XYRO_KEEP__FILE_BYTES": "64 KiB"}
    with running(pages=900, hosts=4, seed=3, rate_median=0.0) as web:
        done = process("crawl", web.entry, *LOOPBACK, "--data", data, "--warc", **keep)
        assert done.returncode == 0, done.stderr
        before = kept(disk)
        fill(disk)
        serve_within(before // 2, web.entry, data, keep)
    assert kept(disk) <= before // 2
    with contextlib.closing(open_index(disk)) as index:
        names = {name for (name,) in index.execute("SELECT DISTINCT file FROM records")}
    assert names and all((disk / name).exists() for name in names), "the index names nothing that is gone"
    assert_sound(sorted(disk.glob("*.warc.gz")))


@pytest.mark.long
def test_a_bound_below_what_fills_the_disk_gives_it_room_where_only_texts_are_kept(tmp_path, disk):
    """No file can go: what is dropped is in the index, which writes that down first."""
    subprocess.run(["mount", "-o", "remount,size=32m", str(disk)], check=True)
    data, keep = tmp_path / "data", {"XYRO_KEEP__DIRECTORY": str(disk)}
    links = "".join(f'<a href="/{number}">x</a>' for number in range(120))
    pages = {f"/{number}": page(str(number), os.urandom(60_000).hex(" ", 4)) for number in range(120)}
    with serving({"/": links, **pages}) as site:
        done = process("crawl", site.url, *LOOPBACK, "--data", data, "--text", **keep)
        assert done.returncode == 0, done.stderr
        before = kept(disk)
        fill(disk)
        serve_within(before // 2, site.url, data, keep)
    assert before > 6_000_000 and before // 4 < kept(disk) <= before // 2
    with contextlib.closing(open_index(disk)) as index:
        assert 0 < totals(index)["texts"] < 120 and index.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert xyro("audit", "--data", data).returncode == 0


def kept(disk: Path) -> int:
    """Bytes of contents on the disk."""
    beside = ("fill", "index.sqlite-shm", "index.sqlite-room")
    return sum(path.stat().st_size for path in disk.iterdir() if path.name not in beside)


@pytest.mark.long
def test_a_change_that_had_no_room_is_read_whole_again(tmp_path, disk):
    """With its validators the page would answer 304, which said that the text before the change is its last."""
    data, settings = tmp_path / "data", tmp_path / "keep.toml"
    settings.write_text(f'[keep]\nwarc = true\ndirectory = "{disk}"\n')
    with serving({"/": page("T", "It is old.")}) as site:
        site.tags = True
        with started("crawl", site.url + "/", "--refresh", *LOOPBACK, "--config", settings, data=data):
            until(lambda: ("/", 304) in site.statuses)
            room = fill(disk)
            before = len(site.statuses)
            site.pages["/"] = page("T", f"It is new. {os.urandom(20_000).hex()}")
            until(lambda: ("/", 200) in site.statuses[before:])
            until(lambda: FULL in said("status", "--data", data)["contents"]["paused"])
            room.unlink()
            subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
            until(lambda: "It is new." in process("page", "get", site.url + "/", "--as", "html", "--data", data).stdout)


def test_files_begin_anew_where_their_directory_was_removed(tmp_path):
    place = tmp_path / "contents"
    place.mkdir()
    archive = WarcFiles(place, "crawl", "node", 1 << 30)
    answers = [HttpAnswer(f"http://a.test/{n}", 1e9, b"GET / HTTP/1.1\r\n\r\n", HTML, 200) for n in range(3)]
    archive.write(answers[0])
    shutil.rmtree(place)
    with pytest.raises(FileNotFoundError):
        archive.write(answers[1])
    place.mkdir()
    archive.write(answers[2])
    archive.close()
    assert list(answered(list(place.glob("*.warc.gz")))) == ["http://a.test/2"]


def test_mending_passes_over_what_has_a_writer(tmp_path):
    archive = WarcFiles(tmp_path, "crawl", "node", 1 << 30)
    archive.write(HttpAnswer("http://a.test/", 1e9, b"GET / HTTP/1.1\r\n\r\n", HTML, 200))
    assert mend(tmp_path, wait=False) == [] and len(list(tmp_path.glob("*.part"))) == 1
    archive.close()
    assert not list(tmp_path.glob("*.part"))


READ_ONLY = "Read-only file system"


@pytest.mark.long
def test_a_disk_that_can_only_be_read_is_told_as_a_full_one(tmp_path, disk):
    """From the start of a crawl on; once it can be written, what is read is stored again."""
    data, keep = tmp_path / "data", {"XYRO_KEEP__DIRECTORY": str(disk)}
    remount = ("mount", "-o", "remount,size=64m,{}", str(disk))
    with running(pages=60, hosts=4, seed=3, rate_median=0.0) as web:
        crawl = ("crawl", web.entry, *LOOPBACK, "--data", data, "--text", "--warc")
        subprocess.run([word.format("ro") for word in remount], check=True)
        done = process(*crawl, "--max-pages", "30", **keep)
        assert done.returncode == 1 and "30 pages read" in done.stdout, done.stderr
        assert f"Contents of 30 answers could not be stored ([keep]): {disk}: {READ_ONLY}" in done.stdout
        assert f"contents: not stored: {disk}: {READ_ONLY}" in done.stderr and "Traceback" not in done.stderr
        assert xyro("audit", "--data", data).returncode == 0
        subprocess.run([word.format("rw") for word in remount], check=True)
        done = process(*crawl, "--max-pages", "20", **keep)
        assert done.returncode == 0 and "could not be stored" not in done.stdout, done.stdout
        assert said("status", "--data", data)["contents"]["records"] == 20


def test_a_disk_that_is_unmounted_under_a_crawl_is_told_and_nothing_is_written_beneath(tmp_path, disk):
    data, settings = tmp_path / "data", tmp_path / "keep.toml"
    settings.write_text(f'[keep]\nwarc = true\ntext = true\ndirectory = "{disk}"\n')
    with serving({"/": page("T", "It is old.")}) as site:
        words = ("crawl", site.url + "/", "--refresh", *LOOPBACK, "--config", settings)
        with started(*words, data=data) as crawl:
            until(lambda: len(site.statuses) > 3)
            subprocess.run(["umount", "-l", str(disk)], check=True)
            until(lambda: "its disk was unmounted" in said("status", "--data", data)["contents"]["paused"])
            before = len(site.statuses)
            until(lambda: len(site.statuses) > before)
            crawl.terminate()
            out, _ = crawl.communicate()
            assert crawl.returncode == 1 and "could not be stored ([keep])" in out, out
        assert list(disk.iterdir()) == [], "the place of the disk stays empty"
        assert xyro("audit", "--data", data).returncode == 0
    subprocess.run(["mount", "-t", "tmpfs", "none", str(disk)], check=True)  # the fixture unmounts it


def test_files_go_on_on_a_disk_that_comes_back_and_on_no_other(tmp_path, disk):
    """A copy is mounted in its place, which has another device number."""
    copy, empty = tmp_path / "copy", tmp_path / "empty"
    answer = HttpAnswer("http://a.test/", 1e9, b"GET / HTTP/1.1\r\n\r\n", HTML, 200)
    archive = WarcFiles(disk, "crawl", "node", 1 << 30)
    archive.write(answer)
    shutil.copytree(disk, copy)
    subprocess.run(["umount", "-l", str(disk)], check=True)
    for place, back in ((disk, False), (empty, False), (copy, True)):
        place.mkdir(exist_ok=True)
        if place != disk:
            subprocess.run(["mount", "--bind", str(place), str(disk)], check=True)
        if back:
            archive.write(answer)
        else:
            with pytest.raises(OSError, match="unmounted"):
                archive.write(answer)
            assert not list(place.iterdir())
        if place == empty:
            subprocess.run(["umount", str(disk)], check=True)
    archive.close()
    assert len(list(copy.glob("*.warc.gz"))) == 2


@pytest.mark.long
def test_a_disk_that_comes_back_under_another_number_is_taken_again(tmp_path, disk):
    """A copy on another file system: what was open on the old one is let go, and both indexes go on."""
    data, settings = tmp_path / "data", tmp_path / "keep.toml"
    settings.write_text(f'[keep]\nwarc = true\ntext = true\ndirectory = "{disk}"\n')
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir(), new.mkdir()
    with serving({"/": page("T", "It is old.")}) as site, contextlib.ExitStack() as mounts:

        def mount(*words):
            subprocess.run(["mount", *map(str, words)], check=True)
            mounts.callback(subprocess.run, ["umount", "-l", str(words[-1])], check=True)

        mount("--bind", disk, old)
        mount("-t", "tmpfs", "-o", "size=8m", "tmpfs", new)
        with started("crawl", site.url + "/", "--refresh", *LOOPBACK, "--config", settings, data=data) as crawl:
            until(lambda: len(site.statuses) > 3)
            subprocess.run(["umount", "-l", str(disk)], check=True)
            until(lambda: "its disk was unmounted" in said("status", "--data", data)["contents"]["paused"])
            until(lambda: not _open_below(crawl.pid, old))
            subprocess.run(["cp", "-a", f"{old}/.", str(new)], check=True)
            before = _records(new)
            assert before > 0 and _records(old) == before
            subprocess.run(["mount", "--bind", str(new), str(disk)], check=True)  # the fixture unmounts it
            until(lambda: _records(disk) > before)
            until(lambda: not said("status", "--data", data)["contents"]["paused"])
            crawl.terminate()
            out, _ = crawl.communicate()
        assert "could not be stored ([keep])" in out, out
        assert not list(disk.glob("*.part")) and _records(old) == before
        assert mend(disk, wait=False) == []


def _records(directory: Path) -> int:
    with contextlib.closing(open_index(directory)) as index:
        return totals(index)["records"]


def _open_below(pid: int, directory: Path) -> list[str]:
    """Files that a process and its children have open on the file system of a directory."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    found = []
    for each in (str(pid), *children):
        for link in Path(f"/proc/{each}/fd").iterdir():
            with contextlib.suppress(OSError):
                if link.stat().st_dev == directory.stat().st_dev:
                    found.append(os.readlink(link))
    return found
