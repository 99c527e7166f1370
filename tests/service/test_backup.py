"""Copies of a data directory: of a crawl at work and of a stopped one, whole or not there."""

import asyncio
import json
import threading

import pytest

from tests.service.face import ENVIRONMENT, LOOPBACK, process, rows, said, started, until, xyro
from xyro.lab.child import running
from xyro.plugins import extensions
from xyro.service.node import backup
from xyro.service.node.run_file import Remote
from xyro.service.node.stopped import open_stopped
from xyro.wire.errors import InputError, MachineError


@pytest.fixture(scope="module")
def web():
    with running(pages=300, hosts=4, seed=3, rate_median=0.0) as web:
        yield web


@pytest.fixture(scope="module")
def crawled(web, tmp_path_factory):
    """A finished crawl in two partitions."""
    data = tmp_path_factory.mktemp("crawled") / "data"
    assert process("crawl", web.entry, *LOOPBACK, "--partitions", 2, "--data", data).returncode == 0
    return data


def test_of_a_stopped_crawl_it_is_the_same_crawl(crawled, tmp_path):
    copy = tmp_path / "deep" / "copy"
    told = said("backup", copy, "--data", crawled)
    assert told["to"] == str(copy) and told["partitions"] == 2 and told["bytes"] > 0
    assert said("audit", "--data", copy)["ok"]
    assert (copy / "crawl.toml").read_bytes() == (crawled / "crawl.toml").read_bytes()
    for table in ("pages", "links", "hosts", "documents"):
        assert rows(table, copy) == rows(table, crawled)
    assert not list(tmp_path.glob("deep/.*")), "nothing is left of its making"


def test_snapshots_are_linked_and_outlive_the_original(crawled, tmp_path):
    said("backup", tmp_path / "copy", "--data", crawled)
    (first,) = (tmp_path / "copy" / "p0000").glob("snapshot-*.bin")
    assert first.stat().st_ino == (crawled / "p0000" / first.name).stat().st_ino


@pytest.mark.long
def test_of_a_crawl_at_work_it_is_one_commit_boundary_and_goes_on(web, tmp_path):
    data, copy = tmp_path / "data", tmp_path / "copy"
    polite = ("--only-net", "127.0.0.0/8", "--scope", "any", "--delay", "0.02")
    with started("crawl", web.entry, *polite, "--partitions", 2, "--json", data=data) as crawl:
        until(lambda: said("status", "--data", data)["reads_this_run"] > 30)
        for unfit in ("relative", "/a\0b", 7, None, str(data / "p0000" / "copy")):
            with pytest.raises(InputError):
                Remote.find(data).post("/backup", {"to": unfit})
        told = json.loads(xyro("backup", copy, "--data", data, "--json").stdout)
        taken = said("status", "--data", copy)
        later = said("status", "--data", data)["reads_this_run"]
        out, _ = crawl.communicate(timeout=60)
    assert told["partitions"] == 2 and not taken["running"] and 30 < taken["reads"] <= later
    assert said("audit", "--data", copy)["ok"] and said("audit", "--data", data)["ok"]
    rest = said("crawl", *LOOPBACK, "--data", copy)
    assert rest["ended"] == "complete" and json.loads(out)["ended"] == "complete"
    read = {page["url"] for page in rows("pages", data) if page["state"] == "read"}
    assert read == {page["url"] for page in rows("pages", copy) if page["state"] == "read"}


@pytest.mark.long
def test_a_daemon_makes_one_at_intervals_and_keeps_the_last_ones(crawled, tmp_path, monkeypatch):
    data, copies = tmp_path / "mine", tmp_path / "copies"
    said("backup", data, "--data", crawled)
    for key, setting in (("DIRECTORY", str(copies)), ("EVERY", "1"), ("KEEP", "2")):
        monkeypatch.setitem(ENVIRONMENT, f"XYRO_BACKUP__{key}", setting)
    with started("serve", *LOOPBACK, data=data) as daemon:
        first = until(lambda: sorted(copies.glob("mine-*Z")))[0]
        until(lambda: not first.exists() and len(list(copies.glob("mine-*Z"))) == 2)
        daemon.terminate()
        daemon.communicate(timeout=60)
    left = sorted(copies.iterdir())
    assert len(left) == 2 and said("audit", "--data", left[-1])["ok"]
    monkeypatch.setitem(ENVIRONMENT, "XYRO_BACKUP__DIRECTORY", str(data / "inside"))
    refused = process("serve", *LOOPBACK, "--data", data)
    assert refused.returncode == 2 and "lies in the data directory itself" in refused.stderr


@pytest.mark.parametrize("place", ["there", "inside"])
def test_it_never_overwrites_and_never_grows_into_itself(crawled, tmp_path, place):
    there = tmp_path / "there"
    there.mkdir()
    (there / "precious").write_text("mine")
    target = there if place == "there" else crawled / "copy"
    done = xyro("backup", target, "--data", crawled)
    assert done.returncode == 2 and str(target) in done.stderr and done.stderr.count("\n") == 1
    assert [path.name for path in there.iterdir()] == ["precious"] and not (crawled / "copy").exists()


def test_of_nothing_it_says_so(tmp_path):
    done = xyro("backup", tmp_path / "copy", "--data", tmp_path / "nothing")
    assert done.returncode == 2 and "no such data directory" in done.stderr and not (tmp_path / "copy").exists()


def test_a_damaged_store_is_not_copied(crawled, tmp_path):
    from xyro.service.node.data_dir import DataDir

    data = DataDir.open(crawled)
    try:
        pinned = [backup.Pinned.of_partition(partition) for partition in data.partitions]
        pinned[1].rows.close()
        with pytest.raises(MachineError):
            backup._write(crawled, tmp_path / "copy", pinned, threading.Event())
    finally:
        data.close()
    assert not list(tmp_path.iterdir()), "nothing is left of it"


def test_files_that_vanish_after_the_boundary_are_copied(crawled, tmp_path):
    mine = tmp_path / "mine"
    said("backup", mine, "--data", crawled)
    from xyro.service.node.data_dir import DataDir

    data = DataDir.open(mine)
    try:
        pinned = [backup.Pinned.of_partition(partition) for partition in data.partitions]
        for partition in data.partitions:
            for file in partition.directory.glob("snapshot-*.bin"):
                file.unlink()
        backup._write(mine, tmp_path / "copy", pinned, threading.Event())
    finally:
        data.close()
    with open_stopped(tmp_path / "copy", extensions) as crawl, crawl.views() as views:
        assert len(list(views.pages())) == len(rows("pages", crawled))


def test_given_up_it_leaves_nothing(crawled, tmp_path, monkeypatch):
    from types import SimpleNamespace

    from xyro.service.node.data_dir import DataDir

    data = DataDir.open(crawled)
    monkeypatch.setattr(backup, "BATCH", 1)
    going = threading.Event()
    true_copy = backup._copy

    def slow(source, store, stop):
        going.set()
        assert stop.wait(10)
        return true_copy(source, store, stop)

    monkeypatch.setattr(backup, "_copy", slow)

    class Boundary:
        async def __aenter__(self): ...
        async def __aexit__(self, *_): ...

    single = SimpleNamespace(data=data, boundary=Boundary)

    async def give_up():
        task = asyncio.create_task(backup.running(single, tmp_path / "copy"))
        await asyncio.to_thread(going.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    try:
        asyncio.run(give_up())
    finally:
        data.close()
    assert not list(tmp_path.iterdir())


def test_a_place_inside_is_seen_through_its_spelling(tmp_path):
    with pytest.raises(InputError, match="lies in the data directory"):
        backup._refuse_inside(tmp_path, tmp_path / "a" / ".." / "b")
