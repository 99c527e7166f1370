"""The command `xyro`: options in, one of the other files of this folder does the work.

Heavy modules are imported where they are used, so that `xyro --help` and `xyro submit` start at once. Bad input is one line
on standard error and exit code 2; a failure of this machine is exit code 3.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wire.errors import InputError, XyroError
from wire.text import printable

if TYPE_CHECKING:
    from configs.schema import Settings
    from crawl.views import Views

BAD_INPUT, MACHINE = 2, 3
Command = Callable[..., Any]


class _Group(click.Group):
    """Translates our errors to lines and exit codes."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except XyroError as error:
            click.echo(f"xyro: {printable(str(error), 2000)}", err=True)
            ctx.exit(BAD_INPUT if isinstance(error, InputError) else MACHINE)
        except BrokenPipeError:  # `xyro export pages | head`
            sys.stderr.close()
            ctx.exit(0)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="xyro")
def main() -> None:
    """A continuous web crawler that knows which pages matter and which have gone stale."""


def _data(command: Command) -> Command:
    return click.option(
        "--data", type=click.Path(path_type=Path, file_okay=False), default=None, help="Data directory [./xyro-data]."
    )(command)


def _config(command: Command) -> Command:
    return click.option(
        "--config",
        type=click.Path(path_type=Path, dir_okay=False),
        multiple=True,
        help="Settings (TOML); may be repeated.",
    )(command)


def _as_json(command: Command) -> Command:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def _reading(command: Command) -> Command:
    """Options of `crawl` and `serve` alike."""
    for option in (
        click.option("--partitions", type=click.IntRange(1, 4096), default=None, help="Partitions of a new crawl [1]."),
        click.option("--contact", default=None, help="Your mail address or page: told to every site that is read."),
        click.option(
            "--only-net", multiple=True, metavar="CIDR", help="Contact these networks and nothing else, ever."
        ),
        click.option(
            "--delay", type=float, default=None, help="Seconds between reads of a host, in place of all rules."
        ),
        click.option("--max-depth", type=int, default=None, help="Links from a seed to the deepest page read."),
        click.option(
            "--scope", type=click.Choice(["host", "domain", "any"]), default=None, help="What belongs [host]."
        ),
    ):
        command = option(command)
    return command


def _settings(data: Path | None, config: tuple[Path, ...], **overrides: Any) -> tuple[Settings, Path]:
    """Settings and data directory; what the crawl there was given last lies below files, environment and options."""
    from configs.load import load
    from crawl import given

    settings = load(config, os.environ, overrides)
    directory = data or Path(settings.store.data)
    kept = given.paths(directory)
    return (load((*kept, *config), os.environ, overrides) if kept else settings), directory


def _directory(data: Path | None, settings: Settings | None = None) -> Path:
    return data or Path(settings.store.data if settings else os.environ.get("XYRO_STORE__DATA", "xyro-data"))


def _log(settings: Settings) -> None:
    from crawl.log import set_up

    set_up(settings.log.level, settings.log.format)


@main.command()
@click.argument("seeds", nargs=-1, metavar="SEED...")
@_data
@_config
@click.option("--max-pages", type=click.IntRange(0), default=None, help="Stop after so many reads [0: none].")
@click.option("--max-seconds", type=click.FloatRange(0), default=None, help="Stop after so many seconds [0: none].")
@_reading
@click.option("--refresh", is_flag=True, default=None, help="Go on refreshing until a bound is reached.")
@_as_json
def crawl(
    seeds: tuple[str, ...],
    data: Path | None,
    config: tuple[Path, ...],
    max_pages: int | None,
    max_seconds: float | None,
    scope: str | None,
    max_depth: int | None,
    delay: float | None,
    only_net: tuple[str, ...],
    contact: str | None,
    partitions: int | None,
    refresh: bool | None,
    as_json: bool,
) -> None:
    """Crawl from SEED URLs in the foreground, or resume DIR.

    Ends when nothing in scope is left to read, or at a bound. Ctrl-C stops in order, a second one at once.
    """
    settings, directory = _settings(data, config, **{
        "crawl.max_pages": max_pages, "crawl.max_seconds": max_seconds, "crawl.scope": scope, "crawl.max_depth": max_depth,
        "politeness.delay": delay, "fetch.only_net": only_net, "fetch.contact": contact, "crawl.refresh": refresh,
    })  # fmt: skip
    from crawl.lifespan import Job, run
    from crawl.single import Bounds

    _log(settings)
    limits = settings.crawl
    bounds = Bounds(limits.max_pages, limits.max_seconds, limits.refresh)
    sys.exit(run(Job(directory, settings, bounds, seeds, partitions, as_json)))


@main.command()
@_data
@_config
@_reading
def serve(
    data: Path | None,
    config: tuple[Path, ...],
    scope: str | None,
    max_depth: int | None,
    delay: float | None,
    only_net: tuple[str, ...],
    contact: str | None,
    partitions: int | None,
) -> None:
    """Run the daemon: crawl and refresh until stopped; `xyro submit` gives it URLs."""
    settings, directory = _settings(data, config, **{
        "crawl.scope": scope, "crawl.max_depth": max_depth, "politeness.delay": delay,
        "fetch.only_net": only_net, "fetch.contact": contact,
    })  # fmt: skip
    from crawl.lifespan import Job, run
    from crawl.single import Bounds

    _log(settings)
    sys.exit(run(Job(directory, settings, Bounds(forever=True), (), partitions)))


@main.command()
@click.argument("urls", nargs=-1, metavar="URL...")
@_data
@click.option("--file", "file", type=click.File("r"), help="URLs, one a line; - is standard input.")
@click.option("--priority", type=click.Choice(["ordered"]), default="ordered", help="Level of the queue [ordered].")
def submit(urls: tuple[str, ...], data: Path | None, file: Any, priority: str) -> None:
    """Hand URLs to the running daemon, from arguments, a file, or standard input."""
    from crawl.run_file import Remote

    given = [*urls, *(file or ())] if urls or file else list(sys.stdin)
    directory = _directory(data)
    remote = Remote.find(directory)
    if remote is None:
        raise InputError(f"{directory}: no daemon runs there; start one with `xyro serve --data {directory}`")
    accepted, refused = 0, 0
    for start in range(0, len(given), 10_000):
        answer = remote.post("/submit", {"urls": given[start : start + 10_000], "priority": priority})
        accepted += answer["accepted"]
        refused += len(answer["refused"])
        for one in answer["refused"]:
            click.echo(f"{printable(one['url'])}: refused: {printable(one['why'], 500)}", err=True)
    click.echo(f"{accepted} accepted, {refused} refused")
    sys.exit(1 if refused else 0)


@main.command()
@_data
@_as_json
def status(data: Path | None, as_json: bool) -> None:
    """How the crawl stands, running or stopped."""
    directory = _directory(data)
    from crawl.run_file import Remote

    remote = Remote.find(directory)
    if remote is not None:
        said = remote.get("/status")
    else:
        from crawl.stopped import nodes_of
        from crawl.summary import summary

        with nodes_of(directory) as nodes:
            said = {**summary(nodes), "running": False}
    if as_json:
        click.echo(json.dumps(said))
        return
    for key, value in said.items():
        shown = "  ".join(f"{name} {count:,}" for name, count in value.items()) if isinstance(value, dict) else value
        click.echo(f"{key.replace('_', ' '):>18}  {shown}")


def _looking(directory: Path, path: str, local: Callable[[Views], Any], **query: Any) -> Any:
    """Ask the running process, or look into the stopped directory."""
    from crawl.run_file import Remote

    remote = Remote.find(directory)
    if remote is not None:
        return remote.get(path, **query)
    from crawl.stopped import nodes_of
    from crawl.views import Views

    with nodes_of(directory) as nodes, Views(nodes) as views:
        return local(views)


@main.command()
@_data
@click.option("-n", "count", type=click.IntRange(1), default=20, help="How many [20].")
@click.option("--by", type=click.Choice(["importance", "cash", "stale"]), default="importance", help="[importance]")
@_as_json
def top(data: Path | None, count: int, by: str, as_json: bool) -> None:
    """The first pages by importance, by cash, or by what is lost while they are stale."""
    from wire.clock import SystemClock

    rows = _looking(_directory(data), "/top", lambda views: views.top(count, by, SystemClock().time()), n=count, by=by)
    if as_json:
        click.echo(json.dumps(rows))
        return
    from crawl.table import table

    click.echo(table(rows, by))


@main.command()
@click.argument("url")
@_data
@_as_json
def why(url: str, data: Path | None, as_json: bool) -> None:
    """What is known of URL, and what decides when it is read."""
    from wire.clock import SystemClock
    from wire.urls import canonical

    wanted = canonical(url)

    def local(views: Views) -> Any:
        from crawl.why import why as explain

        return explain(views, wanted, SystemClock().time())

    said = _looking(_directory(data), "/why", local, url=wanted)
    if as_json:
        click.echo(json.dumps(said))
        return
    for sentence in said.pop("because"):
        click.echo(sentence)
    for key, value in said.items():
        click.echo(f"{key:>14}  {value if value is not None else '-'}")


@main.command()
@click.argument("table", type=click.Choice(["pages", "links", "hosts"]))
@_data
@click.option("--format", "form", type=click.Choice(["jsonl", "csv", "parquet"]), default="jsonl", help="[jsonl]")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), default=None, help="File [stdout].")
def export(table: str, data: Path | None, form: str, output: Path | None) -> None:
    """Write all known pages, stored links, or hosts."""
    from crawl.output import write_rows
    from crawl.run_file import Remote

    directory = _directory(data)
    write = functools.partial(write_rows, table, form=form, out=output or sys.stdout)
    remote = Remote.find(directory)
    if remote is not None:
        write(remote.lines(f"/export/{table}"))
        return
    from crawl.stopped import nodes_of
    from crawl.views import Views

    with nodes_of(directory) as nodes, Views(nodes) as views:
        write(getattr(views, table)())


@main.command()
@_data
@_as_json
def audit(data: Path | None, as_json: bool) -> None:
    """Check every invariant of the data: cash to the unit, maps, links, rows. Exit code 0 only if all hold."""

    def local(views: Views) -> Any:
        from crawl.audit import audit as check

        return check(views)

    said = _looking(_directory(data), "/audit", local)
    if as_json:
        click.echo(json.dumps(said))
    else:
        click.echo(f"{'holds' if said['ok'] else 'BROKEN'}: {said['pages']:,} pages, {said['cash_total']:,} units of cash "
                   f"({said['cash_expected']:,} minted), {said['virtual']:,} virtual, {said['in_flight']:,} in flight")  # fmt: skip
        for violation in said["violations"]:
            click.echo(f"  {printable(violation, 500)}")
    sys.exit(0 if said["ok"] else 1)


def _host_command(name: str, doc: str) -> None:
    @main.command(name, help=doc)
    @click.argument("host")
    @_data
    def command(host: str, data: Path | None) -> None:
        from crawl.run_file import Remote

        directory = _directory(data)
        remote = Remote.find(directory)
        if remote is None:
            raise InputError(f"{directory}: no daemon runs there; start one with `xyro serve --data {directory}`")
        said = remote.post("/hosts", {"host": host, "action": name})
        if not said["known"]:
            raise InputError(f"{host}: no page of this host is known; write it as URLs do: host or host:port")


_host_command("pause", "Start no read of HOST until it is resumed.")
_host_command("resume", "Read HOST again.")
_host_command("block", "Take back all orders of HOST and read nothing of it until it is resumed.")


@main.group()
def lab() -> None:
    """The laboratory: a computed web to try things on."""


@lab.command("web", context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def lab_web(options: tuple[str, ...]) -> None:
    """Serve a computed web on loopback; `xyro lab web --help` lists its settings."""
    from lab.server import main as serve_web

    sys.exit(serve_web(list(options)))


@lab.command("demo")
@_data
@click.option("--pages", type=click.IntRange(100), default=3000, help="Pages of the web [3000].")
def lab_demo(data: Path | None, pages: int) -> None:
    """Serve a computed web, crawl it, and print its most important pages."""
    from crawl.demo import demo

    sys.exit(demo(_directory(data), pages))


if __name__ == "__main__":
    main()
