"""LevelDB's log, read and written as LevelDB does it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from xyro.metadata.level_log import checksum, clean, records, written
from xyro.metadata.store import Store


def stored(directory: Path, count: int = 40) -> Path:
    """A store with batches of a few bytes and of some blocks; its log."""
    store = Store.open(directory, create=True)
    for number in range(count):
        batch = store.batch()
        for row in range(3):
            batch.put(b"%04d-%d" % (number, row), bytes(number % 256 for _ in range(number * number * 20)))
        store.write(batch)
    store.close()
    return max(directory.glob("*.log"))


def content(directory: Path) -> dict[bytes, bytes]:
    store = Store.open(directory)
    try:
        return dict(store.scan(b""))
    finally:
        store.close()


def test_known_checksum() -> None:
    """RFC 3720 B.4: 32 bytes of zero are 8a9136aa; unmasked, and with a zero as their type here."""
    masked = checksum(0, bytes(31))
    rotated = (masked - 0xA282EAD8) & 0xFFFF_FFFF
    assert (rotated >> 17 | rotated << 15) & 0xFFFF_FFFF == 0x8A9136AA


def test_a_sound_log_is_written_again_byte_for_byte(tmp_path: Path) -> None:
    log = stored(tmp_path)
    data = log.read_bytes()
    assert len(data) > 4 * 32_768
    assert len(list(records(data))) == 40 and written(records(data)) == data


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_what_is_left_of_a_damaged_one_is_true(tmp_path: Path, seed: int) -> None:
    log = stored(tmp_path)
    whole = list(records(log.read_bytes()))
    data, chance = bytearray(log.read_bytes()), random.Random(seed)
    place = chance.randrange(len(data))
    if seed % 2:
        data[place] ^= 1 << chance.randrange(8)
    else:
        data[place : place + 4096] = bytes(len(data[place : place + 4096]))
    log.write_bytes(data)
    damages = clean(log)
    assert damages <= 2 and (damages or bytes(data) == log.read_bytes())
    left = list(records(log.read_bytes()))
    assert (set(left) <= set(whole) and len(left) < len(whole)) or bytes(data) == log.read_bytes()
    expected = {number for number, record in enumerate(whole) if record in left}
    assert {int(key[:4]) for key in content(tmp_path)} == expected
