"""Data directories that are alike: `DIR/node-*` stands for node-1, node-2 ..., one a process.

Containers made from one description cannot be told which directory is theirs. They share a volume instead, and each
takes the first number that nobody has: what a container left behind is taken up by the next one that starts.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Final

from xyro.metadata.directories import Lock
from xyro.service.node.run_file import Remote
from xyro.wire.errors import InputError, MachineError

MARK: Final = "*"
HIGHEST: Final = 4096


def is_numbered(path: Path) -> bool:
    """Tell whether the last part of a path ends with the mark."""
    return path.name.endswith(MARK)


@functools.cache
def claim_directory(pattern: Path) -> Path:
    """Return the directory of the first number that no process has; it is this process's until that ends.

    InputError: all numbers are taken. MachineError: the place cannot be written to.
    """
    stem = pattern.name.removesuffix(MARK)
    try:
        pattern.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number in range(1, HIGHEST + 1):
            name = f"{stem}{number}"
            handle = os.open(pattern.with_name(f".{name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            if Lock(handle).take(wait=False):
                return pattern.with_name(name)
    except OSError as error:
        raise MachineError(f"{pattern.parent}: {error.strerror}: mend the disk or the directory's rights") from error
    raise InputError(f"{pattern}: {HIGHEST} processes have one each; name another --data DIR")


def running_directory(pattern: Path) -> Path:
    """Return the first directory whose process answers here (in this container). InputError: none does."""
    stem = pattern.name.removesuffix(MARK)
    numbers = {name: name.name.removeprefix(stem) for name in pattern.parent.glob(f"{stem}*")}
    for path in sorted((path for path, number in numbers.items() if number.isdecimal()), key=lambda p: int(numbers[p])):
        if Remote.find(path) is not None:
            return path
    raise InputError(f"{pattern}: no process here works on one of these; name the directory itself")
