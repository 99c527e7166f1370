"""The fingerprint table against a dict: random operations, narrow and hostile fingerprints, growth, 300,000 keys."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xyro.metadata.url_index import FEW, GROWTH, LOAD, MISSING, SEGMENTS, SLOTS, SMALL, FingerprintTable, _rank
from xyro.wire.errors import MachineError


def fill(table, fps, first=0):
    table.insert(np.array(fps, np.uint64), np.arange(first, first + len(fps), dtype=np.uint32))


def check(table, model, absent=()):
    """Found in one batch and one by one; nothing else is found; items say the same."""
    keys = [*model, *absent]
    wanted = [*model.values(), *[MISSING] * len(absent)]
    assert table.find(np.array(keys, np.uint64)).tolist() == wanted
    for key, number in list(zip(keys, wanted, strict=True))[:: max(1, len(keys) // 50)]:
        assert table.find([key]).tolist() == [number]
    fps, ids = table.items()
    assert dict(zip(fps.tolist(), ids.tolist(), strict=True)) == model
    assert len(table) == len(fps) == len(model)


# Fingerprints that share segment and home bucket, differ in the top, the middle or the low bits only, and the extremes
HOSTILE = st.one_of(
    st.integers(0, 40),
    st.integers(0, 40).map(lambda i: 2**64 - 1 - i),
    st.integers(0, 255).map(lambda i: i << 56),
    st.integers(0, 255).map(lambda i: 0xAB << 56 | i << 24),
    st.integers(0, 2**64 - 1),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(HOSTILE, max_size=80), max_size=8), st.lists(HOSTILE, max_size=30), st.sampled_from([0, 100]))
def test_it_agrees_with_a_dict(batches, others, few):
    table, model = FingerprintTable(capacity=100_000, few=few), {}
    for batch in batches:
        new = [fp for fp in dict.fromkeys(batch) if fp not in model]
        fill(table, new, len(model))
        model |= {fp: len(model) + i for i, fp in enumerate(new)}
        check(table, model, [fp for fp in dict.fromkeys(others) if fp not in model])


@settings(max_examples=30, deadline=None)
@given(st.sets(st.integers(0, 255)), st.integers(0, 2**64 - 1), st.sampled_from([0, FEW]))
def test_eight_bits(fps, noise, few):
    """Only the low bits count; all 256 of them fit."""
    table = FingerprintTable(bits=8, capacity=1000, few=few)
    fill(table, [fp | noise << 8 & 2**64 - 1 for fp in fps])
    wanted = [list(fps).index(fp) if fp in fps else MISSING for fp in range(256)]
    assert table.find(range(256)).tolist() == wanted
    assert table.find([fp | 0xFF00 for fp in range(256)]).tolist() == wanted
    assert sorted(table.items()[0].tolist()) == sorted(fps)


@pytest.mark.parametrize("few", [0, FEW])
@pytest.mark.parametrize("bits", [1, 7, 8, 9, 20, 33, 63, 64])
def test_any_width(bits, few):
    fps = np.unique(np.random.default_rng(bits).integers(0, 2**bits, 500, np.uint64, endpoint=False))
    table = FingerprintTable(bits, capacity=10_000, few=few)
    fill(table, fps)
    order = [fp << np.uint64(64 - bits) >> np.uint64(56) for part, _ in table.segments() for fp in part]
    assert order == sorted(order)
    check(table, {fp: i for i, fp in enumerate(fps.tolist())})


@pytest.mark.long
@pytest.mark.parametrize("batch", [1, SMALL, SMALL + 1, 997, 300_000])
def test_three_hundred_thousand_in_batches(batch):
    size = 3_000 if batch <= SMALL else 300_000
    fps = np.random.default_rng(7).integers(0, 2**64, 2 * size, np.uint64, endpoint=False)
    known, unknown = fps[:size], fps[size:]
    table = FingerprintTable(capacity=size, few=0 if batch <= SMALL else FEW)
    for start in range(0, size, batch):
        fill(table, known[start : start + batch], start)
    assert len(table) == size
    assert (table.find(known) == np.arange(size)).all()
    assert (table.find(unknown) == MISSING).all()
    mixed = np.ravel([unknown[:2000], known[:2000]], "F")
    for start in range(0, 4000, batch if batch <= SMALL else 40):
        part = table.find(mixed[start : start + batch])
        wanted = [MISSING if i % 2 == 0 else i // 2 for i in range(start, start + len(part))]
        assert part.tolist() == wanted


def test_a_look_up_ends_in_a_full_segment_of_one_bucket_run():
    """All keys have the last bucket as their home: the run goes round the segment's end."""
    fps = [0xFF << 56 | 0xFFFF_FFFF << 24 | i for i in range(500)]
    table = FingerprintTable(capacity=200_000, few=0)
    fill(table, fps)
    check(table, {fp: i for i, fp in enumerate(fps)}, [0xFF << 56 | 0xFFFF_FFFF << 24 | 501, 0xFF << 56])


def test_a_large_segment_may_be_loaded_in_the_order_of_its_buckets(monkeypatch):
    """As a snapshot gives it: if the segment grew with each part, the parts would crowd together (quadratic)."""
    fps = np.sort(np.random.default_rng(9).integers(0, 2**56, 40_000, np.uint64, endpoint=False))
    table = FingerprintTable()
    rounds = []
    monkeypatch.setattr("xyro.metadata.url_index.CHUNK", 1 << 12)
    monkeypatch.setattr("xyro.metadata.url_index._rank", lambda at, rank=_rank: rounds.append(len(at)) or rank(at))
    fill(table, fps)
    assert sum(rounds) <= 1.5 * len(fps)
    assert (table.find(fps) == np.arange(len(fps))).all()


def test_memory_stays_at_17_bytes_and_segments_grow_one_at_a_time():
    fps = np.random.default_rng(3).integers(0, 2**64, 400_000, np.uint64, endpoint=False)
    table = FingerprintTable(capacity=1_000_000)
    most = SLOTS * 12 + 1
    sizes = []
    for start in range(0, len(fps), 1000):
        before = table.nbytes
        fill(table, fps[start : start + 1000], start)
        if start >= 200_000:
            sizes.append(table.nbytes / len(table))
            assert table.nbytes - before <= 0.03 * before  # never the whole at once
    assert most / SLOTS / LOAD <= min(sizes) and max(sizes) <= most / SLOTS / LOAD * GROWTH
    assert min(sizes) >= 16 and max(sizes) <= 18 and max(sizes) - min(sizes) <= 0.5, "no saw-tooth"


def test_empty_batches_and_arrays_of_other_kinds():
    table = FingerprintTable(capacity=100)
    fill(table, [])
    assert table.find([]).tolist() == [] and table.find([]).dtype == np.uint32
    assert [part.tolist() for part in table.items()] == [[], []]
    assert len(table) == 0
    table.insert([2**63, 5], [MISSING - 1, 0])
    assert table.find((5, 2**63, 6)).tolist() == [0, MISSING - 1, MISSING]


def test_ids_and_fingerprints_go_in_pairs():
    table = FingerprintTable(capacity=100)
    with pytest.raises(ValueError, match="2 fingerprints, 1 ids"):
        table.insert([1, 2], [0])
    assert len(table) == 0


@pytest.mark.parametrize("bits", [0, 65, -1])
def test_bits_are_1_to_64(bits):
    with pytest.raises(ValueError, match=r"1\.\.64"):
        FingerprintTable(bits)


def test_a_full_table_says_so_and_stays_as_it_was():
    table = FingerprintTable(capacity=SEGMENTS, few=0)
    fill(table, range(300))
    with pytest.raises(MachineError, match="more partitions"):
        fill(table, range(300, 3000), 300)
    check(table, {fp: fp for fp in range(300)}, range(300, 330))


@pytest.mark.parametrize("few", [0, 60_000])
def test_segments_may_be_copied_by_another_thread_meanwhile(few):
    """What was there when the copying began is in it, whole pairs only."""
    fps = np.random.default_rng(5).integers(0, 2**64, 120_000, np.uint64, endpoint=False)
    table = FingerprintTable(capacity=200_000, few=few)
    fill(table, fps[:20_000])
    copies = []
    reader = threading.Thread(target=lambda: copies.extend(table.items() for _ in range(5)))
    reader.start()
    for start in range(20_000, len(fps), 500):
        fill(table, fps[start : start + 500], start)
    reader.join()
    for keys, ids in copies:
        assert (fps[ids] == keys).all()
        assert len(np.unique(ids)) == len(ids)
        assert set(range(20_000)) <= set(ids.tolist())
