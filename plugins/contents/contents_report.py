"""Reports what is kept for `xyro status`: counted by the index, so nothing is scanned."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xyro.contents_index import FOLDER, NAME, open_index, totals
from xyro.wire.errors import InputError, MachineError
from xyro.wire.ids import HOME

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier
    from xyro.service.views.partition_status import PartitionStatus


def contents_status(parts: Sequence[PartitionStatus], now: float) -> dict[str, Any]:
    """The field `contents`, of a crawl that keeps some."""
    home = next((part.extensions for part in parts if part.number == HOME), {})
    return {"contents": home["contents"]} if "contents" in home else {}


def stored_contents(frontier: Frontier) -> dict[str, Any]:
    """The same of a stopped crawl."""
    directory = directory_of_contents(frontier)
    if frontier.partition.number != HOME or not (directory / NAME).exists():
        return {}
    try:
        with contextlib.closing(open_index(directory)) as index:
            return {"contents": {**totals(index), "paused": "", "unindexed": 0}}
    except InputError:
        return {}
    except MachineError as error:
        return {"contents": {"failure": str(error)}}


def directory_of_contents(frontier: Frontier) -> Path:
    """Where this crawl keeps contents."""
    named = frontier.settings.keep.directory
    return Path(named) if named else frontier.partition.directory.parent / FOLDER
