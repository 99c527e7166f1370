"""DIR/crawl.toml: what a crawl was last given that makes it the crawl it is, so that resuming and looking at it need no
options again: its scope, how it meets sites, what importance means in it ([[focus]], and whom the virtual page pays).

An ordinary settings file, laid below all others: what a later run is given replaces it, and is remembered in its turn.
Tables are replaced together: `focus = []` in a settings file ends a focus. How things are done (refresh, windows, all
limits) is each run's own to say.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from xyro.configs.schema import Settings
from xyro.wire.errors import MachineError

NAME = "crawl.toml"
_STORED_FIELDS: Mapping[str, tuple[str, ...]] = {
    "crawl": ("scope", "max_depth", "include", "exclude", "skip_suffixes", "fold_slashes"),
    "fetch": ("only_net", "allow_private", "ports", "name_servers", "contact"),
    "politeness": ("delay",),
    "opic": (
        *("damping", "virtual", "edge_weight", "ordinary_weight", "unread_weight"),
        *("internal_weight", "query_weight"),
    ),
}
"""section -> keys that decide which URLs belong to the crawl, which are never contacted, how sites are met, and what
importance means"""
_TABLES = ("rules", "focus")
_HEAD = """\
# What this crawl was last given (written by xyro). Options and --config files of a later run replace it; rules = [] and
# focus = [] there end these tables.
"""


def paths(directory: Path) -> list[Path]:
    """The remembered settings, as the first of the files to load; none for a new directory."""
    path = directory / NAME
    return [path] if path.is_file() else []


def remember(directory: Path, settings: Settings) -> None:
    """Write DIR/crawl.toml, whole or not at all."""
    path, fresh = directory / NAME, directory / f".{NAME}.new"
    try:
        with fresh.open("w", encoding="utf-8") as file:
            file.write(_HEAD + _toml(settings))
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(path)
    except OSError as error:
        raise MachineError(f"{path}: {error.strerror}: mend the disk") from error


def _toml(settings: Settings) -> str:
    """Write the settings that differ from the defaults. JSON strings, numbers and lists are TOML too if non-ASCII text
    stays."""
    defaults, lines = Settings(), []
    for section, keys in _STORED_FIELDS.items():
        lines.append(f"\n[{section}]")
        now, before = getattr(settings, section), getattr(defaults, section)
        lines += [_line(key, getattr(now, key)) for key in keys if getattr(now, key) != getattr(before, key)]
    for name in _TABLES:
        for table in getattr(settings, name):
            lines.append(f"\n[[{name}]]")
            fields = ((field, getattr(table, field.name)) for field in msgspec.structs.fields(table))
            lines += [_line(field.name, value) for field, value in fields if value != field.default]
    return "\n".join(lines) + "\n"


def _line(key: str, value: object) -> str:
    text = json.dumps(msgspec.to_builtins(value), ensure_ascii=False)
    return f"{key} = {text}".replace("\x7f", "\\u007f")  # the one character that JSON may hold raw and TOML may not
