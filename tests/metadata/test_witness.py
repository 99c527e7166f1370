"""The witness of the last commit: a store that has lost its end is not taken for a whole one."""

from __future__ import annotations

from pathlib import Path

import pytest

from xyro.metadata import rows
from xyro.metadata.partition import WITNESS, Witness, create, new_seed
from xyro.metadata.recovery import open_partition
from xyro.wire.errors import MachineError


def made(directory: Path, commits: int) -> list[int]:
    """A partition of `commits` groups, one page each, closed as a kill closes it; bytes of its log after each."""
    create(directory, 0, 1, new_seed(), {})
    partition = open_partition(directory)
    sizes = []
    for number in range(commits):
        partition.begin()
        partition.mint([f"http://h/{number}"], [partition.host("h")], [0], [0])
        partition.write(partition.seal({}))
        sizes.append(log_of(directory).stat().st_size)
    partition.close()
    return sizes


def log_of(directory: Path) -> Path:
    return max((directory / "store").glob("*.log"))


def test_a_log_that_lost_any_commit_is_seen(tmp_path: Path) -> None:
    for kept in range(20):
        directory = tmp_path / f"p{kept}"
        sizes = made(directory, 20)
        log = log_of(directory)
        log.write_bytes(log.read_bytes()[: sizes[kept] - 1])
        for look in (True, False):
            with pytest.raises(MachineError, match=f"commit {kept}, but 20 were made: the last {20 - kept} are lost"):
                open_partition(directory, look=look)


def test_what_is_whole_is_opened_at_any_moment_of_the_write(tmp_path: Path) -> None:
    """The witness is written after its group: a kill, or a power cut, leaves it behind, never ahead."""
    directory = tmp_path / "p"
    made(directory, 9)
    witness = Witness(directory)
    whole = witness.path.read_bytes()
    assert witness.last() == 9
    for cut in range(len(whole)):
        witness.path.write_bytes(whole[:cut] + bytes(len(whole) - cut))  # a torn write
        assert witness.last() in (0, 8, 9)
        open_partition(directory, look=True).close()
    witness.path.unlink()
    open_partition(directory).close()
    for bit in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        witness.path.write_bytes(flipped)
        assert witness.last() in (8, 9)


def test_it_goes_on_from_run_to_run(tmp_path: Path) -> None:
    directory = tmp_path / "p"
    made(directory, 3)
    partition = open_partition(directory)
    partition.begin()
    commit = partition.seal({})
    assert Witness(directory).last() == 3, "it is not on disk yet"
    partition.write(commit)
    assert Witness(directory).last() == 4
    assert partition.store.get(rows.META.key("scalars")) is not None
    partition.close()
    assert not [path for path in directory.iterdir() if path.name == WITNESS and path.stat().st_mode & 0o077]
