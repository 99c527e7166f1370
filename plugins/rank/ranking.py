"""Computes `xyro rank`: importance of a crawl's pages by the offline reference over its Link-Data (P1 section 5).

    opic       the importance that the crawl computed, as of now
    pagerank   PageRank; --focus makes its jumps go to pages that match (personalisation)
    interest   how surely HTML pages lead to XML, or to what --focus names (inverse ranking, P1 5.2)
    both       PageRank and interest in one scan of the links

The matrix is built from links on files (rank_files.py) into files, and mapped; `memory` caps the vectors beside it. The
result takes 8 bytes a page more (12 in single precision; `both`: twice as many), marks of pages 2, and what passes
through some 100 MB.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from xyro.frontier.scope import globs
from xyro.opic.matrix import Array, Matrix, Reading, from_rows
from xyro.opic.offline import Effort, IterationStep, interest, pageranks
from xyro.opic.rank_both import both, chunks
from xyro.plugins.rank.rank_comparison import compare
from xyro.plugins.rank.rank_files import RankFiles, on_files
from xyro.plugins.rank.rank_workers import distributed
from xyro.wire.errors import InputError, MachineError
from xyro.wire.messages import Kind

Method = Literal["opic", "pagerank", "interest", "both"]
Floats = npt.NDArray[np.float64]
Watch = Callable[[IterationStep], None]
COARSE = 1e-5
"""epsilon from which float32 says as much as float64 does, in half the memory: below it, float32 changes by rounding"""


SORTING = 112
"""bytes a page while two rankings are compared"""


@dataclass(frozen=True, slots=True)
class RankRequest:
    """The options of `xyro rank`, checked when built (InputError)."""

    method: Method = "opic"
    damping: float | None = None
    """None: that of the crawl's settings"""
    focus: tuple[str, ...] = ()
    edges: Literal["in", "out", "both"] = "in"
    reading: Literal["reversed", "mean"] = "reversed"
    weighted: bool = False
    epsilon: float = 1e-8
    iterations: int = 1000
    memory: int | None = None
    workers: int = 0
    asynchronous: bool = False

    def __post_init__(self) -> None:
        inverse = self.method in ("interest", "both")
        wrong = [
            (self.method == "opic" and bool(self.focus), "--focus: of --method pagerank, interest or both"),
            (self.method != "pagerank" and self.edges != "in", "--edges: of --method pagerank"),
            (not inverse and self.reading != "reversed", "--reading: of --method interest or both"),
            (self.method != "interest" and self.weighted, "--weighted: of --method interest"),
            (self.workers > 0 and (self.method != "pagerank" or bool(self.focus)),
             "--workers: of --method pagerank without --focus"),
            (self.workers > 0 and self.memory is not None, "--workers: hold their slices in RAM; leave --memory out"),
            (self.asynchronous and not self.workers, "--asynchronous: of workers; add --workers N"),
        ]  # fmt: skip
        if problem := next((text for is_wrong, text in wrong if is_wrong), None):
            raise InputError(problem)

    @property
    def links(self) -> bool:
        return self.method != "opic"

    @property
    def type(self) -> type[np.float32] | type[np.float64]:
        return np.float32 if self.epsilon >= COARSE else np.float64


@dataclass(frozen=True)
class Ranking:
    """`rank` float64[n], mean 1 over the pages of `shown` (bool[n]); `interest` beside it where both were asked."""

    files: RankFiles
    rank: Floats
    shown: npt.NDArray[np.bool_]
    interest: Floats | None = None
    steps: tuple[IterationStep, ...] = ()
    exchanged: dict[str, Any] | None = None
    """of workers: how many, rounds, bytes"""
    compared: dict[str, float | None] | None = None
    """the crawl's own importance against this rank"""


def rank(request: RankRequest, files: RankFiles, folder: Path, watch: Watch | None = None) -> Ranking:
    """Rank a crawl's pages as the request asks; work files go to `folder`. InputError: nothing can be ranked."""
    if not files.n:
        raise InputError("rank: no page is known yet; hand some in with `xyro crawl` or `xyro submit`")
    try:
        return _Work(request, files, folder, watch).compute()
    except OSError as error:
        raise MachineError(f"{folder}: {error.strerror or error}: free or mend the disk") from error


class _Work:
    def __init__(self, request: RankRequest, files: RankFiles, folder: Path, watch: Watch | None) -> None:
        self.request, self.files, self.folder, self.watch = request, files, folder, watch
        self.damping = files.head["damping"] if request.damping is None else request.damping
        spill = on_files(folder / "vectors")
        self.effort = Effort(request.epsilon, request.iterations, memory=request.memory, spill=spill)
        self.everything = np.ones(files.n, np.bool_)

    def compute(self) -> Ranking:
        return {"opic": self._opic, "pagerank": self._pagerank, "interest": self._interest, "both": self._both}[
            self.request.method
        ]()

    def _opic(self) -> Ranking:
        return Ranking(self.files, np.asarray(self.files.importance, np.float64), self.everything)

    def _pagerank(self) -> Ranking:
        matrix = self._matrix("reversed" if self.request.edges == "out" else "pagerank", self.request.edges == "both")
        if self.request.workers:
            return self._distributed(matrix)
        personal = self._matching() if self.request.focus else None
        (found,), steps = pageranks(matrix, [personal], self.damping, self.effort, self.watch)
        return self._compared(found, steps)

    def _distributed(self, matrix: Matrix) -> Ranking:
        outcome, steps = distributed(
            matrix,
            self.request.workers,
            damping=self.damping,
            epsilon=self.request.epsilon,
            limit=self.request.iterations,
            chaotic=self.request.asynchronous,
            watch=self.watch,
        )
        exchanged = {"workers": self.request.workers, "rounds": round(outcome.rounds, 2), "bytes": outcome.bytes}
        return replace(self._compared(outcome.rank, steps), exchanged=exchanged)

    def _compared(self, found: Array, steps: tuple[IterationStep, ...]) -> Ranking:
        rank = _mean_one(found, self.everything)
        plain = self.request.edges == "in" and not self.request.focus
        some = slice(None, None, self._apart())
        compared = compare(np.asarray(self.files.importance[some], np.float64), rank[some]) if plain else None
        return Ranking(self.files, rank, self.everything, steps=steps, compared=compared)

    def _apart(self) -> int:
        """Pages are compared at such a distance that what it takes to sort them stays below the cap on memory."""
        if self.request.memory is None:
            return 1
        return max(1, -(-self.files.n // max(100, self.request.memory // SORTING)))

    def _interest(self) -> Ranking:
        targets, before = self._targets(), tuple[IterationStep, ...]()
        if self.request.weighted:
            (rank,), before = pageranks(self._matrix("pagerank"), [None], self.damping, self.effort, self.watch)
            targets *= rank
        matrix = self._matrix(self.request.reading)
        found, steps = interest(matrix, targets, self.damping, self.effort, self.watch)
        shown = self._leading()
        return Ranking(self.files, _mean_one(found, shown), shown, steps=(*before, *steps))

    def _both(self) -> Ranking:
        done = both(self._matrix(), self._targets(), self.damping, self.request.reading, self.effort, self.watch)
        ranked = self._compared(done.rank, done.steps)
        return replace(ranked, interest=_mean_one(done.interest, self._leading()))

    def _matrix(self, reading: Reading = "pagerank", both_ways: bool = False) -> Matrix:
        allocate = on_files(self.folder / reading)
        return from_rows(
            self.files.n, self.files.rows, reading=reading, both=both_ways, allocate=allocate, dtype=self.request.type
        )

    def _leading(self) -> npt.NDArray[np.bool_]:
        """The pages whose interest is asked for: HTML; all, where a focus may name HTML pages themselves."""
        html: npt.NDArray[np.bool_] = np.asarray(self.files.kind == Kind.HTML)
        return self.everything if self.request.focus or not html.any() else html

    def _targets(self) -> Array:
        """Mark the pages that others are to lead to: 1 there, 0 elsewhere. InputError: there is none."""
        if self.request.focus:
            return self._matching()
        targets = self._aside()
        np.equal(self.files.kind, int(Kind.XML), out=targets, casting="unsafe")
        if not targets.any():
            raise InputError("rank: no XML page was read yet; name what pages are to lead to with --focus PATTERN")
        return targets

    def _aside(self) -> Array:
        """Room for what pages are to lead to, or jumps to go to: on a file, as it is read in order."""
        return on_files(self.folder / "wanted")("wanted", (self.files.n,), self.request.type)

    def _matching(self) -> Array:
        """1 where a pattern of --focus fits the URL. InputError: nowhere."""
        fits = globs(self.request.focus)
        assert fits is not None, "asked where there are patterns"
        found, urls = self._aside(), iter(self.files.urls)
        for pages in chunks(found.size):
            some = islice(urls, pages.stop - pages.start)
            found[pages] = np.fromiter((fits(url) is not None for url in some), np.bool_)
        if not found.any():
            raise InputError(
                f"--focus: no known URL fits {' or '.join(self.request.focus)}; write *news* for a part of it"
            )
        return found


def _mean_one(found: Array, over: npt.NDArray[np.bool_]) -> Floats:
    """Scaled in place, where it has the type."""
    values = found.astype(np.float64, copy=False)
    total = math.fsum(float(values[pages][over[pages]].sum()) for pages in chunks(values.size))
    if total > 0:
        values *= int(over.sum()) / total
    return values
