"""LevelDB's log, cleaned of what fails its checksum: LevelDB's own repair takes damaged records as they are.

A log is a run of blocks of 32 KiB, a block a run of fragments: checksum (CRC-32C of the type and the data, masked) u32,
length u16, type u8 (1 whole, 2 first, 3 middle, 4 last), data; all little-endian. No fragment crosses a block; 6 bytes
and less at the end of one are filled with zeros. A record, which is a batch, is one whole fragment, or first to last.
(leveldb/doc/log_format.md)
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

BLOCK = 32_768
_HEADER = struct.Struct("<IHB")
_WHOLE, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_POLYNOMIAL = 0x82F63B78


def _table() -> list[int]:
    found = []
    for number in range(256):
        for _ in range(8):
            number = number >> 1 ^ (_POLYNOMIAL if number & 1 else 0)
        found.append(number)
    return found


_TABLE = _table()


def checksum(kind: int, data: bytes) -> int:
    """The masked CRC-32C of a fragment."""
    crc, table = 0xFFFF_FFFF, _TABLE
    for byte in bytes([kind]) + data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFF_FFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFF_FFFF


def records(data: bytes) -> Iterator[bytes]:
    """Yield the records whose every fragment is sound; as LevelDB does, skip the rest of a block that is damaged."""
    record, inside = b"", False
    for kind, part in _fragments(data):
        if kind == _WHOLE:
            yield part
        elif kind == _LAST and inside:
            yield record + part
        if kind == _FIRST:
            record = part
        elif kind == _MIDDLE:
            record += part
        inside = kind == _FIRST or (kind == _MIDDLE and inside)


def _fragments(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (type, data); type 0 stands for what is damaged."""
    for start in range(0, len(data), BLOCK):
        block, place = data[start : start + BLOCK], 0
        while len(block) - place >= _HEADER.size:
            crc, length, kind = _HEADER.unpack_from(block, place)
            part = block[place + _HEADER.size : place + _HEADER.size + length]
            if len(part) < length or not _WHOLE <= kind <= _LAST or checksum(kind, part) != crc:
                yield 0, b""
                break
            yield kind, part
            place += _HEADER.size + length


def written(found: Iterator[bytes]) -> bytes:
    """A log of these records."""
    log = bytearray()
    for record in found:
        begun = False
        while record or not begun:
            room = BLOCK - len(log) % BLOCK
            if room < _HEADER.size:
                log += bytes(room)
                room = BLOCK
            part, record = record[: room - _HEADER.size], record[room - _HEADER.size :]
            kind = (_MIDDLE if begun else _FIRST) if record else (_LAST if begun else _WHOLE)
            log += _HEADER.pack(checksum(kind, part), len(part), kind) + part
            begun = True
    return bytes(log)


def clean(path: Path) -> int:
    """Leave only the sound records in a log; return in how many places it is damaged."""
    data = path.read_bytes()
    path.write_bytes(written(records(data)))
    return sum(kind == 0 for kind, _ in _fragments(data))
