"""`xyro migrate`: a data directory of format 1 made one of the present format; the old one stays as a backup.

    1. Each partition is converted into DIR's sibling .DIR.migrating, one directory that appears when it is whole.
    2. The new directory is audited.
    3. The two change places in one step; then the old one is renamed to DIR.format-1.

Until step 3 DIR is as it was; after it, DIR is of the present format. A process that is killed anywhere leaves one of
these two, and the next `xyro migrate` goes on where it stopped: partitions that are whole are not converted again,
unless DIR was written to meanwhile.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from xyro.configs.gone import stand_in
from xyro.metadata import format1
from xyro.metadata.directories import create_directory, sync
from xyro.metadata.store import Store
from xyro.metadata.version import VERSION
from xyro.service.node import crawl_file
from xyro.wire.errors import InputError, MachineError

_EXCHANGE = 2
"""RENAME_EXCHANGE of renameat2(2)"""
_HERE = -100
"""AT_FDCWD"""
_SPARE = 1.2
"""room that is asked for, in sizes of the old directory"""
Check = Callable[[Path], dict[str, Any]]


def migrate(directory: Path, check: Check) -> dict[str, Any]:
    """Carry a data directory over; what was done. `check` audits the new one ({"ok": ..., "violations": [...]}).

    InputError: no such directory, in use, no room, or something is in the way; MachineError: damaged, or the audit of
    the new directory fails. DIR is unchanged after any error.
    """
    path = directory.resolve()
    fresh, backup = path.with_name(f".{path.name}.migrating"), path.with_name(f"{path.name}.format-{format1.FORMAT}")
    if not path.exists() and fresh.exists() and backup.exists():  # killed between two plain renames
        fresh.rename(path)
    folders = _folders(path)
    if _format_of(folders[0]) == VERSION:
        return _finished(path, fresh, backup)
    if backup.exists():
        raise InputError(f"{backup}: is in the way of the backup: move it elsewhere")
    with contextlib.ExitStack() as stack:
        stores = [stack.enter_context(contextlib.closing(Store.open(folder / "store"))) for folder in folders]
        _require_room(path)
        fresh.mkdir(0o700, exist_ok=True)
        for folder, store in zip(folders, stores, strict=True):
            _convert(folder, store, fresh / folder.name)
        for file in crawl_file.paths(path):
            _write(fresh / file.name, _without_gone(file.read_text(encoding="utf-8")))
        result = check(fresh)
        if not result["ok"]:
            raise MachineError(f"{fresh}: its audit finds {result['violations'][0]}: {path} is unchanged; tell of it")
        _exchange(path, fresh, backup)
    return {"migrated": True, "format": VERSION, "backup": str(backup), "pages": result["pages"]}


def _finished(path: Path, fresh: Path, backup: Path) -> dict[str, Any]:
    """The directory is of the present format: name the old one, if a kill left that undone, or sweep up a try."""
    if fresh.exists():
        if _format_of(_folders(fresh)[0]) == format1.FORMAT and not backup.exists():
            fresh.rename(backup)
            sync(path.parent)
            return {"migrated": True, "format": VERSION, "backup": str(backup)}
        shutil.rmtree(fresh)
    return {"migrated": False, "format": VERSION, "backup": None}


def _folders(path: Path) -> list[Path]:
    folders = sorted(path.glob("p[0-9][0-9][0-9][0-9]")) if path.is_dir() else []
    if not folders:
        raise InputError(f"{path}: not a data directory of Xyro (no p0000 in it); name another one with --data")
    return folders


def _format_of(folder: Path) -> int:
    """The format of a partition. InputError: neither the one before nor the present one."""
    with contextlib.closing(Store.open(folder / "store")) as store:
        found = format1.facts_of(store).get("format")
    if found not in (format1.FORMAT, VERSION):
        raise InputError(f"{folder.parent}: data of format {found}: open it with the Xyro that wrote it")
    return int(found)


def _require_room(path: Path) -> None:
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    free = shutil.disk_usage(path.parent).free
    if free < size * _SPARE:
        raise InputError(
            f"{path.parent}: {free:,} bytes are free, {int(size * _SPARE):,} are needed: the old directory stays as a "
            "backup; free some, or move the directory to another disk"
        )


def _convert(folder: Path, old: Store, target: Path) -> None:
    """One partition, unless it was converted since its last commit."""
    if target.exists():
        with contextlib.closing(Store.open(target / "store")) as done:
            same = format1.facts_of(done)["seed"] == format1.facts_of(old)["seed"]
            if same and format1.last_commit(done) == format1.last_commit(old):
                return
        shutil.rmtree(target)

    def fill(path: Path) -> None:
        format1.convert(old, folder, path)
        for file in _kept_files(folder):
            shutil.copy2(file, path / file.name)

    create_directory(target, fill)


def _kept_files(folder: Path) -> Iterator[Path]:
    """Finished files beside the store that are of no format of ours: ranks that were computed."""
    for file in folder.iterdir():
        if file.is_file() and not file.name.startswith((".", "snapshot-")) and file.suffix not in (".tmp", ".new"):
            yield file


def _without_gone(text: str) -> str:
    """A crawl.toml without the keys that went; each stands on a line of its own there (crawl_file.py)."""
    lines, section = [], ""
    for line in text.splitlines(keepends=True):
        key, _, value = line.partition("=")
        if line.startswith("["):
            section = line.strip().strip("[]")
        elif value and stand_in(section, key.strip(), value.strip().strip('"')) is not None:
            continue
        lines.append(line)
    return "".join(lines)


def _write(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _exchange(path: Path, fresh: Path, backup: Path) -> None:
    """`fresh` becomes `path`, and what was there `backup`. At no moment is there no directory, if the system can."""
    sync(fresh)
    try:
        if _swap(path, fresh):
            sync(path.parent)
            fresh.rename(backup)
        else:
            path.rename(backup)
            fresh.rename(path)
        sync(path.parent)
    except OSError as error:
        raise MachineError(f"{path}: cannot be renamed ({error.strerror}): migrate a copy elsewhere") from error


def _swap(path: Path, other: Path) -> bool:
    """Exchange two names in one step (Linux); False where the system or the file system cannot."""
    library = ctypes.CDLL(None, use_errno=True)
    rename = getattr(library, "renameat2", None)
    return rename is not None and rename(_HERE, os.fsencode(path), _HERE, os.fsencode(other), _EXCHANGE) == 0
