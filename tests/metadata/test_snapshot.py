"""Snapshots: fuzzy copies repaired by the journal, damage skipped, kills survived."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xyro.metadata import snapshot
from xyro.metadata.columns import Columns
from xyro.metadata.snapshot import SnapshotStep, load_snapshot, oldest_snapshot, write_snapshot
from xyro.metadata.url_index import MISSING, FingerprintTable
from xyro.wire.errors import InputError, MachineError

ROOT = Path(__file__).parents[2]
SPEC = {"cash": "i8", "state": "u1"}
FPS = np.random.default_rng(1).integers(0, 2**64, 100_000, np.uint64, endpoint=False)


def state(n, bits=64):
    """n pages: cash = 10 x number; fingerprints FPS, every tenth page without one (it clashes)."""
    columns, table = Columns(SPEC, 100_000), FingerprintTable(bits, 100_000)
    grow(columns, table, n)
    return columns, table


def grow(columns, table, count):
    ids = np.arange(columns.n, columns.n + count, dtype=np.uint32)
    columns.grow(count)
    columns["cash"][ids] = ids.astype(np.int64) * 10
    columns["state"][ids] = 1
    with_own = ids[ids % 10 != 9]
    table.insert(FPS[with_own], with_own)


def write(directory, seq, columns, table, extra=b""):
    for _ in write_snapshot(directory, seq, columns, table, extra):
        pass


def load(directory, **options):
    return load_snapshot(directory, SPEC, capacity=100_000, **options)


def check_same(loaded, columns, table):
    assert loaded.columns.n == columns.n
    for name in SPEC:
        assert (loaded.columns[name][: columns.n + 50] == columns[name][: columns.n + 50]).all()
    assert len(loaded.table) == len(table)
    assert (loaded.table.find(FPS) == table.find(FPS)).all()


@pytest.mark.parametrize("bits", [64, 20])
def test_a_look_finds_what_the_table_has_and_reads_few_frames_for_few(tmp_path, bits, monkeypatch):
    monkeypatch.setattr(snapshot, "CHUNK", 1 << 14)
    some = len(np.unique(FPS[:5_000] & np.uint64((1 << bits) - 1)))
    columns, table = Columns(SPEC, 100_000), FingerprintTable(bits, 100_000)
    columns.grow(5_000)
    distinct, first = np.unique(FPS[:5_000] & np.uint64((1 << bits) - 1), return_index=True)
    table.insert(distinct, first)
    write(tmp_path, 1, columns, table)
    looked = load(tmp_path, look=True).table
    assert [int(looked.find(FPS[k : k + 1])[0]) for k in range(5)] == table.find(FPS[:5]).tolist()
    assert int(looked.find(FPS[6_000:6_001])[0]) == int(table.find(FPS[6_000:6_001])[0])
    assert 1 <= len(looked._read_frames) <= 6 and len(looked) == 0, "a frame for each, and no more"
    for each in (looked, table):
        each.insert(FPS[90_000:90_001], [77])
    assert looked.find(FPS[90_000:90_001]).tolist() == [77]
    assert (looked.find(FPS[:80_000]) == table.find(FPS[:80_000])).all() and len(looked) == some + 1
    assert len(load(tmp_path, look=True).table.items()[0]) == some


def test_a_look_at_a_damaged_frame_says_so(tmp_path):
    write(tmp_path, 1, *state(3_000))
    path = next(tmp_path.glob("snapshot-*.bin"))
    damaged = bytearray(path.read_bytes())
    damaged[-2_000] ^= 1
    path.write_bytes(bytes(damaged))
    looked = load(tmp_path, look=True).table
    with pytest.raises(MachineError, match="is damaged"):
        looked.find(FPS[:5])


@pytest.mark.parametrize("n", [0, 1, 3000, 100_000])
def test_round_trip(tmp_path, n):
    columns, table = state(n)
    write(tmp_path, 17, columns, table, b"virtual page")
    loaded = load(tmp_path)
    assert (loaded.seq, loaded.extra) == (17, b"virtual page")
    check_same(loaded, columns, table)
    assert len(loaded.columns.after_images()) < 60, "nothing is new in it"


def test_the_width_of_fingerprints_is_kept(tmp_path):
    columns, table = Columns(SPEC, 1000), FingerprintTable(8, 1000)
    columns.grow(5)
    table.insert([1, 2, 3, 0, 255], range(5))
    write(tmp_path, 1, columns, table)
    loaded = load(tmp_path)
    assert loaded.table.bits == 8
    assert loaded.table.find([255, 0, 1, 9]).tolist() == [4, 3, 0, MISSING]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_copy_taken_while_all_changes_is_repaired_by_the_journal(data):
    """Between any two chunks: rows change, pages are added, records are sealed."""
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshot, "CHUNK", 1 << 12)
        directory, (columns, table) = Path(name), state(2000)
        records = [columns.after_images()]
        seq, begun = len(records), columns.n
        for _ in write_snapshot(directory, seq, columns, table):
            rows = data.draw(st.lists(st.integers(0, columns.n - 1), max_size=5))
            columns["cash"][rows] += 1
            columns.touch("cash", rows)
            if data.draw(st.booleans()):
                grow(columns, table, data.draw(st.integers(0, 700)))
            if data.draw(st.booleans()):
                records.append(columns.after_images())
        records.append(columns.after_images())
        loaded = load(directory)
        assert loaded.columns.n == begun
        assert sorted(loaded.table.items()[1].tolist()) == [i for i in range(begun) if i % 10 != 9]
        for record in records[loaded.seq :]:
            loaded.columns.replay(record)
        later = np.array([i for i in range(begun, columns.n) if i % 10 != 9], np.uint32)
        loaded.table.insert(FPS[later], later)
        check_same(loaded, columns, table)


def test_it_pauses_after_each_chunk_and_becomes_valid_only_when_resumed_after_copied(tmp_path):
    columns, table = state(50_000)
    steps = []
    for step in write_snapshot(tmp_path, 5, columns, table):
        steps.append(step)
        assert load(tmp_path) is None
    assert steps == [SnapshotStep.CHUNK] * (len(steps) - 1) + [SnapshotStep.COPIED]
    assert load(tmp_path).seq == 5


def test_chunks_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(snapshot, "CHUNK", 1 << 14)
    monkeypatch.setattr(snapshot, "SYNC_EVERY", 1 << 16)
    columns, table = state(50_000)
    sizes = [0]
    for _ in write_snapshot(tmp_path, 5, columns, table):
        sizes += [path.stat().st_size for path in tmp_path.glob("*.tmp")]
    assert max(np.diff(sizes)) <= 2 * snapshot.CHUNK
    check_same(load(tmp_path), columns, table)


def test_the_newest_two_are_kept(tmp_path):
    columns, table = state(10)
    assert load(tmp_path) is None and oldest_snapshot(tmp_path) is None
    for seq in (3, 9, 10, 100):
        columns["cash"][0] = seq
        write(tmp_path, seq, columns, table)
        assert load(tmp_path).columns["cash"][0] == load(tmp_path).seq == seq
    assert oldest_snapshot(tmp_path) == 10
    assert len(list(tmp_path.iterdir())) == 2


def test_the_same_record_twice_is_one_snapshot(tmp_path):
    columns, table = state(10)
    write(tmp_path, 3, columns, table)
    write(tmp_path, 3, columns, table)
    assert len(list(tmp_path.iterdir())) == 1
    check_same(load(tmp_path), columns, table)


def test_an_abandoned_one_leaves_nothing_that_counts(tmp_path):
    columns, table = state(10)
    write(tmp_path, 1, columns, table)
    for stop in (SnapshotStep.CHUNK, SnapshotStep.COPIED):
        writing = write_snapshot(tmp_path, 2, columns, table)
        while next(writing) is not stop:
            pass
        writing.close()
        assert load(tmp_path).seq == oldest_snapshot(tmp_path) == 1
    write(tmp_path, 3, columns, table)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".bin", ".bin"]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A short file of a snapshot 8 beside one of 7: (directory, path of the newer, its bytes)."""
    directory = tmp_path_factory.mktemp("small")
    columns, table = state(6)
    write(directory, 7, columns, table)
    columns["cash"][0] = 5
    write(directory, 8, columns, table, b"extra")
    path = max(directory.iterdir())
    return directory, path, path.read_bytes()


def damaged(whole):
    """Every byte flipped, every cut, something more."""
    for at in range(len(whole)):
        yield whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :]
        yield whole[:at]
    yield whole + b"\0"


def test_a_damaged_one_is_skipped_and_named(small):
    directory, path, whole = small
    for data in damaged(whole):
        path.write_bytes(data)
        told = []
        loaded = load(directory, report=told.append)
        assert (loaded.seq, loaded.columns["cash"][0]) == (7, 0)
        assert len(told) == 1 and told[0].startswith(f"snapshot {path} is damaged: ")
    path.write_bytes(whole)
    assert load(directory, report=pytest.fail).seq == 8


def test_frames_lost_or_in_another_order_are_damage(small):
    directory, path, whole = small
    frames, at = [], 0
    while at < len(whole):
        length = int.from_bytes(whole[at + 16 : at + 20], "little")
        frames.append(whole[at : at + 28 + length])
        at += 28 + length
    assert [frame[:4] for frame in frames] == [b"HEAD", b"EXTR", b"COLU", b"COLU", b"FPID", b"END."]
    for i in range(len(frames)):
        for changed in (frames[:i] + frames[i + 1 :], frames[: i + 1] + frames[i:]):
            path.write_bytes(b"".join(changed))
            assert load(directory, report=lambda text: None).seq == 7
    path.write_bytes(whole)


def test_if_all_are_damaged_it_is_an_error_not_a_fresh_start(tmp_path):
    columns, table = state(6)
    for seq in (1, 2):
        write(tmp_path, seq, columns, table)
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(MachineError, match=r"no valid snapshot: .*0002\.bin.*0001\.bin.*restore"):
        load(tmp_path, report=lambda text: None)


def test_other_columns_or_another_version_are_told_apart_from_damage(tmp_path, monkeypatch):
    columns, table = state(6)
    write(tmp_path, 1, columns, table)
    for spec in ({"cash": "i8"}, {"state": "u1", "cash": "i8"}, {**SPEC, "cash": "i4"}):
        with pytest.raises(InputError, match="other columns"):
            load_snapshot(tmp_path, spec, capacity=100)
    with pytest.raises(InputError, match="room for 5"):
        load_snapshot(tmp_path, SPEC, capacity=5)

    monkeypatch.setattr(snapshot, "VERSION", 3)
    write(tmp_path, 2, columns, table)
    monkeypatch.undo()
    with pytest.raises(InputError, match=r"0002\.bin: of format.*use the Xyro that wrote it"):
        load(tmp_path)


def test_a_disk_that_fails_is_a_machine_error(tmp_path):
    with pytest.raises(MachineError, match="cannot write a snapshot"):
        write(tmp_path / "missing", 1, *state(3))


WRITER = """
import sys
from pathlib import Path
import numpy as np
from xyro.metadata import snapshot
from xyro.metadata.columns import Columns
from xyro.metadata.url_index import FingerprintTable
snapshot.CHUNK = 1 << 14
columns, table = Columns({"cash": "i8", "state": "u1"}, 100_000), FingerprintTable(64, 100_000)
for seq in range(1, 1_000_000):
    first = columns.grow(50 if columns.n < 20_000 else 0)
    columns["cash"][: columns.n] = np.arange(columns.n) + seq
    table.insert(np.arange(first, columns.n) << 50, np.arange(first, columns.n))
    for _ in snapshot.write_snapshot(Path(sys.argv[1]), seq, columns, table, b"%d" % seq):
        pass
    print(seq, flush=True)
"""


@pytest.mark.parametrize("milliseconds", [0, 1, 3, 7, 20, 60])
def test_after_a_kill_a_valid_one_loads(tmp_path, milliseconds):
    with subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE) as writer:
        told = int(writer.stdout.readline())
        time.sleep(milliseconds / 1000)
        writer.kill()
        told = int((writer.stdout.read().split(b"\n")[:-1] or [b"%d" % told])[-1])
    loaded = load(tmp_path, report=pytest.fail)
    assert loaded.seq >= told
    n = loaded.columns.n
    assert loaded.extra == b"%d" % loaded.seq
    assert (loaded.columns["cash"][:n] == np.arange(n) + loaded.seq).all()
    assert (loaded.table.find(np.arange(n) << 50) == np.arange(n)).all()
    write(tmp_path, loaded.seq + 1, loaded.columns, loaded.table)
    assert not list(tmp_path.glob("*.tmp"))


def test_optional_columns_are_there_if_they_are_in_the_file(tmp_path):
    columns = Columns(SPEC, 100_000, ["slots"])
    columns.add("slots", np.dtype((np.float32, (2, 100))))
    table = FingerprintTable(64, 100_000)
    columns.grow(6000)
    columns["slots"][:6000] = np.random.default_rng(1).random((6000, 2, 100), np.float32)
    write(tmp_path, 4, columns, table)
    loaded = load(tmp_path, optional=["slots"])
    assert loaded.columns.spec == columns.spec
    assert (loaded.columns["slots"][:6001] == columns["slots"][:6001]).all()
    with pytest.raises(InputError, match="other columns"):
        load(tmp_path)
    columns.drop("slots")
    write(tmp_path, 5, columns, table)
    assert "slots" not in load(tmp_path, optional=["slots"]).columns and load(tmp_path).seq == 5
