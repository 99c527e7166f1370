"""A crash at any commit boundary: what opens is the state of the crawl that did not crash, up to that commit."""

from __future__ import annotations

import itertools
import random
import shutil

import pytest

from tests.frontier.rig import START, Crawl, copied, dump, pages, report, snapshot, url
from tests.frontier.test_frontier import ACTIONS_OF_A_STORY, Story, act, come_to_rest
from xyro.configs.schema import CrawlSettings as CrawlSettings
from xyro.configs.schema import Settings
from xyro.metadata import snapshot as snapshots
from xyro.metadata.snapshot import SnapshotStep
from xyro.service.node.data_dir import DataDir
from xyro.wire.errors import InputError

ANY = Settings(crawl=CrawlSettings(scope="any"))


class Watched(Story):
    """Copies the directory after each write, and before it, beside the state that must be found there."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.late = []
        self.crashes = []
        self.state = [dump(frontier.partition) for frontier in self.frontiers]
        self.snapshots = {}

    def watch(self, path, snapshot_after=(), in_flight=False):
        self.path, self.snapshot_after, self.in_flight = path, snapshot_after, in_flight
        self._numbers = itertools.count()
        return self

    def write(self, turn, q=0):
        sealed = dump(self.frontiers[q].partition)
        if self.in_flight:
            self._step(q)
        self._crash()
        super().write(turn, q)
        self.state[q] = sealed
        self._crash()
        if turn.commit.number in self.snapshot_after:
            snapshot(self.frontiers[q])
            self._crash()

    def _step(self, q):
        """Some chunks of a snapshot, while a group is sealed but not written."""
        steps = self.snapshots.setdefault(q, self.frontiers[q].partition.snapshot())
        for step in itertools.islice(steps, 3):
            if step is SnapshotStep.COPIED:
                return
        if next(steps, None) is None:
            del self.snapshots[q]

    def _crash(self):
        number = next(self._numbers)
        copy = copied(self.path, self.path.with_name(f"copy-{number}"))
        self.crashes.append((copy, list(self.state)))


def told(path, partitions, first, rounds, **watch):
    """A story on disk, watched."""
    crawl = Watched.on_disk(path, partitions, settings=ANY, refreshing=True).watch(path, **watch)
    chance = random.Random(first)
    crawl.submit(*(url(host) for host in range(5)))
    crawl.turn()
    for _ in range(rounds):
        for _ in range(6):
            act(crawl, chance.choice(ACTIONS_OF_A_STORY), chance.randrange(999), chance.randrange(999))
        crawl.turn(chance.randrange(partitions))
    return crawl


@pytest.mark.parametrize(
    ("partitions", "watch"),
    [(1, {}), (1, {"snapshot_after": (2, 5, 6)}), (1, {"in_flight": True}), (3, {"snapshot_after": (3,)})],
    ids=["journal", "snapshots", "snapshot in flight", "three partitions"],
)
def test_every_crash_opens_as_of_the_last_commit(tmp_path, monkeypatch, partitions, watch):
    monkeypatch.setattr(snapshots, "CHUNK", 256)
    crawl = told(tmp_path / "data", partitions, 4, 9, **watch)
    crawl.close()
    assert len(crawl.crashes) > 20
    for copy, state in crawl.crashes:
        data = DataDir.open(copy)
        assert [dump(partition) for partition in data.partitions] == state, copy.name
        again = Crawl(data.partitions, ANY, refreshing=True)
        said = again.audit()
        assert said["ok"], said["violations"]
        again.close()
        shutil.rmtree(copy)


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_crawl_killed_again_and_again_ends_as_one_that_never_was(tmp_path, partitions):
    """Pages, links and cash; what was sealed but not written is read again."""

    def web(order):
        number = int(order.url.rsplit("/p", 1)[1][:-5])
        return report(order, START, [url(k % 7, k) for k in (2 * number + 1, 2 * number + 2) if k < 60])

    calm = Crawl.in_memory(partitions, settings=ANY)
    calm.submit(url(0))
    calm.run(web)
    path, kills = tmp_path / "data", 0
    killed = Crawl.on_disk(path, partitions, settings=ANY)
    killed.submit(url(0))
    killed.turn()
    while killed.orders or killed.wire or killed.frontier.scheduler.unread:
        for order in list(killed.orders.values())[:5]:
            killed.give(web(order))
        killed.deliver_all()
        killed.turn()
        if (kills := kills + 1) % 3 == 0:
            killed.seal(kills % partitions)
            killed.close()
            killed = Crawl.on_disk(path, settings=ANY)
            killed.turn()
    come_to_rest(killed)
    assert kills > 9

    def shape(crawl):
        return {page["url"]: (page["state"], page["depth"], page["out_links"]) for page in pages(crawl)}

    assert shape(killed) == shape(calm) and len(shape(calm)) == 60
    assert killed.audit()["ok"] and killed.cash() == calm.cash()
    killed.close()


def test_an_open_crawl_cannot_be_opened_twice(tmp_path):
    crawl = Crawl.on_disk(tmp_path / "data", settings=ANY)
    with pytest.raises(InputError, match="in use"):
        DataDir.open(tmp_path / "data")
    crawl.close()
    DataDir.open(tmp_path / "data").close()
