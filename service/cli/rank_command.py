"""The command `xyro rank`."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xyro.service.cli.crawl_place import CrawlPlace, with_place
from xyro.service.cli.options import FiniteFloat, as_json_too, tell, terminal_width
from xyro.service.cli.stopped_crawl import stopped_views
from xyro.wire.errors import InputError, MachineError

if TYPE_CHECKING:
    from xyro.plugins.rank.rank_files import RankFiles
    from xyro.plugins.rank.ranking import Ranking, RankRequest

UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class ByteSize(click.ParamType[int]):
    """A number of bytes: 512M, 2G."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"(\d{1,15})([kmgt]?)(i?b)?", value.strip().lower())
        if found is None:
            self.fail(f"{value!r} is not a size; write 512M or 2G", param, ctx)
        return int(found[1]) * UNITS[found[2]]


@click.command()
@with_place
@click.option(
    "--method",
    type=click.Choice(["opic", "pagerank", "interest", "both"]),
    default="opic",
    help="opic: the crawl's own importance; pagerank; interest: HTML pages that lead to XML; both in one scan [opic].",
)
@click.option("--damping", type=FiniteFloat(0, 1, max_open=True), help="Damping factor [that of the crawl].")
@click.option(
    "--focus",
    multiple=True,
    metavar="PATTERN",
    help="URLs that jumps go to (pagerank), or that pages lead to (interest).",
)
@click.option("--edges", type=click.Choice(["in", "out", "both"]), default="in", help="Links that count for pagerank.")
@click.option(
    "--reading",
    type=click.Choice(["reversed", "mean"]),
    default="reversed",
    help="Interest as PageRank of the reversed graph, or as the mean over a page's links [reversed].",
)
@click.option("--weighted", is_flag=True, help="Interest in XML pages in proportion to their PageRank.")
@click.option(
    "--epsilon",
    type=FiniteFloat(0, 1, min_open=True),
    default=1e-8,
    help="Stop when an iteration moves less; 1e-5 and more computes in single precision [1e-8].",
)
@click.option(
    "--iterations", type=click.IntRange(1, 1_000_000), default=1000, help="At most so many iterations [1000]."
)
@click.option("--memory", type=ByteSize(), help="RAM for vectors, such as 512M; the rest is mapped from files [any].")
@click.option("--workers", type=click.IntRange(0, 1024), default=0, help="Compute pagerank by N workers over the bus.")
@click.option("--asynchronous", is_flag=True, help="Let workers be up to 16 sweeps apart.")
@click.option("--keep", is_flag=True, help='Store the interest for [refresh] guide = "interest".')
@click.option("-n", "count", type=click.IntRange(1, 100_000), default=20, help="How many pages are shown [20].")
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "csv", "parquet"]),
    help="Format of all rows [by the ending of FILE, or jsonl].",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True), help="File of all rows."
)
@as_json_too
def rank(
    place: CrawlPlace,
    count: int,
    form: str | None,
    output: Path | None,
    keep: bool,
    as_json: bool,
    **asked: Any,
) -> None:
    """Rank all known pages offline, over the stored links.

    Works on a running or stopped crawl as of one commit, and on a cluster as of one commit of each node. Also says how
    close the crawl's own importance is.
    """
    from xyro.plugins.rank.ranking import RankRequest, rank
    from xyro.service.views.export import form_of

    out = None if output == Path("-") else output
    writing, form = form is not None or output is not None, form_of(form, out)
    request = RankRequest(**asked)
    _check(request, keep, writing, form, out, as_json)
    if keep:
        _refuse_cluster(place)
    from xyro.plugins.rank.rank_progress import watched

    with _folder(place) as folder:
        with watched(request.epsilon, request.iterations) as tell:
            files = _read(place, request, folder / "crawl")
            ranked = rank(request, files, folder, tell)
        if keep:
            _keep(place.directory, ranked)
        _tell(request, ranked, count, as_json, (form, out) if writing else None)


def _check(request: RankRequest, keep: bool, writing: bool, form: str, out: Path | None, as_json: bool) -> None:
    from xyro.service.views.export import check

    if keep and request.method not in ("interest", "both"):
        raise InputError("--keep: of --method interest or both")
    if keep and request.focus and request.method == "both":
        raise InputError("--keep: with --focus, of --method interest")
    if writing:
        check(form, out)
        if as_json and out is None:
            raise InputError("--json: the rows go to standard output already; name a file with -o FILE")


def _refuse_cluster(place: CrawlPlace) -> None:
    """InputError: the stores, beside which it is kept, are those of several nodes."""
    from xyro.service.node.data_dir import NODE_FILE

    if place.join or (place.directory / NODE_FILE).exists():
        raise InputError("--keep: of a crawl of one process; each node of a cluster has stores of its own")


def _read(place: CrawlPlace, request: RankRequest, folder: Path) -> RankFiles:
    """The crawl on files; a stopped directory is let go of again."""
    from xyro.plugins.rank.rank_files import RankFiles
    from xyro.plugins.rank.rank_input import pieces, unpacked

    files, remote = RankFiles(folder), place.find()
    if remote is not None:
        files.take(unpacked(remote.parts("/rank", links=int(request.links))))
        return files
    with stopped_views(place.directory) as views:
        files.take(unpacked(pieces(views, request.links)))
    return files


@contextlib.contextmanager
def _folder(place: CrawlPlace) -> Iterator[Path]:
    """A folder for work files, removed at the end: in the data directory, where those go that a killed process left; of
    a cluster where this machine has its temporary files (TMPDIR)."""
    if place.join:
        with tempfile.TemporaryDirectory(prefix="xyro-rank-") as temporary:
            yield Path(temporary)
        return
    directory = place.directory
    if not directory.is_dir():
        raise InputError(f"{directory}: no such data directory; `xyro crawl URL --data {directory}` makes one")
    from xyro.service.node.run_file import alive

    for left in directory.glob(".rank-*"):
        owner = left.name.split("-")[1]
        if owner.isdigit() and not alive(int(owner)):
            shutil.rmtree(left, ignore_errors=True)
    try:
        folder = Path(tempfile.mkdtemp(prefix=f".rank-{os.getpid()}-", dir=directory))
    except OSError as error:
        raise MachineError(f"{directory}: {error.strerror}: work files must be written there") from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _keep(directory: Path, ranked: Ranking) -> None:
    """The interest of each partition beside its store, at the weight of the crawl's importance."""
    import numpy as np

    from xyro.plugins.rank.guide import values_of, write
    from xyro.wire.messages import Kind

    files = ranked.files
    html = np.asarray(files.kind == Kind.HTML)
    interest = ranked.rank if ranked.interest is None else ranked.interest
    interest_of_pages = values_of(interest, np.asarray(files.importance) * files.head["mean"], html)
    for number, entries in enumerate(files.numbers):
        own, values = files.own[number], np.full(entries.size, np.nan, np.float32)
        mine = (entries >= own.start) & (entries < own.stop)
        values[mine] = interest_of_pages[entries[mine]]
        write(directory / f"p{number:04d}", number, values)


def _tell(
    request: RankRequest, ranked: Ranking, count: int, as_json: bool, file: tuple[str, Path | None] | None
) -> None:
    from xyro.plugins.rank.rank_report import rows, sentences, summary, table
    from xyro.service.views.export import write_rows

    fields = summary(request, ranked)
    if file is not None:
        write_rows("rank", rows(ranked), *file)
    if as_json:
        steps = [step.residual for step in ranked.steps]
        click.echo(json.dumps({**fields, "residuals": steps, "top": list(rows(ranked, count))}))
        return
    if file is None:
        tell(table(list(rows(ranked, count)), terminal_width()))
    for sentence in sentences(fields):
        tell(sentence, err=True)
