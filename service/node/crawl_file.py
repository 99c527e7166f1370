"""DIR/crawl.toml: what a crawl was last given that makes it the crawl it is, so that resuming and looking at it need no
options again: its scope, how it meets sites, what importance means in it ([[focus]], and whom the virtual page pays).

An ordinary settings file, laid below all others: what a later run is given replaces it, and is remembered in its turn.
Tables are replaced together: `focus = []` in a settings file ends a focus. How things are done (refresh, windows, all
limits) is each run's own to say.

It decides whom the crawl contacts, so the store has its text, too: a file that was lost, cut or edited would let a run
that gives no options forget --only-net and the scope. Such a file stops the start (`check`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgpack
import msgspec

from xyro.configs.schema import Settings
from xyro.metadata import rows
from xyro.metadata.directories import write_file
from xyro.metadata.store import KeyValue
from xyro.wire.errors import InputError

NAME = "crawl.toml"
_KEY = rows.META.key("crawl.toml")
"""the texts that the file may have: the one of now, and while it is replaced the next one"""
_STORED_FIELDS: Mapping[str, tuple[str, ...]] = {
    "crawl": ("scope", "max_depth", "include", "exclude", "skip_suffixes", "fold_slashes"),
    "fetch": (
        "only_net",
        "allow_private",
        "ports",
        "name_servers",
        "contact",
        "proxy",
        "proxy_resolves",
        "ca_file",
        "parsers",
    ),
    "identity": ("purpose", "sign", "key", "agent"),
    "politeness": ("delay",),
    "keep": ("warc", "text", "extractor", "directory"),
    "opic": (
        *("damping", "virtual", "edge_weight", "ordinary_weight", "unread_weight"),
        *("internal_weight", "query_weight", "values"),
    ),
}
"""section -> keys that decide which URLs belong to the crawl, which are never contacted, how sites are met, what
importance means, and what is kept"""
_OWN_FIELDS: Mapping[str, tuple[str, ...]] = {"changes": ("record",)}
"""what is remembered, too, but may differ between the nodes of a cluster"""
_TABLES = ("rules", "focus")
_HEAD = """\
# What this crawl was last given (written by xyro). Options and --config files of a later run replace it; rules = [] and
# focus = [] there end these tables.
"""


def paths(directory: Path) -> list[Path]:
    """The remembered settings, as the first of the files to load; none for a new directory."""
    path = directory / NAME
    return [path] if path.is_file() else []


def agreed(settings: Settings) -> dict[str, Any]:
    """The settings that make the crawl it is, as `section.key` or the name of a table -> plain value: the same on all
    nodes of a cluster."""
    found: dict[str, Any] = {
        f"{section}.{key}": msgspec.to_builtins(getattr(getattr(settings, section), key))
        for section, keys in _STORED_FIELDS.items()
        for key in keys
    }
    found |= {name: msgspec.to_builtins(getattr(settings, name)) for name in _TABLES}
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(found))
    return plain


def with_agreed(settings: Settings, found: Mapping[str, Any]) -> Settings:
    """The settings with those that `agreed` found in others."""
    plain = msgspec.to_builtins(settings)
    for name, value in found.items():
        section, _, key = name.partition(".")
        if key:
            plain[section][key] = value
        else:
            plain[section] = value
    return msgspec.convert(plain, Settings)


def text_of(settings: Settings) -> str:
    """The settings that make the crawl it is, as a settings file."""
    return _HEAD + _toml(settings)


def check(directory: Path, store: KeyValue) -> None:
    """InputError: the file is not as it was written last. A directory whose store knows none yet is taken as it is.

    store: that of the first partition.
    """
    texts = _texts(store)
    path = directory / NAME
    if not texts or (path.is_file() and path.read_text(encoding="utf-8", errors="replace") in texts):
        return
    fresh = directory / f"{NAME}.stored"
    write_file(fresh, texts[-1].encode())
    fault = "is not as xyro wrote it" if path.exists() else "is missing"
    raise InputError(
        f"{path}: {fault}, and it decides whom this crawl contacts: `mv {fresh} {path}` brings it back; "
        "changes are given by options or --config"
    )


def remember(directory: Path, settings: Settings, *stores: KeyValue) -> None:
    """Write DIR/crawl.toml and the text that the stores of its partitions have of it. A kill leaves both old, both new,
    or a store with both texts. (A node of a cluster may have no partition yet; its settings are compared with those
    of the cluster.)"""
    text, path = text_of(settings), directory / NAME
    now = [path.read_text(encoding="utf-8", errors="replace")] if path.is_file() else []
    others = [store for store in stores if not now == [text] == _texts(store)]
    for store in others:
        _put(store, [*now, text])
    if now != [text]:
        write_file(path, text.encode())
    for store in others:
        _put(store, [text])


def stored_text(store: KeyValue) -> str:
    """Return the text that the store has of the file, empty where it has none."""
    return (_texts(store) or [""])[-1]


def _texts(store: KeyValue) -> list[str]:
    stored = store.get(_KEY)
    return msgpack.unpackb(stored) if stored else []


def _put(store: KeyValue, texts: list[str]) -> None:
    batch = store.batch()
    batch.put(_KEY, msgpack.packb(texts))
    store.write(batch)


def _toml(settings: Settings) -> str:
    """Write the settings that differ from the defaults. JSON strings, numbers and lists are TOML too if non-ASCII text
    stays."""
    defaults, lines = Settings(), []
    for section, keys in _STORED_FIELDS.items():
        lines.append(f"\n[{section}]")
        now, before = getattr(settings, section), getattr(defaults, section)
        lines += [_line(key, getattr(now, key)) for key in keys if getattr(now, key) != getattr(before, key)]
    for section, keys in _OWN_FIELDS.items():
        now, before = getattr(settings, section), getattr(defaults, section)
        if changed := [_line(key, getattr(now, key)) for key in keys if getattr(now, key) != getattr(before, key)]:
            lines += [f"\n[{section}]", *changed]
    for name in _TABLES:
        for table in getattr(settings, name):
            lines.append(f"\n[[{name}]]")
            fields = ((field, getattr(table, field.name)) for field in msgspec.structs.fields(table))
            lines += [_line(field.name, value) for field, value in fields if value != field.default]
    return "\n".join(lines) + "\n"


def _line(key: str, value: object) -> str:
    plain = msgspec.to_builtins(value)
    if isinstance(plain, dict):  # of texts
        text = f"{{ {', '.join(_line(json.dumps(name), each) for name, each in plain.items())} }}"
    else:
        text = json.dumps(plain, ensure_ascii=False)
    return f"{key} = {text}".replace("\x7f", "\\u007f")  # the one character that JSON may hold raw and TOML may not
