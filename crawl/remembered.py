"""DIR/settings.toml: what a crawl was begun with, so that a resumed one goes on by the same rules.

It is the lowest layer: later settings files, the environment and the command line beat it, and what they changed is
remembered in turn. Bounds (--max-pages, --max-seconds, --refresh), [api], [log] and the directory belong to one run and
are not kept. People may edit the file while nothing runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from configs.load import load
from configs.schema import Settings
from wire.errors import InputError, MachineError

NAME = "settings.toml"
HEAD = "# What this crawl was begun with. Later settings files, the environment and the command line beat it.\n"
OF_ONE_RUN = frozenset(
    {"api", "log", "store.data", "crawl.max_pages", "crawl.max_seconds", "crawl.refresh", "crawl.partitions"}
)


def settings_of(
    directory: Path, config: Sequence[Path] = (), environ: Mapping[str, str] | None = None, **overrides: object
) -> Settings:
    """What the crawl in `directory` remembers, under the layers given (see configs.load). InputError names the place."""
    kept = directory / NAME
    return load([kept, *config] if kept.is_file() else config, environ, overrides)


def remember(directory: Path, settings: Settings) -> None:
    """Keep what differs from the defaults; whole or not at all. MachineError: the disk failed."""
    text = HEAD + "".join(f"{line}\n" for line in _lines(settings))
    path = directory / NAME
    try:
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            fresh = directory / f".{NAME}.new"
            fresh.write_text(text, encoding="utf-8")
            fresh.replace(path)
    except UnicodeEncodeError:
        raise InputError("a setting from the environment is not UTF-8: write it in a settings file") from None
    except OSError as error:
        raise MachineError(f"{path}: {error.strerror}: free or mend the disk") from error


def _lines(settings: Settings) -> Iterator[str]:
    """TOML, one line each."""
    values, defaults = msgspec.to_builtins(settings), msgspec.to_builtins(Settings())
    rules = values.pop("rules")
    for section, keys in values.items():
        changed = {
            key: value
            for key, value in keys.items()
            if value != defaults[section][key] and not {section, f"{section}.{key}"} & OF_ONE_RUN
        }
        yield from _table(f"[{section}]", changed)
    for rule in rules:
        yield from _table("[[rules]]", {key: value for key, value in rule.items() if value not in (None, "", [])})


def _table(head: str, values: Mapping[str, Any]) -> Iterator[str]:
    if values:
        yield f"\n{head}"
        yield from (f"{key} = {_toml(value)}" for key, value in values.items())


def _toml(value: object) -> str:
    """A string, number, switch or list: written as in JSON."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # TOML's strings must not hold it
