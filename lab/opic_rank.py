"""Table 1 of P1: the offline computation on large graphs, direct, inverse and both at once, timed under a memory cap.

The matrices lie on files in OUT/matrix-N and are mapped; vectors are in RAM as far as the cap allows, then on files.
What is timed is one iteration, beside scipy's product of the same matrix where scipy is installed and the matrix fits.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lab import opic_parts
from opic.graph import power_law, tiny
from opic.matrix import Allocate, Array, Matrix, of_graph
from opic.offline import Effort, Method, Step, pageranks
from wire.clock import SystemClock
from wire.errors import InputError, MachineError

ITERATIONS = 6
CHUNK = 1 << 22
SCIPY_LINKS = 50_000_000
"""links up to which scipy is asked: it holds 12 bytes a link in RAM"""


def on_files(folder: Path) -> Allocate:
    """Arrays mapped from files of that folder, which are made anew."""
    folder.mkdir(parents=True, exist_ok=True)

    def allocate(name: str, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        try:
            return np.memmap(folder / name, dtype, "w+", shape=shape)
        except OSError as error:
            raise MachineError(f"{folder / name}: {error}") from error

    return allocate


def random_matrix(folder: Path, n: int, seed: int = 1) -> Matrix:
    """The standard graph of n pages (in-degree ~ k^-2.1 on [2, n/10], sources uniform) on files, made if need be."""
    if not (folder / "done").exists():
        _generate(on_files(folder), n, np.random.default_rng(seed))
        (folder / "done").touch()
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
    share = allocate("share", (n,), np.float32)
    np.divide(1, degree, out=share, where=degree > 0, casting="unsafe")


def table_one(out: Path, pages: int, memory: int | None, show: bool = True) -> dict[str, Any]:
    """OUT/rank.json and OUT/rank.txt: every way to compute, timed on the standard graph of `pages` pages."""
    folder = out / f"matrix-{pages}"
    matrix = random_matrix(folder, pages)
    ways: list[tuple[str, Method, int, int]] = [
        (f"{method}, {_count(vectors, 'vector')}, {_count(threads, 'thread')}", method, vectors, threads)
        for method in ("jacobi", "gauss-seidel")
        for vectors in (1, 2)
        for threads in (1, 2)
    ]
    spill, base = on_files(folder / "vectors"), _warm()
    work: dict[str, opic_parts.Part] = {
        name: _timed(matrix, Effort(1e-12, ITERATIONS, method, threads, memory=memory, spill=spill), vectors, base)
        for name, method, vectors, threads in ways
    }
    if matrix.m <= SCIPY_LINKS:
        work["scipy"] = lambda watch: _scipy(matrix)
    results = opic_parts.compute(work, {"pages": pages, "memory": memory}, out / f"rank-{pages}", show)
    report = {"pages": pages, "links": matrix.m, "memory": memory, "ways": results}
    opic_parts.write(out / "rank.json", report)
    (out / "rank.txt").write_text(page(report), encoding="utf-8")
    return report


def _timed(matrix: Matrix, effort: Effort, vectors: int, base: float) -> opic_parts.Part:
    """The part that computes so: seconds of the fastest iteration but the first (which may compile and warms up), and
    by how many bytes a page the process's own RAM was above `base` (which what the allocator kept may raise)."""
    targets = np.zeros(matrix.n, np.float32)
    targets[:: max(1, matrix.n // 100)] = 1
    personal = [None, targets][:vectors]
    clock = SystemClock()

    def part(watch: opic_parts.Watch) -> dict[str, float]:
        moments, held = [clock.monotonic()], [0.0]

        def hear(step: Step) -> None:
            moments.append(clock.monotonic())
            held.append(_private() - base)
            watch(step.iteration / effort.most)

        pageranks(matrix, personal, effort=effort, watch=hear)
        return {"seconds": float(np.diff(moments)[1:].min()), "ram_per_page": max(held) / matrix.n}

    return part


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number > 1)}"


def _warm() -> float:
    """Compile what will be needed; the private RAM then."""
    small, one = of_graph(tiny(), np.float32), np.ones(5, np.float32)
    for personal in ([None], [None, one]):
        pageranks(small, personal, effort=Effort(1e-3))
    return _private()


def _private() -> float:
    """Bytes of RAM that are this process's own (what maps files can be dropped by the system)."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1024.0 if sys.platform != "darwin" else 1.0)
    return next(float(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


def _scipy(matrix: Matrix) -> dict[str, float] | None:
    """scipy's product with a vector, float64; None where scipy is not installed."""
    try:
        from scipy.sparse import csr_matrix
    except ImportError:
        return None
    clock, before = SystemClock(), _private()
    product = csr_matrix((np.ones(matrix.m), matrix.sources, matrix.indptr), shape=(matrix.n, matrix.n))
    vector, seconds = np.ones(matrix.n), []
    for _ in range(ITERATIONS):
        begun = clock.monotonic()
        product @ vector
        seconds.append(clock.monotonic() - begun)
    return {"seconds": min(seconds), "ram_per_page": (_private() - before) / matrix.n}


def page(report: dict[str, Any]) -> str:
    """The table for people."""
    cap = "no cap" if report["memory"] is None else f"vectors capped at {report['memory']:,} bytes"
    lines = [f"{report['pages']:,} pages, {report['links']:,} links, {cap}; P1 (2000): 178 s at 20 M pages", ""]
    lines.append(f"{'':36} {'s / iteration':>14} {'private RAM':>14}")
    for name, found in report["ways"].items():
        if found:
            lines.append(f"{name:36} {found['seconds']:>14.4f} {found['ram_per_page']:>9.1f} B/page")
    return "\n".join(lines) + "\n"
