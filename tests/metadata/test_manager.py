"""Partition: what a group puts is seen at once and is on disk after its write; what a crash leaves opens as it was."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from tests.frontier.rig import copied, dump
from xyro.metadata import rows
from xyro.metadata import snapshot as snapshots
from xyro.metadata.partition import create, new_seed
from xyro.metadata.recovery import open_partition
from xyro.metadata.rows import RefreshRow
from xyro.metadata.snapshot import SnapshotStep
from xyro.metadata.states import LEASED, NAMED, WANTED, State
from xyro.metadata.store import Store
from xyro.wire.errors import InputError, MachineError


@pytest.fixture
def path(tmp_path):
    create(tmp_path / "p", 3, 4, 99, {"more": "facts"})
    return tmp_path / "p"


@pytest.fixture
def partition(path):
    made = open_partition(path)
    yield made
    made.close()


def urls(first, count):
    return [f"http://h{i % 5}.example/{i}" for i in range(first, first + count)]


def mint(partition, count, state=State.UNREAD):
    first = partition.columns.n
    names = urls(first, count)
    hosts = [partition.host(f"h{i % 5}.example") for i in range(first, first + count)]
    assert partition.mint(names, hosts, [state] * count, range(count)) == first
    return list(range(first, first + count))


def group(partition, change, *, write=True):
    """One commit group."""
    partition.begin()
    change()
    commit = partition.seal({"x": partition.next_number})
    if write:
        partition.write(commit)
        partition.written(commit)
    return commit


def reopened(path):
    again = open_partition(path)
    said = dump(again)
    again.close()
    return said


# A new partition


def test_a_new_partition_is_empty_and_knows_its_facts(partition):
    assert (partition.number, partition.base, partition.columns.n) == (3, 3 << 32, 0)
    assert partition.facts["partitions"] == 4 and partition.facts["more"] == "facts"
    assert partition.next_number == 1 and partition.url_index.find_one("http://h/") == -1


def test_seeds_differ():
    assert len({new_seed() for _ in range(20)}) == 20 and all(0 <= new_seed() < 2**63 for _ in range(20))


def test_only_one_process_at_a_time(path, partition):
    with pytest.raises(InputError, match="in use"):
        open_partition(path)


def test_another_format_is_refused(path):
    store = Store.open(path / "store")
    batch = store.batch()
    batch.put(rows.META.key("facts"), rows.msgspec.msgpack.encode({"format": 9, "number": 0, "seed": 1}))
    store.write(batch)
    store.close()
    with pytest.raises(InputError, match="format 9"):
        open_partition(path)
    Store.open(path / "store").close()  # the refused opening let go of it


def test_a_store_without_facts_is_damaged(tmp_path):
    Store.open(tmp_path / "store", create=True).close()
    with pytest.raises(MachineError, match="facts"):
        open_partition(tmp_path)


# Groups


def test_what_a_group_puts_is_seen_before_it_is_written(partition):
    row = RefreshRow(reads=4)

    def change():
        mint(partition, 3)
        partition.put(rows.REFRESH.key(1), rows.pack(row))
        partition.put(rows.LINK.key(2), b"x")
        partition.delete(rows.LINK.key(2))
        assert partition.url(2) == urls(2, 1)[0] and partition.row(1) == row
        assert partition.get(rows.LINK.key(2)) is None

    first = group(partition, change, write=False)
    assert partition.row(1) == row, "sealed, not written"
    second = group(partition, lambda: partition.delete(rows.REFRESH.key(1)), write=False)
    assert partition.row(1) is None and partition.store.get(rows.REFRESH.key(1)) is None
    partition.write(first)
    partition.written(first)
    assert partition.row(1) is None, "the later group still hides it"
    assert partition.store.get(rows.REFRESH.key(1)) is not None
    partition.write(second)
    partition.written(second)
    assert partition.row(1) is None and partition.store.get(rows.REFRESH.key(1)) is None
    assert not partition._flying


def test_groups_do_not_nest(partition):
    partition.begin()
    with pytest.raises(MachineError, match="nest"):
        partition.begin()


def test_a_missing_page_is_damage(partition):
    with pytest.raises(MachineError, match="no page 7"):
        partition.url(7)


def test_depths_are_capped(partition):
    group(partition, lambda: partition.mint(["http://a/", "http://b/"], [partition.host("a")] * 2, [0, 0], [3, 1000]))
    assert partition.columns["depth"][:2].tolist() == [3, 255]


# The counters of hosts


def counted(partition):
    """(waiting, leased) of each host, counted from the columns."""
    n, count = partition.columns.n, len(partition.hosts)
    state, flags, host = (partition.columns[name][:n] for name in ("state", "flags", "host"))
    leased = flags & LEASED != 0
    waiting = np.bincount(host[(state == State.UNREAD) & ~leased], minlength=count)
    return waiting.tolist(), np.bincount(host[leased], minlength=count).tolist()


def told(partition):
    count = len(partition.hosts)
    return partition.hosts.waiting[:count].tolist(), partition.hosts.leased[:count].tolist()


def test_the_counters_of_hosts_follow_every_change(partition):
    chance = np.random.default_rng(5)

    def step():
        page = int(chance.integers(partition.columns.n))
        match int(chance.integers(3)):
            case 0:
                partition.set_state(page, State(int(chance.integers(8))))
            case 1 if not partition.flags[page] & LEASED:
                partition.lease(page)
            case 2 if partition.flags[page] & LEASED:
                partition.unlease(page)
        assert told(partition) == counted(partition)

    def change():
        mint(partition, 20)
        mint(partition, 5, State.OUT)
        for _ in range(300):
            step()

    group(partition, change)
    n = partition.columns.n
    assert len(set(partition.columns["state"][:n].tolist())) > 4


def test_orders_of_an_earlier_run_are_void(path, partition):
    def change():
        pages = mint(partition, 10)
        partition.lease(pages[0])
        partition.lease(pages[1])
        partition.set_flag(pages[1], WANTED)
        partition.set_flag(pages[1], NAMED)
        partition.clear_flag(pages[1], NAMED)

    group(partition, change)
    again = open_partition(copied(path, path.with_name("copy")))
    assert told(again) == counted(again) == ([2] * 5, [0] * 5)
    assert again.columns["flags"][:10].tolist() == [0, WANTED] + [0] * 8
    again.close()


# Recovery


def story(partition, groups, each):
    """Groups that mint, move states and put rows; `each(number)` after every one."""
    chance = np.random.default_rng(11)
    for number in range(1, groups + 1):

        def change():
            mint(partition, int(chance.integers(8)))
            n = partition.columns.n
            for page in chance.integers(n, size=6).tolist() if n else ():
                partition.columns["cash"][page] += 10
                partition.columns.touch("cash", page)
                partition.set_state(page, State(int(chance.integers(8))))
                partition.put(rows.REFRESH.key(page), rows.pack(RefreshRow(reads=number)))  # noqa: B023

        group(partition, change)
        each(number)


@pytest.mark.parametrize("after", [(), (1,), (4,), (3, 7), (2, 5, 8)], ids=str)
def test_every_commit_boundary_opens_as_it_was(path, partition, after):
    """`after`: snapshots are taken after these groups."""
    wanted, copies = [dump(partition)], [copied(path, path.with_name("0"))]

    def each(number):
        if number in after:
            for _ in partition.snapshot():
                pass
        wanted.append(dump(partition))
        copies.append(copied(path, path.with_name(str(number))))

    story(partition, 10, each)
    assert [reopened(copy) for copy in copies] == wanted


def test_a_snapshot_taken_in_the_midst_of_groups_is_exact_wherever_it_is_cut_off(path, partition, monkeypatch):
    """Each chunk of it is followed by a group; between the group's sealing and its writing the process dies."""
    monkeypatch.setattr(snapshots, "CHUNK", 64)
    story(partition, 5, lambda number: None)
    chance = np.random.default_rng(2)
    wanted, pending, copies = dump(partition), None, []
    sealed = wanted

    def change():
        mint(partition, 3)
        pages = chance.integers(partition.columns.n, size=4)
        partition.columns["cash"][pages] += 1
        partition.columns.touch("cash", pages)

    def finish():
        partition.write(pending)
        partition.written(pending)

    for step in partition.snapshot():
        copies.append((copied(path, path.with_name(f"s{len(copies)}")), wanted))
        if pending is not None:
            finish()
            copies.append((copied(path, path.with_name(f"s{len(copies)}")), sealed))
            wanted, pending = sealed, None
        if step is SnapshotStep.CHUNK:
            pending = group(partition, change, write=False)
            sealed = dump(partition)
    if pending is not None:
        finish()
        wanted = sealed
    copies.append((copied(path, path.with_name("end")), wanted))
    assert len(copies) > 20
    for copy, state in copies:
        assert reopened(copy) == state, copy.name
        shutil.rmtree(copy)


def test_a_snapshot_waits_for_the_groups_that_it_may_hold(partition):
    story(partition, 2, lambda number: None)
    pending = group(partition, lambda: mint(partition, 2), write=False)
    steps = partition.snapshot()
    while next(steps) is not SnapshotStep.COPIED:
        pass
    assert [next(steps) for _ in range(5)] == [SnapshotStep.COPIED] * 5
    assert snapshots.oldest_snapshot(partition.directory) is None
    partition.write(pending)
    partition.written(pending)
    assert list(steps) == [] and snapshots.oldest_snapshot(partition.directory) == 3


def test_a_group_sealed_but_not_written_is_lost_and_nothing_else(path, partition):
    story(partition, 4, lambda number: None)
    wanted = dump(partition)
    group(partition, lambda: mint(partition, 4), write=False)
    assert dump(partition) != wanted
    assert reopened(copied(path, path.with_name("copy"))) == wanted


def test_the_journal_is_trimmed_to_what_the_older_snapshot_needs(path, partition):
    def take(number):
        if number % 3 == 0:
            for _ in partition.snapshot():
                pass

    story(partition, 10, take)
    numbers = [rows.JOURNAL.split(key) for key, _ in partition.store.scan(rows.JOURNAL.prefix)]
    assert numbers == [7, 8, 9, 10] and partition.journal_from == 7
    newest = sorted(path.glob("snapshot-*.bin"))[-1]
    wanted = dump(partition)
    partition.close()
    newest.write_bytes(newest.read_bytes()[:-9])
    assert reopened(path) == wanted, "the older snapshot and the longer journal"


def test_recovery_goes_on_where_it_stopped(path, partition):
    story(partition, 3, lambda number: None)
    partition.close()
    again = open_partition(path)
    assert (again.next_number, again.journal_from, again.recovered_records) == (4, 1, 3)
    for _ in again.snapshot():
        pass
    again.close()
    last = open_partition(path)
    assert (last.next_number, last.journal_from, last.recovered_records, last.journal_bytes) == (4, 4, 0, 0)
    last.close()


# Damage


def changed(path, change):
    """Close-up of a store: `change(batch)` is written past the partition."""
    store = Store.open(path / "store")
    batch = store.batch()
    change(batch)
    store.write(batch)
    store.close()


@pytest.mark.parametrize("lost", [1, 3, 5])
def test_a_hole_in_the_journal_is_damage(path, partition, lost):
    story(partition, 5, lambda number: None)
    partition.close()
    changed(path, lambda batch: batch.delete(rows.JOURNAL.key(lost)))
    with pytest.raises(MachineError, match=rf"journal is not whole at record {lost if lost == 5 else lost + 1}"):
        open_partition(path)


def test_a_record_beyond_the_last_commit_is_damage(path, partition):
    story(partition, 3, lambda number: None)
    record = partition.store.get(rows.JOURNAL.key(3))
    partition.close()
    changed(path, lambda batch: batch.put(rows.JOURNAL.key(4), record))
    with pytest.raises(MachineError, match="record 4"):
        open_partition(path)


def test_a_snapshot_ahead_of_the_last_commit_is_damage(path, partition):
    story(partition, 3, lambda number: None)
    old = copied(path / "store", path.with_name("old"))
    story(partition, 3, lambda number: None)
    for _ in partition.snapshot():
        pass
    partition.close()
    copied(old, path / "store")
    with pytest.raises(MachineError, match="snapshot 6, last commit 3"):
        open_partition(path)


def test_a_page_missing_from_map_data_is_damage(path, partition):
    story(partition, 5, lambda number: None)
    n = partition.columns.n
    partition.close()
    changed(path, lambda batch: batch.delete(rows.MAP.key(n - 1)))
    with pytest.raises(MachineError, match="Map-Data knows"):
        open_partition(path)
    changed(path, lambda batch: batch.put(rows.MAP.key(n), b"\0\0\0\0http://x/"))
    with pytest.raises(MachineError, match=f"hole at page {n - 1}"):
        open_partition(path)
