"""The data directory: whole where it exists, one process at a time, and never half open."""

from __future__ import annotations

import shutil

import pytest

from tests.frontier.rig import copied
from xyro.metadata.recovery import open_partition
from xyro.service.node.data_dir import DataDir
from xyro.wire.errors import InputError


def open_close(path, **options):
    data = DataDir.open(path, **options)
    data.close()
    return data


def files(path):
    return {file.relative_to(path): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


def test_a_new_directory_has_its_partitions_and_one_seed(tmp_path):
    data = open_close(tmp_path / "a" / "data", partitions=3, make=True)
    assert data.created and [partition.number for partition in data.partitions] == [0, 1, 2]
    assert len({partition.facts["seed"] for partition in data.partitions}) == 1
    assert {partition.facts["partitions"] for partition in data.partitions} == {3}
    assert sorted(one.name for one in (tmp_path / "a" / "data").iterdir()) == ["p0000", "p0001", "p0002"]


def test_one_partition_by_default_and_none_asked_for_later(tmp_path):
    assert len(open_close(tmp_path / "d", make=True).partitions) == 1
    again = open_close(tmp_path / "d", make=True)
    assert not again.created and len(again.partitions) == 1
    assert not open_close(tmp_path / "d", partitions=1).created


def test_an_empty_directory_may_be_used(tmp_path):
    (tmp_path / "d").mkdir()
    assert open_close(tmp_path / "d", make=True).created


@pytest.mark.parametrize("there", [False, True], ids=["nothing", "an empty directory"])
def test_where_there_is_no_crawl_none_is_made_unasked(tmp_path, there):
    if there:
        (tmp_path / "d").mkdir()
    with pytest.raises(InputError, match=r"no such data directory.*xyro crawl"):
        DataDir.open(tmp_path / "d")
    assert list(tmp_path.glob("d/*")) == []


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_what_is_no_data_directory_is_left_alone(tmp_path, kind):
    path = tmp_path / "d"
    if kind == "file":
        path.write_text("mine")
    else:
        path.mkdir()
        (path / "mine").write_text("mine")
    before = files(tmp_path)
    with pytest.raises(InputError, match="not a data directory"):
        DataDir.open(path, make=True)
    assert files(tmp_path) == before


def test_another_number_of_partitions_is_refused(tmp_path):
    open_close(tmp_path / "d", partitions=2, make=True)
    with pytest.raises(InputError, match=r"has 2 partitions, not 4.*fixed"):
        DataDir.open(tmp_path / "d", partitions=4, make=True)
    open_close(tmp_path / "d")


def test_a_missing_partition_is_noticed_and_nothing_stays_open(tmp_path):
    open_close(tmp_path / "d", partitions=3, make=True)
    shutil.move(tmp_path / "d" / "p0001", tmp_path / "elsewhere")
    with pytest.raises(InputError, match="2 of 3 partitions are there; put the missing ones back"):
        DataDir.open(tmp_path / "d")
    shutil.move(tmp_path / "elsewhere", tmp_path / "d" / "p0001")
    open_close(tmp_path / "d")


def test_where_one_partition_is_in_use_the_others_are_closed_again(tmp_path):
    open_close(tmp_path / "d", partitions=3, make=True)
    held = open_partition(tmp_path / "d" / "p0002")
    with pytest.raises(InputError, match=r"p0002.*in use"):
        DataDir.open(tmp_path / "d")
    first = open_partition(tmp_path / "d" / "p0000")
    first.close()
    held.close()
    open_close(tmp_path / "d")


def test_a_process_killed_while_making_one_leaves_nothing_that_is_taken_for_one(tmp_path):
    open_close(tmp_path / "whole", partitions=2, make=True)
    copied(tmp_path / "whole", tmp_path / ".d.new")
    shutil.rmtree(tmp_path / ".d.new" / "p0001")
    with pytest.raises(InputError, match="no such data directory"):
        DataDir.open(tmp_path / "d")
    assert len(open_close(tmp_path / "d", partitions=2, make=True).partitions) == 2
    assert not (tmp_path / ".d.new").exists()


def test_other_files_beside_the_partitions_are_ignored(tmp_path):
    open_close(tmp_path / "d", partitions=2, make=True)
    (tmp_path / "d" / "run").write_text("{}")
    (tmp_path / "d" / "p1").mkdir()
    assert len(open_close(tmp_path / "d").partitions) == 2


def test_closing_twice_is_fine(tmp_path):
    data = open_close(tmp_path / "d", make=True)
    data.close()
