"""Shared parts of the commands: options, the data directory, the settings, the lines about refused URLs."""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xyro.wire.text import printable

if TYPE_CHECKING:
    from xyro.configs.schema import Settings

Command = Callable[..., Any]


def _options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    return lambda command: functools.reduce(lambda done, option: option(done), reversed(options), command)


with_data = click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), default=None, help="Data directory [./xyro-data]."
)
as_json_too = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
crawling = _options(
    with_data,
    click.option(
        "--config",
        type=click.Path(path_type=Path, dir_okay=False, exists=True),
        multiple=True,
        help="Settings (TOML); may be repeated, later beats earlier.",
    ),
    click.option("--contact", default=None, help="Your mail address or page: told to every site that is read."),
    click.option("--scope", type=click.Choice(["host", "domain", "any"]), default=None, help="What belongs [host]."),
    click.option("--max-depth", type=int, default=None, help="Links from a seed to the deepest page read [any]."),
    click.option("--delay", type=float, default=None, help="Seconds between reads of a host, in place of all rules."),
    click.option(
        "--only-net",
        multiple=True,
        metavar="CIDR",
        help="Contact these networks and nothing else, ever; may be repeated.",
    ),
    click.option("--partitions", type=click.IntRange(1, 4096), default=None, help="Partitions of a new crawl [1]."),
)


def directory_of(data: Path | None) -> Path:
    return data or Path(os.environ.get("XYRO_STORE__DATA") or "xyro-data")


def settings_of(
    data: Path | None, config: tuple[Path, ...], serving: bool = False, **overrides: Any
) -> tuple[Path, Settings]:
    """The directory, and what this run goes by. `section__key` = value; None and () = not given.

    What the crawl there was last given lies below files, environment and options, and below that, for a daemon
    (`serving`), what each daemon begins with.
    """
    from xyro.configs.load import SERVE, load, slips
    from xyro.service.node import crawl_file
    from xyro.service.node.log_setup import set_up

    options = {"store.data": data, **{name.replace("__", "."): value for name, value in overrides.items()}}
    directory = Path(load(config, os.environ, options).store.data)
    begins = (SERVE,) if serving else ()
    settings = load((*begins, *crawl_file.paths(directory), *config), os.environ, options)
    set_up(settings.log.level, settings.log.format)
    for slip in slips(os.environ):
        logging.getLogger("xyro").warning(slip)
    return directory, settings


def tell_refused(refused: Iterable[tuple[str, str]], verb: str) -> None:
    for url, reason in refused:
        click.echo(f"{printable(url)}: {verb}: {printable(reason.removeprefix(f'{url}: '), 500)}", err=True)
