"""Matrices of links on files, larger than anyone wants in RAM: made once, mapped, and put out of the page cache."""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from xyro.metadata.room import reserve
from xyro.opic.graph import power_law
from xyro.opic.matrix import Allocate, Array, Matrix, loops
from xyro.wire.errors import InputError, MachineError

CHUNK = 1 << 22
"""links made or turned round at a time"""


def on_files(folder: Path) -> Allocate:
    """Arrays mapped from files of that folder, which are made anew; MachineError where they have no room: before
    anything is written, for what writes to a map of which the disk is full is killed without a word (SIGBUS)."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: no directory for results: {error.strerror}") from error

    def allocate(name: str, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        try:
            with (folder / name).open("wb") as file:
                reserve(file.fileno(), math.prod(shape) * np.dtype(dtype).itemsize)
            return np.memmap(folder / name, dtype, "r+", shape=shape)
        except OSError as error:
            raise MachineError(f"{folder / name}: {error.strerror}: free or mend the disk") from error

    return allocate


def random_matrix(folder: Path, n: int, seed: int = 1) -> Matrix:
    """The standard graph of n pages (in-degree ~ k^-2.1 on [2, n/10], sources uniform) on files, made if need be."""
    if not (folder / "done").exists():
        _generate(on_files(folder), n, np.random.default_rng(seed))
        (folder / "done").touch()
    return _mapped(folder)


def reversed_matrix(folder: Path, matrix: Matrix) -> Matrix:
    """Turn the links round, on files: the matrix of the inverse ranking, share 1/in-degree (P1 5.2, a)."""
    if not (folder / "done").exists():
        _turn_round(on_files(folder), matrix)
        (folder / "done").touch()
    return _mapped(folder)


def _mapped(folder: Path) -> Matrix:
    names = (("indptr", np.int32), ("sources", np.int32), ("share", np.float32))
    indptr, sources, share = (np.memmap(folder / name, dtype, "c") for name, dtype in names)
    return Matrix(indptr, sources, share, np.ones(1, np.float32), np.ones(1, np.float32))


def _generate(allocate: Allocate, n: int, rng: np.random.Generator) -> None:
    ends = np.concatenate(([0], np.cumsum(power_law(n, rng))))
    m = int(ends[-1])
    if m >= 2**31:
        raise InputError(f"{m:,} links: 2^31 at most; ask for fewer pages")
    allocate("indptr", (n + 1,), np.int32)[:] = ends
    sources, degree = allocate("sources", (m,), np.int32), np.zeros(n, np.int32)
    for low in range(0, m, CHUNK):
        part = rng.integers(n, size=min(CHUNK, m - low), dtype=np.int32)
        sources[low : low + part.size] = part
        degree += np.bincount(part, minlength=n).astype(np.int32)
    _shares(allocate, degree)


def _shares(allocate: Allocate, degree: Array) -> None:
    share = allocate("share", (degree.size,), np.float32)
    np.divide(1, degree, out=share, where=degree > 0, casting="unsafe")


def _turn_round(allocate: Allocate, matrix: Matrix) -> None:
    """Links arrive in the order of their targets; each goes to the cursor of its source's row."""
    degree = np.zeros(matrix.n, np.int64)
    for _, sources in _links(matrix):
        degree += np.bincount(sources, minlength=matrix.n)
    cursor = np.concatenate(([0], np.cumsum(degree)))
    allocate("indptr", (matrix.n + 1,), np.int32)[:] = cursor
    turned, unit = allocate("sources", (matrix.m,), np.int32), np.ones(1, np.float32)
    cursor = cursor[:-1].copy()
    for targets, sources in _links(matrix):
        loops().place(sources, targets, unit, cursor, turned, unit)
    _shares(allocate, np.diff(matrix.indptr))


def _links(matrix: Matrix) -> Iterator[tuple[Array, Array]]:
    """(targets, sources) of about CHUNK links at a time."""
    low = 0
    while low < matrix.n:
        high = int(np.searchsorted(matrix.indptr, int(matrix.indptr[low]) + CHUNK, side="right")) - 1
        high = min(max(high, low + 1), matrix.n)
        first, last = int(matrix.indptr[low]), int(matrix.indptr[high])
        lengths = np.diff(matrix.indptr[low : high + 1])
        yield np.repeat(np.arange(low, high), lengths), matrix.sources[first:last].astype(np.int64)
        low = high


def forget(matrix: Matrix) -> bool:
    """Put the matrix out of RAM, so that the next scan reads it from disk. False: this system has no way to."""
    if not hasattr(os, "posix_fadvise") or not hasattr(mmap, "MADV_DONTNEED"):
        return False
    for array in (matrix.indptr, matrix.sources, matrix.share):
        path = getattr(array, "filename", None)
        if path is None:
            return False
        array._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]  # pages that are mapped stay cached
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fdatasync(handle)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(handle)
    return True
