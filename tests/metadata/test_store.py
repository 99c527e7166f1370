"""The store: LevelDB and its twin agree under random operations; locks, damage, crashes, directories made whole."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xyro.metadata.directories import create_directory
from xyro.metadata.store import MemoryStore, Store
from xyro.wire.errors import InputError, MachineError

ROOT = Path(__file__).parents[2]
KEYS = st.binary(max_size=3) | st.sampled_from([b"a", b"ab", b"a\xff", b"a\xff\xff", b"b", b"\xff", b"\xff\xff", b""])
CHANGES = st.lists(st.tuples(KEYS, st.none() | st.binary(max_size=4)), max_size=12)
SCANS = st.tuples(KEYS, KEYS, st.booleans())


@pytest.fixture(params=["disk", "memory"])
def store(request, tmp_path):
    made = Store.open(tmp_path / "db", create=True) if request.param == "disk" else MemoryStore()
    yield made
    made.close()


def write(store, **pairs):
    batch = store.batch()
    for key, value in pairs.items():
        batch.put(key.encode(), value)
    store.write(batch)


def apply(store, changes):
    batch = store.batch()
    for key, value in changes:
        if value is None:
            batch.delete(key)
        else:
            batch.put(key, value)
    store.write(batch)


def expected(model, prefix, start, reverse):
    """What a scan is to give, said in one line."""
    pairs = sorted((key, value) for key, value in model.items() if key.startswith(prefix))
    if reverse:
        return [(key, value) for key, value in reversed(pairs) if not start or key <= start]
    return [(key, value) for key, value in pairs if key >= start]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(CHANGES, st.lists(SCANS, max_size=4), st.booleans()), max_size=6))
def test_the_disk_and_its_twin_agree_with_a_dict(steps):
    with tempfile.TemporaryDirectory() as directory:
        disk, memory, model = Store.open(Path(directory), create=True), MemoryStore(), {}
        views = []
        for changes, scans, keep in steps:
            for store in (disk, memory):
                apply(store, changes)
            for key, value in changes:
                model.pop(key, None)
                if value is not None:
                    model[key] = value
            if keep:
                views.append((disk.snapshot(), memory.snapshot(), dict(model)))
            for readers in [(disk, memory, model), *views]:
                check(*readers, scans)
        for view, twin, _ in views:
            view.close()
            twin.close()
        disk.close()


def check(disk, memory, model, scans):
    for prefix, start, reverse in [(b"", b"", False), *scans]:
        wanted = expected(model, prefix, start, reverse)
        assert list(disk.scan(prefix, start, reverse)) == wanted
        assert list(memory.scan(prefix, start, reverse)) == wanted
        assert disk.get(start) == memory.get(start) == model.get(start)


def test_a_scan_shows_the_moment_of_its_call(store):
    write(store, a=b"1", b=b"2")
    pairs = store.scan(b"")
    write(store, a=b"9", c=b"3")
    assert list(pairs) == [(b"a", b"1"), (b"b", b"2")]


def test_a_scan_may_be_left_in_the_middle(store):
    write(store, a=b"1", b=b"2")
    pairs = store.scan(b"")
    assert next(pairs) == (b"a", b"1")
    del pairs
    assert store.get(b"b") == b"2"


def test_the_later_change_of_a_key_wins_and_a_batch_may_be_written_again(store):
    batch = store.batch()
    batch.put(b"a", b"1")
    batch.delete(b"a")
    batch.put(b"b", b"1")
    batch.put(b"b", b"2")
    store.write(batch)
    write(store, b=b"3")
    store.write(batch)
    assert list(store.scan(b"")) == [(b"b", b"2")]


def test_the_size_of_a_batch_is_about_its_bytes(store):
    batch = store.batch()
    assert batch.size < 32
    for i in range(100):
        batch.put(b"%03d" % i, bytes(100))
    batch.delete(b"000")
    assert 10_300 <= batch.size <= 11_500


def test_a_batch_belongs_to_its_store(store, tmp_path):
    other = Store.open(tmp_path / "other", create=True)
    for batch in (MemoryStore().batch(), other.batch()):
        with pytest.raises(ValueError, match="the store that made it"):
            store.write(batch)
    other.close()


def test_a_closed_store_says_so(store):
    write(store, a=b"1", b=b"2")
    batch = store.batch()
    view = store.snapshot()
    view.close()
    view.close()
    store.close()
    store.close()
    calls = (lambda: store.get(b"a"), lambda: list(store.scan(b"")), store.batch, store.snapshot)
    for call in (*calls, lambda: store.write(batch), lambda: view.get(b"a"), lambda: list(view.scan(b""))):
        with pytest.raises(MachineError, match="closed"):
            call()


def test_threads_may_write_and_read(store):
    def work(name):
        for i in range(20):
            write(store, **{f"{name}{i:02d}": b"x"})
            assert store.get(f"{name}{i:02d}".encode()) == b"x"

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if isinstance(store, Store):
        assert len(list(store.scan(b""))) == 40


def test_a_store_may_be_closed_while_threads_read_it(tmp_path):
    run = [sys.executable, "-m", "tests.metadata.closed_while_read", str(tmp_path), "60"]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr  # -11: LevelDB was closed under a call


def test_it_is_there_after_a_restart(tmp_path):
    store = Store.open(tmp_path, create=True)
    write(store, a=b"1")
    store.close()
    again = Store.open(tmp_path)
    assert again.get(b"a") == b"1"
    again.close()


def test_no_store_is_made_unless_asked(tmp_path):
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(InputError, match="there is no store"):
            Store.open(path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="not a directory"):
        Store.open(tmp_path / "file", create=True)


def test_a_second_opening_is_refused_and_changes_nothing(tmp_path):
    store = Store.open(tmp_path, create=True)
    write(store, a=b"1")
    with pytest.raises(InputError, match=f"{tmp_path}: in use by another process: stop"):
        Store.open(tmp_path)
    script = (
        "import sys; from pathlib import Path; from xyro.metadata.store import Store; Store.open(Path(sys.argv[1]))"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    second = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert second.returncode == 1
    assert f"InputError: {tmp_path}: in use by another process" in second.stderr
    assert store.get(b"a") == b"1"
    store.close()
    Store.open(tmp_path).close()


def test_copying_an_open_directory_does_not_open_it_to_others(tmp_path):
    store = Store.open(tmp_path / "db", create=True)
    shutil.copytree(tmp_path / "db", tmp_path / "copy")
    script = (
        "import sys; from pathlib import Path; from xyro.metadata.store import Store; Store.open(Path(sys.argv[1]))"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "db")]
    assert b"in use by another process" in subprocess.run(command, cwd=ROOT, capture_output=True, check=False).stderr
    store.close()


@pytest.fixture
def filled(tmp_path):
    """A closed store with several table files."""
    path = tmp_path / "db"
    store = Store.open(path, create=True)
    for i in range(5):
        batch = store.batch()
        for k in range(60):
            batch.put(b"%d-%d" % (k, i), os.urandom(50_000))
        store.write(batch)
    store.close()
    Store.open(path).close()  # a table being written at the first close is finished now
    assert list(path.glob("*.ldb"))
    return path


def test_without_its_current_file_it_is_never_begun_anew(filled):
    (filled / "CURRENT").unlink()
    before = sorted(path.name for path in filled.iterdir())
    for create in (False, True):
        with pytest.raises(MachineError, match="CURRENT is missing: restore"):
            Store.open(filled, create=create)
    assert sorted(path.name for path in filled.iterdir()) == before


def test_a_missing_table_is_damage(filled):
    next(filled.glob("*.ldb")).unlink()
    with pytest.raises(MachineError, match=r"damaged store.*restore"):
        Store.open(filled)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_flipped_bit_is_damage_never_a_shorter_answer(filled, reverse):
    """plyvel's own iterator ends quietly where the damaged block is the last one."""
    for table in filled.glob("*.ldb"):
        data = bytearray(table.read_bytes())
        for at in range(100, len(data) - 5000, 30_000):
            data[at] ^= 1
        table.write_bytes(data)
    store = Store.open(filled)
    with pytest.raises(MachineError, match=r"damaged store.*restore"):
        list(store.scan(b"", reverse=reverse))
    with pytest.raises(MachineError, match=r"damaged store.*restore"):
        store.get(b"0-0")
    store.close()


COMPACTOR = """
import random, shutil, sys
from pathlib import Path
from xyro.metadata.store import Store
from xyro.wire.errors import MachineError

sound, copy, chance = Path(sys.argv[1]), Path(sys.argv[2]), random.Random(1)
shutil.copytree(sound, copy)  # opening merges the tables, and one table alone is never written anew
store = Store.open(copy)
rows = dict(store.scan(b""))
store.close()
shutil.rmtree(copy)
table = min(sound.glob("*.ldb"))
size = table.stat().st_size
footer, index = range(size - 48, size), range(size - 1500, size - 48)
for place in [*footer, *chance.sample(index, 60), *chance.sample(range(size - 1500), 60)]:
    shutil.copytree(sound, copy)
    data = bytearray(table.read_bytes())
    data[place] ^= 1 << chance.randrange(8)
    (copy / table.name).write_bytes(data)
    try:
        store = Store.open(copy)
    except MachineError:
        print("told")
    else:
        try:
            store.compact(b"", b"\\xff")
            print("right" if dict(store.scan(b"")) == rows else f"wrong at {place} of {size}")
        except MachineError:
            print("told")
        store.close()
    shutil.rmtree(copy)
"""


def test_a_compaction_takes_no_damaged_block_for_a_true_one(tmp_path):
    """LevelDB writes its tables anew in a thread of its own: without a look at checksums there, damage gets true ones,
    rows go without a word, and a length out of a damaged index is more memory than there is, which ends the process."""
    for i in range(4):  # each opening makes a table of what the last one wrote
        store = Store.open(tmp_path / "sound", create=True)
        write(store, **{f"{k:04}": os.urandom(200) for k in range(i, 1_000, 4)})
        store.close()
    run = [sys.executable, "-c", COMPACTOR, str(tmp_path / "sound"), str(tmp_path / "copy")]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    outcomes = done.stdout.split("\n")[:-1]
    assert done.returncode == 0, done.stderr
    assert len(outcomes) == 168 and set(outcomes) == {"told", "right"}, [one for one in outcomes if "wrong" in one]


WRITER = """
import sys
from pathlib import Path
from xyro.metadata.store import Store
store = Store.open(Path(sys.argv[1]), create=True)
for i in range(1_000_000):
    batch = store.batch()
    batch.put(b"a%08d" % i, bytes(20_000))
    batch.put(b"b%08d" % i, bytes(20_000))
    store.write(batch)
    print(i, flush=True)
"""


def test_after_a_kill_every_batch_is_whole_and_none_that_was_told_is_lost(tmp_path):
    for count in (1, 40, 300):
        path = tmp_path / str(count)
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], cwd=ROOT, stdout=subprocess.PIPE) as writer:
            told = [int(writer.stdout.readline()) for _ in range(count)]
            writer.kill()
        store = Store.open(path)
        first = [key[1:] for key, _ in store.scan(b"a")]
        assert first == [key[1:] for key, _ in store.scan(b"b")] == [b"%08d" % i for i in range(len(first))]
        assert len(first) > told[-1]
        store.close()


# create_directory


def test_a_directory_is_made_whole(tmp_path):
    seen = []

    def fill(path):
        seen.append(path)
        assert not (tmp_path / "deep" / "data").exists()
        store = Store.open(path / "partition", create=True)
        write(store, a=b"1")
        store.close()
        (path / "facts").write_text("x")

    create_directory(tmp_path / "deep" / "data", fill)
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["data"]
    assert seen[0] != tmp_path / "deep" / "data"
    store = Store.open(tmp_path / "deep" / "data" / "partition")
    assert store.get(b"a") == b"1"
    store.close()


def test_a_failure_while_filling_leaves_nothing(tmp_path):
    def fill(path):
        (path / "half").write_text("x")
        raise ValueError("ours")

    with pytest.raises(ValueError, match="ours"):
        create_directory(tmp_path / "data", fill)
    assert list(tmp_path.iterdir()) == []


def test_what_a_dead_process_left_is_cleared_away(tmp_path):
    (tmp_path / ".data.new").mkdir()
    (tmp_path / ".data.new" / "half").write_text("x")
    create_directory(tmp_path / "data", lambda path: (path / "whole").write_text("x"))
    assert [path.name for path in tmp_path.rglob("*")] == ["data", "whole"]


def test_an_existing_directory_is_kept_unless_it_is_empty(tmp_path):
    path = tmp_path / "data"
    path.mkdir()
    create_directory(path, lambda path: (path / "mine").write_text("x"))
    for taken in (path, path / "mine"):
        with pytest.raises(InputError, match="exists and is not empty"):
            create_directory(taken, lambda path: None)
    assert (path / "mine").read_text() == "x"


def test_of_two_makers_one_makes_it(tmp_path):
    outcomes = []

    def make(name):
        try:
            create_directory(tmp_path / "data", lambda path: (path / name).write_text("x"))
            outcomes.append("made")
        except InputError:
            outcomes.append("refused")

    threads = [threading.Thread(target=make, args=(str(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["made", "refused", "refused", "refused"]
    assert len(list((tmp_path / "data").iterdir())) == 1


def test_a_disk_that_fails_is_a_machine_error(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(MachineError, match="cannot create"):
        create_directory(tmp_path / "file" / "data", lambda path: None)
    shutil.rmtree(tmp_path)
