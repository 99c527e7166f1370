"""What a supervisor is told: numbers of a crawl that is well, and why one is not."""

import asyncio
from types import SimpleNamespace

import pytest

from xyro.service.api import health
from xyro.service.api.health import Health
from xyro.wire.clock import ManualClock
from xyro.wire.errors import MachineError


def crawl(tmp_path, **fields):
    node = SimpleNamespace(
        clock=ManualClock(1e9),
        committed_at=None,
        waits_since=None,
        data=SimpleNamespace(path=tmp_path),
        check=lambda: None,
    )
    vars(node).update(fields)
    return node


def look(node):
    async def once():
        return Health(node).look()

    return asyncio.run(once())


def test_of_a_crawl_that_is_well(tmp_path):
    said = look(crawl(tmp_path))
    assert said["ok"] and "failing" not in said and said["last_commit"] is None
    assert said["tasks"] == 1 and said["disk_free"] > 0 and said["open_files"] > 0


def test_the_last_commit_and_one_that_waits_are_told_in_seconds(tmp_path):
    node = crawl(tmp_path)
    node.clock.advance(100.0)
    node.committed_at, node.waits_since = 90.0, 95.0
    said = look(node)
    assert said["ok"] and said["last_commit"] == 10.0 and said["commit_waits"] == 5.0
    node.clock.advance(health.MOST_WAITING)
    assert look(node)["failing"] == ["a commit group waits for the disk since 65 s"]


def test_a_failed_node_a_full_disk_and_a_lost_directory_are_told(tmp_path, monkeypatch):
    def check():
        raise MachineError("disk full")

    assert look(crawl(tmp_path, check=check))["failing"] == ["disk full"]
    gone = look(crawl(tmp_path, data=SimpleNamespace(path=tmp_path / "gone")))
    assert not gone["ok"] and "0 MiB of disk are left" in gone["failing"][0]


async def test_a_loop_that_is_held_up_is_late(tmp_path, monkeypatch):
    monkeypatch.setattr(health, "LOOK", 0.01)
    monkeypatch.setattr(health, "MOST_LATE", 0.05)
    watched = Health(crawl(tmp_path))
    watched.start()
    try:
        await asyncio.sleep(0.02)
        __import__("subprocess").run(["sleep", "0.2"], check=True)  # the whole loop stands still
        await asyncio.sleep(0.05)
        said = watched.look()
    finally:
        await watched.close()
    assert said["loop_lag"] > 0.1 and "late" in said["failing"][0]
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.parametrize("value", [0.0, 9.9])
def test_lag_below_the_bound_is_well(tmp_path, value):
    watched = Health(crawl(tmp_path))
    watched._late.append(value)

    async def once():
        return watched.look()

    assert asyncio.run(once())["ok"]
