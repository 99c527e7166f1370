"""SIGHUP: a daemon reads its settings again, from the files, environment and options that it was started with.

What can change while it runs does, between two commit groups; what cannot is told in one line and stays as it was until
the next start. A file that is not sound changes nothing, and the log says what is wrong with it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from xyro.configs.schema import RefreshSettings, Settings
from xyro.service.node.site_factory import site_options
from xyro.wire.errors import InputError
from xyro.wire.log_setup import set_up

if TYPE_CHECKING:
    from xyro.service.node.node import Node

ALL = ("*",)
AT_START = ("guide", "time_unit")
"""keys of [refresh] by which queues are built when the process starts"""
LIVE: Mapping[str, tuple[str, ...]] = {
    "refresh": tuple(key for key in RefreshSettings.__struct_fields__ if key not in AT_START),
    "politeness": ALL,
    "log": ALL,
    "opic": ("spend_ratio",),
    "crawl": ("confirm_dead",),
    "budgets": ALL,
    "blackouts": ALL,
    "sites": ALL,
    "fetch": ("headers", "proxy", "proxy_auth", "proxy_resolves"),
}
"""section -> keys that can change while it runs"""
SECRETS = "secrets"
"""name of a change of what [[sites]] and [fetch] take from elsewhere"""
SITE_SETTINGS = frozenset({"sites", *(f"fetch.{key}" for key in LIVE["fetch"])})
_log = logging.getLogger("xyro")


def merged(now: Settings, wanted: Settings) -> tuple[Settings, list[str], list[str]]:
    """(settings as they can be, what changes, what stays as it was): names such as "refresh.gamma", "budgets"."""
    changed: list[str] = []
    left: list[str] = []
    sections: dict[str, Any] = {}
    for name in now.__struct_fields__:
        before, after = getattr(now, name), getattr(wanted, name)
        if before == after:
            continue
        if not isinstance(before, msgspec.Struct):
            _sort(name, LIVE.get(name) == ALL, changed, left)
            sections[name] = after if LIVE.get(name) == ALL else before
            continue
        keys = {key for key in before.__struct_fields__ if getattr(before, key) != getattr(after, key)}
        live = {key for key in keys if _is_live(name, key)}
        for key in sorted(keys):
            _sort(f"{name}.{key}", key in live, changed, left)
        sections[name] = msgspec.structs.replace(before, **{key: getattr(after, key) for key in live})
    return msgspec.structs.replace(now, **sections), changed, left


def _is_live(section: str, key: str) -> bool:
    live = LIVE.get(section, ())
    return live == ALL or key in live


def _sort(name: str, live: bool, changed: list[str], left: list[str]) -> None:
    (changed if live else left).append(name)


def reload(node: Node, read: Callable[[], Settings]) -> None:
    """On the event loop. `read`: the settings of now; what it raises is logged and changes nothing."""
    try:
        wanted = node.network.agreed(read())
    except InputError as error:
        _log.error("settings not read again, nothing changed: %s", error)
        return
    follow(node, wanted)


def follow(node: Node, wanted: Settings) -> None:
    """Go by these settings from now on, as far as a running crawl can. Call between two commit groups."""
    settings, changed, left = merged(node.settings, wanted)
    try:
        sites = site_options(settings)
    except InputError as error:
        _log.error("settings not read again, nothing changed: %s", error)
        return
    if sites != node.fetch_loop.reader.options.sites and not SITE_SETTINGS.intersection(changed):
        changed.append(SECRETS)  # their environment variables and files say something else now
    if changed:
        set_up(settings.log.level, settings.log.format)
        node.follow(settings)
        node.fetch_loop.reader.follow(sites)
    _log.warning("settings read again: %s", f"{', '.join(changed)} changed" if changed else "nothing changed")
    if left:
        _log.warning("settings that need a restart, and stay as they were: %s", ", ".join(left))
