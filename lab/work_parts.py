"""A long piece of work in parts: each is computed once, kept as JSON, and not again after an interruption.

What comes in: named parts (functions of a `watch`, which they tell the share done) and the settings each depends on.
What goes out: {name: result}. Invariant: a file DIR/parts/NAME.json is whole (written aside, then renamed). It is used
again where it was computed with the same settings by the same VERSION.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xyro.wire.errors import InputError

Watch = Callable[[float], None]
Part = Callable[[Watch], Any]
VERSION = 3
"""of what parts mean: raised by hand when a change of the code makes results kept on disk wrong"""


@dataclass(frozen=True, slots=True)
class KeyedPart:
    """A part that depends on these settings alone, whatever else the run is asked for."""

    settings: Mapping[str, Any]
    run: Part

    def __call__(self, watch: Watch) -> Any:
        return self.run(watch)


def compute(parts: Mapping[str, Part], key: Mapping[str, Any], out: Path, show: bool = True) -> dict[str, Any]:
    """The result of each part: from its file where that has the same key, else computed and written.

    key: the settings of all parts that are not `Keyed`. InputError: `out` cannot be written.
    """
    folder = _folder(out)
    results = {}
    with _progress(show) as begin:
        for name, part in parts.items():
            path = folder / f"{name.replace(' ', '-')}.json"
            watch = begin(name)
            stored = _read(path)
            settings = part.settings if isinstance(part, KeyedPart) else key
            full = json.loads(json.dumps({"version": VERSION, **settings}))
            if stored is None or stored["key"] != full:
                stored = {"key": full, "result": part(watch)}
                write(path, stored)
            watch(1.0)
            results[name] = json.loads(json.dumps(stored["result"]))
    return results


def _folder(out: Path) -> Path:
    folder = out / "parts"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{out}: no directory for results: {error.strerror}") from error
    return folder


def write(path: Path, content: Any) -> None:
    """The content as JSON at `path`, all of it or nothing."""
    aside = path.with_suffix(".part")
    aside.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    aside.replace(path)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return stored if isinstance(stored, dict) and stored.keys() >= {"key", "result"} else None


@contextmanager
def _progress(show: bool) -> Iterator[Callable[[str], Watch]]:
    """A bar with an estimated end on standard error for each part; nothing where `show` is off."""
    if not show:
        yield lambda name: lambda share: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = TextColumn("{task.description:24}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(file=sys.stderr)) as progress:

        def begin(name: str) -> Watch:
            task = progress.add_task(name, total=1.0)
            return lambda share: progress.update(task, completed=share)

        yield begin
