"""Shared parts of the commands: options, the data directory, the settings, the lines about refused URLs."""

from __future__ import annotations

import functools
import logging
import math
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xyro.wire.errors import InputError
from xyro.wire.text import printable

if TYPE_CHECKING:
    from xyro.configs.schema import Settings

Command = Callable[..., Any]


class _Readers(click.ParamType[int | str]):
    """A number of processes, or "auto". The settings say what numbers can be."""

    name = "N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        return int(value) if str(value).isdecimal() else value


class FiniteFloat(click.FloatRange):
    """A number within a range. NaN, which click lets pass, and the infinities are none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a valid float.", param, ctx)
        return number


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
        help="Settings (TOML); may be repeated, later files win.",
    ),
    click.option("--contact", default=None, help="Your mail address or web page, which every site is told."),
    click.option(
        "--scope", type=click.Choice(["host", "domain", "any"]), default=None, help="Which URLs are in scope [host]."
    ),
    click.option("--max-depth", type=int, default=None, help="Read pages at most so many links from a seed [any]."),
    click.option(
        "--delay", type=float, default=None, help="Seconds between reads of a host, in place of the politeness rules."
    ),
    click.option(
        "--only-net",
        multiple=True,
        metavar="CIDR",
        help="Contact only these networks, ever; may be repeated.",
    ),
    click.option(
        "--readers",
        type=_Readers(),
        default=None,
        metavar="N|auto",
        help="Processes that read the web, beside the node's own [0].",
    ),
    click.option("--partitions", type=click.IntRange(1, 4096), default=None, help="Partitions of a new crawl [1]."),
    click.option(
        "--seeds",
        "seed_file",
        type=click.Path(path_type=Path, dir_okay=False, exists=True, allow_dash=True),
        default=None,
        metavar="FILE",
        help="Seed URLs, one per line; - is standard input.",
    ),
    click.option(
        "--include",
        multiple=True,
        metavar="PATTERN",
        help="Read only URLs that match (* and ?), and the seeds; may be repeated.",
    ),
    click.option("--exclude", multiple=True, metavar="PATTERN", help="Read no URL that matches; may be repeated."),
    click.option(
        "--user-agent",
        default=None,
        metavar="NAME",
        help="Name that sites are told and robots.txt is matched with [Xyro].",
    ),
    click.option(
        "--header",
        multiple=True,
        metavar="'NAME: VALUE'",
        help="Send this header to every host; may be repeated. For one host: [[sites]].",
    ),
    click.option("--text", is_flag=True, default=None, help="Store main text and Markdown of each page ([keep] text)."),
    click.option("--changes", is_flag=True, default=None, help="Record what changes, for `xyro changes`."),
    click.option("--warc", is_flag=True, default=None, help="Store each answer in WARC files ([keep] warc)."),
    click.option("-v", "--verbose", is_flag=True, default=None, help="Log more: a line for each read."),
    click.option("-q", "--quiet", is_flag=True, default=None, help="Log warnings and errors only."),
)
_SETTINGS = {
    "scope": "crawl__scope",
    "max_depth": "crawl__max_depth",
    "include": "crawl__include",
    "exclude": "crawl__exclude",
    "max_pages": "crawl__max_pages",
    "max_seconds": "crawl__max_seconds",
    "refresh": "crawl__refresh",
    "delay": "politeness__delay",
    "readers": "fetch__readers",
    "only_net": "fetch__only_net",
    "contact": "fetch__contact",
    "user_agent": "fetch__user_agent",
    "header": "fetch__headers",
    "text": "keep__text",
    "warc": "keep__warc",
    "changes": "changes__record",
    "join": "cluster__join",
    "ca": "cluster__ca",
}
"""parameter of an option of a crawl -> the setting that it stands for"""


def settings_chosen(chosen: Mapping[str, Any], serving: bool = False) -> tuple[Path, Settings]:
    """The directory and the settings that the options of a crawl ask for, as `settings_of`."""
    level = "debug" if chosen["verbose"] else "warning" if chosen["quiet"] else None
    overrides = {setting: chosen[name] for name, setting in _SETTINGS.items() if name in chosen}
    return settings_of(chosen["data"], chosen["config"], serving, log__level=level, **overrides)


def seeds_of(file: Path | None) -> Iterator[str]:
    """The URLs of a file, or of standard input; blank lines and # comments are skipped."""
    if file is None:
        return
    try:
        with click.open_file(str(file), encoding="utf-8", errors="replace") as lines:
            yield from (line for each in lines if (line := each.strip()) and not line.startswith("#"))
    except OSError as error:
        raise InputError(f"--seeds {file}: {error.strerror}; name a file with one URL a line") from error


def terminal_width() -> int:
    """Columns of the terminal that standard output is; 0 where it is none: nothing is cut there."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def tell(text: str, err: bool = False, level: int = logging.INFO, **fields: Any) -> None:
    """Print a text for people; on a terminal, lines that are too wide are folded. (A line of the log is a record, and
    stays one line.) On standard error beside a log of JSON it is a line of it, with `level` and `fields`."""
    from xyro.service.views.text_tables import folded
    from xyro.wire import log_setup

    if err and log_setup.is_json():
        log_setup.write(text, level, fields)
        return
    stream = sys.stderr if err else sys.stdout
    click.echo(folded(text, shutil.get_terminal_size().columns if stream.isatty() else 0), err=err)


def of_cluster() -> str:
    """The rest of a sentence about a directory that is none, for people whose commands ask a cluster."""
    named = os.environ.get("XYRO_CLUSTER__JOIN")
    return "; XYRO_CLUSTER__JOIN names a cluster: name the directory of one of its nodes with --data" if named else ""


def directory_of(data: Path | None) -> Path:
    """The data directory that a command looks at; of a numbered one (`node-*`) the one whose process answers here."""
    directory = data or Path(os.environ.get("XYRO_STORE__DATA") or "xyro-data")
    if not directory.name.endswith("*"):
        return directory
    from xyro.service.node.numbered_dirs import running_directory

    return running_directory(directory)


def settings_of(
    data: Path | None, config: tuple[Path, ...], serving: bool = False, **overrides: Any
) -> tuple[Path, Settings]:
    """The directory, and what this run goes by. `section__key` = value; None and () = not given.

    What the crawl there was last given lies below files, environment and options, and below that, for a daemon
    (`serving`), what each daemon begins with.
    """
    from xyro.configs.load import SERVE, load, refuse_strangers
    from xyro.service.node import crawl_file
    from xyro.service.node.numbered_dirs import claim_directory, is_numbered
    from xyro.wire.log_setup import set_up

    options = {"store.data": data, **{name.replace("__", "."): value for name, value in overrides.items()}}
    directory = Path(load(config, os.environ, options).store.data)
    if is_numbered(directory):
        options["store.data"] = directory = claim_directory(directory)
    begins = (SERVE,) if serving else ()
    settings = load((*begins, *crawl_file.paths(directory), *config), os.environ, options)
    refuse_strangers(os.environ, settings)
    set_up(settings.log.level, settings.log.format)
    return directory, settings


def tell_refused(refused: Iterable[tuple[str, str]], verb: str) -> None:
    for url, reason in refused:
        text = f"{printable(url)}: {verb}: {printable(reason.removeprefix(f'{url}: '), 500)}"
        tell(text, err=True, level=logging.ERROR, event="url-refused", url=url)
