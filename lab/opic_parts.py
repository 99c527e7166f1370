"""A long piece of work in parts: each is computed once, kept as JSON, and not again after an interruption.

What comes in: named parts (functions of a `watch`, which they tell the share done) and a key that says with which
settings. What goes out: {name: result}. Invariant: a file DIR/parts/NAME.json is whole (written aside, then renamed).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Watch = Callable[[float], None]
Part = Callable[[Watch], Any]


def compute(parts: Mapping[str, Part], key: Mapping[str, Any], out: Path, show: bool = True) -> dict[str, Any]:
    """The result of each part: from its file where that has the same key, else computed and written."""
    folder = out / "parts"
    folder.mkdir(parents=True, exist_ok=True)
    results = {}
    with _progress(show) as begin:
        for name, part in parts.items():
            path = folder / f"{name.replace(' ', '-')}.json"
            watch = begin(name)
            kept = _read(path)
            if kept is None or kept["key"] != json.loads(json.dumps(key)):
                kept = {"key": dict(key), "result": part(watch)}
                write(path, kept)
            watch(1.0)
            results[name] = json.loads(json.dumps(kept["result"]))
    return results


def write(path: Path, content: Any) -> None:
    """The content as JSON at `path`, all of it or nothing."""
    aside = path.with_suffix(".part")
    aside.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    aside.replace(path)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return kept if isinstance(kept, dict) and kept.keys() >= {"key", "result"} else None


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
