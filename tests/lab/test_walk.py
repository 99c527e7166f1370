"""The walk: one page of a default crawl, the files it enters, and the direction of its calls."""

import json
import re

import pytest

import xyro.frontier
from xyro.lab.walk.page_walk import Stretch, Walk, lines, main, walk
from xyro.lab.walk.rooms import LEVELS, direction, file_of, room_of
from xyro.lab.walk.tracer import CodePlace, TraceStep

MOST_FILES = {"turn": 32, "way": 60}
"""These numbers only shrink; twice one grew: when gamma came to divide what a host has out (look_ahead.py), and when
pages.py, 600 lines long, was divided (waiting_links.py)."""
FAULTS = 0
"""calls upward through no named callback"""
BEHIND = 4
"""files by which the figures that the house quotes may be wrong"""


@pytest.fixture(scope="module")
def found():
    return walk()


def test_one_page_enters_no_more_files_than_the_house_says(found):
    said = re.search(r"enters (\d+) files in its turn, and (\d+)", xyro.frontier.__doc__)
    for name, number in zip(("turn", "way"), said.groups(), strict=True):
        measured, quoted = found.report()[name]["files"], int(number)
        assert measured <= MOST_FILES[name], f"{name}: {measured} files"
        assert abs(quoted - measured) <= BEHIND, f"{name}: {measured} files now; say so in frontier/__init__.py"


def test_rooms_call_downwards_or_back_through_named_callbacks(found):
    assert len(found.faults) <= FAULTS, found.faults


def test_the_turn_is_part_of_the_way_and_passes_the_core_only(found):
    told = found.report()
    assert {one["file"] for one in told["turn"]["path"]} <= {one["file"] for one in told["way"]["path"]}
    assert told["turn"]["path"][0]["file"] == "frontier/frontier.py"
    assert not {"loader", "service/node", "service/views"} & told["turn"]["rooms"].keys()
    assert {"wire", "opic", "refresh", "xyro", "metadata", "frontier", "service/node"} <= told["way"]["rooms"].keys()


def test_the_command_prints_the_same_figures_again(capsys, found):
    assert main(["--json"]) == bool(found.faults)
    told, expected = json.loads(capsys.readouterr().out), found.report()
    assert told["ok"] is not bool(found.faults)
    assert told["turn"] == expected["turn"]
    assert {one["file"] for one in told["way"]["path"]} == {one["file"] for one in expected["way"]["path"]}


def test_people_read_every_file_and_the_sums(found):
    text, told = "\n".join(lines(found)), found.report()
    assert f"{told['turn']['files']} files, {told['turn']['functions']} functions" in text
    assert all(one["file"] in text for one in told["way"]["path"])


def test_rooms_of_files():
    assert file_of("scan.py") == "xyro/scan.py" and file_of("metadata/columns.py") == "metadata/columns.py"
    assert room_of("xyro/scan.py") == "xyro" and room_of("service/views/why.py") == "service/views"
    assert room_of("plugins/rank/guide.py") == "plugins/rank" and room_of("plugins/other.py") == "plugins"
    assert all(room_of(f"{room}/some.py") == room for rooms in LEVELS for room in rooms)


@pytest.mark.parametrize(
    ("caller", "callee", "expected"),
    [
        ("frontier", "metadata", ""),
        ("frontier", "frontier", ""),
        ("metadata", "frontier", "up"),
        ("xyro", "metadata", "sideways"),
        ("opic", "refresh", "sideways"),
        ("service/views", "service/node", "up"),
        ("frontier", "plugins", "unknown"),
    ],
)
def test_directions_between_rooms(caller, callee, expected):
    assert direction(caller, callee) == expected


def test_crossings_and_their_report():
    pool, tell = CodePlace("xyro/pool.py", "Pool.tell"), CodePlace("service/node/node.py", "Node.take")
    row, turn = CodePlace("metadata/rows.py", "pack"), CodePlace("frontier/frontier.py", "turn")
    steps = [
        TraceStep(turn, None),
        TraceStep(row, turn),
        TraceStep(tell, pool),
        TraceStep(turn, row),
        TraceStep(turn, row),
    ]
    made_up = Walk(Stretch(steps[:2]), Stretch(steps))
    assert [(one.caller, one.callee, bool(one.callback)) for one in made_up.crossings] == [
        ("xyro", "service/node", True),
        ("metadata", "frontier", False),
    ]
    assert [one.source for one in made_up.faults] == ["metadata/rows.py: pack"]
    assert made_up.way.changes == 3 and made_up.way.report()["calls"] == 5
    assert "FAULT" in lines(made_up)[-1]
