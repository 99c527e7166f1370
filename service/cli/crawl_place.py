"""The crawl that a command is about: a data directory (`--data`), or the cluster of a broker (`--join`)."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xyro.service.cli.options import directory_of, with_data
from xyro.service.cli.running_crawl import daemon, find_running
from xyro.wire.errors import InputError

if TYPE_CHECKING:
    from xyro.service.cluster.cluster_remote import ClusterRemote
    from xyro.service.node.run_file import Remote

Command = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class CrawlPlace:
    """Where a command asks."""

    data: Path | None = None
    join: str = ""
    """a broker's URL or the folder of `xyro hub`; "": the data directory"""
    ca: Path | None = None

    @property
    def directory(self) -> Path:
        """The data directory, where it is not a cluster."""
        return directory_of(self.data)

    def find(self, wait: float | None = None) -> Remote | ClusterRemote | None:
        """The process or the cluster that answers; None: the directory's crawl does not run. A process that starts is
        waited for."""
        return self.cluster() or find_running(self.directory, wait)

    def daemon(self, wait: float | None = None) -> Remote | ClusterRemote:
        """The same. InputError: there is none."""
        return self.cluster() or daemon(self.directory, wait)

    def cluster(self) -> ClusterRemote | None:
        """The cluster that answers; None: a data directory is meant."""
        if not self.join:
            return None
        from xyro.service.cluster.cluster_remote import ClusterRemote
        from xyro.service.cluster.join_target import join_target

        remote = ClusterRemote(*join_target(self.join, self.ca))
        click.get_current_context().call_on_close(remote.close)
        return remote


def with_place(command: Command) -> Command:
    """Give a command --data, --join and --ca, and `place` as its parameter."""

    @functools.wraps(command)
    def placed(*args: Any, data: Path | None, join: str | None, ca: Path | None, **rest: Any) -> Any:
        return command(*args, place=place_of(data, join, ca), **rest)

    for option in reversed(_OPTIONS):
        placed = option(placed)
    return placed


def place_of(data: Path | None, join: str | None, ca: Path | None) -> CrawlPlace:
    """Take options first, then the environment. InputError: both a directory and a cluster are named."""
    if data is not None and join:
        raise InputError("--data and --join name two crawls; leave one out")
    if data is None and join is None:
        join = os.environ.get("XYRO_CLUSTER__JOIN")
    named = os.environ.get("XYRO_CLUSTER__CA")
    return CrawlPlace(data, join or "", ca or (Path(named) if named else None))


_OPTIONS = (
    with_data,
    click.option("--join", default=None, metavar="URL", help="The cluster of this broker, in place of --data."),
    click.option(
        "--ca",
        type=click.Path(path_type=Path, dir_okay=False),
        default=None,
        metavar="FILE",
        help="Certificate of the broker's authority, where --join is a URL.",
    ),
)
