"""Plug-ins that installed packages offer: entry points of the groups below, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xyro.wire.errors import InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PARSERS = "xyro.parsers"
"""callables of a page that return its links and text (xyro/page_plug_ins.py)"""
VALUES = "xyro.values"
"""callables of a page that return which share of its importance it passes on (xyro/page_plug_ins.py)"""
POLICIES = "xyro.policies"
"""makers of rules that `xyro lab refresh` compares (lab/refresh/rules.py)"""
SINKS = "xyro.sinks"
"""callables that take a list of changes (plugins/changes/sink_targets.py)"""


def is_offered(group: str, name: str) -> bool:
    """Tell whether an installed package offers a plug-in of this name."""
    return name in _offered(group)


def check_offered(group: str, name: str) -> None:
    """InputError: no installed package offers it. Nothing of it is imported."""
    offered = _offered(group)
    if name not in offered:
        others = ", ".join(sorted(offered)) or "none"
        raise InputError(f"{name!r}: no installed package has this entry point of {group} (installed: {others})")


def plug_in(group: str, name: str) -> Callable[..., Any]:
    """Import the plug-in. InputError: no installed package offers it, or it cannot be imported."""
    check_offered(group, name)
    found = _offered(group)[name]
    try:
        loaded: Callable[..., Any] = found.load()
    except Exception as error:
        raise InputError(f"{name!r}: {found.value} of {group} cannot be imported: {error!r}") from error
    return loaded


def _offered(group: str) -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # 10 ms, which a crawl without plug-ins does not need

    return {found.name: found for found in entry_points(group=group)}
