"""The rooms of the house from the ground up, and the callbacks that may be called against their direction.

A room calls rooms below it and itself. Whoever wants something of a room above must be handed it: a hook, or a callable
or object that its constructor takes. CALLBACKS names these, by the two rooms; every other upward call is a fault.
"""

from __future__ import annotations

LEVELS: tuple[tuple[str, ...], ...] = (
    ("wire", "configs"),
    ("opic", "refresh"),
    ("xyro", "loader", "metadata"),
    ("frontier",),
    ("service/views",),
    ("service/node",),
    (
        "plugins/publish",
        "plugins/clusters",
        "plugins/focus",
        "plugins/warehouse",
        "plugins/rank",
        "plugins/changes",
        "plugins/metrics",
    ),
    ("service/cluster",),
    ("service/api", "library", "service/cli"),
    ("lab",),
)
"""rooms of one level are siblings: they know nothing of each other"""
ROOMS = tuple(room for level in LEVELS for room in level)
FOLDERS = frozenset(room.partition("/")[0] for room in ROOMS)
OUTSIDE = frozenset({"service/api", "library", "service/cli", "lab"})
"""rooms that start a crawl and look at it: a walk does not count them"""
_LEVEL = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}

CALLBACKS: dict[tuple[str, str], str] = {
    ("xyro", "service/node"): "the pool asks whether it may read, and hands over each report",
}
"""(caller, callee) -> what is called back"""


def file_of(path: str) -> str:
    """A file below the package's folder -> its place in the repository: `scan.py` is `xyro/scan.py`."""
    return path if path.partition("/")[0] in FOLDERS and "/" in path else f"xyro/{path}"


def room_of(file: str) -> str:
    """The room of a file of the repository; the folder itself where it is no room of the list."""
    first, _, rest = file.partition("/")
    inner = f"{first}/{rest.partition('/')[0]}"
    return inner if inner in _LEVEL else first


def direction(caller: str, callee: str) -> str:
    """'' for a call within a room or downwards; else 'up', 'sideways' (a sibling), or 'unknown' (no room)."""
    if caller == callee:
        return ""
    if caller not in _LEVEL or callee not in _LEVEL:
        return "unknown"
    if _LEVEL[caller] == _LEVEL[callee]:
        return "sideways"
    return "up" if _LEVEL[caller] < _LEVEL[callee] else ""
